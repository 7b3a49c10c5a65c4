"""The clock of a program with DPUs: host, transfers, kernels, and what runs beside what.

The host's main thread goes on from one operation to the next. A kernel runs beside it from its
launch to its wait, and an `upmem.host_thread` from where it stands to its first use, or the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.simulators.report import KernelReport, Report, TransferReport
from cim_opt.simulators.upmem_kernel import KernelCode
from cim_opt.simulators.upmem_run import KernelCounts

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

    def add(self, counts: KernelCounts) -> float:
        """Adds a launch; gives the cycles of its slowest DPU."""
        total = counts.total
        slowest = int(np.argmax(total))
        for cause, parts in CAUSE_NAMES.items():
            self.causes[cause] += sum(float(counts.cycles[part][slowest]) for part in parts)
        by_dpu = counts.instructions.sum(axis=1)
        self.launches += 1
        self.dpus = max(self.dpus, len(total))
        self.cycles += float(total[slowest])
        self.instructions += int(by_dpu.sum())
        self.read_bytes += counts.read_bytes
        self.write_bytes += counts.write_bytes
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
class _Link:
    count: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def report(self) -> TransferReport:
        return TransferReport(self.count, self.bytes, self.seconds)


class Account:
    """Adds up the time of one run."""

    def __init__(self, machine: UpmemMachine, model: str):
        self.machine = machine
        self.model = model
        self.now = 0.0
        self.kernels: dict[str, _Kernel] = {}
        self.to_dpu, self.to_host = _Link(), _Link()
        self.launches = 0
        self.launch_seconds = self.kernel_seconds = self.host_seconds = 0.0
        self.ends: list[float] = []

    def transfer(self, to_dpu: bool, size: int, seconds: float) -> None:
        """A transfer of `size` bytes in all; the host waits for it."""
        link = self.to_dpu if to_dpu else self.to_host
        link.count += 1
        link.bytes += size
        link.seconds += seconds
        self.now += seconds

    def host(self, seconds: float) -> None:
        """Work of the host."""
        self.host_seconds += seconds
        self.now += seconds

    def launch(self, code: KernelCode, counts: KernelCounts, seconds: float) -> float:
        """A launch that takes `seconds` besides its kernel; gives when the kernel ends."""
        kernel = self.kernels.setdefault(code.name, _Kernel(code))
        run = kernel.add(counts) / self.machine.clock_hz
        self.launches += 1
        self.launch_seconds += seconds
        self.kernel_seconds += run
        end = self.now + seconds + run
        self.ends.append(end)
        return end

    def wait(self, end: float) -> None:
        """The host goes on no sooner than `end`."""
        self.now = max(self.now, end)

    def thread(self, start: float) -> float:
        """Ends a host thread that did everything since `start`; gives when it ends."""
        end, self.now = self.now, start
        self.ends.append(end)
        return end

    def report(self) -> Report:
        """The run so far, as if it ended here: kernels and threads are waited for."""
        total = max([self.now, *self.ends])
        parts = [self.to_dpu.seconds, self.to_host.seconds, self.launch_seconds]
        parts += [self.kernel_seconds, self.host_seconds]
        hidden = max(0.0, sum(parts) - total)
        return Report(
            target="upmem",
            machine=self.machine.name,
            transfer_model=self.model,
            seconds=total,
            host_to_dpu=self.to_dpu.report(),
            dpu_to_host=self.to_host.report(),
            launches=self.launches,
            launch_seconds=self.launch_seconds,
            kernel_seconds=self.kernel_seconds,
            host_seconds=self.host_seconds,
            # Rounding of the sums is not time that was hidden.
            hidden_seconds=0.0 if hidden < 1e-12 * max(total, 1e-12) else hidden,
            kernels=tuple(kernel.report() for kernel in self.kernels.values()),
        )
