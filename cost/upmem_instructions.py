"""Instructions that one operation takes on an UPMEM DPU, by kind and width.

A DPU has 32-bit registers, shifts fused with add and subtract, an 8 x 8-bit multiplier, and steps
for longer multiplication and division; it has no floating-point unit. Values narrower than a
register are kept extended to 32 bits, as its loads leave them. An `index` counts as 32 bits.

Sources: the decoded instruction set and SDK routines of a real DPU program; measurements of single
operations on one DPU (github tud-ccc/cnm-cost-model, UPMEM/LUT/output); what the SDK's compiler
selects for products of 8 and 16 bits (github upmem/llvm-project, llvm/lib/Target/DPU); published
throughput of the PrIM micro-benchmarks for floating point. Estimates are marked as such.

What this module does not know raises `CostUnknown`; nothing costs 0 for want of a figure.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Bounds = tuple[int, int]

INTEGER_WIDTHS = (1, 8, 16, 32, 64)

# Per iteration of a loop: bump the counter, and compare and branch in one instruction.
LOOP_INSTRUCTIONS = 2

MUL8 = 1  # mul_sl_sl and its like
MUL8_16 = 3  # two products of bytes, one shifted and added
MUL16 = 7  # four products of bytes, three of them shifted and added
MUL16_SMALL = 1  # the first of them branches when both factors are bytes without a sign; measured
MUL32_FIXED = 7  # call, swap so that the smaller operand is scanned, moves, return
MUL64 = 129  # measured; the steps hardly depend on the operands
DIV32_FIXED = 8  # call and set-up; then one step for each bit of the quotient
DIV_SIGNED = 9  # take magnitudes, divide, put the sign back
DIV64_FIXED = 41  # with one step: measured 47
DIV64_STEP = 6  # estimate: shift, compare and subtract on register pairs
SHIFT64_CONSTANT = 4
SHIFT64_VARIABLE = 7
ADD64 = 2

# Cost of one instruction each up to 32 bits, then of the pair of registers.
_SIMPLE: dict[str, tuple[float, float]] = {
    "add": (1, ADD64),
    "sub": (1, ADD64),
    "and": (1, 2),
    "or": (1, 2),
    "xor": (1, 2),
    "compare": (1, 3),  # 1 also when a branch uses it: they fuse
    "select": (2, 4),
    "min": (2, 5),
    "max": (2, 5),
    "abs": (2, 5),
    "neg": (1, 2),
    "popcount": (1, 3),
    "clz": (1, 4),
    "load": (1, 1),  # one instruction for every width, measured
    "store": (1, 1),
    "branch": (1, 1),
    "call": (2, 2),
}

# Software floating point for 32 and 64 bits. Additions and multiplications: published throughput,
# within 20 % by operands; the measured rows agree within 7 %.
_FLOAT: dict[str, tuple[float, float]] = {
    "fadd": (64, 97),
    "fsub": (69, 105),
    "fmul": (176, 650),
    "fdiv": (1022, 2180),
    "fcompare": (45, 60),  # estimate
    "fmin": (47, 64),  # estimate: compare and select
    "fmax": (47, 64),  # estimate
    "fneg": (1, 1),  # flips the sign bit
    "fabs": (1, 1),
    "int_to_float": (45, 60),  # estimate
    "float_to_int": (45, 60),  # estimate
    "float_resize": (45, 45),  # estimate, from or to 64 bits
}

_OTHER = {"shl", "shr", "mul", "div", "rem", "extend", "truncate"}

KINDS = frozenset(_SIMPLE) | frozenset(_FLOAT) | frozenset(_OTHER)


class CostUnknown(ValueError):
    """There is no instruction cost for this operation at this width."""


@dataclass(frozen=True, slots=True)
class CostRange:
    """Instructions of a data-dependent operation: mean over uniform operands, and the worst."""

    expected: float
    worst: int


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One instruction of a multiplication by a constant, on `x` and the result `acc` so far.

    `lsl_add`: acc = x + (acc << shift); `lsl_sub`: acc = x - (acc << shift);
    `lsl`: acc = acc << shift; `neg_lsl`: acc = 0 - (acc << shift). `acc` starts as `x`.
    """

    operation: str
    shift: int


def instructions(
    kind: str, bits: int, *, signed: bool | None = None, constant: int | None = None
) -> float:
    """Instructions of one operation on values of `bits` bits.

    Integer kinds take widths 1, 8, 16, 32, 64; float kinds 32 and 64. For casts `bits` is the
    width of the result; for `int_to_float`, `float_to_int` and `float_resize` the wider of the
    two widths. `signed` matters for `div`, `rem`, and `extend` to 64 bits, and is then required.
    `constant` is the second operand of shl, shr, mul, div, rem when it is known; without it, mul
    and div are what uniform operands cost on average (`mul_range`, `div_range` know better).
    Raises CostUnknown for any other kind or width.
    """
    if kind in _FLOAT:
        return _FLOAT[kind][_float_column(kind, bits)]
    if bits not in INTEGER_WIDTHS or kind not in KINDS:
        raise CostUnknown(f"no instruction cost for {kind!r} on {bits} bits")
    wide = bits == 64
    if kind in _SIMPLE:
        return _SIMPLE[kind][wide]
    if kind in ("shl", "shr"):
        return _shift(bits, constant)
    if kind == "mul":
        if constant is not None:
            return mul_constant(bits, constant)
        return mul_range(bits, _all_values(bits), _all_values(bits)).expected
    if kind == "truncate":
        return 0 if bits == 32 else 1  # dropping the high register of a pair is free
    if signed is None:
        raise CostUnknown(f"{kind!r} needs to know whether its operands are signed")
    if kind == "extend":
        return 2 if wide and signed else 1
    return _divide(kind, bits, signed, constant)


def _float_column(kind: str, bits: int) -> int:
    if bits not in (32, 64):
        raise CostUnknown(f"no instruction cost for {kind!r} on {bits} bits")
    return int(bits == 64)


def _shift(bits: int, constant: int | None) -> float:
    if constant == 0:
        return 0
    if bits < 64:
        return 1
    if constant is None:
        return SHIFT64_VARIABLE
    return 2 if constant >= 32 else SHIFT64_CONSTANT


# --- multiplication ---------------------------------------------------------------------------


def mul_constant(bits: int, constant: int) -> float:
    """Instructions to multiply by a constant: a chain of shifts and adds, or the routine."""
    if bits not in INTEGER_WIDTHS:
        raise CostUnknown(f"no instruction cost for 'mul' on {bits} bits")
    if bits == 1:
        return 1
    value = _wrap(constant, bits)
    if value == 0:
        return 1
    steps = multiply_chain(value)
    if bits == 64:
        fused = sum(step.operation in ("lsl_add", "lsl_sub") for step in steps)
        shifts = len(steps) - fused
        chain = fused * (SHIFT64_CONSTANT + ADD64) + shifts * SHIFT64_CONSTANT
        return min(chain, MUL64)
    routine = {8: MUL8, 16: MUL16}.get(bits, MUL32_FIXED + 32)
    return min(len(steps), routine)


def mul_by_byte(other: int) -> int:
    """Instructions of a product, up to 32 bits, of a byte and a factor of `other` bytes, 1 or 2."""
    return {1: MUL8, 2: MUL8_16}[other]


def multiply_chain(constant: int) -> tuple[ChainStep, ...]:
    """The shortest chain of fused shifts that multiplies by a constant other than 0."""
    if constant == 0:
        raise CostUnknown("a multiplication by 0 has no chain; its result is 0")
    low = (constant & -constant).bit_length() - 1
    odd = constant >> low
    if low == 0:
        return _odd_chain(odd)
    plain = (*_odd_chain(odd), ChainStep("lsl", low))
    negated = (*_odd_chain(-odd), ChainStep("neg_lsl", low))
    return min(plain, negated, key=len)


@cache
def _odd_chain(target: int) -> tuple[ChainStep, ...]:
    """The shortest chain for an odd constant: target is 1 + 2^g u, or 1 - 2^g u."""
    if target == 1:
        return ()
    rest = target - 1
    shift = (rest & -rest).bit_length() - 1
    rest >>= shift
    subtracted = (*_odd_chain(-rest), ChainStep("lsl_sub", shift))
    # Adding never ends for -1, which is 1 + 2 * -1 again; elsewhere it is no shorter either.
    if rest == -1:
        return subtracted
    return min((*_odd_chain(rest), ChainStep("lsl_add", shift)), subtracted, key=len)


def mul_instructions(a: npt.ArrayLike, b: npt.ArrayLike, bits: int) -> IntArray:
    """Instructions of a * b for each pair of operands, in their broadcast shape.

    Integer arrays, signed or unsigned, of `bits` bits or more. The 32-bit routine scans the
    smaller operand, both taken as unsigned, bit by bit, and stops after its highest one. A product
    of 16 bits is one of bytes when both operands, taken as unsigned, are less than 256.
    """
    if bits not in INTEGER_WIDTHS:
        raise CostUnknown(f"no instruction cost for 'mul' on {bits} bits")
    left, right = _integers(a), _integers(b)
    if bits == 16:
        small = (_unsigned32(left) | _unsigned32(right)) < 256
        return np.where(small, np.int64(MUL16_SMALL), np.int64(MUL16))
    if bits != 32:
        shape = np.broadcast_shapes(left.shape, right.shape)
        return np.full(shape, {1: 1, 8: MUL8, 64: MUL64}[bits], np.int64)
    smaller = np.asarray(np.minimum(_unsigned32(left), _unsigned32(right)))
    smaller |= np.uint32(1)  # at least one step, also for 0
    return _bit_length(smaller, MUL32_FIXED)


def mul_range(bits: int, a: Bounds, b: Bounds) -> CostRange:
    """Cost of a * b when each operand is anywhere in its range (both ends included)."""
    if bits == 16:
        small = (1 - _share_from(a, 256)) * (1 - _share_from(b, 256))
        expected = small * MUL16_SMALL + (1 - small) * MUL16
        return CostRange(expected, MUL16 if small < 1 else MUL16_SMALL)
    if bits != 32:
        cost = int(mul_instructions(np.zeros(1, np.int64), 0, bits)[0])
        return CostRange(cost, cost)
    at_least = [_share_from(a, 1 << k) * _share_from(b, 1 << k) for k in range(1, 32)]
    bits_worst = 1 + sum(share > 0 for share in at_least)
    return CostRange(MUL32_FIXED + 1 + sum(at_least), MUL32_FIXED + bits_worst)


def _share_from(bounds: Bounds, least: int) -> float:
    """Share of the values in a range that are at least `least` as unsigned 32-bit numbers."""
    low, high = _ordered(bounds)
    negative = max(0, min(high, -1) - low + 1)  # these are 2^31 and more
    positive = max(0, high - max(low, least) + 1)
    return (negative + positive) / (high - low + 1)


# --- division ---------------------------------------------------------------------------------


def _divide(kind: str, bits: int, signed: bool, constant: int | None) -> float:
    magnitude = 0 if constant is None else abs(constant)
    if magnitude and magnitude & (magnitude - 1) == 0:
        return _divide_by_power(kind, bits, signed, cast(int, constant))
    values = _all_values(bits, signed)
    divisor = values if constant is None else (constant, constant)
    return div_range(bits, signed, values, divisor).expected


def _divide_by_power(kind: str, bits: int, signed: bool, constant: int) -> float:
    """Division by +-2^k: shifts; a signed one first adds 2^k - 1 to negative values."""
    shift = abs(constant).bit_length() - 1
    pair = 2 if bits == 64 else 1  # of an instruction on each register of a value
    if shift == 0:
        return pair if kind == "rem" or constant < 0 else 0
    by_constant = _shift(bits, shift)
    if not signed:
        return by_constant if kind == "div" else pair
    # Spread the sign, add its low k bits (fused with the shift on 32 bits), then shift or mask.
    bias = _shift(bits, bits - 1) + (by_constant if bits == 64 else 0) + pair
    if kind == "rem":
        return bias + 2 * pair
    return bias + by_constant + (pair if constant < 0 else 0)


def div_instructions(a: npt.ArrayLike, b: npt.ArrayLike, bits: int, signed: bool) -> IntArray:
    """Instructions of a / b, or of a % b, for each pair of operands, in their broadcast shape.

    One step for each bit of the quotient: the distance between the highest ones of dividend and
    divisor, and one. No steps when the divisor is longer.
    """
    _check_division(bits)
    dividend = _magnitude_bits(_integers(a), bits, signed)
    divisor = _magnitude_bits(_integers(b), bits, signed)
    steps = np.asarray(dividend - divisor)
    steps += 1
    np.maximum(steps, 0, out=steps)
    steps *= _step_cost(bits)
    steps += _fixed_cost(bits, signed)
    return steps


def div_range(bits: int, signed: bool, a: Bounds, b: Bounds) -> CostRange:
    """Cost of a / b or a % b when each operand is anywhere in its range (both ends included)."""
    _check_division(bits)
    lengths_a, lengths_b = _length_shares(a), _length_shares(b)
    mean = sum(
        share_a * share_b * max(0, length_a - length_b + 1)
        for length_a, share_a in lengths_a.items()
        for length_b, share_b in lengths_b.items()
    )
    worst = max(0, max(lengths_a) - min(lengths_b) + 1)
    fixed, step = _fixed_cost(bits, signed), _step_cost(bits)
    return CostRange(fixed + step * mean, fixed + step * worst)


def _check_division(bits: int) -> None:
    if bits not in INTEGER_WIDTHS or bits == 1:
        raise CostUnknown(f"no instruction cost for 'div' on {bits} bits")


def _step_cost(bits: int) -> int:
    return DIV64_STEP if bits == 64 else 1


def _fixed_cost(bits: int, signed: bool) -> int:
    if bits == 64:
        return DIV64_FIXED + (DIV_SIGNED if signed else 0)
    # Narrow operands are extended to 32 bits first, 10 against 9 for 128 / 128, measured.
    return DIV32_FIXED + (DIV_SIGNED if signed else 0) + (1 if bits < 32 else 0)


def _length_shares(bounds: Bounds) -> dict[int, float]:
    """Share of each bit length among the magnitudes of the values in a range."""
    low, high = _ordered(bounds)
    shares: dict[int, float] = {}
    for length in range(65):
        first, last = (1 << length) >> 1, (1 << length) - 1
        positive = max(0, min(high, last) - max(low, first) + 1)
        negative = max(0, min(high, -first) - max(low, -last) + 1) if length else 0
        if positive + negative:
            shares[length] = (positive + negative) / (high - low + 1)
    return shares


# --- helpers ----------------------------------------------------------------------------------


def _wrap(value: int, bits: int) -> int:
    """The value as a signed number of `bits` bits."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _all_values(bits: int, signed: bool = True) -> Bounds:
    if signed:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def _ordered(bounds: Bounds) -> Bounds:
    if bounds[0] > bounds[1]:
        raise ValueError(f"range {bounds} is empty")
    return bounds


def _integers(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "iub":
        raise TypeError(f"operands must be integers, not {array.dtype}")
    return array


def _unsigned32(values: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """The low 32 bits; without a copy where the width allows, for copies dominate the time."""
    if values.dtype == np.int32:
        return values.view(np.uint32)
    return values.astype(np.uint32, copy=False)


def _bit_length(values: npt.NDArray[Any], add: int = 0) -> IntArray:
    """Bits of unsigned numbers that a double holds exactly, plus `add`; -1022 for 0.

    The exponent of the number as a double counts its bits.
    """
    length = np.asarray(values).astype(np.float64).view(np.int64)
    np.right_shift(length, 52, out=length)
    length += add - 1022
    return length


def _magnitude_bits(values: npt.NDArray[Any], bits: int, signed: bool) -> IntArray:
    """Bit length of each magnitude, 0 for 0."""
    kind = f"{'int' if signed else 'uint'}{bits}"
    wide = values.astype(kind, copy=False)
    if bits < 64:
        magnitude = wide.astype(np.int64)
        np.abs(magnitude, out=magnitude)
    else:
        # The magnitude of the least int64 wraps to itself, which is right as an unsigned number.
        magnitude = np.abs(wide).view(np.uint64) if signed else wide
        # Without the bit below the highest one, rounding to a double cannot carry.
        magnitude = magnitude & ~(magnitude >> np.uint64(1))
    length = _bit_length(magnitude)
    return np.maximum(length, 0, out=length)
