"""Every pattern operation at lengths around nothing, granules, windows and the machine's size."""

from __future__ import annotations

import pytest
from small_machine import write_machines
from upmem_cells import ELEMENTS, GROUP, OPERATIONS, WINDOW, program, usable
from upmem_lowering import run_checked, vector

from cim_opt.simulators.report import Report

SMALL = (0, 1, 2, 3, 4, 7, 8, 14, 97, 1009, 1202)
MACHINE = (2559, 2560, 2561)
ROUNDS = (4094, 4096, 6007, 8002)


def lengths(operation: str, wanted: tuple[int, ...]) -> list[int]:
    """The lengths that the operation takes, those that do not fit made to."""
    rest = WINDOW - 1 if "window" in operation else 0
    made = {n if usable(operation, n, False) else n // GROUP * GROUP + rest for n in wanted}
    return sorted(n for n in made if usable(operation, n, False))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_lengths_around_the_smallest(operation: str, element: str) -> None:
    for length in lengths(operation, SMALL):
        run_checked(program(operation, element, None), vector(element, length))


@pytest.mark.parametrize("element", ["i8", "i16", "i64"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_lengths_around_the_number_of_dpus(operation: str, element: str) -> None:
    for length in lengths(operation, MACHINE):
        run_checked(program(operation, element, None), vector(element, length))
        run_checked(program(operation, element, length), vector(element, length))


@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_rounds_on_a_machine_with_little_memory(
    operation: str, element: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine = write_machines(tmp_path_factory.mktemp("machines"))["tiny"]
    for length in lengths(operation, ROUNDS):
        result = run_checked(
            program(operation, element, None), vector(element, length), machine=machine
        )
        assert isinstance(result.report, Report)
        if element == "i32" or operation != "reduce":
            assert result.report.kernels[0].launches > 1


@pytest.mark.parametrize("length", [1010, 1202])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_number_of_tasklets(operation: str, length: int) -> None:
    (fitting,) = lengths(operation, (length,))
    for tasklets in (1, 2, 7, 11, 24):
        text = program(operation, "i16", fitting)
        run_checked(text, vector("i16", fitting), machine="upmem-1", tasklets=tasklets, block=64)
