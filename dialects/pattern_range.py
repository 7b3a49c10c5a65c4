"""The argument attribute `pattern.range`: what values the caller promises to give.

    func.func @f(%a: tensor<?xi32> {pattern.range = [0, 255]}) -> i32

says that all elements of `%a` are 0 to 255, both included. The bounds are signed numbers of the
element type, or, when the upper one needs it, unsigned ones: [0, 255] is every i8.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, IntegerType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of

RANGE_ATTRIBUTE = "pattern.range"


@dataclass(frozen=True, slots=True)
class DeclaredRange:
    """Least and greatest value of an argument's elements, of `width` bits, and how to read them."""

    width: int
    low: int
    high: int

    @property
    def is_unsigned(self) -> bool:
        """True when the bounds are unsigned numbers that no signed word of the width holds."""
        return self.high >= 1 << (self.width - 1)


def declared_range(arg: BlockArgument) -> DeclaredRange | None:
    """What the function whose argument `arg` is says of its values; None when it says nothing.

    Raises UserError, with the function's place, for an attribute that is not two integers in
    order that the type of `arg` can hold.
    """
    function = arg.block.parent_op()
    if not isinstance(function, FuncOp) or arg.block is not function.body.blocks.first:
        return None
    if function.arg_attrs is None:
        return None
    attributes = function.arg_attrs.data[arg.index]
    assert isinstance(attributes, DictionaryAttr)
    attr = attributes.data.get(RANGE_ATTRIBUTE)
    return None if attr is None else _read(function, arg, attr)


def _read(function: FuncOp, arg: BlockArgument, attr: Attribute) -> DeclaredRange:
    name = f"{RANGE_ATTRIBUTE} of %{arg.name_hint or arg.index}"
    element = arg.type.element_type if isa(arg.type, TensorType) else arg.type
    if not isa(element, IntegerType):
        raise UserError(
            f"{name} is for integers",
            f"it is {arg.type}",
            "leave the range out",
            location_of(function),
        )
    if not isa(attr, ArrayAttr[IntegerAttr]) or len(attr.data) != 2:
        raise UserError(
            f"{name} is not two integers",
            "it is written [LEAST, GREATEST]",
            f"write {RANGE_ATTRIBUTE} = [0, 255] or the like",
            location_of(function),
        )
    low, high = (bound.value.data for bound in attr.data)
    width = element.width.data
    half = 1 << (width - 1)
    fits = -half <= low and high < (half if low < 0 else 2 * half)
    if low > high or not fits:
        raise UserError(
            f"{name} is [{low}, {high}]",
            f"it lies in [{-half}, {half - 1}] or in [0, {2 * half - 1}], the smaller bound first",
            "change the range or the type",
            location_of(function),
        )
    return DeclaredRange(width, low, high)
