"""PrIM's programs as measured points: what they compute, how they are timed, and how well."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.tools import bench_upmem_accuracy as bench
from cim_opt.tools import cim_bench, prim_models, prim_rounds
from cim_opt.tools.upmem_points import read_points

ROUNDS: dict[str, tuple[Callable[[Any], ModuleOp], int]] = {
    "SEL": (prim_rounds.sel, 0),
    "UNI": (prim_rounds.uni, 1),
    "SCAN-SSA": (prim_rounds.scan_ssa, 0),
    "SCAN-RSS": (prim_rounds.scan_rss, 0),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_programs_in_rounds_compute_what_they_should(name: str) -> None:
    program, more = ROUNDS[name]
    x = np.random.default_rng(3).integers(0, 5, 2 * prim_rounds.ROUND + more)
    results, report = UpmemSimulator().run(program(x), "main", [x])
    expected = prim_rounds.reference(name, x)
    assert len(expected) > prim_rounds.ROUND // 2
    np.testing.assert_array_equal(np.asarray(results[0])[: len(expected)], expected)
    assert report.launches == prim_models.LAUNCHES.get(name, 1)


@pytest.mark.parametrize("name", ["VA", "RED", "SEL", "GEMV", "HST-S"])
def test_larger_shares_are_extrapolated(name: str) -> None:
    benchmark = prim_models.BENCHMARKS[name]
    columns = benchmark.columns or 0
    direct = prim_models._simulated(name, 4 * benchmark.step, columns)  # pyright: ignore
    assert prim_models.cycles(name, 4 * benchmark.step, columns) == pytest.approx(direct, rel=0.01)


def test_every_benchmark_has_its_points_or_is_left_out(tmp_path: Path) -> None:
    points = read_points(bench.default_paths()[1], bench.MODELS).points
    assert {point.kernel for point in points} == set(prim_models.BENCHMARKS)
    runs = [
        {"bench": name, "dpus": 4, "param": 1048576, "hw_kernel_ms": 8.3}
        for name in ("VA", *prim_models.LEFT_OUT)
    ]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs))
    (point,) = read_points(path, bench.MODELS, prim_models.LEFT_OUT).points
    assert (point.kernel, point.parameters) == ("VA", {"dpus": 4, "param": 1048576})
    assert point.measured_ms == 8.3


def test_the_points_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cim_bench.main(["upmem-accuracy", "--only", "prim", "--report", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    rows = {row["row"].split()[1]: row for row in table["rows"]}
    assert set(rows) == set(prim_models.BENCHMARKS)
    for name in ("HST-S", "HST-L", "MLP", "SCAN-RSS", "SCAN-SSA", "UNI"):
        assert 0 < rows[name]["mape"] < 13
    summary = table["summary"]
    assert summary["points"] == {"prim": 106}
    # A published simulator that runs the compiled programs has 25.
    assert 0 < summary["mape"]["prim"] < 15
    assert summary["spearman"]["prim"] > 0.97


def test_whole_blocks_are_read_where_rows_are_short() -> None:
    module, (matrix, vector) = prim_models.BENCHMARKS["GEMV"].make(20, 24)
    results, report = UpmemSimulator().run(module, "main", [matrix, vector])
    np.testing.assert_array_equal(results[0], matrix.reshape(20, 24) @ vector)
    assert report.kernels[0].read_bytes == 20 * 2 * 1024
