"""`pattern-narrow`: the same results, in fewer bits."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pipelines import DTYPES, Program, programs
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.universe import Universe
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FoldOp
from cim_opt.errors import UserError
from cim_opt.passes.narrow_policy import Widths
from cim_opt.passes.pattern_fuse import PatternFusePass
from cim_opt.passes.pattern_narrow import PatternNarrowPass
from cim_opt.passes.pattern_neutral import neutral_elements
from cim_opt.simulators.reference import run_function
from cim_opt.simulators.report import KernelReport, Report
from cim_opt.simulators.run import run_program
from cim_opt.tools.run_inputs import Sizes, make_inputs

WIDTHS: tuple[Widths, ...] = ("native", "any")


def parsed(text: str) -> ModuleOp:
    context = Context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, dialect)
    return Parser(context, text).parse_module()


def narrowed(text: str, widths: Widths = "native") -> ModuleOp:
    module = parsed(text)
    PatternNarrowPass(widths).apply(Context(), module)
    module.verify()
    return module


def check_same(text: str, args: list[object], widths: Widths, fuse: bool = False) -> None:
    before = parsed(text)
    if fuse:
        PatternFusePass().apply(Context(), before)
    module = narrowed(str(before), widths)
    expected = run_function(before, "main", args)
    got = run_function(module, "main", args)
    for one, other in zip(expected, got, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, err_msg=f"{text}\n{module}")


# -- random programs -------------------------------------------------------------------------------


@st.composite
def declared(draw: st.DrawFn) -> tuple[str, list[object]]:
    """A random program, some of whose arguments have declared ranges, and inputs within them."""
    program: Program = draw(programs())
    text = program.text
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    args: list[object] = []
    for index, (element, length) in enumerate(program.arguments):
        if element == "f32":
            args.append(rng.standard_normal(length, np.float32))
            continue
        width = int(element[1:])
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if element != "i1" and draw(st.integers(0, 3)):
            size = 1 << draw(st.integers(0, width))
            low = draw(st.sampled_from([0, 0, -(size // 2), 1, low]))
            most = min((1 << width) - 1, (1 << 63) - 1)  # what the attribute holds
            high = draw(st.sampled_from([min(low + size - 1, high), most]))
            high = high if low >= 0 else min(high, (1 << (width - 1)) - 1)
            text = re.sub(
                rf"(%arg{index}: [^,)]+)", rf"\1 {{pattern.range = [{low}, {high}]}}", text, count=1
            )
        edges = rng.choice(np.array([low, high], object), size=length)
        span = high - low + 1
        drawn = [
            low + int(x) % span
            for x in rng.integers(0, 1 << 62, size=1 if length is None else length)
        ]
        values = np.array(drawn, object) if length is not None else np.array(drawn[0], object)
        if rng.integers(2):
            values = np.where(rng.integers(2, size=length), edges, values)
        wrapped = (np.asarray(values) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
        plain = (np.asarray(values) % 2) if width == 1 else wrapped
        args.append(np.asarray(plain).astype(DTYPES[element])[()])
    return text, args


@pytest.mark.parametrize("widths", WIDTHS)
@settings(max_examples=100, deadline=None)
@given(case=declared(), fuse=st.booleans())
def test_random_programs(widths: Widths, case: tuple[str, list[object]], fuse: bool) -> None:
    text, args = case
    check_same(text, args, widths, fuse)


# -- single cases ----------------------------------------------------------------------------------


def elementwise(body: str, types: str, result: str, arguments: str = "") -> str:
    """A map over vectors %a, %b... of `types`, whose element function sees %x, %y..."""
    elements = types.split()
    given_ = arguments or ", ".join(
        f"%{name}: tensor<?x{type}>" for name, type in zip("abc", elements, strict=False)
    )
    bound = ", ".join(
        f"%{x} in %{a} : tensor<?x{type}>"
        for x, a, type in zip("xyz", "abc", elements, strict=False)
    )
    return (
        f"func.func @main({given_}) -> tensor<?x{result}> {{\n"
        f"%m = pattern.map({bound}) -> tensor<?x{result}> {{\n{body}\n"
        f"pattern.yield %r : {result}\n}}\nfunc.return %m : tensor<?x{result}>\n}}"
    )


ALL_BYTES = [np.repeat(np.arange(-128, 128), 256), np.tile(np.arange(-128, 128), 256)]

BYTE_OPERATIONS = (
    *("addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui"),
    *("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"),
    *("shli", "shrsi", "shrui"),
)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("extensions", ["ss", "su", "us", "uu"])
@pytest.mark.parametrize("name", BYTE_OPERATIONS)
def test_operations_on_all_extended_bytes(name: str, extensions: str, widths: Widths) -> None:
    first, second = extensions
    body = f"""
      %u = arith.ext{first}i %x : i8 to i64
      %v = arith.ext{second}i %y : i8 to i64
      %r = arith.{name} %u, %v : i64"""
    args: list[object] = [values.astype(np.int8) for values in ALL_BYTES]
    check_same(elementwise(body, "i8 i8", "i64"), args, widths)


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "uge"])
def test_comparisons_of_all_extended_bytes(predicate: str) -> None:
    for first, second in ("ss", "su", "us", "uu"):
        body = f"""
          %u = arith.ext{first}i %x : i8 to i32
          %v = arith.ext{second}i %y : i8 to i32
          %k = arith.cmpi {predicate}, %u, %v : i32
          %r = arith.extsi %k : i1 to i32"""
        args: list[object] = [values.astype(np.int8) for values in ALL_BYTES]
        check_same(elementwise(body, "i8 i8", "i32"), args, "any")


@pytest.mark.parametrize("name", ["math.absi", "math.ctpop", "math.ctlz", "math.cttz"])
@pytest.mark.parametrize("sign", "su")
def test_functions_of_all_extended_bytes(name: str, sign: str) -> None:
    body = f"%u = arith.ext{sign}i %x : i8 to i32\n%r = {name} %u : i32"
    text = elementwise(body, "i8", "i32")
    check_same(text, [np.arange(-128, 128, dtype=np.int8)], "any")


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("name", ["shli", "shrui", "shrsi"])
@pytest.mark.parametrize(("low", "high"), [(0, 3), (-4, 3)])
def test_amounts_of_shifts_are_kept_whole(name: str, low: int, high: int, widths: Widths) -> None:
    argument = (
        f"%a: tensor<?xi32> {{pattern.range = [{low}, {high}]}}, "
        "%b: tensor<?xi32> {pattern.range = [0, 200]}"
    )
    body = f"%w = arith.{name} %x, %y : i32\n%r = arith.trunci %w : i32 to i8"
    numbers = np.arange(low, high + 1)
    args: list[object] = [
        np.repeat(numbers, 201).astype(np.int32),
        np.tile(np.arange(201), len(numbers)).astype(np.int32),
    ]
    check_same(elementwise(body, "i32 i32", "i8", argument), args, widths)


@pytest.mark.parametrize("widths", WIDTHS)
def test_all_of_an_amount_matters_where_few_bits_of_the_result_do(widths: Widths) -> None:
    body = """
      %n = arith.muli %y, %y : i32
      %w = arith.shli %x, %n : i32
      %r = arith.trunci %w : i32 to i8"""
    args: list[object] = [np.ones(100, np.int32), np.arange(100, dtype=np.int32)]
    check_same(elementwise(body, "i32 i32", "i8"), args, widths)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("inner", "su")
@pytest.mark.parametrize("outer", "su")
def test_extensions_of_extensions(inner: str, outer: str, widths: Widths) -> None:
    body = f"""
      %u = arith.ext{inner}i %x : i8 to i16
      %r = arith.ext{outer}i %u : i16 to i64"""
    check_same(elementwise(body, "i8", "i64"), [np.arange(-128, 128, dtype=np.int8)], widths)


FOLD = """
func.func @main(%a: tensor<?xi32> {{pattern.range = [{low}, {high}]}}) -> i32 {{
  %first = arith.constant {init} : i32
  %t = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %first : i32) {{
    {body}
    pattern.yield %s : i32
  }} {combine}
  func.return %t : i32
}}
"""
LONG = 40000  # elements that the reference folds in parts


@pytest.mark.parametrize("widths", WIDTHS)
def test_partial_folds_start_from_the_neutral_element(widths: Widths) -> None:
    text = FOLD.format(
        low=-100,
        high=-50,
        init=-100,
        body="%k = arith.cmpi sgt, %acc, %x : i32\n%s = arith.select %k, %acc, %x : i32",
        combine="combine(%l, %r) {\n%m = arith.maxsi %l, %r : i32\npattern.yield %m : i32\n}",
    )
    values = np.random.default_rng(0).integers(-100, -50, LONG).astype(np.int32)
    check_same(text, [values], widths)


@pytest.mark.parametrize("widths", WIDTHS)
def test_a_body_that_combines_sees_partial_results(widths: Widths) -> None:
    body = """
      %z = arith.constant 0 : i32
      %n = arith.subi %z, %x : i32
      %s = arith.subi %acc, %n : i32"""
    text = FOLD.format(low=0, high=3, init=0, body=body, combine="")
    check_same(text, [np.full(LONG, 3, np.int32)], widths)


@pytest.mark.parametrize("kind", ["addi", "muli", "minsi", "maxui", "xori"])
def test_neutral_elements_can_still_be_told(kind: str) -> None:
    body = f"%s = arith.{kind} %acc, %x : i32"
    text = FOLD.format(low=0, high=1, init=1, body=body, combine="")
    for widths in WIDTHS:
        module = narrowed(text, widths)
        fold = next(op for op in module.walk() if isinstance(op, FoldOp))
        assert neutral_elements(fold) is not None
        check_same(text, [np.tile(np.array([1, 1, 0, 1], np.int32), LONG // 4)], widths)


def operations(module: ModuleOp) -> list[str]:
    """`name type` of each operation with one integer result."""
    return [
        f"{op.name.removeprefix('arith.')} {op.results[0].type}"
        for op in module.walk()
        if len(op.results) == 1 and isa(op.results[0].type, IntegerType)
    ]


@pytest.mark.parametrize(
    ("mask", "expected"), [(255, "muli i16"), (65535, "muli i32"), (0x1FFFF, "muli i32")]
)
def test_masks_bound_factors(mask: int, expected: str) -> None:
    body = f"""
      %k = arith.constant {mask} : i32
      %u = arith.andi %x, %k : i32
      %r = arith.muli %u, %u : i32"""
    module = narrowed(elementwise(body, "i32", "i32"))
    assert expected in operations(module)
    # 16-bit factors say so; longer ones have no shorter product.
    assert ("trunci i16" in operations(module)) == (mask == 65535)


def test_what_is_not_known_stays() -> None:
    body = "%u = arith.muli %x, %x : i32\n%r = arith.divsi %u, %x : i32"
    text = elementwise(body, "i32", "i32")
    for widths in WIDTHS:
        assert operations(narrowed(text, widths)) == ["muli i32", "divsi i32"]


def test_an_undeclared_narrow_product_that_wraps_stays() -> None:
    # 200 * 200 is in [0, 65535]; 300 * 300 is not: the product is one of 32 bits.
    body = "%r = arith.muli %x, %x : i32"
    for high, expected in ((255, "muli i16"), (300, "muli i32")):
        argument = f"%a: tensor<?xi32> {{pattern.range = [0, {high}]}}"
        assert expected in operations(narrowed(elementwise(body, "i32", "i32", argument)))


SUM = """
func.func @main(%a: tensor<{n}xi32> {{pattern.range = [0, 255]}}) -> i32 {{
  %ten = arith.constant 10 : i32
  %r = pattern.reduce(%x in %a : tensor<{n}xi32>) init(%acc = %ten : i32) {{
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }}
  func.return %r : i32
}}
"""


@pytest.mark.parametrize(("length", "bits"), [("1", 9), ("64", 14), ("1000", 18), ("?", 32)])
def test_accumulators_grow_with_the_length(length: str, bits: int) -> None:
    module = narrowed(SUM.format(n=length), "any")
    assert f"addi i{bits}" in operations(module)
    count = 7 if length == "?" else int(length)
    check_same(SUM.format(n=length), [np.full(count, 255, np.int32)], "any")


def test_returned_vectors_and_arguments_keep_their_types() -> None:
    text = """
      func.func @main(%a: tensor<?xi32> {pattern.range = [0, 3]})
          -> (tensor<?xi32>, tensor<?xi32>) {
        %v = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
          %r = arith.addi %x, %x : i32
          pattern.yield %r : i32
        }
        %w = pattern.map(%x in %v : tensor<?xi32>) -> tensor<?xi32> {
          %r = arith.muli %x, %x : i32
          pattern.yield %r : i32
        }
        func.return %v, %w : tensor<?xi32>, tensor<?xi32>
      }"""
    for widths in WIDTHS:
        module = narrowed(text, widths)
        function = next(op for op in module.walk() if isinstance(op, FuncOp))
        assert str(function.function_type).count("tensor<?xi32>") == 3
        assert all(
            str(op.results[0].type) == "tensor<?xi32>"
            for op in function.body.block.ops
            if op.results
        )
        check_same(text, [np.arange(4, dtype=np.int32)], widths)


def test_narrowing_again_changes_nothing() -> None:
    for widths in WIDTHS:
        once = narrowed(SUM.format(n="64"), widths)
        assert str(narrowed(str(once), widths)) == str(once)


# -- declared ranges -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "attribute", "message"),
    [
        ("tensor<?xf32>", "[0, 1]", "pattern.range of %a is for integers; it is tensor<?xf32>"),
        ("tensor<?xi8>", "[0]", "pattern.range of %a is not two integers"),
        ("tensor<?xi8>", '"x"', "pattern.range of %a is not two integers"),
        ("tensor<?xi8>", "[3, 2]", r"pattern.range of %a is [3, 2]"),
        ("tensor<?xi8>", "[0, 256]", "it lies in [-128, 127] or in [0, 255]"),
        ("tensor<?xi8>", "[-1, 200]", "pattern.range of %a is [-1, 200]"),
        ("tensor<?xi8>", "[-129, 0]", "pattern.range of %a is [-129, 0]"),
    ],
)
def test_ranges_that_make_no_sense(type: str, attribute: str, message: str) -> None:
    text = f"""
      func.func @main(%a: {type} {{pattern.range = {attribute}}}) -> {type} {{
        %v = pattern.map(%x in %a : {type}) -> {type} {{
          pattern.yield %x : {type[9:-1]}
        }}
        func.return %v : {type}
      }}"""
    with pytest.raises(UserError, match=re.escape(message)):
        narrowed(text)


@pytest.mark.parametrize("target", ["reference", "upmem"])
def test_inputs_are_held_against_ranges(target: str) -> None:
    module = parsed(SUM.format(n="?"))
    values = np.array([0, 255, 256, -1], np.int32)
    with pytest.raises(UserError, match=re.escape("argument %a[2] is 256; its range is [0, 255]")):
        run_program(module, "main", {"a": values}, target=target)
    assert run_program(module, "main", {"a": values[:2]}, target=target).outputs[0] == 265


def test_unsigned_ranges_count_unsigned() -> None:
    body = "%w = arith.extui %x : i8 to i32\n%r = arith.muli %w, %w : i32"
    argument = "%a: tensor<?xi8> {pattern.range = [0, 200]}"
    text = elementwise(body, "i8", "i32", argument)
    check_same(text, [np.array([0, 200], np.uint8).view(np.int8)], "any")
    with pytest.raises(UserError, match=re.escape("%a[1] is 201; its range is [0, 200]")):
        run_function(parsed(text), "main", [np.array([3, 201], np.uint8).view(np.int8)])


def test_scalars_have_ranges_too() -> None:
    text = "func.func @main(%s: i32 {pattern.range = [1, 5]}) -> i32 { func.return %s : i32 }"
    assert run_function(parsed(text), "main", [np.int32(5)]) == [5]
    with pytest.raises(UserError, match=re.escape("argument %s is 6; its range is [1, 5]")):
        run_function(parsed(text), "main", [np.int32(6)])


def test_random_inputs_lie_in_their_ranges() -> None:
    text = """
      func.func @main(%a: tensor<1000xi32> {pattern.range = [-3, 4]},
          %b: tensor<1000xi8> {pattern.range = [100, 200]}, %c: i1 {pattern.range = [1, 1]},
          %d: tensor<1000xi5>, %e: tensor<1000xi16>) {
        func.return
      }"""
    function = next(op for op in parsed(text).walk() if isinstance(op, FuncOp))
    inputs = make_inputs(function, Sizes(), {}, 0)
    assert set(inputs["a"].tolist()) == set(range(-3, 5))
    unsigned = inputs["b"].view(np.uint8)
    assert (unsigned.min(), unsigned.max()) == (100, 200)
    assert inputs["c"]
    assert set(inputs["d"].tolist()) == set(range(-16, 16))
    assert inputs["e"].max() > 20000


@pytest.mark.parametrize("vector", [True, False])
def test_upmem_refuses_widths_that_it_does_not_have(vector: bool) -> None:
    body = "%r = arith.muli %x, %x : i22"
    text = elementwise(body, "i22", "i22")
    if not vector:
        cut = f"%y = arith.trunci %x : i32 to i22\n{body.replace('%x', '%y')}"
        text = elementwise(
            cut.replace("%r", "%q") + "\n%r = arith.extsi %q : i22 to i32", "i32", "i32"
        )
    inputs = {"a": np.arange(8, dtype=np.int32)}
    with pytest.raises(UserError, match="a value of type i22 on UPMEM"):
        run_program(parsed(text), "main", inputs, target="upmem")


# -- UPMEM -----------------------------------------------------------------------------------------

DOT = """
func.func @main(%a: tensor<?xi32> {pattern.range = [0, 255]},
                %b: tensor<?xi32> {pattern.range = [-128, 127]}) -> i32 {
  %zero = arith.constant 0 : i32
  %products = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %y : i32
    pattern.yield %p : i32
  }
  %sum = pattern.reduce(%p in %products : tensor<?xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %p : i32
    pattern.yield %s : i32
  }
  func.return %sum : i32
}
"""


def kernels_of(text: str, inputs: dict[str, np.ndarray], narrow: bool) -> Sequence[KernelReport]:
    result = run_program(
        parsed(text),
        "main",
        inputs,
        target="upmem",
        machine="upmem-640",
        pipeline_options={"narrow": narrow},
    )
    assert result.check is not None and result.check.ok
    assert isinstance(result.report, Report)
    return result.report.kernels


def kernel_instructions(text: str, inputs: dict[str, np.ndarray], narrow: bool) -> int:
    return sum(kernel.instructions for kernel in kernels_of(text, inputs, narrow))


def test_a_dot_product_of_declared_bytes_takes_one_instruction_a_product() -> None:
    rng = np.random.default_rng(0)
    length = 64 * 640 * 8
    inputs = {
        "a": rng.integers(0, 256, length).astype(np.int32),
        "b": rng.integers(-128, 128, length).astype(np.int32),
    }
    before, after = (kernel_instructions(DOT, inputs, narrow) for narrow in (False, True))
    # Two loads, two pointers, the product, the sum and the loop; before, the routine, 8 at least.
    assert (before - after) / length > 7


@settings(max_examples=25, deadline=None, derandomize=True)
@given(case=declared())
def test_narrowing_costs_no_instructions(case: tuple[str, list[object]]) -> None:
    """But for a constant or two that each tasklet makes at its start, however much it computes.

    The programs are always the same ones: about one in a hundred of all takes a few per cent more,
    where what is folded leaves a longer way to the same number.
    """
    text, args = case
    inputs = {str(number): np.asarray(arg)[()] for number, arg in enumerate(args)}
    try:
        wide, narrowed = (kernels_of(text, inputs, narrow) for narrow in (False, True))
    except UserError:
        return
    starts = sum(kernel.launches * kernel.dpus * kernel.tasklets for kernel in narrowed)
    counts = [sum(kernel.instructions for kernel in kernels) for kernels in (wide, narrowed)]
    assert counts[1] <= counts[0] + 2 * starts, text
