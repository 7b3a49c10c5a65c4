"""`poly-cover`: chooses the images of weights that a kernel's macros apply.

    %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
        domain <"{ [oc, o0, k0] : ... }"> accesses [...] { ... }

becomes, on a machine of 6 rows and 8 columns, where a step takes four positions of both channels

    %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
        domain <"{ [oc, o0, k0] : ... }"> accesses [...]
        cover <dense<4> : tensor<1x1xi32>, ..., [#poly.image<...>]> { ... }

`mapping` names a family: `im2col` (one position a step), `diagonal` (the same for several groups
side by side), `rectangles` (blocks of outputs, as affine
schedules give them), `covers` (sliding covers, also of several images), or `best` of all. Within a
family the one with the fewest modelled cycles is taken, with the split of macros and the order of
instructions that suit it best (`movement=false`: without looking for these); after `budget` seconds
the best one so far. A kernel without a mapping of the family takes im2col. `explain` says which,
and how far its macro steps are from a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.passes.explain import remark

if TYPE_CHECKING:
    from cim_opt.hardware.cim import CimMachine
    from cim_opt.mapping.cim_covers import Mapping
    from cim_opt.mapping.cim_search import Choice
    from cim_opt.polyhedral.kernel import MacKernel


@dataclass(frozen=True)
class PolyCoverPass(ModulePass):
    """Sets `cover` of each `poly.kernel`; see the module's documentation."""

    name = "poly-cover"

    machine: str = "cim-32x64-8"
    mapping: Literal["im2col", "diagonal", "rectangles", "covers", "best"] = "best"
    budget: float | int | None = None
    movement: bool = True
    without: Literal["covers", "coalescing", "pretiling", "affine"] | None = None
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.hardware.cim import load_machine

        machine = load_machine(self.machine)
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                self._choose(kernel, machine)

    def _choose(self, op: KernelOp, machine: CimMachine) -> None:
        from cim_opt.lowering.poly_covers import cover_attribute
        from cim_opt.lowering.poly_kernels import recognise_kernel
        from cim_opt.lowering.poly_plans import bits_of, kernel_of, required
        from cim_opt.mapping.cim_search import Tiled

        kernel = kernel_of(recognise_kernel(op))
        mapping: Mapping = self.mapping
        best = self._best(kernel, machine, bits_of(op), mapping)
        if best is None:
            # Where windows do not slide there are no covers: a matrix product beside convolutions.
            mapping = "im2col"
            best = self._best(kernel, machine, bits_of(op), mapping)
        choice = required(op, best, kernel, machine)
        plan = choice.plan
        op.cover = cover_attribute(Tiled(plan.cover, plan.channels), kernel)
        if self.explain:
            remark(op, f"{mapping}: {describe(choice)}")

    def _best(
        self, kernel: MacKernel, machine: CimMachine, bits: int, mapping: Mapping
    ) -> Choice | None:
        from cim_opt.mapping.cim_ablations import WITHOUT
        from cim_opt.mapping.cim_covers import covers_for
        from cim_opt.mapping.cim_search import best_plan

        rows, columns = machine.rows, machine.columns_of(bits)
        if self.without is not None and mapping == "best":
            covers = WITHOUT[self.without](kernel, rows, columns)
        else:
            covers = covers_for(kernel, rows, columns, mapping)
        return best_plan(
            kernel, machine, covers, bits=bits, movement=self.movement, budget=self.budget
        )


def describe(choice: Choice) -> str:
    """Macro steps, images, use and cycles of a choice, and its distance from a lower bound."""
    from cim_opt.mapping.cim_plan import steps_text
    from cim_opt.polyhedral.bounds import lower_bound

    plan = choice.plan
    bound = lower_bound(plan.kernel, plan.machine.rows, plan.columns)
    cells = plan.machine.rows * plan.columns
    use = plan.kernel.macs / (plan.macro_steps * cells)
    return (
        f"{steps_text(plan.macro_steps)} (at least {bound.steps:,}), "
        f"{len(plan.cover.images)} images, {use:.1%} of the cells used, "
        f"{choice.cycles:,} cycles, {plan.layout_cycles:,} for layout"
    )
