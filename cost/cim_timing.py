"""Exact cycles of a program on a CIM core: the simulator's clock and the cost of a plan.

The front end issues one instruction a cycle, in order. An instruction starts in its unit when

- the unit itself can take it (`Demand.interval` after the one before),
- no earlier instruction of another unit still uses a memory that it touches, and
- no earlier instruction of its own unit still writes a memory that it reads.

A memory is one thing: two instructions on different addresses of it conflict all the same.

What happens until then is the machine's `front_end`. With `queue` a unit holds one instruction that
has not started, and the front end goes on until it has another one for that unit. With `stall`
nothing is issued until it starts, as in the public simulator.

Loops run until the machine is, relative to the issue cycle, in a state that it has been in before;
from there all rounds repeat, and time and stalls are extrapolated exactly. An inner loop is looked
up when it starts in a state that it has started in before. So time does not grow with counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cim_opt.cost.cim_instructions import (
    UNITS,
    Demand,
    Instruction,
    Link,
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Program,
    Scalar,
    Transfer,
    VectorAdd,
    VectorClear,
    demand,
)
from cim_opt.hardware.cim import MEMORIES, CimMachine

__all__ = (
    "Instruction",
    "LoadWeights",
    "Loop",
    "Mvm",
    "Node",
    "Program",
    "Scalar",
    "Timing",
    "Transfer",
    "VectorAdd",
    "VectorClear",
    "simulate",
)

_U = len(UNITS)
_M = len(MEMORIES)
# Why an instruction waits in its unit: for a memory (its number), or for the unit.
_UNIT_BUSY = _M
_CAUSES = _M + 1


@dataclass(frozen=True, slots=True)
class Timing:
    """Cycles of a program, and what they went to.

    `cycles` is `instructions` (one issue cycle each) plus all `stalls`; the last stall, `drain`,
    is what the units still work on after the last issue.
    """

    cycles: int
    instructions: int
    scalars: int
    """Scalar instructions among these, the overhead of loops included."""
    mvms: int
    """Macro-step instructions."""
    macro_steps: int
    """Macros times steps."""
    weight_loads: int
    busy: dict[str, int]
    """Cycles that each unit is occupied; `scalar` is the issue of scalar instructions."""
    stalls: dict[str, int]
    """Cycles without issue by cause: `<unit> waits for <memory>`, `<unit> busy`, `drain`."""
    bytes: dict[Link, int]
    """Bytes from each memory to each other."""
    accesses: dict[str, int]
    """Cycles in which each memory is accessed."""


def simulate(program: Program, machine: CimMachine) -> Timing:
    """The cycles of a program that starts on an idle machine, and what they go to.

    Raises UserError for instructions that the machine has not got, ValueError for counts that
    make no sense.
    """
    compiled = _compile(program, machine)
    run = _Run(queue=machine.front_end == "queue")
    run.block(compiled)
    return _timing(compiled, run)


@dataclass(frozen=True, slots=True)
class _Block:
    """A compiled loop or program: scalars as their number, other instructions as demands."""

    count: int
    body: "tuple[int | tuple[Demand, Instruction] | _Block, ...]"
    overhead: int


def _compile(program: Program, machine: CimMachine) -> _Block:
    known: dict[Instruction, tuple[Demand, Instruction] | int] = {}
    return _compile_block(1, program, 0, machine, known)


def _compile_block(
    count: int,
    body: Program,
    overhead: int,
    machine: CimMachine,
    known: "dict[Instruction, tuple[Demand, Instruction] | int]",
) -> _Block:
    if count < 0 or overhead < 0:
        raise ValueError(f"a loop of {count} rounds with {overhead} instructions: none or more")
    compiled: list[int | tuple[Demand, Instruction] | _Block] = []
    for node in body:
        if isinstance(node, Loop):
            inner = _compile_block(node.count, node.body, node.overhead, machine, known)
            compiled.append(inner)
            continue
        if node not in known:
            asked = demand(node, machine)
            known[node] = (asked, node) if asked else getattr(node, "count", 1)
        compiled.append(known[node])
    return _Block(count, tuple(compiled), overhead)


State = tuple[int, ...]


@dataclass(slots=True)
class _Run:
    """The machine while it runs. All times are cycles from the start of the program."""

    queue: bool
    now: int = 0
    """The cycle of the next issue."""
    last: int = 0
    """When everything that was issued has been written."""
    free: list[int] = field(default_factory=lambda: [0] * _U)
    """When each unit can start its next instruction."""
    held: list[int] = field(default_factory=lambda: [0] * _U)
    """When each unit has room for another instruction that waits."""
    cause: list[int] = field(default_factory=lambda: [_UNIT_BUSY] * _U)
    """What the instruction that a unit holds waits for."""
    used: list[int] = field(default_factory=lambda: [0] * (_U * _M))
    """Until when each unit uses each memory."""
    written: list[int] = field(default_factory=lambda: [0] * (_U * _M))
    stalls: list[int] = field(default_factory=lambda: [0] * (_U * _CAUSES))
    known: dict[tuple[int, State], tuple[int, State, tuple[int, ...]]] = field(
        default_factory=lambda: {}
    )
    """What a loop does from a state: cycles, the state after it, stalls."""

    def block(self, block: _Block) -> None:
        """One round of a loop's body, or a program."""
        for node in block.body:
            if isinstance(node, int):
                self.now += node
            elif isinstance(node, _Block):
                self._loop(node)
            else:
                for _ in range(node[0].repeats):
                    self._issue(node[0])
        self.now += block.overhead

    def _issue(self, asked: Demand) -> None:
        unit = asked.unit
        if self.held[unit] > self.now:
            self.stalls[unit * _CAUSES + self.cause[unit]] += self.held[unit] - self.now
            self.now = self.held[unit]
        start, cause = self.now + 1, _UNIT_BUSY
        start = max(start, self.free[unit])
        for memory, _ in asked.holds:
            for other in range(_U):
                if other != unit and self.used[other * _M + memory] > start:
                    start, cause = self.used[other * _M + memory], memory
        for memory in asked.reads:
            if self.written[unit * _M + memory] > start:
                start, cause = self.written[unit * _M + memory], memory
        if not self.queue and start > self.now + 1:
            self.stalls[unit * _CAUSES + cause] += start - 1 - self.now
            self.now = start - 1
        self._start(asked, start)
        self.cause[unit] = cause
        self.now += 1

    def _start(self, asked: Demand, start: int) -> None:
        unit = asked.unit
        # One that had to wait leaves its place in the cycle after its start.
        self.held[unit] = start if start == self.now + 1 else start + 1
        self.free[unit] = start + asked.interval
        for memory, cycles in asked.holds:
            at = unit * _M + memory
            self.used[at] = max(self.used[at], start + cycles)
            if memory in asked.writes:
                self.written[at] = max(self.written[at], start + cycles)
            self.last = max(self.last, start + cycles)
        self.last = max(self.last, start + asked.latency)

    def _loop(self, loop: _Block) -> None:
        if loop.count == 0:
            return
        key = (id(loop), self._state())
        if key not in self.known:
            begun, stalls = self.now, tuple(self.stalls)
            self._rounds(loop)
            taken = tuple(b - a for a, b in zip(stalls, self.stalls, strict=True))
            self.known[key] = (self.now - begun, self._state(), taken)
            return
        cycles, state, taken = self.known[key]
        self.now += cycles
        self._restore(state)
        self.stalls = [a + b for a, b in zip(self.stalls, taken, strict=True)]

    def _rounds(self, loop: _Block) -> None:
        """Rounds until a state comes back, then as many whole periods as fit, then the rest."""
        seen: dict[State, tuple[int, int, tuple[int, ...]]] = {}
        done = 0
        while done < loop.count:
            state = self._state()
            if state in seen:
                before, begun, stalls = seen[state]
                periods = (loop.count - done) // (done - before)
                done += periods * (done - before)
                self._skip(periods, begun, stalls, state)
                break
            seen[state] = (done, self.now, tuple(self.stalls))
            self.block(loop)
            done += 1
        for _ in range(loop.count - done):
            self.block(loop)

    def _skip(self, periods: int, begun: int, stalls: tuple[int, ...], state: State) -> None:
        """Repeats `periods` times what happened since `begun`, when stalls were `stalls`."""
        self.now += periods * (self.now - begun)
        self.stalls = [b + periods * (b - a) for a, b in zip(stalls, self.stalls, strict=True)]
        self._restore(state)

    def _state(self) -> State:
        """All times from `now` on; what is past makes no difference to what follows."""
        now = self.now
        times = [self.last, *self.free, *self.held, *self.used, *self.written]
        waits = [c if h > now else -1 for c, h in zip(self.cause, self.held, strict=True)]
        return (*[x - now if x > now else 0 for x in times], *waits)

    def _restore(self, state: State) -> None:
        times = [self.now + x for x in state[:-_U]]
        self.last = times[0]
        self.free = times[1 : 1 + _U]
        self.held = times[1 + _U : 1 + 2 * _U]
        self.used = times[1 + 2 * _U : 1 + 2 * _U + _U * _M]
        self.written = times[1 + 2 * _U + _U * _M :]
        self.cause = list(state[-_U:])


def _timing(program: _Block, run: _Run) -> Timing:
    """The counts, from how often each instruction runs, with the times of the run."""
    timing = Timing(
        cycles=max(run.now, run.last),
        instructions=0,
        scalars=0,
        mvms=0,
        macro_steps=0,
        weight_loads=0,
        busy={"scalar": 0} | dict.fromkeys(UNITS, 0),
        stalls=_stalls(run),
        bytes={},
        accesses={},
    )
    counts = {"instructions": 0, "scalars": 0, "mvms": 0, "macro_steps": 0, "weight_loads": 0}
    for times, node in _executed(program, 1):
        if isinstance(node, int):
            counts["scalars"] += times * node
            continue
        _count(timing, counts, times, *node)
    counts["instructions"] += counts["scalars"]
    timing.busy["scalar"] = counts["scalars"]
    return replace(timing, **counts)


def _count(
    timing: Timing, counts: dict[str, int], times: int, asked: Demand, instruction: Instruction
) -> None:
    counts["instructions"] += times * asked.repeats
    timing.busy[UNITS[asked.unit]] += times * asked.repeats * asked.interval
    for link, moved in asked.bytes:
        timing.bytes[link] = timing.bytes.get(link, 0) + times * moved
    for memory, cycles in asked.accesses:
        timing.accesses[memory] = timing.accesses.get(memory, 0) + times * cycles
    match instruction:
        case Mvm(macros):
            counts["mvms"] += times
            counts["macro_steps"] += times * macros
        case LoadWeights():
            counts["weight_loads"] += times
        case _:
            pass


def _executed(block: _Block, times: int) -> Iterator[tuple[int, int | tuple[Demand, Instruction]]]:
    """Every instruction with how often it runs; scalars as their number."""
    times *= block.count
    if times == 0:
        return
    yield times, block.overhead
    for node in block.body:
        if isinstance(node, _Block):
            yield from _executed(node, times)
        else:
            yield times, node


def _stalls(run: _Run) -> dict[str, int]:
    named: dict[str, int] = {}
    for index, cycles in enumerate(run.stalls):
        unit, cause = divmod(index, _CAUSES)
        if cycles and cause == _UNIT_BUSY:
            named[f"{UNITS[unit]} busy"] = cycles
        elif cycles:
            named[f"{UNITS[unit]} waits for {MEMORIES[cause]}"] = cycles
    if run.last > run.now:
        named["drain"] = run.last - run.now
    return named
