"""Cycles event by event: against the closed form, the simulator uPIMulator, and by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upmem_programs import run, small_machine

from cim_opt.cost import upmem_events
from cim_opt.cost.upmem_cycles import phase_cycles
from cim_opt.cost.upmem_events import Step, event_cycles
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators import upmem_trace
from cim_opt.simulators.report import Report
from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.simulators.upmem_kernel import compile_kernel
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_static import observe, static_counts
from cim_opt.simulators.upmem_trace import TraceRun
from cim_opt.tools import upmem_micro_models as models

MACHINE = load_machine("upmem-1")
UPIMULATOR = load_machine("upmem-upimulator")
DATA = Path(__file__).parent / "data" / "upmem_upimulator.json"


# -- by hand ---------------------------------------------------------------------------------------


def test_one_tasklet_issues_once_in_eleven_cycles() -> None:
    cycles = event_cycles(MACHINE, [[Step("run", 100)]])
    assert cycles.issue == 100
    assert cycles.total == 1 + 99 * 11 + 14


def test_many_tasklets_share_the_slots() -> None:
    cycles = event_cycles(MACHINE, [[Step("run", 1000)]] * 16)
    assert cycles.issue == 16_000
    assert 16_000 < cycles.total < 16_000 + 200


def test_a_transfer_takes_its_latency() -> None:
    machine = UPIMULATOR
    cycles = event_cycles(machine, [[Step("run", 2), Step("read", 8), Step("run", 1)]])
    # The transfer starts 11 cycles after the second instruction, and takes 18.9 + 8 * 0.694.
    assert cycles.total == 11 + 11 + 25 + 1 + 14
    assert cycles.dma > 0


def test_transfers_queue_for_the_engine() -> None:
    """Eight tasklets that only transfer take what the engine takes, one after another."""
    steps = [Step("read", 2048)] * 10
    cycles = event_cycles(MACHINE, [steps] * 8)
    engine = 80 * (MACHINE.dma_read_engine_cycles + 2048 * MACHINE.dma_read_engine_cycles_per_byte)
    assert cycles.total == pytest.approx(engine, rel=0.01)


def test_a_barrier_waits_for_the_last_tasklet() -> None:
    def one(early: int) -> int:
        steps = [[Step("run", n), Step("barrier"), Step("run", 10)] for n in (early, 500)]
        return event_cycles(MACHINE, steps).total

    assert one(3) == one(400)
    # 500 instructions, the second tasklet's start, the barrier, 10 instructions.
    assert one(3) == pytest.approx(500 * 11 + 12 + 265 + 10 * 11 + 14, abs=25)


def test_a_mutex_is_held_by_one() -> None:
    section = [Step("run", 1), Step("lock", 3), Step("run", 20), Step("unlock", 3)]
    alone = event_cycles(MACHINE, [section * 5])
    both = event_cycles(MACHINE, [section * 5] * 2)
    other = event_cycles(
        MACHINE, [section * 5, [Step(s.kind, s.amount + (s.kind != "run")) for s in section * 5]]
    )
    assert alone.mutex == other.mutex == 0
    assert both.mutex > 50  # attempts
    assert both.total > 1.8 * alone.total > 1.7 * other.total


def test_tasklets_that_do_nothing_end_at_once() -> None:
    assert event_cycles(MACHINE, [[], []]).total == 0


@pytest.mark.parametrize("seed", range(40))
def test_skipped_rounds_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)

    def steps() -> list[Step]:
        found: list[Step] = []
        for _ in range(random.integers(1, 12)):
            kind = random.choice(["run", "read", "write", "lock"])
            found.append(Step("run", int(random.integers(1, 300))))
            if kind == "lock":
                mutex = int(random.integers(2))
                found += [Step("lock", mutex), Step("run", 7), Step("unlock", mutex)]
            elif kind != "run":
                found.append(Step(kind, 8 * int(random.integers(1, 256))))
        return [*found, Step("barrier"), Step("run", int(random.integers(1, 90)))]

    tasklets = [steps() for _ in range(random.integers(1, 25))]
    fast = event_cycles(MACHINE, tasklets)

    def skip_nothing(_: object) -> None:
        pass

    monkeypatch.setattr(upmem_events, "_skip", skip_nothing)
    assert fast == event_cycles(MACHINE, tasklets)


# -- against uPIMulator ----------------------------------------------------------------------------


def upimulator_steps(row: list[Any]) -> list[list[Step]]:
    """The steps of a kernel that uPIMulator ran, by its name."""
    kernel, tasklets, instructions, read_bytes, write_bytes, _ = row
    own = instructions // tasklets
    if kernel.startswith("alu_chain"):
        return [[Step("run", own)]] * tasklets
    if kernel.startswith("mutex"):
        # 50 sections; attempts are among the instructions that it counts.
        inside, outside = (int(number) for number in kernel.split("_")[1:])
        section = [Step("run", outside + 2), Step("lock"), Step("run", inside + 1), Step("unlock")]
        return [[Step("run", 3), *section * 50]] * tasklets
    if kernel.startswith("dma"):
        size, kind = int(kernel.split("_")[2]), "read" if read_bytes else "write"
        move = [Step("run", 3), Step(kind, size)]
        return [[*move * 16, Step("run", own - 48)]] * tasklets
    size = int(kernel.rsplit("_b", 1)[1])
    blocks = write_bytes // size
    count = instructions // blocks
    block = [Step("run", 4), Step("read", size), Step("run", 2), Step("read", size)]
    block += [Step("run", count - 9), Step("write", size), Step("run", 3)]
    return [block * len(range(t, blocks, tasklets)) for t in range(tasklets)]


ROWS = json.loads(DATA.read_text())["rows"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}-{row[-1]}")
def test_upimulator(row: list[Any]) -> None:
    cycles = event_cycles(UPIMULATOR, upimulator_steps(row)).total
    assert cycles == pytest.approx(row[-1], rel=0.05)


# -- against the closed form -----------------------------------------------------------------------


@pytest.mark.parametrize("tasklets", [1, 2, 4, 8, 11, 16, 24])
@pytest.mark.parametrize("size", [64, 512, 2048])
@pytest.mark.parametrize("instructions", [10, 300, 3000])
def test_one_stream_agrees_with_the_closed_form(
    tasklets: int, size: int, instructions: int
) -> None:
    blocks = 40
    steps = [Step("run", instructions), Step("read", size)] * blocks
    closed = phase_cycles(
        MACHINE, np.full(tasklets, blocks * instructions), blocks, blocks * size, burst=1.0
    )
    event = event_cycles(MACHINE, [steps] * tasklets).total
    assert event == pytest.approx(float(closed.total), rel=0.03)


def both(kernel: str, p: dict[str, Any]) -> tuple[float, float]:
    """Cycles of a measured kernel event by event, and in closed form."""
    text, data = {
        "gemv": (models.gemv_text, models.matrix_data),
        "gemm": (models.gemm_text, models.matrix_data),
    }.get(kernel, (models.streaming_text, models.streaming_data))
    micro = text(kernel, p)
    sizes, arrays = tuple(micro.arguments.values()), data(kernel, p)
    op = models.kernel_of(micro)
    code = compile_kernel(op, MACHINE, "compiled", traced=True)
    mram = Mram(1, MACHINE.mram_bytes)
    for offset, values in arrays:
        mram.broadcast(values, offset)
    launch = TraceRun(MACHINE, mram, code.tasklets)
    code.function(launch, *sizes)
    event = launch.finish()
    habits = observe(op, MACHINE, arrays, "compiled", sizes)
    closed = static_counts(op, MACHINE, habits, "compiled", sizes)
    assert event.instructions == pytest.approx(closed.instructions, rel=4e-3)
    assert (event.read_bytes, event.write_bytes) == (closed.read_bytes, closed.write_bytes)
    return float(event.total[0]), float(closed.total[0])


KERNELS = ("vectorop", "reduceop", "scan", "sel", "hst", "gemv")


@pytest.mark.parametrize("kernel", KERNELS)
def test_measured_kernels_agree_with_the_closed_form(kernel: str) -> None:
    differences: list[float] = []
    for tasklets in (1, 2, 4, 8, 16):
        p = {"dtype": "uint32_t", "tasklets": tasklets, "elems_per_block": 32}
        p |= {"blocks_per_tasklet": 64, "rows_per_tasklet": 16, "K": 64}
        event, closed = both(kernel, p)
        differences.append(event / closed - 1)
    # Where two limits meet, tasklets in step with each other queue more, or less, than on average.
    assert np.mean(np.abs(differences)) < 0.02, differences
    assert sum(abs(difference) < 0.03 for difference in differences) >= 4, differences
    assert np.max(np.abs(differences)) < 0.05, differences


# -- in the simulator ------------------------------------------------------------------------------

SUM = """
  func.func @main(%x: tensor<256xi32>) -> tensor<2xi32> {
    %c0 = arith.constant 0 : index
    %d = arith.constant 2 : index
    %n = arith.constant 128 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %set = upmem.alloc %d : !upmem.dpus
    upmem.push %x[%c0] to %set at 0 count %n stride %n : tensor<256xi32>
    %t = upmem.launch @k on %set () : () -> !upmem.token
    upmem.wait %t : !upmem.token
    %e = tensor.empty() : tensor<2xi32>
    upmem.free %set : !upmem.dpus
    func.return %e : tensor<2xi32>
  }
  upmem.kernel @k tasklets 4 () {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %a = upmem.mram 0 : memref<128xi32, $M>
    %w = upmem.wram : memref<32xi32, $W>
    %s = upmem.wram shared : memref<2xi32, $W>
    %t = upmem.tasklet_id : index
    %at = arith.muli %t, %c32 : index
    upmem.mram_read %a[%at] to %w[%c0] count %c32 : memref<128xi32, $M>, memref<32xi32, $W>
    %sum = scf.for %i = %c0 to %c32 step %c1 iter_args(%p = %zero) -> (i32) {
      %x = memref.load %w[%i] : memref<32xi32, $W>
      %q = arith.addi %p, %x : i32
      scf.yield %q : i32
    }
    upmem.barrier
    upmem.critical %c0 {
      %old = memref.load %s[%c0] : memref<2xi32, $W>
      %new = arith.addi %old, %sum : i32
      memref.store %new, %s[%c0] : memref<2xi32, $W>
    }
    upmem.return
  }
"""


def simulated(cycles: str) -> Report:
    values = np.arange(256, dtype=np.int32)
    report = run(SUM, [values], small_machine(), cycles=cycles)[1]
    assert report.cycle_model == cycles
    assert ("cycle model event" in report.to_text()) == (cycles == "event")
    return report


def test_the_simulator_takes_both() -> None:
    closed, event = simulated("closed").kernels[0], simulated("event").kernels[0]
    assert event.instructions == closed.instructions
    assert event.cycles != closed.cycles
    assert event.cycles == pytest.approx(closed.cycles, rel=0.15)
    assert sum(event.cycles_by_cause.values()) == pytest.approx(event.cycles)
    assert all(value > 0 for value in event.cycles_by_cause.values())


def test_too_many_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upmem_trace, "MOST_STEPS", 20)
    with pytest.raises(UserError) as caught:
        simulated("event")
    assert caught.value.message() == (
        "kernel @k takes more than 20 steps; "
        "so many transfers, critical sections and barriers are simulated one by one; "
        "use fewer elements or DPUs, or the closed form (--cycles closed)"
    )


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        UpmemSimulator(MACHINE, cycles="exact")
    assert caught.value.message() == "unknown cycle model 'exact'; use one of closed, event"
