"""Holding inputs against what a function says of them, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import BlockArgument

from cim_opt.dialects.pattern_range import DeclaredRange, declared_range
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.integer_functions import Values, unsigned_of
from cim_opt.simulators.odd_widths import odd_width

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
Generator = np.random.Generator


def range_of(arg: BlockArgument) -> DeclaredRange | None:
    """The declared range of an argument; that of the type where NumPy's type is longer; or None."""
    declared = declared_range(arg)
    width = odd_width(arg.type)
    if declared is not None or width is None:
        return declared
    return DeclaredRange(width, -(1 << (width - 1)), (1 << (width - 1)) - 1)


def check_declared(name: str, arg: BlockArgument, values: Values) -> None:
    """Raises UserError for the first of `values` of argument `arg` that is out of its range."""
    known = range_of(arg)
    if known is None:
        return
    array = _as_declared(known, np.asarray(values))
    wrong = np.asarray((array < known.low) | (array > known.high))
    if not wrong.any():
        return
    first = int(wrong.argmax())
    place = f"[{first}]" if array.ndim else ""
    function = arg.block.parent_op()
    raise UserError(
        f"argument {name}{place} is {array.reshape(-1)[first]}",
        f"its range is [{known.low}, {known.high}]",
        "give values in the range, or change the range",
        location_of(function) if function is not None else None,
    )


def draw(known: DeclaredRange, shape: tuple[int, ...], dtype: DType, seed: Generator) -> Array:
    """Random numbers of `dtype`, evenly distributed over the range."""
    if dtype == np.bool_:
        return np.asarray(seed.integers(known.low, known.high, shape, np.int8, endpoint=True) != 0)
    kind = unsigned_of(dtype) if known.is_unsigned else dtype
    drawn = seed.integers(known.low, known.high, shape, kind.type, endpoint=True)
    return np.asarray(drawn).view(dtype)


def _as_declared(known: DeclaredRange, array: Array) -> Array:
    """The values as the range counts them: signed, or unsigned."""
    if array.dtype == np.bool_:
        return array.astype(np.int8) if known.low >= 0 else -array.astype(np.int8)
    return array.view(unsigned_of(array.dtype)) if known.is_unsigned else array
