"""Writes scikit-image's camera picture as a NumPy file for `cim-run --input img=FILE.npy`.

    pip install -e '.[examples]'
    python examples/camera.py camera.npy

The picture is 512 x 512 grey pixels of one byte; the file holds them row after row.
"""

import sys
from typing import Any, cast

import numpy as np
import numpy.typing as npt


def camera() -> npt.NDArray[np.uint8]:
    """The pixels of the camera picture, 262,144 values of uint8, row after row.

    Raises ImportError without scikit-image.
    """
    from skimage import data

    picture = cast("npt.NDArray[np.uint8]", cast("Any", data).camera())
    return picture.reshape(-1)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python examples/camera.py FILE.npy", file=sys.stderr)
        return 2
    try:
        pixels = camera()
    except ImportError:
        print(
            "examples/camera.py: error: the picture comes with scikit-image; "
            "run: pip install -e '.[examples]'",
            file=sys.stderr,
        )
        return 1
    np.save(sys.argv[1], pixels)
    print(f"{sys.argv[1]}: {pixels.size} pixels as uint8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
