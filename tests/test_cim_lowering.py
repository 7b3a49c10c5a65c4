"""Convolutions and products, compiled for macros and simulated, equal plain NumPy.

`CIM_OPT_CASES=3000 pytest tests/test_cim_lowering.py` runs more random ones.
"""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import numpy as np
import pytest
from cim_lowering import (
    MACHINES,
    SMALL_MACHINES,
    check,
    compiled,
    convolution,
    run,
    write_machines,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linalg_programs import FORMS, PRODUCTS, Array, Program, generic, named

from cim_opt.mapping.cim_code import ORDERS
from cim_opt.mapping.cim_covers import MAPPINGS

CASES = int(os.environ.get("CIM_OPT_CASES", "300"))
GRID = list(product((1, 2), (1, 2), (False, True)))
"""Strides, dilations, and whether there is padding."""
NAMES = sorted(FORMS)
CLASSES = (
    "conv_1d_ncw_fcw",
    "conv_2d_nchw_fchw",
    "conv_2d_ngchw_fgchw",
    "depthwise_conv_1d_nwc_wc",
    "depthwise_conv_2d_nchw_chw",
    "depthwise_conv_2d_nhwc_hwcm",
)
"""One of each kind of kernel; others differ in the order of their indices."""


def choices(number: int) -> tuple[str, str]:
    """Machine and mapping number so and so, in turn."""
    return MACHINES[number % 4], MAPPINGS[number // 4 % len(MAPPINGS)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_machines(tmp_path_factory.mktemp("machines"))


# -- every operation ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_convolution(name: str) -> None:
    """Size 7; machines and mappings in turn."""
    for number, (stride, dilation, same) in enumerate(GRID):
        taps = 2 if name.count("3d") and not same else 3
        program = convolution(name, 7, taps, stride, dilation, same)
        machine, mapping = choices(number * 5 + NAMES.index(name))
        check(program, machine, mapping=mapping)


@pytest.mark.parametrize("name", CLASSES)
def test_every_kind_at_size_13(name: str) -> None:
    for number, (stride, dilation, same) in enumerate(GRID):
        taps = 5 if number % 2 else 3
        machine, mapping = choices(number * 3 + CLASSES.index(name))
        check(convolution(name, 13, taps, stride, dilation, same), machine, mapping=mapping)


@pytest.mark.parametrize("size", [28, 56])
@pytest.mark.parametrize("name", CLASSES)
def test_every_kind_at_large_sizes(name: str, size: int) -> None:
    number = CLASSES.index(name) + size
    stride, dilation, same = GRID[number % len(GRID)]
    check(convolution(name, size, 3, stride, dilation, same), MACHINES[number % 4])


@pytest.mark.parametrize(("mapping", "machine"), list(product(MAPPINGS, MACHINES)))
@pytest.mark.parametrize("name", ["conv_2d_nchw_fchw", "depthwise_conv_2d_nchw_chw"])
def test_every_mapping_on_every_machine(name: str, mapping: str, machine: str) -> None:
    report = check(convolution(name, 13, 3, same=True), machine, mapping=mapping)
    assert report.macs is not None and report.utilisation is not None
    assert 0 < report.utilisation <= 1


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_product(name: str) -> None:
    for number, mapping in enumerate(MAPPINGS):
        check(named(name), MACHINES[number % 4], mapping=mapping)


def test_a_product_of_many_tiles() -> None:
    text = named("matmul").text
    for size, other in (("5x", "50x"), ("x6x", "x333x"), ("<6x", "<333x"), ("x2x", "x70x")):
        text = text.replace(size, other)
    shapes = (50, 333), (333, 70), (50, 70)
    program = Program(text, PRODUCTS["matmul"], shapes, spatial="")
    for machine in MACHINES:
        check(program, machine)


# -- generic -----------------------------------------------------------------------------------

GENERIC = {
    "the paper's Conv1D": (
        (["oc", "o", "k"], ["o + k", "oc, k", "oc, o"]),
        ((10,), (2, 3), (2, 8)),
    ),
    "taps backwards": (
        (["oc", "o", "k"], ["o - k + 2", "oc, k", "oc, o"]),
        ((10,), (2, 3), (2, 8)),
    ),
    "weights first": (
        (["oc", "o", "k"], ["oc, k", "o + k", "oc, o"]),
        ((2, 3), (10,), (2, 8)),
    ),
    "positions in another order": (
        (["i", "j", "f", "k"], ["j, i, k", "k, f", "i, f, j"]),
        ((4, 5, 9), (9, 7), (5, 7, 4)),
    ),
    "group and channel in one index": (
        (["g", "f", "o", "c", "k"], ["3 * g + c, o + k", "g, f, c, k", "4 * g + f, o"]),
        ((6, 12), (2, 4, 3, 5), (8, 8)),
    ),
}
LOOPS = {"i": 5, "j": 4, "f": 7, "k": 9}


@pytest.mark.parametrize("why", GENERIC)
def test_generic(why: str) -> None:
    (loops, maps), shapes = GENERIC[why]
    if why == "group and channel in one index":
        extents = dict(zip(loops, (2, 4, 8, 3, 5), strict=True))
    elif "i" in loops:
        extents = LOOPS
    else:
        extents = {"oc": 2, "o": 8, "k": 3}
    kinds = ["reduction" if loop in ("k", "c") else "parallel" for loop in loops]
    types = [f"tensor<{''.join(f'{n}x' for n in s)}i8>" for s in shapes[:2]]
    types.append(f"tensor<{''.join(f'{n}x' for n in shapes[2])}i32>")
    text = generic(loops, maps, kinds, types)
    rng = np.random.default_rng(0)
    arrays: list[Array] = [rng.integers(-128, 128, s).astype(np.int8) for s in shapes[:2]]
    arrays.append(rng.integers(-(1 << 31), 1 << 31, shapes[2]).astype(np.int32))
    expected = looped([extents[loop] for loop in loops], loops, maps, arrays)
    for machine, mapping in product(MACHINES[:2], MAPPINGS):
        got, _ = run(compiled(text, machine, mapping=mapping), arrays)
        np.testing.assert_array_equal(got, expected, f"{machine} {mapping}")


def looped(extents: list[int], loops: list[str], maps: list[str], arrays: list[Array]) -> Array:
    """The loop nest, point by point."""
    first, second, result = (array.astype(np.int64) for array in arrays)
    codes = [compile(f"({text},)", "map", "eval") for text in maps]
    for point in product(*map(range, extents)):
        names: dict[str, Any] = dict(zip(loops, point, strict=True))
        a, b, c = (eval(code, {}, names) for code in codes)
        result[c] += first[a] * second[b]
    return result.astype(np.int32)


# -- numbers at their limits -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["conv_2d_nchw_fchw", "depthwise_conv_2d_nchw_chw", "matmul"])
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_the_smallest_numbers(name: str, mapping: str) -> None:
    program = named(name) if name in PRODUCTS else convolution(name, 7, 3, same=True)
    x, w, z = (np.full(shape, -128, np.int8) for shape in program.shapes)
    check(program, arrays=[x, w, z.astype(np.int32)], mapping=mapping)


@pytest.mark.parametrize("start", [(1 << 31) - 1, -(1 << 31)])
@pytest.mark.parametrize("name", ["conv_1d_ncw_fcw", "depthwise_conv_2d_nchw_chw", "matvec"])
def test_sums_wrap_around(name: str, start: int) -> None:
    program = named(name) if name in PRODUCTS else convolution(name, 7, 3)
    sign = 1 if start > 0 else -1
    x = np.full(program.shapes[0], 127, np.int8)
    w = np.full(program.shapes[1], sign * 127, np.int8)
    z = np.full(program.shapes[2], start, np.int32)
    assert np.sign(program.expected([x, w, z])).min() == -sign
    check(program, arrays=[x, w, z])


# -- other widths ------------------------------------------------------------------------------

WIDTHS = ["i4", "i8", "i16"]


@pytest.mark.parametrize(("a", "b"), list(product(WIDTHS, WIDTHS)))
@pytest.mark.parametrize(
    "name", ["conv_2d_nhwc_hwcf", "depthwise_conv_2d_nchw_chw", "conv_1d", "matmul", "matvec"]
)
def test_widths(name: str, a: str, b: str) -> None:
    bits = int(a[1:]), int(b[1:])
    elements = a, b, "i32"
    if name in PRODUCTS:
        program = named(name, elements=elements)
    else:
        program = convolution(name, 9, 3, same=True, elements=elements)
    for number, mapping in enumerate(MAPPINGS):
        machine = MACHINES[number % 4]
        check(program, machine, program.arrays(number, bits), mapping=mapping)
        lowest = [
            np.full(shape, -(1 << width - 1), np.int16 if width > 8 else np.int8)
            for shape, width in zip(program.shapes[:2], bits, strict=True)
        ]
        check(program, machine, [*lowest, np.zeros(program.shapes[2], np.int32)], mapping=mapping)


def test_narrow_operands_take_fewer_cycles() -> None:
    """Columns, bits of a step and bytes of weights follow the wider operand."""
    cycles = {
        width: check(
            convolution("conv_2d_nchw_fchw", 13, 3, elements=(width, "i4", "i32")),
            arrays=convolution("conv_2d_nchw_fchw", 13, 3).arrays(0, (int(width[1:]), 4)),
        ).cycles
        for width in WIDTHS
    }
    assert cycles["i4"] < cycles["i8"] < cycles["i16"]


PATTERN = """func.func @main(%x: tensor<160x{a}>, %w: tensor<16x{b}>, %z: tensor<10xi32>)
    -> tensor<10xi32> {{
  %y = pattern.group<16>(%row in %x : tensor<160x{a}>) shared(%v = %w : tensor<16x{b}>)
      -> tensor<10xi32> {{
    %zero = arith.constant 7 : i32
    %dot = pattern.reduce(%m in %row : tensor<16x{a}>, %k in %v : tensor<16x{b}>)
        init(%acc = %zero : i32) {{
      %m32 = arith.extsi %m : {a} to i32
      %k32 = arith.extsi %k : {b} to i32
      %p = arith.muli %m32, %k32 : i32
      %s = arith.addi %acc, %p : i32
      pattern.yield %s : i32
    }} combine(%l, %r) {{
      %t = arith.addi %l, %r : i32
      pattern.yield %t : i32
    }}
    pattern.yield %dot : i32
  }}
  func.return %y : tensor<10xi32>
}}
"""


@pytest.mark.parametrize(("a", "b"), list(product(WIDTHS, WIDTHS)))
def test_widths_of_patterns(a: str, b: str) -> None:
    rng = np.random.default_rng(4)
    x, w = (
        rng.integers(-(1 << int(t[1:]) - 1), 1 << int(t[1:]) - 1, shape).astype(
            np.int16 if t == "i16" else np.int8
        )
        for t, shape in ((a, 160), (b, 16))
    )
    got, _ = run(compiled(PATTERN.format(a=a, b=b)), [x, w, np.zeros(10, np.int32)])
    expected = 7 + x.astype(np.int64).reshape(10, 16) @ w.astype(np.int64)
    np.testing.assert_array_equal(got, expected)


# -- machines that are too small ---------------------------------------------------------------


@pytest.mark.parametrize("machine", SMALL_MACHINES)
@pytest.mark.parametrize("name", ["conv_2d_nchw_fchw", "depthwise_conv_2d_nchw_chw", "matmul"])
def test_small_machines(small: dict[str, str], machine: str, name: str) -> None:
    program = named(name) if name in PRODUCTS else convolution(name, 11, 3, same=True)
    for mapping in MAPPINGS:
        check(program, small[machine], mapping=mapping)


def test_what_exceeds_global_memory_runs_in_parts(small: dict[str, str]) -> None:
    for name, size in (("depthwise_conv_2d_nchw_chw", 20), ("conv_2d", 40), ("conv_1d", 5000)):
        for mapping in MAPPINGS:
            report = check(convolution(name, size, 3, same=True), small["parts"], mapping=mapping)
            assert report.launches > 1


def test_weights_that_exceed_global_memory_run_in_parts(small: dict[str, str]) -> None:
    types = "tensor<2x9x150xi8>", "tensor<2x150x90xi8>", "tensor<2x9x90xi32>"
    text = named("batch_matmul").text
    for old, new in zip(("2x5x6xi8", "2x6x2xi8", "2x5x2xi32"), types, strict=True):
        text = text.replace(f"tensor<{old}>", new)
    shapes = (2, 9, 150), (2, 150, 90), (2, 9, 90)
    program = Program(text, PRODUCTS["batch_matmul"], shapes, spatial="")
    report = check(program, small["parts"])
    assert report.launches > 4
    assert report.macs == 2 * 9 * 150 * 90


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_of_instructions(small: dict[str, str], order: str) -> None:
    """One round, several, several macros a round, passes; one set of positions, two, and more."""
    for name, size in (("conv_2d_nchw_fchw", 9), ("depthwise_conv_2d_nchw_chw", 9), ("conv_1d", 8)):
        for machine, mapping in product([MACHINES[2], small["chunks"]], ["im2col", "best"]):
            check(convolution(name, size, 5, same=True), machine, mapping=mapping, order=order)
    for movement in (False, True):
        check(convolution("conv_1d", 40, 5), MACHINES[2], order=order, movement=movement)


# -- random ones -------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, tuple[int, int]]:
    """A convolution or a product with steps, padding, sizes and widths of any kind."""
    widths = draw(st.sampled_from([(8, 8)] * 6 + [(4, 4), (16, 16), (4, 8), (16, 8)]))
    elements = f"i{widths[0]}", f"i{widths[1]}", "i32"
    name = draw(st.sampled_from([*NAMES, *PRODUCTS]))
    if name in PRODUCTS:
        return named(name, elements=elements), widths
    letters = [i for i in FORMS[name].split("->")[1] if i in "dhw"]
    rank, most = len(letters), {1: 40, 2: 16, 3: 6}[len(letters)]
    sizes: dict[str, tuple[int, int]] = {}
    strides, dilations, padding = list[int](), list[int](), list[tuple[int, int]]()
    for letter in letters:
        stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        taps = draw(st.integers(1, 7 if rank == 1 else 5 if rank == 2 else 3))
        zeros = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        reach = dilation * (taps - 1) + 1
        low = max(1, reach - sum(zeros))
        sizes[letter] = draw(st.integers(low, max(low, most))), taps
        strides.append(stride)
        dilations.append(dilation)
        padding.append(zeros)
    return named(name, sizes, strides, dilations, padding, elements), widths


@settings(
    max_examples=CASES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    programs(),
    st.sampled_from([*MACHINES, *SMALL_MACHINES]),
    st.sampled_from(["best", "best", *MAPPINGS]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_random_programs(
    small: dict[str, str],
    drawn: tuple[Program, tuple[int, int]],
    machine: str,
    mapping: str,
    movement: bool,
    seed: int,
) -> None:
    program, bits = drawn
    arrays = program.arrays(seed, bits)
    check(program, small.get(machine, machine), arrays, mapping=mapping, movement=movement)
