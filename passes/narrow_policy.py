"""How many bits an operation can be computed in, from what is known of its operands and result.

Operations are of three kinds. The low bits of a sum, product, bitwise function or shift to the left
depend on the low bits of the operands alone, so the result decides. Quotients, remainders, minima
and shifts to the right need their operands whole; on numbers that are not negative a signed one
gives what the unsigned one gives. All others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from cim_opt.mapping.ranges import Range

Widths = Literal["native", "any"]

NATIVE_WIDTHS = (8, 16, 32, 64)

LOW_BITS = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
)
"""Low bits of the result come from low bits of both operands."""

UNSIGNED_OF: dict[type[Operation], type[Operation]] = {
    arith.DivSIOp: arith.DivUIOp,
    arith.RemSIOp: arith.RemUIOp,
    arith.FloorDivSIOp: arith.DivUIOp,
    arith.CeilDivSIOp: arith.CeilDivUIOp,
    arith.MinSIOp: arith.MinUIOp,
    arith.MaxSIOp: arith.MaxUIOp,
    arith.ShRSIOp: arith.ShRUIOp,
}
"""Signed operations, and what gives the same on numbers that are not negative."""

SHIFTS: tuple[type[Operation], ...] = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
DIVISIONS: tuple[type[Operation], ...] = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)


@dataclass(frozen=True)
class Form:
    """An operation in other words: its class, its bits, and how its result is extended again."""

    kind: type[Operation]
    bits: int
    by_sign: bool


def round_up(bits: int, widths: Widths) -> int:
    """The least width of at least `bits` bits that values may have."""
    if widths == "any":
        return bits
    return next(width for width in NATIVE_WIDTHS if width >= bits)


def form_of(
    op: Operation, operands: Sequence[Range], result: Range, demanded: int, widths: Widths
) -> Form | None:
    """What to write for `op`, whose result has `demanded` bits that matter; None for itself."""
    form = _narrowest(op, operands, result, demanded)
    if form is None:
        return None
    if widths == "any":
        changes = form.bits < result.width or form.kind is not type(op)
        return form if changes or isinstance(op, arith.MuliOp) else None
    if isinstance(op, arith.MuliOp):
        return _product(form, operands, result.width)
    if isinstance(op, DIVISIONS):
        # One register divides in as many steps whatever its type; pairs of registers cost more.
        bits = result.width if result.width <= 32 else max(32, round_up(form.bits, widths))
        changes = bits < result.width or form.kind is not type(op)
        return Form(form.kind, bits, form.by_sign) if changes else None
    return None


def _product(form: Form, factors: Sequence[Range], width: int) -> Form | None:
    """A product in registers.

    Constants are multiplied by in shifts and additions, which gain nothing from fewer bits. Factors
    of 8 and 16 bits have multiplications of their own, up to 32 bits.
    """
    bits = round_up(form.bits, "native")
    if any(factor.value is not None for factor in factors):
        bits = max(32, bits)
        return Form(form.kind, bits, form.by_sign) if bits < width else None
    longest = max(factor.narrowest()[0] for factor in factors)
    if bits == 16 and 8 < longest <= 16 and width >= 32:
        bits = 32  # as short, and the result needs no extension
    if bits < width or (longest <= 16 and round_up(longest, "native") < width <= 32):
        return Form(form.kind, bits, form.by_sign)
    return None


def _narrowest(
    op: Operation, operands: Sequence[Range], result: Range, demanded: int
) -> Form | None:
    """The form of `op` with the fewest bits, at most those that it has."""
    bits, by_sign = result.narrowest()
    bits = min(bits, demanded)
    if isinstance(op, (*LOW_BITS, arith.SelectOp)):
        return Form(type(op), bits, by_sign)
    if isinstance(op, arith.ShLIOp):
        return Form(arith.ShLIOp, max(bits, operands[1].unsigned_bits), by_sign)
    if isinstance(op, math.AbsIOp):
        least = max(operands[0].signed_bits, result.unsigned_bits)
        return Form(math.AbsIOp, least, False)
    if isinstance(op, math.CtPopOp):
        return Form(math.CtPopOp, operands[0].unsigned_bits, False)
    if type(op) in UNSIGNED_OF or type(op) in UNSIGNED_OF.values():
        return _whole(op, operands, result)
    return None


def _whole(op: Operation, operands: Sequence[Range], result: Range) -> Form:
    """An operation that needs its operands whole; shifts need all of the amount, too."""
    amount = operands[1].unsigned_bits if isinstance(op, SHIFTS) else 0
    numbers = operands[:1] if isinstance(op, SHIFTS) else operands
    unsigned = UNSIGNED_OF.get(type(op))
    if unsigned is None or all(number.is_positive for number in numbers):
        least = max(amount, *(number.unsigned_bits for number in numbers))
        return Form(unsigned or type(op), least, False)
    least = max(amount, result.signed_bits, *(number.signed_bits for number in numbers))
    return Form(type(op), least, True)


def compare_form(op: arith.CmpiOp, a: Range, b: Range) -> tuple[int, int]:
    """Predicate and bits in which a comparison gives the same."""
    by_sign = max(a.signed_bits, b.signed_bits)
    by_zeros = max(a.unsigned_bits, b.unsigned_bits)
    number = op.predicate.value.data
    if number < 2:
        return number, min(by_sign, by_zeros)
    if number >= 6:
        return number, by_zeros
    if a.is_positive and b.is_positive:
        return number + 4, by_zeros
    return number, by_sign
