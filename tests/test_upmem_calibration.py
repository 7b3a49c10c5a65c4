"""Cycles of kernels written in the `upmem` dialect against measurements on a real DPU.

`test_upmem_cost.py` compares the closed form with the same rows, given instruction counts. Here
the counts come from the simulator's own instruction selection, so these tests cover the whole way
from a kernel's text to its time.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upmem_programs import run

from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.report import KernelReport, Report
from cim_opt.tools import upmem_micro_kernels as measured

DATA = Path(__file__).parent / "data"
MACHINE = load_machine("upmem-1")


def launched(
    body: str, tasklets: int, arrays: list[tuple[int, Any]] | None = None
) -> tuple[KernelReport, Report]:
    """The report of one launch on one DPU, with arrays pushed to these MRAM offsets."""
    arrays = arrays or []
    types = [f"tensor<{len(value)}xi{8 * value.dtype.itemsize}>" for _, value in arrays]
    names = [f"%in{number}" for number in range(len(arrays))]
    pushes = [
        f"upmem.broadcast {name} to %set at {offset} : {type_}"
        for name, type_, (offset, _) in zip(names, types, arrays, strict=True)
    ]
    parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    text = f"""
    func.func @main({parameters}) {{
      %d = arith.constant 1 : index
      %set = upmem.alloc %d : !upmem.dpus
      {chr(10).join(pushes)}
      %t = upmem.launch @k on %set () : () -> !upmem.token
      upmem.wait %t : !upmem.token
      upmem.free %set : !upmem.dpus
      func.return
    }}
    upmem.kernel @k tasklets {tasklets} () {{
      {body}
      upmem.return
    }}
    """
    _, report = run(text, [value for _, value in arrays], MACHINE, addressing="compiled")
    return report.kernels[0], report


@pytest.mark.parametrize(
    ("tasklets", "expected", "within"), [(1, 12158, 0.01), (11, 12295, 0.02), (16, 17833, 0.02)]
)
def test_1104_instructions_a_tasklet(tasklets: int, expected: int, within: float) -> None:
    """100 iterations of nine additions and two of loop, and what is around them."""
    additions = "\n".join(f"%s{n + 1} = arith.addi %s{n}, %one : i32" for n in range(9))
    body = f"""
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 110 : index
      %one = arith.constant 1 : i32
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%s0 = %one) -> (i32) {{
        {additions}
        scf.yield %s9 : i32
      }}
      %x = arith.addi %r, %one : i32
    """
    kernel, _ = launched(body, tasklets)
    assert kernel.instructions == 1104 * tasklets
    assert kernel.cycles == pytest.approx(expected, rel=within)


def test_barriers_take_what_was_measured() -> None:
    rows = json.loads((DATA / "upmem_microbench.json").read_text())["barrier"]
    assert len(rows) == 6
    for tasklets, cycles in rows:
        many, _ = launched(measured.barriers(9), tasklets)
        one, _ = launched(measured.barriers(1), tasklets)
        assert (many.cycles - one.cycles) / 8 == pytest.approx(cycles, rel=0.06)


SLOTS = 32


def dma_cycles(operation: str, size: int, tasklets: int, transfers: int) -> float:
    """Cycles of an iteration, less those of an iteration with no transfer."""
    with_transfers, _ = launched(
        measured.dma(operation, size, transfers, tasklets, SLOTS), tasklets
    )
    without, _ = launched(measured.dma(operation, size, 0, tasklets, SLOTS), tasklets)
    return (with_transfers.cycles - without.cycles) / SLOTS


def test_dma_rows() -> None:
    """All 344 rows of the DMA benchmark."""
    rows = json.loads((DATA / "upmem_microbench.json").read_text())["dma"]
    errors: list[float] = []
    surely: list[float] = []
    for operation, size, tasklets, transfers, cycles in rows:
        error = abs(dma_cycles(operation, size, tasklets, transfers) / cycles - 1)
        errors.append(error)
        if tasklets >= 12 or size >= 512:
            surely.append(error)
    assert len(errors) == 344
    # Where DMA decides, every row. With few tasklets and small transfers rows depend on how
    # transfers fall in step with issue slots, which a closed form does not follow.
    assert max(surely) < 0.06
    assert np.mean(np.array(errors) < 0.06) >= 0.95
    assert np.mean(errors) < 0.022
    assert max(errors) < 0.12


def values(count: int, width: int) -> Any:
    return np.arange(count).astype(f"int{8 * width}")


def kernel_seconds(point: list[Any]) -> float:
    """Launch and kernel of one measured run."""
    kernel, width, tasklets, blocks, elements, rows, k, n, _ = point
    type_ = f"i{8 * width}"
    a = values(tasklets * blocks * elements, width)
    arrays = [(measured.A, a)]
    if kernel in ("vectorop", "reduceop"):
        arrays.append((measured.B, a))
    if kernel == "hst":
        a[:] = 256 + np.arange(len(a)) % 3840
    if kernel == "gemv":
        arrays = [
            (measured.A, values(tasklets * rows * k, width)),
            (measured.B, np.ones(k, a.dtype)),
        ]
        text = measured.gemv(type_, tasklets, rows, k, elements)
    elif kernel == "gemm":
        arrays = [
            (measured.A, values(tasklets * rows * k, width)),
            (measured.B, np.ones(k * n, a.dtype)),
        ]
        text = measured.gemm(type_, tasklets, rows, k, n, elements)
    else:
        text = getattr(measured, kernel)(type_, tasklets, blocks, elements)
    _, report = launched(text, tasklets, arrays)
    return report.launch_seconds + report.kernel_seconds


# Mean and largest relative error over the small measured runs of each kernel, and the widths of
# elements left out. What is left comes mostly from the instructions of one iteration, simulated
# against measured: sum of 8-byte values 9 against 10; selection of 2-byte values 5.5 against 6.5
# and of 8-byte values 9 against 8; histogram 24 against 26; matrix product 15 against 17 (a matrix
# of ones; the measured one is not known). The measured histogram of 2-byte values multiplies as
# 4-byte ones, which the simulated one has no reason to do.
KERNELS: dict[str, tuple[float, float, tuple[int, ...]]] = {
    "vectorop": (0.02, 0.05, ()),
    "reduceop": (0.03, 0.18, ()),
    "scan": (0.02, 0.11, ()),
    "sel": (0.08, 0.16, ()),
    "hst": (0.05, 0.14, (2,)),
    "gemv": (0.055, 0.13, ()),
    "gemm": (0.12, 0.13, ()),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_measured_kernels(kernel: str) -> None:
    points = json.loads((DATA / "upmem_kernels.json").read_text())["points"]
    mean, largest, left_out = KERNELS[kernel]
    own = [
        point
        for point in points
        if point[0] == kernel and _iterations(point) <= 8192 and point[1] not in left_out
    ]
    assert len(own) >= 3
    errors = [kernel_seconds(point) / (point[-1] / 1000) - 1 for point in own]
    assert np.mean(np.abs(errors)) < mean, errors
    assert np.max(np.abs(errors)) < largest, errors


def _iterations(point: list[Any]) -> int:
    """Iterations of the innermost loop, for one tasklet."""
    _, _, _, blocks, elements, rows, k, n, _ = point
    return blocks * elements if blocks else rows * k * max(1, n)
