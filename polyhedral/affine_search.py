"""The search for affine schedules with the fewest steps, then the fewest sets of weights.

Every combination of parts, one an axis, gets a lower and an upper bound on its steps, all at once;
for most the two agree. The others are counted cell by cell, those with the least bound first, and
only while their bound is not above the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import lcm, prod

import numpy as np
from numpy.typing import NDArray

from cim_opt.polyhedral.affine_basis import ANY, Rules
from cim_opt.polyhedral.affine_choices import complexity, parts_of, parts_with
from cim_opt.polyhedral.affine_part import (
    Part,
    Use,
    finite_use,
    measure,
    periodic_use,
)
from cim_opt.polyhedral.affine_schedule import AffineSchedule, images_of, steps_of
from cim_opt.polyhedral.bounds import lower_bound
from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.polyhedral.nest import Factors

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_COUNTED = 2000
"""Schedules that are counted cell by cell in one search, for steps and for images each."""

MOST_COMBINED = 400_000
"""Combinations of parts that are bounded; beyond, parts that another one dominates are left out."""


def search(
    kernel: MacKernel,
    rows: int,
    columns: int,
    rules: Rules = ANY,
    most: int = 1,
    splits: Sequence[tuple[Factors, Factors]] | None = None,
) -> tuple[AffineSchedule, ...]:
    """At most `most` schedules with the fewest steps, those with the fewest images first.

    Then come those with fewer levels, skewed vectors, rows and columns. On a macro of `rows` by
    `columns` weights. Schedules whose columns would repeat whole tiles are not looked at, unless
    steps are counted on boxes. Among the others the fewest steps are exact, except where one of
    the two limits above is met. `splits` are the levels of outputs and taps of each axis, instead
    of all that the rules allow; none may remain then, as when `rules` forbid every basis.
    """
    if splits is None:
        lists = [parts_of(axis, columns, rules) for axis in kernel.axes]
    else:
        pairs = zip(kernel.axes, splits, strict=True)
        lists = [parts_with(axis, factors, columns, rules) for axis, factors in pairs]
    if not all(lists):
        return ()
    table = _Table.of(kernel, rows, columns, rules, lists)
    if not table.allowed.any():
        return ()
    picks = table.fewest_steps()
    found: list[AffineSchedule] = []
    for _, images, parts in table.by_images(picks, most):
        steps = int(table.upper[picks[0]])
        found.append(AffineSchedule(kernel, parts, rows, columns, steps, images))
    return tuple(found)


@dataclass(slots=True)
class _Table:
    """All combinations of parts: numbers in the order of their flat index."""

    kernel: MacKernel
    lists: list[tuple[Part, ...]]
    rows: int
    columns: int
    allowed: Flags
    lower: Integers
    upper: Integers

    @classmethod
    def of(
        cls,
        kernel: MacKernel,
        rows: int,
        columns: int,
        rules: Rules,
        lists: list[tuple[Part, ...]],
    ) -> _Table:
        """Bounds of every combination; those that the rules forbid are not `allowed`."""
        if prod(map(len, lists)) > MOST_COMBINED:
            lists = [_front(parts) for parts in lists]
        allowed = _allowed(kernel, lists, columns, rules)
        if rules.boxes:
            lower = upper = _box_steps(kernel, lists, rows, columns)
        else:
            lower, upper = _bounds(kernel, lists, rows, columns, finite_use)
            lower = np.maximum(kernel.groups * lower, lower_bound(kernel, rows, columns).steps)
            upper = kernel.groups * upper
        return cls(kernel, lists, rows, columns, allowed, lower, upper)

    def parts(self, index: int) -> tuple[Part, ...]:
        """The parts of a combination."""
        places = np.unravel_index(index, tuple(map(len, self.lists)))
        return tuple(parts[int(i)] for parts, i in zip(self.lists, places, strict=True))

    def fewest_steps(self) -> list[int]:
        """Combinations with the fewest steps; `upper` of these is exact afterwards."""
        known = np.where(self.allowed, self.upper, np.iinfo(np.int64).max)
        best = int(known.min())
        open_ones = np.flatnonzero(self.allowed & (self.lower < self.upper) & (self.lower <= best))
        order = open_ones[np.argsort(self.lower[open_ones], kind="stable")]
        for index in order[:MOST_COUNTED]:
            if self.lower[index] > best:
                break
            steps = steps_of(self.kernel, self.parts(int(index)), self.rows, self.columns)
            self.lower[index] = self.upper[index] = known[index] = steps
            best = min(best, steps)
        return [int(i) for i in np.flatnonzero(known == best)]

    def by_images(
        self, picks: Sequence[int], most: int
    ) -> list[tuple[tuple[int, ...], int, tuple[Part, ...]]]:
        """The first `most` of these combinations by images, then by simplicity."""
        lower, upper = _bounds(self.kernel, self.lists, self.rows, self.columns, periodic_use)
        order = sorted(picks, key=lambda i: (lower[i], i))
        weights = self.kernel.out_channels * self.kernel.depth
        least = -(-weights // (self.rows * self.columns))
        found: list[tuple[tuple[int, ...], int, tuple[Part, ...]]] = []
        for index in order[:MOST_COUNTED]:
            if len(found) >= most and found[most - 1][1] <= max(least, lower[index] - 1):
                break
            parts = self.parts(index)
            images = int(lower[index])
            if images < upper[index]:
                images = images_of(self.kernel, parts, self.rows, self.columns)
            simplicity = tuple(map(sum, zip(*(complexity(part) for part in parts), strict=True)))
            found.append(((images, *simplicity, index), images, parts))
            found.sort(key=lambda entry: entry[0])
        return found[:most]


# -- bounds of all combinations ------------------------------------------------------------------


def _bounds(
    kernel: MacKernel,
    lists: Sequence[tuple[Part, ...]],
    rows: int,
    columns: int,
    use: Callable[[Part], Use],
) -> tuple[Integers, Integers]:
    """Least and most steps of one group, for every combination."""
    uses = [[use(part) for part in parts] for parts in lists]

    def combined(number: Callable[[Use], int]) -> Integers:
        return _product([[number(one) for one in part] for part in uses])

    ic, oc = kernel.in_channels, kernel.out_channels
    times = combined(lambda u: u.times)
    high, wide = ic * combined(lambda u: u.rows), oc * combined(lambda u: u.columns)
    least_high = ic * combined(lambda u: u.least_rows)
    least_wide = oc * combined(lambda u: u.least_columns)
    upper = times * _tiles(high, rows) * _tiles(wide, columns)
    # With one column tile, a tile is used when one of its rows is; and the other way round.
    sure = ((wide <= columns) & (least_high == high)) | ((high <= rows) & (least_wide == wide))
    sure |= (wide <= columns) & (high <= rows)
    lower = np.maximum.reduce(
        [
            times * _tiles(least_high, rows),
            times * _tiles(least_wide, columns),
            _tiles(ic * combined(lambda u: u.row_uses), rows),
            _tiles(oc * combined(lambda u: u.column_uses), columns),
        ]
    )
    return np.where(sure, upper, lower), upper


def _box_steps(
    kernel: MacKernel, lists: Sequence[tuple[Part, ...]], rows: int, columns: int
) -> Integers:
    found = [[measure(part) for part in parts] for parts in lists]
    times = _product([[one.box_times for one in part] for part in found])
    high = kernel.in_channels * _product([[one.rows for one in part] for part in found])
    wide = kernel.out_channels * _product([[one.columns for one in part] for part in found])
    return kernel.groups * times * _tiles(high, rows) * _tiles(wide, columns)


def _allowed(
    kernel: MacKernel, lists: Sequence[tuple[Part, ...]], columns: int, rules: Rules
) -> Flags:
    """Which combinations the rules allow; of those that only exchange equal axes, one."""
    shape = tuple(map(len, lists))
    allowed = np.ones(shape, dtype=np.bool_)
    places = np.indices(shape, sparse=True) if shape else ()
    for first in range(len(shape)):
        for second in range(first + 1, len(shape)):
            if kernel.axes[first] == kernel.axes[second]:
                if lists[first] == lists[second]:
                    allowed &= places[first] <= places[second]
                break
    allowed = allowed.ravel()
    if not rules.boxes:
        # Beyond, tiles of columns repeat what fewer columns and more times do.
        most = columns if rules.one_tile else lcm(kernel.out_channels, columns)
        wide = _product([[measure(part).columns for part in parts] for parts in lists])
        allowed &= kernel.out_channels * wide <= most
    if rules.skewed is not None:
        skewed = [[sum(v.skewed for v in part.basis) for part in parts] for parts in lists]
        allowed &= _sum(skewed) <= rules.skewed
    if rules.reduce and kernel.in_channels == 1 and kernel.taps > 1:
        reducing = [[any(v.role == "row" for v in p.basis) for p in parts] for parts in lists]
        allowed &= _sum([list(map(int, flags)) for flags in reducing]) > 0
    return allowed


def _product(lists: Sequence[Sequence[int]]) -> Integers:
    """Product of one number of each list, for all combinations in flat order."""
    arrays = [np.array(numbers, dtype=np.int64) for numbers in lists]
    return reduce(np.multiply.outer, arrays, np.ones((), dtype=np.int64)).ravel()


def _sum(lists: Sequence[Sequence[int]]) -> Integers:
    arrays = [np.array(numbers, dtype=np.int64) for numbers in lists]
    return reduce(np.add.outer, arrays, np.zeros((), dtype=np.int64)).ravel()


def _tiles(virtual: Integers, physical: int) -> Integers:
    return -(-virtual // physical)


def _front(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts that no other part equals or betters in times, rows, columns and images."""
    return tuple(_undominated(parts))


def _undominated(parts: Sequence[Part]) -> Iterator[Part]:
    kept: list[tuple[int, int, int, int]] = []
    numbers = [
        (finite_use(p).times, measure(p).rows, measure(p).columns, periodic_use(p).times)
        for p in parts
    ]
    for index in sorted(range(len(parts)), key=lambda i: (numbers[i], i)):
        mine = numbers[index]
        if any(all(a <= b for a, b in zip(other, mine, strict=True)) for other in kept):
            continue
        kept.append(mine)
        yield parts[index]
