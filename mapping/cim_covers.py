"""Covers for whole kernels: which tile of channels an image takes, and the covers of that tile."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Literal

from cim_opt.mapping.cim_search import Tiled, tile_of
from cim_opt.polyhedral.cover import block_spread, im2col, rectangle
from cim_opt.polyhedral.cover_choice import candidates
from cim_opt.polyhedral.cover_packing import im2col_groups
from cim_opt.polyhedral.kernel import MacKernel, Point

Mapping = Literal["im2col", "diagonal", "rectangles", "covers", "best"]
MAPPINGS: tuple[Mapping, ...] = ("im2col", "diagonal", "rectangles", "covers", "best")
_MOST_IMAGES = 256
"""Images of one tile; deeper kernels are cut into tiles of input channels."""


def covers_for(kernel: MacKernel, rows: int, columns: int, mapping: Mapping) -> list[Tiled]:
    """The covers of one family for a macro of rows x columns, each with its tile of channels."""
    found: list[Tiled] = []
    if mapping in ("im2col", "best"):
        found.append(_im2col(kernel, rows, columns))
    if mapping in ("diagonal", "best"):
        found.append(_diagonal(kernel, rows, columns))
    if mapping in ("rectangles", "best"):
        found += _rectangles(kernel, rows, columns)
    if mapping in ("covers", "best"):
        found += _candidates(kernel, rows, columns)
    return list(dict.fromkeys(found))


def _depth(kernel: MacKernel, rows: int) -> int:
    """Input channels of a tile."""
    if kernel.taps == 1:
        return min(kernel.in_channels, rows)
    if kernel.depth <= rows * _MOST_IMAGES:
        return kernel.in_channels
    return max(1, rows * _MOST_IMAGES // kernel.taps)


def _im2col(kernel: MacKernel, rows: int, columns: int) -> Tiled:
    channels = min(kernel.out_channels, columns), _depth(kernel, rows)
    return Tiled(im2col(tile_of(kernel, channels), rows, columns), channels)


def _diagonal(kernel: MacKernel, rows: int, columns: int) -> Tiled:
    """Several groups side by side in one image; im2col where only one fits."""
    whole = kernel.out_channels, kernel.in_channels
    if kernel.depth > rows or kernel.out_channels > columns:
        return _im2col(kernel, rows, columns)
    return Tiled(im2col_groups(kernel, rows, columns), whole)


def _rectangles(kernel: MacKernel, rows: int, columns: int) -> Iterator[Tiled]:
    room = columns // min(kernel.out_channels, columns)
    blocks = sorted(_boxes(kernel, 0, room), key=lambda block: _steps(kernel, block, rows, columns))
    for block in blocks[:_BLOCKS]:
        channels = min(kernel.out_channels, columns // prod(block)), _depth(kernel, rows)
        tile = tile_of(kernel, channels)
        # Cutting rows into images along an axis matters only when there is something to cut.
        cut = _inputs(kernel, block) * channels[1] > rows
        for strip in (None, *range(kernel.rank)) if cut else (None,):
            cover = rectangle(tile, block, rows, columns, strip=strip, even=True)
            yield Tiled(cover, channels)


_BLOCKS = 6
"""Blocks of outputs that are looked at closely: those with the fewest macro steps."""


def _inputs(kernel: MacKernel, block: Point) -> int:
    """Inputs of one channel that the outputs of a block read."""
    spread = block_spread(kernel, block)
    return prod(
        len({axis.reads(o * step, k) for o in range(size) for k in range(axis.taps)})
        for axis, size, step in zip(kernel.axes, block, spread, strict=True)
    )


def _steps(kernel: MacKernel, block: Point, rows: int, columns: int) -> tuple[int, int]:
    """Macro steps of a group with blocks of this form, and images of one tile of channels."""
    images = -(-_inputs(kernel, block) * kernel.in_channels // rows)
    blocks = prod(
        step * -(-axis.outputs // (size * step))
        for axis, size, step in zip(kernel.axes, block, block_spread(kernel, block), strict=True)
    )
    tiles = -(-kernel.out_channels // min(kernel.out_channels, columns // prod(block)))
    return blocks * images * tiles, images


def _boxes(kernel: MacKernel, axis: int, room: int) -> Iterator[Point]:
    if axis == kernel.rank:
        yield ()
        return
    along = kernel.axes[axis]
    most = min(room, along.outputs) if along.taps > 1 else 1
    for size in range(1, most + 1):
        for rest in _boxes(kernel, axis + 1, room // size):
            yield (size, *rest)


def _candidates(kernel: MacKernel, rows: int, columns: int) -> Iterator[Tiled]:
    channels = min(kernel.out_channels, columns), _depth(kernel, rows)
    if kernel.taps == 1 or channels[0] == columns:
        return
    for cover in candidates(tile_of(kernel, channels), rows, columns):
        yield Tiled(cover, channels)
