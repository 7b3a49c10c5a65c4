"""Looks up solved covers of several axes for a kernel: axes swapped, mirrored, moved, dilated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from math import gcd, prod

import numpy as np

from cim_opt.polyhedral import lattice as lattices
from cim_opt.polyhedral.cover_axis import Reduced, reduced
from cim_opt.polyhedral.cover_catalogue import Entry, table
from cim_opt.polyhedral.cover_tilings import Tiling
from cim_opt.polyhedral.kernel import MacKernel, Point
from cim_opt.polyhedral.lattice import Integers, Lattice


@dataclass(frozen=True, slots=True)
class _Placed:
    """An entry over all axes of a kernel, undilated and not moved yet."""

    lattice: Lattice
    pairs: tuple[tuple[Integers, Integers], ...]


def lookup(
    kernel: MacKernel, columns: int, table_of: Sequence[Entry] | None = None
) -> list[Tiling]:
    """Tilings from the table (or `table_of`) for the kernel's taps, with at most `columns` outputs.

    Each is moved to where it takes the fewest steps on the kernel's outputs. Axes of one tap take
    part with one position a step.
    """
    axes = [reduced(axis) for axis in kernel.axes]
    active = tuple(number for number, axis in enumerate(axes) if axis.taps > 1)
    if len(active) < 2:
        return []
    entries = tuple(table() if table_of is None else table_of)
    found: dict[tuple[Lattice, frozenset[Point]], Tiling] = {}
    for entry in entries:
        if len(entry.taps) == len(active) and entry.outputs <= columns:
            for placed in _placements(entry, axes, active):
                tiling = _moved(kernel, axes, placed)
                found.setdefault((tiling.lattice, frozenset(tiling.pairs[0][1])), tiling)
    return list(found.values())


def _placements(entry: Entry, axes: Sequence[Reduced], active: Sequence[int]) -> Iterator[_Placed]:
    wanted = [(axes[number].taps, axes[number].stride) for number in active]
    for order in permutations(range(len(active))):
        if [(entry.taps[a], entry.strides[a]) for a in order] == wanted:
            for mirror in product((False, True), repeat=len(active)):
                # All mirrored at once gives the same lattice.
                if not mirror[0]:
                    yield _placed(entry, order, mirror, len(axes), tuple(active))


@lru_cache(maxsize=1024)
def _placed(
    entry: Entry,
    order: tuple[int, ...],
    mirror: tuple[bool, ...],
    rank: int,
    active: tuple[int, ...],
) -> _Placed:
    signs = np.array([-1 if flip else 1 for flip in mirror], dtype=np.int64)
    last = np.array([entry.taps[a] - 1 for a in order]) * (signs < 0)

    def spread(points: Integers) -> Integers:
        wide = np.zeros((len(points), rank), dtype=np.int64)
        wide[:, active] = points
        return wide

    basis = np.eye(rank, dtype=np.int64)
    rows = spread(np.array(entry.lattice, dtype=np.int64)[:, order] * signs)
    for number, row in zip(active, rows, strict=True):
        basis[number] = row
    pairs = tuple(
        (
            spread(np.array(outputs, dtype=np.int64)[:, order] * signs),
            spread(np.array(inputs, dtype=np.int64)[:, order] * signs + last),
        )
        for outputs, inputs in entry.images
    )
    return _Placed(lattices.hermite(basis.tolist()), pairs)


def _moved(kernel: MacKernel, axes: Sequence[Reduced], placed: _Placed) -> Tiling:
    """The tiling in the kernel's coordinates, at the best of all moves."""
    spread = np.array([axis.spread for axis in axes], dtype=np.int64)
    reach = np.array([axis.reach for axis in axes], dtype=np.int64)
    lattice, residues = _dilated(placed.lattice, [axis.spread for axis in axes])
    pairs = [(outputs * spread, inputs * reach) for outputs, inputs in placed.pairs]
    moves = np.array(lattices.representatives(lattice), dtype=np.int64)
    points = np.zeros(len(moves), dtype=np.int64)
    for outputs, _ in pairs:
        counts = lattices.counts_by_class(lattice, _points(outputs), kernel.output_shape)
        for residue in product(*residues):
            points += counts[lattices.classes(lattice, moves + np.array(residue, np.int64))]
    move = moves[int(np.argmin(points))]
    far = move * np.array(kernel.strides, dtype=np.int64)
    return Tiling(
        lattice,
        tuple((_points(outputs + move), _points(inputs + far)) for outputs, inputs in pairs),
        residues,
        int(points.min()) // len(pairs),
    )


def _dilated(
    lattice: Lattice, spread: Sequence[int]
) -> tuple[Lattice, tuple[tuple[int, ...], ...]]:
    """The lattice for outputs that lie `spread` apart, and the residues that it serves."""
    one = len(set(spread)) == 1 and gcd(spread[0], lattices.index(lattice)) == 1
    if one or prod(spread) == 1:
        return lattice, ((0,),) * len(spread)
    scaled = [[value * by for value, by in zip(row, spread, strict=True)] for row in lattice]
    return lattices.hermite(scaled), tuple(tuple(range(by)) for by in spread)


def _points(values: Integers) -> tuple[Point, ...]:
    return tuple(map(tuple, values.tolist()))
