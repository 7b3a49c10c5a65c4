"""Steps of an affine schedule counted iteration by iteration, with fractions and no NumPy."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

from cim_opt.polyhedral.affine_part import Part
from cim_opt.polyhedral.kernel import MacKernel


def counted_steps(kernel: MacKernel, parts: Sequence[Part], rows: int, columns: int) -> int:
    """How many (time, row tile, column tile) hold an iteration, all groups together."""
    seen: set[object] = set()
    every = [_places(part) for part in parts]
    for oc, ic in product(range(kernel.out_channels), range(kernel.in_channels)):
        for pick in product(*(places for places, _, _ in every)):
            row, column = ic, oc
            for (_, own_row, own_column), (_, high, wide) in zip(pick, every, strict=True):
                row, column = row * high + own_row, column * wide + own_column
            times = tuple(time for time, _, _ in pick)
            seen.add((times, row // rows, column // columns))
    return kernel.groups * len(seen)


Place = tuple[tuple[Fraction, ...], int, int]


def _places(part: Part) -> tuple[list[Place], int, int]:
    """(time, row, column) of every iteration of a part, and its numbers of rows and columns."""
    solved = [_solve(part, x) for x in product(*map(range, part.extents))]
    roles: list[str] = [vector.role for vector in part.basis]
    row, high = _fuse(solved, roles, "row")
    column, wide = _fuse(solved, roles, "column")
    places = [
        (
            tuple(value for value, role in zip(y, roles, strict=True) if role == "time"),
            row[i],
            column[i],
        )
        for i, y in enumerate(solved)
    ]
    return places, high, wide


def _fuse(solved: list[list[Fraction]], roles: list[str], role: str) -> tuple[list[int], int]:
    """Mixed radix of the coordinates of one role, each in steps of 1 / its denominator."""
    numbers, total = [0] * len(solved), 1
    for j, own in enumerate(roles):
        if own != role:
            continue
        values = [y[j] for y in solved]
        scale = _scale(values, prod({value.denominator for value in values}))
        low, high = min(values), max(values)
        size = int((high - low) * scale) + 1
        numbers = [n * size + int((v - low) * scale) for n, v in zip(numbers, values, strict=True)]
        total *= size
    return numbers, total


def _scale(values: list[Fraction], enough: int) -> int:
    return next(n for n in range(1, enough + 1) if all((v * n).denominator == 1 for v in values))


def _solve(part: Part, loops: Sequence[int]) -> list[Fraction]:
    """The y with levels = sum of y_j b_j, by elimination."""
    levels: list[int] = []
    for value, factors in zip(loops, part.factors, strict=True):
        scales = [prod(factors[i + 1 :]) for i in range(len(factors))]
        levels += [
            value // s % f if i else value // s
            for i, (s, f) in enumerate(zip(scales, factors, strict=True))
        ]
    live = [i for i in range(len(levels)) if any(v.entries[i] for v in part.basis)]
    rows = [[Fraction(v.entries[i]) for v in part.basis] + [Fraction(levels[i])] for i in live]
    for j in range(len(rows)):
        pivot = next(i for i in range(j, len(rows)) if rows[i][j])
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [value / rows[j][j] for value in rows[j]]
        for i in range(len(rows)):
            if i != j:
                rows[i] = [a - rows[i][j] * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [row[-1] for row in rows]
