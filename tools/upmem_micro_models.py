"""What the seven measured kernels take on one DPU, predicted from their text.

Each point's kernel is written for its parameters (`upmem_micro_kernels.py`), its instructions are
selected and counted from the text, and the cycle model times it. What the data decide (which share
of a selection is kept, steps of multiplications) comes from running the same kernel on the first
elements of the benchmark's own data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.cost.upmem_transfer import launch_seconds
from cim_opt.dialects.upmem import KernelOp
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.upmem_kernel import compile_kernel
from cim_opt.simulators.upmem_run import KernelCounts
from cim_opt.simulators.upmem_selection import Addressing
from cim_opt.simulators.upmem_static import Arrays, Habits, observe, run_kernel, static_counts
from cim_opt.tools import upmem_micro_kernels as kernels
from cim_opt.tools.load_module import parse_text
from cim_opt.tools.upmem_points import Model, Parameters

MACHINE = "upmem-1"
ADDRESSING: Addressing = "compiled"

WIDTHS = {"uint16_t": 2, "uint32_t": 4, "uint64_t": 8}

SAMPLE = {"tasklets": 2, "blocks_per_tasklet": 2, "rows_per_tasklet": 8, "elems_per_block": 16}
"""Sizes of the run that says what the data decide; K and N are one block."""


def kernel_of(kernel: kernels.MicroKernel) -> KernelOp:
    """The parsed kernel."""
    found = parse_text(kernel.text(), "kernel.mlir").body.block.first_op
    assert isinstance(found, KernelOp)
    return found


def simulated(kernel: kernels.MicroKernel, arrays: Arrays) -> KernelCounts:
    """What the simulator counts of a kernel when it runs it on its data."""
    machine = load_machine(MACHINE)
    code = compile_kernel(kernel_of(kernel), machine, ADDRESSING)
    return run_kernel(code, machine, arrays, tuple(kernel.arguments.values()))


def streaming_text(name: str, p: Parameters) -> kernels.MicroKernel:
    """The kernel that goes through blocks, for its parameters."""
    builder: Callable[[str, int, int, int], kernels.MicroKernel] = getattr(kernels, name)
    return builder(_type(p), p["tasklets"], p["blocks_per_tasklet"], p["elems_per_block"])


def gemv_text(_: str, p: Parameters) -> kernels.MicroKernel:
    """The matrix-vector product for its parameters."""
    return kernels.gemv(
        _type(p), p["tasklets"], p["rows_per_tasklet"], p["K"], p["elems_per_block"]
    )


def gemm_text(_: str, p: Parameters) -> kernels.MicroKernel:
    """The matrix product for its parameters."""
    sizes = (p["tasklets"], p["rows_per_tasklet"], p["K"], p["N"], p["elems_per_block"])
    return kernels.gemm(_type(p), *sizes)


def _type(p: Parameters) -> str:
    return f"i{8 * WIDTHS[p['dtype']]}"


def _counting(count: int, p: Parameters) -> npt.NDArray[Any]:
    return np.arange(count).astype(f"int{8 * WIDTHS[p['dtype']]}")


def streaming_data(name: str, p: Parameters) -> Arrays:
    """The benchmark's inputs: numbers in order; for the histogram what its bins spread."""
    total = p["tasklets"] * p["blocks_per_tasklet"] * p["elems_per_block"]
    if name == "hst":
        return [(kernels.A, 256 + _counting(total, p) % 3840)]
    return [(kernels.A, _counting(total, p)), (kernels.B, _counting(total, p))]


def matrix_data(name: str, p: Parameters) -> Arrays:
    """The benchmark's inputs: numbers in order, and a constant.

    The product with a vector takes ones. The constant of the matrix product is not published; what
    is measured takes multiplications of two steps, so it has two bits.
    """
    rows, columns = p["tasklets"] * p["rows_per_tasklet"], p.get("N", 1)
    constant = np.full_like(_counting(p["K"] * columns, p), 2 if name == "gemm" else 1)
    return [(kernels.A, _counting(rows * p["K"], p)), (kernels.B, constant)]


Text = Callable[[str, Parameters], kernels.MicroKernel]
Data = Callable[[str, Parameters], Arrays]


@cache
def _habits(name: str, text: Text, data: Data, dtype: str, addressing: Addressing) -> Habits:
    """What the data of a kernel decide, from a run on few of them."""
    block = SAMPLE["elems_per_block"]
    p = SAMPLE | {"dtype": dtype, "K": block, "N": block}
    kernel = text(name, p)
    machine, sizes = load_machine(MACHINE), tuple(kernel.arguments.values())
    return observe(kernel_of(kernel), machine, data(name, p), addressing, sizes)


def _seconds(name: str, text: Text, data: Data, p: Parameters) -> float:
    machine = load_machine(MACHINE)
    size = p["elems_per_block"] * WIDTHS[p["dtype"]]
    if size > machine.dma_max_bytes or size % machine.dma_align_bytes:
        raise UserError(
            f"{name} with blocks of {size} bytes",
            f"a transfer moves a multiple of {machine.dma_align_bytes} bytes, "
            f"at most {machine.dma_max_bytes}",
            "give it another 'elems_per_block'",
        )
    kernel = text(name, p)
    habits = _habits(name, text, data, p["dtype"], ADDRESSING)
    counts = static_counts(
        kernel_of(kernel), machine, habits, ADDRESSING, tuple(kernel.arguments.values())
    )
    cycles = float(counts.total[0])
    return launch_seconds(machine, "measured", 1) + cycles / machine.clock_hz


def _streaming(name: str) -> Model:
    def workload(p: Parameters) -> tuple[Any, ...]:
        return p["dtype"], p["tasklets"] * p["blocks_per_tasklet"] * p["elems_per_block"]

    return Model(
        ("tasklets", "blocks_per_tasklet", "elems_per_block"),
        {"dtype": tuple(WIDTHS), "operation": ("ADD", None)},
        lambda p: _seconds(name, streaming_text, streaming_data, p),
        workload,
    )


def _matrix(name: str, text: Text, sizes: tuple[str, ...]) -> Model:
    def seconds(p: Parameters) -> float:
        for size in sizes:
            if p[size] % p["elems_per_block"]:
                raise UserError(
                    f"{name} with {size} = {p[size]} and blocks of {p['elems_per_block']} elements",
                    "the measured kernel goes through whole blocks",
                    f"make {size} a multiple of the block",
                )
        return _seconds(name, text, matrix_data, p)

    def workload(p: Parameters) -> tuple[Any, ...]:
        return (
            p["dtype"],
            p["tasklets"] * p["rows_per_tasklet"],
            *(p[size] for size in sizes),
        )

    return Model(
        ("tasklets", "rows_per_tasklet", *sizes, "elems_per_block"),
        {"dtype": ("uint32_t", "uint16_t", "uint64_t")},
        seconds,
        workload,
    )


MODELS: dict[str, Model] = {
    **{name: _streaming(name) for name in ("vectorop", "reduceop", "scan", "sel", "hst")},
    "gemv": _matrix("gemv", gemv_text, ("K",)),
    "gemm": _matrix("gemm", gemm_text, ("K", "N")),
}
"""By kernel name."""
