"""Runs lowered programs with their kernels as compiled C, on the host of the simulator."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from cim_opt.dialects import upmem
from cim_opt.dialects.upmem_machine import machine_of
from cim_opt.lowering.translate_upmem_to_c import c_files
from cim_opt.simulators.reference import checked_arguments
from cim_opt.simulators.upmem import DpuSet, Token, UpmemEvaluator, UpmemSimulator
from cim_opt.simulators.upmem_account import Account

SHIM = Path(__file__).parent / "upmem_shim"
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")


def compiler() -> str:
    """The system's C compiler."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert found, "these tests compile C: install a C compiler (cc, gcc or clang)"
    return found


def compile_kernel(folder: Path, name: str, tasklets: int, *flags: str) -> ctypes.CDLL:
    """The shared library of a kernel's file in `folder`, with the shim."""
    library = folder / f"{name}.so"
    command = [compiler(), *FLAGS, *flags, "-shared", "-fPIC", f"-I{SHIM}", f"-I{folder}"]
    command += [f"-DNR_TASKLETS={tasklets}", "-Dmain=dpu_main", "-o", str(library)]
    command += [str(folder / f"{name}.c"), str(SHIM / "shim.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(library))
    loaded.shim_run.restype = ctypes.c_char_p
    loaded.shim_run.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    return loaded


class CompiledEvaluator(UpmemEvaluator):
    """A host that runs each kernel as C, DPU after DPU."""

    handlers: ClassVar = {
        **UpmemEvaluator.handlers,
        "upmem.launch": lambda self, op, args: self.launch(op, args),
    }

    def __init__(self, module: ModuleOp, folder: Path, flags: Sequence[str] = ()):
        machine = machine_of(module)
        super().__init__(module, machine, UpmemSimulator(machine), Account(machine, ["linear"]))
        self.libraries: dict[str, ctypes.CDLL] = {}
        kernels = [op for op in module.ops if isinstance(op, upmem.KernelOp)]
        for name, text in (c_files(module) if kernels else {}).items():
            (folder / name).write_text(text)
        for op in kernels:
            name, tasklets = op.sym_name.data, op.tasklets.value.data
            self.libraries[name] = compile_kernel(folder, name, tasklets, *flags)

    def launch(self, op: Operation, args: tuple[Any, ...]) -> Sequence[Any]:
        assert isinstance(op, upmem.LaunchOp)
        dpus: DpuSet = args[0]
        name = op.kernel.string_value()
        (kernel,) = [
            found
            for found in self.module.ops
            if isinstance(found, upmem.KernelOp) and found.sym_name.data == name
        ]
        library = self.libraries[name]
        _set_arguments(library, name, op, args[1:])
        extents = [
            _extent(array) for array in kernel.body.block.ops if isinstance(array, upmem.MramOp)
        ]
        size = max((stop for _, stop in extents), default=8)
        memory = np.zeros(size // 8 + 1, np.uint64).view(np.uint8)
        self._run_all(dpus, library, extents, memory)
        for start, stop in extents:
            dpus.mram.note_written(start, stop)
        return [Token(dpus, self.account_book.now)]

    def _run_all(
        self,
        dpus: DpuSet,
        library: ctypes.CDLL,
        extents: Sequence[tuple[int, int]],
        memory: Any,
    ) -> None:
        views = [(start, stop, _bytes(dpus, start, stop)) for start, stop in extents]
        for dpu in range(dpus.dpus):
            for start, stop, view in views:
                memory[start:stop] = view[dpu]
            error = library.shim_run(memory.ctypes.data, memory.size)
            assert error is None, error.decode()
            for start, stop, view in views:
                view[dpu] = memory[start:stop]


def _bytes(dpus: DpuSet, start: int, stop: int) -> Any:
    """A view (DPUs, bytes) of a part of MRAM."""
    region = dpus.mram.cover(start, stop)
    return region.view(np.dtype(np.uint8))[:, start - region.start : stop - region.start]


def _extent(array: upmem.MramOp) -> tuple[int, int]:
    attr = array.result.type
    assert isa(attr, MemRefType)
    start = array.offset.value.data
    return start, start + attr.get_shape()[0] * upmem.element_bytes(attr.element_type)


def _set_arguments(
    library: ctypes.CDLL, name: str, op: upmem.LaunchOp, values: Sequence[Any]
) -> None:
    """Writes the launch's arguments into the program's structure, laid out as C does."""
    fields: list[tuple[str, Any]] = []
    numbers: list[Any] = []
    for number, (value, given) in enumerate(zip(op.args, values, strict=True)):
        text = str(value.type)
        kinds: dict[str, Any] = {"f32": ctypes.c_float, "f64": ctypes.c_double}
        bits = 32 if text == "index" else max(int(text[1:]), 8) if text not in kinds else 0
        kind = kinds.get(text) or getattr(ctypes, f"c_uint{bits}")
        fields.append((f"a{number}", kind))
        numbers.append(float(given) if not bits else int(given) % (1 << bits))
    if not fields:
        return
    layout: Any = type("Arguments", (ctypes.Structure,), {"_fields_": fields})
    place: Any = layout.in_dll(library, f"{name}_args")
    for (field, _), number in zip(fields, numbers, strict=True):
        setattr(place, field, number)


def run_compiled(
    module: ModuleOp, entry: str, args: Sequence[Any], folder: Path, *flags: str
) -> list[Any]:
    """Results of a lowered program whose kernels run as C."""
    evaluator = CompiledEvaluator(module, folder, flags)
    with np.errstate(all="ignore"):
        values = checked_arguments(evaluator.function(entry), args)
        return [np.array(value)[()] for value in evaluator.call(entry, values)]
