"""HST: a histogram of 12-bit pixels in 256 bins."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline

BINS = 256


def hst(pixels: Any) -> Pipeline:
    def count(bins: Any, x: Any) -> Any:
        return bins.add_at((x * BINS) >> 12, 1)

    p, zeros = Pipeline(), np.zeros(BINS, np.uint32)
    p.fetch(p.reduce(count, pixels, init=zeros, combine=lambda a, b: a + b))
    return p
