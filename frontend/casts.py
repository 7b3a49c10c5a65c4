"""Casts between element types: NumPy's `astype`, as arith operations."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation

from cim_opt.frontend.element_types import ElementType, constant
from cim_opt.frontend.scope import Traced


def cast_ssa(value: Traced, to: ElementType) -> SSAValue:
    """The value of a traced scalar in another element type, in the scalar's own scope.

    Between int8 and uint8 nothing is written: they differ in the operations that use them.
    """
    source = value.element
    ssa = value.scope.use(value)
    op = _cast_op(value, ssa, source, to)
    return ssa if op is None else value.scope.emit(op)


def _cast_op(
    value: Traced, ssa: SSAValue, source: ElementType, to: ElementType
) -> IRDLOperation | None:
    if source == to:
        return None
    if to.is_bool:
        zero = value.scope.constant(constant(0, source))
        if source.is_float:
            return arith.CmpfOp(ssa, zero, "une")
        return arith.CmpiOp(ssa, zero, "ne")
    if to.is_float:
        return arith.SIToFPOp(ssa, f32) if source.signed else arith.UIToFPOp(ssa, f32)
    attr = IntegerType(to.width)
    if source.is_float:
        return arith.FPToSIOp(ssa, attr) if to.signed else arith.FPToUIOp(ssa, attr)
    if to.width < source.width:
        return arith.TruncIOp(ssa, attr)
    if to.width == source.width:
        return None
    return arith.ExtSIOp(ssa, attr) if source.signed else arith.ExtUIOp(ssa, attr)
