"""Table `pum`: baseline and mapping are the published arithmetic, the rest is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.utils.hints import isa

from cim_opt.hardware.simdram import load_machine
from cim_opt.mapping.simdram_lanes import choose_mapping, operations
from cim_opt.passes.pipelines import PatternToSimdramPipeline
from cim_opt.simulators.run import run_program
from cim_opt.simulators.simdram import SimdramSimulator
from cim_opt.tools import bench_pum
from cim_opt.tools.bench_pum import COLUMNS, SWITCHES, VARIANTS, Variant
from cim_opt.tools.load_module import full_context
from cim_opt.tools.pum_kernels import KERNELS
from cim_opt.tools.pum_stages import Stage

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
    return {row.name: row.cells() for row in bench_pum.rows()}


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
    summary = bench_pum.summary(list(table.values()))
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


def test_means_are_left_out_where_kernels_are_missing(table: dict[str, dict[str, Any]]) -> None:
    seven = [table[f"A {name}"] for name in MATRIX]
    summary = bench_pum.summary(seven)
    assert summary["geomean7"] is not None
    assert summary["geomean12"] is None
    assert summary["geomean7_b"] is None


def test_the_baseline_of_a_stage() -> None:
    """Two loops of 65,537 rounds fill two rows each."""
    stage = Stage("s", lambda: pytest.fail("not built"), 2, W + 1, (("mul", 32), ("add", 8)), 3)
    totals = bench_pum.baseline([stage], W)
    assert totals.commands == 3 * 2 * 2 * (MUL + 65)
    assert totals.used == pytest.approx(totals.commands * (W + 1) / (2 * W))


@pytest.mark.parametrize("library", ["simdram", "cim-opt"])
@pytest.mark.parametrize("name", KERNELS)
def test_small_stages_are_counted_as_they_run(name: str, library: str) -> None:
    """Where no scalar is unknown; those are counted as a mean."""
    kernel = KERNELS[name]
    for stage in kernel.stages(kernel.sizes["small"]):
        counted = bench_pum.count_stage(stage, Variant(library, "issued", narrow=False))
        if counted.unknown_scalars:
            assert name in ("gramschmidt", "fdtd-apml")
            continue
        module = stage.build().module()
        pipeline = PatternToSimdramPipeline(library=library, narrow=False)
        pipeline.apply(full_context(), module)
        rng = np.random.default_rng(0)
        (function,) = [op for op in module.ops if op.name == "func.func"]
        args: list[Any] = []
        for arg in function.regions[0].block.args:
            shape = arg.type.get_shape() if isa(arg.type, TensorType) else ()
            dtype = np.int16 if "i16" in str(arg.type) else np.int32
            numbers = rng.integers(0, 100, shape, dtype)
            args.append(numbers if shape else int(numbers))
        simulator = SimdramSimulator(load_machine("simdram-1"), library)
        _, report = simulator.run(module, "main", args)
        assert (counted.aap, counted.ap) == (report.aap, report.ap)
        assert counted.transposed_bytes == report.transposed.bytes


def test_ranges_name_inputs_that_there_are() -> None:
    """A range of an input that is not there would be left out silently."""
    kernel = KERNELS["x264"]
    (stage,) = kernel.stages(kernel.sizes["small"])
    wrong = replace(stage, ranges={"c": (0, 255)})
    with pytest.raises(AssertionError, match="has no inputs"):
        bench_pum.count_stage(wrong, VARIANTS["narrowed"])
    for kernel in KERNELS.values():
        for stage in kernel.stages(kernel.sizes["small"]):
            bench_pum.count_stage(stage, VARIANTS["narrowed"])


@pytest.mark.parametrize("name", KERNELS)
def test_narrowed_stages_compute_what_the_reference_does(name: str) -> None:
    """At small sizes, on numbers in the declared ranges, least and greatest among them."""
    kernel = KERNELS[name]
    rng = np.random.default_rng(2)
    for stage in kernel.stages(kernel.sizes["small"]):
        module = stage.build().module()
        (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
        bench_pum.declare_ranges(function, stage)
        inputs: dict[str, Any] = {}
        for arg in function.body.block.args:
            low, high = stage.ranges.get(arg.name_hint or "", (1, 1 << 14))
            shape = tuple(arg.type.get_shape()) if isa(arg.type, TensorType) else ()
            drawn = np.asarray(rng.integers(low, high, shape, np.int64, endpoint=True))
            if shape:
                drawn[:2] = low, high
            dtype = np.int16 if "i16" in str(arg.type) else np.int32
            inputs[arg.name_hint or ""] = drawn.astype(dtype)[()]
        run = run_program(module, function.sym_name.data, inputs, target="simdram")
        assert run.check is not None
        assert run.check.ok, run.check.to_text()
