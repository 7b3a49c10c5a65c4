"""Covers of one axis as it is in a kernel; products of them are covers of the kernel.

They are the blocks, combs and chunks of `cover_line`. With dilation the outputs of one residue are
an axis without it, and blocks of neighbours are covers of their own. A cover of one residue serves
all of them by as many moved images, or by itself when the dilation has no factor of the period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

from cim_opt.polyhedral.cover_line import Line, plain_lines
from cim_opt.polyhedral.kernel import Axis
from cim_opt.polyhedral.lattice import count_multiples


@dataclass(frozen=True, slots=True)
class AxisCover:
    """A cover of one axis in the kernel's own coordinates, and its steps on the finite axis.

    At a multiple p of `period` outputs p + r + b and inputs stride * (p + r) + e meet, for each
    residue r; an image serves one residue.
    """

    period: int
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    residues: tuple[int, ...]
    steps: int

    @property
    def cost(self) -> tuple[int, int, int]:
        """Steps, columns and rows; a cover that is worse in none of them is as good."""
        return self.steps, len(self.outputs), len(self.inputs)


@dataclass(frozen=True, slots=True)
class Reduced:
    """An axis without dilation and common factors, and the way back to the axis itself.

    Output r + spread * o' reads at tap k the input stride * r + reach * x' where
    x' = stride' * o' + k.
    """

    taps: int
    stride: int
    spread: int
    reach: int


def reduced(axis: Axis) -> Reduced:
    """The axis that one residue of its outputs follows."""
    if axis.taps == 1:
        return Reduced(1, 1, 1, axis.stride)
    common = gcd(axis.stride, axis.dilation)
    spread = axis.dilation // common
    return Reduced(axis.taps, axis.stride // common, spread, spread * common)


@lru_cache(maxsize=256)
def axis_covers(axis: Axis, columns: int) -> tuple[AxisCover, ...]:
    """Covers of the axis with at most `columns` outputs of which none is worse than another."""
    plain = reduced(replace(axis, pad=0, inputs=None))
    every = [
        cover
        for found in plain_lines(plain.taps, plain.stride, columns)
        for cover in _spread(axis, plain, found)
    ]
    if plain.spread > 1:
        every += [_neighbours(axis, size) for size in range(2, columns + 1)]
    # Of equals the first stays: blocks come first, then combs, then chunks.
    every.sort(key=lambda cover: (cover.cost, len(cover.residues)))
    kept: list[AxisCover] = []
    for cover in every:
        if not any(_no_worse(other, cover) for other in kept):
            kept.append(cover)
    return tuple(kept)


def _no_worse(one: AxisCover, other: AxisCover) -> bool:
    return all(a <= b for a, b in zip(one.cost, other.cost, strict=True))


def _spread(axis: Axis, plain: Reduced, found: Line) -> Iterator[AxisCover]:
    outputs = tuple(plain.spread * b for b in found.outputs)
    inputs = tuple(plain.reach * e for e in found.inputs)
    if gcd(plain.spread, found.period) == 1:
        yield _placed(axis, found.period, outputs, inputs, (0,))
    if plain.spread > 1:
        period = plain.spread * found.period
        yield _placed(axis, period, outputs, inputs, tuple(range(plain.spread)))


def _neighbours(axis: Axis, size: int) -> AxisCover:
    """A block of neighbouring outputs of several residues."""
    inputs = sorted({axis.reads(b, k) for b in range(size) for k in range(axis.taps)})
    return _placed(axis, size, tuple(range(size)), tuple(inputs), (0,))


def _placed(
    axis: Axis,
    period: int,
    outputs: tuple[int, ...],
    inputs: tuple[int, ...],
    residues: tuple[int, ...],
) -> AxisCover:
    """The cover moved to where it takes the fewest steps at the ends of the axis."""

    def count(move: int) -> int:
        return sum(
            count_multiples(period, [b + move + r for b in outputs], axis.outputs) for r in residues
        )

    move = min(range(period), key=lambda move: (count(move), move)) if len(outputs) > 1 else 0
    return AxisCover(
        period,
        tuple(b + move for b in outputs),
        tuple(e + axis.stride * move for e in inputs),
        residues,
        count(move),
    )
