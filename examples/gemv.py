"""GEMV: y = M v for a matrix that is given row after row.

Run it with `python examples/gemv.py`.
"""

import sys
from typing import Any

import numpy as np
from show import show

from cim_opt.frontend import Execution, Pipeline


def gemv(matrix: Any, vector: Any, **options: Any) -> Execution:
    p = Pipeline(matrix.size)
    p.fetch(
        p.group(lambda row, v: (row * v).sum(), matrix.reshape(-1), size=len(vector), shared=vector)
    )
    return p.execute(**options)


def main() -> int:
    rng = np.random.default_rng(0)
    matrix = rng.integers(-100, 100, (10240, 64), dtype=np.int32)
    vector = rng.integers(-100, 100, 64, dtype=np.int32)
    return show(gemv(matrix, vector))


if __name__ == "__main__":
    sys.exit(main())
