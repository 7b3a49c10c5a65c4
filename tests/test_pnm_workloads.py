"""The thirteen workloads against NumPy, on small machines and data, and their lines of code."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from small_machine import write_machines

from cim_opt.errors import UserError
from cim_opt.tools.pnm_workloads import SMALL, WORKLOADS
from cim_opt.tools.pnm_workloads.lines import lines_of_code

CASES = {
    # Seven DPUs: none, one, one DPU less and one more, hundreds for each and some over.
    "odd": (0, 1, 6, 8, 2561),
    # One DPU with 4 KB of MRAM and three tasklets: rounds.
    "tiny": (1, 250),
    "upmem-1": (97,),
    "upmem-2560": (2559, 2561),
}
TOO_LARGE = {("LOGREG", "tiny"): "MRAM is too small"}
NOT_IN_ROWS = {"KMEANS": "reads one element of its accumulator and writes another"}
MACROS = "cim-32x64-8"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return write_machines(tmp_path_factory.mktemp("machines"))


def check(name: str, size: int, target: str, machine: str) -> None:
    """Runs a workload on `size` units and compares what comes out, types too, with NumPy."""
    workload = SMALL[name]
    # The next layer of MLP takes as many results as the vector has elements.
    units = max(size, 1) * 8 if name.startswith("MLP") else size
    arrays = workload.arrays(units, np.random.default_rng(size))
    expected = workload.reference(*arrays)
    got = list(workload.pipeline(*arrays).execute(target, machine=machine))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert (one == other).all(), size


@pytest.mark.parametrize("machine", CASES)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_what_numpy_computes(
    name: str, machine: str, machines: Mapping[str, str]
) -> None:
    for size in CASES[machine]:
        if (name, machine) in TOO_LARGE:
            with pytest.raises(UserError, match=TOO_LARGE[name, machine]):
                check(name, size, "upmem", machines[machine])
        else:
            check(name, size, "upmem", machines.get(machine, machine))


@pytest.mark.parametrize("name", WORKLOADS)
def test_rows_of_dram_compute_it_too(name: str) -> None:
    for size in (0, 37):
        if name in NOT_IN_ROWS:
            with pytest.raises(UserError, match=NOT_IN_ROWS[name]):
                check(name, size, "simdram", "simdram-1")
        else:
            check(name, size, "simdram", "simdram-1")


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name.startswith("GEMV")])
def test_macros_compute_a_matrix_by_a_vector(name: str) -> None:
    for size in (1, 13):
        check(name, size, "cim", MACROS)


def test_what_numpy_computes_is_what_is_said() -> None:
    """Oracles on data that can be followed by hand."""
    ref = {name: workload.reference for name, workload in SMALL.items()}
    i32, i64 = np.int32, np.int64
    assert list(ref["SEL"](np.array([1, 2, 3, -5, 4]))[0]) == [1, 3, -5]
    assert list(ref["UNI"](np.array([7, 7, 8, 8, 7, -1]))[0]) == [7, 8, 7]
    counts = ref["HST-S"](np.array([0, 15, 16, 4095], np.uint32))[0]
    assert (counts[0], counts[1], counts[255], counts.sum()) == (2, 1, 1, 4)
    wide = np.array([1 << 30] * 2, i64)
    assert ref["RED"](wide)[0] == 1 << 31
    assert list(ref["GEMV i32"](np.array([1, 2, 3, 4], i32), np.array([5, 6], i32))[0]) == [17, 39]
    # One window, 3 * 5 + 4 * 6 = 39; 39 - 2 * 63 * 1 = -87; over 37 it is -2; 2 * (2 + 2) = 8.
    series, query, one = np.array([3, 4], i32), np.array([5, 6], i32), np.array([1], i32)
    assert ref["TS"](series, query, one, one)[0] == 8
    # One sample: features 64, weights 1, target 3: error 10 - 3 = 7; 7 * 64 >> 10 = 0.
    features, ten = [np.array([64], i32)] * 10, np.ones(10, i32)
    assert [int(x) for x in ref["LINREG"](*features, np.array([3], i32), ten)] == [0] * 10
    # A target of 1,010: error -1,000; -64,000 >> 10 = -63.
    assert [int(x) for x in ref["LINREG"](*features, np.array([1010], i32), ten)] == [-63] * 10
    # A dot product of 640 is step 0: the sigmoid is half of 4,096; 2,048 * 64 >> 10 = 128.
    assert [int(x) for x in ref["LOGREG"](*features, np.array([0], i32), ten)] == [128] * 10
    # A point at 64 is nearer to a centre at 60 than to others at 0.
    centres = np.zeros((10, 10), i32)
    centres[4] = 60
    sums = ref["KMEANS"](*features, centres.reshape(-1))[0].reshape(10, 11)
    assert list(sums[4]) == [64] * 10 + [1]
    assert sums.sum() == 641


def test_the_sigmoid_is_one() -> None:
    from cim_opt.tools.pnm_workloads.logreg import SIGMOID

    assert SIGMOID[512] == 2048
    assert (np.diff(SIGMOID) >= 0).all()
    assert 0 <= SIGMOID[0] < 8
    assert 4088 < SIGMOID[-1] <= 4096


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_needs_no_other(name: str) -> None:
    """What a workload imports from another one would not be counted."""
    from cim_opt.tools.pnm_workloads import FOLDER

    text = (FOLDER / WORKLOADS[name].file).read_text(encoding="utf-8")
    assert "pnm_workloads" not in text


def test_there_are_thirteen() -> None:
    assert len({name.split()[0] for name in WORKLOADS}) == 13
    assert {name for name in WORKLOADS if " " in name} == {
        f"{name} i{bits}" for name in ("GEMV", "MLP") for bits in (8, 16, 32)
    }


@pytest.mark.parametrize("name", WORKLOADS)
def test_lines_are_no_more_than_the_paper_s(name: str) -> None:
    assert 0 < WORKLOADS[name].lines <= WORKLOADS[name].paper_lines


def test_lines_are_those_with_code() -> None:
    text = '"""Words."""\n\nimport os\nfrom a import (\n    b,\n)\n\nN = 3\n"""More."""\n\n'
    text += "def f(x):\n    # why\n    return g(\n        x,\n        N,\n    )\n"
    assert lines_of_code(text) == 6


def test_the_page_has_the_lines() -> None:
    page = (Path(__file__).parents[1] / "docs" / "workloads.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    (at,) = [i for i, row in enumerate(cells) if row[0] == "lines"]
    names = [{"HST": "HST-S"}.get(name, name) for name in cells[at - 2][1:]]
    for place, name in enumerate(names, 1):
        workload = next(w for w in WORKLOADS.values() if w.name.split()[0] == name)
        found = (int(cells[at][place]), int(cells[at + 1][place]))
        assert found == (workload.lines, workload.paper_lines)
