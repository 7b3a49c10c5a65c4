"""Pipelines written in Python, compared with NumPy: patterns, programs, and their text."""

# Element functions are written without types, as users write them.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frontend_checks import INTEGERS, SIZES, check_map, run, values

from cim_opt.frontend import (
    Pipeline,
    maximum,
    minimum,
    where,
)

# -- what functions see ------------------------------------------------------------------------


def test_shared_operands() -> None:
    x, k, table = values(np.uint8, 20), np.int32(7), np.arange(256, dtype=np.int32) ** 2
    p = Pipeline()
    y = p.map(lambda x, t, k: t[x] * k, x, shared=(table, k))
    (got,) = run(p, y)
    np.testing.assert_array_equal(got, table[x] * k)
    assert "%table: tensor<256xi32>, %k: i32" in p.to_mlir()


def test_numpy_scalars_may_stand_among_the_inputs() -> None:
    x, k, y = values(np.int32, 20), np.int32(7), values(np.int32, 20, 1)
    p = Pipeline()
    (got,) = run(p, p.map(lambda a, k, b: a * k - b, x, k, y))
    np.testing.assert_array_equal(got, x * k - y)


def test_results_of_earlier_stages_are_seen_by_name() -> None:
    x = np.arange(32, dtype=np.int32)
    p = Pipeline(32)
    mean = p.reduce(lambda a, b: a + b, x) // 32
    bins = p.reduce(
        lambda bins, x: bins.add_at(x % 4, x), x, init=np.zeros(4, np.int32), combine=np.add
    )
    (got,) = run(p, p.map(lambda x: (x - mean) * bins[x % 4], x))
    np.testing.assert_array_equal(got, (x - x.sum() // 32) * x.reshape(-1, 4).sum(0)[x % 4])


# -- patterns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_reduce_and_scan(dtype: Any, n: int) -> None:
    x = values(dtype, n)
    p = Pipeline()
    top = np.finfo(dtype).max if dtype == np.float32 else np.iinfo(dtype).max
    total = p.reduce(lambda a, x: a + x, x, init=3)
    least = p.reduce(minimum, x, init=top)
    prefix = p.scan(lambda a, x: a + x, x, init=3)
    before = p.scan(lambda a, x: a + x, x, init=3, exclusive=True)
    got = run(p, total, least, prefix, before)
    with np.errstate(over="ignore"):
        sums = np.cumsum(np.concatenate([np.array([3], dtype), x]), dtype=dtype)
    compare = np.testing.assert_allclose if dtype == np.float32 else np.testing.assert_array_equal
    assert [g.dtype for g in got] == [np.dtype(dtype)] * 4
    compare(got[0], sums[-1])
    assert got[1] == np.min(x, initial=top)
    compare(got[2], sums[1:])
    compare(got[3], sums[:-1])


@pytest.mark.parametrize("dtype", [*INTEGERS, np.float32])
def test_reduce_without_init_starts_from_the_neutral_element(dtype: Any) -> None:
    x = values(dtype, 7)
    info = np.finfo(dtype) if dtype == np.float32 else np.iinfo(dtype)
    low, high = (-np.inf, np.inf) if dtype == np.float32 else (info.min, info.max)
    p = Pipeline()
    empty = x[:0]
    q = Pipeline()
    for f, reference, neutral in ((minimum, np.min, high), (maximum, np.max, low)):
        p.fetch(p.reduce(f, x))
        q.fetch(q.reduce(f, empty))
        assert p.execute("reference")[-1] == reference(x)
        assert q.execute("reference")[-1] == neutral
    total = q.reduce(lambda a, b: a + b, empty)
    q.fetch(total)
    result = q.execute("reference")[total]
    assert result == 0 and not np.signbit(result)


def test_argmax_with_two_accumulators() -> None:
    x, i = values(np.uint16, 50), np.arange(50)

    def later(best: Any, place: Any, x: Any, i: Any) -> Any:
        return where(x > best, x, best), where(x > best, i, place)

    p = Pipeline()
    best, place = run(p, *p.reduce(later, x, i, init=(0, -1)))
    assert (best, place) == (x.max(), x.argmax())


def test_reduce_to_a_wider_type() -> None:
    x = values(np.uint8, 300)
    p = Pipeline()
    total = p.reduce(
        lambda acc, x: acc + x.astype(np.int64), x, init=np.int64(0), combine=lambda a, b: a + b
    )
    assert run(p, total) == [x.sum(dtype=np.int64)]


def count(bins: Any, x: Any) -> Any:
    bins[x >> 4] += 1
    return bins


@pytest.mark.parametrize("f", [count, lambda bins, x: bins.add_at(x >> 4, 1)])
@pytest.mark.parametrize("n", SIZES)
def test_histogram(f: Any, n: int) -> None:
    x = values(np.uint8, n)
    p = Pipeline()
    bins = p.reduce(f, x, init=np.zeros(16, np.int32), combine=lambda a, b: a + b)
    doubled = p.map(lambda b: b * 2, bins)
    expected = np.bincount(x >> 4, minlength=16)
    got = run(p, bins, doubled)
    np.testing.assert_array_equal(got[0], expected)
    np.testing.assert_array_equal(got[1], expected * 2)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", [0, 1, 7, 30])
def test_windows(dtype: Any, n: int) -> None:
    x = values(dtype, n)
    p = Pipeline()
    y = p.window(lambda w: w[0] + 2 * w[1] - w[-1], x, size=3)
    z = p.window(lambda w: (w.max(), w[1:].sum()), x, size=3)
    got = run(p, y, z)
    slices = np.lib.stride_tricks.sliding_window_view(np.pad(x, (0, 3)), 3)[: max(0, n - 2)]
    np.testing.assert_array_equal(got[0], slices[:, 0] + 2 * slices[:, 1] - slices[:, 2])
    np.testing.assert_array_equal(got[1], slices.max(1))
    np.testing.assert_array_equal(got[2], slices[:, 1:].sum(1, dtype=dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_groups(dtype: Any) -> None:
    x = values(dtype, 24)
    p = Pipeline(24)
    sums = p.group(lambda g: g.sum(), x, size=4)
    loops = p.group(lambda g: sum(g), x, size=4)
    ends = p.group(lambda g: g[-1] - g[0], x, size=4, window=5)
    extremes = p.group(lambda g: (g.min(), g.max(), g.prod(), np.sum(g)), x, size=4)
    rest = p.map(lambda a, b: a ^ b, sums, extremes[0])
    rows = x.reshape(-1, 4)
    got = run(p, sums, loops, ends, *extremes, rest)
    total = rows.sum(1, dtype=dtype)
    expected = [
        total,
        total,
        x[7::4] - x[:-7:4],
        rows.min(1),
        rows.max(1),
        rows.prod(1, dtype=dtype),
        total,
        total ^ rows.min(1),
    ]
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, other)


GEMV: list[Callable[..., Any]] = [
    lambda row, x: (row * x).sum(),
    lambda row, x: row @ x,
    lambda row, x: x @ row,
    lambda row, x: np.dot(row, x),
    lambda row, x: row.map(lambda a, b: a * b, x).reduce(lambda s, a: s + a, init=0),
]


@pytest.mark.parametrize("f", GEMV)
def test_gemv_shared_or_by_name(f: Any) -> None:
    matrix, x = values(np.int32, 60), values(np.int32, 6)
    p = Pipeline()
    y = p.group(f, matrix, size=6, shared=x)
    z = p.group(lambda row: f(row, x), matrix, size=6)
    for got in run(p, y, z):
        np.testing.assert_array_equal(got, matrix.reshape(-1, 6) @ x)
    assert p.to_mlir().count("%x: tensor<6xi32>") == 1


def test_patterns_inside_groups() -> None:
    x, k = values(np.int32, 24), np.int32(3)
    p = Pipeline()

    def f(g: Any, k: Any) -> Any:
        prefix = g.scan(lambda a, b: a + b, init=0)
        steps = g.window(lambda w: w[1] - w[0], size=2)
        pairs = g.group(lambda w: w.sum() * k, size=2)
        reverse = g[::-1]
        changed = g.set_at(0, 7)
        return prefix[-1], steps.sum(), pairs.max(), reverse[0], changed[0], (g > 0).any()

    got = run(p, p.group(f, x, size=6, shared=k))
    rows = x.reshape(-1, 6)
    expected = [
        rows.sum(1, dtype=np.int32),
        rows[:, -1] - rows[:, 0],
        (rows.reshape(-1, 3, 2).sum(2, dtype=np.int32) * k).max(1),
        rows[:, -1],
        np.full(4, 7),
        (rows > 0).any(1),
    ]
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [0, 1, 7, 30])
def test_filters(n: int) -> None:
    x, y = values(np.int16, n) % 4, values(np.uint32, n)
    p = Pipeline()
    kept = p.filter(lambda x: x > 1, x)
    pairs = p.filter(lambda x, y: x > 1, x, y)
    computed = p.filter(lambda x, y: (x > 1, y + 1), x, y)
    after = p.map(lambda x, y: y + x.astype(np.uint32), *pairs)
    total = p.reduce(lambda a, x: a + x, kept, init=0)
    got = run(p, kept, *pairs, computed, after, total, kept.count)
    mask = x > 1
    expected = [x[mask], x[mask], y[mask], y[mask] + 1, y[mask] + x[mask].astype(np.uint32)]
    for one, other in zip(got, expected, strict=False):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert got[5:] == [x[mask].sum(dtype=np.int16), mask.sum()]


def test_filters_of_windows_and_groups() -> None:
    x = values(np.int8, 33) % 3
    p = Pipeline()
    unique = p.filter(lambda w: w[0] != w[1], x, window=2)
    both = p.filter(lambda g: g[0] == g[-1], x, window=2, group=4)
    got = run(p, unique, both)
    np.testing.assert_array_equal(got[0], x[:-1][x[:-1] != x[1:]])
    rows = x[:32].reshape(-1, 4)
    np.testing.assert_array_equal(got[1], rows[rows[:, 0] == x[4::4]].ravel())


def test_filter_of_groups() -> None:
    x = values(np.int8, 32) % 3
    p = Pipeline(32)
    (got,) = run(p, p.filter(lambda g: g.max() == g[0], x, group=4))
    rows = x.reshape(-1, 4)
    np.testing.assert_array_equal(got, rows[rows.max(1) == rows[:, 0]].ravel())


# -- the program -------------------------------------------------------------------------------


def test_names_come_from_variables() -> None:
    left = right_2 = values(np.int32, 4)
    right_2 = left.copy()
    p = Pipeline(4, name="add")
    p.fetch(p.map(lambda a, b: a + b, left, right_2))
    text = p.to_mlir()
    assert "func.func @add(%left: tensor<4xi32>, %right2: tensor<4xi32>)" in text
    assert "pattern.map(%a in %left : tensor<4xi32>, %b in %right2 : tensor<4xi32>)" in text


def test_the_text_parses_back() -> None:
    from xdsl.context import Context
    from xdsl.dialects import arith, builtin, func, tensor
    from xdsl.parser import Parser

    from cim_opt.dialects.pattern import Pattern

    x = values(np.uint8, 12)
    p = Pipeline()
    y = p.group(lambda g: (g * 255).sum() + g[1], x, size=4)
    p.fetch(y, p.reduce(minimum, y))
    context = Context()
    for dialect in (arith.Arith, builtin.Builtin, func.Func, tensor.Tensor, Pattern):
        context.load_dialect(dialect)
    module = Parser(context, p.to_mlir()).parse_module()
    module.verify()
    assert str(module) + "\n" == p.to_mlir()


def test_what_is_not_fetched_is_left_out() -> None:
    x = values(np.int32, 4)
    p = Pipeline()
    p.map(lambda x: x * 12345, x)
    p.fetch(p.map(lambda x: x + 1, x))
    assert "12345" not in p.to_mlir()


def test_declared_inputs_get_their_arrays_at_execute() -> None:
    p = Pipeline()
    a, b = p.input(np.uint16, "a"), p.input("u16", "b")
    c = p.map(lambda a, b: a + b, a, b)
    p.fetch(c)
    assert "@main(%a: tensor<?xi16>, %b: tensor<?xi16>)" in p.to_mlir()
    for n in SIZES:
        x = values(np.uint16, n)
        result = p.execute("reference", inputs={"a": x, "b": x})
        np.testing.assert_array_equal(result[c], x + x)


def test_results_by_value_position_and_in_order() -> None:
    x = values(np.int32, 4)
    p = Pipeline()
    y, total = p.map(lambda x: x + 1, x), p.reduce(lambda a, b: a + b, x)
    p.fetch(y, total)
    result = p.execute("reference")
    assert result[total] == result[1] == x.sum(dtype=np.int32)
    first, second = result
    assert first is result[y] is result[0] and second is result[1]
    assert len(result) == 2 and len(y) == 4


def summed(length: int = 300) -> tuple[Pipeline, Any]:
    x = values(np.uint8, length)
    p = Pipeline()
    p.fetch(p.reduce(lambda a, b: a + b, p.map(lambda x: x * 3, x)))
    return p, np.sum(x * np.uint8(3), dtype=np.uint8)


@pytest.mark.parametrize("level", ["bbop", "rows"])
@pytest.mark.parametrize("library", ["cim-opt", "simdram"])
def test_simdram_by_level_and_library(level: str, library: str) -> None:
    p, expected = summed()
    run = p.execute("simdram", level=level, library=library)
    assert run[0] == expected and run.check.ok
    assert run.report.library == library


def test_simdram_by_timing_and_activations() -> None:
    p, _ = summed(8 * 65536)  # eight subarrays at once

    def seconds(**how: Any) -> float:
        return p.execute("simdram", machine="simdram-64", **how).report.seconds

    assert seconds() == seconds(timing="proteus49", activation_limit=False)
    assert seconds() < seconds(timing="strict")
    assert seconds() < seconds(activation_limit=True)


def test_upmem_by_model_of_transfers() -> None:
    p, expected = summed()
    runs = [p.execute(transfer=name) for name in ("measured", "linear")]
    assert [run[0] for run in runs] == [expected] * 2
    assert p.execute().report.seconds == runs[0].report.seconds != runs[1].report.seconds


def test_arrays_are_read_at_execute() -> None:
    x = np.zeros(4, np.int32)
    p = Pipeline()
    y = p.map(lambda x: x + 1, x)
    p.fetch(y)
    x[:] = 5
    assert p.execute("reference")[y].tolist() == [6] * 4


def test_strided_and_big_endian_arrays() -> None:
    x = np.arange(10, dtype=np.int32)
    check_map(lambda x: x + 1, x[::-2])
    p = Pipeline()
    (got,) = run(p, p.map(lambda x: x + 1, x.astype(">i4")))
    np.testing.assert_array_equal(got, x + 1)


def test_import_needs_neither_islpy_nor_z3() -> None:
    code = "import sys, cim_opt.frontend; assert not {'islpy', 'z3'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the listing of the paper ------------------------------------------------------------------

# Rule: lines that are neither blank nor a comment alone. The published dot product (DaPPA,
# figure 3) has 25 lines: 3 blank and 3 of comments alone.
PUBLISHED_LINES = 25 - 3 - 3
DOT_PRODUCT = """\
import numpy as np
from cim_opt.frontend import Pipeline
length = 1048576
a = np.arange(length, dtype=np.uint32)
b = np.arange(length, dtype=np.uint32)

p = Pipeline(length)
# element-wise product, then its sum
c = p.map(lambda a, b: a * b, a, b)
total = p.reduce(lambda total, c: total + c, c, init=0)
p.fetch(total)
result = p.execute(target)
"""


def test_dot_product_is_not_longer_than_published() -> None:
    lines = [line.strip() for line in DOT_PRODUCT.splitlines()]
    assert len([line for line in lines if line and not line.startswith("#")]) <= PUBLISHED_LINES
    scope: dict[str, Any] = {"target": "reference"}
    exec(DOT_PRODUCT, scope)
    expected = np.sum(scope["a"] * scope["b"], dtype=np.uint32)
    assert scope["result"][scope["total"]] == expected
