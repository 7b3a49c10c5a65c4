"""Makes docs/support.md: every cell of its tables is compiled and simulated, or refused, for it.

    python tests/support_table.py

writes the page; `test_support_table.py` fails when the page is not what this would write.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import simdram_lowering
import test_simdram_lowering_errors
from test_upmem_lowering_errors import REFUSED, refused
from upmem_cells import ELEMENTS, GROUP, OPERATIONS, WINDOW, program
from upmem_lowering import run_checked, vector

from cim_opt.simulators.report import Report

PAGE = Path(__file__).parents[1] / "docs" / "support.md"

HEAD = f"""\
# What the targets support

Every pattern operation is lowered to UPMEM and to SIMDRAM, for each element type, with lengths that
are known and with `?`. Each cell below was compiled, simulated and compared with the reference when
this page was made, and is again by a test: *exact* means bit by bit, *bound* within the stated
bound of a float reduction or scan, since the machine adds in another order; *refused* is refused
with a sentence. Windows are of {WINDOW} elements, groups of {GROUP}.
"""

TARGETS = ("upmem", "simdram")

REFUSALS = """\
## What is refused

The lowerings say what they do not take, where, the limit, and what to do. Numbers are those of an
example.
"""

REFUSALS_HEAD = """\
| case | what it says |
| --- | --- |
"""

CASES = {
    "a row longer than WRAM": "wram, a long row",
    "blocks that do not fit, chosen by options": "wram, chosen blocks",
    "more bins than fit into WRAM": "wram, too many bins",
    "bins that tasklets cannot share: nothing is neutral": "wram, bins that cannot be shared",
    "a shared operand larger than WRAM": "wram, a large shared operand",
    "a shared operand of unknown length": "a shared operand of unknown length",
    "a shared matrix": "a shared matrix",
    "a constant matrix in an element function": "a constant matrix",
    "a nested pattern over an unknown length": "a nested pattern over an unknown length",
    "arithmetic on whole tensors": "an operation on tensors",
    "`scf.while` in an element function": "another loop",
    "branches that yield tensors of different lengths": "branches of different lengths",
    "integers of an odd width": "an odd width",
    "more tasklets than a DPU runs": "tasklets",
    "a block that no transfer moves": "block",
    "more DPUs than the machine has": "dpus",
}

SIMDRAM_CASES = {
    "floating point": "floating point",
    "floating point in an element function": "floating point inside",
    "arithmetic on whole tensors": "arithmetic on whole tensors",
    "`scf.while` in an element function": "another loop",
    "a loop as long as each element says": "bounds of each lane",
    "a tensor through a long loop": "a long loop that carries a tensor",
    "a shared operand of unknown length": "a shared operand of unknown length",
    "a shared matrix": "a shared matrix",
    "a constant matrix in an element function": "a constant matrix",
    "a bin made from another bin": "a bin made from another",
}


def length_for(operation: str) -> int:
    """About a thousand elements, leftovers among them, that the operation takes."""
    return (
        1003 // GROUP * GROUP
        + ((WINDOW - 1) * ("window" in operation))
        + ("group" not in operation)
    )


def cell(target: str, operation: str, element: str, static: bool) -> str:
    """Compiles and simulates one program; how it was compared. Fails on a difference."""
    length = length_for(operation)
    text = program(operation, element, length if static else None)
    if target == "simdram":
        return simdram_cell(text, element, length)
    result = run_checked(text, vector(element, length), machine="upmem-1")
    assert result.check is not None
    assert isinstance(result.report, Report)
    assert result.report.kernels, "the DPUs did something"
    exact = all(check.rule == "bit-exact" for check in result.check.results)
    return "exact" if exact else "bound"


def simdram_cell(text: str, element: str, length: int) -> str:
    """The same on SIMDRAM, where all that is not refused is exact."""
    if element == "f32":
        message = simdram_lowering.refused(text)
        assert "SIMDRAM has integers only, no floating point" in message
        return "refused"
    simdram_lowering.run_checked(text, vector(element, length), machine="simdram-1")
    return "exact"


def operations_table(target: str) -> str:
    """One row an operation; a cell says both kinds of length."""
    rows = [["operation", *ELEMENTS], ["---"] * (len(ELEMENTS) + 1)]
    for operation in OPERATIONS:
        cells: list[str] = []
        for element in ELEMENTS:
            known, unknown = (cell(target, operation, element, static) for static in (True, False))
            assert known == unknown
            cells.append(known)
        rows.append([f"`pattern.{operation}`", *cells])
    return f"## Operations on {target}\n\n" + "\n".join(map(_row, rows)) + "\n"


def refusals_table() -> str:
    """A table for each target, one row a case, with the message that the lowering gives."""
    upmem: list[str] = []
    for case, name in CASES.items():
        text, options, _ = REFUSED[name]
        upmem.append(_row([case, refused(text, **options).partition("error: ")[2]]))
    simdram: list[str] = []
    for case, name in SIMDRAM_CASES.items():
        text, _ = test_simdram_lowering_errors.REFUSED[name]
        simdram.append(_row([case, simdram_lowering.refused(text).partition("error: ")[2]]))
    tables = [
        f"### By {target}\n\n{REFUSALS_HEAD}" + "\n".join(lines) + "\n"
        for target, lines in zip(TARGETS, (upmem, simdram), strict=True)
    ]
    return "\n".join([REFUSALS, *tables])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *map(operations_table, TARGETS), refusals_table()])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
