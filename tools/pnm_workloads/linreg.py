"""LINREG: the gradient of a linear regression in fixed point, as ten sums of 64 bits.

A sample is ten features and a target; the error is (w . x >> 6) - y, and a gradient adds
error * x >> 10.
"""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline

DIMENSIONS = 10
DOT_SHIFT, GRADIENT_SHIFT = 6, 10


def linreg(features: Any, target: Any, weights: Any) -> Pipeline:
    def step(*args: Any) -> Any:
        sums, x, (y, w) = args[:DIMENSIONS], args[DIMENSIONS:-2], args[-2:]
        error = (sum(w[i] * a for i, a in enumerate(x)) >> DOT_SHIFT) - y
        parts = [((error * a) >> GRADIENT_SHIFT).astype("i64") for a in x]
        return tuple(s + part for s, part in zip(sums, parts, strict=True))

    p, zeros = Pipeline(), (np.int64(0),) * DIMENSIONS
    p.fetch(p.reduce(step, *features, target, init=zeros, combine=added, shared=weights))
    return p


def added(*sums: Any) -> Any:
    return tuple(a + b for a, b in zip(sums[:DIMENSIONS], sums[DIMENSIONS:], strict=True))
