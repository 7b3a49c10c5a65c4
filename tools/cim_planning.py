"""Plans of kernels as cells of a table: what is planned, how well, and how long planning took."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from time import perf_counter

from cim_opt.hardware.cim import CimMachine, load_machine
from cim_opt.mapping.cim_ablations import WITHOUT
from cim_opt.mapping.cim_code import program
from cim_opt.mapping.cim_covers import Mapping, covers_for
from cim_opt.mapping.cim_placement import place
from cim_opt.mapping.cim_search import Choice, Tiled, best_plan, plans, tile_of
from cim_opt.polyhedral.bounds import Bound, lower_bound, utilisation
from cim_opt.polyhedral.cover import steps
from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.tools.bench_table import Cells

MACHINES = ("cim-32x64-8", "cim-64x64-8", "cim-32x64-1", "cim-64x64-1")
"""The machines of the tables, those with eight macros first."""

Covers = Callable[[MacKernel, CimMachine], Iterable[Tiled]]


def family(mapping: Mapping) -> Covers:
    """The covers of a mapping, for kernels of 8 bits."""
    return partial(_family, mapping)


def lacking(step: str) -> Covers:
    """The covers that the search finds without one of its steps."""
    return partial(_lacking, step)


def _lacking(step: str, kernel: MacKernel, machine: CimMachine) -> list[Tiled]:
    return WITHOUT[step](kernel, machine.rows, machine.columns)


def _family(mapping: Mapping, kernel: MacKernel, machine: CimMachine) -> list[Tiled]:
    return covers_for(kernel, machine.rows, machine.columns, mapping)


def planned(kernel: MacKernel, machine: str, covers: Covers, *, movement: bool = True) -> Cells:
    """The best plan among `covers`; with `compile_s` alone when none of them can be carried out.

    `compile_s` is the wall time from the kernel to the program, with nothing known beforehand: all
    that was remembered of kernels before is forgotten. `steps` are those in which the macro does
    something, `macro_steps` those that run, padding to the number of macros included, and
    `fewest_steps` the least that any of the covers has; the plan is chosen by cycles.
    """
    described = load_machine(machine)
    forget()
    start = perf_counter()
    found = tuple(covers(kernel, described))
    choice = best_plan(kernel, described, found, movement=movement)
    if choice is not None:
        program(choice.plan)
    seconds = perf_counter() - start
    if choice is None:
        return dict.fromkeys(REQUIRED) | {"compile_s": seconds}
    fewest = fewest_steps(kernel, described, found)
    return _cells(choice) | {"fewest_steps": fewest, "compile_s": seconds}


REQUIRED = ("steps", "utilisation", "cycles", "layout_cycles", "fewest_steps")
"""Cells of a plan that are there without one too, as None."""


def _cells(choice: Choice) -> Cells:
    plan = choice.plan
    macro = plan.machine.rows, plan.machine.columns
    count = steps_of(plan.kernel, Tiled(plan.cover, plan.channels))
    split = plan.split
    return {
        "steps": count,
        "utilisation": utilisation(plan.kernel, *macro, count),
        "cycles": choice.cycles,
        "layout_cycles": plan.layout_cycles,
        "macro_steps": plan.macro_steps,
        "images": len(plan.cover.images),
        "split": f"{split.rounds}x{split.groups}x{split.outputs}x{split.positions}",
        "order": plan.order,
        "layout": plan.layout,
        "parts": plan.parts,
    }


def steps_of(kernel: MacKernel, tiled: Tiled) -> int:
    """Macro steps of all tiles of channels; steps without outputs are skipped."""
    pairs = zip((kernel.out_channels, kernel.in_channels), tiled.channels, strict=True)
    tiles = prod(-(-count // share) for count, share in pairs)
    return tiles * steps(tiled.cover, tile_of(kernel, tiled.channels))


def fewest_steps(kernel: MacKernel, machine: CimMachine, covers: Iterable[Tiled]) -> int | None:
    """The fewest macro steps of those covers that have a plan, however many cycles it takes."""
    for count, tiled in sorted(
        ((steps_of(kernel, t), t) for t in covers), key=lambda pair: pair[0]
    ):
        placement = place(tiled.cover, tile_of(kernel, tiled.channels))
        if placement is None or len(placement.columns) > machine.columns:
            continue
        if any(True for _ in plans(kernel, machine, tiled, placement, 8)):
            return count
    return None


def bound_cells(kernel: MacKernel, machine: str) -> Cells:
    """The fewest steps that any mapping can have, by which rule, and the utilisation then."""
    described = load_machine(machine)
    macro = described.rows, described.columns
    bound: Bound = lower_bound(kernel, *macro)
    return {
        "bound": bound.rule,
        "bound_steps": bound.steps,
        "bound_utilisation": utilisation(kernel, *macro, bound.steps),
    }


def forget() -> None:
    """Empties what the functions of this project remember of kernels, covers and schedules."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("cim_opt.polyhedral.", "cim_opt.mapping.", "cim_opt.cost.")):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


def total(row: Cells, columns: Sequence[str]) -> float | None:
    """The sum of these columns of a row, None when one has no value."""
    values: list[float | None] = [row.get(column) for column in columns]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def ratio(before: Sequence[Cells], after: Sequence[Cells], columns: Sequence[str]) -> float | None:
    """Geometric mean of how much less `after` has, row by row, of the sum of these columns.

    None when a row has no value, or there is none.
    """
    product = 1.0
    for old, new in zip(before, after, strict=True):
        value, less = total(old, columns), total(new, columns)
        if value is None or less is None:
            return None
        product *= value / less
    return product ** (1 / len(before)) if before else None
