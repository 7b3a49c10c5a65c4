"""The tables of cim-bench on CIM macros: their data, their rows, their summaries."""

import json
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

from cim_opt.hardware.cim import load_machine
from cim_opt.mapping.cim_ablations import (
    without_affine,
    without_coalescing,
    without_covers,
    without_pretiling,
)
from cim_opt.mapping.cim_covers import MAPPINGS
from cim_opt.mapping.cim_search import tile_of
from cim_opt.polyhedral.cover import check
from cim_opt.polyhedral.cover_choice import candidates
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.tools import bench_cim_ablation, bench_cim_networks, bench_cim_operators, cim_bench
from cim_opt.tools import cim_planning as planning
from cim_opt.tools.bench_table import Cells, chosen
from cim_opt.tools.cim_workloads import networks, operators, published

PLAN = {
    "row": str,
    "op": str,
    "machine": str,
    "mapping": str,
    "steps": int,
    "utilisation": float,
    "cycles": int,
    "layout_cycles": int,
    "fewest_steps": int,
    "compile_s": float,
    "bound": str,
    "bound_steps": int,
    "bound_utilisation": float,
}
"""Cells that every row of a plan has, in every table."""

PAGE = Path(__file__).parent.parent / "docs" / "cim.md"
BEGIN, END = "<!-- cycles: begin -->", "<!-- cycles: end -->"

PUBLISHED = ("row", "op", "machine", "mapping", "steps", "utilisation", "cycles", "compile_s")


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What cim-bench prints as JSON."""
    assert cim_bench.main([*arguments, "--report", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def check_schema(row: Cells) -> None:
    for name, kind in PLAN.items():
        assert type(row[name]) is kind, (row["row"], name)
    assert 0 < row["utilisation"] <= row["bound_utilisation"] <= 1
    assert row["steps"] >= row["fewest_steps"] >= row["bound_steps"]
    assert row["macro_steps"] >= row["steps"]
    assert 0 < row["compile_s"] < 30


# -- data ----------------------------------------------------------------------------------------


def test_operators_are_those_of_the_prototype() -> None:
    assert {op for op, _, _ in published()} - {"dw3-8"} == set(operators())
    assert len(operators()) == 14 + 8


@pytest.mark.parametrize(
    ("network", "layers", "macs"),
    [
        ("MobileNetV2", 53, 300_774_272),
        ("EfficientNet-B0", 82, 385_814_752),
        ("ConvNeXt-Tiny", 59, 4_455_531_264),
        ("ResNet18", 21, 1_814_073_344),
        ("ResNeXt50-32x4d", 54, 4_230_479_872),
        ("RepLKNet-31B", 131, 15_353_525_248),
        ("InceptionNeXt-T", 95, 4_185_328_800),
    ],
)
def test_networks_have_their_known_size(network: str, layers: int, macs: int) -> None:
    found = networks()[network]
    assert sum(layer.repeat for layer in found) == layers
    assert sum(layer.repeat * layer.kernel.macs for layer in found) == macs


def test_layers_of_a_network_differ_in_name() -> None:
    for layers in networks().values():
        assert len({layer.name for layer in layers}) == len(layers)


@pytest.mark.parametrize("machine", planning.MACHINES)
def test_steps_of_im2col_are_those_of_its_formula(machine: str) -> None:
    described = load_machine(machine)
    for layers in networks().values():
        for layer in layers:
            kernel = layer.kernel
            (tiled,) = without_affine(kernel, described.rows, described.columns)
            rows = ceil(kernel.depth / described.rows)
            tiles = ceil(kernel.out_channels / described.columns)
            expected = kernel.groups * kernel.positions * rows * tiles
            assert planning.steps_of(kernel, tiled) == expected, layer


# -- planning ------------------------------------------------------------------------------------

SMALL = MacKernel(1, 1, 1, (Axis(8, 3), Axis(8, 3)))


def test_planning_knows_nothing_from_before() -> None:
    candidates(SMALL, 32, 8)
    planning.forget()
    from cim_opt.polyhedral import cover_choice

    assert cover_choice._candidates.cache_info().currsize == 0  # pyright: ignore[reportPrivateUsage]


def test_a_plan_as_cells() -> None:
    cells = planning.planned(SMALL, "cim-32x64-1", planning.family("best"))
    assert (cells["steps"], cells["utilisation"], cells["macro_steps"]) == (8, 0.28125, 8)


def test_without_a_plan_there_are_no_figures() -> None:
    cells = planning.planned(SMALL, "cim-32x64-1", lambda kernel, machine: ())
    seconds = cells.pop("compile_s")
    assert seconds > 0
    assert cells == dict.fromkeys(planning.REQUIRED)


def test_means_need_every_row() -> None:
    rows: list[Cells] = [{"a": 8, "b": 0}, {"a": 1, "b": 1}]
    better: list[Cells] = [{"a": 2, "b": 2}, {"a": 1, "b": 1}]
    assert planning.ratio(rows, better, ("a",)) == 2
    assert planning.ratio(rows, better, ("a", "b")) == 2**0.5
    assert planning.ratio(rows, [better[0], {"a": None}], ("a",)) is None
    assert planning.ratio([], [], ("a",)) is None


# -- operators -----------------------------------------------------------------------------------


def test_rows_of_an_operator(capsys: pytest.CaptureFixture[str]) -> None:
    table = bench(capsys, "cim-operators", "--only", "C4 cim-32x64-8")
    found = {(row["groups"], row["mapping"]): row for row in table["rows"]}
    ours = {(groups, mapping) for groups in (1, 480) for mapping in MAPPINGS}
    assert set(found) == ours | {(1, name) for name in bench_cim_operators.PROTOTYPE}
    for key in ours:
        check_schema(found[key])
    assert found[1, "im2col"]["steps"] == 196
    assert found[480, "im2col"]["steps"] == 480 * 196
    assert found[1, "best"]["fewest_steps"] <= 28
    for groups in (1, 480):
        families = [found[groups, name]["cycles"] for name in MAPPINGS if name != "best"]
        assert found[groups, "best"]["cycles"] == min(families)
    measured = found[1, "prototype"]
    assert {name: measured[name] for name in PUBLISHED} == {
        "row": "C4 x1 cim-32x64-8 prototype",
        "op": "C4",
        "machine": "cim-32x64-8",
        "mapping": "prototype",
        "steps": 28,
        "utilisation": pytest.approx(196 * 9 / (28 * 256), abs=1e-5),
        "cycles": 181,
        "compile_s": published()["C4", "cim-32x64-8", "prototype"].compile_s,
    }
    assert table["summary"]["never_slower"] is True
    assert table["summary"]["geomean_speedup"] is None  # not all of P1 to P8


def _paper_rows() -> list[Cells]:
    """P1 to P8 on eight macros: im2col, the best and the prototype."""
    names = [
        f"{op} x1 {machine} {mapping}"
        for op in bench_cim_operators.PAPER
        for machine in bench_cim_operators.EIGHT_MACROS
        for mapping in ("im2col", "best", *bench_cim_operators.PROTOTYPE)
    ]
    return [chosen(bench_cim_operators.TABLE, name)[0].cells() for name in names]


def _page_lines(rows: list[Cells]) -> list[str]:
    """The table of docs/cim.md."""
    lines = [
        "| | rows | steps | bound | im2col | best | times | prototype | ties broken |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (op, _, machine), found in bench_cim_operators.by_key(rows).items():
        best = found["best"]
        plain, *others = (found[m]["cycles"] for m in ("im2col", "prototype", "prototype-ties"))
        cells = (op, load_machine(machine).rows, best["steps"], best["bound_steps"], plain)
        cells += (best["cycles"], f"{plain / best['cycles']:.2f}", *others)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def test_the_guess_of_the_papers_table() -> None:
    rows = _paper_rows()
    summary = bench_cim_operators.summary(rows)
    assert summary["geomean_speedup"] > 4.5
    assert summary["geomean_speedup_with_layout"] > 3.8
    assert summary["geomean_over_prototype"] > 5
    assert summary["geomean_over_prototype_ties"] > 3.4
    assert summary["geomean_speedup_network_channels"] is None  # not measured here
    assert summary["slower_than_im2col"] == summary["more_steps_than_prototype"] == []
    assert summary["slower_than_prototype"] == []
    cycles = {row["row"]: row["cycles"] for row in rows}
    assert cycles["P3 x1 cim-32x64-8 best"] <= 4700
    assert cycles["P3 x1 cim-64x64-8 best"] <= 2000
    shown = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    update = "python tests/test_bench_cim.py writes the table of docs/cim.md anew"
    assert shown.strip().splitlines() == _page_lines(rows), update


def _made(op: str, mapping: str, machine: str = "cim-32x64-8", **cells: Any) -> Cells:
    row = {"row": f"{op} {mapping}", "op": op, "groups": 1, "machine": machine, "mapping": mapping}
    return row | {"compile_s": 1.0, "layout_cycles": 0} | cells


def test_summary_names_what_is_slower() -> None:
    rows = [
        _made("C1", "im2col", steps=9, cycles=100),
        _made("C1", "best", steps=9, fewest_steps=7, cycles=101),
        _made("C1", "prototype", steps=8, cycles=101),
        _made("C2", "im2col", steps=9, cycles=100),
        _made("C2", "best", steps=7, fewest_steps=7, cycles=100, layout_cycles=1),
        _made("C2", "prototype", steps=6, cycles=101),
        _made("C3", "im2col", steps=9, cycles=100),
        _made("C3", "best", steps=None, fewest_steps=None, cycles=None),
    ]
    summary = bench_cim_operators.summary(rows)
    assert summary["never_slower"] is False
    assert summary["slower_than_im2col"] == ["C1 best", "C3 best"]
    assert summary["slower_than_im2col_with_layout"] == ["C1 best", "C2 best", "C3 best"]
    assert summary["slower_than_prototype"] == []
    assert summary["more_steps_than_prototype"] == ["C2 best"]
    assert summary["more_steps_for_fewer_cycles"] == ["C1 best", "C2 best"]


def test_summary_of_all_is_a_geometric_mean() -> None:
    rows = [
        _made(op, mapping, machine, steps=1, cycles=cycles)
        for op in bench_cim_operators.PAPER
        for machine in bench_cim_operators.EIGHT_MACROS
        for mapping, cycles in (("im2col", 90 if op == "P1" else 40), ("best", 10))
    ]
    mean = bench_cim_operators.summary(rows)["geomean_speedup"]
    assert mean == pytest.approx((9**2 * 4**14) ** (1 / 16))


# -- networks ------------------------------------------------------------------------------------


def test_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    table = bench(capsys, "cim-networks", "--only", "ConvNeXt-Tiny cim-32x64-8")
    rows = table["rows"]
    assert len(rows) == 2 * len(networks()["ConvNeXt-Tiny"])
    for row in rows:
        check_schema(row)
    summary = table["summary"]
    cycles = {
        mapping: sum(row["repeat"] * row["cycles"] for row in rows if row["mapping"] == mapping)
        for mapping in ("im2col", "best")
    }
    assert summary["speedup"] == {"ConvNeXt-Tiny": cycles["im2col"] / cycles["best"]}
    assert summary["speedup"]["ConvNeXt-Tiny"] > 1.18
    assert summary["im2col_utilisation"]["ConvNeXt-Tiny"] == pytest.approx(0.817, abs=0.0005)
    assert summary["utilisation"]["ConvNeXt-Tiny"] > 0.975
    assert summary["compile_s"]["ConvNeXt-Tiny"] < 60
    assert summary["never_slower"] is True


def test_a_part_of_a_network_says_nothing_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    summary = bench(capsys, "cim-networks", "--only", "ResNet18 stem cim-64x64-8")["summary"]
    assert summary["speedup"] == summary["compile_s"] == {}


def test_networks_measured_unless_rows_are_named() -> None:
    rows = chosen(bench_cim_networks.TABLE, None)
    assert {row.name.split()[0] for row in rows} == set(bench_cim_networks.REQUIRED)
    assert {row.name.split()[2] for row in rows} == {"cim-32x64-8", "cim-64x64-8"}


def test_layers_without_a_plan_are_named() -> None:
    row: Cells = {"network": "N", "op": "a", "machine": "m", "row": "N a m best"}
    rows = [row | {"mapping": "im2col", "cycles": 5}, row | {"mapping": "best", "cycles": None}]
    summary = bench_cim_networks.summary(rows)
    assert summary["never_slower"] is False
    assert summary["slower_than_im2col"] == ["N a m best"]


# -- ablation ------------------------------------------------------------------------------------


def test_ablation_of_c1(capsys: pytest.CaptureFixture[str]) -> None:
    table = bench(capsys, "cim-ablation", "--only", "C1 cim-32x64-8")
    for row in table["rows"]:
        check_schema(row)
    factors = {
        name: table["summary"][name]["factor"]["cim-32x64-8"]
        for name in bench_cim_ablation.SWITCHES
        if name != "all"
    }
    assert factors["no-affine"] > 7 and factors["no-pretiling"] > 6
    assert 2.5 < factors["no-coalescing"] < 4 and factors["no-movement"] > 1.3
    assert table["summary"]["utilisation"]["cim-32x64-8"] == 0.28125
    # The paper: from 28 % to below 10 %. One line of taps a step is a third.
    assert table["summary"]["no-coalescing"]["utilisation"]["cim-32x64-8"] == 0.28125 / 3
    assert table["summary"]["no-affine"]["paper"] == "9.7x the cycles"


def test_ablation_is_of_c1_unless_others_are_named() -> None:
    assert {row.name.split()[0] for row in chosen(bench_cim_ablation.TABLE, None)} == {"C1"}
    assert len(chosen(bench_cim_ablation.TABLE, "P6")) == 4 * len(bench_cim_ablation.SWITCHES)


@pytest.mark.parametrize("op", ["C4", "C7", "P2", "P5", "P6", "P7", "P8"])
@pytest.mark.parametrize(
    "switch", [without_affine, without_covers, without_pretiling, without_coalescing]
)
def test_covers_without_a_step_still_do_every_product_once(switch: Any, op: str) -> None:
    machine = load_machine("cim-32x64-8")
    kernel = operators()[op].kernel
    for tiled in switch(kernel, machine.rows, machine.columns):
        tile = tile_of(kernel, tiled.channels)
        check(tiled.cover, tile, machine.rows, machine.columns)


def test_without_coalescing_rows_and_columns_are_one_loop() -> None:
    machine = load_machine("cim-32x64-8")
    for op in ("C4", "P6", "P8"):
        for tiled in without_coalescing(operators()[op].kernel, machine.rows, 8):
            for image in tiled.cover.images:
                for points in (image.rows, image.columns):
                    moving = [len(set(values)) > 1 for values in zip(*points, strict=True)]
                    assert sum(moving) <= 1


def test_without_pretiling_blocks_are_whole() -> None:
    machine = load_machine("cim-32x64-8")
    for op, sizes in (("C4", {1}), ("C7", {1, 7}), ("P8", {1, 8})):
        kernel = operators()[op].kernel
        for tiled in without_pretiling(kernel, machine.rows, machine.columns):
            columns = {column[1:] for image in tiled.cover.images for column in image.columns}
            extents = [len(set(values)) for values in zip(*columns, strict=True)]
            assert set(extents) <= sizes and prod(extents) == len(columns)


def _write_page() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    table = "\n".join(_page_lines(_paper_rows()))
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    _write_page()
