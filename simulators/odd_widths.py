"""Integers of widths that NumPy does not have, such as i5 and i22.

They are held in the next longer NumPy type, extended by their sign; i1 to i64 of NumPy's own widths
are not touched. An operation runs in the longer type on operands that are extended as it reads
them, and its result is wrapped to its width again:

    function = in_odd_width(op, function_on_the_longer_type)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.integer_functions import BINARY_UNSIGNED, Function, Values

NUMPY_WIDTHS = (1, 8, 16, 32, 64)

_UNSIGNED = frozenset({*BINARY_UNSIGNED, "math.ctpop", "math.ctlz", "arith.extui", "arith.uitofp"})
_SHIFTS = frozenset({"arith.shli", "arith.shrsi", "arith.shrui"})
_REFUSED = frozenset(
    {
        "arith.mulsi_extended",
        "arith.mului_extended",
        "arith.addui_extended",
        "arith.fptosi",
        "arith.fptoui",
        "arith.bitcast",
    }
)


def odd_width(attr: Attribute) -> int | None:
    """The width of an integer, or of a tensor's elements, that NumPy does not have; else None."""
    element = attr.element_type if isa(attr, TensorType) else attr
    if not isa(element, IntegerType) or element.width.data in NUMPY_WIDTHS:
        return None
    return element.width.data


def held_in(width: int) -> np.dtype[Any] | None:
    """The NumPy type that holds an odd `width`; None when there is none."""
    longer = next((bits for bits in NUMPY_WIDTHS[1:] if width < bits), None)
    return None if longer is None or width < 1 else np.dtype(f"i{longer // 8}")


def wrap(values: Values, width: int) -> Values:
    """The low `width` bits, extended by their sign."""
    rest = values.dtype.type(values.dtype.itemsize * 8 - width)
    return (values << rest) >> rest


def _by_zeros(width: int) -> Callable[[Values], Values]:
    return lambda values: values & values.dtype.type((1 << width) - 1)


def _same(values: Values) -> Values:
    return values


def is_odd(op: Operation) -> bool:
    """True when an operand or a result of `op` has an odd width."""
    return any(odd_width(value.type) is not None for value in (*op.operands, *op.results))


def in_odd_width(op: Operation, function: Function) -> Function:
    """`function`, which computes `op` in the longer types, made to wrap to the types of `op`.

    Raises UserError for the few operations that are for NumPy's widths only.
    """
    if op.name in _REFUSED:
        raise UserError(
            f"'{op.name}' on {op.operands[0].type} to {op.results[0].type}",
            "it takes integers of 1, 8, 16, 32 and 64 bits",
            "extend first",
            location_of(op),
        )
    views = [_view(op, number) for number in range(len(op.operands))]
    width = odd_width(op.results[0].type)
    counts = odd_width(op.operands[0].type) if op.operands else None

    def run(*args: Values) -> Values:
        result = function(*[view(arg) for view, arg in zip(views, args, strict=True)])
        if op.name == "math.ctlz":
            # The longer type has more zeros in front, and its result the same type.
            result = result - result.dtype.type(result.dtype.itemsize * 8 - (counts or 0))
        if op.name == "math.cttz":
            result = np.minimum(result, result.dtype.type(counts or 0))
        return result if width is None else wrap(result, width)

    return run


def _view(op: Operation, number: int) -> Callable[[Values], Values]:
    """How operand `number` of `op` is extended."""
    width = odd_width(op.operands[number].type)
    if width is None:
        return _same
    unsigned_comparison = isinstance(op, arith.CmpiOp) and op.predicate.value.data >= 6
    is_amount = op.name in _SHIFTS and number == 1
    if op.name in _UNSIGNED or unsigned_comparison or is_amount:
        return _by_zeros(width)
    return _same
