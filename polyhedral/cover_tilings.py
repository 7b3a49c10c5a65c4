"""Products of covers of single axes, with their exact numbers of steps, before they are built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from cim_opt.polyhedral.cover import Cover, from_pairs
from cim_opt.polyhedral.cover_axis import AxisCover, axis_covers
from cim_opt.polyhedral.kernel import MacKernel, Point
from cim_opt.polyhedral.lattice import Lattice, diagonal_lattice, index

WIDEST = 16
"""The most outputs along one axis that share a step."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """What a cover is built from: pairs of outputs and inputs without channels, over a lattice.

    `points` counts the lattice points of the finite outputs, for all residues; `cuts` the images
    that each pair's inputs take.
    """

    lattice: Lattice
    pairs: tuple[tuple[tuple[Point, ...], tuple[Point, ...]], ...]
    residues: tuple[tuple[int, ...], ...]
    points: int

    def built(
        self,
        kernel: MacKernel,
        rows: int,
        columns: int,
        strip: int | None = None,
        *,
        whole: bool = True,
    ) -> Cover:
        """The cover, cut along the axis `strip`, on whole lines if possible and asked for."""
        return from_pairs(
            kernel,
            self.lattice,
            self.pairs,
            rows,
            columns,
            strip=strip,
            whole=whole,
            residues=self.residues,
        )

    def inputs(self) -> int:
        """Inputs of all pairs, for one input channel."""
        return sum(len(inputs) for _, inputs in self.pairs)

    def outputs(self) -> int:
        """Outputs of the widest pair, for one output channel."""
        return max(len(outputs) for outputs, _ in self.pairs)

    def cuts(self, kernel: MacKernel, rows: int) -> int:
        """Images for one tile of output channels and one residue."""
        return sum(-(-len(inputs) * kernel.in_channels // rows) for _, inputs in self.pairs)

    def steps(self, kernel: MacKernel, rows: int, columns: int) -> int:
        """Steps of the built cover, or a few more when an image loses columns in the cuts."""
        share = columns // self.outputs()
        tiles = -(-kernel.out_channels // share)
        return kernel.groups * self.points * tiles * self.cuts(kernel, rows)

    @property
    def simple(self) -> bool:
        """Whether no output is in two steps of a pair's lattice: a block, not a comb or chunks."""
        return self.outputs() * prod(map(len, self.residues)) == index(self.lattice)

    def fraction(self, kernel: MacKernel, rows: int, columns: int) -> float:
        """Steps if rows that a cut leaves over could be shared with other cuts."""
        full = self.cuts(kernel, rows)
        rest = self.inputs() * kernel.in_channels / rows
        return self.steps(kernel, rows, columns) * rest / full


def products(kernel: MacKernel, rows: int, columns: int, most: int) -> list[Tiling]:
    """The `most` tilings with the fewest steps, and as many blocks by `Tiling.fraction`."""
    axes = [axis_covers(axis, min(columns, WIDEST)) for axis in kernel.axes]
    points = _outer([[cover.steps for cover in covers] for covers in axes])
    outputs = _outer([[len(cover.outputs) for cover in covers] for covers in axes])
    inputs = _outer([[len(cover.inputs) for cover in covers] for covers in axes])
    fits = np.flatnonzero(outputs <= columns)
    share = np.minimum(kernel.out_channels, columns // outputs[fits])
    tiles = -(-kernel.out_channels // share)
    deep = inputs[fits] * kernel.in_channels
    cuts = -(-deep // rows)
    steps = points[fits] * tiles * cuts
    # Among equals: few images, then few outputs and inputs.
    by_steps = np.lexsort((deep, outputs[fits], cuts, steps))[:most]
    periods = _outer([[c.period // len(c.residues) for c in covers] for covers in axes])[fits]
    by_share = np.lexsort((steps, steps * deep / (rows * cuts), periods != outputs[fits]))[:most]
    chosen = dict.fromkeys((*by_steps.tolist(), *by_share.tolist()))
    return [_product(_covers(axes, int(fits[number]))) for number in chosen]


def _covers(axes: Sequence[Sequence[AxisCover]], number: int) -> list[AxisCover]:
    """The choice of one cover an axis with this number, the last axis running fastest."""
    chosen: list[AxisCover] = []
    for covers in reversed(axes):
        number, index = divmod(number, len(covers))
        chosen.insert(0, covers[index])
    return chosen


def _outer(values: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """The products of one value of each sequence, the last sequence running fastest."""
    arrays = (np.array(axis, dtype=np.int64) for axis in values)
    return reduce(lambda left, right: np.outer(left, right).ravel(), arrays, np.ones(1, np.int64))


def _product(covers: Sequence[AxisCover]) -> Tiling:
    return Tiling(
        diagonal_lattice(cover.period for cover in covers),
        ((_points(cover.outputs for cover in covers), _points(c.inputs for c in covers)),),
        tuple(cover.residues for cover in covers),
        prod(cover.steps for cover in covers),
    )


def _points(values: Iterable[Iterable[int]]) -> tuple[Point, ...]:
    return tuple(product(*values))


def blocks(kernel: MacKernel, columns: int) -> Iterator[Point]:
    """Blocks of outputs that fit the columns and the kernel's outputs."""
    sides = [range(1, min(columns, axis.outputs) + 1) for axis in kernel.axes]
    return (block for block in product(*sides) if prod(block) <= columns)
