"""Baselines of the near-memory workloads against NumPy, and table `pnm` of cim-bench."""

from dataclasses import replace

import numpy as np
import pytest

from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.tools.bench_pnm import FRAMEWORKS, GRANULE, PAPER, share_of, summary, table
from cim_opt.tools.pnm_baselines import BASELINES
from cim_opt.tools.pnm_workloads import SMALL, WORKLOADS

MACHINE = load_machine("upmem-2560")
UNITS = (64, 4008)
"""Units of a DPU: fewer than a block for each tasklet, and more."""


@pytest.mark.parametrize(("framework", "name"), BASELINES)
def test_a_baseline_is_what_numpy_computes(framework: str, name: str) -> None:
    workload = SMALL[name]
    for dpus, units in ((1, UNITS[0]), (3, UNITS[0]), (2, UNITS[1])):
        arrays = workload.arrays(dpus * units, np.random.default_rng(dpus))
        given = [array.view(f"int{8 * array.dtype.itemsize}") for array in arrays]
        module = BASELINES[framework, name](dpus, *given)
        got, _ = UpmemSimulator(replace(MACHINE, dpus=dpus)).run(module, "main", given)
        expected = [np.asarray(value) for value in workload.reference(*arrays)]
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert (np.asarray(one).view(other.dtype) == other).all()


def test_baselines_are_of_known_frameworks_and_workloads() -> None:
    assert {framework for framework, _ in BASELINES} == set(FRAMEWORKS) - {"published"}
    assert {name for _, name in BASELINES} == set(WORKLOADS) - set[str]()
    assert {name for values in PAPER.values() for name in values} <= set(WORKLOADS)


def test_shares_fill_whole_granules() -> None:
    for workload in WORKLOADS.values():
        share = share_of(workload)
        assert share % GRANULE == 0
        assert share * 2560 <= workload.units < (share + GRANULE) * 2560


def test_a_row_has_times_and_speed_ups_by_model() -> None:
    both, one = table(), table({"transfer": "linear"})
    (row,) = [row for row in both.rows() if row.name == "LOGREG"]
    cells = row.cells()
    for model in ("measured", "linear"):
        for name in ("simplepim", "published"):
            ratio = cells[f"{name} {model}"] / cells[f"ours {model}"]
            assert cells[f"x {name} {model}"] == pytest.approx(ratio)
            assert cells[f"{name} kernel"] < cells[f"{name} {model}"]
    assert cells["units"] == 1000 * 2560
    assert cells["lines"] <= cells["lines paper"] == 23
    found = summary(["measured", "linear"], [cells])
    assert found["geomean_simplepim"]["linear"] == pytest.approx(cells["x simplepim linear"])
    assert found["geomean_prim"] == {"measured": None, "linear": None}
    least = min(cells[f"x {name} measured"] for name in ("simplepim", "published"))
    assert found["min_speedup"]["measured"] == least
    scan = {"row": "SCAN", "x published linear": 60.0, "published kernel": 1.0, "ours kernel": 1.0}
    found = summary(["linear"], [cells, scan])
    ours = cells["x published linear"]
    assert found["geomean_published"]["linear"] == pytest.approx((60 * ours) ** 0.5)
    assert found["geomean_published_unmerged"]["linear"] == pytest.approx(ours)
    (row,) = [row for row in one.rows() if row.name == "LOGREG"]
    assert "x published linear" in row.cells()
    assert "x published measured" not in row.cells()
