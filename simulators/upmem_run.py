"""What the generated code of a kernel calls while it runs: memory, transfers, counting, phases.

A kernel is cut at its barriers into phases. Instructions and transfers are counted for each lane
of a phase; at the barrier, and at the end of the kernel, `cost.upmem_cycles` turns the counts
into cycles of each DPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.cost.upmem_cycles import critical_cycles, phase_cycles
from cim_opt.cost.upmem_instructions import div_instructions, mul_instructions
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.simulators import upmem_dma
from cim_opt.simulators.upmem_dma import MramArray
from cim_opt.simulators.upmem_lanes import Loop, Mask, Tally, Values, cut
from cim_opt.simulators.upmem_memory import Lanes, PrivateBuffer, SharedBuffer
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_races import MramWatch
from cim_opt.simulators.upmem_site import Site, first_lane, value_at

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[float, str], None]

PROGRESS_SECONDS = 0.2
CAUSES = ("issue", "latency", "dma", "mutex", "barrier")


class Counts:
    """Instructions and transfers of each lane in one phase, or in one critical section.

    `runs` are transfers that no other transfer of the same block comes right before.
    """

    __slots__ = ("instructions", "read_bytes", "reads", "runs", "write_bytes", "writes")

    def __init__(self) -> None:
        for name in Counts.__slots__:
            setattr(self, name, Tally())

    instructions: Tally
    reads: Tally
    read_bytes: Tally
    writes: Tally
    write_bytes: Tally
    runs: Tally


@dataclass
class KernelCounts:
    """What one launch did, one entry a DPU (cycles) or a lane (instructions)."""

    instructions: npt.NDArray[np.int64]
    cycles: dict[str, FloatArray]
    read_bytes: int = 0
    write_bytes: int = 0
    held: dict[int, FloatArray] = field(default_factory=dict[int, FloatArray])

    @property
    def total(self) -> FloatArray:
        """Cycles of each DPU."""
        return np.add.reduce([self.cycles[cause] for cause in CAUSES])


class KernelRun:
    """One launch of a kernel on `dpus` DPUs of `tasklets` tasklets each."""

    def __init__(
        self,
        machine: UpmemMachine,
        mram: Mram,
        tasklets: int,
        progress: Progress | None = None,
        title: str = "",
    ):
        self.machine = machine
        self.memory = mram
        self.dpus = mram.dpus
        self.tasklets = tasklets
        self.lanes = Lanes.all(self.dpus, tasklets)
        self.counts = Counts()
        self.phase = 0
        self.watches: dict[int, MramWatch] = {}
        self.shared_buffers: list[SharedBuffer] = []
        self.arrays: list[MramArray] = []
        self.held: dict[int, FloatArray] = {}
        self.result = KernelCounts(
            np.zeros((self.dpus, tasklets), np.int64),
            {cause: np.zeros(self.dpus) for cause in CAUSES},
        )
        self._progress = progress
        self._title = title

    # -- memory --------------------------------------------------------------------------------

    def mram(
        self, offset: int, length: int, dtype: np.dtype[Any], watched: frozenset[int]
    ) -> MramArray:
        """The MRAM array at a byte offset; `watched` are the phases that write to it."""
        watch = self.watches.setdefault(offset, MramWatch(offset, self.dpus))
        array = MramArray(self.memory, offset, length, dtype, watched, watch)
        self.arrays.append(array)
        return array

    def private(self, length: int, dtype: np.dtype[Any]) -> PrivateBuffer:
        """A WRAM buffer for each tasklet."""
        return PrivateBuffer(length, dtype, self.dpus, self.tasklets)

    def shared(self, length: int, dtype: np.dtype[Any], watched: frozenset[int]) -> SharedBuffer:
        """A WRAM buffer for each DPU; `watched` are the phases that write to it."""
        buffer = SharedBuffer(length, dtype, self.dpus, watched)
        self.shared_buffers.append(buffer)
        return buffer

    def read(
        self,
        array: MramArray,
        index: Values,
        buffer: PrivateBuffer | SharedBuffer,
        at: Values,
        count: Values,
        mask: Mask,
        first: bool,
        site: Site,
    ) -> None:
        """DMA from MRAM; `first` when it is the first of a run of transfers."""
        move = upmem_dma.move
        move(self.machine, self.lanes, array, index, buffer, at, count, mask, False, site)
        self.counts.reads.add(1, mask)
        self.counts.read_bytes.add(count * array.size, mask)
        if first:
            self.counts.runs.add(1, mask)

    def write(
        self,
        array: MramArray,
        index: Values,
        buffer: PrivateBuffer | SharedBuffer,
        at: Values,
        count: Values,
        mask: Mask,
        first: bool,
        site: Site,
    ) -> None:
        """DMA to MRAM."""
        move = upmem_dma.move
        move(self.machine, self.lanes, array, index, buffer, at, count, mask, True, site)
        self.counts.writes.add(1, mask)
        self.counts.write_bytes.add(count * array.size, mask)
        if first:
            self.counts.runs.add(1, mask)

    # -- counting ------------------------------------------------------------------------------

    def issue(self, instructions: int, times: Values, mask: Mask) -> None:
        """Counts `instructions`, `times` over, on the lanes of the mask."""
        self.counts.instructions.add(instructions * times, mask)

    def multiply(self, a: Values, b: Values, bits: int, mask: Mask) -> None:
        """Counts a software multiplication by the operands it sees."""
        self._issue_array(mul_instructions(a, b, bits), mask)

    def divide(self, a: Values, b: Values, bits: int, signed: bool, extra: int, mask: Mask) -> None:
        """Counts a software division by the operands it sees."""
        self._issue_array(div_instructions(a, b, bits, signed) + extra, mask)

    def _issue_array(self, amount: Any, mask: Mask) -> None:
        self.counts.instructions.add(amount if np.ndim(amount) else int(amount), mask)

    # -- control -------------------------------------------------------------------------------

    def loop(self, lower: Values, upper: Values, step: Values, mask: Mask, site: Site) -> Loop:
        """An execution of an `scf.for`. UserError when a step is not positive."""
        bad = np.asarray(step) <= 0
        if bad.any():
            lane = first_lane(np.atleast_2d(bad), mask, self.lanes.shape)
            if lane is not None:
                number = int(value_at(step, *lane))
                raise site.error(
                    lane[0],
                    self.lanes.tasklet_in(lane[1]),
                    f"step {number}",
                    "a loop counts up, by at least 1",
                    "count upwards and subtract inside the loop",
                )
        return Loop(lower, upper, step, mask)

    def steps(self, loop: Loop) -> Iterator[tuple[Values, Mask]]:
        """The iterations of a loop, telling how far it is."""
        if self._progress is None:
            yield from loop
            return
        told = time.monotonic()
        for number, step in enumerate(loop):
            now = time.monotonic()
            if now - told > PROGRESS_SECONDS:
                self._progress(number / loop.count, self._title)
                told = now
            yield step

    def critical(
        self,
        mutex: Values,
        mask: Mask,
        body: Callable[..., None],
        captured: tuple[Values, ...],
        site: Site,
    ) -> None:
        """Runs a critical section, one tasklet of each DPU after another."""
        outer_lanes, outer_counts = self.lanes, self.counts
        self._check_mutex(mutex, mask, site)
        sections: list[Counts] = []
        try:
            for tasklet in range(self.tasklets):
                self.counts = Counts()
                sections.append(self.counts)
                running = None if mask is None else cut(mask, tasklet)
                if running is not None and not running.any():
                    continue
                self.lanes = outer_lanes.one(tasklet, cut(mutex, tasklet))
                body(self, running, *(cut(value, tasklet) for value in captured))
        finally:
            self.lanes, self.counts = outer_lanes, outer_counts
        self._add_sections(sections, mutex, mask)

    def _check_mutex(self, mutex: Values, mask: Mask, site: Site) -> None:
        last = self.machine.mutexes - 1
        number, column, value = self.lanes.active(
            mask, self.lanes.number, self.lanes.tasklet_id, mutex
        )
        bad = (value < 0) | (value > last)
        if bad.any():
            lane = int(np.argmax(bad))
            raise site.error(
                int(number[lane]) // self.tasklets,
                int(column[lane]),
                f"mutex {int(value[lane])}",
                f"{self.machine.name} has mutexes 0 to {last}",
                "use one of these",
            )

    def _add_sections(self, sections: list[Counts], mutex: Values, mask: Mask) -> None:
        """Adds what the sections counted, and how long they held their mutex."""
        columns: dict[str, npt.NDArray[np.int64]] = {}
        for name in Counts.__slots__:
            tallies: list[Tally] = [getattr(section, name) for section in sections]
            if all(tally.is_zero() for tally in tallies):
                columns[name] = np.zeros((1, 1), np.int64)
                continue
            columns[name] = np.hstack([tally.array(self.dpus, 1) for tally in tallies])
            getattr(self.counts, name).add_array(columns[name])
        machine = self.machine
        entered = self.lanes.spread(True if mask is None else mask)
        held = critical_cycles(machine, self.tasklets, columns["instructions"], entered)
        held = held + columns["reads"] * machine.dma_read_latency_cycles
        held = held + columns["writes"] * machine.dma_write_latency_cycles
        moved = columns["read_bytes"] + columns["write_bytes"]
        held = held + moved * machine.dma_latency_cycles_per_byte
        mutexes = self.lanes.spread(mutex)
        for number in np.unique(mutexes[entered]):
            cycles = np.where(mutexes == number, held, 0.0).sum(axis=1)
            self.held[int(number)] = self.held.get(int(number), 0.0) + cycles

    def barrier(self) -> None:
        """Ends a phase at a barrier."""
        self._end_phase(barrier=True)
        self.phase += 1
        for watch in self.watches.values():
            watch.reset()
        for buffer in self.shared_buffers:
            buffer.start_phase(self.phase)
        for array in self.arrays:
            array.start_phase(self.phase)

    def finish(self) -> KernelCounts:
        """Ends the kernel; what it did."""
        self._end_phase(barrier=False)
        return self.result

    def _end_phase(self, barrier: bool) -> None:
        counts, shape = self.counts, self.lanes.shape
        instructions = counts.instructions.array(*shape)
        reads, writes = counts.reads.array(*shape), counts.writes.array(*shape)
        read_bytes, write_bytes = counts.read_bytes.array(*shape), counts.write_bytes.array(*shape)
        runs = counts.runs.array(*shape).sum(axis=1)
        critical = np.max([*self.held.values(), np.zeros(self.dpus)], axis=0)
        cycles = phase_cycles(
            self.machine,
            instructions,
            reads,
            read_bytes,
            writes,
            write_bytes,
            burst=(reads + writes).sum(axis=1) / np.maximum(runs, 1) + (runs == 0),
            critical=critical,
            barrier=barrier,
        )
        for cause in CAUSES:
            self.result.cycles[cause] += getattr(cycles, cause)
        self.result.instructions += instructions
        self.result.read_bytes += int(read_bytes.sum())
        self.result.write_bytes += int(write_bytes.sum())
        self.counts = Counts()
        self.held = {}
