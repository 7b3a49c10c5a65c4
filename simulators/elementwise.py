"""NumPy meaning of every `arith` and `math` operation that the compiler knows.

`function_of(op)` looks at an operation once (name, types, predicate) and gives a function of NumPy
arrays or NumPy scalars, which generated code binds and calls often:

    with quiet():
        add = function_of(op)      # for an i32 arith.addi this is np.add itself
        c = add(a, b)

Operands and results have the dtypes of `dtype_of`: i1 bool, i8..i64 signed integers, index int64,
f32 float32; for other widths see odd_widths.py. Operands broadcast against each other. Results are
fresh arrays or scalars, except that a cast between equal dtypes, and a select by one scalar, give
an operand back.
The rules for corner cases are in integer_functions.py and float_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators import float_functions, integer_functions
from cim_opt.simulators.integer_functions import Function, Values
from cim_opt.simulators.odd_widths import held_in, in_odd_width, is_odd, odd_width, wrap

Builder = Callable[[Operation], Function]

_R = TypeVar("_R")

_INTEGERS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}


def quiet() -> Any:
    """Context, or decorator, in which NumPy is silent about overflow, division by 0 and NaN."""
    return np.errstate(all="ignore")


def element_type_of(type: Attribute) -> Attribute:
    """The element type of a tensor type, and any other type itself."""
    return type.element_type if isa(type, TensorType) else type


def dtype_of(type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of values of `type`, or of the elements of a tensor type.

    Raises UserError for a type that the simulators do not hold.
    """
    element = element_type_of(type)
    if isa(element, IntegerType) and element.width.data in _INTEGERS:
        return _INTEGERS[element.width.data]
    held = held_in(element.width.data) if isa(element, IntegerType) else None
    if held is not None:
        return held
    if isinstance(element, IndexType):
        return _INTEGERS[64]
    if isinstance(element, Float32Type):
        return np.dtype(np.float32)
    if isinstance(element, Float64Type):
        return np.dtype(np.float64)
    raise UserError(
        f"cannot compute with values of type {element}",
        "types are i1 to i64, index, f32 and f64",
        "cast to one of these",
    )


def constant_value(op: Operation) -> Values:
    """The value of an `arith.constant`: a NumPy scalar, or for a tensor a read-only array."""
    assert isinstance(op, arith.ConstantOp)
    attr = op.value
    dtype = dtype_of(op.result.type)
    width = odd_width(op.result.type)
    if isinstance(attr, IntegerAttr):
        value = _integer(attr.value.data, dtype)
        return value if width is None else wrap(value, width)
    if isinstance(attr, FloatAttr):
        return dtype.type(attr.value.data)
    if isa(attr, DenseIntOrFPElementsAttr):
        if width is not None:
            plain = [value for value in attr.get_values() if isinstance(value, int)]
            numbers = [_integer(value, dtype) for value in plain]
            return wrap(np.array(numbers, dtype).reshape(attr.get_shape()), width)
        # One element of i1 takes a byte there, 0 or not.
        stored = np.dtype(np.int8) if dtype == np.bool_ else dtype
        values = np.frombuffer(attr.data.data, stored).reshape(attr.get_shape())
        values = values != 0 if dtype == np.bool_ else values
        values.flags.writeable = False
        return values
    raise UserError(
        f"the value of this '{op.name}' is not in the text",
        "constants are numbers or dense<...>",
        location=location_of(op),
    )


def _integer(value: int, dtype: np.dtype[Any]) -> Values:
    """`value` modulo 2**width: an attribute may hold 255 or -1 for the same i8."""
    if dtype == np.bool_:
        return np.bool_(value & 1)
    bits = dtype.itemsize * 8
    wrapped = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return dtype.type(wrapped)


def select(condition: Values, a: Values, b: Values) -> Values:
    """a where the condition holds, else b; one of them as it is when the condition is a scalar."""
    if np.ndim(condition) == 0:
        return a if condition else b
    return integer_functions.where(condition, a, b)


def _operand(op: Operation) -> np.dtype[Any]:
    return dtype_of(op.operands[0].type)


def _result(op: Operation) -> np.dtype[Any]:
    return dtype_of(op.results[0].type)


def _width(type: Attribute) -> int:
    dtype = dtype_of(type)
    return 1 if dtype == np.bool_ else dtype.itemsize * 8


def _integer_builder(op: Operation) -> Function:
    function = integer_functions.binary(op.name, _operand(op))
    if function is None:
        raise UserError(
            f"'{op.name}' cannot be computed on i1",
            remedy="extend its operands first",
            location=location_of(op),
        )
    return function


def _compare_integers(op: Operation) -> Function:
    assert isinstance(op, arith.CmpiOp)
    return integer_functions.comparison(op.predicate.value.data, _operand(op))


def _compare_floats(op: Operation) -> Function:
    assert isinstance(op, arith.CmpfOp)
    return float_functions.COMPARISONS[op.predicate.value.data]


def _extend_signed(op: Operation) -> Function:
    return integer_functions.extend_signed(_operand(op), _result(op))


def _extend_unsigned(op: Operation) -> Function:
    return integer_functions.extend_unsigned(_operand(op), _result(op))


def _truncate(op: Operation) -> Function:
    return integer_functions.truncate(_result(op))


def _bitcast(op: Operation) -> Function:
    target = _result(op)

    def function(a: Values) -> Values:
        return a.view(target)

    return function


def _float_cast(op: Operation) -> Function:
    target = _result(op)

    def function(a: Values) -> Values:
        return a.astype(target)

    return function


def _to_signed(op: Operation) -> Function:
    half = 1 << (_width(op.results[0].type) - 1)
    return float_functions.to_integer(-half, half - 1, _result(op))


def _to_unsigned(op: Operation) -> Function:
    high = (1 << _width(op.results[0].type)) - 1
    return float_functions.to_integer(0, high, _result(op))


def _from_signed(op: Operation) -> Function:
    return float_functions.from_signed(_operand(op), _result(op))


def _from_unsigned(op: Operation) -> Function:
    return float_functions.from_unsigned(_operand(op), _result(op))


def _float_builder(op: Operation) -> Function:
    if op.name == "math.fma" and _operand(op) != np.float32:
        raise UserError("'math.fma' is computed on f32 only", location=location_of(op))
    return float_functions.FUNCTIONS[op.name]


FUNCTIONS: dict[str, Builder] = {
    **{name: _integer_builder for name in integer_functions.BINARY},
    **{name: _integer_builder for name in integer_functions.BINARY_UNSIGNED},
    **{name: _integer_builder for name in integer_functions.FOR_TYPE},
    **{name: _float_builder for name in float_functions.FUNCTIONS},
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": lambda op: select,
    "arith.extsi": _extend_signed,
    "arith.extui": _extend_unsigned,
    "arith.trunci": _truncate,
    "arith.index_cast": _extend_signed,
    "arith.bitcast": _bitcast,
    "arith.extf": _float_cast,
    "arith.truncf": _float_cast,
    "arith.fptosi": _to_signed,
    "arith.fptoui": _to_unsigned,
    "arith.sitofp": _from_signed,
    "arith.uitofp": _from_unsigned,
}
"""By operation name: what makes the function of such an operation."""


def is_elementwise(op: Operation) -> bool:
    """True when `function_of` knows the operation."""
    return op.name in FUNCTIONS


def function_of(op: Operation) -> Function:
    """The function of an `arith` or `math` operation on arrays or NumPy scalars of its operands.

    Takes the operands in order. Gives one array or scalar, or a tuple for an operation with two
    results. Raises UserError, with the operation's place, for an operation it does not know.
    """
    builder = FUNCTIONS.get(op.name)
    if builder is None:
        raise UserError(
            f"'{op.name}' cannot be simulated",
            "element functions hold arith, math, tensor, scf and pattern operations",
            location=location_of(op),
        )
    function = builder(op)
    return in_odd_width(op, function) if is_odd(op) else function
