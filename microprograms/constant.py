"""Programs that multiply by a number that is known when the program is made.

The number becomes signed digits -1, 0, 1, few of them not 0, and each of those adds or subtracts
the operand, shifted by reading other rows. The library `cim-opt` picks the polarity of the sum
before each digit so that every addition is the shorter subtract step where it can.
"""

from __future__ import annotations

from functools import lru_cache

from cim_opt.microprograms.frame import finish, rows, unsupported
from cim_opt.microprograms.model import C0, C1, Address, Counts, Operand, RowProgram, bit, count
from cim_opt.microprograms.short_steps import ShortSteps
from cim_opt.microprograms.steps import Rows, Steps

_NEVER = 1 << 30

Digit = tuple[int, int]  # (shift, 1 or -1)


def signed_digits(value: int, width: int, plus: int, minus: int) -> tuple[Digit, ...]:
    """Digits whose sum of sign << shift is `value` modulo 2^width, lowest first.

    Of all such sets one of the least cost, where a digit at `shift` costs (width - shift) times
    `plus` or `minus`, and one more.
    """
    value %= 1 << width
    # The cheapest digits from a bit up, without and with a carry into it; from the top bit down.
    plain: tuple[int, tuple[Digit, ...]] = (0, ())
    carried = plain
    for shift in range(width - 1, -1, -1):
        size = width - shift
        one = min(
            (plain[0] + plus * size + 1, ((shift, 1), *plain[1])),
            (carried[0] + minus * size + 1, ((shift, -1), *carried[1])),
        )
        plain, carried = (one, carried) if value >> shift & 1 else (plain, one)
    return plain[1]


def multiply_accumulate(
    s: Steps,
    width: int,
    *,
    value: int,
    a_width: int | None = None,
    signed: bool = False,
    complemented: bool = False,
) -> RowProgram:
    """acc = acc + value * a modulo 2^width; `complemented`: acc is stored complemented.

    A narrower a is extended, with its sign if `signed`.
    """
    a = Operand("a", width if a_width is None else a_width)
    acc = Operand("acc", width, complemented)
    short = isinstance(s, ShortSteps)
    plus, minus = (6, 7) if complemented else (7, 6)
    target = rows(acc)
    for shift, sign in signed_digits(value, width, plus if short else 8, minus if short else 8):
        addend = _grown(a, width - shift, signed)
        emit = s.add_words if (sign == 1) != complemented else s.subtract_words
        emit(target[shift:], target[shift:], addend)
    return finish(s, "mac_const", width, [acc, a], [acc])


def _grown(a: Operand, width: int, signed: bool) -> Rows:
    own = rows(a)[:width]
    return own + [own[-1] if signed else C0] * (width - len(own))


def multiply(
    s: Steps,
    width: int,
    *,
    value: int,
    a_width: int | None = None,
    signed: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = value * a modulo 2^width; a narrower a is extended, with its sign if `signed`."""
    a = Operand("a", width if a_width is None else a_width)
    out = Operand("out", width, out_complemented)
    short = _is_short(type(s), out_complemented)
    _emit(s, short, value, rows(out), _grown(a, width, signed), out_complemented)
    return finish(s, "mul_const", width, [a], [out])


def _is_short(steps: type[Steps], out_complemented: bool) -> bool:
    """Whether the steps are those of the short programs, of which alone some are complemented."""
    short = issubclass(steps, ShortSteps)
    if out_complemented and not short:
        raise unsupported("mul_const", "no complemented product in this library", "complement it")
    return short


@lru_cache(maxsize=1 << 16)
def multiply_counts(
    steps: type[Steps], width: int, value: int, out_complemented: bool = False
) -> Counts:
    """The counts of `multiply` by `value` with these steps, without the program."""
    short = _is_short(steps, out_complemented)
    counted = _CountedSteps(steps)
    out, a = rows(Operand("out", width)), rows(Operand("a", width))
    _emit(counted, short, value, out, a, out_complemented)
    return counted.counts


def _emit(s: Steps, short: bool, value: int, out: Rows, a: Rows, out_complemented: bool) -> None:
    """The steps of a product; those of `short` prices where the steps are."""
    width = len(out)
    # The published form is one addition a set bit.
    prices = ((6, 6), (7, 6), (6, 7), (6, _NEVER)) if short else ((8, _NEVER),)
    choices = {signed_digits(value, width, plus, minus) for plus, minus in prices}
    steps = min(
        _plan(order, width, short, out_complemented)
        for digits in choices
        for order in (digits, digits[::-1])
    )[1]
    sum_so_far = _Sum(s, out, a)
    for digit, complemented in steps:
        sum_so_far.take(digit, complemented)
    sum_so_far.fill(out_complemented)


class _CountedSteps(Steps):
    """Counts the commands that steps of a library take for words, and keeps none.

    What an operation on words takes depends on how many rows it has, and on nothing else.
    """

    def __init__(self, steps: type[Steps]) -> None:
        super().__init__()
        self.steps = steps
        self.counts = Counts(0, 0)

    def copy(self, out: Rows, source: Rows) -> None:
        self.counts += _word_counts(self.steps, "copy", len(out))

    def invert(self, out: Rows, source: Rows) -> None:
        self.counts += _word_counts(self.steps, "invert", len(out))

    def add_words(self, out: Rows, a: Rows, b: Rows, carry: Address = C0) -> None:
        self.counts += _word_counts(self.steps, "add_words", len(out))

    def subtract_words(self, out: Rows, a: Rows, b: Rows, borrow: Address = C0) -> None:
        self.counts += _word_counts(self.steps, "subtract_words", len(out))


@lru_cache(maxsize=1024)
def _word_counts(steps: type[Steps], operation: str, size: int) -> Counts:
    """What an operation on `size` rows takes."""
    emitted = steps()
    out, a, b = ([bit(name, index) for index in range(size)] for name in ("out", "a", "b"))
    if operation in ("copy", "invert"):
        getattr(emitted, operation)(out, a)
    else:
        getattr(emitted, operation)(out, a, b)
    return count(emitted.commands)


def _plan(
    digits: tuple[Digit, ...], width: int, short: bool, out_complemented: bool
) -> tuple[int, tuple[tuple[Digit, bool], ...]]:
    """The polarity of the sum after each digit that makes the whole cheapest, and the cost."""
    ways: dict[bool, tuple[int, tuple[tuple[Digit, bool], ...]]] = {}
    lowest = width
    for number, digit in enumerate(digits):
        fresh: dict[bool, tuple[int, tuple[tuple[Digit, bool], ...]]] = {}
        before = ways if number else {False: (0, ())}
        for after in (False, True) if short else (False,):
            options = [
                (cost + price, (*path, (digit, after)))
                for polarity, (cost, path) in before.items()
                if (price := _price(digit, lowest, width, polarity, after, short)) < _NEVER
            ]
            if options:
                fresh[after] = min(options)
        ways = fresh
        lowest = min(lowest, digit[0])
    if not digits:
        return 0, ()
    # A sum that ends in the other polarity is complemented: two commands a row.
    return min(
        (cost + (2 * (width - lowest) if polarity != out_complemented else 0), path)
        for polarity, (cost, path) in ways.items()
    )


@lru_cache(maxsize=1 << 16)
def _price(digit: Digit, lowest: int, width: int, before: bool, after: bool, short: bool) -> int:
    """What `_Sum.take` issues for a digit, or `_NEVER` where no step has these polarities."""
    shift, sign = digit
    size = width - max(shift, lowest)
    copied = width - shift - size if sign > 0 and before == after else 0
    size = width - shift - copied
    if lowest == width and sign > 0:
        return (2 if after else 1) * (width - shift)
    flipped = 2 * max(shift - lowest, 0) if before != after else 0
    cost = copied * (2 if after else 1) + flipped
    if (sign > 0) == before or (sign < 0 and lowest == width):
        return cost + (6 * size + 1 if short else 8 * size + 1)
    if before != after:
        return _NEVER
    if sign < 0 and not before:
        return cost + (6 * size + 1 if short else 8 * size + 1)
    return cost + (7 * size if short else 8 * size + 1)


class _Sum:
    """The sum of some digits times an operand, in the rows from the lowest shift so far up."""

    def __init__(self, s: Steps, out: Rows, a: Rows) -> None:
        self.s = s
        self.out = list(out)
        self.a = list(a)
        self.lowest = len(out)
        self.complemented = False

    def take(self, digit: Digit, complemented: bool) -> None:
        """Add the digit, and keep the sum in the polarity asked for."""
        shift, sign = digit
        first = self.lowest == len(self.out)
        if first and sign > 0:
            self._move(shift, len(self.out), complemented)
        elif sign > 0 and shift < self.lowest and complemented == self.complemented:
            # Nothing below the sum so far: the new bits are those of the operand.
            self._move(shift, self.lowest, complemented)
            self._combine(self.lowest, shift, sign, complemented)
        else:
            self._flip(shift, complemented)
            self._combine(shift, shift, sign, complemented)
        self.lowest = min(self.lowest, shift)
        self.complemented = complemented

    def fill(self, complemented: bool) -> None:
        """Zeros below the lowest digit, and the polarity of the result."""
        if self.complemented != complemented:
            self.s.invert(self.out[self.lowest :], self.out[self.lowest :])
        zero = C1 if complemented else C0
        self.s.copy(self.out[: self.lowest], [zero] * self.lowest)

    def _move(self, start: int, stop: int, complemented: bool) -> None:
        emit = self.s.invert if complemented else self.s.copy
        emit(self.out[start:stop], self.a[: stop - start])

    def _flip(self, shift: int, complemented: bool) -> None:
        """Complement the rows of the sum below the digit, where the polarity changes."""
        if complemented != self.complemented and self.lowest < shift:
            self.s.invert(self.out[self.lowest : shift], self.out[self.lowest : shift])

    def _combine(self, start: int, shift: int, sign: int, complemented: bool) -> None:
        """The rows from `start` up of sum + sign * (a << shift)."""
        target = self.out[start:]
        addend = self.a[start - shift : len(self.out) - shift]
        zero: Address = C1 if self.complemented else C0
        total: Rows = [row if start + i >= self.lowest else zero for i, row in enumerate(target)]
        if complemented != self.complemented:
            # x - stored - 1: the complement of a difference, or a sum of a complemented one.
            self.s.subtract_words(target, addend, total, C1)
        elif (sign > 0) != complemented:
            self.s.add_words(target, total, addend)
        else:
            self.s.subtract_words(target, total, addend)
