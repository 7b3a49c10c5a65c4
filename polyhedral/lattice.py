"""Integer lattices of full rank by their Hermite normal form: classes, points, enumeration.

A basis is a tuple of d rows; row i starts with i zeros and then a positive pivot. The index of a
lattice is the product of its pivots: the number of classes of Z^d modulo the lattice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from cim_opt.polyhedral.kernel import Point

Lattice = tuple[Point, ...]
Integers = NDArray[np.int64]


def diagonal_lattice(periods: Iterable[int]) -> Lattice:
    """The lattice of all points whose coordinate i is a multiple of periods[i]."""
    sizes = tuple(periods)
    return tuple(
        tuple(size if column == row else 0 for column in range(len(sizes)))
        for row, size in enumerate(sizes)
    )


def hermite(basis: Sequence[Sequence[int]]) -> Lattice:
    """The Hermite normal form of a basis. Raises ValueError when its rows are dependent."""
    rows = [list(row) for row in basis]
    for column in range(len(rows)):
        while True:
            left = [row for row in rows[column:] if row[column]]
            if not left:
                raise ValueError(f"{basis} is no basis of a lattice")
            least = min(left, key=lambda row: abs(row[column]))
            rows.remove(least)
            rows.insert(column, least)
            if len(left) == 1:
                break
            for number in range(column + 1, len(rows)):
                rows[number] = _less(rows[number], least, rows[number][column] // least[column])
        if rows[column][column] < 0:
            rows[column] = [-value for value in rows[column]]
        for number in range(column):
            turns = rows[number][column] // rows[column][column]
            rows[number] = _less(rows[number], rows[column], turns)
    return tuple(map(tuple, rows))


def _less(row: list[int], by: list[int], times: int) -> list[int]:
    return [a - times * b for a, b in zip(row, by, strict=True)]


def pivots(lattice: Lattice) -> Point:
    """The diagonal of a basis in Hermite normal form. Raises ValueError when it is none."""
    rank = len(lattice)
    for number, row in enumerate(lattice):
        if len(row) != rank or any(row[:number]) or row[number] < 1:
            raise ValueError(f"{lattice} is no lattice basis in Hermite normal form")
    return tuple(row[number] for number, row in enumerate(lattice))


def index(lattice: Lattice) -> int:
    """Number of classes of Z^d modulo the lattice."""
    return prod(pivots(lattice))


def residues(lattice: Lattice, points: Integers) -> Integers:
    """`points` (n x d) reduced modulo the lattice: equal rows are of the same class."""
    reduced = np.array(points, dtype=np.int64)
    for number, row in enumerate(lattice):
        turns = reduced[..., number] // row[number]
        reduced -= turns[..., None] * np.array(row, dtype=np.int64)
    return reduced


def classes(lattice: Lattice, points: Integers) -> Integers:
    """The class number of each of `points` (n x d), from 0 to index - 1."""
    reduced = residues(lattice, points)
    number = np.zeros(reduced.shape[:-1], dtype=np.int64)
    for axis, size in enumerate(pivots(lattice)):
        number = number * size + reduced[..., axis]
    return number


def representatives(lattice: Lattice) -> tuple[Point, ...]:
    """One point of each class, in the order of class numbers."""
    return tuple(product(*map(range, pivots(lattice))))


def contains(lattice: Lattice, point: Sequence[int]) -> bool:
    """Whether `point` lies in the lattice."""
    return not residues(lattice, np.array([point], dtype=np.int64)).any()


def lattices(rank: int, size: int) -> Iterator[Lattice]:
    """All lattices of Z^rank with index `size`, each once, diagonal ones first."""
    found = list(_bases(rank, size))
    return iter(sorted(found, key=lambda basis: sum(map(bool, sum(basis, ())))))


def _bases(rank: int, size: int) -> Iterator[Lattice]:
    for diagonal in _factorisations(rank, size):
        # An entry above a pivot is reduced by that pivot's row.
        above = [range(diagonal[column]) for row in range(rank) for column in range(row + 1, rank)]
        for entries in product(*above):
            values = iter(entries)
            yield tuple(
                (0,) * row + (diagonal[row],) + tuple(next(values) for _ in range(row + 1, rank))
                for row in range(rank)
            )


def _factorisations(rank: int, size: int) -> Iterator[Point]:
    if rank == 0:
        if size == 1:
            yield ()
        return
    for first in range(1, size + 1):
        if size % first == 0:
            for rest in _factorisations(rank - 1, size // first):
                yield (first, *rest)


def touching(
    lattice: Lattice, offsets: Sequence[Point], shape: Sequence[int]
) -> tuple[Point, NDArray[np.bool_]]:
    """Where a step would meet the box of `shape`: (low, mask), mask over all of Z^d, not only L.

    mask[p - low] says whether p + offset lies in the box for some offset; outside the mask it
    never does.
    """
    low = tuple(-max(axis) for axis in zip(*offsets, strict=True))
    high = tuple(
        size - min(axis) for size, axis in zip(shape, zip(*offsets, strict=True), strict=True)
    )
    mask = np.zeros(tuple(b - a for a, b in zip(low, high, strict=True)), dtype=np.bool_)
    for offset in set(offsets):
        begin = tuple(-o - a for o, a in zip(offset, low, strict=True))
        mask[tuple(slice(b, b + size) for b, size in zip(begin, shape, strict=True))] = True
    return low, mask


def counts_by_class(
    lattice: Lattice, offsets: Sequence[Point], shape: Sequence[int]
) -> NDArray[np.int64]:
    """For each class c: how many p in L + c have p + offset in the box for some offset."""
    if not lattice:
        return np.ones(1, dtype=np.int64)
    low, mask = touching(lattice, offsets, shape)
    numbers = classes(lattice, np.argwhere(mask) + np.array(low, dtype=np.int64))
    return np.bincount(numbers, minlength=index(lattice))


def count_touching(lattice: Lattice, offsets: Sequence[Point], shape: Sequence[int]) -> int:
    """How many points l of the lattice have l + offset in the box of `shape` for some offset."""
    separate = _axes_of_product(lattice, offsets)
    if separate is None:
        return int(counts_by_class(lattice, offsets, shape)[0])
    return prod(
        count_multiples(row[axis], values, size)
        for axis, (row, values, size) in enumerate(zip(lattice, separate, shape, strict=True))
    )


def count_multiples(period: int, offsets: Iterable[int], size: int) -> int:
    """How many multiples m of `period` have m + offset in 0 .. size - 1 for some offset."""
    count, done = 0, None
    # Multiples that serve an offset are an interval; going down the offsets they move up.
    for offset in sorted(offsets, reverse=True):
        first = -(offset // period)  # ceil(-offset / period)
        last = (size - 1 - offset) // period
        first = first if done is None else max(first, done + 1)
        if last >= first:
            count += last - first + 1
            done = last
    return count


def _axes_of_product(
    lattice: Lattice, offsets: Sequence[Point]
) -> tuple[frozenset[int], ...] | None:
    """The factors of the offsets when they are a product and the lattice is diagonal."""
    if any(value for row, values in enumerate(lattice) for value in values[row + 1 :]):
        return None
    factors = tuple(frozenset(axis) for axis in zip(*offsets, strict=True))
    return factors if prod(map(len, factors)) == len(set(offsets)) else None
