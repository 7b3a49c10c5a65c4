"""The passes from reuse to macro rows: what they compute, what they refuse, and what is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cim_lowering import CONTEXT
from mlir_examples import full_context
from refusals import refusals_in
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.errors import UserError
from cim_opt.lowering import poly_checks, poly_schedules
from cim_opt.lowering.convert_linalg_to_poly import ConvertLinalgToPolyPass
from cim_opt.lowering.convert_poly_to_cim import ConvertPolyToCimPass
from cim_opt.passes import poly_affine_schedule, poly_posttile, poly_pretile
from cim_opt.passes.poly_affine_schedule import PolyAffineSchedulePass
from cim_opt.passes.poly_coalesce import PolyCoalescePass
from cim_opt.passes.poly_posttile import PolyPosttilePass
from cim_opt.passes.poly_pretile import PolyPretilePass
from cim_opt.passes.poly_reuse import PolyReusePass
from cim_opt.passes.poly_verify import PolyVerifyPass
from cim_opt.simulators.cim import CimSimulator
from cim_opt.simulators.reference import run_function
from cim_opt.tools.load_module import parse_text

CONV1D = """func.func @main(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>)
    -> tensor<2x8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
    domain <"{ [oc, o, k] : 0 <= oc <= 1 and 0 <= o <= 7 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [oc, o, k] -> [o + k] }">, #poly.map<"{ [oc, o, k] -> [oc, k] }">,
              #poly.map<"{ [oc, o, k] -> [oc, o] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %a0 = arith.extsi %a : i8 to i32
    %b0 = arith.extsi %b : i8 to i32
    %p = arith.muli %a0, %b0 : i32
    %s = arith.addi %acc, %p : i32
    poly.yield %s : i32
  }
  func.return %y : tensor<2x8xi32>
}"""

REUSE = PolyReusePass()
PRETILE = PolyPretilePass()
AFFINE = PolyAffineSchedulePass()
COALESCE = PolyCoalescePass()
POSTTILE = PolyPosttilePass()
ALL = (REUSE, PRETILE, AFFINE, COALESCE, POSTTILE)


def after(text: str, *passes: ModulePass) -> ModuleOp:
    module = parse_text(text, "test.mlir")
    for each in passes:
        each.apply(CONTEXT, module)
        module.verify()
    return module


def depthwise(size: int, taps: int, stride: int, dilation: int, channels: int) -> str:
    reach = stride * (size - 1) + dilation * (taps - 1) + 1
    x, w = f"tensor<1x{channels}x{reach}x{reach}xi8>", f"tensor<{channels}x{taps}x{taps}xi8>"
    z = f"tensor<1x{channels}x{size}x{size}xi32>"
    return f"""func.func @main(%x: {x}, %w: {w}, %z: {z}) -> {z} {{
      %y = linalg.depthwise_conv_2d_nchw_chw {{strides = dense<{stride}> : tensor<2xi64>,
        dilations = dense<{dilation}> : tensor<2xi64>}}
        ins(%x, %w : {x}, {w}) outs(%z : {z}) -> {z}
      func.return %y : {z}
    }}"""


def arguments(size: int, taps: int, stride: int, dilation: int, channels: int) -> list[Any]:
    rng = np.random.default_rng(5)
    reach = stride * (size - 1) + dilation * (taps - 1) + 1
    input = rng.integers(-128, 128, (1, channels, reach, reach), dtype=np.int8)
    weight = rng.integers(-128, 128, (channels, taps, taps), dtype=np.int8)
    start = rng.integers(-(2**31), 2**31, (1, channels, size, size), dtype=np.int32)
    return [input, weight, start]


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("size, taps", [(1, 1), (4, 3), (7, 3), (8, 5), (13, 3)])
@pytest.mark.parametrize("machine", ["cim-32x64-8", "cim-64x64-1"])
def test_each_pass_keeps_the_meaning_and_the_chain_runs(
    machine: str, size: int, taps: int, stride: int, dilation: int
) -> None:
    module = after(depthwise(size, taps, stride, dilation, 3), ConvertLinalgToPolyPass())
    values = arguments(size, taps, stride, dilation, 3)
    expected = run_function(module, "main", values)
    chain = (
        REUSE,
        PolyPretilePass(machine=machine),
        PolyAffineSchedulePass(machine=machine),
        COALESCE,
        PolyPosttilePass(machine=machine),
    )
    for each in chain:
        each.apply(CONTEXT, module)
        module.verify()
        PolyVerifyPass(machine=machine).apply(CONTEXT, module)
        np.testing.assert_array_equal(run_function(module, "main", values)[0], expected[0])
    ConvertPolyToCimPass(machine=machine).apply(full_context(), module)
    module.verify()
    results, _ = CimSimulator().run(module, "main", values)
    np.testing.assert_array_equal(results[0], expected[0])


def test_schedule_of_the_paper() -> None:
    kernel = next(op for op in after(CONV1D, *ALL).walk() if isinstance(op, KernelOp))
    assert kernel.schedule is not None and kernel.schedule.text.data == (
        "{ [oc, o, k] -> macro[floor((o)/4), k + (o) mod 4, 4oc + (o) mod 4] }"
    )


def changed(passes: tuple[ModulePass, ...], *edits: tuple[str, str]) -> str:
    text = str(after(CONV1D, *passes))
    for old, new in edits:
        assert old in text, (old, text)
        text = text.replace(old, new, 1)
    return text


def refused(text: str, *passes: ModulePass) -> str:
    with pytest.raises(UserError) as error:
        after(text, *passes)
    return str(error.value)


CHECK = PolyVerifyPass(machine="cim-32x64-8")
FIRST = "array<i64: 1, 0, 0>, array<i64: 0, 1, -1>"
REUSED = (
    "{input = [array<i64: 1, 0, 0>, array<i64: 0, 1, -1>], weight = [array<i64: 0, 1, 0>], "
    "output = [array<i64: 0, 0, 1>]}"
)
TWO = "{input = [array<i64: 1, 0>], weight = [array<i64: 1, 0>], output = [array<i64: 1, 0>]}"


REFUSED: dict[str, tuple[str, tuple[ModulePass, ...], str]] = {
    "coalesce before a basis": (
        CONV1D,
        (COALESCE,),
        "a kernel that has no schedule; the order is poly-pretile, poly-affine-schedule, "
        "poly-coalesce, poly-posttile; poly-coalesce follows poly-affine-schedule",
    ),
    "posttile before coalesce": (
        CONV1D,
        (AFFINE, POSTTILE),
        "has a basis already; the order is poly-pretile, poly-affine-schedule, poly-coalesce, "
        "poly-posttile; poly-posttile follows poly-coalesce",
    ),
    "pretile twice": (CONV1D, (AFFINE, PRETILE), "poly-pretile comes first"),
    "affine twice": (CONV1D, (AFFINE, AFFINE), "poly-affine-schedule comes before the others"),
    "no levels": (
        CONV1D,
        (PolyPretilePass(levels=0),),
        "loops of 0 levels; a loop has at least 1; use levels=2",
    ),
    "a split of no loop": (
        changed((PRETILE,), ("o0 = array", "o7 = array")),
        (AFFINE,),
        "a split of loop o7; the loops of the kernel are ",
    ),
    "levels that are too few": (
        changed((PRETILE,), ("array<i64: 2, 4>", "array<i64: 2, 3>")),
        (AFFINE,),
        "levels [2, 3] of loop o0; it has 8 iterations",
    ),
    "no basis with so few skewed vectors": (
        changed((PRETILE,)),
        (PolyAffineSchedulePass(skews=0),),
        "no basis with at most 0 skewed vectors for these splits of the kernel; a skewed vector "
        "moves along each split loop, columns are at most 8; leave splits out: "
        "poly-affine-schedule chooses them too",
    ),
    "no splits beside a basis": (
        changed((AFFINE,), ("splits {o0 = array<i64: 2, 4>} ", "")),
        (COALESCE,),
        "a kernel without splits or without a basis; both say what its rows and columns are; run "
        "poly-affine-schedule first",
    ),
    "a dependent basis": (
        changed((AFFINE,), ("array<i64: 0, 0, 1, -1>", "array<i64: 0, 0, 0, 1>")),
        (COALESCE,),
        "a basis that is none: ",
    ),
    "a schedule of another basis": (
        changed(
            (AFFINE,), ("basis[floor((o)/4), k + (o) mod 4, oc, ", "basis[k + (o) mod 4, oc, ")
        ),
        (COALESCE,),
        "its splits and basis say that it goes to ",
    ),
    "a direction of other loops": (
        changed((REUSE,), (REUSED, TWO)),
        (CHECK,),
        "a direction of 2 entries; the kernel has 3 loops; let poly-reuse find the directions",
    ),
    "no direction of reuse": (
        changed((REUSE,), (FIRST, "array<i64: 0, 1, 1>")),
        (CHECK,),
        "the input moves by [2] along [0, 1, 1]; along a direction of reuse it stays the same",
    ),
    "a schedule that is too short": (
        changed(
            ALL[1:4],
            (
                "-> virtual[floor((o)/4), k + (o) mod 4, 4oc + (o) mod 4]",
                "-> virtual[24oc + 3o + k]",
            ),
        ),
        (CHECK,),
        "a schedule of 1 coordinates; virtual[..] ends in a row and a column",
    ),
    "a schedule along no basis": (
        changed(ALL[:2], ("-> split[", "-> basis[")),
        (CHECK,),
        "a schedule to basis[..] without a basis; the basis says which coordinates are time, rows "
        "and columns; let poly-affine-schedule make both",
    ),
    "a schedule without splits": (
        changed((PRETILE,), ("splits {o0 = array<i64: 2, 4>} ", "")),
        (CHECK,),
        "a schedule to split[..] without splits; splits say what its coordinates are; let "
        "poly-pretile or poly-affine-schedule make both",
    ),
    "a schedule that its splits do not describe": (
        changed(
            (PRETILE,),
            ("split[oc, floor((o)/4), (o) mod 4, k]", "split[oc, floor((o)/2), (o) mod 2, k]"),
        ),
        (CHECK,),
        "splits and basis describe { [oc, o, k] -> split[oc, floor((o)/4), (o) mod 4, k] }",
    ),
    "iterations that a schedule does at once": (
        changed(
            ALL[1:5],
            (
                "macro[floor((o)/4), k + (o) mod 4, 4oc + (o) mod 4]",
                "macro[floor((o)/4), k + (o) mod 4, (o) mod 4]",
            ),
        ),
        (CHECK,),
        "test.mlir",
    ),
    "a cover over other axes": (
        changed(
            ALL[1:5],
            (
                "cover <dense<4> : tensor<1x1xi32>",
                "cover <dense<[[4, 0], [0, 4]]> : tensor<2x2xi32>",
            ),
            (
                "[[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, 5]]> : tensor<6x2xi32>",
                "[[0, 0, 0]]> : tensor<1x3xi32>",
            ),
            (
                "[[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1], [1, 2], [1, 3]]> : "
                "tensor<8x2xi32>",
                "[[0, 0, 0]]> : tensor<1x3xi32>",
            ),
        ),
        (CHECK,),
        "a cover over 2 axes; the kernel has 1 axes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str) -> None:
    text, passes, message = REFUSED[name]
    said = refused(text, *passes)
    assert message in said
    assert "\n" not in said


def test_sums_in_no_known_order() -> None:
    """Taps in chunks of three, by themselves: their sums are neither blocks nor runs."""
    text = str(after(depthwise(14, 9, 1, 1, 1), ConvertLinalgToPolyPass()))
    text = text.replace('}">] {', '}">] splits {k0 = array<i64: 3, 3>} {', 1)
    assert (
        "a schedule for a macro of 32 rows and 8 columns whose sums lie in no known order; steps "
        "take blocks of the outputs, or one set of weights slides over them; leave splits of taps "
        "out, or choose the cover with poly-cover"
    ) in refused(text, AFFINE, COALESCE, POSTTILE)


def test_a_cover_of_another_schedule() -> None:
    from cim_opt.passes.poly_cover import PolyCoverPass

    module = after(CONV1D, *ALL[1:])
    PolyCoverPass(mapping="im2col").apply(CONTEXT, module)
    with pytest.raises(UserError, match="a cover that is not that of the schedule; poly-posttile "):
        CHECK.apply(CONTEXT, module)


def test_every_refusal_has_a_test() -> None:
    text = "".join(part.strip().strip('f"') for part in Path(__file__).read_text().splitlines())
    modules = (poly_checks, poly_schedules, poly_pretile, poly_affine_schedule, poly_posttile)
    found = 0
    for module in modules:
        assert module.__file__ is not None
        for pieces in refusals_in(Path(module.__file__), ("UserError",)):
            found += 1
            long = [piece.strip() for piece in pieces if len(piece) > 7]
            assert all(piece in text for piece in long), (module.__name__, pieces)
    assert found >= 15
