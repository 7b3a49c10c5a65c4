"""One-bit steps and word operations of the library `simdram`, in row commands.

A `Steps` object collects the commands of one program. Its methods append what computes one bit
in all lanes, or one operation on words; the library `cim-opt` overrides those that it does with
fewer commands (short_steps.py).

They issue as many commands as published for SIMDRAM wherever the published sequence is right; the
sequences themselves are our own. M(x,y,z) is the majority, x' the complement.
"""

from collections.abc import Sequence

from cim_opt.microprograms.model import (
    AAP,
    AP,
    C0,
    C1,
    DCC0,
    DCC0_T1_T2,
    DCC1,
    DCC1_T0_T3,
    NOT_DCC0,
    NOT_DCC0_T0,
    NOT_DCC1,
    NOT_DCC1_T1,
    T0,
    T0_T1_T2,
    T1,
    T1_T2_T3,
    T2,
    T2_T3,
    T3,
    Address,
    Command,
)

Rows = Sequence[Address]


def triples(column: Rows) -> list[tuple[Address, Address]]:
    """What each full adder of a column takes besides the sum so far; that starts as `column[0]`."""
    rest = list(column[1:])
    if len(rest) % 2:
        rest.append(C0)
    return list(zip(rest[::2], rest[1::2], strict=True))


class Steps:
    """Collects row commands; every method appends what its first line says."""

    library = "simdram"

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def aap(self, destination: Address, source: Address) -> None:
        self.commands.append(AAP(destination, source))

    def ap(self, address: Address) -> None:
        self.commands.append(AP(address))

    # Moves.

    def copy(self, out: Rows, source: Rows) -> None:
        """out = source, one command a row."""
        for target, row in zip(out, source, strict=True):
            self.aap(target, row)

    def invert(self, out: Rows, source: Rows) -> None:
        """out = source', two commands a row."""
        for target, row in zip(out, source, strict=True):
            self.aap(NOT_DCC0, row)
            self.aap(target, DCC0)

    # Bitwise logic.

    def majority_words(
        self, out: Rows, a: Rows, b: Rows, constant: Address, invert_a: bool
    ) -> None:
        """out = M(a, b, constant), with a' for a if asked: AND and OR; four commands a row."""
        for target, x, y in zip(out, a, b, strict=True):
            self.aap(NOT_DCC0 if invert_a else T0, x)
            self.aap(T1, y)
            self.aap(T2, constant)
            self.aap(target, DCC0_T1_T2 if invert_a else T0_T1_T2)

    def majority_words_inverted(self, out: Rows, a: Rows, b: Rows, constant: Address) -> None:
        """out = M(a, b, constant)'; five commands a row."""
        for target, x, y in zip(out, a, b, strict=True):
            self.aap(T0, x)
            self.aap(T1, y)
            self.aap(T2, constant)
            self.aap(NOT_DCC0, T0_T1_T2)
            self.aap(target, DCC0)

    def mask_words(
        self, out: Rows, a: Rows, mask: Address, constant: Address, invert_a: bool = False
    ) -> None:
        """out = M(a, mask, constant) with one mask row for all bits: six commands for two rows.

        The two majorities share no row, and each copy of mask or constant serves both.
        """
        pairs = len(out) // 2
        for i in range(0, 2 * pairs, 2):
            self.aap(NOT_DCC0 if invert_a else DCC0, a[i])
            self.aap(NOT_DCC1 if invert_a else DCC1, a[i + 1])
            self.aap(T0_T1_T2, mask)
            self.aap(T2_T3, constant)
            self.aap(out[i], DCC0_T1_T2)
            self.aap(out[i + 1], DCC1_T0_T3)
        for i in range(2 * pairs, len(out)):
            self.majority_words([out[i]], [a[i]], [mask], constant, invert_a)

    def xor_words(self, out: Rows, a: Rows, b: Rows, invert: bool = False) -> None:
        """out = a xor b, or its complement: M(M(a, b', 0), M(a', b, 0), 1); seven a row."""
        first, second = (C1, C0) if invert else (C0, C1)
        for target, x, y in zip(out, a, b, strict=True):
            self.aap(NOT_DCC0_T0, y)
            self.aap(NOT_DCC1_T1, x)
            self.aap(T2_T3, first)
            self.ap(DCC0_T1_T2)
            self.ap(DCC1_T0_T3)
            self.aap(T1, second)
            self.aap(target, T1_T2_T3)

    def select_words(self, out: Rows, choice: Address, a: Rows, b: Rows) -> None:
        """out = a where the row `choice` is 1, else b; seven a row."""
        for target, x, y in zip(out, a, b, strict=True):
            self.aap(T2, x)
            self.aap(T3, y)
            self.aap(NOT_DCC0_T0, choice)
            self.aap(NOT_DCC1_T1, C0)
            self.ap(T0_T1_T2)
            self.aap(T1, DCC1_T0_T3)
            self.aap(target, DCC0_T1_T2)

    # Addition and subtraction. The carry or borrow waits in DCC1.

    def start_carry(self, value: Address) -> None:
        """Carry in = the row `value`."""
        self.aap(DCC1, value)

    def start_borrow(self, value: Address) -> None:
        """Borrow in = the row `value`."""
        self.aap(DCC1, value)

    def store_carry(self, out: Address, invert: bool = False) -> None:
        """out = the carry or borrow, or its complement."""
        self.aap(out, NOT_DCC1 if invert else DCC1)

    def add_bit(self, out: Address, a: Address, b: Address) -> None:
        """out = a xor b xor c; c = M(a, b, c)."""
        self.aap(NOT_DCC0, a)
        self.aap(T0_T1_T2, b)
        self.aap(T1, DCC1)
        self.ap(DCC0_T1_T2)  # M(a', b, c)
        self._finish_sum(out, a)

    def _finish_sum(self, out: Address, a: Address) -> None:
        """With b in T0, M(a', b, c) in T1 and T2, c in DCC1: the rest of `add_bit`."""
        self.aap(T2_T3, a)
        self.ap(DCC1_T0_T3)  # the new carry
        self.aap(NOT_DCC0, DCC1)
        self.aap(out, DCC0_T1_T2)

    def subtract_bit(self, out: Address, a: Address, b: Address) -> None:
        """out = a xor b xor borrow; borrow = M(a', b, borrow)."""
        self.aap(NOT_DCC0_T0, b)
        self.aap(T2, NOT_DCC1)
        self.aap(T3, DCC1)
        self.aap(T1, a)
        self.aap(NOT_DCC1, a)
        self.ap(T0_T1_T2)  # M(a, b, borrow')
        self.aap(T1, DCC1_T0_T3)  # the new borrow
        self.aap(out, DCC0_T1_T2)

    def add_words(self, out: Rows, a: Rows, b: Rows, carry: Address = C0) -> None:
        """out = a + b + carry."""
        self.start_carry(carry)
        for target, x, y in zip(out, a, b, strict=True):
            self.add_bit(target, x, y)

    def subtract_words(self, out: Rows, a: Rows, b: Rows, borrow: Address = C0) -> None:
        """out = a - b - borrow."""
        self.start_borrow(borrow)
        for target, x, y in zip(out, a, b, strict=True):
            self.subtract_bit(target, x, y)

    def add_column(self, out: Address, carries: Rows, column: Rows) -> None:
        """out = the parity of all rows of `column`; `carries` = the carries of its full adders.

        The first carry may overwrite the first row, any other a row that was added before.
        """
        total = column[0]
        for carry, (a, b) in zip(carries, triples(column), strict=True):
            self._full_adder(out, carry, a, b, total)
            total = out

    def _full_adder(self, out: Address, carry: Address, a: Address, b: Address, c: Address) -> None:
        """out = a xor b xor c, carry = M(a, b, c), all of them D rows; eight commands."""
        self.aap(DCC0, a)
        self.aap(T0_T1_T2, b)
        self.aap(T2_T3, c)
        self.aap(carry, DCC0_T1_T2)
        self.aap(NOT_DCC0, DCC0_T1_T2)
        self.aap(NOT_DCC1_T1, a)
        self.aap(T2, DCC1_T0_T3)
        self.aap(out, DCC0_T1_T2)

    # Comparison.

    def chain(self, a: Rows, b: Rows, start: Address) -> None:
        """T2 = M(a, b', M(..., start)) from the lowest bit up: a > b for start 0, a >= b for 1."""
        self.aap(T2, start)
        for x, y in zip(a, b, strict=True):
            self.aap(NOT_DCC0, y)
            self.aap(T1, x)
            self.ap(DCC0_T1_T2)

    def compare(self, out: Address, a: Rows, b: Rows, start: Address) -> None:
        """out = the end of `chain`: 3n + 2."""
        self.chain(a, b, start)
        self.aap(out, T2)

    def equal(self, out: Address, a: Rows, b: Rows, invert: bool) -> None:
        """out = whether a equals b, or differs: both of a >= b and b >= a; 4n + 3."""
        self.aap(T2_T3, C0 if invert else C1)
        for x, y in zip(a, b, strict=True):
            self.aap(NOT_DCC0_T0, y)
            self.aap(NOT_DCC1_T1, x)
            self.ap(DCC0_T1_T2)
            self.ap(DCC1_T0_T3)
        self.aap(T1, C1 if invert else C0)
        self.aap(out, T1_T2_T3)

    # Reductions over the rows of one word.

    def fold_rows(self, out: Address, rows: Rows, constant: Address) -> None:
        """out = AND (constant C0) or OR (constant C1) of all rows; five for two rows."""
        first = 1 if len(rows) % 2 else 0
        self.aap(DCC0, rows[0] if first else (C1 if constant == C0 else C0))
        for i in range(first, len(rows), 2):
            self._fold_two(rows[i], rows[i + 1], constant)
            self.aap(DCC0, DCC1_T0_T3)
        self.aap(out, DCC0)

    def _fold_two(self, first: Address, second: Address, constant: Address) -> None:
        self.aap(T1, first)
        self.aap(T0, second)
        self.aap(T2_T3, constant)
        self.aap(DCC1, DCC0_T1_T2)

    def fold_parity(self, out: Address, rows: Rows) -> None:
        """out = xor of all rows; six for two rows. The parity so far fills T0, T1 and T2."""
        first = len(rows) % 2
        self.aap(T0_T1_T2, rows[0] if first else C0)
        for i in range(first, len(rows), 2):
            self._fold_parity_of_two(rows[i], rows[i + 1])
            self.aap(T0, DCC0_T1_T2)
        self.aap(out, T0)

    def _fold_parity_of_two(self, a: Address, b: Address) -> None:
        """After these, with p in T0, T1 and T2, the majority of DCC0, T1, T2 is a xor b xor p."""
        self.aap(DCC0, a)
        self.aap(T2_T3, b)
        self.aap(NOT_DCC0, DCC0_T1_T2)
        self.aap(NOT_DCC1_T1, a)
        self.aap(T2, DCC1_T0_T3)

    # Signs.

    def positive(self, out: Address, a: Rows) -> None:
        """out = whether a > 0 as a signed number: any lower bit, and not the sign."""
        if len(a) == 1:
            self.aap(out, C0)
            return
        if len(a) == 2:
            self.aap(T0, a[0])
        else:
            Steps.fold_rows(self, out, a[:-1], C1)
            self.commands.pop()  # T0 has what `out` would get
        self.aap(NOT_DCC1, a[-1])
        self.aap(T3, C0)
        self.aap(out, DCC1_T0_T3)

    def relu(self, out: Rows, a: Rows) -> None:
        """out = a where its sign bit is 0, else 0; the top row holds sign' until it gets its 0."""
        if len(out) > 1:
            self.invert([out[-1]], [a[-1]])
            self.mask_words(out[:-1], a[:-1], out[-1], C0)
        self.aap(out[-1], C0)

    def start_negate(self) -> None:
        """Before the first `negate_bit`. DCC1 and T3 keep e = sign and any lower bit."""
        self.aap(DCC1_T0_T3, C0)

    def negate_bit(self, out: Address, a: Address) -> None:
        """out = a xor e, one bit of -a where the sign is 1. Leaves a and e in T3, out in T2."""
        self.aap(T0_T1_T2, a)
        self.aap(T1, C1)
        self.ap(T1_T2_T3)  # a or e
        self.aap(T2_T3, C0)
        self.ap(DCC1_T0_T3)  # a and e
        self.aap(NOT_DCC0, DCC1)
        self.aap(out, DCC0_T1_T2)

    def next_negate(self, sign: Address) -> None:
        """Between two `negate_bit`: e = sign and (a or e) = M(sign, a xor e, a and e)."""
        self.aap(T1, sign)
        self.ap(T1_T2_T3)
        self.aap(DCC1, T1)

    def negate_if(self, out: Rows, a: Rows, sign: Address) -> None:
        """out = -a where the row `sign` is 1, else a."""
        self.start_negate()
        for i, (target, row) in enumerate(zip(out, a, strict=True)):
            if i:
                self.next_negate(sign)
            self.negate_bit(target, row)

    def absolute(self, out: Rows, a: Rows) -> None:
        """out = -a where the top bit of a is 1, else a."""
        self.negate_if(out, a, a[-1])

    # Multiply and accumulate.

    def accumulate_first(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """The first `accumulate_bit` of a row, with no carry in."""
        self.start_carry(C0)
        self.accumulate_bit(out, total, x, y)

    def accumulate_bit(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """out = total + (x and y) + c, one bit of it; c = its carry: eleven commands."""
        self.aap(T0, x)
        self.aap(T1, y)
        self.aap(T2, C0)
        self.ap(T0_T1_T2)
        self.aap(NOT_DCC0, total)
        self.aap(T1, DCC1)
        self.ap(DCC0_T1_T2)
        self._finish_sum(out, total)

    def deduct_first(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """The first `deduct_bit` of a row, with no borrow in."""
        self.start_borrow(C0)
        self.deduct_bit(out, total, x, y)

    def deduct_bit(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """out = total - (x and y) - borrow, one bit of it; borrow = its borrow: eleven commands."""
        self.aap(T0, x)
        self.aap(T1, y)
        self.aap(T2, C0)
        self.aap(NOT_DCC0_T0, T0_T1_T2)
        self.aap(T2, NOT_DCC1)
        self.aap(T3, DCC1)
        self.aap(T1, total)
        self.aap(NOT_DCC1, total)
        self.ap(T0_T1_T2)
        self.aap(T1, DCC1_T0_T3)
        self.aap(out, DCC0_T1_T2)
