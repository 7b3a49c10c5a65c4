"""Helpers for tests that lower programs to SIMDRAM, simulate them and compare the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cim_opt.errors import UserError
from cim_opt.simulators.run import RunResult, SimdramOptions, lower, run_program
from cim_opt.tools.load_module import parse_text

# One subarray of 64 columns: more than 64 lanes take more than one round, or longer blocks.
SMALL = {"row_bytes": 8, "columns": 64, "subarrays": 1}
# Tiles in three subarrays at a time.
TILES = {"row_bytes": 8, "columns": 64, "subarrays": 3}


def write_machine(folder: Path, figures: dict[str, int]) -> str:
    """A machine file with these figures, the others as simdram-1 has them; its path."""
    path = folder / f"{'_'.join(str(figure) for figure in figures.values())}.toml"
    lines = ['base = "simdram-1"', f'name = "{path.stem}"']
    lines += [f"{name} = {figure}" for name, figure in figures.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def run_checked(
    text: str,
    *args: Any,
    machine: str,
    library: str = "cim-opt",
    level: str = "bbop",
    **options: bool,
) -> RunResult:
    """Runs @main on the simulated machine; fails unless all results are exactly the reference's."""
    result = run_program(
        parse_text(text, "test.mlir"),
        "main",
        {f"arg{index}": value for index, value in enumerate(args)},
        target="simdram",
        machine=machine,
        pipeline_options=options,
        simdram_options=SimdramOptions(level=level, library=library),
    )
    assert result.check is not None
    assert result.check.ok, result.check.to_text()
    assert all(check.rule == "bit-exact" for check in result.check.results)
    return result


def refused(text: str, pipeline: str = "pattern-to-simdram", **options: Any) -> str:
    """The error of the lowering, with its place."""
    with pytest.raises(UserError) as info:
        lower(parse_text(text, "test.mlir"), pipeline, options)
    message = str(info.value)
    assert "\n" not in message
    assert message.count(";") >= 2, "what; the limit; what to do"
    return message
