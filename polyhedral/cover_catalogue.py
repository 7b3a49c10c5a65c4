"""The table of solved covers: which problems it holds and how an entry is found.

Problems of one axis are not among them: for 2 to 15 taps, strides 1 and 2 and up to 8 outputs the
solver finds nothing with fewer inputs than the blocks, combs and chunks of `cover_line`.

`cim-covers --regenerate` makes the table anew; compiling only reads it (`cover_cache`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from cim_opt.polyhedral.cover_search import (
    Pair,
    Problem,
    box,
    essentially_different,
    find,
    windows,
)
from cim_opt.polyhedral.kernel import Point
from cim_opt.polyhedral.lattice import Lattice

TABLE = Path(__file__).parent / "data" / "covers.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """A solved cover: pairs (B, E) over a lattice, for taps and strides of axes undilated."""

    taps: Point
    strides: Point
    lattice: Lattice
    images: tuple[Pair, ...]

    @property
    def outputs(self) -> int:
        """Columns that the widest image takes for one output channel."""
        return max(len(outputs) for outputs, _ in self.images)

    @property
    def inputs(self) -> int:
        """Rows that the tallest image takes for one input channel."""
        return max(len(inputs) for _, inputs in self.images)


def problems() -> list[Problem]:
    """The problems that the table has covers for, most wanted first."""
    squares = [(taps, stride) for stride in (1, 2) for taps in (7, 5, 3, 9, 11, 13)]
    common = [_square(taps, stride, 2, rows, 8) for taps, stride in squares for rows in (32, 64)]
    cubes = [_square(3, stride, 3, rows, 8) for stride in (1, 2) for rows in (32, 64)]
    others = [
        _square(taps, 1, 2, rows, columns)
        for taps in (3, 5, 7)
        for columns in (4, 16)
        for rows in (32, 64)
    ]
    # A few channels of a group share the rows or the columns of the macro.
    channels = [
        _square(3, stride, 2, rows, columns)
        for stride in (1, 2)
        for rows, columns in ((16, 4), (16, 8), (8, 2), (32, 2), (128, 8), (128, 16))
    ]
    return common + cubes + others + channels


def _square(taps: int, stride: int, rank: int, rows: int, columns: int) -> Problem:
    return Problem((taps,) * rank, (stride,) * rank, rows, columns)


def solve_all(seconds: float, say: Callable[[str], None]) -> list[Entry]:
    """Entries for all problems, each found within about `seconds`."""
    found: list[Entry] = []
    for problem in problems():
        found += [entry for entry in solve(problem, seconds, say) if entry not in found]
    return found


def solve(
    problem: Problem, seconds: float, say: Callable[[str], None] = lambda text: None
) -> list[Entry]:
    """Covers of one image, those with the largest lattice index first, within about `seconds`.

    Seconds are of processor time, so that a busy machine finds as much. For the largest index
    found, and for the largest at which the outputs are a box of a multiple of the index, the
    first few covers.
    """
    end = time.process_time() + seconds
    least = least_useful(problem)
    free = boxed = False
    found: list[Entry] = []
    for size in range(problem.most, least - 1, -1):
        say(f"{describe(problem)}: index {size}")
        if not boxed:
            new = list(_search(problem, size, _boxes(problem, size), end, fixed=True))
            boxed = bool(new)
            found += new
        if not free and not boxed:
            new = list(_search(problem, size, _free(problem), end, fixed=False))
            free = bool(new)
            found += new
        if boxed or time.process_time() > end:
            break
    return found


def describe(problem: Problem) -> str:
    """The problem in a few words."""
    taps, strides = ("x".join(map(str, values)) for values in (problem.taps, problem.strides))
    return f"taps {taps}, stride {strides}, {problem.rows} rows, {problem.columns} columns"


def least_useful(problem: Problem) -> int:
    """The smallest index at which one image beats or ties the steps of the best rectangle."""
    return max(1, int(-(-rectangle_rate(problem) // 1)))


def rectangle_rate(problem: Problem) -> float:
    """Outputs a step of the best block, cut into images of whole rows."""
    best = 0.0
    for block in windows(len(problem.taps), 1, problem.columns, problem.columns):
        sides = zip(block, problem.taps, problem.strides, strict=True)
        inputs = prod((size - 1) * stride + taps for size, taps, stride in sides)
        best = max(best, prod(block) / -(-inputs // problem.rows))
    return best


def _boxes(problem: Problem, size: int) -> list[Point]:
    rank = len(problem.taps)
    shapes: list[Point] = []
    for count in range(size, problem.columns + 1, size):
        shapes += windows(rank, count, count, problem.columns)
    return shapes


def _free(problem: Problem) -> list[Point]:
    most = 2 * problem.columns if len(problem.taps) < 3 else 2 * problem.columns + 2
    least = min(problem.columns, most)
    shapes = windows(len(problem.taps), least, most, problem.columns)
    return [shape for shape in shapes if prod(shape) % 2 == 0][:14]


def _search(
    problem: Problem, size: int, shapes: Sequence[Point], end: float, *, fixed: bool
) -> Iterator[Entry]:
    """At most one cover for each lattice, at most three in all."""
    count = 0
    for lattice in essentially_different(problem, size):
        for shape in shapes:
            left = end - time.process_time()
            if left <= 0 or count >= 3:
                return
            pairs = find(problem, lattice, box(shape), fixed=fixed, seconds=min(2.0, left))
            if pairs is not None:
                yield Entry(problem.taps, problem.strides, lattice, pairs)
                count += 1
                break


# -- The file -------------------------------------------------------------------------------------


def write(entries: Iterable[Entry], path: Path | None = None) -> None:
    """Writes the table, or another file, one entry a line."""
    rows = ",\n".join(json.dumps(asdict(entry), separators=(",", ":")) for entry in entries)
    (path or TABLE).write_text(f'{{"made_by":"cim-covers --regenerate","covers":[\n{rows}\n]}}\n')


def read(path: Path = TABLE) -> list[Entry]:
    """The entries of the table at `path`."""
    return [_entry(row) for row in json.loads(path.read_text())["covers"]]


@cache
def table() -> tuple[Entry, ...]:
    """The entries of the table that comes with the package."""
    return tuple(read())


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        taps=tuple(row["taps"]),
        strides=tuple(row["strides"]),
        lattice=tuple(map(tuple, row["lattice"])),
        images=tuple(
            (tuple(map(tuple, outputs)), tuple(map(tuple, inputs)))
            for outputs, inputs in row["images"]
        ),
    )
