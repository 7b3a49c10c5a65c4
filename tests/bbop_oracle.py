"""What a bbop gives for one lane, with Python integers: a second opinion on the simulators."""

from __future__ import annotations

from collections.abc import Sequence

from cim_opt.dialects.simdram import (
    BINARY,
    COMPARISONS,
    CONSTANT_SHIFTS,
    EXTENSIONS,
    UNARY,
    Opcode,
)


def signed(x: int, width: int) -> int:
    """The two's complement value of `width` bits."""
    return x - (1 << width) if x >> (width - 1) else x


def operand_widths(opcode: Opcode, width: int, out: int) -> tuple[list[int], int]:
    """Widths of the operands and of the result, for values of `width` bits.

    `out` is the result's width where an opcode chooses it: more than `width` for an extension,
    less for a truncation.
    """
    if opcode in BINARY:
        return [width, width], width
    if opcode in UNARY or opcode in CONSTANT_SHIFTS:
        return [width], width
    if opcode in COMPARISONS:
        return [width, width], 1
    if opcode is Opcode.SELECT:
        return [1, width, width], width
    assert (out > width) == (opcode in EXTENSIONS)
    return [width], out


def bbop_value(
    opcode: Opcode, args: Sequence[int], width: int, out: int, amount: int | None
) -> int:
    """The bits of the result for the bits of the operands, `width` bits each (but the choice)."""
    value = _value(opcode, args, width, amount)
    return value & ((1 << out) - 1)


def _value(opcode: Opcode, args: Sequence[int], width: int, amount: int | None) -> int:
    a = args[0]
    sa = signed(a, width)
    if opcode is Opcode.SELECT:
        return args[1] if a else args[2]
    if amount is not None:
        args = [a, amount]
    b = args[1] if len(args) > 1 else 0
    sb = signed(b & ((1 << width) - 1), width)
    match opcode:
        case Opcode.ADD:
            return a + b
        case Opcode.SUB:
            return a - b
        case Opcode.MUL:
            return a * b
        case Opcode.DIVU:
            return a // b if b else 0
        case Opcode.REMU:
            return a % b if b else a
        case Opcode.DIVS:
            return _quotient(sa, sb)
        case Opcode.REMS:
            return sa - _quotient(sa, sb) * sb
        case Opcode.MINU | Opcode.MAXU:
            return (min if opcode is Opcode.MINU else max)(a, b)
        case Opcode.MINS | Opcode.MAXS:
            return (min if opcode is Opcode.MINS else max)(sa, sb)
        case Opcode.AND:
            return a & b
        case Opcode.OR:
            return a | b
        case Opcode.XOR:
            return a ^ b
        case Opcode.NOT:
            return ~a
        case Opcode.ABS:
            return abs(sa)
        case Opcode.RELU:
            return max(sa, 0)
        case Opcode.BITCOUNT:
            return a.bit_count()
        case Opcode.EQ:
            return a == b
        case Opcode.NE:
            return a != b
        case Opcode.LTU:
            return a < b
        case Opcode.LTS:
            return sa < sb
        case Opcode.LEU:
            return a <= b
        case Opcode.LES:
            return sa <= sb
        case Opcode.GTU:
            return a > b
        case Opcode.GTS:
            return sa > sb
        case Opcode.GEU:
            return a >= b
        case Opcode.GES:
            return sa >= sb
        case Opcode.SHL | Opcode.SHL_CONST:
            return a << b if b < width else 0
        case Opcode.SHRU | Opcode.SHRU_CONST:
            return a >> min(b, width)
        case Opcode.SHRS | Opcode.SHRS_CONST:
            return sa >> min(b, width)
        case Opcode.ZEXT | Opcode.TRUNC | Opcode.COPY:
            return a
        case Opcode.SEXT:
            return sa


def _quotient(a: int, b: int) -> int:
    """Rounded towards zero; 0 for a division by 0."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
