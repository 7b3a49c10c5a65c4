"""Makes docs/support.md: every cell of its tables is compiled and simulated, or refused, for it.

    python tests/support_table.py

writes the page; `test_support_table.py` fails when the page is not what this would write.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from test_upmem_lowering_errors import REFUSED, refused
from upmem_cells import ELEMENTS, GROUP, OPERATIONS, WINDOW, program
from upmem_lowering import run_checked, vector

from cim_opt.simulators.report import Report

PAGE = Path(__file__).parents[1] / "docs" / "support.md"

HEAD = f"""\
# What UPMEM supports

Every pattern operation is lowered to UPMEM, for each element type, with lengths that are known
and with `?`. Each cell below was compiled, simulated and compared with the reference when this
page was made, and is again by a test: *exact* means bit by bit, *bound* within the stated bound
of a float reduction or scan, since the machine adds in another order. Windows are of {WINDOW}
elements, groups of {GROUP}.
"""

REFUSALS = """\
## What is refused

The lowering says what it does not take, where, the limit, and what to do. Numbers are those of an
example.

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


def length_for(operation: str) -> int:
    """About a thousand elements, leftovers among them, that the operation takes."""
    return (
        1003 // GROUP * GROUP
        + ((WINDOW - 1) * ("window" in operation))
        + ("group" not in operation)
    )


def cell(operation: str, element: str, static: bool) -> str:
    """Compiles and simulates one program; how it was compared. Fails on a difference."""
    length = length_for(operation)
    text = program(operation, element, length if static else None)
    result = run_checked(text, vector(element, length), machine="upmem-1")
    assert result.check is not None
    assert isinstance(result.report, Report)
    assert result.report.kernels, "the DPUs did something"
    exact = all(check.rule == "bit-exact" for check in result.check.results)
    return "exact" if exact else "bound"


def operations_table() -> str:
    """One row an operation; a cell says both kinds of length."""
    rows = [["operation", *ELEMENTS], ["---"] * (len(ELEMENTS) + 1)]
    for operation in OPERATIONS:
        cells: list[str] = []
        for element in ELEMENTS:
            known, unknown = (cell(operation, element, static) for static in (True, False))
            assert known == unknown
            cells.append(known)
        rows.append([f"`pattern.{operation}`", *cells])
    return "\n".join(map(_row, rows)) + "\n"


def refusals_table() -> str:
    """One row a case, with the message that the lowering gives."""
    lines: list[str] = []
    for case, name in CASES.items():
        text, options, _ = REFUSED[name]
        message = refused(text, **options).partition("error: ")[2]
        lines.append(_row([case, message]))
    return REFUSALS + "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, operations_table(), refusals_table()])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
