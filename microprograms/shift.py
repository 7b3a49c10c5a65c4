"""Programs that shift, by a constant or lane by lane.

A shift by a constant moves no bit: an operand that is read elsewhere. Its programs only copy, for
a result that needs rows of its own.
"""

from cim_opt.microprograms.frame import finish, rows
from cim_opt.microprograms.model import C0, C1, Address, Operand, RowProgram
from cim_opt.microprograms.steps import Rows, Steps


def constant_left(s: Steps, width: int, *, amount: int, complemented: bool = False) -> RowProgram:
    """out = a << amount, both stored complemented if `complemented`; 1 a row."""
    a, out = Operand("a", width, complemented), Operand("out", width, complemented)
    shift = min(amount, width)
    s.copy(rows(out), [C1 if complemented else C0] * shift + rows(a)[: width - shift])
    return finish(s, "shl_const", width, [a], [out])


def constant_right(
    s: Steps, width: int, *, amount: int, signed: bool = False, complemented: bool = False
) -> RowProgram:
    """out = a >> amount, zeros or the sign coming in; 1 a row.

    `complemented`: a and out are stored complemented.
    """
    a, out = Operand("a", width, complemented), Operand("out", width, complemented)
    shift = min(amount, width)
    incoming = rows(a)[-1] if signed else C1 if complemented else C0
    s.copy(rows(out), rows(a)[shift:] + [incoming] * shift)
    return finish(s, "shr_const", width, [a], [out])


def variable(s: Steps, width: int, *, name: str, b_width: int | None = None) -> RowProgram:
    """out = a shifted by the unsigned b: `shl`, `shr_u` or `shr_s`.

    One stage a bit of b that shifts by less than the width: each bit keeps its place or takes
    the bit that many places away. The other bits of b clear the word or fill it with the sign.
    """
    a, out = Operand("a", width), Operand("out", width)
    b = Operand("b", width if b_width is None else b_width)
    scratch = Operand("scratch", 2)
    stages = min((width - 1).bit_length(), b.width)
    sign = rows(a)[-1] if name == "shr_s" else None
    current: Rows = rows(a)
    for stage in range(stages):
        distance = -(1 << stage) if name == "shl" else 1 << stage
        _stage(s, rows(out), current, rows(b)[stage], distance, sign is not None)
        current = rows(out)
    _overflow(s, rows(out), current, rows(b)[stages:], rows(scratch), sign is not None)
    used = 0 if stages == b.width else 1 if sign is None else 2
    return finish(s, name, width, [a, b], [out], [Operand("scratch", used)])


def _stage(
    s: Steps,
    out: Rows,
    current: Rows,
    choice: Address,
    distance: int,
    signed: bool,
) -> None:
    """Each bit of out = that of `current` `distance` places up where `choice` is 1, else its own.

    In an order that reads every row before it is overwritten where current and out are the same.
    """
    kept: list[int] = []
    bits = range(len(out))
    for i in bits if distance > 0 else reversed(bits):
        if 0 <= i + distance < len(out):
            s.select_words([out[i]], choice, [current[i + distance]], [current[i]])
        elif not signed:
            kept.append(i)
        elif i < len(out) - 1:
            s.select_words([out[i]], choice, [current[-1]], [current[i]])
        elif current[i] != out[i]:
            s.copy([out[i]], [current[i]])
    sources, targets = [current[i] for i in kept], [out[i] for i in kept]
    s.majority_words(targets, [choice] * len(kept), sources, C0, invert_a=True)


def _overflow(s: Steps, out: Rows, current: Rows, high: Rows, scratch: Rows, signed: bool) -> None:
    """Where any bit of `high` is 1, out = 0, or the sign everywhere; else out = current."""
    if not high:
        if current[0] != out[0]:
            s.copy(out, current)
        return
    s.fold_rows(scratch[0], high, C1)
    if not signed:
        s.invert(scratch[:1], scratch[:1])
        s.mask_words(out, current, scratch[0], C0)
        return
    # M(x, p, q) is x for p = 0 and q = 1, and the sign for p = q = sign.
    sign = [current[-1]]
    s.majority_words(scratch[1:], scratch[:1], sign, C1, invert_a=True)
    s.majority_words(scratch[:1], scratch[:1], sign, C0, invert_a=False)
    s.mask_words(out[:-1], current[:-1], scratch[0], scratch[1])
    if current[-1] != out[-1]:
        s.copy(out[-1:], sign)
