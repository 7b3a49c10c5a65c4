"""Programs of bitwise logic, choices, moves, and reductions over the rows of a word."""

from cim_opt.microprograms.frame import finish, rows
from cim_opt.microprograms.model import C0, C1, Operand, RowProgram
from cim_opt.microprograms.steps import Steps


def copy(
    s: Steps,
    width: int,
    *,
    a_width: int | None = None,
    signed: bool = False,
    complemented: bool = False,
) -> RowProgram:
    """out = a, cut or extended (with its sign if `signed`) to `width` bits; 1 a row.

    `complemented`: a and out are stored complemented.
    """
    a = Operand("a", width if a_width is None else a_width, complemented)
    out = Operand("out", width, complemented)
    source = rows(a)[:width]
    fill = source[-1] if signed else C1 if complemented else C0
    s.copy(rows(out), source + [fill] * (width - len(source)))
    return finish(s, "copy", width, [a], [out])


def fill(s: Steps, width: int, *, value: int) -> RowProgram:
    """out = a constant (modulo 2^width), from the constant rows; 1 a row."""
    out = Operand("out", width)
    s.copy(rows(out), [C1 if value >> index & 1 else C0 for index in range(width)])
    return finish(s, "fill", width, [], [out])


def invert(s: Steps, width: int) -> RowProgram:
    """out = bitwise not a; 2 a row."""
    a, out = Operand("a", width), Operand("out", width)
    s.invert(rows(out), rows(a))
    return finish(s, "not", width, [a], [out])


def _conjunction(
    s: Steps, name: str, width: int, value: int, a_not: bool, b_not: bool, out_not: bool
) -> RowProgram:
    """AND for `value` 0, OR for 1, of operands in either polarity.

    By De Morgan a complemented result is the dual operation on complemented operands. One
    operand is complemented for free on its way into a dual-contact row; where both would have
    to be, the result is complemented instead.
    """
    a, b = Operand("a", width, a_not), Operand("b", width, b_not)
    out = Operand("out", width, out_not)
    invert_a, invert_b = a_not != out_not, b_not != out_not
    constant = C1 if value ^ out_not else C0
    first, second = rows(a), rows(b)
    if invert_a and invert_b:
        dual = C0 if constant == C1 else C1
        s.majority_words_inverted(rows(out), first, second, dual)
    elif invert_b:
        s.majority_words(rows(out), second, first, constant, invert_a=True)
    else:
        s.majority_words(rows(out), first, second, constant, invert_a=invert_a)
    return finish(s, name, width, [a, b], [out])


def conjunction(
    s: Steps,
    width: int,
    *,
    a_complemented: bool = False,
    b_complemented: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = a and b."""
    return _conjunction(s, "and", width, 0, a_complemented, b_complemented, out_complemented)


def disjunction(
    s: Steps,
    width: int,
    *,
    a_complemented: bool = False,
    b_complemented: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = a or b."""
    return _conjunction(s, "or", width, 1, a_complemented, b_complemented, out_complemented)


def parity(
    s: Steps,
    width: int,
    *,
    a_complemented: bool = False,
    b_complemented: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = a xor b; a complement anywhere costs nothing; 7 a row."""
    a, b = Operand("a", width, a_complemented), Operand("b", width, b_complemented)
    out = Operand("out", width, out_complemented)
    invert = a_complemented ^ b_complemented ^ out_complemented
    s.xor_words(rows(out), rows(a), rows(b), invert)
    return finish(s, "xor", width, [a, b], [out])


def mask(s: Steps, width: int, *, choice_complemented: bool = False) -> RowProgram:
    """out = a where the one-bit operand `choice` is 1, else 0; 3 a row."""
    a, choice = Operand("a", width), Operand("choice", 1, choice_complemented)
    out, scratch = Operand("out", width), Operand("scratch", 1 if choice_complemented else 0)
    selector = rows(choice)[0]
    if choice_complemented:
        s.invert(rows(scratch), rows(choice))
        selector = rows(scratch)[0]
    s.mask_words(rows(out), rows(a), selector, C0)
    return finish(s, "mask", width, [choice, a], [out], [scratch])


def select(
    s: Steps, width: int, *, complemented: bool = False, choice_complemented: bool = False
) -> RowProgram:
    """out = a where the one-bit operand `choice` is 1, else b; 7 a row.

    `complemented`: all of a, b and out are stored complemented.
    """
    choice = Operand("choice", 1, choice_complemented)
    a, b, out = (Operand(name, width, complemented) for name in ("a", "b", "out"))
    chosen, other = (b, a) if choice_complemented else (a, b)
    s.select_words(rows(out), rows(choice)[0], rows(chosen), rows(other))
    return finish(s, "select", width, [choice, a, b], [out])


def reduce_and(s: Steps, width: int) -> RowProgram:
    """out = one bit, whether all bits of a are 1."""
    a, out = Operand("a", width), Operand("out", 1)
    s.fold_rows(rows(out)[0], rows(a), C0)
    return finish(s, "reduce_and", width, [a], [out])


def reduce_or(s: Steps, width: int) -> RowProgram:
    """out = one bit, whether any bit of a is 1."""
    a, out = Operand("a", width), Operand("out", 1)
    s.fold_rows(rows(out)[0], rows(a), C1)
    return finish(s, "reduce_or", width, [a], [out])


def reduce_xor(s: Steps, width: int) -> RowProgram:
    """out = one bit, whether an odd number of bits of a is 1."""
    a, out = Operand("a", width), Operand("out", 1)
    s.fold_parity(rows(out)[0], rows(a))
    return finish(s, "reduce_xor", width, [a], [out])
