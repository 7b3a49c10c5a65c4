"""Convolutions and matrix products become kernels that compute the same as plain NumPy."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linalg_programs import (
    FORMS,
    MAC,
    PRODUCTS,
    converted,
    function,
    generic,
    kernels_of,
    named,
    run,
)
from refusals import refusals_in

from cim_opt.dialects import linalg_convolutions, mac_body
from cim_opt.errors import UserError
from cim_opt.lowering import convert_linalg_to_poly
from cim_opt.lowering.poly_kernels import recognise_kernel
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.tools.load_module import parse_text

XDSL_OPT = Path(sys.executable).parent / "xdsl-opt"
STEPS = list(product((1, 2), (1, 2), ((0, 0), (1, 2))))


@pytest.mark.parametrize("name", [*FORMS, *PRODUCTS])
def test_named_operation(name: str) -> None:
    rank = sum(letter in "dhw" for letter in FORMS.get(name, "->").split("->")[1])
    for stride, dilation, zeros in STEPS if rank else STEPS[:1]:
        steps = ([stride] * rank, [dilation] * rank, [zeros] * rank) if rank else ((), (), ())
        program = named(name, None, *steps)
        arrays = program.arrays()
        expected = program.expected(arrays)
        np.testing.assert_array_equal(run(program.text, arrays), expected)
        module = converted(program.text)
        assert not any(op.name.startswith(("linalg.", "tensor.")) for op in module.walk())
        (kernel,) = kernels_of(module)
        assert (kernel.padded is not None) == (zeros != (0, 0) and rank > 0)
        np.testing.assert_array_equal(run(module, arrays), expected)


def test_forms_are_those_of_the_operations() -> None:
    ours = {
        op.name.removeprefix("linalg."): getattr(op, "FORM")  # noqa: B009
        for op in linalg_convolutions.OPERATIONS
        if hasattr(op, "FORM")
    }
    known = {**FORMS, **PRODUCTS}
    assert ours == {name: known[name] for name in ours}


def test_strides_and_dilations_are_one_where_not_given() -> None:
    program = named("depthwise_conv_2d_nchw_chw")
    assert "strides" not in program.text
    arrays = program.arrays()
    np.testing.assert_array_equal(run(program.text, arrays), program.expected(arrays))


def test_padding_by_one_number_an_axis() -> None:
    program = named("conv_2d", padding=[(2, 2), (1, 1)])
    short = program.text.replace("[[2, 2], [1, 1]]> : tensor<2x2xi64>", "[2, 1]> : tensor<2xi64>")
    assert short != program.text
    arrays = program.arrays()
    np.testing.assert_array_equal(run(short, arrays), program.expected(arrays))


def test_stock_xdsl_opt_knows_our_operations() -> None:
    text = named("depthwise_conv_3d_ndhwc_dhwc", padding=[(1, 1)] * 3).text
    command = [XDSL_OPT, "-p", "convert-linalg-to-poly"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "poly.kernel" in result.stdout and "linalg" not in result.stdout


@pytest.mark.parametrize("name", [*FORMS, *PRODUCTS])
def test_text_round_trips(name: str) -> None:
    padding = [(1, 2)] * sum(i in "dhw" for i in FORMS.get(name, "->").split("->")[1])
    module = parse_text(named(name, padding=padding).text, "test.mlir")
    assert str(parse_text(str(module), "again.mlir")) == str(module)


# -- kernels -----------------------------------------------------------------------------------


def recognised(text: str) -> MacKernel:
    (kernel,) = kernels_of(converted(text))
    return recognise_kernel(kernel).kernel


def test_depthwise_channels_are_groups_and_padding_is_of_the_axis() -> None:
    sizes = {"h": (56, 7), "w": (56, 7)}
    program = named("depthwise_conv_2d_nchw_chw", sizes, padding=[(3, 3), (3, 3)])
    axis = Axis(56, 7, 1, 1, 3, 56)
    assert recognised(program.text) == MacKernel(3, 1, 1, (Axis(2, inputs=2), axis, axis))
    # A batch of one is no axis.
    one = program.text.replace("<2x3x56x56", "<1x3x56x56")
    assert recognised(one) == MacKernel(3, 1, 1, (axis, axis))


def test_padding_by_tensor_pad_is_the_same_kernel() -> None:
    sizes = {"h": (9, 3), "w": (8, 2)}
    steps = [2, 1], [1, 2], [(1, 0), (2, 1)]
    axes = Axis(4, 3, 2, 1, 1, 9), Axis(9, 2, 1, 2, 2, 8)
    assert recognised(named("conv_2d_nchw_fchw", sizes, *steps).text) == MacKernel(
        1, 4, 3, (Axis(2, inputs=2), *axes)
    )


def test_products() -> None:
    assert recognised(named("matmul").text) == MacKernel(1, 2, 6, (Axis(5, inputs=5),))
    # The matrix stays in the cells, the vector is what is read.
    assert recognised(named("matvec").text) == MacKernel(1, 5, 6, ())
    assert recognised(named("vecmat").text) == MacKernel(1, 2, 6, ())
    assert recognised(named("dot").text) == MacKernel(1, 1, 6, ())
    assert recognised(named("batch_matvec").text) == MacKernel(2, 5, 6, ())


def test_a_product_with_a_transposed_matrix() -> None:
    maps = ", ".join(
        f"affine_map<(i, j, k) -> ({indices})>" for indices in ("i, k", "j, k", "i, j")
    )
    text = function(
        ["tensor<4x5xi8>", "tensor<6x5xi8>", "tensor<4x6xi32>"],
        f"  %y = linalg.matmul indexing_maps = [{maps}] ins(%x, %w : tensor<4x5xi8>, "
        "tensor<6x5xi8>) outs(%z : tensor<4x6xi32>) -> tensor<4x6xi32>",
    )
    again = str(parse_text(text, "test.mlir"))
    assert str(parse_text(again, "again.mlir")) == again
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((4, 5), (6, 5)))
    z = np.zeros((4, 6), np.int32)
    expected = x.astype(int) @ w.astype(int).T
    for module in (text, again, converted(again)):
        np.testing.assert_array_equal(run(module, [x, w, z]), expected)


# -- generic -----------------------------------------------------------------------------------

CONV1D_TYPES = ("tensor<10xi8>", "tensor<2x3xi8>", "tensor<2x8xi32>")


def conv1d(
    maps: tuple[str, str, str] = ("o + k", "oc, k", "oc, o"),
    types: tuple[str, str, str] = CONV1D_TYPES,
    body: str | None = None,
) -> str:
    kinds = ["parallel", "parallel", "reduction"]
    return generic(["oc", "o", "k"], maps, kinds, types, body)


def test_the_paper_s_conv1d_as_generic() -> None:
    text = conv1d()
    assert recognised(text) == MacKernel(1, 2, 1, (Axis(8, 3, inputs=10),))
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((10,), (2, 3)))
    z = np.zeros((2, 8), np.int32)
    expected = [[int(x[o : o + 3].astype(int) @ w[oc]) for o in range(8)] for oc in range(2)]
    np.testing.assert_array_equal(run(text, [x, w, z]), expected)
    np.testing.assert_array_equal(run(converted(text), [x, w, z]), expected)


@pytest.mark.parametrize(
    "body",
    [
        # operands of the sum and of the product in the other order
        "%a0 = arith.extsi %a : i8 to i32\n%b0 = arith.extsi %b : i8 to i32\n"
        "%p = arith.muli %b0, %a0 : i32\n%s = arith.addi %p, %acc : i32\nlinalg.yield %s : i32",
        # the product in i16, which holds it
        "%a0 = arith.extsi %a : i8 to i16\n%b0 = arith.extsi %b : i8 to i16\n"
        "%q = arith.muli %a0, %b0 : i16\n%p = arith.extsi %q : i16 to i32\n"
        "%s = arith.addi %acc, %p : i32\nlinalg.yield %s : i32",
    ],
)
def test_bodies_written_otherwise(body: str) -> None:
    text = conv1d(body=body)
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-128, 128, s, np.int8) for s in ((10,), (2, 3))]
    arrays.append(np.zeros((2, 8), np.int32))
    same = run(conv1d(), arrays)
    np.testing.assert_array_equal(run(text, arrays), same)
    np.testing.assert_array_equal(run(converted(text), arrays), same)


def test_a_loop_that_runs_backwards() -> None:
    # A true convolution reads its taps from the last to the first.
    text = conv1d(maps=("o - k + 2", "oc, k", "oc, o"))
    rng = np.random.default_rng(2)
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((10,), (2, 3)))
    z = np.zeros((2, 8), np.int32)
    expected = [np.convolve(x.astype(int), row.astype(int), "valid") for row in w]
    module = converted(text)
    np.testing.assert_array_equal(run(module, [x, w, z]), expected)
    assert recognised(text) == MacKernel(1, 2, 1, (Axis(8, 3, inputs=10),))


@pytest.mark.parametrize(("a", "b"), [("i4", "i8"), ("i8", "i4"), ("i4", "i4"), ("i16", "i8")])
def test_other_widths(a: str, b: str) -> None:
    program = named("conv_1d_ncw_fcw", elements=(a, b, "i32"))
    arrays = program.arrays(bits=(int(a[1:]), int(b[1:])))
    expected = program.expected(arrays)
    np.testing.assert_array_equal(run(program.text, arrays), expected)
    np.testing.assert_array_equal(run(converted(program.text), arrays), expected)


def test_what_multiplies_nothing_stays() -> None:
    text = conv1d(body="%s = arith.addi %acc, %acc : i32\nlinalg.yield %s : i32")
    assert kernels_of(converted(text)) == []


def test_zeros_of_linalg_fill_are_the_start() -> None:
    program = named("matmul")
    fill = (
        "  %c0 = arith.constant 0 : i32\n  %e = linalg.fill ins(%c0 : i32) "
        "outs(%z : tensor<5x2xi32>) -> tensor<5x2xi32>\n"
    )
    text = program.text.replace("  %y", fill + "  %y").replace(
        "outs(%z : tensor<5x2xi32>) -> tensor<5x2xi32>\n  func",
        "outs(%e : tensor<5x2xi32>) -> tensor<5x2xi32>\n  func",
    )
    arrays = program.arrays()
    expected = program.expected([*arrays[:2], np.zeros((5, 2), np.int32)])
    module = converted(text)
    assert any(op.name == "linalg.fill" for op in module.walk())
    np.testing.assert_array_equal(run(module, arrays), expected)


def test_no_iterations_leave_the_output_as_it_was() -> None:
    text = function(
        ["tensor<4x0xi8>", "tensor<0x3xi8>", "tensor<4x3xi32>"],
        "  %y = linalg.matmul ins(%x, %w : tensor<4x0xi8>, tensor<0x3xi8>) "
        "outs(%z : tensor<4x3xi32>) -> tensor<4x3xi32>",
    )
    module = converted(text)
    assert kernels_of(module) == []
    arrays = [np.zeros((4, 0), np.int8), np.zeros((0, 3), np.int8), np.ones((4, 3), np.int32)]
    np.testing.assert_array_equal(run(module, arrays), arrays[2])
    np.testing.assert_array_equal(run(text, arrays), arrays[2])


@pytest.mark.parametrize("change", ["number", "nofold"])
def test_other_pads_stay(change: str) -> None:
    program = named("conv_2d_nchw_fchw", padding=[(1, 1), (1, 1)])
    if change == "number":
        text = program.text.replace("arith.constant 0 : i8", "arith.constant 7 : i8")
    else:
        text = program.text.replace("tensor.pad %x low", "tensor.pad %x nofold low")
    assert text != program.text
    module = converted(text)
    assert any(op.name == "tensor.pad" for op in module.walk())
    arrays = program.arrays()
    np.testing.assert_array_equal(run(module, arrays), run(text, arrays))


def test_a_pad_that_others_read_stays_for_them() -> None:
    program = named("conv_2d_nchw_fchw", padding=[(1, 1), (1, 1)])
    call = "  %d = tensor.dim %p, %i : tensor<2x3x8x9xi8>\n  func.return"
    text = program.text.replace("  func.return", "  %i = arith.constant 1 : index\n" + call)
    module = converted(text)
    assert any(op.name == "tensor.pad" for op in module.walk())
    (kernel,) = kernels_of(module)
    assert kernel.padded is not None


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_convolutions(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FORMS)))
    rank = sum(letter in "dhw" for letter in FORMS[name].split("->")[1])
    small = st.integers(1, 3)
    strides, dilations = (data.draw(st.lists(small, min_size=rank, max_size=rank)) for _ in "ab")
    pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))
    padding = data.draw(st.lists(pairs, min_size=rank, max_size=rank))
    sizes: dict[str, tuple[int, int]] = {}
    for letter, dilation in zip([i for i in "dhw"][3 - rank :], dilations, strict=True):
        taps = data.draw(st.integers(1, 4))
        sizes[letter] = data.draw(st.integers(dilation * (taps - 1) + 1, 14)), taps
    program = named(name, sizes, strides, dilations, padding)
    arrays = program.arrays(data.draw(st.integers(0, 99)))
    expected = program.expected(arrays)
    np.testing.assert_array_equal(run(program.text, arrays), expected)
    np.testing.assert_array_equal(run(converted(program.text), arrays), expected)


# -- refusals ----------------------------------------------------------------------------------


def refused(text: str) -> str:
    with pytest.raises(UserError) as error:
        converted(text)
    assert "\n" not in str(error.value)
    return str(error.value)


REFUSED = {
    "floats": (
        conv1d(
            body="%p = arith.mulf %a, %b : f32\n%s = arith.addf %acc, %p : f32\n"
            "linalg.yield %s : f32",
            types=("tensor<10xf32>", "tensor<2x3xf32>", "tensor<2x8xf32>"),
        ),
        "a multiply-accumulate of f32; macros compute with integers only; quantise to i8",
    ),
    "unsigned": (
        conv1d(body=MAC.format(a="i8", b="i8").replace("extsi %b", "extui %b")),
        "unsigned elements in a multiply-accumulate; macros multiply signed integers; "
        "subtract half of the range, or extend to i16 first",
    ),
    "i32": (
        conv1d(
            body="%p = arith.muli %a, %b : i32\n%s = arith.addi %acc, %p : i32\n"
            "linalg.yield %s : i32",
            types=("tensor<10xi32>", "tensor<2x3xi32>", "tensor<2x8xi32>"),
        ),
        "a multiply-accumulate of i32 elements; macros multiply i4, i8 and i16; "
        "quantise, or declare the range of the values",
    ),
    "i64": (
        conv1d(
            body=MAC.format(a="i8", b="i8").replace("i32", "i64"),
            types=("tensor<10xi8>", "tensor<2x3xi8>", "tensor<2x8xi64>"),
        ),
        "an accumulator of i64; kernels accumulate in i32; "
        "accumulate in i32 and convert afterwards",
    ),
    "wraps": (
        conv1d(
            body="%q = arith.muli %a, %b : i8\n%p = arith.extsi %q : i8 to i32\n"
            "%s = arith.addi %acc, %p : i32\nlinalg.yield %s : i32"
        ),
        "a product of i8 and i8 in i8; it wraps there; "
        "extend the elements to i32 before they are multiplied",
    ),
    "zero points": (
        function(
            ["tensor<4x5xi8>", "tensor<5x6xi8>", "tensor<4x6xi32>"],
            "  %c = arith.constant 3 : i32\n"
            "  %y = linalg.quantized_matmul ins(%x, %w, %c, %c : tensor<4x5xi8>, tensor<5x6xi8>, "
            "i32, i32) outs(%z : tensor<4x6xi32>) -> tensor<4x6xi32>",
        ),
        "'linalg.quantized_matmul' has zero points; kernels multiply the elements as they are; "
        "subtract the zero points first and use linalg.matmul",
    ),
    "dynamic": (
        function(
            ["tensor<?x5xi8>", "tensor<5x6xi8>", "tensor<?x6xi32>"],
            "  %y = linalg.matmul ins(%x, %w : tensor<?x5xi8>, tensor<5x6xi8>) "
            "outs(%z : tensor<?x6xi32>) -> tensor<?x6xi32>",
        ),
        "'linalg.matmul' works on tensor<?x5xi8>; the mapping to macros needs every size; "
        "write the sizes into the types",
    ),
    "memory": (
        "func.func @main(%x: memref<4x5xi8>, %w: memref<5x6xi8>, %z: memref<4x6xi32>) {\n"
        "  linalg.matmul ins(%x, %w : memref<4x5xi8>, memref<5x6xi8>) outs(%z : memref<4x6xi32>)\n"
        "  func.return\n}",
        "'linalg.matmul' works on memref<4x5xi8>; kernels compute tensors from tensors; "
        "convert before memory is assigned",
    ),
    "division": (
        generic(
            ["i", "j", "k"],
            ["i floordiv 2, k", "k, j", "i, j"],
            ["parallel", "parallel", "reduction"],
            ["tensor<2x5xi8>", "tensor<5x6xi8>", "tensor<4x6xi32>"],
        ),
        "an index of 'linalg.generic' is (d0 floordiv 2); indices are sums of loops times "
        "integers; split the loop that is divided",
    ),
    "diagonal": (
        generic(
            ["i", "j", "k"],
            ["i, i, k", "k, j", "i, j"],
            ["parallel", "parallel", "reduction"],
            ["tensor<4x4x5xi8>", "tensor<5x6xi8>", "tensor<4x6xi32>"],
        ),
        "loop d0 moves along indices 0 and 1 of the input; "
        "a kernel reads no diagonals: each loop is in one index of an operand",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    text, message = REFUSED[why]
    place, _, said = refused(text).partition(": error: ")
    assert said == message
    assert place.startswith("test.mlir:")


@pytest.mark.parametrize("module", [convert_linalg_to_poly, mac_body])
def test_every_refusal_is_tested(module: object) -> None:
    path = Path(str(getattr(module, "__file__")))  # noqa: B009
    for pieces in refusals_in(path, ("UserError",)):
        assert any(all(piece in message for piece in pieces) for _, message in REFUSED.values()), (
            pieces
        )
