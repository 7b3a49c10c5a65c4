"""What the reference computes for `poly.kernel`, `linalg` and `tensor.pad`, and what it refuses."""

# The cases are lambdas over numbers.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linalg_programs import named
from refusals import refusals_in

from cim_opt.dialects.poly import KernelOp
from cim_opt.errors import UserError
from cim_opt.lowering import poly_kernels
from cim_opt.lowering.poly_kernels import recognise_kernel
from cim_opt.polyhedral.recognise import Access
from cim_opt.simulators import affine_products, kernels
from cim_opt.simulators.affine_products import sum_products, sum_products_at
from cim_opt.simulators.reference import run_function
from cim_opt.tools.load_module import parse_text

MAC = """
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.extsi %b : i8 to i32
    %p = arith.muli %a32, %b32 : i32
    %s = arith.addi %acc, %p : i32
    poly.yield %s : i32"""


def kernel(
    domain: str,
    reads: str = "[o + k]",
    weights: str = "[k]",
    writes: str = "[o]",
    body: str = MAC,
    flags: str = "",
) -> str:
    maps = ", ".join(
        f'#poly.map<"{{ [o, k] -> {indices} }}">' for indices in (reads, weights, writes)
    )
    return f"""
func.func @main(%x: tensor<10xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {{
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>)
      domain <"{domain}"> accesses [{maps}] {flags} {{
  ^bb0(%a: i8, %b: i8, %acc: i32):{body}
  }}
  func.return %y : tensor<8xi32>
}}"""


BOX = "{ [o, k] : 0 <= o < 8 and 0 <= k < 3 }"


def arrays(seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    x, w = (rng.integers(-128, 128, n, np.int8) for n in (10, 3))
    return [x, w, rng.integers(-9, 9, 8, np.int32)]


def run(text: str, args: list[Any]) -> Any:
    return run_function(parse_text(text, "test.mlir"), "main", args)[0]


@pytest.mark.parametrize(
    ("domain", "keeps"),
    [
        (BOX, lambda o, k: True),
        ("{ [o, k] : 0 <= o < 8 and 0 <= k < 3 and o + k <= 7 }", lambda o, k: o + k <= 7),
        ("{ [o, k] : 2 <= o < 8 and 0 <= k < 3 }", lambda o, k: o >= 2),
        (
            "{ [o, k] : (0 <= o < 2 and 0 <= k < 3) or (o = 5 and 1 <= k < 3) }",
            lambda o, k: o < 2 or (o == 5 and k >= 1),
        ),
        ("{ [o, k] : 0 <= o < 8 and k = 1 }", lambda o, k: k == 1),
        ("{ [o, k] : 0 <= o < 0 and 0 <= k < 3 }", lambda o, k: False),
    ],
)
def test_points_of_the_domain_count_once(domain: str, keeps: Any) -> None:
    x, w, z = arrays()
    expected = z.astype(np.int64)
    for o in range(8):
        for k in range(3):
            if keeps(o, k):
                expected[o] += int(x[o + k]) * int(w[k])
    np.testing.assert_array_equal(run(kernel(domain), [x, w, z]), expected)


def test_a_split_loop_with_a_partial_block() -> None:
    text = kernel(BOX)
    for old, new in (
        ("[o, k]", "[o1, o0, k]"),
        ("0 <= o < 8", "0 <= 3*o1 + o0 < 8 and 0 <= o0 < 3"),
        ("[o + k]", "[3*o1 + o0 + k]"),
        ("-> [o]", "-> [3*o1 + o0]"),
    ):
        text = text.replace(old, new)
    np.testing.assert_array_equal(run(text, arrays()), run(kernel(BOX), arrays()))


def test_zeros_lie_around_a_padded_input() -> None:
    x, w, z = arrays()
    text = kernel(BOX, reads="[o + k - 1]", flags="padded")
    padded = np.pad(x.astype(np.int64), 1)
    expected = [int(z[o] + padded[o : o + 3] @ w) for o in range(8)]
    np.testing.assert_array_equal(run(text, [x, w, z]), expected)
    # The same where points are walked one by one.
    part = text.replace("0 <= k < 3 }", "0 <= k < 3 and o + k < 9 }")
    cut = [int(z[o] + padded[o : min(o + 3, 9)] @ w[: min(3, 9 - o)]) for o in range(8)]
    np.testing.assert_array_equal(run(part, [x, w, z]), cut)


def test_outputs_that_meet_are_summed() -> None:
    x, w, z = arrays()
    text = kernel(BOX, reads="[o]", weights="[k]", writes="[0]")
    expected = z.copy()
    expected[0] += int(x[:8].astype(int).sum()) * int(w.astype(int).sum())
    np.testing.assert_array_equal(run(text, [x, w, z]), expected)


def test_sums_wrap_around() -> None:
    accesses = [Access(((1,),), (0,)), Access(((1,),), (0,)), Access(((0,),), (0,))]
    values = np.full(4, -(1 << 15), np.int16)
    init = np.array([(1 << 31) - 1], np.int32)
    # 2**32 more than it was.
    got = sum_products([4], accesses, values, values, init)
    assert got.dtype == np.int32 and got.tolist() == [(1 << 31) - 1]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_matrix_products_equal_gathering(data: st.DataObject) -> None:
    """Both ways of summing agree on random affine accesses, also in small parts."""
    loops = data.draw(st.integers(1, 4))
    extents = data.draw(st.lists(st.integers(1, 4), min_size=loops, max_size=loops))
    row = st.lists(st.integers(0, 2), min_size=loops, max_size=loops).map(tuple)
    accesses: list[Access] = []
    shapes: list[tuple[int, ...]] = []
    for operand in range(3):
        rows = data.draw(st.lists(row, min_size=1, max_size=2))
        offsets = [data.draw(st.integers(-2 if operand == 0 else 0, 2)) for _ in rows]
        access = Access(tuple(rows), tuple(offsets))
        accesses.append(access)
        slack = -1 if operand == 0 else 0
        shapes.append(tuple(max(1, high + 1 + slack) for _, high in access.bounds(extents)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in shapes[:2])
    z = rng.integers(-9, 9, shapes[2], np.int32)
    points = np.stack([grid.ravel() for grid in np.indices(extents)], axis=1)
    expected = sum_products_at([points], accesses, x, w, z)
    np.testing.assert_array_equal(sum_products(extents, accesses, x, w, z), expected)
    whole = affine_products.CHUNK
    try:
        affine_products.CHUNK = data.draw(st.integers(1, 9))
        np.testing.assert_array_equal(sum_products(extents, accesses, x, w, z), expected)
    finally:
        affine_products.CHUNK = whole


def test_a_large_layer_is_fast() -> None:
    # 96 channels of 56x56 with windows of 7x7: 14.8 million products.
    sizes = {"h": (56, 7), "w": (56, 7)}
    program = named("depthwise_conv_2d_nchw_chw", sizes, padding=[(3, 3), (3, 3)])
    text = program.text.replace("2x3x56x56", "1x96x56x56").replace("3x7x7", "96x7x7")
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (1, 96, 56, 56), np.int8)
    w = rng.integers(-128, 128, (96, 7, 7), np.int8)
    start = time.process_time()
    run(text, [x, w, np.zeros((1, 96, 56, 56), np.int32)])
    assert time.process_time() - start < 5


# -- refusals ----------------------------------------------------------------------------------

LINALG_ADD = """
func.func @main(%x: tensor<10xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.add ins(%z, %z : tensor<8xi32>, tensor<8xi32>) outs(%z : tensor<8xi32>)
    -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}"""
PAD = """
func.func @main(%x: tensor<10xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<12xi32> {
  %y = tensor.pad %z low[2] high[2] {
  ^bb0(%i: index):
    %c = arith.index_cast %i : index to i32
    tensor.yield %c : i32
  } : tensor<8xi32> to tensor<12xi32>
  func.return %y : tensor<12xi32>
}"""

REFUSED = {
    "another body": (
        kernel(BOX, body="\n    poly.yield %acc : i32"),
        "the body of this 'poly.kernel' is no multiply-accumulate; "
        "kernels add the product of both elements to the third",
    ),
    "division in an access": (
        kernel(BOX, reads="[floor(o/2) + k]"),
        "an access of this 'poly.kernel' is { [o, k] -> [k + floor((o)/2)] }; "
        "indices are sums of loops times integers",
    ),
    "division in the domain": (
        kernel("{ [o, k] : 0 <= o < 8 and 0 <= k < 3 and o mod 2 = 0 }"),
        "the domain { [o, k] : (o) mod 2 = 0 and 0 <= o <= 7 and 0 <= k <= 2 } "
        "of this 'poly.kernel' has divisions; "
        "a domain that can be walked is bounded by sums of loops",
    ),
    "other linalg": (
        LINALG_ADD,
        "'linalg.add' cannot be run on the host; of linalg, fills and integer "
        "multiply-accumulates on tensors are computed; write it with pattern operations",
    ),
    "computed padding": (
        PAD,
        "'tensor.pad' computes what it pads with; it pads with a constant",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    text, message = REFUSED[why]
    with pytest.raises(UserError) as error:
        run(text, arrays())
    assert error.value.message().endswith(message)
    assert error.value.location is not None


@pytest.mark.parametrize("module", [kernels, poly_kernels])
def test_every_refusal_is_tested(module: ModuleType) -> None:
    messages = [message for _, message in (*REFUSED.values(), *NOT_RECOGNISED.values())]
    for pieces in refusals_in(Path(str(module.__file__)), ("UserError",)):
        assert any(all(piece in message for piece in pieces) for message in messages), pieces


NOT_RECOGNISED = {
    "no box": (
        kernel("{ [o, k] : 0 <= o < 8 and 0 <= k < 3 and o + k <= 7 }"),
        "a kernel whose domain is { [o, k] : o >= 0 and 0 <= k <= 7 - o and k <= 2 }; "
        "domains are boxes that start at 0",
    ),
    "division": (
        kernel(BOX, weights="[floor(k/2)]"),
        "the access to the weights is { [o, k] -> [floor((k)/2)] }; "
        "indices are sums of loops times integers; leave out divisions, remainders and cases",
    ),
    "another body": (
        kernel(BOX, body="\n    poly.yield %acc : i32"),
        "the body of 'poly.kernel' is no multiply-accumulate; "
        "macros add the product of an input and a weight to an output; "
        "compute the rest before or after the kernel",
    ),
    "no kernel": (
        kernel(BOX, weights="[0]", reads="[o]", writes="[o]"),
        "loop k is used by no operand; a kernel uses each loop in two or three of its operands",
    ),
}


@pytest.mark.parametrize("why", NOT_RECOGNISED)
def test_not_recognised(why: str) -> None:
    text, message = NOT_RECOGNISED[why]
    module = parse_text(text, "test.mlir")
    (op,) = (op for op in module.walk() if isinstance(op, KernelOp))
    with pytest.raises(UserError) as error:
        recognise_kernel(op)
    assert error.value.message().endswith(message)
    assert error.value.location == ("test.mlir", 3, 3)
