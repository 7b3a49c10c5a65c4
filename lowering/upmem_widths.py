"""Which integers UPMEM computes with."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of

REGISTER_WIDTHS = (1, 8, 16, 32, 64)


def check_widths(function: Operation) -> None:
    """Raises UserError for the first value in `function` of a width that no register has."""
    for op in function.walk():
        for value in _values_of(op):
            element = value.type.element_type if isa(value.type, TensorType) else value.type
            if isa(element, IntegerType) and element.width.data not in REGISTER_WIDTHS:
                raise UserError(
                    f"a value of type {element} on UPMEM",
                    "its integers are i1, i8, i16, i32 and i64",
                    "use the next longer one",
                    location_of(op),
                )


def _values_of(op: Operation) -> Iterator[SSAValue]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
