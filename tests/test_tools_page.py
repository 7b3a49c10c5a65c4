"""Every command that docs/tools.md shows works, and every option of the tools is on the page."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from test_readme import ROOT, commands, run

from cim_opt.tools import cim_bbop, cim_bench, cim_covers, cim_run

PAGE = ROOT / "docs" / "tools.md"


@pytest.mark.parametrize("line", commands(PAGE.read_text()))
def test_command(line: str, tmp_path: Path) -> None:
    # A folder of links to the checkout: what the command writes does not land in the tree.
    for entry in ROOT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    result = run(line, tmp_path)
    assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize(
    "tool", ["cim-run", "cim-bench", "cim-bbop check", "cim-bbop expand", "cim-covers"]
)
def test_every_option_is_on_the_page(tool: str) -> None:
    name, *command = tool.split()
    modules = {
        "cim-run": cim_run,
        "cim-bench": cim_bench,
        "cim-bbop": cim_bbop,
        "cim-covers": cim_covers,
    }
    parser = modules[name].argument_parser()
    with redirect_stdout(StringIO()) as shown, pytest.raises(SystemExit):
        parser.parse_args([*command, "--help"])
    options = set(re.findall(r"--[a-z][a-z-]+", shown.getvalue())) - {"--help"}
    assert options
    assert [name for name in sorted(options) if name not in PAGE.read_text()] == []


def test_every_table_is_on_the_page() -> None:
    assert [name for name in cim_bench.TABLES if f"| `{name}` |" not in PAGE.read_text()] == []
