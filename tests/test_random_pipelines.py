"""Random pipelines, lowered and simulated, equal the reference.

`CIM_OPT_CASES=5000 pytest tests/test_random_pipelines.py` runs more of them.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlir_examples import full_context, parsed
from random_pipelines import Program, programs
from small_machine import SMALL_MACHINES, write_machines

from cim_opt.simulators.run import run_program

CASES = int(os.environ.get("CIM_OPT_CASES", "300"))
MACHINES = ("upmem-2560", *SMALL_MACHINES)
CONTEXT = full_context()


@st.composite
def pipeline_options(draw: st.DrawFn) -> dict[str, Any]:
    """Fusion on or off, and tasklets and blocks chosen or left to the cost formulas."""
    options: dict[str, Any] = {"fuse": draw(st.booleans())}
    for name, values in (("tasklets", (1, 2, 3)), ("block", (8, 64, 256))):
        value = draw(st.sampled_from((None, *values)))
        if value is not None:
            options[name] = value
    return options


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names or paths of the machines."""
    paths = write_machines(tmp_path_factory.mktemp("machines"))
    return {"upmem-2560": "upmem-2560", **paths}


@settings(
    max_examples=CASES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs(), st.sampled_from(MACHINES), pipeline_options(), st.integers(0, 1000))
def test_random_pipeline(
    machines: dict[str, str], program: Program, machine: str, options: dict[str, Any], seed: int
) -> None:
    module = parsed(program.text, CONTEXT)
    result = run_program(
        module,
        "main",
        program.inputs(seed),
        target="upmem",
        machine=machines[machine],
        pipeline_options=options,
    )
    assert result.check is not None
    assert result.check.ok, f"{result.check.to_text()}\n{program.text}"
