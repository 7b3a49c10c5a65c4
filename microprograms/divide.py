"""Programs that divide: restoring division, from the highest bit of the quotient down.

After step i the remainder is below 2^i, so step i works on i bits only. The remainder moves
through one word of rows: bit j in step i lies in row n - i + j, and the next bit of the dividend is
taken from its own row. That the divisor does not exceed i bits is a row prepared before.

Dividing by zero gives the quotient 0 and the remainder a; the least number divided by -1 gives
itself, remainder 0.
"""

from cim_opt.microprograms.frame import finish, rows
from cim_opt.microprograms.model import (
    C0,
    C1,
    DCC0_T1_T2,
    NOT_DCC0,
    NOT_DCC1,
    T0,
    T0_T1_T2,
    T1,
    T2,
    Address,
    Operand,
    RowProgram,
)
from cim_opt.microprograms.short_steps import ShortSteps
from cim_opt.microprograms.steps import Rows, Steps


def unsigned(s: Steps, width: int, *, name: str) -> RowProgram:
    """out = a / b (`div_u`), a mod b (`rem_u`)."""
    a, b, out = (Operand(x, width) for x in ("a", "b", "out"))
    spare = Operand("scratch", 4 * width + 2)
    work = _Division(s, rows(a), rows(b), rows(spare))
    work.divide(rows(out), quotient=name == "div_u")
    return finish(s, name, width, [a, b], [out], [spare])


def signed(s: Steps, width: int, *, name: str) -> RowProgram:
    """As `unsigned`, `div_s` and `rem_s`: rounds to zero, and the remainder has the sign of a.

    On the magnitudes; the sign of the result is put on at the end.
    """
    a, b, out = (Operand(x, width) for x in ("a", "b", "out"))
    scratch = Operand("scratch", 6 * width + 3)
    free = rows(scratch)
    sign, first, second = free[0], free[1 : width + 1], free[width + 1 : 2 * width + 1]
    top_a, top_b = rows(a)[-1], rows(b)[-1]
    s.absolute(first, rows(a))
    s.absolute(second, rows(b))
    work = _Division(s, first, second, free[2 * width + 1 :])
    quotient = name == "div_s"
    work.divide(rows(out), quotient)
    if quotient:
        s.xor_words([sign], [top_a], [top_b])
    s.negate_if(rows(out), rows(out), sign if quotient else top_a)
    return finish(s, name, width, [a, b], [out], [scratch])


class _Division:
    """Quotient and remainder of two unsigned words."""

    def __init__(self, s: Steps, a: Rows, b: Rows, free: Rows) -> None:
        self.s = s
        self.a = a
        self.b = b
        self.free = list(free)

    def _take(self, count: int) -> list[Address]:
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def divide(self, out: Rows, quotient: bool) -> None:
        """out = the quotient, or the remainder."""
        size = len(self.a)
        too_big = self._too_big(quotient)
        # One row for all bits of a quotient that nobody reads.
        bits = list(out) if quotient else self._take(1) * size
        rest = [out[0], *self._take(size - 1)] if quotient else list(out)
        trial = [] if isinstance(self.s, ShortSteps) else self._take(size)
        for low in reversed(range(size)):
            above = [self.a[low], *rest[low + 1 :]]
            subtract = low > 0 or not quotient
            if isinstance(self.s, ShortSteps):
                self._short_step(self.s, bits[low], above, rest[low:], too_big[low], subtract)
            else:
                self._step(bits[low], above, rest[low:], too_big[low], trial, subtract)

    def _too_big(self, zero_counts: bool) -> list[Address | None]:
        """For each bit of the quotient: the row that is 1 where it is 0 whatever the remainder.

        That is where the divisor has a bit at or above the bits of the remainder, or, if
        `zero_counts`, is zero.
        """
        s, b, size = self.s, self.b, len(self.b)
        too_big: list[Address | None] = [None] * size
        if zero_counts:
            (too_big[0],) = self._take(1)
            s.fold_rows(too_big[0], b, C1)
            s.invert([too_big[0]], [too_big[0]])
            above = too_big[0]
            order = range(size - 1, 0, -1)
        elif size > 1:
            too_big[1] = above = b[-1]
            order = range(size - 2, 0, -1)
        else:
            return too_big
        s.aap(T0, above)
        for bits in order:
            (row,) = self._take(1)
            s.aap(T1, b[bits])
            s.aap(T2, C1)
            s.aap(row, T0_T1_T2)  # any bit of the divisor from this one up
            too_big[size - bits] = row
        return too_big

    def _short_step(
        self,
        s: ShortSteps,
        quotient: Address,
        before: Rows,
        after: Rows,
        too_big: Address | None,
        subtract: bool,
    ) -> None:
        """Compare, then subtract the divisor where it fits: 12 a bit."""
        divisor = self.b[: len(before)]
        if too_big is None:
            s.compare(quotient, before, divisor, C1)
        else:
            s.chain(before, divisor, C1)
            s.aap(NOT_DCC0, too_big)
            s.aap(T1, C0)
            s.aap(quotient, DCC0_T1_T2)
        if not subtract:
            return
        for j, (out, row) in enumerate(zip(after, before, strict=True)):
            step = s.deduct_bit if j else s.deduct_first
            step(out, row, quotient, divisor[j])

    def _step(
        self,
        quotient: Address,
        before: Rows,
        after: Rows,
        too_big: Address | None,
        trial: Rows,
        subtract: bool,
    ) -> None:
        """Subtract the divisor on trial, then select: 15 a bit."""
        s, size = self.s, len(before)
        s.subtract_words(trial[:size], before, self.b[:size])
        if too_big is None:
            s.store_carry(quotient, invert=True)
        else:
            s.aap(NOT_DCC0, too_big)
            s.aap(T1, NOT_DCC1)
            s.aap(T2, C0)
            s.aap(quotient, DCC0_T1_T2)
        if subtract:
            s.select_words(after, quotient, trial[:size], before)
