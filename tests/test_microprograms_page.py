"""docs/microprograms.md: its figures, its programs and what they print, and its commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import test_microprograms_proofs as proofs
from microprogram_tables import counts_table
from test_readme import ROOT, commands, run

from cim_opt.microprograms.model import B_GROUP
from cim_opt.microprograms.proofs import OUTRIGHT_WIDTHS
from cim_opt.microprograms.synthesis_steps import cached
from cim_opt.tools.cim_synth import argument_parser

PAGE = (ROOT / "docs" / "microprograms.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_counts_are_those_of_the_libraries() -> None:
    assert "\n".join(counts_table()) + "\n\n" in PAGE


def test_the_steps_are_those_of_the_cache() -> None:
    lines = [
        f"| `{name}` | {len(step['commands'])} | {step['majorities']} |"
        for name, step in cached().items()
    ]
    assert "| --- | --- | --- |\n" + "\n".join(lines) + "\n\n" in PAGE


def test_the_addresses_are_those_of_the_model() -> None:
    for size, first in (
        (1, "one row"),
        (2, "two rows, to write only"),
        (3, "three rows, a majority"),
    ):
        names = ", ".join(str(x) for x in B_GROUP if len(x.cells) == size)
        assert f"| {first} | {names} |" in PAGE


def test_the_programs_print_what_the_page_says() -> None:
    programs, printed = blocks("python"), blocks("text")
    assert len(programs) == 2
    for program in programs:
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert result.stdout in printed


@pytest.mark.parametrize("line", commands(PAGE))
def test_command(line: str, tmp_path: Path) -> None:
    result = run(line, tmp_path)
    assert result.returncode == 0, result.stderr
    if line == "cim-synth subtract":
        assert result.stdout in blocks("text")


def test_every_option_is_on_the_page() -> None:
    options = set(re.findall(r"--[a-z]+", argument_parser().format_help())) - {"--help"}
    assert options
    assert [name for name in sorted(options) if f"`{name}" not in PAGE] == []


def test_the_widths_are_those_of_the_proofs() -> None:
    def listed(widths: tuple[int, ...]) -> str:
        return ", ".join(map(str, widths))

    assert proofs.EVERY_WIDTH or proofs.WIDTHS[:16] == tuple(range(1, 17))
    if not proofs.EVERY_WIDTH:
        assert f"| 1 to 16, {listed(proofs.WIDTHS[16:])} |" in PAGE
        assert f"| {listed(proofs.INDUCTION_WIDTHS)}; `mul` and `mac` 64" in PAGE
    assert {
        name: {"mul": 7, "bitcount": 16}.get(name, 6) for name in (*proofs.LONG, "bitcount")
    } == OUTRIGHT_WIDTHS
    assert "| 1 to 6, `mul` 1 to 7 |" in PAGE
