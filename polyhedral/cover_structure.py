"""What a code generator asks of a cover: how outputs and inputs of neighbouring steps lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cim_opt.polyhedral import lattice as lattices
from cim_opt.polyhedral.cover import Cover, Image
from cim_opt.polyhedral.kernel import Point
from cim_opt.polyhedral.lattice import Lattice

Period = tuple[tuple[Point, ...], Point, int]
"""Output offsets F (oc, o...), a lattice vector v (o...) and the number of turns q."""


def accumulations(cover: Cover) -> float:
    """How many images add to an output on average, where the outputs have no border."""
    columns = [column for image in cover.images for column in image.columns]
    channels = {column[0] for column in columns}
    return len(columns) / (lattices.index(cover.lattice) * len(channels))


def weight_images(cover: Cover) -> int:
    """Number of different weights: images that differ by position only have the same."""
    return len({weights_of(image) for image in cover.images})


def weights_of(image: Image) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """What the weights of an image depend on: its columns' channels and its taps."""
    return tuple(column[0] for column in image.columns), image.taps


def diagonal(cover: Cover) -> bool:
    """Whether the lattice is a product of multiples along the axes."""
    return diagonal_basis(cover.lattice)


def diagonal_basis(lattice: Lattice) -> bool:
    """Whether a basis in Hermite normal form is diagonal."""
    return not any(value for row, values in enumerate(lattice) for value in values[row + 1 :])


def output_period(cover: Cover) -> Period | None:
    """(F, v, q) when the images' outputs together are F, F + v .. F + (q - 1) v, else None.

    F has one output of every channel and class of the lattice, so every output is l + f for one
    lattice point l and one f of F; v is a lattice vector, lexicographically positive. With
    outputs laid out by l along v and then by F, a step adds to one run. For q = 1, v is the first
    row of the lattice. F is in the order in which the images have their columns.
    """
    every = tuple(dict.fromkeys(column for image in cover.images for column in image.columns))
    keys = dict(zip(every, _keys(cover.lattice, every), strict=True))
    size = len({column[0] for column in every}) * lattices.index(cover.lattice)
    if len(set(keys.values())) != size or len(every) % size:
        return None
    turns = len(every) // size
    if turns == 1:
        return every, cover.lattice[0] if cover.lattice else (), 1
    # v joins two outputs of the first one's class.
    alike = [column for column in every if keys[column] == keys[every[0]]]
    for vector in sorted({_positive(_difference(alike[0], other)) for other in alike[1:]}):
        first = _first_turn(every, vector, turns)
        if first is not None and len({keys[column] for column in first}) == size:
            return first, vector, turns
    return None


def _keys(lattice: Lattice, columns: Sequence[Point]) -> list[tuple[int, int]]:
    points = np.array(columns, dtype=np.int64)
    kinds = lattices.classes(lattice, points[:, 1:])
    return list(zip(points[:, 0].tolist(), kinds.tolist(), strict=True))


def _difference(one: Point, other: Point) -> Point:
    return tuple(b - a for a, b in zip(one[1:], other[1:], strict=True))


def _positive(vector: Point) -> Point:
    leading = next((value for value in vector if value), 1)
    return vector if leading > 0 else tuple(-value for value in vector)


def _first_turn(every: Sequence[Point], vector: Point, turns: int) -> tuple[Point, ...] | None:
    present = set(every)
    first = tuple(column for column in every if along(column, vector, -1) not in present)
    whole = len(first) * turns == len(every) and all(
        along(column, vector, turn) in present for column in first for turn in range(turns)
    )
    return first if whole else None


def along(column: Point, vector: Point, turn: int) -> Point:
    """The output offset moved by `turn` times the vector."""
    return (column[0], *(a + turn * b for a, b in zip(column[1:], vector, strict=True)))


def arranged(cover: Cover) -> Cover:
    """The cover with its columns turn by turn, each in the order of F, if it has a period."""
    period = output_period(cover)
    if period is None:
        return cover
    first, vector, turns = period
    numbers = {
        along(column, vector, turn): (turn, number)
        for number, column in enumerate(first)
        for turn in range(turns)
    }
    return replace(cover, images=tuple(_sorted(image, numbers) for image in cover.images))


def _sorted(image: Image, numbers: dict[Point, tuple[int, int]]) -> Image:
    order = sorted(range(len(image.columns)), key=lambda c: numbers[image.columns[c]])
    return Image(
        image.rows,
        tuple(image.columns[c] for c in order),
        tuple(tuple(row[c] for c in order) for row in image.taps),
    )


def strip_axes(image: Image) -> tuple[int, ...]:
    """Axes along which the rows are one evenly spaced interval times a fixed cross-section."""
    rank = len(image.rows[0]) - 1
    return tuple(axis for axis in range(rank) if _is_strip(image.rows, axis + 1))


def strip_axis(image: Image, cover: Cover) -> int | None:
    """The axis of `strip_axes` along which neighbouring steps share most inputs, or None.

    That is the one with the longest interval for the lattice's pivot along it.
    """
    axes = strip_axes(image)
    sizes = lattices.pivots(cover.lattice)
    return max(axes, key=lambda axis: (_length(image, axis) / sizes[axis], -axis), default=None)


def _length(image: Image, axis: int) -> int:
    return len({row[axis + 1] for row in image.rows})


def _is_strip(rows: Sequence[Point], coordinate: int) -> bool:
    values = sorted({row[coordinate] for row in rows})
    if len({b - a for a, b in pairwise(values)}) > 1:
        return False
    sections = {_without(row, coordinate) for row in rows}
    return len(values) * len(sections) == len(set(rows))


def _without(point: Iterable[int], coordinate: int) -> Point:
    values = tuple(point)
    return values[:coordinate] + values[coordinate + 1 :]
