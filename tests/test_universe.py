"""Stock xdsl-opt finds our dialects and passes; every name in the universe leads somewhere."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from cim_opt.tools.universe import CIM_UNIVERSE, PASS_SUMMARIES

XDSL_OPT = Path(sys.executable).parent / "xdsl-opt"
DOT_PRODUCT = Path(__file__).parent.parent / "examples" / "dot_product.mlir"


@pytest.mark.parametrize("name", CIM_UNIVERSE.all_dialects)
def test_dialect_loads_under_its_name(name: str) -> None:
    dialect = CIM_UNIVERSE.all_dialects[name]()
    assert isinstance(dialect, Dialect)
    assert dialect.name == name


@pytest.mark.parametrize("name", CIM_UNIVERSE.all_passes)
def test_pass_loads_under_its_name(name: str) -> None:
    cls = CIM_UNIVERSE.all_passes[name]()
    assert issubclass(cls, ModulePass)
    assert cls.name == name


@pytest.mark.parametrize("name", CIM_UNIVERSE.all_targets)
def test_target_loads_under_its_name(name: str) -> None:
    cls = CIM_UNIVERSE.all_targets[name]()
    assert issubclass(cls, Target)
    assert cls.name == name


def test_every_pass_has_its_line_in_help() -> None:
    assert PASS_SUMMARIES.keys() == CIM_UNIVERSE.all_passes.keys()


@pytest.mark.parametrize("name", ["cim-opt", "cim-run", "cim-bench", "cim-synth", "cim-bbop"])
def test_console_script_loads(name: str) -> None:
    assert callable(entry_points(group="console_scripts")[name].load())


def test_stock_xdsl_opt_lowers_to_upmem() -> None:
    command = [XDSL_OPT, str(DOT_PRODUCT), "-p", "pattern-to-upmem"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "upmem.kernel @dot_product_0" in result.stdout
    assert "upmem.launch @dot_product_0" in result.stdout


def test_stock_xdsl_opt_takes_the_options_of_the_pipeline() -> None:
    pipeline = "pattern-to-upmem{machine=upmem-640 tasklets=8 fuse=false}"
    command = [XDSL_OPT, str(DOT_PRODUCT), "-p", pipeline]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "upmem-640" in result.stdout


def test_stock_xdsl_opt_lowers_to_macros() -> None:
    example = Path(__file__).parent / "filecheck" / "lowering" / "conv_to_cim.mlir"
    pipeline = 'conv-to-cim{machine="cim-64x64-1" mapping=im2col}'
    command = [XDSL_OPT, str(example), "-p", pipeline]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert 'cim.machine = "cim-64x64-1"' in result.stdout
    assert "cim.program @kernel_0" in result.stdout
    assert "cim.launch @kernel_0" in result.stdout
    assert "linalg." not in result.stdout
