"""Where the steps of a cover lie, and where their sums go.

A cover repeats its images over a lattice. For code we need more regularity: positions as a box of
counters, one image at a time, and outputs in an order in which each step's columns are neighbours.

Two forms are known. In a *partition* the columns, repeated over the positions, meet every output
once; each image is one more round of the same sums (blocks of outputs, with rows cut into images;
im2col; matrix products). In *overlapping runs* there is one image, whose columns are q blocks of
outputs one after another along an axis, and neighbouring steps share q - 1 of them: the outputs lie
along that axis, and q passes with every q-th step meet each of them q times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from cim_opt.polyhedral import lattice as lattices
from cim_opt.polyhedral.cover import Cover, Image
from cim_opt.polyhedral.kernel import MacKernel, Point


@dataclass(frozen=True, slots=True)
class Placed:
    """One image with its columns in the order of the sums; None where it has no such column.

    `rows` are input offsets, `taps[row][column]` as in an image, -1 for a column that is None.
    """

    rows: tuple[Point, ...]
    taps: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The steps of a cover as counters.

    Position of a step: moves[m] + sum over axes of periods[a] * i_a, 0 <= i_a < counts[a]. `order`
    has the axes, the outermost counter first; the moves come innermost in a partition, and just
    outside `line` in overlapping runs. `columns` are the output offsets of a step in the order of
    its sums. `overlap` is q: 1 for a partition.
    """

    images: tuple[Placed, ...]
    columns: tuple[Point, ...]
    periods: Point
    counts: Point
    moves: tuple[Point, ...]
    line: int | None
    overlap: int

    @property
    def units(self) -> int:
        """Steps of one image and pass."""
        return prod(self.counts) * len(self.moves)


def place(cover: Cover, kernel: MacKernel) -> Placement | None:
    """The cover in one of the known forms for this kernel's outputs, else None.

    The kernel has at least one axis, and all images take the same channels.
    """
    periods = _diagonal(cover)
    cosets = _cosets(cover, periods)
    families = _families(cover.images, kernel)
    shifts = [_shifted(cosets, moves, periods) for _, moves in families]
    if any(shift != shifts[0] for shift in shifts):
        return None
    images = [image for image, _ in families]
    columns = tuple(dict.fromkeys(column for image in images for column in image.columns))
    if _is_partition(columns, shifts[0], periods):
        moves, counts = _ranges(kernel, columns, sorted(shifts[0]), periods)
        placed = tuple(_placed(image, columns) for image in images)
        return Placement(placed, columns, periods, counts, moves, None, 1)
    return _overlapping(images[0], kernel, periods, shifts[0]) if len(images) == 1 else None


def _diagonal(cover: Cover) -> Point:
    """The smallest multiples of the axes' unit vectors that lie in the lattice."""
    rank = len(cover.lattice)
    periods: list[int] = []
    for axis in range(rank):
        unit = tuple(int(position == axis) for position in range(rank))
        size, point = 1, unit
        while not lattices.contains(cover.lattice, point):
            size += 1
            point = tuple(size * value for value in unit)
        periods.append(size)
    return tuple(periods)


def _cosets(cover: Cover, periods: Point) -> set[Point]:
    """The points of the lattice within one period of each axis."""
    return {
        point for point in product(*map(range, periods)) if lattices.contains(cover.lattice, point)
    }


def _families(images: tuple[Image, ...], kernel: MacKernel) -> list[tuple[Image, list[Point]]]:
    """Images that differ only in where they lie: the first of each kind, and all moves from it."""
    known: dict[object, tuple[Image, list[Point]]] = {}
    shared = Counter(image.taps for image in images)
    for image in images:
        origin = image.columns[0][1:]
        key: object = image.taps
        if shared[image.taps] > 1:
            columns = tuple(_relative(image.columns, origin, (1,) * kernel.rank))
            rows = tuple(_relative(image.rows, origin, kernel.strides))
            key = columns, rows, image.taps
        first, moves = known.setdefault(key, (image, []))
        start = first.columns[0][1:]
        moves.append(tuple(a - b for a, b in zip(origin, start, strict=True)))
    return list(known.values())


def _relative(points: tuple[Point, ...], origin: Point, scale: Point) -> list[Point]:
    return [
        (channel, *(a - s * b for a, b, s in zip(where, origin, scale, strict=True)))
        for channel, *where in points
    ]


def _shifted(cosets: set[Point], moves: list[Point], periods: Point) -> frozenset[Point]:
    """Cosets moved by each move, within one period."""
    return frozenset(
        tuple((a + b) % period for a, b, period in zip(coset, move, periods, strict=True))
        for coset in cosets
        for move in moves
    )


def _is_partition(columns: tuple[Point, ...], moves: frozenset[Point], periods: Point) -> bool:
    channels = {column[0] for column in columns}
    if len(columns) * len(moves) != len(channels) * prod(periods):
        return False
    met = {
        (channel, *((a + b) % p for a, b, p in zip(where, move, periods, strict=True)))
        for channel, *where in columns
        for move in moves
    }
    return len(met) == len(columns) * len(moves)


def _ranges(
    kernel: MacKernel, columns: tuple[Point, ...], moves: list[Point], periods: Point
) -> tuple[tuple[Point, ...], Point]:
    """Moves from which the counters start at the first step that meets an output, and counts."""
    started: list[Point] = []
    counts = [0] * kernel.rank
    for move in moves:
        start: list[int] = []
        for axis, period in enumerate(periods):
            offsets = [column[1 + axis] + move[axis] for column in columns]
            low = -(max(offsets) // period)
            high = (kernel.axes[axis].outputs - 1 - min(offsets)) // period
            counts[axis] = max(counts[axis], high - low + 1)
            start.append(move[axis] + period * low)
        started.append(tuple(start))
    return tuple(started), tuple(counts)


def _placed(image: Image, columns: tuple[Point, ...]) -> Placed:
    if image.columns == columns:
        return Placed(image.rows, image.taps)
    where = {column: number for number, column in enumerate(image.columns)}
    numbers = [where.get(column) for column in columns]
    taps = tuple(
        tuple(-1 if number is None else row[number] for number in numbers) for row in image.taps
    )
    return Placed(image.rows, taps)


def _overlapping(
    image: Image, kernel: MacKernel, periods: Point, cosets: frozenset[Point]
) -> Placement | None:
    """The image as q blocks of outputs along an axis, if its columns are that."""
    for axis, period in enumerate(periods):
        for step in range(period, period * len(image.columns), period):
            found = _runs(image, axis, step)
            if found is None:
                continue
            blocks, columns = found
            longer = tuple(step if a == axis else p for a, p in enumerate(periods))
            moves = frozenset(
                tuple(m + (k * period if a == axis else 0) for a, m in enumerate(coset))
                for coset in cosets
                for k in range(step // period)
            )
            block = columns[: len(columns) // blocks]
            if not _is_partition(block, moves, longer):
                continue
            started, counts = _ranges(kernel, columns, sorted(moves), longer)
            rounded = tuple(-(-n // blocks) if a == axis else n for a, n in enumerate(counts))
            placed = _placed(image, columns)
            return Placement((placed,), columns, longer, rounded, started, axis, blocks)
    return None


def _runs(image: Image, axis: int, step: int) -> tuple[int, tuple[Point, ...]] | None:
    """How many blocks the columns are, `step` apart along the axis, and the columns in order."""

    def moved(point: Point, by: int) -> Point:
        return tuple(v + (by if position == axis + 1 else 0) for position, v in enumerate(point))

    columns = set(image.columns)
    block = [point for point in image.columns if moved(point, -step) not in columns]
    if len(block) == len(columns) or len(columns) % len(block):
        return None
    blocks = len(columns) // len(block)
    ordered = tuple(moved(point, k * step) for k in range(blocks) for point in block)
    return (blocks, ordered) if set(ordered) == columns else None


def windowed(placement: Placement, axis: int, positions: int) -> Placement | None:
    """The placement with lines along `axis` of whole sets of `positions` steps, or None.

    Neighbouring steps share a window of inputs when the rows of every image are a run of inputs
    along the axis times the same other coordinates; the rows are put in the order of such a window.
    """
    if placement.line is not None or len(placement.moves) > 1:
        return None
    sections = {_section(image, axis) for image in placement.images}
    if len(sections) > 1 or None in sections:
        return None
    images = tuple(_in_order(image, axis) for image in placement.images)
    counts = tuple(
        -(-count // positions) * positions if a == axis else count
        for a, count in enumerate(placement.counts)
    )
    return replace(placement, images=images, counts=counts)


def section(placement: Placement, axis: int) -> int:
    """Inputs of a window at one place of the axis, for a placement that is windowed along it."""
    found = _section(placement.images[0], axis)
    assert found is not None
    return len(found)


def _section(image: Placed, axis: int) -> frozenset[Point] | None:
    """The other coordinates of the rows when they are a run along the axis times these."""
    along = {row[1 + axis] for row in image.rows}
    others = frozenset(_without(row, axis) for row in image.rows)
    if len(along) != max(along) - min(along) + 1 or len(along) * len(others) != len(image.rows):
        return None
    return others


def _in_order(image: Placed, axis: int) -> Placed:
    rows = range(len(image.rows))
    order = sorted(
        rows, key=lambda row: (image.rows[row][1 + axis], _without(image.rows[row], axis))
    )
    return Placed(tuple(image.rows[row] for row in order), tuple(image.taps[row] for row in order))


def _without(row: Point, axis: int) -> Point:
    return (*row[: 1 + axis], *row[2 + axis :])
