"""Cycles of kernels written in the `upmem` dialect against measurements on a real DPU.

`test_upmem_cost.py` compares the closed form with measured rows, given instruction counts. Here
the counts come from the simulator's own instruction selection, so these tests cover the whole way
from a kernel's text to its time. Whole programs: `test_bench_upmem_accuracy.py`.
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
