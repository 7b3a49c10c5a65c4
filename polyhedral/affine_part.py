"""What a basis does to the loops of one axis: its rows, its columns, and which cells its times use.

The loops of different axes share no skewed vector, so a schedule of a kernel is one `Part` an
axis. At one time of each axis the cells in use are the product of the axes' cells, which is why
steps can be counted exactly without looking at the iterations of the whole kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cim_opt.polyhedral.affine_basis import Basis, Role, coordinates
from cim_opt.polyhedral.coalesce import mixed_radix
from cim_opt.polyhedral.nest import Factors

Integers = NDArray[np.int64]
Cells = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
"""[row, column]: whether a multiply-accumulate is done there."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some loops, their levels, and a basis over these levels."""

    extents: tuple[int, ...]
    factors: tuple[Factors, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class Measure:
    """What a part's points look like after the change of coordinates.

    `points` are the levels of all iterations [point, level], `values` their coordinates
    [point, vector] shifted to begin at 0; `lows` is what was subtracted, `sizes` the box of
    `values`. `rows` and `columns` count the box of the coordinates that become one; `row`,
    `column` and `time` number every point's place, times by the box of time coordinates.
    """

    points: Integers
    values: Integers
    lows: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: int
    columns: int
    row: Integers
    column: Integers
    time: Integers
    times: int

    @property
    def box_times(self) -> int:
        """Values of the box of time coordinates, used or not."""
        total = int(np.prod(self.sizes, dtype=np.int64))
        return total // (self.rows * self.columns)


@lru_cache(maxsize=256)
def points_of(extents: tuple[int, ...], factors: tuple[Factors, ...]) -> Integers:
    """The levels [point, level] of all iterations of these loops, in order."""
    loops = np.indices(extents).reshape(len(extents), -1)
    levels: list[Integers] = []
    for loop, sizes in zip(loops, factors, strict=True):
        digits: list[Integers] = []
        rest = loop
        for size in reversed(sizes[1:]):
            digits.append(rest % size)
            rest = rest // size
        levels += [rest, *reversed(digits)]
    return np.array(levels, dtype=np.int64).T


@lru_cache(maxsize=16384)
def measure(part: Part) -> Measure:
    """Applies the basis of a part to its iterations."""
    points = points_of(part.extents, part.factors)
    matrix = coordinates(tuple(vector.entries for vector in part.basis))
    values = points @ np.array(matrix, dtype=np.int64).reshape(-1, points.shape[1]).T
    lows = values.min(axis=0, initial=0)
    values = values - lows
    sizes = tuple(int(size) + 1 for size in values.max(axis=0, initial=0))
    numbers: dict[Role, Integers] = {}
    counts: dict[Role, int] = {}
    for role in ("row", "column", "time"):
        chosen = [i for i, vector in enumerate(part.basis) if vector.role == role]
        part_sizes = [sizes[i] for i in chosen]
        numbers[role] = mixed_radix(values[:, chosen], part_sizes)
        counts[role] = int(np.prod(part_sizes, dtype=np.int64))
    return Measure(
        points,
        values,
        tuple(map(int, lows)),
        sizes,
        counts["row"],
        counts["column"],
        numbers["row"],
        numbers["column"],
        numbers["time"],
        len(np.unique(numbers["time"])),
    )


@dataclass(frozen=True, slots=True)
class Pattern:
    """Cells that some times of a part use alike, and how many times do."""

    cells: Cells
    count: int


def patterns(time: Integers, found: Measure) -> tuple[Pattern, ...]:
    """The patterns of cells that the points use when `time` says which belong together."""
    _, index = np.unique(time, return_inverse=True)
    used = np.zeros((int(index.max()) + 1, found.rows * found.columns), dtype=np.bool_)
    used[index, found.row * found.columns + found.column] = True
    packed = np.packbits(used, axis=1)
    keys = packed.view([("", packed.dtype, packed.shape[1])]).ravel()
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return tuple(
        Pattern(used[i].reshape(found.rows, found.columns), int(count))
        for i, count in zip(first, counts, strict=True)
    )


def collapse(used: tuple[Pattern, ...], axis: int) -> tuple[Pattern, ...]:
    """The patterns with all rows (axis 0) or all columns (axis 1) taken for one."""
    counts: dict[bytes, tuple[Cells, int]] = {}
    for pattern in used:
        line: Cells = np.logical_or.reduce(pattern.cells, axis=axis, keepdims=True)
        known = counts.get(line.tobytes(), (line, 0))
        counts[line.tobytes()] = (line, known[1] + pattern.count)
    return tuple(Pattern(cells, count) for cells, count in counts.values())


@lru_cache(maxsize=8192)
def finite_patterns(part: Part) -> tuple[Pattern, ...]:
    """The patterns of all times at which the part has an iteration."""
    found = measure(part)
    return patterns(found.time, found)


# -- the unbounded axis --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Period:
    """How an axis repeats: every `spacing` outputs the schedule does the same.

    For the points of one period, `keep` says which they are, `time` numbers what has to be a step
    of its own, and `shift` counts the periods by which each is moved to get there: its output is
    then output - spacing * shift, for its step as the origin.
    """

    spacing: int
    keep: Integers
    time: Integers
    shift: Integers


@lru_cache(maxsize=8192)
def period(part: Part) -> Period:
    """The period of an axis part, whose first loop is the outputs.

    It is what one step of the outermost level of outputs skips when that changes nothing but the
    time, else the whole axis.
    """
    found = measure(part)
    count = len(found.points)
    outer = found.points[:, 0]
    matrix = coordinates(tuple(vector.entries for vector in part.basis))
    moved = [row[0] for row in matrix]
    roles = [vector.role for vector in part.basis]
    fixed = all(not move or role == "time" for move, role in zip(moved, roles, strict=True))
    if not fixed or not any(moved):
        everything = np.arange(count)
        return Period(part.extents[0], everything, found.time, np.zeros(count, dtype=np.int64))
    inner = int(np.prod(part.factors[0][1:], dtype=np.int64))
    keep = np.flatnonzero(outer == 0)
    lead = next(i for i, move in enumerate(moved) if move)
    shift = found.values[keep, lead] // moved[lead]
    values = found.values[keep] - shift[:, None] * np.array(moved, dtype=np.int64)
    chosen = [i for i, role in enumerate(roles) if role == "time"]
    times = values[:, chosen] - values[:, chosen].min(axis=0)
    sizes = [int(size) + 1 for size in times.max(axis=0)]
    return Period(inner, keep, mixed_radix(times, sizes), shift)


@lru_cache(maxsize=8192)
def takes_blocks(part: Part) -> bool:
    """Whether every step of an unbounded axis has one of several equal sets of outputs.

    Equal when moved along the axis; two different ones have no output in common.
    """
    repeat = period(part)
    outputs = np.indices(part.extents).reshape(2, -1)[0, repeat.keep]
    outputs = outputs - repeat.spacing * repeat.shift
    pairs = np.unique(np.column_stack((repeat.time, outputs)), axis=0)
    sets: dict[int, set[int]] = {}
    for step, output in pairs.tolist():
        sets.setdefault(step, set()).add(output)
    # Along the axis every set comes again, moved by whole periods.
    owner: dict[int, frozenset[int]] = {}
    forms = {tuple(sorted(output - min(kept) for output in kept)) for kept in sets.values()}
    if len(forms) > 1:
        return False
    for kept in sets.values():
        classes = frozenset(output % repeat.spacing for output in kept)
        if len(classes) < len(kept):
            return False
        if any(owner.setdefault(output, classes) != classes for output in classes):
            return False
    return True


@lru_cache(maxsize=8192)
def periodic_patterns(part: Part) -> tuple[Pattern, ...]:
    """The patterns of the steps of one period, with the cells that an unbounded axis uses."""
    found, repeat = measure(part), period(part)
    kept = Measure(
        found.points[repeat.keep],
        found.values[repeat.keep],
        found.lows,
        found.sizes,
        found.rows,
        found.columns,
        found.row[repeat.keep],
        found.column[repeat.keep],
        found.time[repeat.keep],
        0,
    )
    return patterns(repeat.time, kept)


@dataclass(frozen=True, slots=True)
class Use:
    """The patterns of a part, and what bounds on steps need of them.

    `by_row` and `by_column` are the patterns with columns or rows collapsed. `row_uses` and
    `column_uses` count the lines used at all times together, `least_rows` and `least_columns`
    those that every time uses at least.
    """

    patterns: tuple[Pattern, ...]
    by_row: tuple[Pattern, ...]
    by_column: tuple[Pattern, ...]
    times: int
    rows: int
    columns: int
    row_uses: int
    column_uses: int
    least_rows: int
    least_columns: int


@lru_cache(maxsize=8192)
def finite_use(part: Part) -> Use:
    """Use at all times at which the part has an iteration."""
    return _use(finite_patterns(part))


@lru_cache(maxsize=8192)
def periodic_use(part: Part) -> Use:
    """Use in the steps of one period of an unbounded axis."""
    return _use(periodic_patterns(part))


def _use(used: tuple[Pattern, ...]) -> Use:
    by_row, by_column = collapse(used, 1), collapse(used, 0)
    row_counts = [int(pattern.cells.sum()) for pattern in by_row]
    column_counts = [int(pattern.cells.sum()) for pattern in by_column]
    rows, columns = used[0].cells.shape
    return Use(
        patterns=used,
        by_row=by_row,
        by_column=by_column,
        times=sum(pattern.count for pattern in used),
        rows=rows,
        columns=columns,
        row_uses=sum(p.count * n for p, n in zip(by_row, row_counts, strict=True)),
        column_uses=sum(p.count * n for p, n in zip(by_column, column_counts, strict=True)),
        least_rows=min(row_counts),
        least_columns=min(column_counts),
    )
