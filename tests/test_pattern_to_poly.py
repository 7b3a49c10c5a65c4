"""Patterns that sum products become kernels of 8-bit digits that give the same, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals_in
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cim_opt.dialects.pattern import PatternOp, ReduceOp
from cim_opt.dialects.poly import KernelOp
from cim_opt.errors import UserError
from cim_opt.lowering import pattern_products
from cim_opt.lowering.convert_pattern_to_poly import ConvertPatternToPolyPass
from cim_opt.lowering.poly_digits import digits_of
from cim_opt.lowering.poly_kernels import recognise_kernel
from cim_opt.mapping.ranges import Range
from cim_opt.passes import specialise_sizes
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.simulators.reference import run_function
from cim_opt.tools.load_module import load_module, parse_text

EXAMPLES = Path(__file__).parent.parent / "examples"


def converted(module: ModuleOp | str, **options: Any) -> ModuleOp:
    """A converted, verified copy."""
    copy = parse_text(module, "test.mlir") if isinstance(module, str) else module.clone()
    ConvertPatternToPolyPass(**options).apply(Context(), copy)
    copy.verify()
    return copy


def kernels_of(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def same(module: ModuleOp | str, args: Sequence[Any], name: str = "f", **options: Any) -> ModuleOp:
    """The converted module, which gives what the module gives."""
    before = parse_text(module, "test.mlir") if isinstance(module, str) else module
    after = converted(before, **options)
    want, got = run_function(before, name, args), run_function(after, name, args)
    for one, other in zip(want, got, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return after


def words(length: int, seed: int = 0, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> Any:
    rng = np.random.default_rng(seed)
    return rng.integers(low, high, length, np.int64, endpoint=True).astype(np.int32)


EXTREMES = np.array([-(1 << 31), (1 << 31) - 1, -1, 0, 1, 127, 128, -128, -129, 32767], np.int32)


# -- examples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_the_gemv_example(rows: int) -> None:
    module = load_module(str(EXAMPLES / "gemv.mlir"))
    args = [words(64 * rows, 1), words(64, 2)]
    after = same(module, args, "gemv", sizes=(64 * rows,))
    kernels = kernels_of(after)
    assert len(kernels) == (10 if rows else 0)
    if rows > 1:
        assert {recognise_kernel(op).kernel for op in kernels} == {MacKernel(1, rows, 64, ())}


@pytest.mark.parametrize("length", [0, 1, 7, 2561])
def test_the_dot_product_example(length: int) -> None:
    module = load_module(str(EXAMPLES / "dot_product.mlir"))
    same(module, [words(length, 1), words(length, 2)], "dot_product", sizes=(length, length))


def test_extreme_words() -> None:
    module = load_module(str(EXAMPLES / "dot_product.mlir"))
    left, right = (grid.ravel() for grid in np.meshgrid(EXTREMES, EXTREMES))
    same(module, [left, right], "dot_product", sizes=(100, 100))
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        args = [np.array([a], np.int32), np.array([b], np.int32)]
        same(module, args, "dot_product", sizes=(1, 1))


# -- digits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "count"),
    [
        (-128, 127, 1),
        (-129, 127, 2),
        (-128, 128, 2),
        (0, 255, 2),
        (-32896, 32639, 2),
        (-32768, 32767, 3),
        (-(1 << 31), (1 << 31) - 1, 4),
    ],
)
def test_digits_that_a_range_needs(low: int, high: int, count: int) -> None:
    assert digits_of(Range.signed(32, low, high)) == count


def test_nothing_known_takes_four_digits() -> None:
    assert digits_of(None) == 4


def dot(a: str, b: str, body: str = "%p = arith.muli %x, %y : i32", init: int = 0) -> str:
    """A dot product of 50 elements; `a` and `b` are types with attributes."""
    types = [text.split(" ")[0] for text in (a, b)]
    return f"""
func.func @f(%a: {a}, %b: {b}) -> i32 {{
  %init = arith.constant {init} : i32
  %r = pattern.reduce(%x in %a : {types[0]}, %y in %b : {types[1]}) init(%acc = %init : i32) {{
    {body}
    %s = arith.addi %acc, %p : i32
    pattern.yield %s : i32
  }} combine(%l, %r) {{
    %t = arith.addi %l, %r : i32
    pattern.yield %t : i32
  }}
  func.return %r : i32
}}"""


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ((-128, 127), (-5, 5), 1),
        ((0, 255), (-128, 127), 2),
        ((0, 255), (0, 255), 4),
        # Words of 16 bits: one kernel of i16 takes less than eight of i8.
        ((-32768, 32767), (-32768, 32767), 1),
        ((-32768, 32767), (-128, 127), 3),
        ((-32768, 32768), (-32768, 32767), 8),
    ],
)
def test_declared_ranges_leave_digits_out(
    a: tuple[int, int], b: tuple[int, int], count: int
) -> None:
    kinds = [f"tensor<50xi32> {{pattern.range = [{low}, {high}]}}" for low, high in (a, b)]
    args = [words(50, seed, *limits) for seed, limits in enumerate((a, b))]
    after = same(dot(kinds[0], kinds[1], init=9), args)
    assert len(kernels_of(after)) == count


@pytest.mark.parametrize(
    ("element", "extension", "count"),
    [
        ("i8", "extsi", 1),
        ("i4", "extsi", 1),
        ("i8", "extui", 4),
        ("i16", "extsi", 1),
        ("i16", "extui", 8),
    ],
)
def test_elements_of_other_types(element: str, extension: str, count: int) -> None:
    bits = int(element[1:])
    body = (
        f"%x32 = arith.{extension} %x : {element} to i32\n"
        f"%y32 = arith.{extension} %y : {element} to i32\n%p = arith.muli %x32, %y32 : i32"
    )
    kind = f"tensor<50x{element}>"
    dtype = np.int16 if bits > 8 else np.int8
    half = 1 << (bits - 1)
    rng = np.random.default_rng(3)
    args = [rng.integers(-half, half, 50, dtype) for _ in range(2)]
    after = same(dot(kind, kind, body, init=-4), args)
    assert len(kernels_of(after)) == count
    # Bytes are multiplied as they are, without a pass over them.
    assert any(isinstance(op, PatternOp) for op in after.walk()) == (count > 1)


def test_what_is_computed_from_an_element_is_multiplied() -> None:
    body = (
        "%three = arith.constant 3 : i32\n%u = arith.subi %x, %three : i32\n"
        "%p = arith.muli %u, %y : i32"
    )
    same(dot("tensor<50xi32>", "tensor<50xi32>", body), [words(50, 5), words(50, 6)])


def test_squares_are_products_of_an_element_with_itself() -> None:
    body = "%p = arith.muli %x, %x : i32"
    after = same(dot("tensor<50xi32>", "tensor<50xi32>", body), [words(50, 7), words(50, 8)])
    assert len(kernels_of(after)) == 10


@pytest.mark.parametrize(
    "body",
    [
        "%p = arith.addi %x, %y : i32",  # no product
        "%q = arith.addi %x, %y : i32\n%p = arith.muli %q, %y : i32",  # of two elements
        "%q = arith.constant 5 : i32\n%p = arith.muli %x, %q : i32",  # by a constant
    ],
)
def test_other_reduces_stay(body: str) -> None:
    after = same(dot("tensor<50xi32>", "tensor<50xi32>", body), [words(50, 5), words(50, 6)])
    assert not kernels_of(after)
    assert any(isinstance(op, ReduceOp) for op in after.walk())


# -- groups and windows ------------------------------------------------------------------------


def slices(
    pattern: str,
    inputs: str,
    shared: str,
    factors: str,
    result: str,
    length: int,
    head: str = "",
    tail: str = "pattern.yield %r : i32",
    arguments: str = "%a: tensor<24xi8>, %b: tensor<4xi8>, %k: i32",
) -> str:
    kind = f"tensor<{length}xi8>"
    x, y = factors.split()
    return f"""
func.func @f({arguments}) -> {result} {{
  %out = {pattern}({inputs}){f" shared({shared})" if shared else ""} -> {result} {{
    %init = arith.constant 3 : i32
    {head}
    %r = pattern.reduce(%x in {x} : {kind}, %y in {y} : {kind}) init(%acc = %init : i32) {{
      %x32 = arith.extsi %x : i8 to i32
      %y32 = arith.extsi %y : i8 to i32
      %p = arith.muli %x32, %y32 : i32
      %s = arith.addi %acc, %p : i32
      pattern.yield %s : i32
    }} combine(%m, %n) {{
      %t = arith.addi %m, %n : i32
      pattern.yield %t : i32
    }}
    {tail}
  }}
  func.return %out : {result}
}}"""


A, B = "%g in %a : tensor<24xi8>", "%v = %b : tensor<4xi8>"
SHAPES: dict[str, tuple[str, MacKernel]] = {
    "group": (
        slices("pattern.group<4>", A, B, "%g %v", "tensor<6xi32>", 4),
        MacKernel(1, 6, 4, ()),
    ),
    "weights first": (
        slices("pattern.group<4>", A, B, "%v %g", "tensor<6xi32>", 4),
        MacKernel(1, 6, 4, ()),
    ),
    "window": (
        slices("pattern.window<4>", A, B, "%g %v", "tensor<21xi32>", 4),
        MacKernel(1, 1, 1, (Axis(21, 4, inputs=24),)),
    ),
    "windows with a stride": (
        slices("pattern.window_group<3, 2>", A, B, "%g %v", "tensor<11xi32>", 4),
        MacKernel(1, 1, 1, (Axis(11, 4, 2, inputs=24),)),
    ),
    "rows by rows": (
        slices(
            "pattern.group<4>",
            f"{A}, %h in %c : tensor<24xi8>",
            "",
            "%g %h",
            "tensor<6xi32>",
            4,
            arguments="%a: tensor<24xi8>, %c: tensor<24xi8>, %k: i32",
        ),
        MacKernel(6, 1, 4, ()),
    ),
    "constant taps": (
        slices(
            "pattern.window<4>",
            A,
            "",
            "%g %taps",
            "tensor<21xi32>",
            4,
            head="%taps = arith.constant dense<[1, -2, 3, 4]> : tensor<4xi8>",
        ),
        MacKernel(1, 1, 1, (Axis(21, 4, inputs=24),)),
    ),
    "something made of the sum": (
        slices(
            "pattern.group<4>",
            A,
            B,
            "%g %v",
            "tensor<6xi8>",
            4,
            tail="%two = arith.constant 2 : i32\n%h = arith.shrsi %r, %two : i32\n"
            "%q = arith.trunci %h : i32 to i8\npattern.yield %q : i8",
        ),
        MacKernel(1, 6, 4, ()),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_slices(name: str) -> None:
    text, kernel = SHAPES[name]
    rng = np.random.default_rng(4)
    lengths = [24, 24] if name == "rows by rows" else [24, 4]
    args = [*(rng.integers(-128, 128, n, np.int8) for n in lengths), np.int32(5)]
    after = same(text, args)
    (found,) = kernels_of(after)
    assert recognise_kernel(found).kernel == kernel


def test_a_shared_scalar_is_where_sums_start() -> None:
    shared = f"{B}, %start = %k : i32"
    text = slices("pattern.group<4>", A, shared, "%g %v", "tensor<6xi32>", 4)
    text = text.replace("init(%acc = %init : i32)", "init(%acc = %start : i32)")
    rng = np.random.default_rng(4)
    args = [*(rng.integers(-128, 128, n, np.int8) for n in (24, 4)), np.int32(-77)]
    assert len(kernels_of(same(text, args))) == 1


@pytest.mark.parametrize(
    "tail",
    [
        "%z = arith.addi %r, %k2 : i32\npattern.yield %z : i32",  # a shared operand besides the sum
        "pattern.yield %k2 : i32",
    ],
)
def test_groups_that_make_something_else_stay(tail: str) -> None:
    shared = f"{B}, %k2 = %k : i32"
    text = slices("pattern.group<4>", A, shared, "%g %v", "tensor<6xi32>", 4, tail=tail)
    rng = np.random.default_rng(4)
    args = [*(rng.integers(-128, 128, n, np.int8) for n in (24, 4)), np.int32(5)]
    assert not kernels_of(same(text, args))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["group", "window", "window_group"]),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(-300, 300),
    st.integers(0, 99),
)
def test_random_slices(
    kind: str, window: int, group: int, owners: int, limit: int, seed: int
) -> None:
    window, group = (1 if kind == "group" else window), (1 if kind == "window" else group)
    length, slice = owners * group + window - 1, group + window - 1
    sizes = {"group": group, "window": window, "window_group": f"{window}, {group}"}[kind]
    low, high = min(limit, 0), max(limit, 0)
    text = f"""
func.func @f(%a: tensor<?xi32> {{pattern.range = [{low}, {high}]}}, %b: tensor<{slice}xi32>)
    -> tensor<?xi32> {{
  %y = pattern.{kind}<{sizes}>(%g in %a : tensor<?xi32>) shared(%v = %b : tensor<{slice}xi32>)
      -> tensor<?xi32> {{
    %zero = arith.constant 0 : i32
    %p = pattern.map(%x in %g : tensor<{slice}xi32>, %y in %v : tensor<{slice}xi32>)
        -> tensor<{slice}xi32> {{
      %q = arith.muli %x, %y : i32
      pattern.yield %q : i32
    }}
    %r = pattern.reduce(%e in %p : tensor<{slice}xi32>) init(%acc = %zero : i32) {{
      %s = arith.addi %acc, %e : i32
      pattern.yield %s : i32
    }}
    pattern.yield %r : i32
  }}
  func.return %y : tensor<?xi32>
}}"""
    after = same(text, [words(length, seed, low, high), words(slice, seed + 1)], sizes=(length,))
    assert kernels_of(after)


# -- sizes -------------------------------------------------------------------------------------


def test_a_call_of_another_length_is_refused() -> None:
    module = converted(load_module(str(EXAMPLES / "gemv.mlir")), sizes=(640,))
    with pytest.raises(UserError, match=r"'tensor\.cast' gets a tensor of length 128"):
        run_function(module, "gemv", [words(128), words(64)])


def test_lengths_go_on_through_maps_scans_and_filters() -> None:
    text = """
func.func @f(%a: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>, index, index) {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %y = arith.muli %x, %x : i32
    pattern.yield %y : i32
  }
  %zero = arith.constant 0 : i32
  %s = pattern.scan(%x in %m : tensor<?xi32>) init(%acc = %zero : i32) {
    %y = arith.addi %acc, %x : i32
    pattern.yield %y : i32
  }
  %k, %n = pattern.filter(%x in %s : tensor<?xi32>) -> (tensor<?xi32>, index) {
    %c = arith.cmpi slt, %x, %x : i32
    pattern.yield %c, %x : i1, i32
  }
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a, %c0 : tensor<?xi32>
  func.return %m, %k, %n, %d : tensor<?xi32>, tensor<?xi32>, index, index
}"""
    same(text, [words(9)], sizes=(9,))


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no sizes": (
        (EXAMPLES / "gemv.mlir").read_text(),
        {},
        "'pattern.group' works on tensor<?xi32>; the mapping to macros needs every length; "
        "give sizes=... or write it into the type",
    ),
    "too many": (
        (EXAMPLES / "gemv.mlir").read_text(),
        {"sizes": (640, 64)},
        "sizes=640,64 for @gemv; its arguments have 1 lengths `?`; "
        "give one length of 0 or more for each",
    ),
    "negative": (
        (EXAMPLES / "gemv.mlir").read_text(),
        {"sizes": (-1,)},
        "sizes=-1 for @gemv; its arguments have 1 lengths `?`; "
        "give one length of 0 or more for each",
    ),
    "no such function": (
        (EXAMPLES / "gemv.mlir").read_text(),
        {"sizes": (64,), "entry": "main"},
        "sizes for function @main; 0 functions are that; name the function with entry=",
    ),
    "several functions": (
        (EXAMPLES / "gemv.mlir").read_text()
        + (EXAMPLES / "gemv.mlir").read_text().replace("@gemv", "@other"),
        {"sizes": (64,)},
        "sizes for no function in particular; 2 have lengths `?`; name the function with entry=",
    ),
    "floats": (
        dot("tensor<50xf32>", "tensor<50xf32>", "%p = arith.mulf %x, %y : f32")
        .replace("arith.addi", "arith.addf")
        .replace(": i32", ": f32")
        .replace("-> i32", "-> f32")
        .replace("arith.constant 0 ", "arith.constant 0.0 "),
        {},
        "'pattern.reduce' sums products of f32; kernels accumulate in i32; "
        "convert the elements, or run it on another target",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    text, options, message = REFUSED[why]
    with pytest.raises(UserError) as error:
        converted(text, **options)
    assert error.value.message() == message
    assert error.value.location is not None or "function" in message


@pytest.mark.parametrize("path", [pattern_products.__file__, specialise_sizes.__file__])
def test_every_refusal_is_tested(path: str) -> None:
    for pieces in refusals_in(Path(path), ("UserError",)):
        assert any(
            all(piece in message for piece in pieces) for _, _, message in REFUSED.values()
        ), pieces
