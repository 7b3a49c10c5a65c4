"""Adds up what launches and layouts take on a machine of compute-in-memory macros."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr
from xdsl.utils.hints import isa

from cim_opt.cost.cim_timing import Loop, Mvm, Node, Timing, simulate
from cim_opt.dialects import cim
from cim_opt.hardware.cim import CimMachine
from cim_opt.mapping.cim_layout import layout_cycles
from cim_opt.simulators.cim_launch import in_halves, program_of, tensor_bytes
from cim_opt.simulators.cim_report import CimReport, ProgramReport
from cim_opt.simulators.cim_timing_tree import events_of

MACS = "cim.macs"
"""Attribute of a launch: the products that its kernel needs, to tell how well macros are used."""


@dataclass(frozen=True)
class ProgramTiming:
    """What one launch of a program takes."""

    timing: Timing
    products: int
    """Products that the macro steps could hold."""


@dataclass
class _Launches:
    cost: ProgramTiming
    count: int = 0


@dataclass
class CimAccount:
    """The sums of one run."""

    machine: CimMachine
    layout_cycles: int = 0
    packed_bytes: int = 0
    unpacked_bytes: int = 0
    host_seconds: float = 0.0
    macs: int | None = 0
    _programs: dict[cim.ProgramOp, _Launches] = field(
        default_factory=dict[cim.ProgramOp, _Launches]
    )

    def launch(self, op: cim.LaunchOp, times: int = 1) -> None:
        """Launches of a program, one after another."""
        program = program_of(op)
        launches = self._programs.get(program)
        if launches is None:
            launches = _Launches(self._cost(program))
            self._programs[program] = launches
        launches.count += times
        macs = op.attributes.get(MACS)
        if not isa(macs, IntegerAttr) or self.macs is None:
            self.macs = None
        else:
            self.macs += macs.value.data * times

    def pack(self, op: cim.PackOp, times: int = 1) -> None:
        """The tensor is read, the packed tensor written."""
        written = tensor_bytes(op.packed.type, in_halves(op.packed))
        read = tensor_bytes(op.tensor.type)
        self.layout_cycles += self._layout(read, written) * times
        self.packed_bytes += written * times

    def unpack(self, op: cim.UnpackOp, times: int = 1) -> None:
        """The packed tensor is read, and `init` unless it is a constant; the tensor is written."""
        read, written = tensor_bytes(op.packed.type), tensor_bytes(op.tensor.type)
        self.unpacked_bytes += read * times
        if getattr(op.init.owner, "name", None) != "arith.constant":
            read += tensor_bytes(op.init.type)
        self.layout_cycles += self._layout(read, written) * times

    def host(self, moved: float, operations: float, times: int = 1) -> None:
        """Other work of the host: bytes through its memory, and operations."""
        machine = self.machine
        seconds = moved / machine.host_memory_bytes_per_second
        seconds += operations / machine.host_scalar_ops_per_second
        self.host_seconds += seconds * times

    def _layout(self, read: int, written: int) -> int:
        return layout_cycles(read, written, self.machine.global_width_bytes)

    def _cost(self, program: cim.ProgramOp) -> ProgramTiming:
        events = events_of(program, self.machine)
        return ProgramTiming(simulate(events, self.machine), _products(events, self.machine))

    def report(self) -> CimReport:
        """The run so far."""
        machine, programs = self.machine, self._programs.values()
        busy, stalls, links, accesses = (Counter[str]() for _ in range(4))
        for launches in programs:
            timing = launches.cost.timing
            _add(busy, timing.busy, launches.count)
            _add(stalls, timing.stalls, launches.count)
            _add(accesses, timing.accesses, launches.count)
            _add(links, {f"{a} to {b}": n for (a, b), n in timing.bytes.items()}, launches.count)
        products = sum(x.cost.products * x.count for x in programs)
        macs = self.macs if programs else None
        cycles = sum(x.cost.timing.cycles * x.count for x in programs)
        return CimReport(
            target="cim",
            machine=machine.name,
            host_seconds=self.host_seconds,
            clock_ns=machine.clock_ns,
            cycles=cycles,
            launches=sum(x.count for x in programs),
            instructions=sum(x.cost.timing.instructions * x.count for x in programs),
            mvms=sum(x.cost.timing.mvms * x.count for x in programs),
            macro_steps=sum(x.cost.timing.macro_steps * x.count for x in programs),
            macs=macs,
            utilisation=None if macs is None or not products else macs / products,
            layout_cycles=self.layout_cycles,
            packed_bytes=self.packed_bytes,
            unpacked_bytes=self.unpacked_bytes,
            busy_cycles=dict(busy),
            stall_cycles=dict(stalls),
            link_bytes=dict(links),
            energy_nj=self._energy(cycles, accesses, products),
            programs=tuple(_program_report(op, x) for op, x in self._programs.items()),
        )

    def _energy(self, cycles: int, accesses: Mapping[str, int], products: int) -> dict[str, float]:
        """Nanojoules by source: milliwatts times nanoseconds are picojoules."""
        machine = self.machine
        nanoseconds = cycles * machine.clock_ns
        used = (accesses.get("input", 0) + accesses.get("output", 0)) * machine.clock_ns
        energy = {
            "macros, static": machine.sram_static_mw * nanoseconds * 1e-3,
            "memories, static": 2 * machine.memory_static_mw * nanoseconds * 1e-3,
            "memories, accesses": machine.memory_access_mw * used * 1e-3,
        }
        if machine.macro_tops_per_watt:
            energy["macros, products"] = 2e-3 * products / machine.macro_tops_per_watt
        return energy


def _products(events: Iterable[Node], machine: CimMachine) -> int:
    """Products that all macro steps could hold."""
    total = 0
    for event in events:
        if isinstance(event, Loop):
            total += event.count * _products(event.body, machine)
        elif isinstance(event, Mvm):
            total += event.macros * machine.rows * machine.columns_of(event.input_bits)
    return total


def _add(sums: Counter[str], amounts: Mapping[str, int], times: int) -> None:
    for name, amount in amounts.items():
        sums[name] += amount * times


def _program_report(op: cim.ProgramOp, launches: _Launches) -> ProgramReport:
    timing, count = launches.cost.timing, launches.count
    return ProgramReport(
        name=op.sym_name.data,
        launches=count,
        cycles=timing.cycles * count,
        instructions=timing.instructions * count,
        mvms=timing.mvms * count,
        macro_steps=timing.macro_steps * count,
    )
