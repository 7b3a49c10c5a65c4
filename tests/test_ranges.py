"""Ranges of integer words: every function against all words of small widths."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.mapping import range_functions as f
from cim_opt.mapping.ranges import Range, as_signed, mask_of, signed_bits_of, sum_range

CASES = 150


def s(width: int, word: int) -> int:
    return as_signed(width, word & mask_of(width))


def quotient(x: int, y: int) -> int:
    """Rounded towards zero; 0 for a zero divisor."""
    if y == 0:
        return 0
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


# The meaning of each operation on words a and b of w bits, as plain numbers before wrapping.
BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda w, a, b: a + b,
    "subtract": lambda w, a, b: a - b,
    "multiply": lambda w, a, b: a * b,
    "multiply_high_s": lambda w, a, b: s(w, a) * s(w, b) >> w,
    "multiply_high_u": lambda w, a, b: a * b >> w,
    "bit_and": lambda w, a, b: a & b,
    "bit_or": lambda w, a, b: a | b,
    "bit_xor": lambda w, a, b: a ^ b,
    "shift_left": lambda w, a, b: a << b if b < w else 0,
    "shift_right_s": lambda w, a, b: s(w, a) >> min(b, w),
    "shift_right_u": lambda w, a, b: a >> b,
    "divide_s": lambda w, a, b: quotient(s(w, a), s(w, b)),
    "divide_floor_s": lambda w, a, b: s(w, a) // s(w, b) if b else 0,
    "divide_ceiling_s": lambda w, a, b: -(-s(w, a) // s(w, b)) if b else 0,
    "divide_u": lambda w, a, b: a // b if b else 0,
    "divide_ceiling_u": lambda w, a, b: -(-a // b) if b else 0,
    "remainder_s": lambda w, a, b: s(w, a) - quotient(s(w, a), s(w, b)) * s(w, b),
    "remainder_u": lambda w, a, b: a % b if b else a,
    "minimum_s": lambda w, a, b: min(s(w, a), s(w, b)),
    "maximum_s": lambda w, a, b: max(s(w, a), s(w, b)),
    "minimum_u": lambda w, a, b: min(a, b),
    "maximum_u": lambda w, a, b: max(a, b),
}
TESTS: dict[str, Callable[[int, int, int], bool]] = {
    "carry_out": lambda w, a, b: a + b > mask_of(w),
    "equal": lambda w, a, b: a == b,
    "less_s": lambda w, a, b: s(w, a) < s(w, b),
    "less_u": lambda w, a, b: a < b,
}
UNARY: dict[str, Callable[[int, int], int]] = {
    "absolute": lambda w, a: abs(s(w, a)),
    "count_ones": lambda w, a: a.bit_count(),
    "count_leading_zeros": lambda w, a: w - a.bit_length(),
    "count_trailing_zeros": lambda w, a: (a & -a).bit_length() - 1 if a else w,
}


@st.composite
def ranges(draw: st.DrawFn, width: int) -> Range:
    """Intervals of both kinds, sets of a few words, known bits, and their joins."""
    words = st.integers(0, mask_of(width))
    kind = draw(st.sampled_from(["full", "signed", "unsigned", "words", "bits"]))
    if kind == "full":
        return Range.full(width)
    if kind == "signed":
        low, high = sorted(s(width, draw(words)) for _ in range(2))
        return Range.of(width, (low, high))
    if kind == "unsigned":
        low, high = sorted(draw(words) for _ in range(2))
        return Range.of(width, None, (low, high))
    if kind == "bits":
        word, known = draw(words), draw(words)
        return Range.of(width, zeros=~word & known, ones=word & known)
    found = Range.constant(width, draw(words))
    for word in draw(st.lists(words, max_size=3)):
        found = found.join(Range.constant(width, word))
    return found


def words_in(range_: Range) -> list[int]:
    return [word for word in range(1 << range_.width) if range_.contains(word)]


WIDTHS = st.integers(1, 5)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_functions_of_two_words(name: str, data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    a, b = data.draw(ranges(width)), data.draw(ranges(width))
    result = getattr(f, name)(a, b)
    assert result.width == width
    for x in words_in(a):
        for y in words_in(b):
            assert result.contains(BINARY[name](width, x, y)), (a, b, x, y, result)


@pytest.mark.parametrize("name", TESTS)
@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_comparisons(name: str, data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    a, b = data.draw(ranges(width)), data.draw(ranges(width))
    result = getattr(f, name)(a, b)
    for x in words_in(a):
        for y in words_in(b):
            assert result.contains(int(TESTS[name](width, x, y))), (a, b, x, y, result)


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_functions_of_one_word(name: str, data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    a = data.draw(ranges(width))
    result = getattr(f, name)(a)
    assert all(result.contains(UNARY[name](width, x)) for x in words_in(a)), (a, result)


@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_casts_and_select(data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    a, b, more = data.draw(ranges(width)), data.draw(ranges(width)), data.draw(st.integers(0, 3))
    wide, less = width + more, data.draw(st.integers(1, width))
    for x in words_in(a):
        assert f.extend_s(a, wide).contains(s(width, x))
        assert f.extend_u(a, wide).contains(x)
        assert f.truncate(a, less).contains(x)
    condition = data.draw(ranges(1))
    chosen = f.select(condition, a, b)
    for c in words_in(condition):
        assert all(chosen.contains(x) for x in words_in(a if c else b))
        assert f.negate(condition).contains(1 - c)


@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_joins_hold_both_and_narrowest_gives_back_every_word(data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    a, b = data.draw(ranges(width)), data.draw(ranges(width))
    joined = a.join(b)
    assert joined.covers(a) and joined.covers(b)
    assert all(joined.contains(x) for x in words_in(a) + words_in(b))
    bits, by_sign = a.narrowest()
    for x in words_in(a):
        low = x & mask_of(bits)
        assert (as_signed(bits, low) if by_sign else low) & mask_of(width) == x


@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_sums_in_any_order(data: st.DataObject) -> None:
    width = data.draw(WIDTHS)
    element, start = data.draw(ranges(width)), data.draw(ranges(width))
    values = data.draw(st.lists(st.sampled_from(words_in(element)), max_size=6))
    most = len(values) + data.draw(st.integers(0, 2))
    result = sum_range(element, most, start)
    begin = data.draw(st.sampled_from([0, *words_in(start)]))
    for first in range(len(values)):
        for last in range(first, len(values) + 1):
            assert result.contains(begin + sum(values[first:last]))
    assert result.contains(begin)


def test_facts_sharpen_each_other() -> None:
    assert Range.of(8, (0, 20)).zeros == 0b11100000
    assert Range.of(8, (-3, -1)).ulow == 253
    assert Range.of(8, zeros=0b11110000).uhigh == 15
    assert Range.of(8, None, (128, 130)).high == -126
    assert Range.of(8, (-4, 10), zeros=128).low == 0
    assert f.bit_and(Range.full(32), Range.constant(32, 0xFF)).unsigned_bits == 8


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("add", (0, 100), (0, 100), (0, 200)),
        ("multiply", (-128, 127), (-128, 127), (-16256, 16384)),
        ("subtract", (0, 255), (0, 255), (-255, 255)),
        ("divide_s", (-100, 100), (7, 9), (-14, 14)),
        ("remainder_s", (-100, 100), (7, 9), (-8, 8)),
        ("minimum_s", (-5, 100), (0, 50), (-5, 50)),
        ("shift_left", (-3, 5), (1, 4), (-48, 80)),
    ],
)
def test_exact_intervals(
    name: str, a: tuple[int, int], b: tuple[int, int], expected: tuple[int, int]
) -> None:
    result = getattr(f, name)(Range.signed(32, *a), Range.signed(32, *b))
    assert (result.low, result.high) == expected


def test_an_accumulator_grows_by_the_logarithm_of_the_length() -> None:
    product = f.multiply(Range.unsigned(32, 0, 255), Range.unsigned(32, 0, 255))
    assert product.unsigned_bits == 16
    assert sum_range(product, 64, Range.constant(32, 0)).unsigned_bits == 22
    assert sum_range(product, None, Range.constant(32, 0)).is_full
    assert sum_range(product, 1 << 20, Range.constant(32, 0)).is_full


def test_what_may_wrap_around_is_not_known() -> None:
    hundred = Range.signed(8, 0, 100)
    total = f.add(hundred, hundred)
    assert (total.low, total.high) == (-128, 127) and total.uhigh == 200
    # All of it wraps, by one turn: that is known.
    assert f.add(Range.signed(8, 100, 110), Range.signed(8, 100, 110)).high == -36
    assert Range.signed(8, 100, 200).uhigh == 200


@pytest.mark.parametrize(
    ("low", "high", "bits"), [(0, 0, 1), (-1, 0, 1), (0, 1, 2), (-128, 127, 8)]
)
def test_bits_of_signed_numbers(low: int, high: int, bits: int) -> None:
    assert signed_bits_of(low, high) == bits


@pytest.mark.parametrize("width", [0, 65])
def test_words_have_1_to_64_bits(width: int) -> None:
    with pytest.raises(ValueError, match="1 to 64 bits"):
        Range.full(width)


def test_contradictions_and_mixed_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="no word of 8 bits"):
        Range.of(8, (5, 3))
    with pytest.raises(ValueError, match="no word of 8 bits"):
        Range.of(8, zeros=1, ones=1)
    with pytest.raises(ValueError, match="joined"):
        Range.full(8).join(Range.full(16))
    with pytest.raises(ValueError, match="starts with"):
        sum_range(Range.full(8), 3, Range.full(16))
