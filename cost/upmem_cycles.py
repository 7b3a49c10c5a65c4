"""Cycles of a DPU: one closed form for issue, DMA latency and the DMA engine.

A kernel is cut at its barriers into phases. Within a phase three limits hold at once, and the
slowest tasklet of a DPU decides:

- a tasklet issues one instruction in `issue_distance` cycles and waits for its own transfers;
- a DPU issues one instruction a cycle, for all tasklets together;
- the one DMA engine of a DPU serves the transfers of all tasklets one after another.

Where two limits come close, tasklets queue. `_meet` says how much that costs. All constants are
in the machine file; they were fitted once to 344 DMA rows and 420 kernel times measured on a real
DPU, and `tests/test_upmem_cost.py` says how well they meet each.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine

Numbers = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]

# Transfers that a tasklet issues back to back when the caller does not know: between one input
# and a pair of inputs.
DEFAULT_BURST = 1.5

# Address updates, loop control and DMA issue of one block of a streaming loop: measured loops
# of one to three arrays take 10 to 18.
BLOCK_INSTRUCTIONS = 16


@dataclass(frozen=True, slots=True)
class PhaseCycles:
    """Cycles of one phase by cause, one entry a DPU; the causes add up to `total`.

    `issue`: cycles in which an instruction was issued. `latency`: too few tasklets to issue one
    every cycle, with start and drain. `dma`: waiting for transfers. `mutex`: waiting for a lock.
    `barrier`: the barrier that ends the phase.
    """

    issue: FloatArray
    latency: FloatArray
    dma: FloatArray
    mutex: FloatArray
    barrier: FloatArray

    @property
    def total(self) -> FloatArray:
        return self.issue + self.latency + self.dma + self.mutex + self.barrier


def phase_cycles(
    machine: UpmemMachine,
    instructions: Numbers,
    reads: Numbers = 0.0,
    read_bytes: Numbers = 0.0,
    writes: Numbers = 0.0,
    write_bytes: Numbers = 0.0,
    *,
    burst: Numbers = DEFAULT_BURST,
    critical: Numbers = 0.0,
    barrier: bool = False,
) -> PhaseCycles:
    """Cycles of one phase on each DPU.

    The counts are those of one tasklet in the phase, of shape (DPUs, tasklets), or anything that
    broadcasts to that; `instructions` must have the tasklet axis last. `read_bytes` and
    `write_bytes` are totals over the `reads` and `writes`. `burst`, of shape (DPUs,) or a scalar,
    is the mean number of transfers that a tasklet issues back to back (two inputs read, one
    output written: 1.5). `critical`, of shape (DPUs,), are the cycles that the busiest mutex
    is held (`critical_cycles`). `barrier` adds the barrier that ends the phase.
    The result has the shape of `instructions` without the tasklet axis.
    """
    issued = np.asarray(instructions, np.float64)
    _check_tasklets(machine, issued.shape[-1])
    count = np.add(reads, writes, dtype=np.float64)
    wait = _wait(machine, reads, read_bytes, writes, write_bytes)
    engine = _engine(machine, reads, read_bytes, writes, write_bytes)
    shape = np.broadcast_shapes(issued.shape, wait.shape)
    issued, count, wait, engine = (np.broadcast_to(a, shape) for a in (issued, count, wait, engine))

    pipeline = issued.sum(-1)
    plain = np.maximum(machine.issue_distance * issued.max(-1), pipeline)
    body = plain
    if wait.any():
        slowest = np.argmax(machine.issue_distance * issued + wait, axis=-1)[..., None]
        own = [np.take_along_axis(a, slowest, -1)[..., 0] for a in (issued, count, wait, engine)]
        body = _body(machine, own, plain, pipeline, engine.sum(-1), np.asarray(burst, np.float64))

    edges = _edges(machine, issued)
    mutex = np.maximum(np.asarray(critical, np.float64) - body, 0.0) + np.zeros_like(plain)
    last = barrier_cycles(machine, shape[-1]) if barrier else 0.0
    return PhaseCycles(
        issue=pipeline,
        latency=plain - pipeline + edges,
        dma=body - plain,
        mutex=mutex,
        barrier=np.zeros_like(plain) + last,
    )


def _wait(
    machine: UpmemMachine, reads: Numbers, read_bytes: Numbers, writes: Numbers, wbytes: Numbers
) -> FloatArray:
    """Cycles that a tasklet waits for its own transfers when nobody else uses the engine."""
    moved = np.add(read_bytes, wbytes, dtype=np.float64)
    return (
        np.multiply(reads, machine.dma_read_latency_cycles)
        + np.multiply(writes, machine.dma_write_latency_cycles)
        + moved * machine.dma_latency_cycles_per_byte
    )


def _engine(
    machine: UpmemMachine, reads: Numbers, read_bytes: Numbers, writes: Numbers, wbytes: Numbers
) -> FloatArray:
    """Cycles that the transfers keep the DMA engine busy."""
    return np.asarray(
        np.multiply(reads, machine.dma_read_engine_cycles)
        + np.multiply(read_bytes, machine.dma_read_engine_cycles_per_byte)
        + np.multiply(writes, machine.dma_write_engine_cycles)
        + np.multiply(wbytes, machine.dma_write_engine_cycles_per_byte)
    )


def _body(
    machine: UpmemMachine,
    own: list[FloatArray],
    plain: FloatArray,
    pipeline: FloatArray,
    engine: FloatArray,
    burst: FloatArray,
) -> FloatArray:
    """The three limits together. `own` is what the slowest tasklet does: instructions,
    transfers, cycles of waiting, cycles of the engine."""
    issued, count, wait, own_engine = own
    path = np.maximum(machine.issue_distance * issued + wait, 1.0)
    # After a transfer a tasklet waits for a free issue slot, the longer the busier the others are.
    busy = np.minimum((pipeline - issued) / path, 1.0)
    path = path + machine.dma_resume_cycles * count * busy
    # Alone on the engine there is nobody to queue behind. Single transfers, a whole loop apart,
    # fall into step and hardly queue; runs of back-to-back transfers get into each other's way.
    others = 1.0 - own_engine / np.maximum(engine, own_engine + (engine == 0.0))
    weight = machine.dma_queue_weight + machine.dma_burst_weight * (1.0 - 1.0 / burst)
    waiting = _meet(machine, path, engine, weight * others)
    # Issue alone never queues, so the more of the path is waiting the more issue gaps there are.
    gaps = np.sqrt(wait / path) * (1.0 - issued / np.maximum(pipeline, 1.0))
    return np.maximum(_meet(machine, waiting, pipeline, gaps), plain)


def _meet(machine: UpmemMachine, a: FloatArray, b: FloatArray, weight: FloatArray) -> FloatArray:
    """The larger of two limits, and `weight` times what their power norm adds to it."""
    large = np.maximum(a, b)
    ratio = np.minimum(a, b) / np.maximum(large, 1e-300)
    power = machine.combine_exponent
    return large * (1.0 + weight * ((1.0 + ratio**power) ** (1.0 / power) - 1.0))


def _edges(machine: UpmemMachine, issued: FloatArray) -> FloatArray:
    """Cycles to start the working tasklets one after another and to drain the pipeline."""
    working = np.count_nonzero(issued, axis=-1)
    skew = np.clip(working - 1, 0, machine.issue_distance - 1) * machine.tasklet_start_cycles
    return np.where(working > 0, skew + machine.pipeline_drain_cycles, 0.0)


def barrier_cycles(machine: UpmemMachine, tasklets: int) -> float:
    """Cycles of one barrier at which all `tasklets` arrive together, from measured rows."""
    _check_tasklets(machine, tasklets)
    return float(np.interp(tasklets, machine.barrier_tasklets, machine.barrier_cycles))


def critical_cycles(
    machine: UpmemMachine, tasklets: int, section_instructions: Numbers, sections: Numbers
) -> FloatArray:
    """Cycles that one mutex is held on a DPU, for `sections` critical sections of all tasklets.

    `section_instructions` are those between lock and unlock, without the two. A holder issues
    like any other tasklet, so a section takes (lock + instructions + unlock) * max(distance, T).
    """
    _check_tasklets(machine, tasklets)
    held = (
        machine.mutex_lock_instructions
        + machine.mutex_unlock_instructions
        + np.asarray(section_instructions, np.float64)
    )
    return np.asarray(held * max(machine.issue_distance, tasklets) * np.asarray(sections))


def streaming_cycles(
    machine: UpmemMachine,
    tasklets: int,
    instructions_per_element: float,
    read_bytes_per_element: float,
    write_bytes_per_element: float,
    block_elements: int,
    arrays_read: int,
    arrays_written: int,
    elements_per_tasklet: int,
    block_instructions: float = BLOCK_INSTRUCTIONS,
) -> float:
    """Cycles of one streaming loop on one DPU, all tasklets alike.

    Each tasklet takes its elements in blocks: it reads a block of every input, computes, and
    writes a block of every output. Bytes per element are totals over the arrays. A block of an
    array that is larger than the largest DMA takes several transfers.
    """
    if elements_per_tasklet <= 0:
        return 0.0
    blocks = -(-elements_per_tasklet // block_elements)

    def transfers(arrays: int, bytes_per_element: float) -> float:
        if arrays == 0:
            return 0.0
        block_bytes = block_elements * bytes_per_element / arrays
        return blocks * arrays * float(np.ceil(block_bytes / machine.dma_max_bytes))

    reads = transfers(arrays_read, read_bytes_per_element)
    writes = transfers(arrays_written, write_bytes_per_element)
    runs = blocks * ((arrays_read > 0) + (arrays_written > 0))
    issued = elements_per_tasklet * instructions_per_element + blocks * block_instructions
    cycles = phase_cycles(
        machine,
        np.full(tasklets, issued),
        reads,
        elements_per_tasklet * read_bytes_per_element,
        writes,
        elements_per_tasklet * write_bytes_per_element,
        burst=max((reads + writes) / runs, 1.0) if runs else DEFAULT_BURST,
    )
    return float(cycles.total)


def _check_tasklets(machine: UpmemMachine, tasklets: int) -> None:
    if not 1 <= tasklets <= machine.tasklets_max:
        raise UserError(
            f"{tasklets} tasklets on {machine.name}",
            f"a DPU runs 1 to {machine.tasklets_max} tasklets",
            "choose a number in that range",
        )
