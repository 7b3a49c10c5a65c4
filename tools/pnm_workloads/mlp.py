"""MLP: three layers of a matrix each, with ReLU; the first results of one feed the next.

As in the PrIM benchmarks, a layer has more rows than columns, and as many of its results as the
next one has columns go on.
"""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline, maximum


def mlp(weights: Any, x: Any) -> Pipeline:
    p, size, dtype = Pipeline(), len(x), x.dtype
    for matrix in weights:
        y = p.group(
            lambda row, v: maximum((row.astype(np.int32) * v.astype(np.int32)).sum(), 0),
            matrix,
            size=size,
            shared=x,
        )
        x = p.map(lambda y: y.astype(dtype), y)[:size]
    p.fetch(y)
    return p
