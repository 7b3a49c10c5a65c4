"""The exhaustive search for splits and chunks, cross-checked by z3 on small cases.

z3 gets the bound that plans are sorted by and the capacities as formulas over bit vectors, with
every split of the macros and every number of chunks allowed, and is asked for anything better.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from cim_opt.hardware.cim import CimMachine, load_machine
from cim_opt.mapping.cim_covers import covers_for
from cim_opt.mapping.cim_placement import place
from cim_opt.mapping.cim_plan import SUM_BYTES, Plan, Split
from cim_opt.mapping.cim_search import least_cycles, plans, tile_of
from cim_opt.polyhedral.kernel import Axis, MacKernel

z3: Any = import_module("z3")
Term = Any
_BITS = 20
"""Enough for every cost below; more takes z3 longer."""

EIGHT = load_machine("cim-32x64-8")
SMALL = replace(EIGHT, output_bytes=1536)
KERNELS = {
    "depthwise": MacKernel(6, 1, 1, (Axis(9, 3), Axis(9, 3))),
    "convolution": MacKernel(1, 20, 12, (Axis(5, 3), Axis(5, 3))),
    "grouped": MacKernel(3, 4, 8, (Axis(7, 3), Axis(4, 3))),
    "product": MacKernel(1, 30, 100, (Axis(13),)),
    "deep": MacKernel(1, 3, 40, (Axis(11, 5, 2),)),
}


def _ceil(value: Term, divisor: Term) -> Term:
    return z3.UDiv(value + divisor - 1, divisor)


def _most(left: Term, right: Term) -> Term:
    return z3.If(z3.UGE(left, right), left, right)


class _Movement:
    """Cycles and capacities of a plan as formulas over its split and its chunks."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.machine = plan, plan.machine
        self.rounds, self.groups, self.outputs, self.positions, self.chunks = (
            z3.BitVec(name, _BITS)
            for name in ("rounds", "groups", "outputs", "positions", "chunks")
        )
        kernel, channels = plan.kernel, plan.channels
        self.macros = self.rounds * self.groups * self.outputs * self.positions
        deep = -(-kernel.in_channels // channels[1]) * len(plan.placement.images)
        wide = -(-kernel.out_channels // channels[0])
        together = -(-kernel.groups // plan.cover.packed)
        self.turns = _ceil(z3.BitVecVal(deep, _BITS), self.rounds)
        tiles = _ceil(z3.BitVecVal(together, _BITS), self.groups)
        tiles *= _ceil(z3.BitVecVal(wide, _BITS), self.outputs)
        units = z3.BitVecVal(plan.placement.units, _BITS)
        self.sets = _ceil(_ceil(units, self.positions), self.chunks)
        self.loads = tiles * self.chunks * self.turns
        shared = self.macros == self.outputs
        self.set_bytes = z3.If(shared, plan.rows, plan.rows * self.macros) * plan.input_bytes
        self.limits = (deep, together, wide, plan.placement.units)

    def constraints(self) -> list[Term]:
        machine, shares = self.machine, (self.rounds, self.groups, self.outputs, self.positions)
        found: list[Term] = []
        for share, limit in zip((*shares, self.chunks), (*self.limits, 16), strict=True):
            found += [z3.UGE(share, 1), z3.ULE(share, limit)]
        found += [z3.ULE(share, machine.macros) for share in shares]
        sums = self.macros * self.plan.columns * SUM_BYTES
        # Sums of one set, without those of macros that add to the same ones.
        kept = z3.UDiv(sums, self.rounds)
        buffer = z3.If(self.turns == 1, 0, self.sets * kept) + sums
        found += [
            z3.ULE(self.macros, machine.macros),
            z3.Or(self.chunks == 1, z3.UGT(self.turns, 1)),
            z3.ULE(buffer, machine.output_bytes),
            z3.ULE(sums, machine.output_register_bytes),
            z3.ULE(self.set_bytes, machine.input_register_bytes),
        ]
        return found

    def cycles(self) -> Term:
        """`least_cycles` of the plan."""
        machine, plan = self.machine, self.plan
        sums = self.macros * plan.columns * SUM_BYTES
        busy = plan.bits + machine.transfer_fill_cycles
        drained = busy + machine.mvm_drain_cycles
        filled = busy + machine.mvm_input_hold_cycles
        step = _most(
            drained + _ceil(sums, machine.output_register_width_bytes),
            filled + _ceil(self.set_bytes, machine.input_register_width_bytes),
        )
        bytes = plan.rows * self.macros * (machine.bit_columns // 8)
        write = _ceil(bytes, self.macros * machine.weight_write_bytes)
        load = _ceil(bytes, machine.global_width_bytes) + write
        return self.loads * (load - 1 + (self.sets - 1) * step + plan.bits)


@pytest.mark.parametrize("machine", [EIGHT, SMALL], ids=["whole", "small"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_split_or_chunk_is_better_than_those_enumerated(name: str, machine: CimMachine) -> None:
    kernel = KERNELS[name]
    for tiled in covers_for(kernel, machine.rows, 8, "im2col"):
        placement = place(tiled.cover, tile_of(kernel, tiled.channels))
        assert placement is not None and placement.overlap == 1
        found = list(plans(kernel, machine, tiled, placement, 8, layout="steps"))
        best = min(least_cycles(plan) for plan in found)
        movement = _Movement(
            Plan(kernel, machine, tiled.cover, placement, tiled.channels, Split(), 8)
        )
        solver = z3.Solver()
        solver.add(*movement.constraints())
        cycles = movement.cycles()
        assert solver.check(cycles == best) == z3.sat
        assert solver.check(z3.ULT(cycles, best)) == z3.unsat


def test_the_small_machine_needs_chunks() -> None:
    """Otherwise the test above would not see them."""
    kernel = KERNELS["convolution"]
    (tiled,) = covers_for(kernel, 32, 8, "im2col")
    placement = place(tiled.cover, tile_of(kernel, tiled.channels))
    assert placement is not None
    found = plans(kernel, SMALL, tiled, placement, 8, layout="steps")
    assert {plan.chunks for plan in found} > {1}
