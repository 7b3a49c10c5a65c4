"""The thirteen workloads against NumPy, on small machines and data, and their lines of code."""

import numpy as np
import pytest
from small_machine import write_machines

from cim_opt.tools.pnm_workloads import SMALL, WORKLOADS
from cim_opt.tools.pnm_workloads.lines import lines_of_code

SIZES = (1, 7, 250, 2561)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Seven DPUs."""
    return write_machines(tmp_path_factory.mktemp("machines"))["odd"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_what_numpy_computes(name: str, machine: str) -> None:
    workload = SMALL[name]
    for size in SIZES:
        # The next layer of MLP takes as many results as the vector has elements.
        units = size * 8 if name.startswith("MLP") else size
        arrays = workload.arrays(units, np.random.default_rng(size))
        expected = workload.reference(*arrays)
        got = list(workload.pipeline(*arrays).execute(machine=machine))
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert one.dtype == other.dtype
            assert (one == other).all()


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
