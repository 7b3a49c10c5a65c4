"""What a run in DRAM took: commands, time with and without the limit on activations, traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cim_opt.simulators.report import (
    TransferReport,
    format_seconds,
    table,
    transfers_text,
)


@dataclass(frozen=True)
class StageReport:
    """What the operations of one place of the program took.

    `commands` counts every subarray's; the seconds are those of `SimdramReport`.
    """

    name: str
    bbops: int
    commands: int
    compute_seconds: float
    transpose_seconds: float
    read_seconds: float
    host_seconds: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compute_seconds + self.transpose_seconds + self.read_seconds + self.host_seconds


@dataclass(frozen=True)
class SimdramReport:
    """One run of a program in DRAM. `seconds` is end to end: nothing runs beside anything else.

    `bbops` counts operations issued, each over all its tiles; fills and multiplications by a scalar
    are among them. `aap`, `ap` and `commands`, their sum, count every subarray's commands, and
    `energy_nj` is theirs. `compute_seconds` respects the limit on activations when
    `activation_limit` is set; `limited_seconds` and `unlimited_seconds` say both.
    Transposition in and read-back move whole rows, `bytes` counts their padding.
    `utilisation` is useful lanes / columns, weighted by commands; 1 when there were none.
    `rows_peak` is how many D rows of a subarray were in use at once, from row 0, of `rows`.
    """

    target: str
    machine: str
    library: str
    level: str
    timing: str
    activation_limit: bool
    seconds: float
    bbops: int
    commands: int
    aap: int
    ap: int
    compute_seconds: float
    limited_seconds: float
    unlimited_seconds: float
    energy_nj: float
    transposed: TransferReport
    read_back: TransferReport
    host_seconds: float
    utilisation: float
    rows_peak: int
    rows: int
    stages: Sequence[StageReport] = field(default_factory=tuple[StageReport, ...])

    @property
    def cycles(self) -> None:
        """Subarrays have no clock of their own."""
        return None

    def to_json_dict(self) -> dict[str, Any]:
        """Numbers, texts, lists and dictionaries only."""
        values = asdict(self)
        values["stages"] = [asdict(stage) | {"seconds": stage.seconds} for stage in self.stages]
        values["cycles"] = self.cycles
        return values

    def to_text(self) -> str:
        """Several aligned lines, without a line break at the end."""
        head = f"{self.target} on {self.machine}, library {self.library}, timing {self.timing}"
        lines = [head, *table(self._rows())]
        shown = [stage for stage in self.stages if self._matters(stage)]
        if len(shown) > 1:
            lines += ["", *_stage_lines(shown)]
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, str, str]]:
        other = self.unlimited_seconds if self.activation_limit else self.limited_seconds
        word = "without" if self.activation_limit else "with"
        into, back = self.transposed, self.read_back
        return [
            ("transposed in", format_seconds(into.seconds), transfers_text(into)),
            (
                "computing",
                format_seconds(self.compute_seconds),
                f"{format_seconds(other).strip()} {word} the limit on activations",
            ),
            ("read back", format_seconds(back.seconds), transfers_text(back)),
            ("host work", format_seconds(self.host_seconds), ""),
            ("end to end", format_seconds(self.seconds), ""),
            ("commands", f"{self.commands:,}", f"{self.aap:,} AAP, {self.ap:,} AP"),
            ("bbops", f"{self.bbops:,}", ""),
            ("energy", f"{self.energy_nj:,.1f} nJ", "row commands alone"),
            ("columns used", f"{self.utilisation:.1%}", "weighted by commands"),
            ("rows used", f"{self.rows_peak}", f"of {self.rows} D rows"),
        ]

    def _matters(self, stage: StageReport) -> bool:
        """Leaves out index arithmetic of the host: less than a thousandth of the time."""
        return stage.commands > 0 or stage.seconds >= self.seconds / 1000


def _stage_lines(stages: Sequence[StageReport]) -> list[str]:
    """A table, one line a stage."""
    heads = ("stage", "bbops", "commands", "in", "computing", "back", "host")
    rows = [heads, *(_stage_cells(stage) for stage in stages)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(heads))]
    return [
        "  "
        + "  ".join(
            f"{cell:<{width}}" if n == 0 else f"{cell:>{width}}"
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _stage_cells(stage: StageReport) -> tuple[str, ...]:
    return (
        stage.name,
        f"{stage.bbops:,}",
        f"{stage.commands:,}",
        format_seconds(stage.transpose_seconds),
        format_seconds(stage.compute_seconds),
        format_seconds(stage.read_seconds),
        format_seconds(stage.host_seconds),
    )
