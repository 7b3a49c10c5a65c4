"""Programs timed at full size from runs on a few DPUs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upmem_programs import module_of, small_machine
from xdsl.context import Context
from xdsl.dialects.func import FuncOp

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import TRANSFER_MODELS
from cim_opt.passes.pipelines import PatternToUpmemPipeline
from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.simulators.upmem_sample import Program, sampled_report, sampled_reports
from cim_opt.tools.load_module import full_context, parse_text

EXAMPLES = Path(__file__).parent.parent / "examples"
MACHINE = small_machine(24)
SHARE = 96
"""Elements of each DPU."""


def builder(name: str, arrays: Callable[[int], list[Any]]) -> Callable[[int], Program]:
    """An example with inputs for a number of DPUs."""

    def build(dpus: int) -> Program:
        module = parse_text((EXAMPLES / f"{name}.mlir").read_text(), name)
        context: Context = full_context()
        PatternToUpmemPipeline(machine="upmem-2560", dpus=dpus, tasklets=3).apply(context, module)
        entry = next(op.sym_name.data for op in module.ops if isinstance(op, FuncOp))
        return module, entry, arrays(dpus * SHARE)

    return build


PROGRAMS: dict[str, Callable[[int], list[Any]]] = {
    "vector_add": lambda n: [np.arange(n, dtype=np.int32)] * 2,
    "dot_product": lambda n: [np.tile([3, -5], n // 2).astype(np.int32)] * 2,
    "histogram": lambda n: [np.tile(np.arange(SHARE), n // SHARE).astype(np.int8)],
    "prefix_sum": lambda n: [np.ones(n, np.int32)],
    "select_above": lambda n: [np.tile([0, 100], n // 2).astype(np.int32), np.int32(50)],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sample_takes_what_the_whole_takes(name: str) -> None:
    build = builder(name, PROGRAMS[name])
    sampled = sampled_reports(build, MACHINE)
    module, entry, args = build(MACHINE.dpus)
    for transfer in TRANSFER_MODELS:
        _, whole = UpmemSimulator(MACHINE, transfer).run(module, entry, args)
        found = sampled[transfer]
        assert found.seconds == pytest.approx(whole.seconds, rel=1e-9)
        assert found.host_seconds == pytest.approx(whole.host_seconds, rel=1e-9)
        assert found.to_json_dict().keys() == whole.to_json_dict().keys()
        for part in ("host_to_dpu", "dpu_to_host", "launches", "transfer_model", "machine"):
            assert getattr(found, part) == getattr(whole, part)
        for few, all_ in zip(found.kernels, whole.kernels, strict=True):
            assert few == replace(all_, tasklet_balance=few.tasklet_balance)
            assert few.dpus == MACHINE.dpus


HOST_LOOP = """
func.func @main(%a: tensor<8xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %set = upmem.alloc %n : !upmem.dpus
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c1 {
    upmem.push %a[%c0] to %set at 0 count %c8 stride %c8 : tensor<8xi32>
  }
  func.return
}
"""

ONE_DPU = """
func.func @main(%a: tensor<8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %set = upmem.alloc %c1 : !upmem.dpus
  upmem.push %a[%c0] to %set at 0 count %c8 stride %c8 : tensor<8xi32>
  func.return
}
"""


@pytest.mark.parametrize(
    ("text", "samples", "message"),
    [
        (HOST_LOOP, (2, 4), "2 steps for 2 DPUs, of 4 for 4.*serial transfer"),
        (ONE_DPU, (2, 4), "uses 1 of 2 DPUs.*more elements"),
        (ONE_DPU, (4, 2), "samples of 4 and 2 DPUs.*they rise"),
        (ONE_DPU, (2, 25), "samples of 2 and 25 DPUs.*1 to 24"),
    ],
)
def test_what_no_sample_can_time(text: str, samples: tuple[int, int], message: str) -> None:
    def build(dpus: int) -> Program:
        args: list[Any] = [np.zeros(8, np.int32), dpus]
        return module_of(text), "main", args if text is HOST_LOOP else args[:1]

    with pytest.raises(UserError, match=message):
        sampled_report(build, MACHINE, samples=samples)
