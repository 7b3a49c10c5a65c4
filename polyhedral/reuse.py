"""Directions of reuse: integer vectors along which an operand's element stays the same.

An operand with access matrix A (rows: its indices, columns: the loops) is reused along b iff
A b = 0. For O[oc, ow] += I[ow + kw] * W[oc, kw] over the loops (oc, ow, kw):

    null_space(((0, 1, 1),), 3)        # ((1, 0, 0), (0, 1, -1)): oc, and ow against kw
    circuits(((0, 1, 1),), 3)          # the same two: no smaller support gives a null vector

Everything is exact integer arithmetic on tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import gcd

Row = tuple[int, ...]
Matrix = tuple[Row, ...]
"""Rows of integers, all equally long."""


@lru_cache(maxsize=4096)
def null_space(matrix: Matrix, columns: int) -> Matrix:
    """A basis of all integer vectors b of `columns` entries with matrix b = 0.

    In Hermite normal form, so the first entry of each vector that is not zero is positive.
    """
    # Row operations on the transpose, recorded beside it: rows that become zero leave the basis.
    height = len(matrix)
    work = [
        [*(row[j] for row in matrix), *(int(i == j) for i in range(columns))]
        for j in range(columns)
    ]
    rank = _echelon(work, height)
    return hermite([row[height:] for row in work[rank:]])


def directions(matrix: Matrix, extents: Sequence[int]) -> Matrix:
    """A basis of the vectors over loops of these extents along which an element stays the same.

    Loops of one iteration have no direction.
    """
    live = [loop for loop, extent in enumerate(extents) if extent > 1]
    vectors = null_space(tuple(tuple(row[loop] for loop in live) for row in matrix), len(live))
    return tuple(_spread(vector, live, len(extents)) for vector in vectors)


def hermite(rows: Sequence[Sequence[int]]) -> Matrix:
    """The Hermite normal form of the lattice that integer `rows` generate; zero rows are dropped.

    Pivots are positive, entries above a pivot lie in 0..pivot-1. Two sets of rows generate the
    same lattice iff their forms are equal.
    """
    work = [list(row) for row in rows]
    rank = _echelon(work, len(work[0]) if work else 0)
    for index in range(rank):
        pivot = next(j for j, value in enumerate(work[index]) if value)
        for above in work[:index]:
            _subtract(above, work[index], above[pivot] // work[index][pivot])
    return tuple(map(tuple, work[:rank]))


def rank(rows: Sequence[Sequence[int]]) -> int:
    """How many of the rows are linearly independent."""
    work = [list(row) for row in rows]
    return _echelon(work, len(work[0]) if work else 0)


def primitive(vector: Sequence[int]) -> Row:
    """The shortest integer vector in this direction, its first entry that is not zero positive.

    Raises ValueError for the zero vector.
    """
    divisor = gcd(*vector)
    if divisor == 0:
        raise ValueError("the zero vector has no direction")
    lead = next(value for value in vector if value)
    return tuple(value // (divisor if lead > 0 else -divisor) for value in vector)


@lru_cache(maxsize=4096)
def circuits(matrix: Matrix, columns: int, most: int = 2) -> Matrix:
    """The primitive null vectors of smallest support with at most `most` entries not zero.

    No vector's support holds another's. Ordered by size of support, then by position.
    """
    found: list[Row] = []
    supports: list[set[int]] = []
    for size in range(1, most + 1):
        for support in combinations(range(columns), size):
            if any(smaller <= set(support) for smaller in supports):
                continue
            part = null_space(tuple(tuple(row[j] for j in support) for row in matrix), size)
            if part:
                found.append(_spread(primitive(part[0]), support, columns))
                supports.append(set(support))
    return tuple(found)


def inverse(matrix: Sequence[Sequence[int]]) -> tuple[Matrix, Row]:
    """(N, d) with N[i] / d[i] row i of the inverse, each row with the least denominator d[i] > 0.

    Raises ValueError for a singular matrix.
    """
    size = len(matrix)
    work = [[*row, *(int(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    if _echelon(work, size) < size:
        raise ValueError("a singular matrix has no inverse")
    numerators: list[Row] = [()] * size
    denominators = [1] * size
    solved: list[tuple[list[int], int]] = [([], 1)] * size
    for index in reversed(range(size)):
        # Back substitution over one common denominator a row.
        common = 1
        for j in range(index + 1, size):
            common = common * solved[j][1] // gcd(common, solved[j][1])
        right = [value * common for value in work[index][size:]]
        for j in range(index + 1, size):
            factor = work[index][j] * (common // solved[j][1])
            right = [a - factor * b for a, b in zip(right, solved[j][0], strict=True)]
        bottom = common * work[index][index]
        divisor = gcd(bottom, *right) * (1 if bottom > 0 else -1)
        solved[index] = ([value // divisor for value in right], bottom // divisor)
        numerators[index], denominators[index] = tuple(solved[index][0]), solved[index][1]
    return tuple(numerators), tuple(denominators)


def _spread(part: Row, support: Sequence[int], columns: int) -> Row:
    vector = [0] * columns
    for value, index in zip(part, support, strict=True):
        vector[index] = value
    return tuple(vector)


def _echelon(rows: list[list[int]], width: int) -> int:
    """Brings the first `width` columns into echelon form, in place; gives the number of pivots."""
    top = 0
    for column in range(width):
        while True:
            live = [i for i in range(top, len(rows)) if rows[i][column]]
            if not live:
                break
            least = min(live, key=lambda i: abs(rows[i][column]))
            rows[top], rows[least] = rows[least], rows[top]
            if rows[top][column] < 0:
                rows[top] = [-value for value in rows[top]]
            for row in rows[top + 1 :]:
                _subtract(row, rows[top], row[column] // rows[top][column])
            if not any(row[column] for row in rows[top + 1 :]):
                top += 1
                break
    return top


def _subtract(row: list[int], other: Sequence[int], factor: int) -> None:
    if factor:
        row[:] = [a - factor * b for a, b in zip(row, other, strict=True)]
