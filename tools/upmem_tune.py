"""`cim-run --tune`: searches how to lower a program for UPMEM, by simulated seconds end to end.

Four choices are searched: the DPUs (in ranks), the tasklets, the bytes of a WRAM block, and how
many iterations loops do at once. Each point is lowered and simulated with the run's own inputs, so
that it is judged as the run will be. The search starts from what the compiler chooses by itself,
goes along one choice after another until none of them helps, and then through all other points.

The bound is what no point can undercut. It is the least, over the numbers of DPUs, of the transfers
and launches that a run with so many DPUs had, and of the time that their DMA engines take for the
bytes that it moved: tasklets, blocks and unrolling change none of these but for a few bytes. Points
whose number of DPUs has a bound that is no better than the best run are left out.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine, load_machine

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cim_opt.simulators.report import Report
    from cim_opt.simulators.run import Option, Values

AXES = ("dpus", "tasklets", "block", "unroll")
TASKLETS = (8, 11, 12, 14, 16, 18, 20, 22, 24)
BLOCKS = (128, 256, 512, 1024, 2048)
FACTORS = (1, 2, 4, 8, 16)
DEFAULT_BUDGET = 60.0
"""Seconds of this computer's time."""

Point = tuple["int | None", ...]
"""A value for each of `AXES`; None leaves it to the compiler."""


class _OutOfTime(Exception):
    """The budget is used up in the middle of a simulation."""


@dataclass(frozen=True)
class Tuning:
    """What a search found: pipeline options, simulated seconds, and how good they are.

    `first_seconds` are those of the compiler's own choice; `bound_seconds` are those that no point
    can undercut, 0 when the search did not come far enough to say. `points` were simulated;
    `complete` says that all others are known to be no better.
    """

    options: Mapping[str, Option]
    seconds: float
    first_seconds: float
    bound_seconds: float
    points: int
    complete: bool

    def to_json_dict(self) -> dict[str, Any]:
        """Numbers, texts and dictionaries only."""
        return {
            "options": dict(self.options),
            "seconds": self.seconds,
            "first_seconds": self.first_seconds,
            "bound_seconds": self.bound_seconds,
            "points": self.points,
            "complete": self.complete,
        }

    def to_text(self) -> str:
        """One line."""
        from cim_opt.simulators.report import format_seconds

        times = f"{format_seconds(self.seconds).strip()}, "
        if self.seconds < self.first_seconds:
            times += f"{self.first_seconds / self.seconds:.2f}x as fast as without, "
        bound = "bound not known yet"
        if self.bound_seconds:
            away = self.seconds / self.bound_seconds - 1
            bound = f"{away:.1%} above a bound of {format_seconds(self.bound_seconds).strip()}"
        state = "all points" if self.complete else "not all points"
        return f"tuned: {options_text(self.options)}: {times}{bound}; {state}, {self.points} run"


def options_text(options: Mapping[str, Option]) -> str:
    """Options as `--pipeline-options` takes them; `no options` when there are none."""
    texts = {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in options.items()}
    return " ".join(f"{name}={text}" for name, text in texts.items()) or "no options"


def tune(
    module: ModuleOp,
    entry: str,
    args: Sequence[Values],
    *,
    machine: str,
    transfer: str,
    cycles: str,
    fixed: Mapping[str, Option],
    budget: float,
    improved: Callable[[Tuning], None],
    say: Callable[[str], None],
) -> Tuning:
    """The best options for `entry` of `module` on `args` that `budget` seconds are enough to find.

    The compiler's own choice always is simulated, whatever it takes. `fixed` are options that stay
    as they are. `improved` is called with each new best, `say` with what is being done.
    Raises UserError when the program itself is refused, or is lowered already.
    """
    from cim_opt.simulators.run import target_of

    if target_of(module) is not None:
        raise UserError(
            "--tune for a program that is lowered already",
            "its tasklets and blocks are chosen",
            "tune the program as it was before lowering",
        )
    fixed = {name: _single(value) for name, value in fixed.items()}
    trial = _Trial(module, entry, args, machine, (transfer, cycles), fixed)
    search = _Search(trial, _values(load_machine(machine), fixed), budget, improved, say)
    search.run()
    return search.tuning()


def _single(value: Option) -> Option:
    """The value of an option that the command line gave as a tuple of one."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _values(machine: UpmemMachine, fixed: Mapping[str, Option]) -> list[list[int | None]]:
    """What each of `AXES` can be, None first; only None for those that are fixed."""
    unit = min(machine.dpus_per_rank, machine.dpus)
    dpus = [unit << k for k in range((machine.dpus // unit).bit_length())]
    axes: list[list[int | None]] = [
        [None, *(count for count in reversed(dpus) if count < machine.dpus)],
        [None, *(count for count in TASKLETS if count <= machine.tasklets_max)],
        [None, *(size for size in BLOCKS if size <= machine.dma_max_bytes)],
        [None, *FACTORS],
    ]
    return [[None] if name in fixed else axis for name, axis in zip(AXES, axes, strict=True)]


@dataclass
class _Trial:
    """Lowers and simulates points; programs that come out the same are simulated once."""

    module: ModuleOp
    entry: str
    args: Sequence[Values]
    machine: str
    models: tuple[str, str]
    fixed: Mapping[str, Option]
    seen: dict[str, Report] = field(default_factory=dict[str, "Report"])

    def report(self, point: Point, tick: Callable[[], None]) -> Report:
        """Raises UserError when the point is refused, for example because WRAM is too small."""
        from cim_opt.simulators.run import lower
        from cim_opt.simulators.upmem import UpmemSimulator

        options = {"machine": self.machine, **self.fixed, **chosen(point)}
        lowered = lower(self.module, "pattern-to-upmem", options)
        text = str(lowered)
        if text not in self.seen:
            transfer, cycles = self.models

            def progress(fraction: float, text: str) -> None:
                tick()

            simulator = UpmemSimulator(None, transfer, progress, cycles=cycles)
            self.seen[text] = simulator.run(lowered, self.entry, self.args)[1]
        return self.seen[text]


def chosen(point: Point) -> dict[str, Option]:
    """The options of a point."""
    return {name: value for name, value in zip(AXES, point, strict=True) if value is not None}


class _Search:
    """Along the axes first, then everywhere, until the time is over."""

    def __init__(
        self,
        trial: _Trial,
        values: list[list[int | None]],
        budget: float,
        improved: Callable[[Tuning], None],
        say: Callable[[str], None],
    ) -> None:
        self._trial = trial
        self._values = values
        self._end = time.monotonic() + budget
        self._improved = improved
        self._say = say
        self._tried = set[Point]()
        self._bounds = dict["int | None", float]()
        self._best: Point = (None,) * len(AXES)
        self._seconds = math.inf
        self._first = math.inf
        self._complete = False
        self._machine = load_machine(trial.machine)

    def run(self) -> None:
        """Simulates points, the compiler's own choice first."""
        self._first = self._seconds = self._simulate(self._best, lambda: None)
        self._improved(self.tuning())
        try:
            self._along_axes()
            for point in self._others():
                self._try(point)
        except _OutOfTime:
            return
        self._complete = True

    def tuning(self) -> Tuning:
        """The best so far."""
        return Tuning(
            {**self._trial.fixed, **chosen(self._best)},
            self._seconds,
            self._first,
            self._bound(),
            len(self._trial.seen),
            self._complete,
        )

    def _along_axes(self) -> None:
        """Changes one choice after another, until a round of all of them helps no more."""
        while True:
            before = self._best
            for axis, values in enumerate(self._values):
                at = self._best
                for value in values:
                    self._try((*at[:axis], value, *at[axis + 1 :]))
            if self._best == before:
                return

    def _others(self) -> Iterator[Point]:
        """All points, those that differ least from the best first."""
        best = self._best
        points = list[Point](itertools.product(*self._values))
        points.sort(key=lambda point: sum(a != b for a, b in zip(point, best, strict=True)))
        return iter(points)

    def _try(self, point: Point) -> None:
        """Simulates a point unless that is of no use. Raises _OutOfTime."""
        if point in self._tried or self._bounds.get(point[0], 0.0) >= self._seconds:
            return
        self._tick()
        try:
            seconds = self._simulate(point, self._tick)
        except UserError:
            return
        if seconds < self._seconds:
            self._best, self._seconds = point, seconds
            self._improved(self.tuning())

    def _simulate(self, point: Point, tick: Callable[[], None]) -> float:
        self._say(f"tuning, {options_text(chosen(point))}")
        self._tried.add(point)
        report = self._trial.report(point, tick)
        floor = _floor(self._machine, report)
        self._bounds[point[0]] = min(self._bounds.get(point[0], math.inf), floor)
        return report.seconds

    def _bound(self) -> float:
        """Seconds that no point can undercut; 0 before each number of DPUs was tried."""
        floors = [self._bounds.get(dpus, 0.0) for dpus in self._values[0]]
        return min(*floors, self._seconds)

    def _tick(self) -> None:
        if time.monotonic() > self._end:
            raise _OutOfTime


def _floor(machine: UpmemMachine, report: Report) -> float:
    """Seconds of a run that its tasklets, blocks and loops cannot change."""
    engines = sum(
        kernel.read_bytes * machine.dma_read_engine_cycles_per_byte / kernel.dpus
        + kernel.write_bytes * machine.dma_write_engine_cycles_per_byte / kernel.dpus
        for kernel in report.kernels
    )
    transfers = report.host_to_dpu.seconds + report.dpu_to_host.seconds
    return transfers + report.launch_seconds + engines / machine.clock_hz
