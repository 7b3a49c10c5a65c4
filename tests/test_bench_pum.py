"""Table `pum`: baseline and mapping are the published arithmetic, the rest is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.utils.hints import isa

from cim_opt.hardware.simdram import load_machine
from cim_opt.mapping.simdram_lanes import choose_mapping, operations
from cim_opt.microprograms.library import library as load_library
from cim_opt.passes.pipelines import PatternToSimdramPipeline
from cim_opt.simulators.run import run_program
from cim_opt.simulators.simdram import SimdramSimulator
from cim_opt.simulators.simdram_report import SimdramReport
from cim_opt.tools import bench_pum
from cim_opt.tools.bench_pum import COLUMNS, SWITCHES, VARIANTS, Variant
from cim_opt.tools.load_module import full_context
from cim_opt.tools.pum_baseline import Switches
from cim_opt.tools.pum_kernels import KERNELS
from cim_opt.tools.pum_products import product_stage
from cim_opt.tools.pum_stages import Part, Stage

W = 65536
MUL, ADD = 11 * 32 * 32 - 5 * 32 - 1, 8 * 32 + 1
MATRIX = [name for name, kernel in KERNELS.items() if kernel.is_matrix]
# Ratios of the mapping alone: groups of 32,000, 16,000, 16,384 and 10,000 of 65,536 columns.
RATIOS = {
    "A": dict(zip(MATRIX, (2.048, 2.457, 2.048, 4.094, 4.094, 6.5536, 4.0), strict=True)),
    "B": dict(zip(MATRIX, (4.094, 2.457, 4.094, 2.048, 2.048, 6.5536, 4.0), strict=True)),
}


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, Any]]:
    return {row.name: row.cells() for row in bench_pum.rows(Switches())}


def products(name: str, which: str) -> list[Stage]:
    """Stages that multiply and sum: what the mapping is about."""
    kernel = KERNELS[name]
    stages = kernel.stages(kernel.sizes[which])
    return [s for s in stages if ("mul", 32) in s.body and s.name != "combination"]


def operations_ratio(name: str, which: str) -> float:
    """Multiplications of the baseline, over those of the chosen mapping."""
    stages = products(name, which)
    base = sum(operations("reduction-in-lane", s.loops, s.trip, W) for s in stages)
    chosen = sum(operations(choose_mapping(s.loops, s.trip, W), s.loops, s.trip, W) for s in stages)
    return base / chosen


@pytest.mark.parametrize("which", ["A", "B"])
def test_the_mapping_of_the_seven_is_the_published_arithmetic(which: str) -> None:
    ratios = {name: operations_ratio(name, which) for name in MATRIX}
    assert ratios == pytest.approx(RATIOS[which], rel=5e-4)
    product = np.prod(list(ratios.values()))
    assert product ** (1 / 7) == pytest.approx(3.33, abs=0.005)
    assert product ** (1 / 12) == pytest.approx(2.02, abs=0.005)


@pytest.mark.parametrize("name", [name for name in MATRIX if name != "kmeans"])
@pytest.mark.parametrize("which", ["A", "B"])
def test_counted_programs_gain_by_the_mapping_what_the_arithmetic_says(
    table: dict[str, dict[str, Any]], name: str, which: str
) -> None:
    """A step of outputs side by side adds as well; differences and combinations are small."""
    expected = RATIOS[which][name] * MUL / (MUL + ADD)
    assert table[f"{which} {name}"]["published"] == pytest.approx(expected, rel=1e-3)


def test_kmeans_subtracts_too(table: dict[str, dict[str, Any]]) -> None:
    expected = 4 * (MUL + ADD) / (MUL + ADD + ADD)
    assert table["A kmeans"]["published"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["gramschmidt", "heartwall", "fdtd-apml"])
def test_others_are_at_parity_by_mapping(table: dict[str, dict[str, Any]], name: str) -> None:
    assert table[f"A {name}"]["published"] == pytest.approx(1, rel=1e-3)


def test_geometric_means(table: dict[str, dict[str, Any]]) -> None:
    summary = bench_pum.summary(list(table.values()), Switches())
    for key, names in (("geomean7", MATRIX), ("geomean12", list(KERNELS))):
        for column in COLUMNS:
            values = [table[f"A {name}"][column] for name in names]
            assert summary[key][column] == pytest.approx(float(np.exp(np.log(values).mean())))
    assert summary["geomean7"]["published"] == pytest.approx(3.25, abs=0.01)
    assert summary["geomean12"]["published"] == pytest.approx(1.99, abs=0.02)
    assert summary["geomean12"]["own_library"] >= 3.8
    assert summary["geomean12"]["narrowed"] >= 8


def test_factors_of_the_switches_multiply_to_the_whole(table: dict[str, dict[str, Any]]) -> None:
    for row in table.values():
        product = np.prod([row[name] for name in SWITCHES])
        assert product == pytest.approx(row["narrowed"])


def test_no_switch_costs_commands(table: dict[str, dict[str, Any]]) -> None:
    """All but the mapping, which makes us add what the baseline has for free."""
    for row in table.values():
        for name in SWITCHES:
            if name != "by_mapping":
                assert row[name] >= 1, name


def test_polarity_makes_products_and_sums_cheaper(table: dict[str, dict[str, Any]]) -> None:
    """Products and sums are stored complemented: 6 commands a bit of a sum instead of 7."""
    own = load_library("cim-opt")
    before = own.counts("mul", 32).total + own.counts("add", 32).total
    after = (
        own.counts("mul", 32, out_complemented=True).total
        + own.counts("add", 32, a_complemented=True, out_complemented=True).total
    )
    for name in ("A 3mm", "A gemm", "A covariance", "A doitgen", "A backprop"):
        assert table[name]["by_polarity"] == pytest.approx(before / after, rel=2e-4)
    # x264 does nothing but add.
    assert table["A x264"]["by_polarity"] > 1.1


def test_means_are_left_out_where_kernels_are_missing(table: dict[str, dict[str, Any]]) -> None:
    seven = [table[f"A {name}"] for name in MATRIX]
    summary = bench_pum.summary(seven, Switches())
    assert summary["geomean7"] is not None
    assert summary["geomean12"] is None
    assert summary["geomean7_b"] is None


def parts_of(name: str) -> list[Part]:
    """Every pipeline of a kernel at small sizes, in all ways."""
    kernel = KERNELS[name]
    stages = kernel.stages(kernel.sizes["small"])
    return [part for stage in stages for parts in stage.ways().values() for part in parts]


def simulated(
    part: Part, library: str, args: Sequence[Any], polarity: bool = False
) -> SimdramReport:
    """The report of a pipeline that runs on data."""
    module = part.build().module()
    pipeline = PatternToSimdramPipeline(
        library=library, mapping=part.mapping, narrow=False, polarity=polarity
    )
    pipeline.apply(full_context(), module)
    _, report = SimdramSimulator(load_machine("simdram-1"), library).run(module, "main", list(args))
    return report


def drawn(part: Part, seed: int) -> list[Any]:
    """Random inputs of a pipeline."""
    (function,) = [op for op in part.build().module().ops if isinstance(op, FuncOp)]
    rng = np.random.default_rng(seed)
    args: list[Any] = []
    for arg in function.body.block.args:
        shape = arg.type.get_shape() if isa(arg.type, TensorType) else ()
        dtype = np.int16 if "i16" in str(arg.type) else np.int32
        numbers = rng.integers(0, 100, shape, dtype)
        args.append(numbers if shape else int(numbers))
    return args


@pytest.mark.parametrize(
    ("library", "polarity"), [("simdram", False), ("cim-opt", False), ("cim-opt", True)]
)
@pytest.mark.parametrize("name", KERNELS)
def test_small_stages_are_counted_as_they_run(name: str, library: str, polarity: bool) -> None:
    """Where no scalar is unknown; those are counted as a mean."""
    for part in parts_of(name):
        counted = bench_pum.count_part(part, Variant(library, "issued", polarity=polarity))
        report = simulated(part, library, drawn(part, 0), polarity)
        if not counted.unknown_scalars:
            assert (counted.aap, counted.ap) == (report.aap, report.ap)
        assert counted.transposed_bytes == report.transposed.bytes
        assert counted.read_bytes == report.read_back.bytes


def test_pairs_have_no_unknown_scalars() -> None:
    for name in ("2mm", "3mm", "gemm", "covariance", "pca", "doitgen", "kmeans"):
        kernel = KERNELS[name]
        for stage in kernel.stages(kernel.sizes["small"]):
            (part,) = stage.ways()["pairs"]
            report = bench_pum.count_part(part, Variant("cim-opt", "issued"))
            assert not report.unknown_scalars


@pytest.mark.parametrize("library", ["simdram", "cim-opt"])
def test_scalars_take_the_commands_of_their_digits(library: str) -> None:
    """Two rows of three scalars: a product each, and an addition but for the first of a row."""
    stage = product_stage("s", 2, 5, 3)
    (part,) = stage.ways()["left"]
    scalars = np.array([[7, 0, -1], [0x5A5A5A5A, 255, 1 << 30]], np.int32)
    columns = np.arange(15, dtype=np.int32)
    report = simulated(part, library, [columns, *scalars])
    programs = load_library(library)
    digits = sum(
        programs.counts("mul_const", 32, value=int(x) & 0xFFFFFFFF).total for x in scalars.flat
    )
    zero = programs.counts("mul_const", 32, value=0).total
    # The last product with 0 becomes a fill, one copy a row.
    assert zero == 32
    assert report.commands == digits + 4 * programs.counts("add", 32).total
    # Columns come in once for both rows.
    assert report.transposed.count == 3


@pytest.mark.parametrize("polarity", [False, True])
def test_unknown_scalars_are_counted_as_the_mean(polarity: bool) -> None:
    """All 256 scalars of a byte, each once: then the mean is what a run takes.

    With polarity the first product is stored otherwise than those that follow, and its one scalar
    is no mean.
    """
    stage = product_stage("s", 1, 5, 256, a=(0, 255), b=(0, 255))
    (part,) = stage.ways()["left"]
    module = part.build().module()
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    bench_pum.declare_ranges(function, part)
    rng = np.random.default_rng(4)
    inputs = {
        "b": rng.integers(0, 256, 5 * 256, np.int32),
        "arg1": rng.permutation(256).astype(np.int32),
    }
    options = {"mapping": part.mapping, "polarity": polarity}
    run = run_program(module, "main", inputs, target="simdram", pipeline_options=options)
    assert run.check is not None and run.check.ok
    counted = bench_pum.count_part(part, replace(VARIANTS["narrowed"], polarity=polarity))
    assert counted.unknown_scalars
    assert isinstance(run.report, SimdramReport)
    tolerance = 1e-4 if polarity else 1e-12
    assert counted.commands == pytest.approx(run.report.commands, rel=tolerance)


def test_the_way_of_fewest_commands_is_taken() -> None:
    """With 65,536 rows of A side by side no column idles; with 100 columns of B most do."""
    stage = product_stage("s", W, 100, 64)
    variant = VARIANTS["own_library"]
    totals = {
        way: sum(bench_pum.count_part(p, variant).commands * p.times for p in parts)
        for way, parts in stage.ways().items()
    }
    assert totals["right"] < totals["pairs"] < totals["left"]
    chosen = bench_pum.counted([stage], variant)
    assert chosen.ways == {"s": "right"}
    assert chosen.commands == pytest.approx(totals["right"])
    without = bench_pum.counted([stage], replace(variant, scalars=False))
    assert without.ways == {}
    assert without.commands == pytest.approx(totals["pairs"])


def test_scalars_pay_where_enough_columns_are_used(table: dict[str, dict[str, Any]]) -> None:
    """Rows of 32,000 and more outputs do; with 16,000 of 65,536 columns, pairs are better."""
    assert table["A gemm"]["scalars"] == "A*B left"
    assert table["A doitgen"]["scalars"] == "A*C4 right"
    assert table["B gemm"]["scalars"] == ""
    for name in ("A gemm", "A 2mm", "A doitgen"):
        assert table[name]["by_scalars"] > 1.9
    # B comes in once for 16 rows of A, which does not come in at all.
    pairs = 2 * 32 * 8192 * 32000**3 / W / 19.2e9
    left = 32 * 8192 * 32000**2 / 16 / 19.2e9
    assert table["A gemm"]["transpose_seconds"] == pytest.approx(left, rel=1e-3)
    assert left < pairs / 15


def test_the_published_division_is_charged_without_shorter_programs() -> None:
    kernel = KERNELS["gramschmidt"]
    divide = kernel.stages(kernel.sizes["small"])[1]
    assert divide.body == (("div_u", 32),)
    commands = {
        name: bench_pum.counted([replace(divide, times=1)], VARIANTS[name]).commands
        for name in ("published", "modulo", "programs")
    }
    # The divisor is a constant, whose rows cost nothing.
    assert commands["published"] == commands["modulo"] == 8832
    assert commands["programs"] == load_library("cim-opt").counts("div_u", 32).total < 8832


def test_ranges_name_inputs_that_there_are() -> None:
    """A range of an input that is not there would be left out silently."""
    (part,) = parts_of("x264")
    wrong = replace(part, ranges={"c": (0, 255)})
    with pytest.raises(AssertionError, match="has no inputs"):
        bench_pum.count_part(wrong, VARIANTS["narrowed"])
    for name in KERNELS:
        for part in parts_of(name):
            bench_pum.count_part(part, VARIANTS["narrowed"])


@pytest.mark.parametrize("name", KERNELS)
def test_narrowed_stages_compute_what_the_reference_does(name: str) -> None:
    """At small sizes, on numbers in the declared ranges, least and greatest among them."""
    rng = np.random.default_rng(2)
    for part in parts_of(name):
        module = part.build().module()
        (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
        bench_pum.declare_ranges(function, part)
        inputs: dict[str, Any] = {}
        for arg in function.body.block.args:
            low, high = part.ranges.get(arg.name_hint or "", (1, 1 << 14))
            shape = tuple(arg.type.get_shape()) if isa(arg.type, TensorType) else ()
            numbers = np.asarray(rng.integers(low, high, shape, np.int64, endpoint=True))
            if shape:
                numbers[:2] = low, high
            dtype = np.int16 if "i16" in str(arg.type) else np.int32
            inputs[arg.name_hint or ""] = numbers.astype(dtype)[()]
        run = run_program(
            module,
            function.sym_name.data,
            inputs,
            target="simdram",
            pipeline_options={"mapping": part.mapping},
        )
        assert run.check is not None
        assert run.check.ok, run.check.to_text()
