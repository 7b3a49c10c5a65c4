"""Programs that multiply, and that multiply and accumulate.

Row i of partial products adds (bit i of a) and b to the bits of the result from i up. Bits of the
result that nothing reads are never computed: modulo 2^n, row i has n - i of them.

The library `cim-opt` keeps its sums complemented, where adding is the shorter subtract step.
"""

from collections.abc import Callable

from cim_opt.microprograms.frame import finish, rows, unsupported
from cim_opt.microprograms.model import C0, C1, Address, Operand, RowProgram
from cim_opt.microprograms.short_steps import ShortSteps
from cim_opt.microprograms.steps import Rows, Steps


def multiply(
    s: Steps,
    width: int,
    *,
    a_width: int | None = None,
    b_width: int | None = None,
    signed: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = a * b modulo 2^width; a full product where width = a_width + b_width.

    Operands narrower than the result are extended, with their sign if `signed`.
    """
    a = Operand("a", width if a_width is None else a_width)
    b = Operand("b", width if b_width is None else b_width)
    _check_widths("mul", width, a, b)
    out = Operand("out", width, out_complemented)
    scratch = Operand("scratch", 2)
    product(s, rows(out), a, b, signed, out_complemented, rows(scratch))
    return finish(s, "mul", width, [a, b], [out], [scratch])


def _check_widths(name: str, width: int, a: Operand, b: Operand) -> None:
    if a.width > width or b.width > width:
        raise unsupported(name, f"operands of more than {width} bits", "give their low bits only")


def product(
    s: Steps, out: Rows, a: Operand, b: Operand, signed: bool, complemented: bool, scratch: Rows
) -> None:
    """out = a * b; the narrower operand gives the rows, of which there are fewer then.

    Signs matter only where an operand grows, and not for two single bits: (-1) * (-1) = 1.
    """
    few, many = (a, b) if a.width <= b.width else (b, a)
    signed = signed and few.width < len(out) and many.width > 1
    if signed and few.width == 1:
        few, many = many, few
    if isinstance(s, ShortSteps):
        _shortest_product(s, out, rows(few), rows(many), signed, complemented, scratch)
    elif complemented:
        raise unsupported("mul", "no complemented product in this library", "complement it after")
    else:
        _product(s, out, rows(few), rows(many), signed)


def _shortest_product(
    s: ShortSteps,
    out: Rows,
    xs: Rows,
    ys: Rows,
    signed: bool,
    complemented: bool,
    scratch: Rows,
) -> None:
    """In complemented sums, unless there are so few that their end costs more than they save."""
    steps = ShortSteps()
    _ShortProduct(steps, out, xs, ys, signed, complemented, scratch).emit()
    if len(xs) <= 4 and not complemented:
        plain = ShortSteps()
        _product(plain, out, xs, ys, signed)
        steps = min(plain, steps, key=lambda x: len(x.commands))
    s.commands += steps.commands


def _product(s: Steps, out: Rows, xs: Rows, ys: Rows, signed: bool) -> None:
    """Sums as they are. An unsigned sum grows by its carry, a signed one by a copy of its sign."""
    width, size = len(out), len(ys)
    first = min(size, width)
    s.majority_words(out[:first], [xs[0]] * first, ys[:first], C0, invert_a=False)
    if size < width:
        s.copy([out[size]], [out[size - 1] if signed else C0])
    for i, x in enumerate(xs[:width]):
        if i:
            _add_row(s, out, i, x, ys, signed, deduct=signed and i == len(xs) - 1)
    done = len(xs) + size
    fill = out[min(done, width) - 1] if signed else C0
    s.copy(out[done:], [fill] * len(out[done:]))


def _add_row(s: Steps, out: Rows, i: int, x: Address, ys: Rows, signed: bool, deduct: bool) -> None:
    """out += (x and y) << i, or -= for the row of the sign."""
    top = i + len(ys)
    bits = list(ys)[: len(out) - i]
    if signed and top < len(out):
        s.copy([out[top]], [out[top - 1]])
        bits.append(ys[-1])
    for j, y in enumerate(bits):
        step = _row_step(s, j == 0, deduct)
        step(out[i + j], out[i + j], x, y)
    if not signed and top < len(out):
        s.store_carry(out[top])


def _row_step(
    s: Steps, first: bool, deduct: bool
) -> Callable[[Address, Address, Address, Address], None]:
    if deduct:
        return s.deduct_first if first else s.deduct_bit
    return s.accumulate_first if first else s.accumulate_bit


class _ShortProduct:
    """As `_product`, in complemented sums; see there for signs.

    The bits of a sum that no later row touches are turned into the polarity of the result:
    the lowest of each row by two commands, all of the last row by another last row.
    """

    def __init__(
        self,
        s: ShortSteps,
        out: Rows,
        xs: Rows,
        ys: Rows,
        signed: bool,
        complemented: bool,
        scratch: Rows,
    ) -> None:
        self.s = s
        self.out = out
        self.xs = xs[: len(out)]
        self.ys = ys[: len(out)]
        self.signed = signed
        self.complemented = complemented
        self.scratch = scratch

    def emit(self) -> None:
        self._first_row()
        for i in range(1, len(self.xs)):
            last = i == len(self.xs) - 1
            if last and not self.complemented:
                self._last_row(i)
                continue
            self._row(i, deduct=self.signed and last)
            if not self.complemented:
                self.s.invert([self.out[i]], [self.out[i]])
        done = len(self.xs) + len(self.ys)
        zero = C1 if self.complemented else C0
        fill = self.out[min(done, len(self.out)) - 1] if self.signed else zero
        self.s.copy(self.out[done:], [fill] * len(self.out[done:]))

    def _first_row(self) -> None:
        s, out, x, ys = self.s, self.out, self.xs[0], self.ys
        size = len(ys)
        if len(self.xs) == 1 and not self.complemented:
            s.mask_words(out[:size], ys, x, C0)
            s.copy(out[size : size + 1], [C0] * len(out[size : size + 1]))
            return
        plain = 0 if self.complemented else 1
        s.majority_words(out[:plain], [x] * plain, ys[:plain], C0, invert_a=False)
        # (x and y)' = M(y', x', 1)
        if size > plain:
            s.invert(self.scratch[:1], [x])
            s.mask_words(out[plain:size], ys[plain:], self.scratch[0], C1, invert_a=True)
        if self.signed:
            extend = s.invert if plain == size else s.copy
            extend(out[size : size + 1], [out[size - 1]] * len(out[size : size + 1]))
        elif len(self.xs) == 1:
            s.copy(out[size : size + 1], [C1] * len(out[size : size + 1]))

    def _bits(self, i: int) -> list[tuple[Address, Address, Address]]:
        """Row i: where its bits go, the sum so far, and the bits of the other factor."""
        top = i + len(self.ys)
        bits = list(self.ys)[: len(self.out) - i]
        totals = list(self.out[i : i + len(bits)])
        if self.signed and top < len(self.out):
            self.s.copy([self.out[top]], [self.out[top - 1]])
            bits.append(self.ys[-1])
            totals.append(self.out[top])
        elif not self.signed and i == 1 and top <= len(self.out):
            totals[-1] = C1  # the first row has no carry
        return list(zip(self.out[i:], totals, bits, strict=False))

    def _row(self, i: int, deduct: bool) -> None:
        x = self.xs[i]
        for j, (out, total, y) in enumerate(self._bits(i)):
            # A complemented sum grows where its rows shrink.
            step = _row_step(self.s, j == 0, not deduct)
            step(out, total, x, y)
        self._carry(i, invert=True)

    def _carry(self, i: int, invert: bool) -> None:
        top = i + len(self.ys)
        if not self.signed and top < len(self.out):
            self.s.store_carry(self.out[top], invert)

    def _last_row(self, i: int) -> None:
        """The sum as it is, p - total' - 1 for the partial products p, or p' - total' for -p."""
        s, x, (product_row, x_not) = self.s, self.xs[i], self.scratch
        if self.signed:
            s.invert([x_not], [x])
        bits = self._bits(i)
        s.start_borrow(C0 if self.signed else C1)
        for out, total, y in bits:
            if self.signed:
                s.mask_words([product_row], [y], x_not, C1, invert_a=True)
            else:
                s.majority_words([product_row], [x], [y], C0, invert_a=False)
            s.subtract_bit(out, product_row, total)
        self._carry(i, invert=True)


def accumulate(
    s: Steps,
    width: int,
    *,
    name: str,
    a_width: int | None = None,
    b_width: int | None = None,
    signed: bool = False,
    complemented: bool = False,
) -> RowProgram:
    """acc = acc + a * b (`mac`) or acc - a * b (`msub`), modulo 2^width.

    `complemented`: acc is stored complemented before and after. Rows of partial products go
    straight into acc where each of them reaches its top; narrow factors get a product first.
    """
    a = Operand("a", width if a_width is None else a_width)
    b = Operand("b", width if b_width is None else b_width)
    _check_widths(name, width, a, b)
    acc = Operand("acc", width, complemented)
    deduct = (name == "msub") != complemented
    if max(a.width, b.width) == width:
        few, many = (a, b) if a.width <= b.width else (b, a)
        _accumulate_rows(s, rows(acc), rows(few), rows(many), signed and few.width < width, deduct)
        return finish(s, name, width, [acc, a, b], [acc])
    size = min(width, a.width + b.width)
    scratch = Operand("scratch", size + 2)
    partial, spare = rows(scratch)[:size], rows(scratch)[size:]
    # A sum takes a complemented product and a difference a plain one at no extra command.
    inverted = isinstance(s, ShortSteps) and not deduct
    product(s, partial, a, b, signed, inverted, spare)
    extension: Address = partial[-1] if signed else C1 if inverted else C0
    addend = partial + [extension] * (width - size)
    if inverted:
        s.subtract_words(rows(acc), rows(acc), addend, C1)
    elif deduct:
        s.subtract_words(rows(acc), rows(acc), addend)
    else:
        s.add_words(rows(acc), rows(acc), addend)
    return finish(s, name, width, [acc, a, b], [acc], [scratch])


def _accumulate_rows(s: Steps, acc: Rows, xs: Rows, ys: Rows, signed: bool, deduct: bool) -> None:
    """acc += x * y in stored rows, or -=; the row of a sign the other way."""
    for i, x in enumerate(xs):
        opposite = signed and i == len(xs) - 1
        for j, row in enumerate(acc[i:]):
            _row_step(s, j == 0, deduct != opposite)(row, row, x, ys[j])
