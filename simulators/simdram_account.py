"""Adds up what a program in DRAM costs: row commands, traffic through the transposition unit, host.

One bbop is issued to all tiles of its operands at once: every subarray executes the commands on
its own tile. So its time is that of one program, unless the limit on activations (`tXAW`) lets
fewer row commands start than the subarrays would issue.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.microprograms.model import Counts
from cim_opt.simulators.report import TransferReport
from cim_opt.simulators.simdram_report import SimdramReport, StageReport


@dataclass
class _Traffic:
    count: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def add(self, size: int, seconds: float) -> None:
        self.count += 1
        self.bytes += size
        self.seconds += seconds

    def report(self) -> TransferReport:
        return TransferReport(self.count, self.bytes, self.seconds)


@dataclass
class _Stage:
    name: str
    bbops: int = 0
    commands: int = 0
    compute: float = 0.0
    transpose: float = 0.0
    read: float = 0.0
    host: float = 0.0

    def report(self) -> StageReport:
        return StageReport(
            self.name,
            self.bbops,
            self.commands,
            self.compute,
            self.transpose,
            self.read,
            self.host,
        )


@dataclass(frozen=True)
class Charge:
    """What one program takes in one subarray: counts, seconds, nanojoules."""

    counts: Counts
    seconds: float
    energy_nj: float


@dataclass
class Account:
    """The sums of one run. `limited`: whether the limit on activations counts."""

    machine: SimdramMachine
    timing: str
    limited: bool
    bbops: int = 0
    aap: int = 0
    ap: int = 0
    limited_seconds: float = 0.0
    unlimited_seconds: float = 0.0
    energy_nj: float = 0.0
    host_seconds: float = 0.0
    transposed: _Traffic = field(default_factory=_Traffic)
    read_back: _Traffic = field(default_factory=_Traffic)
    useful: float = 0.0
    offered: float = 0.0
    _charges: dict[Counts, Charge] = field(default_factory=dict[Counts, Charge])
    _stages: dict[object, _Stage] = field(default_factory=dict[object, _Stage])
    _stage_of: dict[Operation, _Stage] = field(default_factory=dict[Operation, _Stage])

    def bbop(self, op: Operation, counts: Counts, lanes: int) -> None:
        """One bbop over `lanes` lanes, whose program takes `counts` in a subarray."""
        self.bbops += 1
        stage = self._stage(op)
        stage.bbops += 1
        tiles = self.tiles(lanes)
        if not tiles:
            return
        charge = self._charge(counts)
        unlimited = charge.seconds
        limited = self.machine.limited_seconds(unlimited, counts, tiles, self.timing)
        commands = counts.total * tiles
        self.aap += counts.aap * tiles
        self.ap += counts.ap * tiles
        self.limited_seconds += limited
        self.unlimited_seconds += unlimited
        self.energy_nj += charge.energy_nj * tiles
        self.useful += counts.total * lanes
        self.offered += commands * self.machine.columns
        stage.commands += commands
        stage.compute += limited if self.limited else unlimited

    def transpose(self, op: Operation, width: int, lanes: int) -> None:
        """`width` rows of every tile written through the transposition unit."""
        size, seconds = self._rows(width, lanes)
        self.transposed.add(size, seconds)
        self._stage(op).transpose += seconds

    def read(self, op: Operation, width: int, lanes: int) -> None:
        """`width` rows of every tile read through the transposition unit."""
        size, seconds = self._rows(width, lanes)
        self.read_back.add(size, seconds)
        self._stage(op).read += seconds

    def host(self, op: Operation, moved: float, operations: float) -> None:
        """Work of the host: bytes through its memory, and operations."""
        seconds = moved / self.machine.host_memory_bytes_per_second
        seconds += operations / self.machine.host_scalar_ops_per_second
        if seconds:
            self.host_seconds += seconds
            self._stage(op).host += seconds

    def tiles(self, lanes: int) -> int:
        """How many tiles of columns hold so many lanes."""
        return -(-lanes // self.machine.columns)

    def _rows(self, width: int, lanes: int) -> tuple[int, float]:
        size = self.tiles(lanes) * width * self.machine.row_bytes
        return size, size / self.machine.bandwidth

    def _charge(self, counts: Counts) -> Charge:
        charge = self._charges.get(counts)
        if charge is None:
            seconds = self.machine.program_seconds(counts, self.timing)
            charge = Charge(counts, seconds, self.machine.program_energy_nj(counts))
            self._charges[counts] = charge
        return charge

    def _stage(self, op: Operation) -> _Stage:
        stage = self._stage_of.get(op)
        if stage is None:
            key, name = stage_of(op, len(self._stages) + 1)
            stage = self._stage_of[op] = self._stages.setdefault(key, _Stage(name))
        return stage

    def report(self, library: str, level: str, rows_peak: int) -> SimdramReport:
        """The run so far."""
        compute = self.limited_seconds if self.limited else self.unlimited_seconds
        traffic = self.transposed.seconds + self.read_back.seconds
        return SimdramReport(
            target="simdram",
            machine=self.machine.name,
            library=library,
            level=level,
            timing=self.timing,
            activation_limit=self.limited,
            seconds=compute + traffic + self.host_seconds,
            bbops=self.bbops,
            commands=self.aap + self.ap,
            aap=self.aap,
            ap=self.ap,
            compute_seconds=compute,
            limited_seconds=self.limited_seconds,
            unlimited_seconds=self.unlimited_seconds,
            energy_nj=self.energy_nj,
            transposed=self.transposed.report(),
            read_back=self.read_back.report(),
            host_seconds=self.host_seconds,
            utilisation=self.useful / self.offered if self.offered else 1.0,
            rows_peak=rows_peak,
            rows=self.machine.data_rows,
            stages=tuple(stage.report() for stage in self._stages.values()),
        )


def stage_of(op: Operation, number: int) -> tuple[object, str]:
    """What identifies the stage of an operation, and its name.

    Operations of one place in the user's text are one stage; one that has no place belongs to the
    stage of the operation around it. At the top of a function, it is a stage of its own.
    """
    current = op
    while True:
        place = current.location
        if isinstance(place, FileLineColLoc):
            where = f"{place.filename.data}:{place.line.data}:{place.column.data}"
            return where, where
        parent = current.parent_op()
        if parent is None or isinstance(parent, FuncOp):
            return current, f"{number}: {current.name}"
        current = parent
