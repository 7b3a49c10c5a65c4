"""Programs that add, subtract, negate, and compare."""

from cim_opt.microprograms.frame import extended, finish, rows, unsupported
from cim_opt.microprograms.model import C0, C1, Address, Operand, RowProgram
from cim_opt.microprograms.short_steps import ShortSteps
from cim_opt.microprograms.steps import Rows, Steps


def _second(width: int, b_width: int | None, complemented: bool, signed: bool) -> Operand:
    """Operand b, perhaps narrower than the result."""
    if b_width is None or b_width == width:
        return Operand("b", width, complemented)
    if not 0 < b_width < width:
        raise unsupported("add, sub", f"b has {b_width} bits", f"at most {width} bits")
    if complemented and not signed:
        raise unsupported(
            "add, sub", "a complemented operand that grows without sign", "extend it first"
        )
    return Operand("b", b_width, complemented)


def add(
    s: Steps,
    width: int,
    *,
    b_width: int | None = None,
    b_signed: bool = False,
    a_complemented: bool = False,
    b_complemented: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = a + b; cheapest where exactly one of a and b is complemented, out either way.

    In stored rows, where x stands for the complement of its value:
    a + b = b - x - 1, ~(a + b) = x - b, and ~(a + b) = x + y + 1 where both are complemented.
    """
    a, out = Operand("a", width, a_complemented), Operand("out", width, out_complemented)
    b = _second(width, b_width, b_complemented, b_signed)
    first, second = rows(a), extended(b, width, b_signed)
    if a_complemented == b_complemented:
        if out_complemented != a_complemented:
            raise unsupported("add", "no such polarity", "complement one operand, or all three")
        s.add_words(rows(out), first, second, C1 if a_complemented else C0)
    else:
        stored, plain = (first, second) if a_complemented else (second, first)
        if out_complemented:
            s.subtract_words(rows(out), stored, plain)
        else:
            s.subtract_words(rows(out), plain, stored, C1)
    return finish(s, "add", width, [a, b], [out])


def sub(
    s: Steps,
    width: int,
    *,
    b_width: int | None = None,
    b_signed: bool = False,
    a_complemented: bool = False,
    b_complemented: bool = False,
    out_complemented: bool = False,
) -> RowProgram:
    """out = a - b; cheapest where a and b have one polarity, out either way.

    In stored rows: a - b = y - x where both are complemented, ~(a - b) = b - a - 1,
    a - b = a + y + 1, and ~(a - b) = x + b.
    """
    a, out = Operand("a", width, a_complemented), Operand("out", width, out_complemented)
    b = _second(width, b_width, b_complemented, b_signed)
    first, second = rows(a), extended(b, width, b_signed)
    if a_complemented == b_complemented:
        swap = a_complemented != out_complemented
        left, right = (second, first) if swap else (first, second)
        s.subtract_words(rows(out), left, right, C1 if out_complemented else C0)
    elif a_complemented == out_complemented:
        s.add_words(rows(out), first, second, C1 if b_complemented else C0)
    else:
        raise unsupported("sub", "no such polarity", "give the result the polarity of a")
    return finish(s, "sub", width, [a, b], [out])


def negate(s: Steps, width: int, *, out_complemented: bool = False) -> RowProgram:
    """out = -a."""
    a, out = Operand("a", width), Operand("out", width, out_complemented)
    zeros: Rows = [C0] * width
    if out_complemented:
        s.subtract_words(rows(out), rows(a), zeros, C1)
    else:
        s.subtract_words(rows(out), zeros, rows(a))
    return finish(s, "neg", width, [a], [out])


def absolute(s: Steps, width: int) -> RowProgram:
    """out = -a where a < 0, else a; the least number stays what it is."""
    a, out = Operand("a", width), Operand("out", width)
    s.absolute(rows(out), rows(a))
    return finish(s, "abs", width, [a], [out])


def negate_if(s: Steps, width: int) -> RowProgram:
    """out = -a where the one-bit operand `choice` is 1, else a."""
    choice, a, out = Operand("choice", 1), Operand("a", width), Operand("out", width)
    s.negate_if(rows(out), rows(a), rows(choice)[0])
    return finish(s, "negate_if", width, [choice, a], [out])


def relu(s: Steps, width: int) -> RowProgram:
    """out = a where a >= 0, else 0."""
    a, out = Operand("a", width), Operand("out", width)
    s.relu(rows(out), rows(a))
    return finish(s, "relu", width, [a], [out])


def ordered(a: Rows, b: Rows, signed: bool) -> tuple[Rows, Rows]:
    """Two words whose unsigned order is the order asked for: signed ones swap their top rows.

    Order turns around with the complement of both top bits, and the chain of a comparison
    complements one operand anyway.
    """
    if not signed:
        return a, b
    return [*a[:-1], b[-1]], [*b[:-1], a[-1]]


# Relation: whether the operands swap, and the value of the chain for equal words.
_RELATIONS: dict[str, tuple[bool, Address]] = {
    "gt": (False, C0),
    "ge": (False, C1),
    "lt": (True, C0),
    "le": (True, C1),
}


def relation(s: Steps, width: int, *, name: str, complemented: bool = False) -> RowProgram:
    """out = one bit, a `name` b, for `gt_u`, `ge_s` and so on; a and b in one polarity."""
    kind, _, sign = name.partition("_")
    swap, start = _RELATIONS[kind]
    a, b = Operand("a", width, complemented), Operand("b", width, complemented)
    left, right = (rows(b), rows(a)) if swap != complemented else (rows(a), rows(b))
    out = Operand("out", 1)
    s.compare(rows(out)[0], *ordered(left, right, sign == "s"), start)
    return finish(s, name, width, [a, b], [out])


def equality(s: Steps, width: int, *, name: str, complemented: bool = False) -> RowProgram:
    """out = one bit, a = b (`eq`) or not (`ne`); a and b in one polarity."""
    a, b = Operand("a", width, complemented), Operand("b", width, complemented)
    out = Operand("out", 1)
    s.equal(rows(out)[0], rows(a), rows(b), invert=name == "ne")
    return finish(s, name, width, [a, b], [out])


def sign_test(s: Steps, width: int, *, name: str) -> RowProgram:
    """out = one bit, a >= 0 (`nonnegative`), a < 0 (`negative`) or a > 0 (`positive`), signed a."""
    a, out = Operand("a", width), Operand("out", 1)
    if name == "nonnegative":
        s.invert(rows(out), rows(a)[-1:])
    elif name == "positive":
        s.positive(rows(out)[0], rows(a))
    else:
        s.copy(rows(out), rows(a)[-1:])
    return finish(s, name, width, [a], [out])


def extreme(s: Steps, width: int, *, name: str, complemented: bool = False) -> RowProgram:
    """out = the lesser or greater of a and b: `min_u`, `max_s`...; all in one polarity."""
    kind, _, sign = name.partition("_")
    a, b, out = (Operand(x, width, complemented) for x in ("a", "b", "out"))
    scratch = Operand("scratch", 1)
    greater = rows(scratch)[0]
    s.compare(greater, *ordered(rows(a), rows(b), sign == "s"), C0)
    # The order of stored rows is that of the values turned around where complemented.
    first, second = (rows(a), rows(b)) if (kind == "max") != complemented else (rows(b), rows(a))
    if not isinstance(s, ShortSteps):
        s.select_words(rows(out), greater, first, second)
        return finish(s, name, width, [a, b], [out], [scratch])
    s.select_words(rows(out)[:-1], greater, first[:-1], second[:-1])
    # The top bit of an unsigned maximum is 1 where either is; each turn of the order is a dual.
    either = (kind == "max") ^ (sign == "s") ^ complemented
    s.majority_words(rows(out)[-1:], rows(a)[-1:], rows(b)[-1:], C1 if either else C0, False)
    return finish(s, name, width, [a, b], [out], [scratch])
