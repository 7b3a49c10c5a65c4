"""`upmem-strength-reduce`: cheaper operations of kernels that give the same values.

A DPU multiplies 32 bits by a routine whose steps are the bits of its smaller operand, read as an
unsigned number: a negative one takes all 32. The square of a sum or difference is that of its
magnitude, also for the least number, whose magnitude wraps around to itself. Before:

    %d = arith.subi %x, %y : i32
    %s = arith.muli %d, %d : i32

After:

    %d = arith.subi %x, %y : i32
    %m = math.absi %d : i32
    %s = arith.muli %m, %m : i32

An index has one register, so that zeros in a second one are not needed for it. Before:

    %b = arith.shrui %x, %c4 : i32
    %w = arith.extui %b : i32 to i64
    %i = arith.index_cast %w : i64 to index

After:

    %b = arith.shrui %x, %c4 : i32
    %i = arith.index_cast %b : i32 to index

This is done where the number cannot be negative: after an unsigned shift or division by a constant,
or a mask. Products of values that are extended from 8 or 16 bits are short as they are.

What follows from how large numbers can be is in `upmem_bits.py`: comparisons of one register
instead of two, and one shift instead of two.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from cim_opt.dialects.upmem import KernelOp
from cim_opt.passes.upmem_bits import cheaper_by_bits


@dataclass(frozen=True)
class UpmemStrengthReducePass(ModulePass):
    """Makes operations of kernels cheaper; see the module's documentation."""

    name = "upmem-strength-reduce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [kernel for kernel in op.walk() if isinstance(kernel, KernelOp)]:
            _reduce_kernel(kernel)


def _reduce_kernel(kernel: KernelOp) -> None:
    magnitudes: dict[SSAValue, SSAValue] = {}
    for op in list(kernel.walk()):
        if isinstance(op, arith.MuliOp) and _is_wide_square(op):
            _square_magnitude(op, magnitudes)
        elif isinstance(op, arith.IndexCastOp):
            _cast_low_register(op)
        else:
            cheaper_by_bits(op)


def _is_wide_square(op: arith.MuliOp) -> bool:
    """True for the square of a sum or difference of 32 bits."""
    made = op.lhs.owner
    return op.lhs is op.rhs and op.lhs.type == i32 and isinstance(made, arith.AddiOp | arith.SubiOp)


def _square_magnitude(op: arith.MuliOp, magnitudes: dict[SSAValue, SSAValue]) -> None:
    """Squares the magnitude, which is made once behind the sum or difference."""
    value = op.lhs
    if value not in magnitudes:
        made = value.owner
        assert isinstance(made, Operation) and made.parent is not None
        magnitude = math.AbsIOp(value)
        made.parent.insert_op_after(magnitude, made)
        magnitudes[value] = magnitude.result
    op.operands[0] = op.operands[1] = magnitudes[value]


def _cast_low_register(op: arith.IndexCastOp) -> None:
    """Casts a number itself instead of the number with zeros above it."""
    extended = op.input.owner
    if not isinstance(extended, arith.ExtUIOp) or not isinstance(op.result.type, IndexType):
        return
    value = extended.input
    if value.type != i32 or op.input.type != i64 or not _is_not_negative(value):
        return
    op.operands[0] = value
    if extended.result.first_use is None:
        extended.detach()
        extended.erase()


def _is_not_negative(value: SSAValue) -> bool:
    """True for a result whose highest bit is 0 by the operation that makes it."""
    op = value.owner
    if isinstance(op, arith.ShRUIOp):
        return 0 < _constant(op.rhs) < 32
    if isinstance(op, arith.DivUIOp):
        return _constant(op.rhs) > 1
    return isinstance(op, arith.AndIOp) and max(_constant(op.lhs), _constant(op.rhs)) >= 0


def _constant(value: SSAValue) -> int:
    """The number that a value is; -1 when it is none that is known."""
    if isinstance(value.owner, arith.ConstantOp) and isa(value.owner.value, IntegerAttr):
        return value.owner.value.value.data
    return -1
