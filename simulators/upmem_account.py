"""The clock of a program with DPUs: host, transfers, kernels, and what runs beside what.

The host's main thread goes on from one operation to the next. A kernel runs beside it from its
launch to its wait, and an `upmem.host_thread` from where it stands to its first use, or the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from cim_opt.cost import upmem_transfer
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.simulators.report import KernelReport, Report, TransferReport
from cim_opt.simulators.upmem_kernel import KernelCode
from cim_opt.simulators.upmem_run import KernelCounts

FloatArray = npt.NDArray[np.float64]
Timed = Callable[[UpmemMachine, str, int, int], float]
"""Seconds of a transfer: machine, model, DPUs, bytes a DPU."""

CAUSE_NAMES = {
    "issue": ("issue",),
    "dma": ("dma",),
    "latency": ("latency",),
    "sync": ("mutex", "barrier"),
}
"""Causes in the report, and the causes of a phase that go into each."""


@dataclass
class _Kernel:
    """What the launches of a kernel add up to."""

    code: KernelCode
    dpus: int = 0
    launches: int = 0
    cycles: float = 0.0
    causes: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CAUSE_NAMES, 0.0))
    instructions: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    tasklet_mean: float = 0.0
    tasklet_most: float = 0.0
    dpu_mean: float = 0.0
    dpu_most: float = 0.0

    def add(self, counts: KernelCounts, dpus: int) -> float:
        """Adds a launch on `dpus` DPUs, of which some were counted.

        Gives the cycles of the slowest DPU.
        """
        total = counts.total
        slowest = int(np.argmax(total))
        for cause, parts in CAUSE_NAMES.items():
            self.causes[cause] += sum(float(counts.cycles[part][slowest]) for part in parts)
        by_dpu = counts.instructions.sum(axis=1)
        self.launches += 1
        self.dpus = max(self.dpus, dpus)
        self.cycles += float(total[slowest])
        self.instructions += int(by_dpu.sum()) * dpus // len(total)
        self.read_bytes += counts.read_bytes * dpus // len(total)
        self.write_bytes += counts.write_bytes * dpus // len(total)
        self.tasklet_mean += float(counts.instructions.mean())
        self.tasklet_most += float(counts.instructions.max())
        self.dpu_mean += float(by_dpu.mean())
        self.dpu_most += float(by_dpu.max())
        return float(total[slowest])

    def report(self) -> KernelReport:
        return KernelReport(
            name=self.code.name,
            launches=self.launches,
            dpus=self.dpus,
            tasklets=self.code.tasklets,
            instructions=self.instructions,
            cycles=self.cycles,
            cycles_by_cause=dict(self.causes),
            read_bytes=self.read_bytes,
            write_bytes=self.write_bytes,
            wram_bytes=self.code.wram_bytes,
            tasklet_balance=_share(self.tasklet_mean, self.tasklet_most),
            dpu_balance=_share(self.dpu_mean, self.dpu_most),
        )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


@dataclass
class Link:
    """Transfers in one direction; seconds by model."""

    seconds: FloatArray
    count: int = 0
    bytes: int = 0

    def report(self, model: int) -> TransferReport:
        return TransferReport(self.count, self.bytes, float(self.seconds[model]))


class Account:
    """Adds up the time of one run, with one or several models of host transfers side by side.

    Moments and seconds that differ by model are arrays, one entry a model.
    """

    def __init__(self, machine: UpmemMachine, models: Sequence[str]):
        self.machine = machine
        self.models = tuple(models)
        self.now = self._zero()
        self.kernels: dict[str, _Kernel] = {}
        self.to_dpu, self.to_host = Link(self._zero()), Link(self._zero())
        self.launches = 0
        self.launch_seconds = self._zero()
        self.kernel_seconds = self.host_seconds = 0.0
        self.ends: list[FloatArray] = []

    def _zero(self) -> FloatArray:
        return np.zeros(len(self.models))

    def push(self, dpus: int, size: int, serial: bool, source: int) -> None:
        """`size` bytes go to each of `dpus` DPUs, of an array of `source` bytes for each of them;
        the host waits for it.
        """
        parallel = partial(upmem_transfer.push_seconds, source_per_dpu=source)
        timed = upmem_transfer.serial_push_seconds if serial else parallel
        self.transfer(self.to_dpu, timed, dpus, size)

    def broadcast(self, dpus: int, size: int) -> None:
        """The same `size` bytes go to each of `dpus` DPUs; the host waits for it."""
        self.transfer(self.to_dpu, upmem_transfer.broadcast_seconds, dpus, size)

    def pull(self, dpus: int, size: int, serial: bool = False) -> None:
        """`size` bytes come from each of `dpus` DPUs; the host waits for it."""
        timed = upmem_transfer.serial_pull_seconds if serial else upmem_transfer.pull_seconds
        self.transfer(self.to_host, timed, dpus, size)

    def transfer(self, link: Link, timed: Timed, dpus: int, size: int) -> None:
        """A transfer of `size` bytes to or from each of `dpus` DPUs; the host waits for it."""
        seconds = np.array([timed(self.machine, model, dpus, size) for model in self.models])
        link.count += 1
        link.bytes += size * dpus
        link.seconds += seconds
        self.now = self.now + seconds

    def host(self, moved: float, operations: float) -> None:
        """Work of the host: bytes that go through its memory, and operations on elements."""
        seconds = moved / self.machine.host_memory_bytes_per_second
        seconds += operations / self.machine.host_scalar_ops_per_second
        self.host_seconds += seconds
        self.now = self.now + seconds

    def launch(self, code: KernelCode, counts: KernelCounts, dpus: int) -> FloatArray:
        """A launch on `dpus` DPUs, of which those of `counts` were run; gives when it ends."""
        kernel = self.kernels.setdefault(code.name, _Kernel(code))
        run = kernel.add(counts, dpus) / self.machine.clock_hz
        timed = upmem_transfer.launch_seconds
        seconds = np.array([timed(self.machine, model, dpus) for model in self.models])
        self.launches += 1
        self.launch_seconds += seconds
        self.kernel_seconds += run
        end = self.now + seconds + run
        self.ends.append(end)
        return end

    def wait(self, end: FloatArray) -> None:
        """The host goes on no sooner than `end`."""
        self.now = np.maximum(self.now, end)

    def thread(self, start: FloatArray) -> FloatArray:
        """Ends a host thread that did everything since `start`; gives when it ends."""
        end, self.now = self.now, start
        self.ends.append(end)
        return end

    def reports(self) -> dict[str, Report]:
        """By model, the run so far, as if it ended here: kernels and threads are waited for."""
        return {model: self._report(number) for number, model in enumerate(self.models)}

    def _report(self, model: int) -> Report:
        total = float(np.max([self.now, *self.ends], axis=0)[model])
        to_dpu, to_host = self.to_dpu.report(model), self.to_host.report(model)
        launching = float(self.launch_seconds[model])
        parts = [to_dpu.seconds, to_host.seconds, launching, self.kernel_seconds, self.host_seconds]
        hidden = max(0.0, sum(parts) - total)
        return Report(
            target="upmem",
            machine=self.machine.name,
            transfer_model=self.models[model],
            seconds=total,
            host_to_dpu=to_dpu,
            dpu_to_host=to_host,
            launches=self.launches,
            launch_seconds=launching,
            kernel_seconds=self.kernel_seconds,
            host_seconds=self.host_seconds,
            # Rounding of the sums is not time that was hidden.
            hidden_seconds=0.0 if hidden < 1e-12 * max(total, 1e-12) else hidden,
            kernels=tuple(kernel.report() for kernel in self.kernels.values()),
        )
