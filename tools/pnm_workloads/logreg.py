"""LOGREG: the gradient of a logistic regression in fixed point, as ten sums of 64 bits.

As LINREG, with the sigmoid of the dot product: a table of 1,024 values of 12 bits, for -8 to 8.
"""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline, clip

DIMENSIONS = 10
STEPS = 1024
DOT_SHIFT = GRADIENT_SHIFT = 10
SIGMOID = np.rint(4096 / (1 + np.exp(-(np.arange(STEPS) - STEPS // 2) / 64))).astype(np.int32)


def logreg(features: Any, label: Any, weights: Any) -> Pipeline:
    def step(*args: Any) -> Any:
        sums, x, (y, w, sigmoid) = args[:DIMENSIONS], args[DIMENSIONS:-3], args[-3:]
        dot = sum(w[i] * a for i, a in enumerate(x)) >> DOT_SHIFT
        error = sigmoid[clip(dot + STEPS // 2, 0, STEPS - 1)] - y
        parts = [((error * a) >> GRADIENT_SHIFT).astype("i64") for a in x]
        return tuple(s + part for s, part in zip(sums, parts, strict=True))

    p, zeros, shared = Pipeline(), (np.int64(0),) * DIMENSIONS, (weights, SIGMOID)
    p.fetch(p.reduce(step, *features, label, init=zeros, combine=added, shared=shared))
    return p


def added(*sums: Any) -> Any:
    return tuple(a + b for a, b in zip(sums[:DIMENSIONS], sums[DIMENSIONS:], strict=True))
