"""Recurrences of multiplication, division and counting: the steps of proofs by induction.

Each says what its words are after i steps, in two ways: `closed` by ordinary arithmetic on the
inputs of one lane, and `step` as terms of the words one step earlier. That the recurrence ends in
the right result follows from three facts about integers, which `lemmas` proves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cim_opt.microprograms.proofs_meaning import Term, Words, bit_term, load_z3, resized

Lane = Mapping[str, int]


class Recurrence(Protocol):
    """The words of a computation, step by step. Word k has `sizes(i)[k]` bits after i steps.

    A step is complete when rows hold its `needed` words. `extras` are single bits that rows may
    hold besides. The program is cut after the steps `first` to `last`: after 0 too where it
    computes the words of step 0 first, after `steps` too where the result is not one of them.
    """

    steps: int
    first: int
    last: int

    def needed(self, step: int) -> set[int]: ...

    def sizes(self, step: int) -> list[int]: ...
    def closed(self, step: int, lane: Lane) -> list[int]: ...
    def start(self, words: Words) -> list[Term]: ...
    def step(self, step: int, state: Sequence[Term], words: Words) -> list[Term]: ...
    def invariant(self, step: int, state: Sequence[Term], words: Words) -> Any: ...
    def extras(self, state: Sequence[Term], words: Words) -> list[Term]: ...
    def closed_extras(self, step: int, lane: Lane) -> list[int]: ...
    def result(self, state: Sequence[Term], words: Words) -> Term: ...


def signed_value(value: int, width: int) -> int:
    """The number that a word of `width` bits is as two's complement."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


class Product:
    """acc + a * b, one bit of the factor `by` a step; without `acc` the sum starts at 0."""

    def __init__(
        self, width: int, by: str, other: str, sizes: Mapping[str, int], signed: bool, sign: int = 1
    ) -> None:
        self.width = width
        self.by, self.other = by, other
        self.signed = signed and sizes[by] < width
        self.steps = sizes[by]
        self.first, self.last = 1, self.steps - 1
        self.size = sizes[other]
        self.extend_signed = signed
        self.accumulates = "acc" in sizes
        self.sign = sign

    def needed(self, step: int) -> set[int]:
        return {0}

    def sizes(self, step: int) -> list[int]:
        return [self.width]

    def closed(self, step: int, lane: Lane) -> list[int]:
        factor = lane[self.by] % (1 << step)
        if self.signed and step == self.steps:
            factor = signed_value(lane[self.by], self.steps)
        other = lane[self.other]
        if self.extend_signed:
            other = signed_value(other, self.size)
        return [(lane.get("acc", 0) + self.sign * factor * other) % (1 << self.width)]

    def start(self, words: Words) -> list[Term]:
        z3 = load_z3()
        return [words["acc"] if self.accumulates else z3.BitVecVal(0, self.width)]

    def step(self, step: int, state: Sequence[Term], words: Words) -> list[Term]:
        z3 = load_z3()
        (total,) = state
        row = resized(words[self.other], self.width, self.extend_signed) << step
        bit = z3.Extract(step, step, words[self.by])
        sign = -self.sign if self.signed and step == self.steps - 1 else self.sign
        return [z3.If(bit == 1, total + row if sign > 0 else total - row, total)]

    def invariant(self, step: int, state: Sequence[Term], words: Words) -> Any:
        """A sum without accumulator fits the rows that were written."""
        z3 = load_z3()
        rows = self.size if step == 1 else step + self.size
        if self.accumulates or step == 0 or rows >= self.width:
            return z3.BoolVal(True)
        low = z3.Extract(rows - 1, 0, state[0])
        return state[0] == resized(low, self.width, self.extend_signed)

    def extras(self, state: Sequence[Term], words: Words) -> list[Term]:
        return []

    def closed_extras(self, step: int, lane: Lane) -> list[int]:
        return []

    def result(self, state: Sequence[Term], words: Words) -> Term:
        return state[0]


class ProductThenSum(Product):
    """acc + a * b of narrow factors: their product first, in a word of its own."""

    def __init__(
        self, width: int, by: str, other: str, sizes: Mapping[str, int], signed: bool, sign: int
    ) -> None:
        self.whole = width
        factors = {by: sizes[by], other: sizes[other]}
        super().__init__(min(width, sum(factors.values())), by, other, factors, signed)
        self.last = self.steps
        self.direction = sign

    def closed(self, step: int, lane: Lane) -> list[int]:
        return super().closed(step, {name: lane[name] for name in (self.by, self.other)})

    def step(self, step: int, state: Sequence[Term], words: Words) -> list[Term]:
        return list(state) if step == self.steps else super().step(step, state, words)

    def result(self, state: Sequence[Term], words: Words) -> Term:
        product = resized(state[0], self.whole, self.extend_signed)
        return words["acc"] + product if self.direction > 0 else words["acc"] - product


class Division:
    """Restoring division, the highest bit first: dividend, divisor, remainder, quotient.

    After i steps remainder and quotient are those of the dividend's top i bits. Signed division
    works on magnitudes and sets the sign at the end.
    """

    def __init__(self, width: int, operation: str) -> None:
        self.width = width
        self.steps = width
        kind, _, order = operation.partition("_")
        self.quotient = kind == "div"
        self.signed = order == "s"
        self.first, self.last = (0, width) if self.signed else (1, width - 1)

    def needed(self, step: int) -> set[int]:
        if step == 0:
            return {0, 1}
        if not self.quotient:
            return {2}
        # The last remainder of a quotient is never computed.
        return {2, 3} if step < self.steps else {3}

    def sizes(self, step: int) -> list[int]:
        return [self.width] * 4

    def _operands(self, lane: Lane) -> tuple[int, int]:
        a, b = lane["a"], lane["b"]
        if self.signed:
            a, b = abs(signed_value(a, self.width)), abs(signed_value(b, self.width))
        return a, b

    def closed(self, step: int, lane: Lane) -> list[int]:
        a, b = self._operands(lane)
        top = a >> (self.width - step)
        quotient, remainder = divmod(top, b) if b else (0, top)
        return [a, b, remainder, quotient << (self.width - step)]

    def start(self, words: Words) -> list[Term]:
        z3 = load_z3()
        a, b = words["a"], words["b"]
        if self.signed:
            a, b = z3.If(a < 0, -a, a), z3.If(b < 0, -b, b)
        zero = z3.BitVecVal(0, self.width)
        return [a, b, zero, zero]

    def step(self, step: int, state: Sequence[Term], words: Words) -> list[Term]:
        z3 = load_z3()
        if step == self.steps:
            return list(state)
        a, b, remainder, quotient = state
        low = self.width - step - 1
        bit = resized(z3.Extract(low, low, a), self.width)
        # Twice the remainder fits: it is below 2^step, and step is less than the width.
        trial = remainder << 1 | bit
        fits = z3.And(b != 0, z3.UGE(trial, b))
        return [
            a,
            b,
            z3.If(fits, trial - b, trial),
            quotient | z3.If(fits, z3.BitVecVal(1 << low, self.width), 0),
        ]

    def invariant(self, step: int, state: Sequence[Term], words: Words) -> Any:
        z3 = load_z3()
        a, b, remainder, quotient = state
        facts = [z3.Or(b == 0, z3.ULT(remainder, b))]
        if not self.signed:
            facts += [a == words["a"], b == words["b"]]
        if step < self.width:
            facts.append(z3.LShR(remainder, step) == 0)
            low = self.width - step
            facts.append(z3.Extract(low - 1, 0, quotient) == 0)
        return z3.And(*facts)

    def extras(self, state: Sequence[Term], words: Words) -> list[Term]:
        z3 = load_z3()
        b = state[1]
        exceeds = [bit_term(z3.LShR(b, k) != 0) for k in range(1, self.width)]
        bounded = [z3.If(b == 0, z3.BitVecVal(1, 1), bit) for bit in exceeds]
        sign_a, sign_b = (z3.Extract(self.width - 1, self.width - 1, words[x]) for x in "ab")
        return [*exceeds, *bounded, bit_term(b == 0), sign_a, sign_b, sign_a ^ sign_b]

    def closed_extras(self, step: int, lane: Lane) -> list[int]:
        _, b = self._operands(lane)
        exceeds = [int(b >> k != 0) for k in range(1, self.width)]
        bounded = [int(b == 0) | bit for bit in exceeds]
        sign_a, sign_b = (lane[x] >> (self.width - 1) for x in "ab")
        return [*exceeds, *bounded, int(b == 0), sign_a, sign_b, sign_a ^ sign_b]

    def result(self, state: Sequence[Term], words: Words) -> Term:
        z3 = load_z3()
        _, _, remainder, quotient = state
        if not self.signed:
            return quotient if self.quotient else remainder
        a, b = words["a"], words["b"]
        if self.quotient:
            return z3.If((a < 0) != (b < 0), -quotient, quotient)
        return z3.If(a < 0, -remainder, remainder)


def add_column(column: Sequence[Any], zero: Any) -> tuple[Any, list[Any]]:
    """The parity of single bits, and the carries of the full adders that give it."""
    total, *rest = column
    if len(rest) % 2:
        rest.append(zero)
    carries: list[Any] = []
    for x, y in zip(rest[::2], rest[1::2], strict=True):
        carries.append((x & y) | (total & (x | y)))
        total = total ^ x ^ y
    return total, carries


class Count:
    """The ones of a word, a column of equal weight a step: digits so far, then the column."""

    def __init__(self, width: int, size: int) -> None:
        self.width = width
        self.size = size
        self.counts = [width]
        while self.counts[-1] > 1:
            self.counts.append(self.counts[-1] // 2)
        self.steps = len(self.counts) - 1
        self.first, self.last = 1, self.steps - 1

    def needed(self, step: int) -> set[int]:
        return set(range(len(self.sizes(step))))

    def sizes(self, step: int) -> list[int]:
        return [1] * (step + self.counts[step])

    def closed(self, step: int, lane: Lane) -> list[int]:
        column = [lane["a"] >> i & 1 for i in range(self.width)]
        return self._after(step, column, 0)

    def _after(self, step: int, column: list[Any], zero: Any) -> list[Any]:
        digits: list[Any] = []
        for _ in range(step):
            digit, column = add_column(column, zero)
            digits.append(digit)
        return digits + column

    def start(self, words: Words) -> list[Term]:
        z3 = load_z3()
        return [z3.Extract(i, i, words["a"]) for i in range(self.width)]

    def step(self, step: int, state: Sequence[Term], words: Words) -> list[Term]:
        z3 = load_z3()
        digit, carries = add_column(state[step:], z3.BitVecVal(0, 1))
        return [*state[:step], digit, *carries]

    def invariant(self, step: int, state: Sequence[Term], words: Words) -> Any:
        z3 = load_z3()
        return z3.BoolVal(True)

    def extras(self, state: Sequence[Term], words: Words) -> list[Term]:
        return []

    def closed_extras(self, step: int, lane: Lane) -> list[int]:
        return []

    def result(self, state: Sequence[Term], words: Words) -> Term:
        z3 = load_z3()
        return resized(z3.Concat(*reversed(state)) if len(state) > 1 else state[0], self.size)


def lemmas() -> dict[str, bool]:
    """Whether z3 proves what carries the recurrences to products, quotients and counts.

    All over integers, so for every width. The sum of partial products is the product; quotient
    and remainder of twice a number and a bit come from those of the number; a full adder keeps
    the count of ones.
    """
    z3 = load_z3()

    def proved(claim: Any) -> bool:
        solver = z3.Solver()
        solver.add(z3.Not(claim))
        return solver.check() == z3.unsat

    low, power, other, bit = z3.Ints("low power other bit")
    product = z3.Implies(
        z3.Or(bit == 0, bit == 1),
        (low + bit * power) * other == low * other + z3.If(bit == 1, power * other, 0),
    )
    # `whole` is quotient times divisor; the next quotient is 2 * quotient + fits.
    a, whole, divisor, remainder = z3.Ints("a whole divisor remainder")
    trial = 2 * remainder + bit
    fits = trial >= divisor
    after = z3.If(fits, trial - divisor, trial)
    division = z3.Implies(
        z3.And(
            z3.Or(bit == 0, bit == 1), a == whole + remainder, remainder >= 0, remainder < divisor
        ),
        z3.And(
            2 * a + bit == 2 * whole + z3.If(fits, divisor, 0) + after, after >= 0, after < divisor
        ),
    )
    x, y, z = z3.Bools("x y z")

    def number(condition: Any) -> Any:
        return z3.If(condition, 1, 0)

    carry = z3.Or(z3.And(x, y), z3.And(z, z3.Or(x, y)))
    adder = number(x) + number(y) + number(z) == number(z3.Xor(z3.Xor(x, y), z)) + 2 * number(carry)
    return {
        "partial products": proved(product),
        "long division": proved(division),
        "full adder": proved(adder),
    }
