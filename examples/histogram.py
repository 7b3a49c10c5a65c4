"""Histogram of a grey-scale picture: how many pixels have each of the 256 values.

The picture is scikit-image's photograph of a man with a camera, 512 x 512 pixels.

It takes `pip install -e '.[examples]'`. Run it with `python examples/histogram.py`.
"""

import sys
from typing import Any

import numpy as np
from camera import camera
from show import show

from cim_opt.frontend import Execution, Pipeline


def histogram(pixels: Any, **options: Any) -> Execution:
    p = Pipeline(len(pixels))
    bins = p.reduce(
        lambda bins, pixel: bins.add_at(pixel, 1),
        pixels,
        init=np.zeros(256, np.int32),
        combine=lambda left, right: left + right,
    )
    p.fetch(bins)
    return p.execute(**options)


def main() -> int:
    run = histogram(camera())
    for start in range(0, 256, 32):
        print(f"{start:3} to {start + 31:3}: {run[0][start : start + 32].sum():6} pixels")
    return show(run)


if __name__ == "__main__":
    sys.exit(main())
