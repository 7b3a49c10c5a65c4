"""Cycles of a DPU, event by event: tasklets, issue slots, the DMA queue, mutexes and barriers.

Each tasklet is a list of steps. It issues one instruction at a time, at least `issue_distance`
cycles after its last; a DPU issues one a cycle, to the tasklet that has been ready longest. A
transfer goes to the one DMA engine, which serves transfers in the order of their instructions; its
tasklet goes on when the data are there. An instruction that finds a mutex held is issued again.

The constants of transfers are those of the closed form (`upmem_cycles.py`) where nothing queues;
queues and idle slots come out of the simulation. Rounds in which nothing changes are skipped, so
the time grows with the events, not with the instructions.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from cim_opt.cost.upmem_cycles import barrier_cycles
from cim_opt.hardware.upmem import UpmemMachine

Kind = Literal["run", "read", "write", "barrier", "lock", "unlock"]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a tasklet: `run` of so many instructions, `read` and `write` of so many bytes,
    `barrier`, `lock` and `unlock` of the mutex of this number.

    A transfer, a lock and an unlock are issued by the last instruction of the run before them, or
    by one of their own where there is none.
    """

    kind: Kind
    amount: int = 0


@dataclass
class EventCycles:
    """Cycles of a DPU by cause, as of a phase in the closed form, and the instructions issued."""

    issue: int = 0
    latency: int = 0
    dma: int = 0
    mutex: int = 0
    barrier: int = 0

    @property
    def total(self) -> int:
        return self.issue + self.latency + self.dma + self.mutex + self.barrier


@dataclass(slots=True)
class _Tasklet:
    number: int
    steps: Sequence[Step]
    at: int = 0
    left: int = 0
    """Instructions of the current run that are still to be issued."""
    waits: str = "latency"
    """Why it is not ready: the cause of idle cycles before its next instruction."""


@dataclass
class _Dpu:
    machine: UpmemMachine
    tasklets: list[_Tasklet]
    now: int = 0
    engine: float = 0.0
    ready: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    held: set[int] = field(default_factory=set[int])
    arrived: list[int] = field(default_factory=list[int])
    ended: int = 0
    done: int = 0
    """When the last transfer so far is done."""
    cycles: EventCycles = field(default_factory=EventCycles)


def event_cycles(machine: UpmemMachine, tasklets: Sequence[Sequence[Step]]) -> EventCycles:
    """Cycles of one DPU whose tasklets take these steps, from the first start to the last end."""
    dpu = _Dpu(machine, [_Tasklet(number, steps) for number, steps in enumerate(tasklets)])
    for tasklet in dpu.tasklets:
        start = min(tasklet.number, machine.issue_distance - 1) * machine.tasklet_start_cycles
        _next_run(dpu, tasklet, ceil(start))
    skip_at = 0
    while dpu.ready:
        if dpu.now >= skip_at:
            _skip(dpu)
            skip_at = dpu.now + max(machine.issue_distance, len(dpu.ready))
        if dpu.ready:
            _issue(dpu)
    dpu.cycles.dma += max(dpu.done - dpu.now, 0)
    if dpu.cycles.issue:
        dpu.cycles.latency += ceil(machine.pipeline_drain_cycles)
    return dpu.cycles


def _issue(dpu: _Dpu) -> None:
    """Issues the next instruction."""
    when, number = heapq.heappop(dpu.ready)
    tasklet = dpu.tasklets[number]
    idle = when - dpu.now
    if idle > 0:
        setattr(dpu.cycles, tasklet.waits, getattr(dpu.cycles, tasklet.waits) + idle)
        dpu.now = when
    issued = dpu.now
    dpu.now += 1
    dpu.cycles.issue += 1
    tasklet.waits = "latency"
    tasklet.left -= 1
    after = issued + dpu.machine.issue_distance
    if tasklet.left > 0:
        heapq.heappush(dpu.ready, (after, number))
    else:
        _finish_run(dpu, tasklet, after)


def _finish_run(dpu: _Dpu, tasklet: _Tasklet, after: int) -> None:
    """What the last instruction of a run does. `after` is when the tasklet may go on."""
    step = tasklet.steps[tasklet.at] if tasklet.at < len(tasklet.steps) else None
    if step is None or step.kind in ("run", "barrier"):
        _next_run(dpu, tasklet, after)
        return
    if step.kind == "lock" and step.amount in dpu.held:
        tasklet.left = 1
        tasklet.waits = "mutex"
        dpu.cycles.issue -= 1
        dpu.cycles.mutex += 1
        heapq.heappush(dpu.ready, (after, tasklet.number))
        return
    tasklet.at += 1
    if step.kind == "lock":
        dpu.held.add(step.amount)
    elif step.kind == "unlock":
        dpu.held.discard(step.amount)
    else:
        after = _transfer(dpu, step, after)
        tasklet.waits = "dma"
    _next_run(dpu, tasklet, after)


def _transfer(dpu: _Dpu, step: Step, after: int) -> int:
    """When the transfer that was just issued is done."""
    machine = dpu.machine
    if step.kind == "read":
        latency, busy = machine.dma_read_latency_cycles, machine.dma_read_engine_cycles
        by_byte = machine.dma_read_engine_cycles_per_byte
    else:
        latency, busy = machine.dma_write_latency_cycles, machine.dma_write_engine_cycles
        by_byte = machine.dma_write_engine_cycles_per_byte
    latency += step.amount * machine.dma_latency_cycles_per_byte
    start = max(float(after), dpu.engine)
    dpu.engine = start + busy + step.amount * by_byte
    # A tasklet that comes back waits for a place among those that issue.
    running = sum(when < dpu.now + machine.issue_distance for when, _ in dpu.ready)
    resume = machine.dma_resume_cycles * min(1.0, running / machine.issue_distance)
    done = ceil(start + latency + resume)
    dpu.done = max(dpu.done, done)
    return done


def _next_run(dpu: _Dpu, tasklet: _Tasklet, after: int) -> None:
    """Goes on to the next instructions of a tasklet, or to a barrier, or to its end."""
    left = 0
    while tasklet.at < len(tasklet.steps) and tasklet.steps[tasklet.at].kind == "run":
        left += tasklet.steps[tasklet.at].amount
        tasklet.at += 1
    at_end = tasklet.at == len(tasklet.steps)
    if left == 0 and not at_end and tasklet.steps[tasklet.at].kind != "barrier":
        left = 1  # the instruction of the step itself
    if left:
        tasklet.left = left
        heapq.heappush(dpu.ready, (after, tasklet.number))
        return
    if at_end:
        dpu.ended += 1
        tasklet.at += 1
    else:
        dpu.arrived.append(tasklet.number)
    _release(dpu)


def _release(dpu: _Dpu) -> None:
    """Opens the barrier when all tasklets that still run are there."""
    if not dpu.arrived or len(dpu.arrived) + dpu.ended < len(dpu.tasklets):
        return
    cost = barrier_cycles(dpu.machine, len(dpu.tasklets))
    waiting, dpu.arrived = dpu.arrived, []
    for place, number in enumerate(waiting, 1):
        tasklet = dpu.tasklets[number]
        opened = dpu.now + ceil(cost * place / len(waiting))
        tasklet.at += 1
        tasklet.waits = "barrier"
        _next_run(dpu, tasklet, opened)


def _skip(dpu: _Dpu) -> None:
    """Skips rounds in which each running tasklet issues once and nothing else happens.

    Few tasklets run at distances that stay; more than `issue_distance` go round in turn, one
    cycle after the other. Both repeat until a run ends or a waiting tasklet comes back.
    """
    distance = dpu.machine.issue_distance
    order = sorted(dpu.ready)
    soon = [entry for entry in order if entry[0] < dpu.now + distance]
    if not soon:
        return
    times = [when for when, _ in soon]
    count, period = len(soon), max(distance, len(soon))
    if count <= distance:
        steady = times[0] >= dpu.now and len(set(times)) == count
    else:
        steady = times == list(range(dpu.now - count + distance, dpu.now + distance))
    rounds = min(dpu.tasklets[number].left for _, number in soon) - 1
    if count < len(order):
        rounds = min(rounds, (order[count][0] - max(dpu.now, times[-1]) - 1) // period)
    if not steady or rounds < 1:
        return
    for _, number in soon:
        dpu.tasklets[number].left -= rounds
    # The first idle cycles of this round belong to the tasklet that is next, as without skipping.
    dpu.ready = [
        (when + rounds * period, number) if position < count else (when, number)
        for position, (when, number) in enumerate(order)
    ]
    dpu.now += rounds * period
    dpu.cycles.issue += rounds * count
    dpu.cycles.latency += rounds * (period - count)
