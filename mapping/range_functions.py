"""Ranges of results from ranges of operands: one function an integer operation.

    add(Range.unsigned(8, 0, 100), Range.unsigned(8, 0, 100))    # unsigned 0..200, signed: unknown

Each gives a range that holds `f(a, b)` for all words a and b in the operands' ranges, which have
one width. The operations are those of the `pattern` dialect: everything wraps around; x / 0 is 0
and x % 0 is x; INT_MIN / -1 is INT_MIN, with remainder 0; a shift by the width or more, taken as
an unsigned amount, gives 0 or copies of the sign. Signed operations have names that end in _s,
unsigned ones in _u.
"""

from __future__ import annotations

from collections.abc import Callable

from cim_opt.mapping.ranges import (
    Interval,
    Range,
    mask_of,
    signed_bits_of,
    wrap_signed,
    wrap_unsigned,
)

# -- sums and products ---------------------------------------------------------------------------


def add(a: Range, b: Range) -> Range:
    """a + b."""
    known = _low_bits(min(_known_low_bits(a), _known_low_bits(b)), a.ones + b.ones)
    return _wrapped(
        a.width,
        (a.low + b.low, a.high + b.high),
        (a.ulow + b.ulow, a.uhigh + b.uhigh),
        *known,
    )


def subtract(a: Range, b: Range) -> Range:
    """a - b."""
    known = _low_bits(min(_known_low_bits(a), _known_low_bits(b)), a.ones - b.ones)
    return _wrapped(
        a.width,
        (a.low - b.high, a.high - b.low),
        (a.ulow - b.uhigh, a.uhigh - b.ulow),
        *known,
    )


def multiply(a: Range, b: Range) -> Range:
    """a * b, modulo 2**width."""
    zeros, ones = _low_bits(min(_known_low_bits(a), _known_low_bits(b)), a.ones * b.ones)
    return _wrapped(
        a.width,
        _corners(lambda x, y: x * y, (a.low, a.high), (b.low, b.high)),
        (a.ulow * b.ulow, a.uhigh * b.uhigh),
        zeros | mask_of(_zero_low_bits(a) + _zero_low_bits(b)),
        ones,
    )


def multiply_high_s(a: Range, b: Range) -> Range:
    """The upper half of the signed product of 2 * width bits."""
    low, high = _corners(lambda x, y: x * y, (a.low, a.high), (b.low, b.high))
    return _wrapped(a.width, (low >> a.width, high >> a.width), None)


def multiply_high_u(a: Range, b: Range) -> Range:
    """The upper half of the unsigned product of 2 * width bits."""
    unsigned = (a.ulow * b.ulow >> a.width, a.uhigh * b.uhigh >> a.width)
    return _wrapped(a.width, None, unsigned)


def carry_out(a: Range, b: Range) -> Range:
    """Whether the unsigned sum wraps around: one bit."""
    return _truth(a.ulow + b.ulow > mask_of(a.width), a.uhigh + b.uhigh <= mask_of(a.width))


def absolute(a: Range) -> Range:
    """|a|; the smallest number stays itself, which is right as an unsigned one."""
    ends = (abs(a.low), abs(a.high))
    least = 0 if a.low <= 0 <= a.high else min(ends)
    return _wrapped(a.width, None, (least, max(ends)))


# -- bits ----------------------------------------------------------------------------------------


def bit_and(a: Range, b: Range) -> Range:
    """a & b."""
    unsigned = (0, min(a.uhigh, b.uhigh))
    return Range.of(a.width, _bits_fit(a, b), unsigned, a.zeros | b.zeros, a.ones & b.ones)


def bit_or(a: Range, b: Range) -> Range:
    """a | b."""
    unsigned = (max(a.ulow, b.ulow), mask_of(a.width))
    return Range.of(a.width, _bits_fit(a, b), unsigned, a.zeros & b.zeros, a.ones | b.ones)


def bit_xor(a: Range, b: Range) -> Range:
    """a ^ b."""
    zeros = (a.zeros & b.zeros) | (a.ones & b.ones)
    ones = (a.zeros & b.ones) | (a.ones & b.zeros)
    return Range.of(a.width, _bits_fit(a, b), None, zeros, ones)


def count_ones(a: Range) -> Range:
    """How many bits are set."""
    unsigned = (a.ones.bit_count(), a.width - a.zeros.bit_count())
    return _wrapped(a.width, None, unsigned)


def count_leading_zeros(a: Range) -> Range:
    """Zero bits above the highest set one; the width when there is none."""
    unsigned = (a.width - a.uhigh.bit_length(), a.width - a.ulow.bit_length())
    return _wrapped(a.width, None, unsigned)


def count_trailing_zeros(a: Range) -> Range:
    """Zero bits below the lowest set one; the width when there is none."""
    lowest = (a.ones & -a.ones).bit_length() - 1 if a.ones else a.width
    return _wrapped(a.width, None, (_zero_low_bits(a), lowest))


# -- shifts --------------------------------------------------------------------------------------


def shift_left(a: Range, amount: Range) -> Range:
    """a << amount."""
    width, zero = a.width, Range.constant(a.width, 0)
    if amount.ulow >= width:
        return zero
    low, high = amount.ulow, min(amount.uhigh, width - 1)
    known = (mask_of(_zero_low_bits(a) + low), 0)
    if low == high:
        known = (a.zeros << low | mask_of(low), a.ones << low)
    shifted = _wrapped(
        width,
        _corners(lambda x, n: x << n, (a.low, a.high), (low, high)),
        (a.ulow << low, a.uhigh << high),
        *known,
    )
    return shifted if amount.uhigh < width else shifted.join(zero)


def shift_right_s(a: Range, amount: Range) -> Range:
    """a >> amount, filled with the sign."""
    most = a.width - 1
    low, high = min(amount.ulow, most), min(amount.uhigh, most)
    return Range.of(a.width, _corners(lambda x, n: x >> n, (a.low, a.high), (low, high)))


def shift_right_u(a: Range, amount: Range) -> Range:
    """a >> amount, filled with zeros."""
    low, high = min(amount.ulow, a.width), min(amount.uhigh, a.width)
    zeros, ones = 0, 0
    if low == high:
        fill = mask_of(a.width) & ~(mask_of(a.width) >> low)
        zeros, ones = a.zeros >> low | fill, a.ones >> low
    return Range.of(a.width, None, (a.ulow >> high, a.uhigh >> low), zeros, ones)


# -- division ------------------------------------------------------------------------------------


def divide_s(a: Range, b: Range) -> Range:
    """a / b, rounded towards zero."""
    return _quotient_s(a, b, lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))


def divide_floor_s(a: Range, b: Range) -> Range:
    """a / b, rounded down."""
    return _quotient_s(a, b, lambda x, y: x // y)


def divide_ceiling_s(a: Range, b: Range) -> Range:
    """a / b, rounded up."""
    return _quotient_s(a, b, lambda x, y: -(-x // y))


def divide_u(a: Range, b: Range) -> Range:
    """a / b of unsigned numbers, rounded down."""
    return _quotient_u(a, b, lambda x, y: x // y)


def divide_ceiling_u(a: Range, b: Range) -> Range:
    """a / b of unsigned numbers, rounded up."""
    return _quotient_u(a, b, lambda x, y: -(-x // y))


def remainder_s(a: Range, b: Range) -> Range:
    """a - (a / b) * b: it has the dividend's sign, and is less than the divisor."""
    low, high = min(a.low, 0), max(a.high, 0)
    if not b.low <= 0 <= b.high:
        most = max(abs(b.low), abs(b.high)) - 1
        low, high = max(low, -most), min(high, most)
    return Range.of(a.width, (low, high))


def remainder_u(a: Range, b: Range) -> Range:
    """The same of unsigned numbers."""
    if b.ulow == 0:
        return Range.of(a.width, None, (0, a.uhigh))
    if a.uhigh < b.ulow:
        return a
    return Range.of(a.width, None, (0, min(a.uhigh, b.uhigh - 1)))


# -- choices and comparisons -----------------------------------------------------------------------


def minimum_s(a: Range, b: Range) -> Range:
    """The smaller signed number."""
    return _chosen(a, b, signed=(min(a.low, b.low), min(a.high, b.high)))


def maximum_s(a: Range, b: Range) -> Range:
    """The greater signed number."""
    return _chosen(a, b, signed=(max(a.low, b.low), max(a.high, b.high)))


def minimum_u(a: Range, b: Range) -> Range:
    """The smaller unsigned number."""
    return _chosen(a, b, unsigned=(min(a.ulow, b.ulow), min(a.uhigh, b.uhigh)))


def maximum_u(a: Range, b: Range) -> Range:
    """The greater unsigned number."""
    return _chosen(a, b, unsigned=(max(a.ulow, b.ulow), max(a.uhigh, b.uhigh)))


def select(condition: Range, a: Range, b: Range) -> Range:
    """a where the condition, one bit, is set, else b."""
    if condition.value is None:
        return a.join(b)
    return a if condition.value else b


def equal(a: Range, b: Range) -> Range:
    """a == b: one bit, as all comparisons."""
    apart = (
        a.high < b.low
        or b.high < a.low
        or a.uhigh < b.ulow
        or b.uhigh < a.ulow
        or a.ones & b.zeros
        or a.zeros & b.ones
    )
    return _truth(a.value is not None and a.value == b.value, bool(apart))


def less_s(a: Range, b: Range) -> Range:
    """a < b of signed numbers."""
    return _truth(a.high < b.low, a.low >= b.high)


def less_u(a: Range, b: Range) -> Range:
    """a < b of unsigned numbers."""
    return _truth(a.uhigh < b.ulow, a.ulow >= b.uhigh)


def negate(condition: Range) -> Range:
    """Not: the other value of one bit."""
    return bit_xor(condition, Range.constant(1, 1))


# -- widths ----------------------------------------------------------------------------------------


def extend_s(a: Range, width: int) -> Range:
    """The same signed number in more bits."""
    fill = mask_of(width) & ~mask_of(a.width)
    sign = 1 << (a.width - 1)
    zeros = a.zeros | (fill if a.zeros & sign else 0)
    ones = a.ones | (fill if a.ones & sign else 0)
    return Range.of(width, (a.low, a.high), None, zeros, ones)


def extend_u(a: Range, width: int) -> Range:
    """The same unsigned number in more bits."""
    fill = mask_of(width) & ~mask_of(a.width)
    return Range.of(width, None, (a.ulow, a.uhigh), a.zeros | fill, a.ones)


def truncate(a: Range, width: int) -> Range:
    """The low bits."""
    low = mask_of(width)
    return _wrapped(width, (a.low, a.high), (a.ulow, a.uhigh), a.zeros & low, a.ones & low)


# -- helpers ---------------------------------------------------------------------------------------


def _wrapped(
    width: int, signed: Interval | None, unsigned: Interval | None, zeros: int = 0, ones: int = 0
) -> Range:
    """The words of results that are known as plain integers, before wrapping around.

    Either interval alone says all that there is; as numbers modulo 2**width both say something
    about signed and about unsigned values.
    """
    result = Range.of(width, zeros=zeros, ones=ones)
    for interval in (signed, unsigned):
        if interval is not None:
            known = (wrap_signed(width, *interval), wrap_unsigned(width, *interval))
            more = Range.of(width, *known)
            result = Range.of(
                width,
                (max(result.low, more.low), min(result.high, more.high)),
                (max(result.ulow, more.ulow), min(result.uhigh, more.uhigh)),
                result.zeros | more.zeros,
                result.ones | more.ones,
            )
    return result


def _corners(function: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    """Bounds of a function that is monotone in each operand when the other one is fixed."""
    values = [function(x, y) for x in a for y in b]
    return min(values), max(values)


def _known_low_bits(a: Range) -> int:
    """How many of the lowest bits are known, without a gap."""
    unknown = ~(a.zeros | a.ones)
    return min((unknown & -unknown).bit_length() - 1, a.width)


def _zero_low_bits(a: Range) -> int:
    """How many of the lowest bits are known to be 0, without a gap."""
    return min((~a.zeros & -~a.zeros).bit_length() - 1, a.width)


def _low_bits(count: int, value: int) -> tuple[int, int]:
    """Known zeros and ones of a word whose lowest `count` bits are those of `value`."""
    return ~value & mask_of(count), value & mask_of(count)


def _bits_fit(a: Range, b: Range) -> Interval:
    """Signed values of a bitwise function: bits that are all sign in both are so in the result."""
    bits = max(signed_bits_of(a.low, a.high), signed_bits_of(b.low, b.high))
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _quotient_s(a: Range, b: Range, divide: Callable[[int, int], int]) -> Range:
    """Quotients of signed numbers: extreme for the extreme dividends and divisors of each sign."""
    divisors = [y for y in (b.low, b.high, -1, 1) if y and b.low <= y <= b.high]
    values = [divide(x, y) for x in (a.low, a.high) for y in divisors]
    if b.low <= 0 <= b.high:
        values.append(0)
    return _wrapped(a.width, (min(values), max(values)), None)


def _quotient_u(a: Range, b: Range, divide: Callable[[int, int], int]) -> Range:
    if b.uhigh == 0:
        return Range.constant(a.width, 0)
    low = 0 if b.ulow == 0 else divide(a.ulow, b.uhigh)
    return Range.of(a.width, None, (low, divide(a.uhigh, max(1, b.ulow))))


def _chosen(
    a: Range, b: Range, signed: Interval | None = None, unsigned: Interval | None = None
) -> Range:
    """One of a and b, of which one interval is known better than that."""
    either = a.join(b)
    return Range.of(
        a.width,
        signed or (either.low, either.high),
        unsigned or (either.ulow, either.uhigh),
        either.zeros,
        either.ones,
    )


def _truth(always: bool, never: bool) -> Range:
    """One bit that is set always, never, or who knows."""
    if always or never:
        return Range.constant(1, int(always))
    return Range.full(1)
