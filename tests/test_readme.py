"""Every command that README.md shows works when it is typed as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"

# Set-up lines: they make the environment that the tests run in, and `make test` runs the tests.
SET_UP = re.compile(r"(git clone \S+|cd cim-opt|make demo|make test|\. \.venv/bin/activate)$")


def commands(text: str) -> list[str]:
    """The lines of all ```sh blocks, continued lines joined, comments and prompts not allowed."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip()]


def to_run(text: str) -> list[str]:
    return [line for line in commands(text) if not SET_UP.match(line)]


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the line in `folder` with the tools of this environment first on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
        timeout=120,
    )


def test_blocks_are_found_and_set_up_is_left_out() -> None:
    text = "```sh\nmake demo\ncim-opt \\\n  --help\n```\n```mlir\nx\n```\n```sh\nmake demons\n```\n"
    assert commands(text) == ["make demo", "cim-opt    --help", "make demons"]
    assert to_run(text) == ["cim-opt    --help", "make demons"]


def test_the_two_set_up_commands_are_there() -> None:
    lines = commands(README.read_text())
    assert "make demo" in lines
    assert "make test" in lines


def test_every_block_of_commands_is_tagged() -> None:
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), re.M | re.S):
        if language != "sh":
            assert not re.search(r"^(cim-|make )", block, re.MULTILINE), block


@pytest.mark.parametrize("line", to_run(README.read_text()))
def test_command(line: str, tmp_path: Path) -> None:
    # A folder of links to the checkout: what the command writes does not land in the tree.
    for entry in ROOT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    result = run(line, tmp_path)
    assert result.returncode == 0, f"{shlex.quote(line)}\n{result.stdout}{result.stderr}"
