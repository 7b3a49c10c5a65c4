"""Values of all tasklets of all DPUs at once: masks, loops, branches, tallies.

A lane is one tasklet of one DPU. A value that is the same on all lanes is a scalar: a Python int
for `index`, a NumPy scalar for other types. A value that differs is an array of two axes, (DPUs,
tasklets), either of which has length 1 where the value does not vary along it: the tasklet's
number is (1, tasklets), so addresses made from it stay tiny.

A mask says which lanes run: None is all lanes, else a bool array of two axes in which at least one
lane is set. Code under a mask computes on all lanes; only what it stores, moves or counts is
restricted to the mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from cim_opt.simulators.integer_functions import where

Values = Any
"""A Python int or bool, a NumPy scalar, or an array of two axes."""
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Mask = BoolArray | None


def varies(value: Values) -> TypeGuard[npt.NDArray[Any]]:
    """Whether a value is an array of lanes."""
    return isinstance(value, np.ndarray)


def cut(value: Values, tasklet: int) -> Values:
    """`value` on the lanes of one tasklet: shape (DPUs, 1) or (1, 1), or the scalar it is."""
    if varies(value) and value.shape[1] > 1:
        return value[:, tasklet : tasklet + 1]
    return value


def collapsed(index: Values) -> Values:
    """An index as a Python int when it is the same on all lanes."""
    if varies(index) and (index == index[0, 0]).all():
        return int(index[0, 0])
    return index


def split(condition: Values, mask: Mask) -> tuple[Mask | bool, Mask | bool]:
    """The masks under which a condition holds and does not hold; False where no lane is left."""
    if np.ndim(condition) == 0:
        return (mask, False) if condition else (False, mask)
    holds = condition if mask is None else mask & condition
    if not holds.any():
        return False, mask
    fails = ~condition if mask is None else mask & ~condition
    if not fails.any():
        return mask, False
    return holds, fails


def join(condition: Values, holds: Mask | bool, fails: Mask | bool, a: Values, b: Values) -> Values:
    """What an `if` yields: a where its condition holds, b elsewhere, given the masks of `split`."""
    if fails is False:
        return a
    if holds is False:
        return b
    return where(condition, a, b)


class Loop:
    """One execution of an `scf.for`: gives (induction variable, mask) for each iteration.

    Lanes may have different bounds. Up to `full` iterations all lanes of the outer mask run and
    that mask is passed on as it is; from there on fewer and fewer lanes do. Steps are positive.
    """

    __slots__ = ("count", "full", "lower", "mask", "step", "trips")

    def __init__(self, lower: Values, upper: Values, step: Values, mask: Mask):
        lower, upper, step = collapsed(lower), collapsed(upper), collapsed(step)
        self.lower, self.step, self.mask = lower, step, mask
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            self.trips: Values = max(0, -((lower - upper) // step))
            self.count = self.full = self.trips
            return
        # Only lanes that do not run may have a step that is not positive.
        trips = np.maximum(0, -((lower - upper) // np.maximum(step, 1)))
        if mask is None:
            self.count, self.full = int(trips.max()), int(trips.min())
        else:
            trips, active = np.broadcast_arrays(trips, mask)
            self.count = int(trips.max(initial=0, where=active))
            self.full = int(trips.min(initial=self.count, where=active))
        self.trips = self.count if self.count == self.full else trips

    def __iter__(self) -> Iterator[tuple[Values, Mask]]:
        value = self.lower
        for number in range(self.count):
            yield value, self.mask if number < self.full else self._mask_at(number)
            value = value + self.step

    def _mask_at(self, number: int) -> BoolArray:
        running = np.asarray(self.trips > number)
        return running if self.mask is None else running & self.mask


class Tally:
    """A count on each lane, held as a scalar for all of them plus an array for the differences."""

    __slots__ = ("everywhere", "lanes")

    def __init__(self) -> None:
        self.everywhere = 0
        self.lanes: IntArray | None = None

    def add(self, amount: Values, mask: Mask) -> None:
        """Adds `amount` on the lanes of `mask`."""
        if mask is not None:
            amount = np.multiply(amount, mask, dtype=np.int64)
        elif not varies(amount):
            self.everywhere += int(amount)
            return
        self.add_array(amount)

    def add_array(self, amount: npt.NDArray[Any]) -> None:
        """Adds an array of two axes."""
        if self.lanes is None:
            self.lanes = amount.astype(np.int64)
        elif np.broadcast_shapes(self.lanes.shape, amount.shape) == self.lanes.shape:
            self.lanes += amount
        else:
            self.lanes = self.lanes + amount

    def is_zero(self) -> bool:
        return self.lanes is None and self.everywhere == 0

    def array(self, dpus: int, tasklets: int) -> IntArray:
        """The count as a read-only array (DPUs, tasklets)."""
        lanes = np.int64(0) if self.lanes is None else self.lanes
        return np.broadcast_to(lanes + np.int64(self.everywhere), (dpus, tasklets))
