"""Compiles programs of `linalg` for macros, runs them, and compares with plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from linalg_programs import FORMS, Array, Program, kernels_of, named
from mlir_examples import full_context
from xdsl.dialects.builtin import ModuleOp

from cim_opt.hardware.cim import load_machine
from cim_opt.lowering.poly_kernels import recognise_kernel
from cim_opt.lowering.poly_plans import plan_of
from cim_opt.mapping.cim_search import Choice
from cim_opt.passes.pipelines import ConvToCimPipeline
from cim_opt.simulators.cim import CimSimulator
from cim_opt.simulators.cim_report import CimReport
from cim_opt.tools.load_module import parse_text

CONTEXT = full_context()
MACHINES = ("cim-32x64-8", "cim-64x64-8", "cim-32x64-1", "cim-64x64-1")
SMALL_MACHINES: dict[str, dict[str, int]] = {
    # Little global memory: several launches.
    "parts": {"global_bytes": 8192},
    # Sums of few positions fit: chunks of them.
    "chunks": {"output_bytes": 4096},
    # Macros that no count of tiles divides.
    "three": {"macros": 3},
    # Rows and columns that no kernel fills evenly; i16 has one column.
    "odd": {"macros": 3, "rows": 5, "bit_columns": 16, "output_bytes": 1024},
    # All of it.
    "tiny": {"macros": 2, "rows": 5, "bit_columns": 16, "output_bytes": 512, "global_bytes": 20480},
}


def write_machines(folder: Path) -> dict[str, str]:
    """Writes the small machines as TOML files; their paths by name."""
    paths: dict[str, str] = {}
    for name, figures in SMALL_MACHINES.items():
        path = folder / f"{name}.toml"
        lines = ['base = "cim-32x64-8"', f'name = "{name}"']
        path.write_text("\n".join([*lines, *(f"{k} = {v}" for k, v in figures.items()), ""]))
        paths[name] = str(path)
    return paths


def compiled(program: Program | str, machine: str = "cim-32x64-8", **options: Any) -> ModuleOp:
    """The program after `conv-to-cim`, verified."""
    module = parse_text(program if isinstance(program, str) else program.text, "test.mlir")
    ConvToCimPipeline(machine=machine, **options).apply(CONTEXT, module)
    module.verify()
    return module


def planned(program: Program | str, machine: str, **options: Any) -> tuple[ModuleOp, Choice]:
    """The program with mapped kernels, before the last step, and the plan of the only one."""
    module = parse_text(program if isinstance(program, str) else program.text, "test.mlir")
    for step in ConvToCimPipeline(machine=machine, **options).steps()[:-1]:
        step.apply(CONTEXT, module)
    (kernel,) = kernels_of(module)
    return module, plan_of(kernel, recognise_kernel(kernel), load_machine(machine))


def run(module: ModuleOp, arrays: Sequence[Array]) -> tuple[Array, CimReport]:
    """The only result of @main, and the report."""
    (result,), report = CimSimulator().run(module, "main", arrays)
    return np.asarray(result), report


def check(
    program: Program,
    machine: str = "cim-32x64-8",
    arrays: Sequence[Array] | None = None,
    **options: Any,
) -> CimReport:
    """Compiles and runs a program; its result is what NumPy says."""
    arrays = arrays or program.arrays()
    got, report = run(compiled(program, machine, **options), arrays)
    expected = program.expected(arrays)
    np.testing.assert_array_equal(got, expected, f"{machine} {options}\n{program.text}")
    return report


def convolution(
    name: str,
    size: int,
    taps: int = 3,
    stride: int = 1,
    dilation: int = 1,
    same: bool = False,
    elements: tuple[str, str, str] = ("i8", "i8", "i32"),
) -> Program:
    """A convolution of one size along all axes, without padding or with `same`."""
    letters = [i for i in FORMS[name].split("->")[1] if i in "dhw"]
    rank, zeros = len(letters), dilation * (taps - 1) // 2 if same else 0
    sizes = {letter: (size, taps) for letter in letters}
    steps = [stride] * rank, [dilation] * rank, [(zeros, zeros)] * rank
    return named(name, sizes, *steps, elements=elements)
