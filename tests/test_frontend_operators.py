"""Operators, casts and functions of element functions, for all element types."""

# Element functions are written without types, as users write them.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_checks import ALL, INTEGERS, SIGNED, SIZES, check_map, run, values
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.frontend import (
    Pipeline,
    cast,
    ceil,
    clip,
    exp,
    floor,
    log,
    maximum,
    minimum,
    sqrt,
    tanh,
    truncdiv,
    truncmod,
    where,
)

# -- operators ---------------------------------------------------------------------------------

ARITHMETIC: list[Callable[..., Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: minimum(a, b),
    lambda a, b: maximum(a, b),
    lambda a, b: np.minimum(a, b),
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: where(a < b, a, b),
    lambda a, b: abs(a) + (+b),
    lambda a, b: clip(a, b, 100),
    lambda a, b: 7 - a + 3 * b,
]
BITWISE: list[Callable[..., Any]] = [
    lambda a, b: a & b,
    lambda a, b: a | b,
    lambda a, b: a ^ b,
    lambda a, b: ~a ^ b,
    lambda a, b: (a << 3) >> 2,
    lambda a, b: a << (b & 7),
    lambda a, b: a >> (b & 7),
    lambda a, b: 100 >> (b & 7),
    lambda a, b: -a + b**3,
    lambda a, b: (a // 8) ^ (b % 16),
    lambda a, b: (a // 7) ^ (b % 10),
    lambda a, b: 100 // (b | 1),
    lambda a, b: a // (b | 1),
    lambda a, b: a % (b | 1),
    lambda a, b: divmod(a, b | 1)[1],
    lambda a, b: truncdiv(a, b | 1),
    lambda a, b: truncmod(a, b | 1),
    lambda a, b: np.bitwise_and(a, b) + np.fmod(a, b | 1),
    lambda a, b: a // b,  # by zero: 0, as NumPy does
]


@given(
    st.sampled_from(ARITHMETIC),
    st.sampled_from([*INTEGERS, np.float32]),
    st.sampled_from(SIZES),
    st.integers(0, 1000),
)
@settings(max_examples=300, deadline=None)
def test_arithmetic(f: Any, dtype: Any, n: int, seed: int) -> None:
    check_map(f, values(dtype, n, seed), values(dtype, n, seed + 1))


@given(
    st.sampled_from(BITWISE),
    st.sampled_from(INTEGERS),
    st.sampled_from(SIZES),
    st.integers(0, 1000),
)
@settings(max_examples=300, deadline=None)
def test_integer_operators(f: Any, dtype: Any, n: int, seed: int) -> None:
    check_map(f, values(dtype, n, seed), values(dtype, n, seed + 1))


@pytest.mark.parametrize("dtype", [*INTEGERS, np.float32])
def test_all_of_them_on_a_machine(dtype: Any) -> None:
    functions = ARITHMETIC if dtype == np.float32 else ARITHMETIC + BITWISE
    x, y = values(dtype, 37, 1), values(dtype, 37, 2)
    p = Pipeline()
    got = run(p, *(p.map(f, x, y) for f in functions))
    with np.errstate(all="ignore"):
        for f, array in zip(functions, got, strict=True):
            np.testing.assert_array_equal(array, f(x, y))


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("divisor", [-7, -4, -1, 3, 5, 64])
def test_division_by_constants(dtype: Any, divisor: int) -> None:
    check_map(lambda a: (a // divisor) ^ (a % divisor), values(dtype, 50))
    check_map(lambda a: truncdiv(a, divisor) ^ truncmod(a, divisor), values(dtype, 50))


def test_remainder_by_zero_is_the_dividend() -> None:
    a, zero = np.array([-5, 5], np.int32), np.zeros(2, np.int32)
    p = Pipeline(2)
    quotient, remainder = run(p, *p.map(lambda a, b: (a // b, a % b), a, zero))
    assert quotient.tolist() == [0, 0]
    assert remainder.tolist() == [-5, 5]


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a & b,
        lambda a, b: a | ~b,
        lambda a, b: a ^ b ^ True,
        lambda a, b: a == b,
        lambda a, b: a < b,
        lambda a, b: where(a, b, False),
        lambda a, b: minimum(a, b),
        lambda a, b: np.logical_and(a, np.logical_not(b)),
        lambda a, b: a.astype(np.int32) - b.astype(np.int32),
    ],
)
def test_bool(f: Any) -> None:
    check_map(f, values(np.bool_, 40, 1), values(np.bool_, 40, 2))


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_casts(source: Any, target: Any) -> None:
    x = values(source, 40)
    if source == np.float32:  # outside the type, NumPy's own result differs by processor
        x = np.abs(x % 100)
    check_map(lambda x: x.astype(target), x)
    check_map(lambda x: cast(x, np.dtype(target)), x)


@pytest.mark.parametrize("name", ["i8", "u8", "i64", "u64", "f32"])
def test_casts_by_short_names(name: str) -> None:
    x = np.arange(9, dtype=np.int16)
    p = Pipeline()
    (got,) = run(p, p.map(lambda x: x.astype(name), x))
    assert got.dtype == {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:]


def test_float_functions() -> None:
    x = np.abs(values(np.float32, 100))
    check_map(lambda x: sqrt(x) + floor(x) - ceil(x / 3), x)
    check_map(lambda x: np.sqrt(x) * x**2, x)
    p = Pipeline()
    p.fetch(p.map(lambda x: (exp(-x / 100), log(x + 1), tanh(x)), x))
    got = p.execute("reference")
    for array, expected in zip(got, (np.exp(-x / 100), np.log(x + 1), np.tanh(x)), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-6)


def test_numpy_scalars_and_python_numbers_are_constants() -> None:
    x = values(np.int16, 20)
    check_map(lambda x: np.int16(3) * x + 5, x)
    p = Pipeline()
    p.fetch(p.map(lambda x: x * 5, x))
    assert "arith.constant 5 : i16" in p.to_mlir()


def test_several_results() -> None:
    x = values(np.int32, 20)
    p = Pipeline()
    low, flag = run(p, *p.map(lambda x: (x - 1, x > 0), x))
    np.testing.assert_array_equal(low, x - 1)
    np.testing.assert_array_equal(flag, x > 0)


def test_the_function_may_be_a_numpy_function_or_an_operator() -> None:
    import operator

    x = values(np.int32, 20)
    check_map(np.add, x, x)
    check_map(operator.mul, x, x)
