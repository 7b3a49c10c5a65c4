"""Start-up stays fast: what every xdsl-opt start imports, and how long `--help` computes."""

import subprocess
import sys
from pathlib import Path

import pytest
from process_time import cpu_seconds

TOOL = Path(sys.executable).parent / "cim-opt"
HEAVY = {"numpy", "islpy", "z3", "scipy"}
LIMIT_SECONDS = 0.5


def imported(code: str) -> set[str]:
    """The top-level packages that a fresh Python imports for `code`."""
    command = [sys.executable, "-X", "importtime", "-c", code]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    names = (line.rpartition("|")[2].strip() for line in log.splitlines() if "|" in line)
    return {name.partition(".")[0] for name in names}


def test_the_log_would_show_a_heavy_import() -> None:
    assert "numpy" in imported("import numpy")


@pytest.mark.parametrize(
    "code",
    [
        "import cim_opt.tools.universe",
        "from xdsl.universe import Universe; Universe.get_multiverse()",
        "import cim_opt.tools.cim_opt",
        "from cim_opt.tools.cim_opt import main; main(['--help'])",
    ],
)
def test_start_imports_nothing_heavy(code: str) -> None:
    assert imported(code) & HEAVY == set()


def test_import_of_the_package_alone_imports_no_xdsl() -> None:
    assert "xdsl" not in imported("import cim_opt")


def test_help_is_quick() -> None:
    assert cpu_seconds([TOOL, "--help"]) < LIMIT_SECONDS
