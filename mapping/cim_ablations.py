"""Families of covers that lack one step of the search, to see what that step gives.

- No affine schedule: no skewed vectors, so that no two outputs share a row: im2col.
- No pre-tiling: loops are skewed whole or not at all: blocks take all outputs of an axis or one.
- No coalescing: one loop alone becomes rows and one alone columns; all others are time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

from cim_opt.mapping.cim_covers import covers_for
from cim_opt.mapping.cim_search import Tiled, tile_of
from cim_opt.polyhedral.cover import block_spread, from_pairs, rectangle
from cim_opt.polyhedral.kernel import MacKernel, Point
from cim_opt.polyhedral.lattice import diagonal_lattice


def without_affine(kernel: MacKernel, rows: int, columns: int) -> list[Tiled]:
    """im2col."""
    return covers_for(kernel, rows, columns, "im2col")


def without_covers(kernel: MacKernel, rows: int, columns: int) -> list[Tiled]:
    """Blocks of outputs side by side, which are what affine schedules give, and im2col."""
    plain = without_affine(kernel, rows, columns)
    return [*plain, *covers_for(kernel, rows, columns, "rectangles")]


def without_pretiling(kernel: MacKernel, rows: int, columns: int) -> list[Tiled]:
    """Blocks of all outputs or of one output along each axis, and im2col."""
    found = without_affine(kernel, rows, columns)
    sides = [{1, axis.outputs} if axis.taps > 1 else {1} for axis in kernel.axes]
    for block in product(*map(sorted, sides)):
        if 1 < prod(block) <= columns:
            channels = min(kernel.out_channels, columns // prod(block)), kernel.in_channels
            tile = tile_of(kernel, channels)
            found.append(Tiled(rectangle(tile, block, rows, columns), channels))
    return found


def without_coalescing(kernel: MacKernel, rows: int, columns: int) -> list[Tiled]:
    """Rows and columns are one loop each: an axis, channels or taps; the other taps are time."""
    whole = min(kernel.out_channels, columns), min(kernel.in_channels, rows)
    found: list[Tiled] = []
    # Columns are output channels; rows are input channels, or the taps of an axis.
    found.append(Tiled(_lines(kernel, None, 1, whole, rows, columns), whole))
    for axis in _sliding(kernel):
        channels = whole[0], 1
        found.append(Tiled(_lines(kernel, axis, 1, channels, rows, columns), channels))
        for size in range(2, min(columns, kernel.axes[axis].outputs) + 1):
            found.append(Tiled(_lines(kernel, axis, size, (1, 1), rows, columns), (1, 1)))
    return found


def _sliding(kernel: MacKernel) -> Iterator[int]:
    return (number for number, axis in enumerate(kernel.axes) if axis.taps > 1)


def _lines(
    kernel: MacKernel,
    axis: int | None,
    size: int,
    channels: tuple[int, int],
    rows: int,
    columns: int,
):
    """The cover whose images hold `size` outputs along the axis and what they read along it.

    One image for each tap of the other axes; without an axis, for each tap.
    """
    tile = tile_of(kernel, channels)
    block = tuple(size if number == axis else 1 for number in range(kernel.rank))
    spread = block_spread(kernel, block)
    apart = 1 if axis is None else spread[axis]
    outputs = [_along(kernel, axis, place * apart) for place in range(size)]
    pairs: list[tuple[list[Point], list[Point]]] = []
    taps = [range(1) if number == axis else range(a.taps) for number, a in enumerate(kernel.axes)]
    for tap in product(*taps):
        start = tuple(a.reads(0, k) for a, k in zip(kernel.axes, tap, strict=True))
        pairs.append((outputs, _line(kernel, axis, start, size, apart)))
    periods = [number * step for number, step in zip(block, spread, strict=True)]
    return from_pairs(
        tile,
        diagonal_lattice(periods),
        pairs,
        rows,
        columns,
        residues=[range(step) for step in spread],
    )


def _along(kernel: MacKernel, axis: int | None, place: int) -> Point:
    return tuple(place if number == axis else 0 for number in range(kernel.rank))


def _line(kernel: MacKernel, axis: int | None, start: Point, size: int, apart: int) -> list[Point]:
    """What the outputs of a line read along it, from `start`."""
    if axis is None:
        return [start]
    along = kernel.axes[axis]
    inputs = {along.reads(o * apart, k) for o in range(size) for k in range(along.taps)}
    return [(*start[:axis], value, *start[axis + 1 :]) for value in sorted(inputs)]


Family = Callable[[MacKernel, int, int], list[Tiled]]

WITHOUT: dict[str, Family] = {
    "covers": without_covers,
    "coalescing": without_coalescing,
    "pretiling": without_pretiling,
    "affine": without_affine,
}
"""The families, for macros of rows x columns, by the step that they lack."""
