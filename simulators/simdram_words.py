"""What bbops do to words: one NumPy call or a few an operation, on all lanes at once.

A vertical object of `width` bits is an array of the smallest unsigned dtype that holds them, with
zeros above: lane l is element l. Signed operations look at the top bit of the width as the sign.
All functions give new arrays, and never write into their operands; a copy may give its operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cim_opt.dialects.simdram import Opcode
from cim_opt.simulators.elementwise import quiet

Words = np.ndarray[Any, np.dtype[Any]]
"""Lanes of one object: uint8, uint16, uint32 or uint64."""

_where: Callable[..., Words] = np.where


def word_dtype(width: int) -> np.dtype[Any]:
    """The smallest unsigned dtype of `width` bits, 1 to 64."""
    for size in (8, 16, 32, 64):
        if width <= size:
            return np.dtype(f"u{size // 8}")
    raise ValueError(f"no word has {width} bits")


def masked(values: Words, width: int) -> Words:
    """`values`, of the dtype for `width`, with zeros above the width."""
    if values.dtype.itemsize * 8 == width:
        return values
    return values & values.dtype.type((1 << width) - 1)


def resized(values: Words, width: int) -> Words:
    """The low `width` bits of words of any dtype, signed or not; a larger width adds zeros."""
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    unsigned = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    return masked(unsigned.astype(word_dtype(width), copy=False), width)


def signed(values: Words, width: int) -> Words:
    """The words as signed numbers of their own size: the sign fills the bits above the width."""
    seen = values.view(np.dtype(f"i{values.dtype.itemsize}"))
    spare = seen.dtype.type(values.dtype.itemsize * 8 - width)
    return (seen << spare) >> spare if spare else seen


# -- operations of equal widths ------------------------------------------------------------------

_Binary = Callable[[Words, Words, int], Words]
_Unary = Callable[[Words, int], Words]


def _negated_where(condition: Words, values: Words) -> Words:
    return _where(condition, 0 - values, values)


def _sign(values: Words, width: int) -> Words:
    return (values >> values.dtype.type(width - 1)).astype(np.bool_)


def _magnitude(values: Words, width: int) -> Words:
    return masked(_negated_where(_sign(values, width), values), width)


def _divide(a: Words, b: Words, width: int) -> Words:
    # NumPy gives 0 for integers divided by 0.
    return np.floor_divide(a, b)


def _remainder(a: Words, b: Words, width: int) -> Words:
    return a - np.floor_divide(a, b) * b


def _divide_signed(a: Words, b: Words, width: int) -> Words:
    quotient = np.floor_divide(_magnitude(a, width), _magnitude(b, width))
    return _negated_where(_sign(a, width) ^ _sign(b, width), quotient)


def _remainder_signed(a: Words, b: Words, width: int) -> Words:
    rest = _remainder(_magnitude(a, width), _magnitude(b, width), width)
    return _negated_where(_sign(a, width), rest)


def _by_sign(function: Callable[[Words, Words], Words]) -> _Binary:
    """A function of signed numbers; what it gives is seen as words again."""
    return lambda a, b, width: function(signed(a, width), signed(b, width)).view(a.dtype)


def _plain(function: Callable[[Words, Words], Words]) -> _Binary:
    return lambda a, b, width: function(a, b)


def _shift_left(a: Words, b: Words, width: int) -> Words:
    return _where(b < width, np.left_shift(a, b), a.dtype.type(0))


def _shift_right(a: Words, b: Words, width: int) -> Words:
    return _where(b < width, np.right_shift(a, b), a.dtype.type(0))


def _shift_right_signed(a: Words, b: Words, width: int) -> Words:
    amount = np.minimum(b, b.dtype.type(width - 1)).view(np.dtype(f"i{b.dtype.itemsize}"))
    return np.right_shift(signed(a, width), amount).view(a.dtype)


_BINARY: dict[Opcode, _Binary] = {
    Opcode.ADD: _plain(np.add),
    Opcode.SUB: _plain(np.subtract),
    Opcode.MUL: _plain(np.multiply),
    Opcode.DIVU: _divide,
    Opcode.DIVS: _divide_signed,
    Opcode.REMU: _remainder,
    Opcode.REMS: _remainder_signed,
    Opcode.MINU: _plain(np.minimum),
    Opcode.MINS: _by_sign(np.minimum),
    Opcode.MAXU: _plain(np.maximum),
    Opcode.MAXS: _by_sign(np.maximum),
    Opcode.AND: _plain(np.bitwise_and),
    Opcode.OR: _plain(np.bitwise_or),
    Opcode.XOR: _plain(np.bitwise_xor),
    Opcode.SHL: _shift_left,
    Opcode.SHRU: _shift_right,
    Opcode.SHRS: _shift_right_signed,
}

_UNARY: dict[Opcode, _Unary] = {
    Opcode.NOT: lambda a, width: ~a,
    Opcode.ABS: _magnitude,
    Opcode.RELU: lambda a, width: _where(_sign(a, width), a.dtype.type(0), a),
    Opcode.BITCOUNT: lambda a, width: np.bitwise_count(a).astype(a.dtype),
    Opcode.COPY: lambda a, width: a,
}

_UNSIGNED_COMPARISONS: dict[Opcode, Callable[[Words, Words], Words]] = {
    Opcode.EQ: np.equal,
    Opcode.NE: np.not_equal,
    Opcode.LTU: np.less,
    Opcode.LEU: np.less_equal,
    Opcode.GTU: np.greater,
    Opcode.GEU: np.greater_equal,
}

_SIGNED_COMPARISONS: dict[Opcode, Callable[[Words, Words], Words]] = {
    Opcode.LTS: np.less,
    Opcode.LES: np.less_equal,
    Opcode.GTS: np.greater,
    Opcode.GES: np.greater_equal,
}


# -- every operation -----------------------------------------------------------------------------


@quiet()
def compute(
    opcode: Opcode, args: Sequence[Words], width: int, out: int, amount: int | None = None
) -> Words:
    """Words of the result of a bbop.

    `width` is that of the operands (of the two values of a select), `out` that of the result;
    `amount` that of a shift by a constant. ValueError for an opcode that is not here.
    """
    if opcode in _BINARY:
        return masked(_BINARY[opcode](args[0], args[1], width), out)
    if opcode in _UNARY:
        return masked(_UNARY[opcode](args[0], width), out)
    if opcode in _UNSIGNED_COMPARISONS:
        return _UNSIGNED_COMPARISONS[opcode](args[0], args[1]).view(np.uint8)
    if opcode in _SIGNED_COMPARISONS:
        left, right = (signed(value, width) for value in args)
        return _SIGNED_COMPARISONS[opcode](left, right).view(np.uint8)
    if opcode is Opcode.SELECT:
        return _where(args[0].view(np.bool_), args[1], args[2])
    if opcode in (Opcode.ZEXT, Opcode.TRUNC):
        return resized(args[0], out)
    if opcode is Opcode.SEXT:
        wide = signed(args[0], width).astype(np.dtype(f"i{word_dtype(out).itemsize}"))
        return resized(wide, out)
    if amount is not None:
        return masked(_shifted(opcode, args[0], width, amount), out)
    raise ValueError(f"no words for {opcode}")


def _shifted(opcode: Opcode, a: Words, width: int, amount: int) -> Words:
    if opcode is Opcode.SHRS_CONST:
        seen = signed(a, width)
        return (seen >> seen.dtype.type(min(amount, width - 1))).view(a.dtype)
    if opcode not in (Opcode.SHL_CONST, Opcode.SHRU_CONST):
        raise ValueError(f"no words for {opcode}")
    if amount >= width:
        return np.zeros_like(a)
    by = a.dtype.type(amount)
    return a << by if opcode is Opcode.SHL_CONST else a >> by


@quiet()
def multiply_by(a: Words, scalar: int, width: int) -> Words:
    """Every lane times a number, modulo 2**width."""
    return masked(a * a.dtype.type(scalar & ((1 << width) - 1)), width)


def filled(scalar: int, lanes: int, width: int) -> Words:
    """The low `width` bits of a number in every lane."""
    return np.full(lanes, scalar & ((1 << width) - 1), word_dtype(width))
