"""The fastest plan for a kernel: covers, splits of the macros and orders, by modelled cycles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from cim_opt.cost.cim_program import time
from cim_opt.cost.cim_timing import Timing
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.mapping.cim_code import ORDERS, buffer_bytes, fits, program
from cim_opt.mapping.cim_placement import Placement, place, windowed
from cim_opt.mapping.cim_plan import SUM_BYTES, Parts, Plan, Split
from cim_opt.polyhedral.cover import Cover
from cim_opt.polyhedral.kernel import MacKernel


@dataclass(frozen=True, slots=True)
class Choice:
    """A plan with its modelled time."""

    plan: Plan
    timing: Timing

    @property
    def cycles(self) -> int:
        """Cycles of the program in all parts, without layout."""
        return self.timing.cycles * self.plan.parts

    @property
    def rank(self) -> tuple[int, int, int]:
        """What a better plan has less of: cycles, then cycles for layout, then macro steps."""
        return (self.cycles, self.plan.layout_cycles, self.plan.macro_steps)


@dataclass(frozen=True, slots=True)
class Tiled:
    """A cover for a tile of (output, input) channels of a kernel."""

    cover: Cover
    channels: tuple[int, int]


def tile_of(kernel: MacKernel, channels: tuple[int, int]) -> MacKernel:
    """The kernel with only the channels of one tile."""
    return replace(kernel, out_channels=channels[0], in_channels=channels[1])


def best_plan(
    kernel: MacKernel,
    machine: CimMachine,
    covers: Sequence[Tiled],
    *,
    bits: int = 8,
    movement: bool = True,
    split: Split | None = None,
    layout: str | None = None,
    order: str | None = None,
    budget: float | None = None,
) -> Choice | None:
    """The plan of the least rank over all covers that code can be made for; None without one.

    `split`, `layout` and `order` are chosen unless they are given. `movement` False takes the first
    ones instead: all macros on positions, little overlapped. After `budget` seconds the best plan
    that was found by then is given.
    """
    end = None if budget is None else perf_counter() + budget
    if not movement:
        split, order = split or Split(positions=machine.macros), order or ORDERS[-1]
        layout = layout or "steps"
    found = [
        plan
        for tiled in covers
        if (placement := _placed(kernel, machine, tiled, bits))
        for plan in plans(kernel, machine, tiled, placement, bits, split, layout)
    ]
    found.sort(key=least_cycles)
    best: Choice | None = None
    for plan in found:
        late = end is not None and perf_counter() > end
        if best is not None and (late or least_cycles(plan) > best.cycles):
            break
        for each in ORDERS if order is None else (order,):
            ordered = replace(plan, order=each)
            choice = Choice(ordered, time(program(ordered), machine))
            if best is None or choice.rank < best.rank:
                best = choice
    return best


def _placed(kernel: MacKernel, machine: CimMachine, tiled: Tiled, bits: int) -> Placement | None:
    """Where the steps of a cover lie, None if code cannot be made for it."""
    placement = place(tiled.cover, tile_of(kernel, tiled.channels))
    # Images that take different columns would need several orders of the sums.
    if placement is None or len(placement.columns) > machine.columns_of(bits):
        return None
    return placement


def least_cycles(plan: Plan) -> int:
    """A bound on a plan's cycles from below, whatever the order of its instructions.

    A macro step starts when the sums of the one before have left the register, and its inputs have
    arrived there; macros do not work while their weights are loaded.
    """
    machine = plan.machine
    sums = plan.split.macros * plan.columns * SUM_BYTES
    drained = plan.bits + machine.mvm_drain_cycles + machine.transfer_fill_cycles
    filled = plan.bits + machine.mvm_input_hold_cycles + machine.transfer_fill_cycles
    step = max(
        drained + _ceil(sums, machine.output_register_width_bytes),
        filled + _ceil(plan.set_bytes, machine.input_register_width_bytes),
    )
    writes = _ceil(plan.weight_bytes, machine.weight_write_bytes * plan.split.macros)
    load = _ceil(plan.weight_bytes, machine.global_width_bytes) + writes
    loads = plan.parts * plan.group_tiles * plan.output_tiles * plan.chunks * plan.rounds
    passes = loads * plan.passes
    return loads * (load - 1) + passes * ((plan.sets - 1) * step + plan.bits)


def plans(
    kernel: MacKernel,
    machine: CimMachine,
    tiled: Tiled,
    placement: Placement,
    bits: int,
    split: Split | None = None,
    layout: str | None = None,
) -> Iterator[Plan]:
    """The plans for one cover that fit the machine, with what is given already."""
    first = Plan(kernel, machine, tiled.cover, placement, tiled.channels, Split(), bits)
    splits = _splits(first) if split is None else [split] if _suits(first, split) else []
    for each in splits:
        plan = _chunked(replace(first, split=each))
        if plan is None:
            continue
        yield from (p for p in (plan, *_windows(plan)) if layout in (None, p.layout))


def _windows(plan: Plan) -> Iterator[Plan]:
    """The plan with inputs in windows that macros share, along each axis where that can be."""
    if plan.split.macros != plan.split.positions or plan.split.positions == 1:
        return
    for axis in range(plan.kernel.rank):
        placement = windowed(plan.placement, axis, plan.split.positions)
        if placement is None:
            continue
        shared = replace(plan, placement=placement, window=axis)
        if shared.set_bytes < plan.set_bytes and fits(shared):
            yield shared


def _chunked(plan: Plan) -> Plan | None:
    """The plan with as few chunks and parts as its sums and tensors need, if that helps."""
    if fits(plan):
        return plan
    if plan.passes == 1 and plan.accumulates and buffer_bytes(plan) > plan.machine.output_bytes:
        room = plan.machine.output_bytes - (buffer_bytes(plan) - plan.run_sums * SUM_BYTES)
        sets = room // (plan.set_sums * SUM_BYTES)
        if sets < 1:
            return None
        plan = replace(plan, chunks=_ceil(plan.sets, sets))
    plan = _in_parts(plan)
    return plan if fits(plan) else None


def _in_parts(plan: Plan) -> Plan:
    """The plan in parts that fit the global memory; groups are cut first, they share nothing."""
    while plan.global_bytes > plan.machine.global_bytes and plan.parts < _MOST_PARTS:
        cut = plan.cut
        if plan.group_tiles > 1:
            plan = replace(plan, cut=replace(cut, groups=cut.groups + 1))
            continue
        smaller: list[Plan] = []
        if plan.output_tiles > 1:
            smaller.append(replace(plan, cut=replace(cut, outputs=cut.outputs + 1)))
        if plan.sets > 1 and plan.passes == 1:
            smaller.append(replace(plan, cut=replace(cut, positions=cut.positions + 1)))
        if not smaller:
            return plan
        plan = min(smaller, key=lambda each: each.global_bytes)
    return replace(plan, cut=_without_empty(plan))


def _without_empty(plan: Plan) -> Parts:
    """The parts of a plan in which there is something to do."""
    whole = replace(plan, cut=Parts())
    return Parts(
        _ceil(whole.group_tiles, plan.group_tiles),
        _ceil(whole.output_tiles, plan.output_tiles),
        _ceil(whole.sets, plan.sets),
    )


_MOST_PARTS = 1024
"""Launches of one kernel."""


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)


def _splits(plan: Plan) -> list[Split]:
    """All ways to share the macros that leave no dimension with more macros than work."""
    macros = plan.machine.macros
    limits = (
        plan.rounds,
        plan.group_tiles,
        plan.output_tiles,
        plan.placement.units,
    )
    found = [Split(*counts) for counts in _shares(macros, limits)]
    return [split for split in found if _suits(plan, split)]


def _suits(plan: Plan, split: Split) -> bool:
    """Overlapping runs need all macros along the positions, and all columns of each."""
    if plan.passes == 1:
        return True
    full = len(plan.placement.columns) == plan.columns
    return full and split.macros == split.positions


def _shares(macros: int, limits: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Counts at most `limits` whose product is at most `macros` and cannot grow in the last one."""
    if len(limits) == 1:
        yield (min(macros, limits[0]),)
        return
    for count in range(1, min(macros, limits[0]) + 1):
        for rest in _shares(macros // count, limits[1:]):
            yield (count, *rest)


def require(choice: Choice | None, kernel: MacKernel, machine: CimMachine) -> Choice:
    """The choice, or the error that no plan fits."""
    if choice is None:
        raise UserError(
            f"no mapping of a kernel with outputs {kernel.output_shape} fits {machine.name}",
            f"global memory holds {machine.global_bytes} bytes, output memory "
            f"{machine.output_bytes}",
            "split the kernel into smaller ones, or choose a larger machine",
        )
    return choice
