"""The timing rules of a CIM core, stepped cycle by cycle over the unrolled program.

Written from the rules, not from the closed recursion of cost/cim_timing.py: every instruction is an
object that is in the front end, waits, runs or is done, and every cycle asks all of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cim_opt.cost.cim_instructions import Demand, demand
from cim_opt.cost.cim_timing import Instruction, Loop, Program, Scalar
from cim_opt.hardware.cim import CimMachine


@dataclass
class _Sent:
    asked: Demand
    started: int | None = None
    waited: bool = False
    """Whether it could not start in the first cycle in its unit."""

    def uses(self, memory: int, cycle: int) -> bool:
        if self.started is None:
            return any(memory == held for held, _ in self.asked.holds)
        return any(memory == m and cycle < self.started + n for m, n in self.asked.holds)

    def done(self, cycle: int) -> bool:
        return self.started is not None and cycle >= self._end()

    def _end(self) -> int:
        assert self.started is not None
        return self.started + max([self.asked.latency, *[n for _, n in self.asked.holds]])


def unrolled(program: Program) -> Iterator[Instruction]:
    """Every instruction in the order of execution."""
    for node in program:
        if not isinstance(node, Loop):
            yield node
            continue
        for _ in range(node.count):
            yield from unrolled(node.body)
            yield Scalar(node.overhead)


def stepped_cycles(program: Program, machine: CimMachine) -> tuple[int, int]:
    """Cycles of a program, and cycles without issue before the last instruction."""
    todo = _front_end(program, machine)
    queue = machine.front_end == "queue"
    sent: list[_Sent] = []
    cycle = stalls = 0
    while todo or not all(item.done(cycle) for item in sent):
        _start_all(sent, cycle)
        sent = [item for item in sent if not item.done(cycle)]
        if todo and _can_issue(todo[0], sent, cycle, queue):
            asked = todo.pop(0)
            sent += [_Sent(asked)] if asked else []
        elif todo:
            stalls += 1
        cycle += 1
    return cycle, stalls


def _front_end(program: Program, machine: CimMachine) -> list[Demand | None]:
    todo: list[Demand | None] = []
    for instruction in unrolled(program):
        if isinstance(instruction, Scalar):
            todo += [None] * instruction.count
            continue
        asked = demand(instruction, machine)
        assert asked
        todo += [asked] * asked.repeats
    return todo


def _can_issue(asked: Demand | None, sent: list[_Sent], cycle: int, queue: bool) -> bool:
    if asked is None:
        return True
    same = [item for item in sent if item.asked.unit == asked.unit]
    if not queue:
        # It is issued in the cycle before it starts.
        return _can_start(asked, sent, cycle + 1)
    # One that had to wait makes room in the cycle after its start.
    return not any(item.started is None or (item.waited and item.started == cycle) for item in same)


def _start_all(sent: list[_Sent], cycle: int) -> None:
    for at, item in enumerate(sent):
        if item.started is None:
            if _can_start(item.asked, sent[:at], cycle):
                item.started = cycle
            else:
                item.waited = True


def _can_start(asked: Demand, earlier: list[_Sent], cycle: int) -> bool:
    touched = [memory for memory, _ in asked.holds]
    for item in earlier:
        if item.asked.unit != asked.unit:
            if any(item.uses(memory, cycle) for memory in touched):
                return False
            continue
        if item.started is None or cycle < item.started + item.asked.interval:
            return False
        writes = [memory for memory in asked.reads if memory in item.asked.writes]
        if any(item.uses(memory, cycle) for memory in writes):
            return False
    return True
