"""Bases of affine schedules: which integer vectors become the loops of a schedule.

Iterations x of n loop levels are written x = y_1 b_1 + .. + y_n b_n over independent vectors b_j.
Coordinates along vectors that keep the input element become columns (they share what a row
broadcasts), those along vectors that keep the output element become rows (a column sums them), the
others are time. A vector that is not a unit vector is skewed: (o, k) = (1, -1) keeps the input
index o + k, so that neighbouring outputs share a row.

Source: the scheduling step of PolyCIM, as its paper and public code describe it; the code's limits
(at most two skewed vectors an operand, exact splits, bounding boxes) are options here, PROTOTYPE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Literal

from cim_opt.polyhedral.nest import Nest
from cim_opt.polyhedral.reuse import Matrix, Row, circuits, inverse, rank

Role = Literal["column", "row", "time"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a search may use.

    `levels`: most levels of a loop with exact splits. `uneven`: also splits whose last block is
    partial. `skewed`: most skewed vectors that keep one operand, None for any number. `boxes`:
    steps are counted on bounding boxes instead of exactly. `pretile` and `affine` False leave
    out splits and skewed vectors. `reduce`: some coordinate must become rows. `one_tile`: all
    columns fit the macro together. `blocks`: the outputs of steps are equal blocks.
    """

    levels: int = 2
    uneven: bool = True
    skewed: int | None = None
    boxes: bool = False
    pretile: bool = True
    affine: bool = True
    reduce: bool = False
    one_tile: bool = False
    blocks: bool = False


ANY = Rules()
"""The rules of this project's searches."""

PROTOTYPE = Rules(uneven=False, skewed=2, boxes=True, reduce=True)
"""The rules of the public prototype."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A basis vector over the levels of a nest, and what its coordinate becomes."""

    entries: Row
    role: Role

    @property
    def skewed(self) -> bool:
        """Whether it moves along more than one level."""
        return sum(map(bool, self.entries)) > 1


Basis = tuple[Vector, ...]


def candidates(nest: Nest, *, affine: bool = True) -> Basis:
    """Vectors that a basis may hold: reuse of the input, of the output, then plain loops.

    A vector of reuse is primitive, has at most two entries, stays in the domain for at least one
    step, uses no two levels of one loop, and holds no smaller one. Levels of one iteration
    are left out everywhere.
    """
    sizes, count = nest.sizes, len(nest.sizes)
    found: list[Vector] = []
    roles: tuple[tuple[Matrix, Role], ...] = ((nest.input, "column"), (nest.output, "row"))
    for matrix, role in roles:
        for entries in circuits(matrix, count, 2 if affine else 1):
            known = any(entries == vector.entries for vector in found)
            if not known and _stays(entries, sizes) and _one_level_a_loop(entries, nest.sources):
                found.append(Vector(entries, role))
    for level, size in enumerate(sizes):
        unit = tuple(int(i == level) for i in range(count))
        if size > 1 and all(vector.entries != unit for vector in found):
            found.append(Vector(unit, "time"))
    return tuple(found)


def _stays(entries: Row, sizes: Sequence[int]) -> bool:
    return all(abs(entry) < size for entry, size in zip(entries, sizes, strict=True))


def _one_level_a_loop(entries: Row, sources: Sequence[int]) -> bool:
    used = [source for entry, source in zip(entries, sources, strict=True) if entry]
    return len(used) == len(set(used))


# -- independent choices ---------------------------------------------------------------------------


def components(nest: Nest, vectors: Sequence[Vector]) -> tuple[tuple[int, ...], ...]:
    """Levels in groups that skewed vectors or loops join: a basis is one choice for each group.

    In loop order. Levels that no vector moves along, those of one iteration, are in no group.
    """
    moved = [{i for i, entry in enumerate(v.entries) if entry} for v in vectors]
    live = set[int]().union(*moved)
    loops = [{i for i, s in enumerate(nest.sources) if s == loop} for loop in set(nest.sources)]
    groups: list[set[int]] = []
    for support in (*moved, *(loop & live for loop in loops if loop & live)):
        joined = [group for group in groups if group & support]
        groups = [group for group in groups if not group & support]
        groups.append(support.union(*joined))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def component_bases(nest: Nest, rules: Rules) -> Iterator[tuple[Basis, ...]]:
    """For each component of the nest, all its bases, each in the order of `candidates`.

    Every split loop takes part in a skewed vector: without, its levels are one loop again.
    """
    vectors = candidates(nest, affine=rules.affine)
    for group in components(nest, vectors):
        inside = [v for v in vectors if any(v.entries[i] for i in group)]
        split = {nest.sources[i] for i in group if nest.is_split[nest.sources[i]]}
        yield tuple(
            tuple(inside[i] for i in chosen)
            for chosen in _independent(tuple(v.entries for v in inside), len(group))
            if _participates(nest, [inside[i] for i in chosen], split)
            and _few_skewed([inside[i] for i in chosen], rules.skewed)
        )


def bases(nest: Nest, rules: Rules) -> Iterator[Basis]:
    """All bases of a nest under these rules, component by component.

    Each has a vector that keeps the input when a plain loop does so, and one that keeps the
    output when `rules.reduce` asks for it.
    """
    vectors = candidates(nest, affine=rules.affine)
    need_column = any(v.role == "column" and not v.skewed for v in vectors)
    need_row = rules.reduce and any(v.role == "row" for v in vectors)
    for pick in product(*component_bases(nest, rules)):
        basis = tuple(vector for part in pick for vector in part)
        roles = {vector.role for vector in basis}
        if need_column and "column" not in roles:
            continue
        if need_row and "row" not in roles:
            continue
        if _few_skewed(basis, rules.skewed):
            yield basis


def participates(nest: Nest, basis: Sequence[Vector]) -> bool:
    """Whether every split loop has a level in a skewed vector of the basis."""
    split = {i for i, is_split in enumerate(nest.is_split) if is_split}
    return _participates(nest, basis, split)


def _participates(nest: Nest, basis: Sequence[Vector], split: set[int]) -> bool:
    used = {
        nest.sources[i]
        for vector in basis
        if vector.skewed
        for i, entry in enumerate(vector.entries)
        if entry
    }
    return split <= used


def _few_skewed(basis: Sequence[Vector], most: int | None) -> bool:
    if most is None:
        return True
    skewed = [vector.role for vector in basis if vector.skewed]
    return max(skewed.count("column"), skewed.count("row")) <= most


@lru_cache(maxsize=4096)
def _independent(vectors: Matrix, size: int) -> tuple[tuple[int, ...], ...]:
    """All choices of `size` vectors that are linearly independent."""
    return tuple(
        chosen
        for chosen in combinations(range(len(vectors)), size)
        if rank([vectors[i] for i in chosen]) == size
    )


# -- the schedule's coordinates --------------------------------------------------------------------


@lru_cache(maxsize=65536)
def coordinates(basis: Matrix) -> Matrix:
    """The rows that turn levels x into coordinates y with x = sum of y_j b_j.

    Each row is scaled to whole numbers by its least denominator: coordinates then skip values,
    which costs nothing where steps are counted exactly. Levels that no vector moves along get no
    coordinate. Raises ValueError when the vectors are no basis of the other levels.
    """
    if not basis:
        return ()
    live = [i for i in range(len(basis[0])) if any(vector[i] for vector in basis)]
    if len(live) != len(basis):
        raise ValueError(f"{len(basis)} vectors are no basis of {len(live)} levels")
    rows = inverse(tuple(tuple(vector[i] for vector in basis) for i in live))[0]
    position = {level: i for i, level in enumerate(live)}
    return tuple(
        tuple(row[position[i]] if i in position else 0 for i in range(len(basis[0])))
        for row in rows
    )


def box(coordinate: Row, sizes: Sequence[int]) -> tuple[int, int]:
    """Least value and number of values from least to greatest, over a box of `sizes`."""
    spans = [entry * (size - 1) for entry, size in zip(coordinate, sizes, strict=True)]
    low = sum(min(0, span) for span in spans)
    return low, sum(max(0, span) for span in spans) - low + 1
