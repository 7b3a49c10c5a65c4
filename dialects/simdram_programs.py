"""Which row program of a library each operation of the dialect issues: the one table of names."""

from __future__ import annotations

from typing import Any

from cim_opt.dialects.simdram import BbopOp, MulScalarOp, Opcode, polarity_of, width_of
from cim_opt.dialects.simdram_polarity import variant
from cim_opt.errors import UserError
from cim_opt.microprograms.library import Library
from cim_opt.microprograms.model import RowProgram

NAMES: dict[Opcode, str] = {
    Opcode.ADD: "add",
    Opcode.SUB: "sub",
    Opcode.MUL: "mul",
    Opcode.DIVU: "div_u",
    Opcode.DIVS: "div_s",
    Opcode.REMU: "rem_u",
    Opcode.REMS: "rem_s",
    Opcode.MINU: "min_u",
    Opcode.MINS: "min_s",
    Opcode.MAXU: "max_u",
    Opcode.MAXS: "max_s",
    Opcode.AND: "and",
    Opcode.OR: "or",
    Opcode.XOR: "xor",
    Opcode.NOT: "not",
    Opcode.ABS: "abs",
    Opcode.RELU: "relu",
    Opcode.BITCOUNT: "bitcount",
    Opcode.EQ: "eq",
    Opcode.NE: "ne",
    Opcode.LTU: "lt_u",
    Opcode.LTS: "lt_s",
    Opcode.LEU: "le_u",
    Opcode.LES: "le_s",
    Opcode.GTU: "gt_u",
    Opcode.GTS: "gt_s",
    Opcode.GEU: "ge_u",
    Opcode.GES: "ge_s",
    Opcode.SELECT: "select",
    Opcode.SHL: "shl",
    Opcode.SHRU: "shr_u",
    Opcode.SHRS: "shr_s",
    Opcode.SHL_CONST: "shl_const",
    Opcode.SHRU_CONST: "shr_const",
    Opcode.SHRS_CONST: "shr_const",
    Opcode.ZEXT: "copy",
    Opcode.SEXT: "copy",
    Opcode.TRUNC: "copy",
    Opcode.COPY: "copy",
}
"""Opcodes of the dialect, and the names of their programs in the libraries."""

SIGNED = frozenset((Opcode.SHRS_CONST, Opcode.SEXT))
"""Opcodes whose programs have a variant for signed operands."""


def bbop_program(
    library: Library,
    opcode: Opcode,
    width: int,
    out: int,
    amount: int | None = None,
    polarity: tuple[bool, ...] = (),
) -> RowProgram:
    """The program of a bbop on values of `width` bits with a result of `out`.

    The operands are the program's inputs, in order. `amount` is that of a shift by a constant.
    `polarity` says which of the operands, and last whether the result, is stored complemented;
    empty where none is. Raises UserError where the library has no such program.
    """
    options: dict[str, Any] = {}
    if any(polarity):
        *args, result = polarity
        chosen = variant(str(opcode), args, result)
        if chosen is None:
            raise UserError(
                f"bbop {opcode} of this polarity", "no program has it", "complement another object"
            )
        opcode, options = Opcode(chosen.opcode), dict[str, Any](chosen.options)
    if amount is not None:
        options["amount"] = amount
    if opcode in SIGNED:
        options["signed"] = True
    if opcode is Opcode.BITCOUNT:
        options["out_width"] = out
    if opcode in (Opcode.ZEXT, Opcode.SEXT, Opcode.TRUNC):
        return library.program(NAMES[opcode], out, a_width=width, **options)
    return library.program(NAMES[opcode], width, **options)


def fill_program(
    library: Library, width: int, scalar: int, complemented: bool = False
) -> RowProgram:
    """The program that puts the low `width` bits of a number, or their complement, in all lanes."""
    return library.program("fill", width, value=~scalar if complemented else scalar)


def mul_scalar_program(
    library: Library, width: int, scalar: int, complemented: bool = False
) -> RowProgram:
    """The program of a product with a number, modulo 2**width; its complement if `complemented`."""
    return library.program("mul_const", width, value=scalar, out_complemented=complemented)


def scratch_rows(library: Library, op: BbopOp | MulScalarOp) -> int:
    """D rows that an operation's program needs besides those of its operands and result."""
    if isinstance(op, MulScalarOp):
        # Products with a number keep their sum in the rows of the result, whatever the number.
        return 0
    return program_of(library, op).scratch_rows


def program_of(library: Library, op: BbopOp) -> RowProgram:
    """The program of a bbop of the IR."""
    amount = None if op.amount is None else op.amount.value.data
    width, out = width_of(op.args[-1]), width_of(op.result)
    return bbop_program(library, op.opcode.data, width, out, amount, polarity_of(op))
