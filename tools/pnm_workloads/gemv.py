"""GEMV: a matrix, row after row, by a vector; sums of 32 bits."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline


def gemv(matrix: Any, vector: Any) -> Pipeline:
    p = Pipeline()
    product = p.group(
        lambda row, v: (row.astype(np.int32) * v.astype(np.int32)).sum(),
        matrix,
        size=len(vector),
        shared=vector,
    )
    p.fetch(product)
    return p
