"""What a run on a machine took: cycles by cause, bytes by link, seconds end to end.

Dataclasses, as text for people and as a dictionary for JSON. `MachineReport` says what all machines
have in common; `Report` is UPMEM's.
Seconds and cycles are those of the machine's model, not of the computer that simulates it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


class MachineReport(Protocol):
    """What the reports of all machines have."""

    @property
    def target(self) -> str:
        """The machine's kind."""
        ...

    @property
    def machine(self) -> str:
        """The machine's name."""
        ...

    @property
    def seconds(self) -> float:
        """End to end."""
        ...

    @property
    def cycles(self) -> float | None:
        """Cycles of the machine's processors; None for a machine that has none."""
        ...

    def to_json_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists and dictionaries; at least `target`, `machine`, `seconds` and
        `cycles`."""
        ...

    def to_text(self) -> str:
        """Several aligned lines, without a line break at the end."""
        ...


@dataclass(frozen=True)
class KernelReport:
    """All launches of one kernel.

    `cycles` is the sum over launches of the slowest DPU's cycles; `cycles_by_cause` (issue, dma,
    latency, sync) adds up to it. `instructions`, `read_bytes` and `write_bytes` (of the large
    memory) are sums over all DPUs and launches. A balance is mean / largest number of instructions
    of the tasklets of all DPUs, or of the DPUs: 1 when all do the same.
    """

    name: str
    launches: int
    dpus: int
    tasklets: int
    instructions: int
    cycles: float
    cycles_by_cause: Mapping[str, float]
    read_bytes: int
    write_bytes: int
    wram_bytes: int
    tasklet_balance: float
    dpu_balance: float


@dataclass(frozen=True)
class TransferReport:
    """All transfers in one direction: how many, their bytes with padding, and their seconds."""

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """One run of a program on UPMEM. `seconds` is end to end.

    It is the sum of the other seconds less `hidden_seconds`: what the host did beside kernels and
    transfers. `transfer_model` names how host transfers were timed, `cycle_model` how kernels were.
    """

    target: str
    machine: str
    transfer_model: str
    seconds: float
    host_to_dpu: TransferReport
    dpu_to_host: TransferReport
    launches: int
    launch_seconds: float
    kernel_seconds: float
    host_seconds: float
    hidden_seconds: float
    kernels: Sequence[KernelReport] = field(default_factory=tuple[KernelReport, ...])
    cycle_model: str = "closed"

    @property
    def cycles(self) -> float:
        """Cycles of all kernels, one after another."""
        return sum(kernel.cycles for kernel in self.kernels)

    def to_json_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists and dictionaries only."""
        values = asdict(self)
        values["kernels"] = [asdict(kernel) for kernel in self.kernels]
        values["cycles"] = self.cycles
        return values

    def to_text(self) -> str:
        """Several aligned lines, without a line break at the end."""
        lines = [f"{self.target} on {self.machine}, transfer model {self.transfer_model}"]
        if self.cycle_model != "closed":
            lines[0] += f", cycle model {self.cycle_model}"
        lines += table(self._time_rows())
        for kernel in self.kernels:
            lines += ["", *_kernel_text(kernel)]
        return "\n".join(lines)

    def _time_rows(self) -> list[tuple[str, str, str]]:
        to, back = self.host_to_dpu, self.dpu_to_host
        rows = [
            ("host to DPU", format_seconds(to.seconds), transfers_text(to)),
            ("launches", format_seconds(self.launch_seconds), f"{self.launches}"),
            ("kernels", format_seconds(self.kernel_seconds), f"{self.cycles:,.0f} cycles"),
            ("DPU to host", format_seconds(back.seconds), transfers_text(back)),
            ("host work", format_seconds(self.host_seconds), self._hidden_text()),
            ("end to end", format_seconds(self.seconds), ""),
        ]
        return rows

    def _hidden_text(self) -> str:
        if self.hidden_seconds == 0:
            return ""
        return f"{format_seconds(self.hidden_seconds).strip()} of it beside the DPUs"


def format_seconds(seconds: float) -> str:
    """With a unit that suits: `1.234 s`, `56.700 ms`, `3.000 us`."""
    for factor, unit in ((1.0, "s "), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3f} {unit}"
    return f"{seconds * 1e6:.3f} us"


def format_bytes(count: int) -> str:
    """With a unit that suits: `12 B`, `1.5 KiB`, `64.0 MiB`."""
    if count < 1024:
        return f"{count} B"
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f} {unit}"


def transfers_text(transfer: TransferReport) -> str:
    """How many bytes in how many transfers."""
    if not transfer.count:
        return "nothing"
    return f"{format_bytes(transfer.bytes)} in {transfer.count}"


def table(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Lines of a name, a number aligned to the right, and a remark."""
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in rows]


def _kernel_text(kernel: KernelReport) -> list[str]:
    launched = f"{kernel.launches} launch" + ("es" if kernel.launches != 1 else "")
    head = f"kernel @{kernel.name}: {launched} on {kernel.dpus} DPUs x {kernel.tasklets} tasklets"
    rows = [
        ("instructions", f"{kernel.instructions:,}", ""),
        ("cycles", f"{kernel.cycles:,.0f}", "slowest DPU"),
    ]
    for cause, cycles in kernel.cycles_by_cause.items():
        share = cycles / kernel.cycles if kernel.cycles else 0.0
        rows.append((f"  {cause}", f"{cycles:,.0f}", f"{share:6.1%}"))
    rows += [
        ("MRAM read", format_bytes(kernel.read_bytes), ""),
        ("MRAM written", format_bytes(kernel.write_bytes), ""),
        ("WRAM used", format_bytes(kernel.wram_bytes), "a DPU"),
        ("tasklet balance", f"{kernel.tasklet_balance:.3f}", "mean / largest"),
        ("DPU balance", f"{kernel.dpu_balance:.3f}", "mean / largest"),
    ]
    return [head, *table(rows)]
