"""What is known of an integer word before the program runs: intervals and known bits.

A `Range` describes a set of two's complement words of one width (1 to 64 bits) three times: an
interval of their signed values, an interval of their unsigned values, and the bits that are the
same in all of them. Every word in the set satisfies all three, and each is used to sharpen the
others:

    x = Range.unsigned(32, 0, 255)      # what x & 0xFF gives
    x.signed_bits, x.unsigned_bits      # 9, 8
    x.contains(300)                     # False

The functions of ranges (`range_functions.py`) never leave a possible word out: where a result may
wrap around in some executions and not in others, the interval is that of the whole type. A word
of one bit is 0 or 1 when unsigned, and 0 or -1 when signed.

Source: the usual theory of abstract interpretation (Cousot and Cousot, 1977), a reduced product of
intervals and known bits.
"""

from __future__ import annotations

from dataclasses import dataclass

Interval = tuple[int, int]
"""Least and greatest value, both included."""

MOST_BITS = 64


@dataclass(frozen=True, slots=True)
class Range:
    """A set of words of `width` bits, not empty.

    `low`..`high` bound the signed values, `ulow`..`uhigh` the unsigned ones. A bit set in `zeros`
    is 0 in all words, one set in `ones` is 1 in all of them. Made by the class methods here, which
    bring the three in agreement.
    """

    width: int
    low: int
    high: int
    ulow: int
    uhigh: int
    zeros: int
    ones: int

    # -- making ----------------------------------------------------------------------------------

    @classmethod
    def full(cls, width: int) -> Range:
        """All words of this width. Raises ValueError for a width that is not 1 to 64."""
        return cls.of(width)

    @classmethod
    def constant(cls, width: int, value: int) -> Range:
        """The one word that `value` is modulo 2**width."""
        word = value & mask_of(width)
        return cls.of(width, unsigned=(word, word), zeros=~word, ones=word)

    @classmethod
    def signed(cls, width: int, low: int, high: int) -> Range:
        """Words with signed values in low..high; modulo 2**width if that is no more than one turn.

        Values that wrap around to both ends of the type give the full range.
        """
        return cls.of(width, wrap_signed(width, low, high), wrap_unsigned(width, low, high))

    @classmethod
    def unsigned(cls, width: int, low: int, high: int) -> Range:
        """The same for unsigned values."""
        return cls.signed(width, low, high)

    @classmethod
    def of(
        cls,
        width: int,
        signed: Interval | None = None,
        unsigned: Interval | None = None,
        zeros: int = 0,
        ones: int = 0,
    ) -> Range:
        """The words that satisfy all that is given; an interval that is None says nothing.

        Raises ValueError when no word does, or for a width that is not 1 to 64.
        """
        if not 1 <= width <= MOST_BITS:
            raise ValueError(f"a word has 1 to {MOST_BITS} bits, not {width}")
        half, mask = 1 << (width - 1), mask_of(width)
        low, high = signed or (-half, half - 1)
        ulow, uhigh = unsigned or (0, mask)
        facts = (max(low, -half), min(high, half - 1), max(ulow, 0), min(uhigh, mask))
        return _agree(cls(width, *facts, zeros & mask, ones & mask))

    # -- asking ----------------------------------------------------------------------------------

    def contains(self, value: int) -> bool:
        """True when the word that `value` is modulo 2**width may be in the set."""
        word = value & mask_of(self.width)
        return (
            self.low <= as_signed(self.width, word) <= self.high
            and self.ulow <= word <= self.uhigh
            and word & self.zeros == 0
            and word & self.ones == self.ones
        )

    def covers(self, other: Range) -> bool:
        """True when all three facts about this set hold for all of `other`."""
        return self.width == other.width and self.join(other) == self

    @property
    def is_full(self) -> bool:
        """True when nothing is known."""
        return self == Range.full(self.width)

    @property
    def value(self) -> int | None:
        """The unsigned value of the only word in the set, None when there may be several."""
        return self.ulow if self.ulow == self.uhigh else None

    @property
    def signed_bits(self) -> int:
        """Width from which sign extension gives back every word."""
        return signed_bits_of(self.low, self.high)

    @property
    def unsigned_bits(self) -> int:
        """Width from which zero extension gives back every word."""
        return max(1, self.uhigh.bit_length())

    @property
    def is_positive(self) -> bool:
        """True when no word is negative as a signed number."""
        return self.low >= 0

    def narrowest(self) -> tuple[int, bool]:
        """Bits from which extension gives back every word, and whether it is by the sign.

        By zeros where both take as few bits.
        """
        by_sign, by_zeros = self.signed_bits, self.unsigned_bits
        return (by_sign, True) if by_sign < by_zeros else (by_zeros, False)

    def join(self, other: Range) -> Range:
        """The smallest range that holds both sets. Raises ValueError when the widths differ."""
        if self.width != other.width:
            raise ValueError(f"a range of {self.width} bits joined with one of {other.width}")
        return Range.of(
            self.width,
            (min(self.low, other.low), max(self.high, other.high)),
            (min(self.ulow, other.ulow), max(self.uhigh, other.uhigh)),
            self.zeros & other.zeros,
            self.ones & other.ones,
        )


def mask_of(width: int) -> int:
    """All bits of a word."""
    return (1 << width) - 1


def as_signed(width: int, word: int) -> int:
    """The signed value of an unsigned word of `width` bits."""
    return word - (1 << width) if word >> (width - 1) else word


def signed_bits_of(low: int, high: int) -> int:
    """Bits of the shortest two's complement words that hold all of low..high; at least 1."""
    return 1 + max((high if high >= 0 else ~high), (low if low >= 0 else ~low)).bit_length()


def wrap_signed(width: int, low: int, high: int) -> Interval | None:
    """The signed values of all of low..high modulo 2**width, None when they cross the type's end.

    `low` and `high` are plain integers of any size.
    """
    half = 1 << (width - 1)
    turn = (low + half) >> width
    if (high + half) >> width != turn:
        return None
    return low - (turn << width), high - (turn << width)


def wrap_unsigned(width: int, low: int, high: int) -> Interval | None:
    """The unsigned values of all of low..high modulo 2**width, None when they cross 0."""
    turn = low >> width
    if high >> width != turn:
        return None
    return low - (turn << width), high - (turn << width)


def sum_range(element: Range, most: int | None, start: Range) -> Range:
    """Every partial sum of at most `most` words of `element`, with or without `start` once.

    `most` is None when the number of elements is not known: only a sum of zeros is then bounded.
    This is what a reduction's accumulator may hold, in any order of additions: it has
    log2(most) bits more than an element. Bounds that may wrap around are given up, each by itself.
    Raises ValueError when the widths differ.
    """
    if element.width != start.width:
        raise ValueError(f"a sum of {element.width}-bit words that starts with {start.width} bits")
    if most is None:
        return element.join(start) if element.value == 0 else Range.full(element.width)
    width = element.width
    half, top = 1 << (width - 1), mask_of(width)
    low = min(0, start.low) + most * min(0, element.low)
    high = max(0, start.high) + most * max(0, element.high)
    uhigh = start.uhigh + most * element.uhigh
    return Range.of(
        width,
        (low, high) if -half <= low and high < half else None,
        (0, uhigh) if uhigh <= top else None,
    )


# -- agreement of the three facts ------------------------------------------------------------------


def _agree(facts: Range) -> Range:
    """Sharpens each fact by the others until nothing changes, which is soon."""
    while True:
        sharper = _sharpen(facts)
        if sharper == facts:
            return facts
        facts = sharper


def _sharpen(facts: Range) -> Range:
    width, mask, sign = facts.width, mask_of(facts.width), 1 << (facts.width - 1)
    zeros, ones = facts.zeros, facts.ones
    ulow, uhigh = max(facts.ulow, ones), min(facts.uhigh, mask & ~zeros)
    # The least signed value has the sign bit set if it may be, and the greatest has not.
    low = max(facts.low, as_signed(width, ones | (sign & ~zeros)))
    high = min(facts.high, as_signed(width, mask & ~zeros & ~(sign & ~ones)))
    if low >= 0 or high < 0:
        ulow, uhigh = max(ulow, low & mask), min(uhigh, high & mask)
    if uhigh < sign or ulow >= sign:
        low, high = max(low, as_signed(width, ulow)), min(high, as_signed(width, uhigh))
    if low > high or ulow > uhigh or zeros & ones:
        raise ValueError(f"no word of {width} bits is all of this: {facts}")
    # Above the highest bit in which the bounds differ, all words between them are alike.
    alike = mask & ~mask_of((ulow ^ uhigh).bit_length())
    return Range(width, low, high, ulow, uhigh, zeros | (alike & ~ulow), ones | (alike & ulow))
