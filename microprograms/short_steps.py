"""Steps of the library `cim-opt`: the same operations in fewer row commands.

Most sequences were found by exhaustive search over the commands of one bit step, from a state of
the B-group to the next, shortest first; the rest by hand from those.
"""

from cim_opt.microprograms.model import (
    AAP,
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
)
from cim_opt.microprograms.steps import Rows, Steps, triples


class ShortSteps(Steps):
    """As `Steps`. A carry waits in DCC1; a borrow in DCC1 and T3."""

    library = "cim-opt"

    # Bitwise logic.

    def majority_words(
        self, out: Rows, a: Rows, b: Rows, constant: Address, invert_a: bool
    ) -> None:
        """As in `Steps`; seven commands for two rows, which share one copy of the constant."""
        pairs = len(out) // 2
        for i in range(0, 2 * pairs, 2):
            self.aap(NOT_DCC0 if invert_a else DCC0, a[i])
            self.aap(NOT_DCC1 if invert_a else DCC1, a[i + 1])
            self.aap(T1, b[i])
            self.aap(T0, b[i + 1])
            self.aap(T2_T3, constant)
            self.aap(out[i], DCC0_T1_T2)
            self.aap(out[i + 1], DCC1_T0_T3)
        rest = slice(2 * pairs, None)
        super().majority_words(out[rest], a[rest], b[rest], constant, invert_a)

    # Addition and subtraction.

    def start_borrow(self, value: Address) -> None:
        self.aap(DCC1_T0_T3, value)

    def _finish_sum(self, out: Address, a: Address) -> None:
        self.aap(T2_T3, a)
        self.aap(NOT_DCC0, DCC1_T0_T3)  # the new carry stays in DCC1
        self.aap(out, DCC0_T1_T2)

    def subtract_bit(self, out: Address, a: Address, b: Address) -> None:
        """out = a xor b xor borrow; borrow = M(a', b, borrow); six commands."""
        self.aap(NOT_DCC0_T0, b)
        self.aap(T2, NOT_DCC1)
        self.aap(NOT_DCC1_T1, a)
        self._finish_difference(out)

    def _finish_difference(self, out: Address) -> None:
        """With b in T0 and b' in DCC0, a in T1 and a' in DCC1, borrow' in T2, borrow in T3."""
        self.ap(T0_T1_T2)  # M(a, b, borrow')
        self.aap(T1, DCC1_T0_T3)  # the new borrow stays in DCC1 and T3
        self.aap(out, DCC0_T1_T2)

    def add_three(self, out: Address, a: Address, b: Address, c: Address) -> None:
        """out = a xor b xor c of three rows; carry = M(a, b, c); seven commands."""
        self.aap(NOT_DCC0, a)
        self.aap(T0_T1_T2, b)
        self.aap(T2_T3, c)
        self._finish_three(out, a)

    def _finish_three(self, out: Address, a: Address) -> None:
        """With a' in DCC0, b in T0 and T1, c in T2 and T3: the rest of `add_three`."""
        self.aap(NOT_DCC1, DCC0_T1_T2)  # v = M(a', b, c) stays in T1 and T2
        self.aap(NOT_DCC0, DCC1_T0_T3)  # M(v', b, c), the carry, stays in DCC1
        self.aap(T1, a)
        self.aap(out, DCC0_T1_T2)  # M(carry', a, v)

    def add_words(self, out: Rows, a: Rows, b: Rows, carry: Address = C0) -> None:
        """As in `Steps`; the first bit needs no carry in DCC1: 7n."""
        self.add_three(out[0], a[0], b[0], carry)
        for target, x, y in zip(out[1:], a[1:], b[1:], strict=True):
            self.add_bit(target, x, y)

    def add_column(self, out: Address, carries: Rows, column: Rows) -> None:
        """As in `Steps`; the parity so far stays in DCC1: seven a full adder, and one."""
        first, *rest = zip(carries, triples(column), strict=True)
        self._first_adder(first[0], column[0], *first[1])
        for carry, (a, b) in rest:
            self._next_adder(carry, b, a)
        self.aap(out, DCC1)

    def _first_adder(self, carry: Address, a: Address, b: Address, c: Address) -> None:
        """DCC1 = a xor b xor c; carry = M(a, b, c)."""
        self.aap(DCC0_T1_T2, a)
        self.aap(NOT_DCC1_T1, b)
        self.aap(T3, NOT_DCC0)
        self.aap(NOT_DCC0_T0, c)
        self.aap(carry, T0_T1_T2)
        self.aap(T1, DCC1_T0_T3)  # M(a', b', c)
        self.aap(NOT_DCC1, DCC0_T1_T2)  # M(M(a', b', c), carry, c')'

    def _next_adder(self, carry: Address, a: Address, b: Address) -> None:
        """DCC1 = a xor b xor DCC1; carry = M(a, b, DCC1)."""
        self.aap(T3, a)
        self.aap(NOT_DCC0_T0, b)
        self.aap(T2, NOT_DCC1)
        self.aap(carry, DCC1_T0_T3)
        self.aap(NOT_DCC1_T1, a)
        self.aap(T0, DCC0_T1_T2)  # M(a, b', c')
        self.aap(NOT_DCC1, DCC1_T0_T3)

    # Comparison.

    def compare(self, out: Address, a: Rows, b: Rows, start: Address) -> None:
        """As in `Steps`; the last majority goes straight to `out`: 3n + 1."""
        self.chain(a, b, start)
        self.commands.pop()
        self.aap(out, DCC0_T1_T2)

    # Reductions over the rows of one word.

    def fold_rows(self, out: Address, rows: Rows, constant: Address) -> None:
        """As in `Steps`; the last majority goes straight to `out`."""
        if len(rows) == 1:
            self.aap(out, rows[0])
            return
        self.aap(DCC0, rows[0])
        for i in range(1, len(rows) - 1, 2):
            self._fold_two(rows[i], rows[i + 1], constant)
            self.aap(DCC0, DCC1_T0_T3)
        if len(rows) % 2:
            self.commands.pop()
            self.aap(out, DCC1_T0_T3)
            return
        self.aap(T1, rows[-1])
        self.aap(T2, constant)
        self.aap(out, DCC0_T1_T2)

    def fold_parity(self, out: Address, rows: Rows) -> None:
        """As in `Steps`; the last majority goes straight to `out`."""
        if len(rows) == 1:
            self.aap(out, rows[0])
            return
        super().fold_parity(out, rows)
        self.commands[-2:] = [AAP(out, DCC0_T1_T2)]

    # Signs.

    def relu(self, out: Rows, a: Rows) -> None:
        """As in `Steps`; where the bits below the sign are odd, the first needs no mask row: 3n."""
        if len(out) % 2:
            super().relu(out, a)
            return
        self.invert([out[-1]], [a[-1]])  # leaves sign' in DCC0
        self.aap(T1, a[0])
        self.aap(T2, C0)
        self.aap(out[0], DCC0_T1_T2)
        self.mask_words(out[1:-1], a[1:-1], out[-1], C0)
        self.aap(out[-1], C0)

    def negate_bit(self, out: Address, a: Address) -> None:
        self.aap(T0_T1_T2, a)
        self.aap(T1, C1)
        self.ap(T1_T2_T3)  # a or e
        self.aap(T2_T3, C0)
        self.aap(NOT_DCC0, DCC1_T0_T3)  # a and e
        self.aap(out, DCC0_T1_T2)

    def next_negate(self, sign: Address) -> None:
        self.aap(T1, sign)
        self.aap(DCC1, T1_T2_T3)

    def negate_if(self, out: Rows, a: Rows, sign: Address) -> None:
        """As in `Steps`; the lowest bit stays what it is: 8n - 5."""
        if out[0] != a[0]:
            self.aap(out[0], a[0])
        if len(out) == 1:
            return
        self._start_above_lowest(a[0], sign)
        for i in range(1, len(out)):
            if i > 1:
                self.next_negate(sign)
            self.negate_bit(out[i], a[i])

    def _start_above_lowest(self, lowest: Address, sign: Address) -> None:
        """e = sign and the lowest bit."""
        self.aap(T1, sign)
        self.aap(T2, lowest)
        self.aap(T3, C0)
        self.aap(DCC1, T1_T2_T3)

    def absolute(self, out: Rows, a: Rows) -> None:
        """As in `Steps`; the top bit is the sign itself, and its xor with e is sign and e': 8n - 7.

        With two bits and more: a width of one copies its bit.
        """
        if len(out) < 3:
            self.negate_if(out, a, a[-1])
            return
        self.negate_if(out[:-1], a[:-1], a[-1])
        self.next_negate(a[-1])
        self.aap(T0, a[-1])
        self.aap(T1, C0)
        self.aap(T2, NOT_DCC1)
        self.aap(out[-1], T0_T1_T2)

    # Multiply and accumulate.

    def accumulate_first(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """As in `Steps`, without a command for the carry in: ten."""
        self.aap(T0, x)
        self.aap(T1, y)
        self.aap(T2, C0)
        self.ap(T0_T1_T2)
        self.aap(NOT_DCC0, total)
        self.aap(T2_T3, C0)
        self._finish_three(out, total)

    def deduct_first(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """As in `Steps`, without a command for the borrow in: nine."""
        self.aap(T0, x)
        self.aap(T1, y)
        self.aap(T2_T3, C0)
        self.aap(NOT_DCC0_T0, T0_T1_T2)
        self.aap(T2, C1)
        self.aap(NOT_DCC1_T1, total)
        self._finish_difference(out)

    def deduct_bit(self, out: Address, total: Address, x: Address, y: Address) -> None:
        """As in `Steps`; nine commands. On a total that is stored complemented this adds."""
        self.aap(T0, x)
        self.aap(T1, y)
        self.aap(T2, C0)
        self.aap(NOT_DCC0_T0, T0_T1_T2)
        self.aap(T2, NOT_DCC1)
        self.aap(NOT_DCC1_T1, total)
        self._finish_difference(out)
