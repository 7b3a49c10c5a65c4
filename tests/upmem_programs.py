"""Helpers for tests of the UPMEM simulator: programs from text, and machines of any size."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from cim_opt.hardware.upmem import UpmemMachine, load_machine
from cim_opt.simulators.report import Report
from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.tools.load_module import parse_text

W = "#upmem<space wram>"
M = "#upmem<space mram>"


def module_of(text: str) -> ModuleOp:
    """A verified module. `$W` and `$M` in the text are the memory spaces."""
    return parse_text(text.replace("$W", W).replace("$M", M), "kernel.mlir")


def small_machine(dpus: int = 4, **changes: Any) -> UpmemMachine:
    """upmem-2560 with fewer DPUs, and other changes."""
    values = load_machine("upmem-2560").to_dict() | {"dpus": dpus, "dpus_per_rank": 1} | changes
    return UpmemMachine.from_dict(values)


def run(
    text: str, args: Sequence[Any], machine: UpmemMachine | None = None, **options: Any
) -> tuple[list[Any], Report]:
    """Results and report of function @main."""
    simulator = UpmemSimulator(machine or small_machine(), **options)
    return simulator.run(module_of(text), "main", args)


def run_kernel(
    body: str,
    inputs: Sequence[np.ndarray[Any, Any]] = (),
    output: tuple[str, int] | None = None,
    *,
    dpus: int = 1,
    tasklets: int = 1,
    machine: UpmemMachine | None = None,
    **options: Any,
) -> tuple[Any, Report]:
    """Runs one kernel on `dpus` DPUs and gives its output as (DPUs, elements), and the report.

    Input i, split evenly over the DPUs, is at byte i * 65536 of MRAM; `output` (element type,
    elements a DPU) is pulled from byte 1048576.
    """
    types = [f"tensor<{len(value)}x{_TYPES[value.dtype.name]}>" for value in inputs]
    names = [f"%in{number}" for number in range(len(inputs))]
    lines = [
        f"func.func @main({', '.join(f'{n}: {t}' for n, t in zip(names, types, strict=True))})"
        + (f" -> tensor<{output[1] * dpus}x{output[0]}> {{" if output else " {"),
        f"%d = arith.constant {dpus} : index",
        "%zero = arith.constant 0 : index",
        "%set = upmem.alloc %d : !upmem.dpus",
    ]
    for number, (name, type_) in enumerate(zip(names, types, strict=True)):
        count = len(inputs[number]) // dpus
        lines += [
            f"%n{number} = arith.constant {count} : index",
            f"upmem.push {name}[%zero] to %set at {number * 65536} count %n{number} "
            f"stride %n{number} : {type_}",
        ]
    lines += [
        "%t = upmem.launch @k on %set () : () -> !upmem.token",
        "upmem.wait %t : !upmem.token",
    ]
    result = f"tensor<{output[1] * dpus}x{output[0]}>" if output else ""
    if output:
        lines += [
            f"%e = tensor.empty() : {result}",
            f"%count = arith.constant {output[1]} : index",
            f"%r = upmem.pull %set at 1048576 count %count into %e[%zero] : {result}",
        ]
    lines += ["upmem.free %set : !upmem.dpus"]
    lines += [f"func.return %r : {result}" if output else "func.return", "}"]
    kernel = f"upmem.kernel @k tasklets {tasklets} () {{\n{body}\nupmem.return\n}}"
    machine = machine or small_machine(dpus)
    results, report = run("\n".join([*lines, kernel]), list(inputs), machine, **options)
    return (results[0].reshape(dpus, -1) if output else None), report


_TYPES = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float32": "f32",
}


RNG = np.random.default_rng(7)


def numbers(count: int, dtype: str = "int32") -> Any:
    """Random numbers over the whole range of a type."""
    if dtype == "bool":
        return RNG.integers(0, 2, count).astype(np.bool_)
    if dtype == "float32":
        return RNG.standard_normal(count).astype(np.float32)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
