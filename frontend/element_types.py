"""Element types of the frontend: NumPy's, with the sign that the IR leaves to the operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    f32,
)
from xdsl.ir import Attribute

from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import Array

NAMES_TEXT = "bool, int8 to int64, uint8 to uint64 and float32"


@dataclass(frozen=True)
class ElementType:
    """One element type; `name` is NumPy's name for it.

    The IR has one i8 for int8 and uint8: the frontend keeps `signed` beside every value and picks
    the operation (divsi or divui, extsi or extui, ...) by it.
    """

    name: str
    width: int
    signed: bool = False
    is_float: bool = False

    @property
    def is_bool(self) -> bool:
        """True for bool, an i1 in the IR and one byte in memory."""
        return self.width == 1

    @property
    def is_integer(self) -> bool:
        """True for int8 to int64 and uint8 to uint64."""
        return not self.is_float and not self.is_bool

    @property
    def attribute(self) -> Attribute:
        """The type in the IR: i1, i8, i16, i32, i64 (no sign) or f32."""
        return f32 if self.is_float else IntegerType(self.width)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype that the user sees."""
        return np.dtype(self.name)

    @property
    def storage(self) -> np.dtype[Any]:
        """The dtype of the same bytes in the simulators, which hold integers as signed."""
        return np.dtype(f"int{self.width}") if self.is_integer else self.dtype

    @property
    def limits(self) -> tuple[int, int]:
        """Least and greatest value of an integer or bool type."""
        if self.signed:
            return -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        return 0, (1 << self.width) - 1

    def __str__(self) -> str:
        return self.name


BOOL = ElementType("bool", 1)
FLOAT32 = ElementType("float32", 32, signed=True, is_float=True)
INT64 = ElementType("int64", 64, signed=True)

_ALL = {
    element.name: element
    for element in (
        BOOL,
        *(ElementType(f"int{width}", width, signed=True) for width in (8, 16, 32, 64)),
        *(ElementType(f"uint{width}", width) for width in (8, 16, 32, 64)),
        FLOAT32,
    )
}
_SHORT = {
    "i1": "bool",
    **{f"i{width}": f"int{width}" for width in (8, 16, 32, 64)},
    **{f"u{width}": f"uint{width}" for width in (8, 16, 32, 64)},
    "f32": "float32",
}

ELEMENT_TYPES: tuple[ElementType, ...] = tuple(_ALL.values())


def element_type(spec: Any) -> ElementType:
    """The element type that a dtype, a NumPy type, or a name says: np.int8, "int8" or "i8".

    Raises UserError for everything that has no element type here, such as float64 and complex.
    """
    if isinstance(spec, ElementType):
        return spec
    # Before NumPy sees them: to NumPy "i8" is eight bytes, and "u8" too.
    if isinstance(spec, str) and spec in _SHORT:
        return _ALL[_SHORT[spec]]
    try:
        name = np.dtype(spec).name
    except TypeError:
        fail(f"{spec!r} is not an element type", f"these are {NAMES_TEXT}")
    found = _ALL.get(name)
    if found is not None:
        return found
    fail(f"{name} is not an element type", f"these are {NAMES_TEXT}", _remedy(np.dtype(spec).kind))


def _remedy(kind: str) -> str:
    if kind == "f":
        return "convert it: .astype(np.float32)"
    if kind == "c":
        return "pass the real and the imaginary parts as two float32 arrays"
    return "convert it to numbers first"


def constant(value: bool | int | float, element: ElementType) -> Attribute:
    """The attribute for a Python number as a constant of a type.

    Raises UserError when the number is outside the type: a constant never wraps silently.
    """
    if element.is_float:
        return FloatAttr(_as_float32(value), f32)
    if isinstance(value, float):
        fail(
            f"{value} is a float and the other operand is {element}",
            "types do not change by themselves",
            "cast the other operand, x.astype(np.float32), or write an integer",
        )
    low, high = element.limits
    if not low <= value <= high:
        fail(
            f"the constant {value} does not fit {element}",
            f"{element} holds {low} to {high}",
            "cast the other operand to a wider type first, x.astype(...)",
        )
    if element.signed or not element.is_integer:
        return IntegerAttr(int(value), IntegerType(element.width))
    # The IR has no sign: uint8 255 is written as i8 -1.
    wrapped = value - (1 << element.width) if value >> (element.width - 1) else value
    return IntegerAttr(int(wrapped), IntegerType(element.width))


def _as_float32(value: bool | int | float) -> float:
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    if np.isinf(rounded) and not np.isinf(value):
        fail(f"the constant {value} does not fit float32", "float32 holds up to 3.4e38")
    return rounded


def tensor_constant(values: Array, element: ElementType) -> Attribute:
    """The attribute for a 1-D array as a constant tensor."""
    data = np.ascontiguousarray(values, dtype=element.dtype).tobytes()
    return DenseIntOrFPElementsAttr(
        TensorType(element.attribute, [len(values)]),  # pyright: ignore[reportArgumentType]
        BytesAttr(data),
    )
