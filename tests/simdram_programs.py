"""Helpers of the tests that run `simdram` programs: texts, runs at both levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from cim_opt.hardware.simdram import SimdramMachine, load_machine
from cim_opt.simulators.simdram import SimdramSimulator
from cim_opt.simulators.simdram_report import SimdramReport
from cim_opt.tools.load_module import parse_text


def function(body: str, arguments: str = "", results: str = "") -> str:
    """A module with function @main."""
    arrow = f" -> ({results})" if results else ""
    return f"func.func @main({arguments}){arrow} {{\n{body}\n}}\n"


def module_of(text: str) -> ModuleOp:
    """The verified module of a text, with places on operations."""
    return parse_text(text, "test.mlir")


def run(
    text: str | ModuleOp, args: Sequence[Any], **options: Any
) -> tuple[list[Any], SimdramReport]:
    """One run on the machine of the options, or on `simdram-1`."""
    module = module_of(text) if isinstance(text, str) else text
    options.setdefault("machine", load_machine("simdram-1"))
    results, report = SimdramSimulator(**options).run(module, "main", args)
    return list(results), report


def run_both(
    text: str | ModuleOp, args: Sequence[Any], **options: Any
) -> tuple[list[Any], SimdramReport]:
    """A run at level `bbop`, after checking that level `rows` gives the same in every respect."""
    module = module_of(text) if isinstance(text, str) else text
    words, report = run(module, args, level="bbop", **options)
    rows, rows_report = run(module, args, level="rows", **options)
    assert len(words) == len(rows)
    for expected, got in zip(words, rows, strict=True):
        assert expected.dtype == got.dtype
        assert np.array_equal(expected, got)
    assert replace(rows_report, level="bbop") == report
    return words, report


def machine(**figures: Any) -> SimdramMachine:
    """`simdram-1` with other figures."""
    return SimdramMachine.from_dict({**load_machine("simdram-1").to_dict(), **figures}, "test")
