"""Helpers for tests that lower programs to UPMEM, simulate them and compare with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.simulators.run import Option, RunResult, run_program
from cim_opt.tools.load_module import parse_text

Array = npt.NDArray[Any]

INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def vector(element: str, length: int, seed: int = 0) -> Array:
    """Random elements over the whole range of the type; finite ones for f32."""
    rng = np.random.default_rng(seed + length)
    if element == "f32":
        return rng.standard_normal(length).astype(np.float32)
    if element == "i1":
        return rng.integers(0, 2, length).astype(np.bool_)
    dtype = INTEGERS[element]
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, length, dtype, endpoint=True)


def run_checked(
    text: str,
    *args: Any,
    machine: str = "upmem-2560",
    transfer: str = "measured",
    **options: Option,
) -> RunResult:
    """Runs @main on the simulated machine; fails unless all results are as the reference's."""
    result = run_program(
        parse_text(text, "test.mlir"),
        "main",
        {f"arg{index}": value for index, value in enumerate(args)},
        target="upmem",
        machine=machine,
        transfer=transfer,
        pipeline_options=options,
    )
    assert result.check is not None
    assert result.check.ok, result.check.to_text()
    return result


def outputs(text: str, *args: Any, **options: Any) -> list[Any]:
    """The results of a run that was checked."""
    return list(run_checked(text, *args, **options).outputs)
