"""`//`, `%` and `**` with Python's meaning, which rounds down where the machine cuts.

The IR's divsi and remsi round towards zero, as C does. Python and NumPy round down, so signed
operands need a correction by one; none for powers of two, where a shift and a mask round down
by themselves. By zero: x // 0 is 0 and x % 0 is x, as everywhere in the compiler.
"""

from __future__ import annotations

from typing import Any

from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import is_integer
from cim_opt.frontend.operators import Work, fail_unsupported
from cim_opt.frontend.values import Scalar


def _known(operand: Any) -> int | None:
    """The value of a Python or NumPy integer, None for a traced value."""
    return None if isinstance(operand, Scalar) else int(operand)


def _checked_divisor(work: Work, sign: str, name: str, rhs: Any) -> int | None:
    if not work.element.is_integer:
        fail_unsupported(name, work.element)
    work.ssa(rhs)  # a float, or a number outside the type, is refused here
    divisor = _known(rhs)
    if divisor == 0:
        fail(f"{sign} by the constant 0", "the result would be the same for all elements")
    return divisor


def _shift(divisor: int | None) -> int | None:
    """k when the divisor is 2**k."""
    if divisor is None or divisor <= 0 or divisor & (divisor - 1):
        return None
    return divisor.bit_length() - 1


def floor_divide(work: Work, lhs: Any, rhs: Any) -> Scalar:
    """lhs // rhs, rounded down."""
    divisor = _checked_divisor(work, "//", "floordiv", rhs)
    shift = _shift(divisor)
    if shift is not None:
        return work.binary("rshift", lhs, shift)
    quotient = work.binary("quotient", lhs, rhs)
    if not work.element.signed:
        return quotient
    remainder = work.binary("remainder", lhs, rhs)
    low = work.binary("sub", quotient, 1)
    return work.select(_differs(work, remainder, rhs, divisor), low, quotient)


def modulo(work: Work, lhs: Any, rhs: Any) -> Scalar:
    """lhs % rhs, with the sign of rhs."""
    divisor = _checked_divisor(work, "%", "mod", rhs)
    if divisor is not None and _shift(divisor) is not None:
        return work.binary("and", lhs, divisor - 1)
    remainder = work.binary("remainder", lhs, rhs)
    if not work.element.signed:
        return remainder
    moved = work.binary("add", remainder, rhs)
    return work.select(_differs(work, remainder, rhs, divisor), moved, remainder)


def _differs(work: Work, remainder: Scalar, rhs: Any, divisor: int | None) -> Scalar:
    """True when the remainder is on the other side of zero than the divisor."""
    if divisor is not None:
        return work.compare("lt" if divisor > 0 else "gt", remainder, 0)
    # Both tests fail for the divisor 0: x // 0 stays 0 and x % 0 stays x.
    up = _both(work, work.compare("lt", remainder, 0), work.compare("gt", rhs, 0))
    down = _both(work, work.compare("gt", remainder, 0), work.compare("lt", rhs, 0))
    return Work(work.scope, up.element).binary("or", up, down)


def _both(work: Work, a: Scalar, b: Scalar) -> Scalar:
    return Work(work.scope, a.element).binary("and", a, b)


def power(work: Work, base: Any, exponent: Any) -> Scalar:
    """base ** exponent for a constant whole exponent, multiplied out; floats only squared."""
    limit = "the exponent is a whole number from 0, and 2 for float32"
    remedy = "multiply it out, or use exp(y * log(x))"
    if not is_integer(exponent):
        fail(f"** with an exponent of type {type(exponent).__name__}", limit, remedy)
    count = int(exponent)
    if work.element.is_bool:
        fail_unsupported("pow", work.element)
    if count < 0 or (work.element.is_float and count != 2):
        fail(f"{work.element} ** {count}", limit, remedy)
    return _multiplied_out(work, base, count)


def _multiplied_out(work: Work, base: Any, count: int) -> Scalar:
    result: Scalar | None = None
    square = base
    while count:
        if count & 1:
            result = square if result is None else work.binary("mul", result, square)
        count >>= 1
        if count:
            square = work.binary("mul", square, square)
    return work.scalar(work.ssa(1)) if result is None else result
