"""Short multiplications of a DPU: products of values that are known to be of 8 or 16 bits.

A DPU multiplies a byte of one register by a byte of another, each signed or unsigned, into 16
bits, sign or zeros above them. So what says that a factor is narrow also says how it is read:

    %a = arith.extsi %x : i8 to i32       // nothing: mul_sl_ul reads the low byte of %x by its sign
    %b = arith.extui %y : i8 to i32       // nothing
    %p = arith.muli %a, %b : i32          // one instruction

The same holds for a cut to 8 or 16 bits that only such products read, and for the extension of a
16-bit product by the sign that it has anyway.

The instructions read the second byte of a register as well, so a product of 16 bits by 16 is four
of them, of which three are added by instructions that shift. The first one, of the low bytes,
branches behind the others when both factors are less than 256. This is what the SDK's compiler
selects where factors are extended from 16 bits or less (github upmem/llvm-project,
llvm/lib/Target/DPU), and the one measured time of it, 128 times 128, is that of one instruction.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.simulators.upmem_addresses import constant_of


def factor_bytes(op: Operation) -> tuple[int, int] | None:
    """Bytes, 1 or 2, of the factors of an `arith.muli`; None when they are not known so narrow.

    Also None for a factor that is a constant: there shifts and additions do.
    """
    if not isinstance(op, arith.MuliOp) or _bits(op.result.type) not in (8, 16, 32):
        return None
    if any(constant_of(factor) is not None for factor in op.operands):
        return None
    left, right = (_bytes_of(factor) for factor in op.operands)
    return None if left is None or right is None else (left, right)


def is_read_by_products_only(value: SSAValue) -> bool:
    """True when products that read bytes are all that uses `value`, extended or not."""
    return value.first_use is not None and all(
        factor_bytes(use.operation) is not None
        or (
            isinstance(use.operation, arith.ExtSIOp | arith.ExtUIOp)
            and _bytes_of(use.operation.result) is not None
            and is_read_by_products_only(use.operation.result)
        )
        for use in value.uses
    )


def is_extended_product(value: SSAValue, by_sign: bool) -> bool:
    """True for a product of two bytes in 16 bits that is extended in its register already."""
    op = value.owner
    if not isinstance(op, arith.MuliOp) or _bits(op.result.type) != 16:
        return False
    signs = [_extension_from_byte(factor) for factor in op.operands]
    if None in signs or any(constant_of(factor) is not None for factor in op.operands):
        return False
    return any(signs) == by_sign


def _bits(attr: Attribute) -> int | None:
    return attr.width.data if isa(attr, IntegerType) else None


def _bytes_of(value: SSAValue) -> int | None:
    """1 or 2 when the number is known to have so many bytes, else None."""
    bits = _bits(value.type)
    if isinstance(value.owner, arith.ExtSIOp | arith.ExtUIOp):
        bits = _bits(value.owner.input.type)
    if bits == 1:
        bits = _bits(value.type)  # an i1 is no byte: its extension is made first
    return {8: 1, 16: 2}.get(bits or 0)


def _extension_from_byte(value: SSAValue) -> bool | None:
    """How an i8 was extended to `value`: True by its sign; None when it is no such extension."""
    op = value.owner
    if not isinstance(op, arith.ExtSIOp | arith.ExtUIOp) or _bits(op.input.type) != 8:
        return None
    return isinstance(op, arith.ExtSIOp)
