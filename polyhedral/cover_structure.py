"""What a code generator asks of a cover: how outputs and inputs of neighbouring steps lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

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
    # Images for other channels often share the very object; hashing it once is enough.
    taps: dict[int, tuple[tuple[int, ...], ...]] = {id(i.taps): i.taps for i in cover.images}
    numbers = {content: number for number, content in enumerate(taps.values())}
    known = {key: numbers[content] for key, content in taps.items()}
    channels = (tuple(column[0] for column in image.columns) for image in cover.images)
    pairs = zip(channels, cover.images, strict=True)
    return len({(columns, known[id(image.taps)]) for columns, image in pairs})


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
    first = _starts(every, vector)
    return first if len(first) * turns == len(every) and _fills(every, first, vector) else None


def _starts(every: Sequence[Point], vector: Point) -> tuple[Point, ...]:
    """The outputs that are not the vector away from another one."""
    present = set(every)
    return tuple(column for column in every if along(column, vector, -1) not in present)


def _fills(every: Sequence[Point], first: Sequence[Point], vector: Point) -> bool:
    """Whether equally many outputs, one vector apart, begin at each of `first`."""
    present = set(every)
    turns = range(len(every) // len(first))
    return len(every) % len(first) == 0 and all(
        along(column, vector, turn) in present for column in first for turn in turns
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Outputs `section` + j * `vector`, j < `length`; `order` vectors make one of the lattice.

    section + j * vector for j < order are one output of every channel and class, so every output
    is l + s + j * vector for one l of the lattice, s of the section and j < order. With outputs
    laid out along the vector and then by section, a step adds to one run of length * |section|
    outputs, and the next one along the vector begins order * |section| behind.
    """

    section: tuple[Point, ...]
    vector: Point
    length: int
    order: int


def output_run(cover: Cover) -> Run | None:
    """The run that the images' outputs together are, or None.

    Every period is a run of order 1. Among several runs the one with the shortest vector counts,
    but first those of which the period's vector is a multiple.
    """
    every = tuple(dict.fromkeys(column for image in cover.images for column in image.columns))
    size = len({column[0] for column in every}) * lattices.index(cover.lattice)
    period = output_period(cover)
    away = {_positive(_difference(every[0], other)) for other in every if other[0] == every[0][0]}
    away -= {(0,) * len(cover.lattice)}
    if period is not None and period[2] > 1:
        away.add(period[1])
    elif cover.lattice:
        away.add(cover.lattice[-1])
    for vector in sorted(away, key=lambda vector: _preference(vector, period)):
        run = _run_along(cover.lattice, every, vector, size)
        if run is not None:
            return run
    return None


def _preference(vector: Point, period: Period | None) -> tuple[bool, int, Point]:
    return not _along_period(vector, period), sum(map(abs, vector)), vector


def _along_period(vector: Point, period: Period | None) -> bool:
    """Whether columns along the vector may be turn by turn too; one turn has any order."""
    return period is None or period[2] == 1 or _multiple(period[1], vector)


def _multiple(vector: Point, of: Point) -> bool:
    """Whether `vector` is a positive multiple of the vector `of`."""
    place = next(number for number, value in enumerate(of) if value)
    times = vector[place] // of[place]
    return times > 0 and vector == tuple(times * value for value in of)


def _run_along(lattice: Lattice, every: Sequence[Point], vector: Point, size: int) -> Run | None:
    order = next(
        times
        for times in count(1)
        if lattices.contains(lattice, [times * value for value in vector])
    )
    section = _starts(every, vector)
    length = len(every) // len(section)
    if len(section) * order != size or length < order or not _fills(every, section, vector):
        return None
    domain = [along(column, vector, turn) for column in section for turn in range(order)]
    if len(set(_keys(lattice, domain))) != size:
        return None
    return Run(section, vector, length, order)


def along(column: Point, vector: Point, turn: int) -> Point:
    """The output offset moved by `turn` times the vector."""
    return (column[0], *(a + turn * b for a, b in zip(column[1:], vector, strict=True)))


def arranged(cover: Cover) -> Cover:
    """The cover with its columns along its run and turn by turn of its period, if it has them."""
    run, period = output_run(cover), output_period(cover)
    if run is not None and _along_period(run.vector, period):
        return _ordered(cover, run.section, run.vector, run.length)
    if period is not None and cover.lattice:
        return _ordered(cover, *period)
    return cover


def _ordered(cover: Cover, first: Sequence[Point], vector: Point, turns: int) -> Cover:
    """Columns in the order of turns and in each turn in the order of `first`."""
    numbers = {
        along(column, vector, turn): (turn, number)
        for number, column in enumerate(first)
        for turn in range(turns)
    }
    known: dict[tuple[int, tuple[int, ...]], tuple[tuple[int, ...], ...]] = {}
    return replace(cover, images=tuple(_sorted(image, numbers, known) for image in cover.images))


def _sorted(
    image: Image,
    numbers: dict[Point, tuple[int, int]],
    known: dict[tuple[int, tuple[int, ...]], tuple[tuple[int, ...], ...]],
) -> Image:
    """The image in that order; images that shared their taps still share them."""
    old = tuple(range(len(image.columns)))
    order = tuple(sorted(old, key=lambda c: numbers[image.columns[c]]))
    if order == old:
        return image
    key = id(image.taps), order
    if key not in known:
        known[key] = tuple(tuple(row[c] for c in order) for row in image.taps)
    return Image(image.rows, tuple(image.columns[c] for c in order), known[key])


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
