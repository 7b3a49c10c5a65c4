"""Affine schedules of a kernel, and their exact score.

A schedule has one `Part` for each axis; all input channels become rows and all output channels
columns. Virtual rows and columns are coalesced, outermost first: channels, then the axes in order,
and tiled by the macro's. The score is the number of steps in which the macro is used: times and
tiles in which no iteration falls are not counted.

    best = search(kernel, 32, 8)[0]                 # affine_search.py
    best.steps, best.images, best.utilisation
    schedule_text(best)                             # the schedule map for isl, affine_text.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from cim_opt.polyhedral import bounds
from cim_opt.polyhedral.affine_part import (
    Cells,
    Part,
    Pattern,
    Use,
    finite_use,
    measure,
    periodic_use,
)
from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.polyhedral.posttile import tiles, used_tiles


@dataclass(frozen=True, slots=True)
class AffineSchedule:
    """A schedule of `kernel` on a macro of `rows` by `columns` weights.

    `steps` counts uses of the macro for all groups, `images` the sets of weights that differ,
    of one group and with repeating axes counted once.
    """

    kernel: MacKernel
    parts: tuple[Part, ...]
    rows: int
    columns: int
    steps: int
    images: int

    @property
    def utilisation(self) -> float:
        """Multiply-accumulates over the cells of all steps, 0 to 1."""
        return bounds.utilisation(self.kernel, self.rows, self.columns, self.steps)

    @property
    def virtual_rows(self) -> int:
        """Rows before tiling."""
        return self.kernel.in_channels * prod(measure(part).rows for part in self.parts)

    @property
    def virtual_columns(self) -> int:
        """Columns before tiling."""
        return self.kernel.out_channels * prod(measure(part).columns for part in self.parts)


# -- the score -----------------------------------------------------------------------------------


def steps_of(kernel: MacKernel, parts: Sequence[Part], rows: int, columns: int) -> int:
    """Uses of the macro for all groups, those without an iteration left out."""
    return kernel.groups * _uses(kernel, [finite_use(part) for part in parts], rows, columns)


def images_of(kernel: MacKernel, parts: Sequence[Part], rows: int, columns: int) -> int:
    """Sets of weights: uses of the macro in one period of every axis."""
    return _uses(kernel, [periodic_use(part) for part in parts], rows, columns)


def box_steps(kernel: MacKernel, parts: Sequence[Part], rows: int, columns: int) -> int:
    """Steps on bounding boxes, as the public prototype counts them."""
    found = [measure(part) for part in parts]
    times = prod(one.box_times for one in found)
    row_tiles = tiles(kernel.in_channels * prod(one.rows for one in found), rows)
    column_tiles = tiles(kernel.out_channels * prod(one.columns for one in found), columns)
    return kernel.groups * times * row_tiles * column_tiles


def _uses(kernel: MacKernel, uses: Sequence[Use], rows: int, columns: int) -> int:
    repeat = (kernel.in_channels, kernel.out_channels)
    high = repeat[0] * prod(use.rows for use in uses)
    wide = repeat[1] * prod(use.columns for use in uses)
    if high <= rows and wide <= columns:
        return prod(use.times for use in uses)
    # With one column tile, a tile is used when one of its rows is; and the other way round.
    if wide <= columns:
        return _counted([use.by_row for use in uses], rows, columns, (repeat[0], 1))
    if high <= rows:
        return _counted([use.by_column for use in uses], rows, columns, (1, repeat[1]))
    return _counted([use.patterns for use in uses], rows, columns, repeat)


def _counted(
    used: Sequence[tuple[Pattern, ...]], rows: int, columns: int, repeat: tuple[int, int]
) -> int:
    """Used tiles of the product of patterns, one an axis, summed over all their times."""
    total = 0
    for pick in product(*used):
        cells = reduce(_product_of_cells, (p.cells for p in pick), np.ones((1, 1), dtype=np.bool_))
        total += prod(p.count for p in pick) * used_tiles(cells, rows, columns, repeat)
    return total


def _product_of_cells(outer: Cells, inner: Cells) -> Cells:
    """[row, column] of fused rows and columns, those of `outer` counting most."""
    fused = outer[:, None, :, None] & inner[None, :, None, :]
    return fused.reshape(len(outer) * len(inner), -1)
