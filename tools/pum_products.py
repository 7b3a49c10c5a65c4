"""Matrix products of the kernels of `cim-bench pum`, in the ways that columns can be used.

`pairs`: every row of A beside every column of B, both in the columns. `left`: columns of B side by
side, elements of A are scalars that the host gives as it issues the products; `right`: rows of A
side by side, elements of B are scalars. The function of an output is the same in all of them, and
so are the results; `ROWS` rows of scalars go into one pipeline, which has as many sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cim_opt.tools import pum_stages as stages
from cim_opt.tools.pum_stages import PAIRS, Part, Range, Stage

MUL = ("mul", 32)
WAYS = (PAIRS, "left", "right")
ROWS = 16
"""Rows of scalars in one pipeline: 512 of a subarray's 1,006 D rows hold 32-bit sums."""


def product_stage(name: str, n: int, m: int, k: int, **ranges: Range) -> Stage:
    """A matrix product: n * m sums of k products."""
    left, right = ranges.get("a"), ranges.get("b")
    return Stage(
        name,
        partial(stages.dot_products, n * m, k),
        n * m,
        k,
        (MUL,),
        ranges=ranges,
        reduces=32,
        scalars={
            "left": scalar_parts([m] * n, k, np.uint32, scalars=left, columns=right),
            "right": scalar_parts([n] * m, k, np.uint32, scalars=right, columns=left),
        },
    )


def scalar_parts(
    outputs: Sequence[int], k: int, dtype: Any, *, scalars: Range | None, columns: Range | None
) -> tuple[Part, ...]:
    """Pipelines for rows of k scalars, row i with `outputs[i]` sums: at most one tile if they vary.

    Blocks of rows are counted once, with the mean of their outputs side by side: that says the
    columns used, and commands do not depend on it within a tile.
    """
    whole = len(outputs) - len(outputs) % ROWS
    parts: list[Part] = []
    for start, stop, rows in ((0, whole, ROWS), (whole, len(outputs), len(outputs) - whole)):
        firsts = outputs[start:stop:rows] if rows else ()
        if firsts:
            lanes = round(sum(firsts) / len(firsts))
            build = partial(_with_unknown_rows, lanes, rows, k, dtype)
            ranges = _named(rows, scalars, columns)
            name = f"{rows} rows of scalars"
            parts.append(Part(name, build, len(firsts), ranges, "output-stationary"))
    return tuple(parts)


def _with_unknown_rows(outputs: int, rows: int, k: int, dtype: Any) -> Any:
    """A pipeline to count: its scalars are arguments, so their values do not matter."""
    return stages.products_with_rows(outputs, np.zeros((rows, k), dtype))


def _named(rows: int, scalars: Range | None, columns: Range | None) -> Mapping[str, Range]:
    ranges = {} if columns is None else {"b": columns}
    if scalars is not None:
        # Shared arguments come after the vector.
        ranges |= {f"arg{1 + row}": scalars for row in range(rows)}
    return ranges


def product(execute: Any, a: Any, b: Any, way: str = PAIRS) -> Any:
    """a @ b, in one of `WAYS`."""
    if way == "left":
        return np.array(rows_of_products(execute, a, b.T))
    if way == "right":
        return np.array(rows_of_products(execute, b.T, a)).T
    (n, k), m = a.shape, b.shape[1]
    left, right = np.repeat(a, m, axis=0), np.tile(b.T, (n, 1))
    pipeline = stages.dot_products(n * m, k, a.dtype)
    (sums,) = execute(pipeline, a=left.reshape(-1), b=right.reshape(-1))
    return sums.reshape(n, m)


def rows_of_products(execute: Any, scalars: Any, lanes: Any, first: bool = False) -> list[Any]:
    """Products of every row of `scalars` with those of `lanes`, by scalars.

    `first`: both are the same matrix, and a block of rows leaves out the rows before it.
    """
    made: list[Any] = []
    for start in range(0, len(scalars), ROWS):
        block, columns = scalars[start : start + ROWS], lanes[start:] if first else lanes
        pipeline = stages.products_with_rows(len(columns), np.ascontiguousarray(block))
        made += execute(pipeline, b=np.ascontiguousarray(columns).reshape(-1))
    return made
