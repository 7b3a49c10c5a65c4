"""NumPy meaning of the float operations, on arrays or NumPy scalars of f32 (and f64).

Add, subtract, multiply, divide, square root and fused multiply-add round once, to nearest even, as
IEEE 754 says. Other functions of f32 (exp, sin, pow...) are computed in f64 and rounded to f32:
within one unit in the last place of the true value, nearly always the nearest, and the same for
every array length and layout, which NumPy's own f32 functions do not promise.
"""

from __future__ import annotations

import numpy as np

from cim_opt.simulators.integer_functions import (
    Binary,
    DType,
    Function,
    Unary,
    Values,
    unsigned_of,
    where,
)


def in_double(function: Function) -> Function:
    """`function` computed in f64 and rounded to its first operand's type."""

    def rounded(a: Values, *others: Values) -> Values:
        wide = [other.astype(np.float64) for other in others]
        return function(a.astype(np.float64), *wide).astype(a.dtype)

    return rounded


def _zeros(a: Values, b: Values) -> Values:
    return (a == 0) & (b == 0)


def maximum(a: Values, b: Values) -> Values:
    """The larger; NaN if either is; +0 is larger than -0 (NumPy takes either)."""
    return where(_zeros(a, b), a + b, np.maximum(a, b))


def minimum(a: Values, b: Values) -> Values:
    """The smaller; NaN if either is; -0 is smaller than +0 (NumPy takes either)."""
    return where(_zeros(a, b), -((-a) + (-b)), np.minimum(a, b))


def maximum_number(a: Values, b: Values) -> Values:
    """The larger; the other one if one is NaN; +0 is larger than -0."""
    return where(_zeros(a, b), a + b, np.fmax(a, b))


def minimum_number(a: Values, b: Values) -> Values:
    """The smaller; the other one if one is NaN; -0 is smaller than +0."""
    return where(_zeros(a, b), -((-a) + (-b)), np.fmin(a, b))


def fused_multiply_add(a: Values, b: Values, c: Values) -> Values:
    """a * b + c of f32, rounded once.

    The product of two f32 is exact in f64, the sum is not. Rounding that sum "to odd" (towards
    the neighbour with an odd last bit) before rounding to f32 gives the once-rounded result, as
    f64 has more than two bits more than f32 (Boldo and Melquiond, 2008).
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = np.asarray(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & np.int64(1)) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    step = where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    odd = where(inexact, total.view(np.int64) + step, total.view(np.int64)).view(np.float64)
    return odd.astype(np.float32)[()]


def _reciprocal_root(a: Values) -> Values:
    return 1.0 / np.sqrt(a)


def round_half_away(a: Values) -> Values:
    """Nearest whole number, halves away from zero."""
    return np.trunc(a + np.copysign(0.5, a))


def to_integer(low: int, high: int, dtype: DType) -> Unary:
    """Rounds towards zero into low..high; NaN gives 0, and what is out of range the nearer end."""

    def function(a: Values) -> Values:
        wide = np.trunc(np.asarray(a, np.float64))
        above, below = wide > float(high), wide < float(low)
        # float(2**63 - 1) is 2**63, itself out of range.
        if float(high) > high:
            above = wide >= float(high)
        inside = where(above | below | np.isnan(wide), 0.0, wide)
        whole = inside.astype(np.uint64 if high >= 2**63 else np.int64)
        ends = where(above, whole.dtype.type(high), whole)
        ends = where(below, whole.dtype.type(low), ends)
        return _narrow(ends, dtype)

    return function


def _narrow(values: Values, dtype: DType) -> Values:
    """Low bits of 64-bit integers; a bool is their lowest bit."""
    if dtype == np.bool_:
        return ((values & values.dtype.type(1)) != 0)[()]
    return values.astype(dtype)[()]


def from_signed(source: DType, target: DType) -> Unary:
    """The float nearest to a signed number; i1 true is -1."""
    if source == np.bool_:
        return lambda a: where(a, target.type(-1), target.type(0))
    return lambda a: a.astype(target)


def from_unsigned(source: DType, target: DType) -> Unary:
    """The float nearest to an unsigned number."""
    unsigned = unsigned_of(source)
    return lambda a: a.view(unsigned).astype(target)


FUNCTIONS: dict[str, Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.maximumf": maximum,
    "arith.minimumf": minimum,
    "arith.maxnumf": maximum_number,
    "arith.minnumf": minimum_number,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": in_double(round_half_away),
    "math.copysign": np.copysign,
    "math.sqrt": np.sqrt,
    "math.rsqrt": in_double(_reciprocal_root),
    "math.cbrt": in_double(np.cbrt),
    "math.exp": in_double(np.exp),
    "math.exp2": in_double(np.exp2),
    "math.expm1": in_double(np.expm1),
    "math.log": in_double(np.log),
    "math.log2": in_double(np.log2),
    "math.log10": in_double(np.log10),
    "math.log1p": in_double(np.log1p),
    "math.powf": in_double(np.power),
    "math.fpowi": in_double(np.power),
    "math.sin": in_double(np.sin),
    "math.cos": in_double(np.cos),
    "math.tan": in_double(np.tan),
    "math.asin": in_double(np.arcsin),
    "math.acos": in_double(np.arccos),
    "math.atan": in_double(np.arctan),
    "math.atan2": in_double(np.arctan2),
    "math.sinh": in_double(np.sinh),
    "math.cosh": in_double(np.cosh),
    "math.tanh": in_double(np.tanh),
    "math.asinh": in_double(np.arcsinh),
    "math.acosh": in_double(np.arccosh),
    "math.atanh": in_double(np.arctanh),
    "math.fma": fused_multiply_add,
}


def _ordered(a: Values, b: Values) -> Values:
    return (a == a) & (b == b)


def _unordered(a: Values, b: Values) -> Values:
    return (a != a) | (b != b)


COMPARISONS: tuple[Binary, ...] = (
    lambda a, b: np.less(a, a) & np.less(b, b),
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    lambda a, b: (a != b) & _ordered(a, b),
    _ordered,
    lambda a, b: (a == b) | _unordered(a, b),
    lambda a, b: ~np.less_equal(a, b),
    lambda a, b: ~np.less(a, b),
    lambda a, b: ~np.greater_equal(a, b),
    lambda a, b: ~np.greater(a, b),
    np.not_equal,
    _unordered,
    lambda a, b: ~(np.less(a, a) & np.less(b, b)),
)
"""`arith.cmpf` by predicate number: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult,
ule, une, uno, true. An unordered comparison is also true when an operand is NaN."""
