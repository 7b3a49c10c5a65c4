"""Values of a program whose data are not known: numbers between two limits, vectors of a length.

An `Interval` stands for a number that differs from round to round of a loop, or that depends on
data. Whoever needs the number itself (`int`, `bool`) gets `Varies` for the first kind, so that the
loop can be counted in smaller parts, and a UserError for the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cim_opt.errors import UserError

INDEX = np.dtype(np.int64)
MOST_SCALARS = 256
"""Scalars that the mean of a product with an unknown scalar is over."""


class Varies(Exception):
    """A number that must be known differs from round to round of a loop that is around it."""


@dataclass(frozen=True)
class Interval:
    """A number from `low` to `high`, both included; `of_data`: it depends on the program's data."""

    low: int
    high: int
    dtype: np.dtype[Any] = INDEX
    of_data: bool = False
    ndim: ClassVar[int] = 0
    shape: ClassVar[tuple[int, ...]] = ()

    def __int__(self) -> int:
        if self.low == self.high:
            return self.low
        if not self.of_data:
            raise Varies
        raise UserError(
            "a length, a bound of a loop or a condition depends on the program's data",
            "counting knows the lengths of the arguments and nothing of their elements",
            "run it on the simulator",
        )

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(int(self))


Number = Any
"""A NumPy or Python number, or an Interval."""


@dataclass(frozen=True)
class Vector:
    """A tensor of unknown elements; those of integers lie from `low` to `high`."""

    shape: tuple[Number, ...]
    dtype: np.dtype[Any]
    low: int
    high: int

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        count = 1
        for length in self.shape:
            count *= int(length)
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return int(self.shape[0])


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest integer of a type; floats count as unknown words."""
    if dtype.kind == "b":
        return 0, 1
    bits = dtype.itemsize * 8
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def vector(shape: tuple[Number, ...], dtype: np.dtype[Any]) -> Vector:
    """A tensor of unknown elements of the whole range of their type."""
    return Vector(shape, dtype, *limits(dtype))


def unknown(dtype: np.dtype[Any]) -> Interval:
    """A number that depends on data."""
    return Interval(*limits(dtype), dtype, True)


def ends(value: Number) -> tuple[int, int]:
    """The limits of a number."""
    if isinstance(value, Interval):
        return value.low, value.high
    return int(value), int(value)


def is_abstract(value: object) -> bool:
    """Whether something is not known of this value."""
    return isinstance(value, Interval | Vector)


Ends = tuple[int, int]


def _corners(function: Callable[[int, int], int]) -> Callable[[Ends, Ends], Ends]:
    """Limits of a function that is monotone in each operand, from those of its operands."""

    def of(left: Ends, right: Ends) -> Ends:
        values = [function(a, b) for a in left for b in right]
        return min(values), max(values)

    return of


def _remainder(left: Ends, right: Ends) -> Ends | None:
    if left[0] < 0 or right[0] < 1:
        return None
    if right[0] == right[1] and left[0] // right[0] == left[1] // right[0]:
        return left[0] % right[0], left[1] % right[0]
    return 0, min(left[1], right[1] - 1)


def _quotient(function: Callable[[int, int], int]) -> Callable[[Ends, Ends], Ends | None]:
    corners = _corners(function)
    return lambda a, b: corners(a, b) if a[0] >= 0 and b[0] > 0 else None


def _unsigned(function: Callable[[int, int], int]) -> Callable[[Ends, Ends], Ends | None]:
    corners = _corners(function)
    return lambda a, b: corners(a, b) if a[0] >= 0 and b[0] >= 0 else None


_divide = _quotient(lambda a, b: a // b)
_divide_up = _quotient(lambda a, b: -(-a // b))
_RULES: dict[str, Callable[[Ends, Ends], Ends | None]] = {
    "arith.addi": _corners(lambda a, b: a + b),
    "arith.subi": _corners(lambda a, b: a - b),
    "arith.muli": _corners(lambda a, b: a * b),
    "arith.divui": _divide,
    "arith.divsi": _divide,
    "arith.ceildivui": _divide_up,
    "arith.ceildivsi": _divide_up,
    "arith.remui": _remainder,
    "arith.remsi": _remainder,
    "arith.minsi": _corners(min),
    "arith.maxsi": _corners(max),
    "arith.minui": _unsigned(min),
    "arith.maxui": _unsigned(max),
}


def computed(name: str, args: tuple[Number, ...], dtype: np.dtype[Any]) -> Interval:
    """The result of an operation on numbers of which at least one is an Interval."""
    of_data = any(isinstance(value, Interval) and value.of_data for value in args)
    low, high = _result(name, args) or limits(dtype)
    least, greatest = limits(dtype)
    if low < least or high > greatest:  # It may wrap around.
        low, high = least, greatest
    return Interval(low, high, dtype, of_data)


def _result(name: str, args: tuple[Number, ...]) -> Ends | None:
    if name in ("arith.index_cast", "arith.extsi", "arith.trunci"):
        return ends(args[0])
    if name in ("arith.index_castui", "arith.extui"):
        return _as_unsigned(args[0])
    rule = _RULES.get(name)
    return rule(ends(args[0]), ends(args[1])) if rule is not None else None


def _as_unsigned(value: Number) -> Ends:
    low, high = ends(value)
    if low >= 0:
        return low, high
    return 0, 2 * limits(np.dtype(value.dtype))[1] + 1


def candidates(scalar: Interval) -> list[int]:
    """Numbers that stand for all that an Interval may be: see simdram_count.py."""
    if scalar.high - scalar.low < MOST_SCALARS:
        return list(range(scalar.low, scalar.high + 1))
    seed = np.random.default_rng(0)
    kind = np.uint64 if scalar.high > limits(np.dtype(np.int64))[1] else np.int64
    drawn = seed.integers(scalar.low, scalar.high, MOST_SCALARS, kind, endpoint=True)
    return [int(value) for value in drawn]
