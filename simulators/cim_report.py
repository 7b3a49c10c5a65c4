"""What a run on compute-in-memory macros took: cycles by unit, stalls by cause, traffic, energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cim_opt.simulators.report import format_bytes, format_seconds, table


@dataclass(frozen=True)
class ProgramReport:
    """All launches of one program; `cycles` is their sum."""

    name: str
    launches: int
    cycles: int
    instructions: int
    mvms: int
    macro_steps: int


@dataclass(frozen=True)
class CimReport:
    """One run of a program on compute-in-memory macros.

    `cycles` are those of all launches, one after another. Units work beside each other, so
    `busy_cycles` by unit may sum to more; `stall_cycles` by cause are cycles in which the front end
    issued nothing. `mvms` counts instructions, `macro_steps` what all macros did in them. `macs`
    are the products that the kernel needs, None when a launch does not say; `utilisation` is what
    they are of all products that the macro steps could hold.

    `layout_cycles` is what packing and unpacking would take through the port of the global memory;
    `seconds` has them, `cycles` has not. `host_seconds` is what else the host does: patterns that
    are no kernels, sums of digits, widening.
    `energy_nj` by source is that of the launches.
    """

    target: str
    machine: str
    host_seconds: float
    clock_ns: float
    cycles: int
    launches: int
    instructions: int
    mvms: int
    macro_steps: int
    macs: int | None
    utilisation: float | None
    layout_cycles: int
    packed_bytes: int
    unpacked_bytes: int
    busy_cycles: Mapping[str, int]
    stall_cycles: Mapping[str, int]
    link_bytes: Mapping[str, int]
    energy_nj: Mapping[str, float]
    programs: Sequence[ProgramReport] = field(default_factory=tuple[ProgramReport, ...])

    @property
    def seconds(self) -> float:
        """Launches, conversions and the host's other work, one after another."""
        return (self.cycles + self.layout_cycles) * self.clock_ns * 1e-9 + self.host_seconds

    @property
    def total_energy_nj(self) -> float:
        """All sources."""
        return sum(self.energy_nj.values())

    def to_json_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists and dictionaries only."""
        values = asdict(self)
        values["programs"] = [asdict(program) for program in self.programs]
        values["seconds"] = self.seconds
        values["total_energy_nj"] = self.total_energy_nj
        return values

    def to_text(self) -> str:
        """Several aligned lines, without a line break at the end."""
        lines = [f"{self.target} on {self.machine}", *table(self._rows())]
        for title, amounts in (("busy", self.busy_cycles), ("stalls", self.stall_cycles)):
            if any(amounts.values()):
                lines += ["", f"{title}, cycles", *table(self._shares(amounts))]
        if any(self.link_bytes.values()):
            lines += ["", "traffic", *table(self._links())]
        if len(self.programs) > 1:
            lines += ["", "programs", *table(self._programs())]
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, str, str]]:
        clock = self.clock_ns * 1e-9
        steps = _steps(self.macro_steps)
        energy = ", ".join(f"{name} {amount:,.1f}" for name, amount in self.energy_nj.items())
        return [
            ("launches", format_seconds(self.cycles * clock), f"{self.launches}"),
            (
                "layouts",
                format_seconds(self.layout_cycles * clock),
                f"{self.layout_cycles:,} cycles, {format_bytes(self.packed_bytes)} packed, "
                f"{format_bytes(self.unpacked_bytes)} unpacked",
            ),
            ("host work", format_seconds(self.host_seconds), ""),
            ("end to end", format_seconds(self.seconds), ""),
            ("cycles", f"{self.cycles:,}", "of all launches"),
            ("instructions", f"{self.instructions:,}", ""),
            ("MVMs", f"{self.mvms:,}", steps),
            ("utilisation", *self._utilisation()),
            ("energy", f"{self.total_energy_nj:,.1f} nJ", energy),
        ]

    def _utilisation(self) -> tuple[str, str]:
        if self.utilisation is None or self.macs is None:
            return "-", "a launch does not say its products"
        return f"{self.utilisation:.1%}", f"{self.macs:,} products"

    def _shares(self, amounts: Mapping[str, int]) -> list[tuple[str, str, str]]:
        total = max(1, self.cycles)
        return [
            (name, f"{cycles:,}", f"{cycles / total:6.1%}")
            for name, cycles in amounts.items()
            if cycles
        ]

    def _links(self) -> list[tuple[str, str, str]]:
        return [
            (name, format_bytes(size), f"{size:,} bytes")
            for name, size in self.link_bytes.items()
            if size
        ]

    def _programs(self) -> list[tuple[str, str, str]]:
        return [
            (
                f"@{program.name}",
                f"{program.cycles:,}",
                f"cycles in {program.launches}, {_steps(program.macro_steps)}",
            )
            for program in self.programs
        ]


def _steps(number: int) -> str:
    return f"{number:,} macro step{'s' * (number != 1)}"
