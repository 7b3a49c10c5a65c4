"""arith and math on NumPy arrays against plain Python integers and exact fractions."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    f16,
    f32,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Operation, SSAValue

from cim_opt.errors import UserError
from cim_opt.simulators.elementwise import constant_value, dtype_of, function_of, quiet

WIDTHS = (1, 8, 16, 32, 64)


def value_of(type: Attribute) -> SSAValue:
    return TestOp(result_types=[type]).results[0]


def signed(bits: int, width: int) -> int:
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def array(numbers: list[int], width: int) -> Any:
    """Numbers modulo 2**width in the NumPy dtype of iN."""
    if width == 1:
        return np.array([number & 1 for number in numbers], np.bool_)
    return np.array([signed(number, width) for number in numbers], f"int{width}")


def bits_of(values: Any, width: int) -> list[int]:
    return [int(value) & ((1 << width) - 1) for value in np.ravel(values)]


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def divided(rule: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda a, b, width: rule(a, b) if b else 0


def rest(a: int, b: int, width: int) -> int:
    return a - truncated(a, b) * b if b else a


SIGNED: dict[type[Operation], Callable[[int, int, int], int]] = {
    arith.AddiOp: lambda a, b, w: a + b,
    arith.SubiOp: lambda a, b, w: a - b,
    arith.MuliOp: lambda a, b, w: a * b,
    arith.DivSIOp: divided(truncated),
    arith.FloorDivSIOp: divided(lambda a, b: a // b),
    arith.CeilDivSIOp: divided(lambda a, b: -(-a // b)),
    arith.RemSIOp: rest,
    arith.MinSIOp: lambda a, b, w: min(a, b),
    arith.MaxSIOp: lambda a, b, w: max(a, b),
    arith.AndIOp: lambda a, b, w: a & b,
    arith.OrIOp: lambda a, b, w: a | b,
    arith.XOrIOp: lambda a, b, w: a ^ b,
    arith.ShLIOp: lambda a, b, w: a << (b % 2**w) if b % 2**w < w else 0,
    arith.ShRSIOp: lambda a, b, w: a >> min(b % 2**w, w),
}
UNSIGNED: dict[type[Operation], Callable[[int, int, int], int]] = {
    arith.DivUIOp: divided(lambda a, b: a // b),
    arith.CeilDivUIOp: divided(lambda a, b: -(-a // b)),
    arith.RemUIOp: rest,
    arith.MinUIOp: lambda a, b, w: min(a, b),
    arith.MaxUIOp: lambda a, b, w: max(a, b),
    arith.ShRUIOp: lambda a, b, w: a >> b if b < w else 0,
}
UNARY: dict[type[Operation], Callable[[int, int], int]] = {
    math.AbsIOp: lambda a, w: abs(signed(a, w)),
    math.CtPopOp: lambda a, w: a.bit_count(),
    math.CountLeadingZerosOp: lambda a, w: w - a.bit_length(),
    math.CountTrailingZerosOp: lambda a, w: (a & -a).bit_length() - 1 if a else w,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

SIGNED_NAMES = ("slt", "sle", "sgt", "sge")
UNSIGNED_NAMES = ("ult", "ule", "ugt", "uge")


def operand_pairs(width: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Pairs of numbers below 2**width, with many small, extreme and near ones; up to 40 of them,
    so that NumPy's vector loops and their ends both run."""
    top = (1 << width) - 1
    corners = [0, 1, width % (top + 1), top, top >> 1, (top >> 1) + 1, top - 1 if top > 1 else 0]
    number = st.one_of(st.sampled_from(corners), st.integers(0, top), st.integers(0, min(top, 70)))
    return st.lists(st.tuples(number, number), min_size=1, max_size=40)


def run(op: Operation, *args: Any) -> Any:
    with quiet():
        return function_of(op)(*args)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED], ids=lambda kind: kind.name)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_binary(kind: type[Any], width: int, data: st.DataObject) -> None:
    pairs = data.draw(operand_pairs(width))
    op = kind(value_of(IntegerType(width)), value_of(IntegerType(width)))
    a, b = array([x for x, _ in pairs], width), array([y for _, y in pairs], width)
    if kind in SIGNED:
        expected = [SIGNED[kind](signed(x, width), signed(y, width), width) for x, y in pairs]
    else:
        expected = [UNSIGNED[kind](x, y, width) for x, y in pairs]
    got = run(op, a, b)
    assert got.dtype == a.dtype
    assert bits_of(got, width) == [value & ((1 << width) - 1) for value in expected]
    # Scalars, and a scalar with an array, are computed in the same way.
    assert bits_of(run(op, a[0], b[0]), width) == bits_of(got[0], width)
    assert bits_of(run(op, a, b[0])[0], width) == bits_of(got[0], width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", UNARY, ids=lambda kind: kind.name)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_unary(kind: type[Any], width: int, data: st.DataObject) -> None:
    numbers = [x for x, _ in data.draw(operand_pairs(width))]
    op = kind(value_of(IntegerType(width)))
    got = run(op, array(numbers, width))
    mask = (1 << width) - 1
    assert got.dtype == array([0], width).dtype
    assert bits_of(got, width) == [UNARY[kind](x, width) & mask for x in numbers]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "name", ["eq", "ne"] + [s + c for s in "su" for c in ("lt", "le", "gt", "ge")]
)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_compare(name: str, width: int, data: st.DataObject) -> None:
    pairs = data.draw(operand_pairs(width))
    type_ = IntegerType(width)
    got = run(
        arith.CmpiOp(value_of(type_), value_of(type_), name),
        array([x for x, _ in pairs], width),
        array([y for _, y in pairs], width),
    )
    holds = COMPARISONS[name[-2:]]
    if name.startswith("u") or name in ("eq", "ne"):
        assert got.tolist() == [holds(x, y) for x, y in pairs]
    else:
        assert got.tolist() == [holds(signed(x, width), signed(y, width)) for x, y in pairs]


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_two_results(width: int, data: st.DataObject) -> None:
    pairs = data.draw(operand_pairs(width))
    type_, mask = IntegerType(width), (1 << width) - 1
    a, b = array([x for x, _ in pairs], width), array([y for _, y in pairs], width)
    low, high = run(arith.MulUIExtendedOp(value_of(type_), value_of(type_)), a, b)
    assert bits_of(low, width) == [x * y & mask for x, y in pairs]
    assert bits_of(high, width) == [x * y >> width for x, y in pairs]
    low, high = run(arith.MulSIExtendedOp(value_of(type_), value_of(type_)), a, b)
    products = [signed(x, width) * signed(y, width) for x, y in pairs]
    assert bits_of(low, width) == [product & mask for product in products]
    assert bits_of(high, width) == [product >> width & mask for product in products]
    total, carry = run(arith.AddUIExtendedOp(value_of(type_), value_of(type_)), a, b)
    assert bits_of(total, width) == [x + y & mask for x, y in pairs]
    assert carry.tolist() == [x + y > mask for x, y in pairs]


@pytest.mark.parametrize("width", WIDTHS[1:])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_power(width: int, data: st.DataObject) -> None:
    base = data.draw(st.integers(0, 2**width - 1) | st.sampled_from([0, 1, 2**width - 1]))
    exponent = data.draw(st.integers(-3, 100))
    op = math.IPowIOp(value_of(IntegerType(width)), value_of(IntegerType(width)))
    got = run(op, array([base], width), array([exponent], width))
    number = signed(base, width)
    if exponent >= 0:
        expected = number**exponent
    else:
        expected = number ** (-exponent) if number in (1, -1) else 0
    assert bits_of(got, width) == [expected % 2**width]


@pytest.mark.parametrize("source", WIDTHS)
@pytest.mark.parametrize("target", WIDTHS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_width_changes(source: int, target: int, data: st.DataObject) -> None:
    numbers = [x for x, _ in data.draw(operand_pairs(source))]
    before, after = value_of(IntegerType(source)), IntegerType(target)
    values = array(numbers, source)
    if target < source:
        got = run(arith.TruncIOp(before, after), values)
        assert bits_of(got, target) == [x % 2**target for x in numbers]
        assert got.dtype == array([0], target).dtype
    if target > source:
        got = run(arith.ExtSIOp(before, after), values)
        assert got.tolist() == [signed(x, source) for x in numbers]
        got = run(arith.ExtUIOp(before, after), values)
        assert bits_of(got, target) == numbers
        assert got.dtype == array([0], target).dtype


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_index_casts(width: int, data: st.DataObject) -> None:
    numbers = [x for x, _ in data.draw(operand_pairs(width))]
    to_index = arith.IndexCastOp(value_of(IntegerType(width)), IndexType())
    index = run(to_index, array(numbers, width))
    assert index.dtype == np.int64
    assert index.tolist() == [signed(x, width) for x in numbers]
    back = run(arith.IndexCastOp(value_of(IndexType()), IntegerType(width)), index)
    assert bits_of(back, width) == numbers


def test_bitcast_select() -> None:
    floats = np.array([1.0, -0.0, np.inf], np.float32)
    ints = run(arith.BitcastOp(value_of(f32), i32), floats)
    assert ints.tolist() == [0x3F800000, -(2**31), 0x7F800000]
    back = run(arith.BitcastOp(value_of(i32), f32), ints)
    assert back.view(np.int32).tolist() == ints.tolist()
    op = arith.SelectOp(value_of(i1), value_of(i32), value_of(i32))
    assert run(op, np.array([True, False]), np.int32(1), ints[:2]).tolist() == [1, -(2**31)]
    assert run(op, np.bool_(False), np.int32(1), np.int32(2)) == 2


# -- floats ----------------------------------------------------------------------------------------

floats = st.floats(width=32)


def rounded(exact: Fraction) -> float:
    """The f32 nearest to a fraction, ties to even, by integer arithmetic alone."""
    if exact == 0:
        return 0.0
    sign, exact = (-1.0, -exact) if exact < 0 else (1.0, exact)
    exponent = max(
        pymath.floor(pymath.log2(exact.numerator) - pymath.log2(exact.denominator)), -126
    )
    exponent += 1 if Fraction(2) ** (exponent + 1) <= exact else 0
    exponent -= 1 if Fraction(2) ** exponent > exact and exponent > -126 else 0
    unit = Fraction(2) ** (exponent - 23)
    whole, left = divmod(exact, unit)
    if left * 2 > unit or (left * 2 == unit and whole % 2):
        whole += 1
    value = whole * unit
    return sign * (float(value) if value < Fraction(2) ** 128 else pymath.inf)


def same(got: Any, expected: float) -> bool:
    want = np.float32(expected)
    return got.dtype == np.float32 and (
        got.view(np.int32) == want.view(np.int32) or (np.isnan(got) and np.isnan(want))
    )


@settings(max_examples=100, deadline=None)
@given(a=floats, b=floats, c=floats)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    op = math.FmaOp(value_of(f32), value_of(f32), value_of(f32))
    got = run(op, np.float32(a), np.float32(b), np.float32(c))
    if not all(map(pymath.isfinite, (a, b, c))):
        with quiet():
            assert same(got, float(np.float64(a) * np.float64(b) + np.float64(c)))
        return
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        assert got == 0
    else:
        assert same(got, rounded(exact))


def test_fma_tie_that_double_rounding_gets_wrong() -> None:
    # a * b is exactly half a unit of c's last place, and a tiny bit more through c's own rest.
    a, b, c = np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(2.0**-60)
    op = math.FmaOp(value_of(f32), value_of(f32), value_of(f32))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    assert np.float32(float(a) * float(b) + float(c)) != np.float32(rounded(exact))
    assert same(run(op, a, b, c), rounded(exact))


@settings(max_examples=100, deadline=None)
@given(a=floats, b=floats)
def test_float_min_max(a: float, b: float) -> None:
    x, y = np.float32(a), np.float32(b)

    def largest(p: float, q: float) -> float:
        if p == q == 0:
            return pymath.copysign(0.0, max(pymath.copysign(1, p), pymath.copysign(1, q)))
        return max(p, q)

    either_nan = pymath.isnan(a) or pymath.isnan(b)
    number = a if pymath.isnan(b) else b if pymath.isnan(a) else largest(a, b)
    assert same(run(arith.MaxnumfOp(value_of(f32), value_of(f32)), x, y)[()], number)
    assert same(
        run(arith.MaximumfOp(value_of(f32), value_of(f32)), x, y)[()],
        pymath.nan if either_nan else largest(a, b),
    )
    smallest = -largest(-a, -b)
    assert same(
        run(arith.MinimumfOp(value_of(f32), value_of(f32)), x, y)[()],
        pymath.nan if either_nan else smallest,
    )
    number = a if pymath.isnan(b) else b if pymath.isnan(a) else smallest
    assert same(run(arith.MinnumfOp(value_of(f32), value_of(f32)), x, y)[()], number)


def _less(a: float, b: float) -> bool:
    return a < b


ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": _less,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: a != b,
}


@settings(max_examples=100, deadline=None)
@given(pairs=st.lists(st.tuples(floats, floats), min_size=1, max_size=20))
def test_float_compare(pairs: list[tuple[float, float]]) -> None:
    a = np.array([x for x, _ in pairs], np.float32)
    b = np.array([y for _, y in pairs], np.float32)

    def compared(name: str) -> list[bool]:
        return run(arith.CmpfOp(value_of(f32), value_of(f32), name), a, b).tolist()

    nan = [pymath.isnan(x) or pymath.isnan(y) for x, y in pairs]
    assert compared("true") == [True] * len(pairs)
    assert compared("false") == [False] * len(pairs)
    assert compared("uno") == nan
    assert compared("ord") == [not n for n in nan]
    for name, holds in ORDERED.items():
        expected = [holds(x, y) for x, y in pairs]
        assert compared("o" + name) == [e and not n for e, n in zip(expected, nan, strict=True)]
        assert compared("u" + name) == [e or n for e, n in zip(expected, nan, strict=True)]


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_float_to_integer_saturates(width: int, data: st.DataObject) -> None:
    edges = [2.0**width, 2.0 ** (width - 1), -(2.0 ** (width - 1)), -0.75, 0.75, 1.5, -1.0]
    number = data.draw(floats | st.sampled_from(edges) | st.floats(-300, 300, width=32))
    value = np.array([number], np.float32)

    def clipped(low: int, high: int) -> int:
        if pymath.isnan(number):
            return 0
        if pymath.isinf(number):
            return high if number > 0 else low
        return min(max(int(number), low), high)

    half = 1 << (width - 1)
    type_ = IntegerType(width)
    got = run(arith.FPToSIOp(value_of(f32), type_), value)
    assert bits_of(got, width) == [clipped(-half, half - 1) % 2**width]
    got = run(arith.FPToUIOp(value_of(f32), type_), value)
    assert bits_of(got, width) == [clipped(0, 2 * half - 1)]
    assert got.dtype == array([0], width).dtype


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_integer_to_float_rounds_once(width: int, data: st.DataObject) -> None:
    numbers = [x for x, _ in data.draw(operand_pairs(width))]
    values = array(numbers, width)
    got = run(arith.SIToFPOp(value_of(IntegerType(width)), f32), values)
    assert [float(x) for x in got] == [rounded(Fraction(signed(x, width))) for x in numbers]
    got = run(arith.UIToFPOp(value_of(IntegerType(width)), f32), values)
    assert [float(x) for x in got] == [rounded(Fraction(x)) for x in numbers]
    assert got.dtype == np.float32


@settings(max_examples=100, deadline=None)
@given(a=st.floats(-80, 80, width=32), b=st.floats(2**-10, 30, width=32))
def test_functions(a: float, b: float) -> None:
    """One rounding from the f64 value of Python's own library, or its neighbour."""
    unary: list[tuple[type[Any], float]] = [
        (math.ExpOp, pymath.exp(a)),
        (math.SinOp, pymath.sin(a)),
        (math.CosOp, pymath.cos(a)),
        (math.TanhOp, pymath.tanh(a)),
        (math.FloorOp, pymath.floor(a)),
        (math.CeilOp, pymath.ceil(a)),
        (math.TruncOp, pymath.trunc(a)),
        (math.RoundEvenOp, float(round(a))),
        (math.RoundOp, pymath.copysign(pymath.floor(abs(a) + 0.5), a)),
        (math.AbsFOp, abs(a)),
    ]
    for kind, expected in unary:
        _near(run(kind(value_of(f32)), np.float32(a)), expected)
    _near(run(math.LogOp(value_of(f32)), np.float32(b)), pymath.log(b))
    _near(run(math.SqrtOp(value_of(f32)), np.float32(b)), pymath.sqrt(b))
    _near(run(math.RsqrtOp(value_of(f32)), np.float32(b)), 1 / pymath.sqrt(b))
    power = run(math.PowFOp(value_of(f32), value_of(f32)), np.float32(b), np.float32(2.5))
    _near(power, b**2.5)


def _near(got: Any, expected: float) -> None:
    want = np.float32(expected)
    assert got.dtype == np.float32
    assert abs(got - want) <= np.spacing(abs(want))


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.floats(-90, 90, width=32), min_size=1, max_size=40))
def test_functions_do_not_depend_on_layout(values: list[float]) -> None:
    array = np.array(values, np.float32)
    spread = np.zeros(3 * len(values), np.float32)
    spread[::3] = array
    op = math.ExpOp(value_of(f32))
    whole = run(op, array).view(np.int32).tolist()
    assert run(op, spread[::3]).view(np.int32).tolist() == whole
    assert [int(run(op, x).view(np.int32)) for x in array] == whole


# -- the rest --------------------------------------------------------------------------------------


def test_add_of_i32_is_one_ufunc_call() -> None:
    assert function_of(arith.AddiOp(value_of(i32), value_of(i32))) is np.add


def test_constants() -> None:
    assert constant_value(arith.ConstantOp(IntegerAttr(255, i64))) == 255
    small: Any = constant_value(arith.ConstantOp(IntegerAttr(200, i8)))
    assert small.dtype == np.int8 and small == -56
    yes = constant_value(arith.ConstantOp(IntegerAttr(-1, i1)))
    assert yes.dtype == np.bool_ and yes
    half = constant_value(arith.ConstantOp(FloatAttr(0.5, f32)))
    assert half == 0.5 and half.dtype == np.float32
    bits = DenseIntOrFPElementsAttr.from_list(TensorType(i1, [3]), [1, 0, -1])
    values = constant_value(arith.ConstantOp(bits))
    assert values.tolist() == [True, False, True]
    with pytest.raises(ValueError, match="read-only"):
        values[0] = False


def test_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UserError, match=r"'math\.erf' cannot be simulated"):
        function_of(math.ErfOp(value_of(f32)))
    with pytest.raises(UserError, match="values of type f16"):
        dtype_of(f16)
    with pytest.raises(UserError, match=r"'math\.ipowi' cannot be computed on i1"):
        function_of(math.IPowIOp(value_of(i1), value_of(i1)))
