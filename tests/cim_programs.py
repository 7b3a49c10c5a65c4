"""Helpers of the tests that run `cim` programs: texts, machines, runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from cim_opt.hardware.cim import CimMachine, load_machine
from cim_opt.simulators.cim import CimSimulator
from cim_opt.simulators.cim_report import CimReport
from cim_opt.tools.load_module import parse_text

RNG = np.random.default_rng(5)


def module_of(text: str) -> ModuleOp:
    """The verified module of a text, with places on operations."""
    return parse_text(text, "test.mlir")


def machine(name: str = "cim-32x64-8", **figures: Any) -> CimMachine:
    """A machine that comes with cim-opt, with other figures."""
    return CimMachine.from_dict({**load_machine(name).to_dict(), **figures}, "test")


def run(
    text: str | ModuleOp, args: Sequence[Any], on: CimMachine | None = None
) -> tuple[list[Any], CimReport]:
    """One run of @main on a machine, or on `cim-32x64-8`."""
    module = module_of(text) if isinstance(text, str) else text
    results, report = CimSimulator(on or machine()).run(module, "main", args)
    return list(results), report


def program(body: str, args: str = "%x: index, %w: index, %y: index") -> str:
    """A program @k of these lines, with the constants %c0, %c1 and %c32."""
    head = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 32)]
    return "\n".join([f"cim.program @k({args}) {{", *head, body, "cim.return", "}"])


def launched(body: str, x: str, w: str, y: str) -> str:
    """A module whose @main launches a program on %x and %w, and returns the result."""
    return "\n".join(
        [
            program(body),
            f"func.func @main(%a: {x}, %b: {w}) -> {y} {{",
            f"%r = cim.launch @k(%a, %b) : ({x}, {w}) -> {y}",
            f"return %r : {y}",
            "}",
        ]
    )


def numbers(count: int, dtype: str = "int8") -> Any:
    """Random numbers over the whole range of a type."""
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
