"""Every pattern operation lowered to SIMDRAM, simulated, and compared with the reference."""

from __future__ import annotations

import pytest
from simdram_lowering import SMALL, TILES, run_checked, write_machine
from upmem_cells import ELEMENTS, GROUP, OPERATIONS, WINDOW, program, usable
from upmem_lowering import vector

from cim_opt.microprograms.library import LIBRARY_NAMES

INTEGERS = [element for element in ELEMENTS if element != "f32"]
# Nothing, one lane, around the 64 columns, primes, and several rounds.
LENGTHS = (0, 1, 3, 63, 64, 65, 97, 128, 211, 401)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_machine(tmp_path_factory.mktemp("machines"), SMALL)


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_machine(tmp_path_factory.mktemp("machines"), TILES)


def lengths(operation: str, static: bool, wanted: tuple[int, ...] = LENGTHS) -> list[int]:
    """The lengths that the operation takes, those that do not fit made to."""
    rest = WINDOW - 1 if "window" in operation else 0
    made = {n if usable(operation, n, static) else n // GROUP * GROUP + rest for n in wanted}
    return sorted(n for n in made if usable(operation, n, static))


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_length(operation: str, element: str, small: str, tiles: str) -> None:
    text = program(operation, element, None)
    for length in lengths(operation, False):
        for machine in (small, tiles):
            run_checked(text, vector(element, length), machine=machine)


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_static_length(operation: str, element: str, small: str) -> None:
    for length in lengths(operation, True):
        text = program(operation, element, length)
        run_checked(text, vector(element, length), machine=small)


@pytest.mark.parametrize("library", LIBRARY_NAMES)
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_row_commands_give_the_same(operation: str, element: str, library: str, small: str) -> None:
    text = program(operation, element, None)
    for length in lengths(operation, False, (1, 65, 131)):
        for narrow in (True, False):
            run_checked(
                text,
                vector(element, length),
                machine=small,
                library=library,
                level="rows",
                narrow=narrow,
            )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_more_lanes_than_a_subarray_of_8_kb(operation: str) -> None:
    for length in lengths(operation, False, (65535, 65536, 65537, 140009)):
        run_checked(program(operation, "i16", None), vector("i16", length), machine="simdram-1")
