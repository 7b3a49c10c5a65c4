"""Runs a kernel with the steps of each tasklet noted, and times them event by event.

The kernel's text is written for it (`compile_kernel(..., traced=True)`): loops around transfers
count their instructions in each iteration, so that runs of instructions and transfers alternate as
on a DPU. Within a block, instructions of a transfer come right before it, all others at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.cost.upmem_events import Kind, Step, event_cycles
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.simulators.upmem_dma import MramArray
from cim_opt.simulators.upmem_lanes import Mask, Values, cut
from cim_opt.simulators.upmem_memory import PrivateBuffer, SharedBuffer
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_run import CAUSES, KernelCounts, KernelRun, Progress
from cim_opt.simulators.upmem_site import Site

MOST_STEPS = 400_000
"""A launch of more transfers, critical sections and barriers, in all, is refused."""


class TraceRun(KernelRun):
    """A launch whose steps are noted. Raises UserError for one of too many steps."""

    def __init__(
        self,
        machine: UpmemMachine,
        mram: Mram,
        tasklets: int,
        progress: Progress | None = None,
        title: str = "",
    ):
        super().__init__(machine, mram, tasklets, progress, title)
        self.pending = np.zeros((self.dpus, tasklets), np.int64)
        self.traces: list[list[list[Step]]] = [
            [[] for _ in range(tasklets)] for _ in range(self.dpus)
        ]
        self.count = 0
        self._title = title

    def issue(self, instructions: int, times: Values, mask: Mask) -> None:
        """Counts instructions, and notes them."""
        super().issue(instructions, times, mask)
        self._note(instructions * times, mask)

    def _issue_array(self, amount: Any, mask: Mask) -> None:
        super()._issue_array(amount, mask)
        self._note(amount, mask)

    def _note(self, amount: Any, mask: Mask) -> None:
        spread = self.lanes.spread(amount)
        columns = self.lanes.tasklet_id[0]
        self.pending[:, columns] += spread if mask is None else np.where(mask, spread, 0)

    def _step(self, kind: Kind, amount: Any, mask: Mask) -> None:
        """A step of the lanes that run, after the instructions that they have pending."""
        amounts = self.lanes.spread(amount)
        running = self.lanes.spread(True if mask is None else mask)
        columns = self.lanes.tasklet_id[0]
        for dpu, column in _places(running):
            tasklet = int(columns[column])
            own = self.traces[dpu][tasklet]
            if self.pending[dpu, tasklet]:
                own.append(Step("run", int(self.pending[dpu, tasklet])))
                self.pending[dpu, tasklet] = 0
            own.append(Step(kind, int(amounts[dpu, column])))
        self.count += int(running.sum())
        if self.count > MOST_STEPS:
            raise UserError(
                f"{self._title or 'a kernel'} takes more than {MOST_STEPS} steps",
                "so many transfers, critical sections and barriers are simulated one by one",
                "use fewer elements or DPUs, or the closed form (--cycles closed)",
            )

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
        """DMA from MRAM."""
        super().read(array, index, buffer, at, count, mask, first, site)
        self._step("read", count * array.size, mask)

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
        super().write(array, index, buffer, at, count, mask, first, site)
        self._step("write", count * array.size, mask)

    def critical(
        self,
        mutex: Values,
        mask: Mask,
        body: Callable[..., None],
        captured: tuple[Values, ...],
        site: Site,
    ) -> None:
        """Runs a critical section, between a lock and an unlock in each tasklet."""

        def locked(run: TraceRun, running: Mask, *values: Values) -> None:
            number = cut(mutex, int(run.lanes.tasklet_id[0, 0]))
            run._step("lock", number, running)
            body(run, running, *values)
            run._step("unlock", number, running)

        super().critical(mutex, mask, locked, captured, site)

    def barrier(self) -> None:
        """Ends a phase at a barrier."""
        self._step("barrier", 0, None)
        super().barrier()

    def finish(self) -> KernelCounts:
        """Ends the kernel, and times the steps of each DPU."""
        for dpu, tasklet in _places(self.pending):
            self.traces[dpu][tasklet].append(Step("run", int(self.pending[dpu, tasklet])))
        result = super().finish()
        for dpu, tasklets in enumerate(self.traces):
            cycles = event_cycles(self.machine, tasklets)
            for cause in CAUSES:
                result.cycles[cause][dpu] = getattr(cycles, cause)
        return result


def _places(which: npt.NDArray[Any]) -> list[tuple[int, int]]:
    """DPU and tasklet of what is not 0."""
    rows, columns = np.nonzero(which)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]
