"""NumPy meaning of the integer operations, on arrays or NumPy scalars of one signless type.

Values of iN are held as signed NumPy integers (i1 as bool, index as int64), and unsigned
operations look at the same bits through a view. Everything wraps around. What a C compiler leaves
undefined is defined: x / 0 = 0 and x % 0 = x; INT_MIN / -1 = INT_MIN with remainder 0; a shift by
the width or more, taken as an unsigned amount, gives 0 or the sign. Callers switch NumPy's
warnings off once (`elementwise.quiet`), not here, because a context for each call costs more than
a small operation.

An i1 is 0 or 1 when unsigned and 0 or -1 when signed; its functions are truth tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Values = Any
"""A NumPy array or a NumPy scalar."""
Function = Callable[..., Values]
Unary = Callable[[Values], Values]
Binary = Callable[[Values, Values], Values]
DType = np.dtype[Any]

where: Callable[[Values, Values, Values], Values] = np.where
"""np.where, typed as the other functions here."""

_UNSIGNED: dict[DType, DType] = {
    np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)
}


def unsigned_of(dtype: DType) -> DType:
    """The dtype that shows the bits of `dtype` as an unsigned number; bool stays bool."""
    return _UNSIGNED.get(dtype, dtype)


def on_unsigned(function: Binary, dtype: DType) -> Binary:
    """`function` on the unsigned view of two operands, its result seen as `dtype` again."""
    unsigned = unsigned_of(dtype)
    return lambda a, b: function(a.view(unsigned), b.view(unsigned)).view(dtype)


def compare_unsigned(function: Binary, dtype: DType) -> Binary:
    """A comparison of the unsigned views of two operands."""
    unsigned = unsigned_of(dtype)
    return lambda a, b: function(a.view(unsigned), b.view(unsigned))


def divide_signed(a: Values, b: Values) -> Values:
    """a / b, rounded towards zero; NumPy rounds down, which is corrected here."""
    quotient = np.floor_divide(a, b)
    rest = a - quotient * b
    # The rest has the divisor's sign. Only where that is not the dividend's was anything rounded
    # the wrong way. A zero divisor leaves rest == a, so nothing is corrected there.
    wrong = (rest != 0) & ((rest ^ a) < 0)
    return quotient + wrong


def remainder_signed(a: Values, b: Values) -> Values:
    """a - (a / b) * b: has the dividend's sign, and is the dividend when b is 0."""
    return a - divide_signed(a, b) * b


def divide_ceiling(a: Values, b: Values) -> Values:
    """a / b, rounded up; 0 when b is 0."""
    quotient = np.floor_divide(a, b)
    return quotient + ((a - quotient * b != 0) & (b != 0))


def remainder_unsigned(a: Values, b: Values) -> Values:
    """a - (a / b) * b of unsigned operands; the dividend when b is 0."""
    return a - np.floor_divide(a, b) * b


def multiply_extended(a: Values, b: Values) -> tuple[Values, Values]:
    """Low and high half of the product of two signed or two unsigned 8..64 bit numbers."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{bits // 4}")
        product = a.astype(wide) * b.astype(wide)
        return product.astype(a.dtype), (product >> wide.type(bits)).astype(a.dtype)
    return a * b, _high_64(a, b)


def _high_64(a: Values, b: Values) -> Values:
    """High 64 bits of a 64 x 64 bit product by four 32 x 32 bit ones, as in long multiplication."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    a_low, a_high, b_low, b_high = ua & mask, ua >> half, ub & mask, ub >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & mask)
    high = a_high * b_high + (middle >> half) + (other >> half)
    if a.dtype.kind == "u":
        return high
    # A negative operand counts 2**64 too much as an unsigned one.
    signed = high.view(np.int64)
    return signed - where(a < 0, b, np.int64(0)) - where(b < 0, a, np.int64(0))


def multiply_extended_on_unsigned(dtype: DType) -> Binary:
    """`multiply_extended` of the unsigned views."""
    unsigned = unsigned_of(dtype)

    def function(a: Values, b: Values) -> tuple[Values, Values]:
        low, high = multiply_extended(a.view(unsigned), b.view(unsigned))
        return low.view(dtype), high.view(dtype)

    return function


def add_extended_on_unsigned(dtype: DType) -> Binary:
    """Sum, and whether it wrapped around as an unsigned number."""
    unsigned = unsigned_of(dtype)

    def function(a: Values, b: Values) -> tuple[Values, Values]:
        total = np.add(a, b)
        return total, total.view(unsigned) < a.view(unsigned)

    return function


def _absolute(dtype: DType) -> Unary:
    return np.abs


def count_ones(dtype: DType) -> Unary:
    """Number of set bits, as a number of the operand's type."""
    unsigned = unsigned_of(dtype)
    return lambda a: np.bitwise_count(a.view(unsigned)).astype(dtype)


def count_leading_zeros(dtype: DType) -> Unary:
    """Zero bits above the highest set one; the width when there is none."""
    unsigned, bits = unsigned_of(dtype), dtype.itemsize * 8

    def function(a: Values) -> Values:
        smeared = a.view(unsigned)
        shift = 1
        while shift < bits:
            smeared = smeared | (smeared >> unsigned.type(shift))
            shift *= 2
        return np.bitwise_count(~smeared).astype(dtype)

    return function


def count_trailing_zeros(dtype: DType) -> Unary:
    """Zero bits below the lowest set one; the width when there is none."""
    unsigned = unsigned_of(dtype)
    one = dtype.type(1)
    return lambda a: np.bitwise_count((~a & (a - one)).view(unsigned)).astype(dtype)


def integer_power(a: Values, exponent: Values) -> Values:
    """a ** exponent by squaring, wrapping; a negative exponent gives 0, except for 1 and -1."""
    one = a.dtype.type(1)
    base = a
    result: Values = np.ones_like(a * exponent)
    for bit in range(a.dtype.itemsize * 8 - 1):
        odd = (exponent >> a.dtype.type(bit)) & one
        result = where(odd != 0, result * base, result)
        base = base * base
    odd = (exponent & one) != 0
    inverse = where(a == one, one, where(a == -one, where(odd, -one, one), 0 * a))
    return where(exponent < 0, inverse, result)


_AND, _OR, _XOR, _NOT = np.logical_and, np.logical_or, np.logical_xor, np.logical_not


def _but(a: Values, b: Values) -> Values:
    return _AND(a, _NOT(b))


def _first(a: Values, b: Values) -> Values:
    return _AND(a, _OR(b, True))


def _same(a: Values) -> Values:
    return a


def _add_extended_i1(a: Values, b: Values) -> tuple[Values, Values]:
    return _XOR(a, b), _AND(a, b)


def _multiply_extended_i1(a: Values, b: Values) -> tuple[Values, Values]:
    # Signed, -1 * -1 = 1 = 0b01: the high bit is 0 as well.
    return _AND(a, b), _but(a, _OR(a, b))


TRUTH_TABLES: dict[str, Function] = {
    "arith.addi": _XOR,
    "arith.subi": _XOR,
    "arith.muli": _AND,
    "arith.divui": _AND,
    "arith.divsi": _AND,
    "arith.floordivsi": _AND,
    "arith.ceildivsi": _AND,
    "arith.ceildivui": _AND,
    "arith.remui": _but,
    "arith.remsi": _but,
    "arith.shli": _but,
    "arith.shrui": _but,
    "arith.shrsi": _first,
    # As signed numbers true is -1, the smaller one.
    "arith.minsi": _OR,
    "arith.maxsi": _AND,
    "arith.minui": _AND,
    "arith.maxui": _OR,
    "arith.andi": _AND,
    "arith.ori": _OR,
    "arith.xori": _XOR,
    "arith.addui_extended": _add_extended_i1,
    "arith.mului_extended": _multiply_extended_i1,
    "arith.mulsi_extended": _multiply_extended_i1,
    "math.absi": _same,
    "math.ctpop": _same,
    "math.ctlz": _NOT,
    "math.cttz": _NOT,
}
"""The same operations on i1, held as bool."""

BINARY: dict[str, Binary] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": divide_signed,
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": divide_ceiling,
    "arith.remsi": remainder_signed,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    # NumPy's shifts by the width or more, or by a negative amount, give 0 or the sign.
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.mulsi_extended": multiply_extended,
    "math.ipowi": integer_power,
}
"""Functions of two signed operands, for every width of 8 bits and more."""

BINARY_UNSIGNED: dict[str, Binary] = {
    "arith.divui": np.floor_divide,
    "arith.ceildivui": divide_ceiling,
    "arith.remui": remainder_unsigned,
    "arith.minui": np.minimum,
    "arith.maxui": np.maximum,
    "arith.shrui": np.right_shift,
}
"""Functions of two operands that are seen as unsigned."""

FOR_TYPE: dict[str, Callable[[DType], Function]] = {
    "arith.addui_extended": add_extended_on_unsigned,
    "arith.mului_extended": multiply_extended_on_unsigned,
    "math.absi": _absolute,
    "math.ctpop": count_ones,
    "math.ctlz": count_leading_zeros,
    "math.cttz": count_trailing_zeros,
}
"""Functions that are made for a type."""

_SIGNED_COMPARISONS: tuple[Binary, ...] = (np.less, np.less_equal, np.greater, np.greater_equal)
_SIGNED_COMPARISONS_I1: tuple[Binary, ...] = (
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
)


def comparison(predicate: int, dtype: DType) -> Binary:
    """The function of an `arith.cmpi` with this predicate number (0 eq, 1 ne, 2.. s, 6.. u)."""
    if predicate == 0:
        return np.equal
    if predicate == 1:
        return np.not_equal
    if predicate >= 6:
        return compare_unsigned(_SIGNED_COMPARISONS[predicate - 6], dtype)
    table = _SIGNED_COMPARISONS_I1 if dtype == np.bool_ else _SIGNED_COMPARISONS
    return table[predicate - 2]


def binary(name: str, dtype: DType) -> Function | None:
    """The function of integer operation `name` on values of `dtype`; None when not an integer op.

    Also the unary bit counts and `absi`. `*_extended` operations give a tuple (low, high) or
    (sum, overflow).
    """
    if dtype == np.bool_:
        return TRUTH_TABLES.get(name)
    if name in BINARY_UNSIGNED:
        return on_unsigned(BINARY_UNSIGNED[name], dtype)
    if name in FOR_TYPE:
        return FOR_TYPE[name](dtype)
    return BINARY.get(name)


def truncate(dtype: DType) -> Unary:
    """Keeps the low bits."""
    if dtype == np.bool_:
        return lambda a: (a & a.dtype.type(1)) != 0
    return lambda a: a.astype(dtype)


def extend_signed(source: DType, target: DType) -> Unary:
    """Same number as signed; i1 true is -1. Also truncates, for index casts."""
    if source == target:
        return lambda a: a
    if source == np.bool_:
        return lambda a: np.negative(a.astype(target))
    if target.itemsize < source.itemsize:
        return truncate(target)
    return lambda a: a.astype(target)


def extend_unsigned(source: DType, target: DType) -> Unary:
    """Same number as unsigned."""
    unsigned = unsigned_of(source)
    return lambda a: a.view(unsigned).astype(target)
