"""Random pipelines, lowered and simulated, equal the reference: on each machine, and on both.

`CIM_OPT_CASES=5000 pytest tests/test_random_pipelines.py` runs more of them.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlir_examples import full_context, parsed
from random_pipelines import Program, programs
from small_machine import SMALL_MACHINES, SMALL_SIMDRAM_MACHINES, write_machines

from cim_opt.microprograms.library import LIBRARY_NAMES
from cim_opt.simulators.run import SimdramOptions, run_program

CASES = int(os.environ.get("CIM_OPT_CASES", "300"))
UPMEM_MACHINES = ("upmem-2560", *SMALL_MACHINES)
SIMDRAM_MACHINES = ("simdram-1", *SMALL_SIMDRAM_MACHINES)
MAPPINGS = ("auto", "reduction-in-lane", "output-stationary")
CONTEXT = full_context()

Options = dict[str, Any]


def cases(count: int) -> settings:
    """So many programs, however long each takes to be drawn and run."""
    return settings(
        max_examples=max(count, 1),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@st.composite
def upmem_options(draw: st.DrawFn) -> Options:
    """Fusion on or off, scans with or without the host, tasklets and blocks chosen or left."""
    options: Options = {
        "fuse": draw(st.booleans()),
        "merge": draw(st.sampled_from(("machine", "host"))),
        "reduce_strength": draw(st.booleans()),
        "share": draw(st.booleans()),
    }
    for name, values in (
        ("tasklets", (1, 2, 3)),
        ("block", (8, 64, 256)),
        ("unroll", (1, 2, 3, 8)),
    ):
        value = draw(st.sampled_from((None, *values)))
        if value is not None:
            options[name] = value
    return options


@st.composite
def simdram_runs(draw: st.DrawFn) -> tuple[str, Options, str]:
    """A machine, what narrowing and what arrangement of the columns, and which microprograms."""
    options: Options = {
        "narrow": draw(st.booleans()),
        "mapping": draw(st.sampled_from(MAPPINGS)),
    }
    machine = draw(st.sampled_from(SIMDRAM_MACHINES))
    return machine, options, draw(st.sampled_from(LIBRARY_NAMES))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names or paths of the machines."""
    paths = write_machines(tmp_path_factory.mktemp("machines"))
    return {"upmem-2560": "upmem-2560", "simdram-1": "simdram-1", **paths}


def equals_the_reference(program: Program, seed: int, **how: Any) -> None:
    """Runs the program as `run_program` takes it and checks every result."""
    module = parsed(program.text, CONTEXT)
    result = run_program(module, "main", program.inputs(seed), **how)
    assert result.check is not None
    assert result.check.ok, f"{how}\n{result.check.to_text()}\n{program.text}"


def simdram(machines: dict[str, str], run: tuple[str, Options, str], level: str) -> Options:
    """How `run_program` runs on SIMDRAM."""
    machine, options, library = run
    return {
        "target": "simdram",
        "machine": machines[machine],
        "pipeline_options": options,
        "simdram_options": SimdramOptions(level=level, library=library),
    }


def upmem(machines: dict[str, str], machine: str, options: Options) -> Options:
    """How `run_program` runs on UPMEM."""
    return {"target": "upmem", "machine": machines[machine], "pipeline_options": options}


@cases(CASES)
@given(programs(), st.sampled_from(UPMEM_MACHINES), upmem_options(), st.integers(0, 1000))
def test_random_pipeline(
    machines: dict[str, str], program: Program, machine: str, options: Options, seed: int
) -> None:
    equals_the_reference(program, seed, **upmem(machines, machine, options))


@cases(CASES // 2)
@given(
    programs(floats=False),
    st.sampled_from(UPMEM_MACHINES),
    upmem_options(),
    simdram_runs(),
    st.integers(0, 1000),
)
def test_random_pipeline_on_both_targets(
    machines: dict[str, str],
    program: Program,
    machine: str,
    options: Options,
    run: tuple[str, Options, str],
    seed: int,
) -> None:
    equals_the_reference(program, seed, **upmem(machines, machine, options))
    equals_the_reference(program, seed, **simdram(machines, run, "bbop"))


# Row programs are compiled for each operation and width that turns up: fewer programs.
@cases(CASES // 10)
@given(programs(max_patterns=2, floats=False), simdram_runs(), st.integers(0, 1000))
def test_random_pipeline_by_row_commands(
    machines: dict[str, str], program: Program, run: tuple[str, Options, str], seed: int
) -> None:
    equals_the_reference(program, seed, **simdram(machines, run, "rows"))
