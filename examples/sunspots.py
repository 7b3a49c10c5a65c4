"""Writes examples/sunspots.csv as a NumPy file for `cim-run --input series=FILE.npy`.

    python examples/sunspots.py sunspots.npy

The numbers become tenths in int32, which is what examples/moving_average.mlir and
examples/extreme.mlir take: a DPU has no floating-point unit.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

TABLE = Path(__file__).parent / "sunspots.csv"
FIRST_YEAR = 1700


def sunspots() -> npt.NDArray[np.int32]:
    """Yearly sunspot numbers in tenths, one a year from FIRST_YEAR on, as int32."""
    numbers = np.loadtxt(TABLE, delimiter=",", skiprows=4, usecols=1)
    return np.rint(numbers * 10).astype(np.int32)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python examples/sunspots.py FILE.npy", file=sys.stderr)
        return 2
    series = sunspots()
    np.save(sys.argv[1], series)
    print(f"{sys.argv[1]}: {series.size} years as int32, in tenths")
    return 0


if __name__ == "__main__":
    sys.exit(main())
