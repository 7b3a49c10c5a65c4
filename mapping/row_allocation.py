"""D rows for vertical objects: intervals of time get intervals of rows."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lifetime:
    """An object of `rows` rows that is needed from `start` to `end`, both included."""

    start: int
    end: int
    rows: int


class RowsExceeded(Exception):
    """More rows are needed at one time than there are: `needed` at time `time`."""

    def __init__(self, needed: int, time: int):
        super().__init__(f"{needed} rows at time {time}")
        self.needed = needed
        self.time = time


def allocate(lifetimes: Sequence[Lifetime], capacity: int) -> list[int]:
    """First row of every object, so that objects alive at one time share no row.

    Objects are placed in the order of their starts, each in the lowest gap that holds it. Raises
    RowsExceeded when one finds no gap below `capacity`.
    """
    rows = [0] * len(lifetimes)
    placed: list[int] = []
    for index in sorted(range(len(lifetimes)), key=lambda i: (lifetimes[i].start, i)):
        life = lifetimes[index]
        placed = [i for i in placed if lifetimes[i].end >= life.start]
        taken = sorted((rows[i], rows[i] + lifetimes[i].rows) for i in placed)
        row = _lowest_gap(taken, life.rows)
        if row + life.rows > capacity:
            raise RowsExceeded(row + life.rows, life.start)
        rows[index] = row
        placed.append(index)
    return rows


def _lowest_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    row = 0
    for first, behind in taken:
        if row + size <= first:
            return row
        row = max(row, behind)
    return row
