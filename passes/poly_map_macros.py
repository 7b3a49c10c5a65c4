"""`poly-map-macros`: shares a machine's macros among the tiles of a kernel.

    %y = poly.kernel ... cover <...> { ... }

becomes, on a machine of 8 macros

    %y = poly.kernel ... cover <...> macros [2, 1, 1, 4] { ... }

The counts are macros over rounds of the same sums (rows or input channels that do not fit one
macro: outputs are reused), over groups (nothing is reused), over output channels (inputs are
reused), and over positions (weights are reused, each macro has a copy). PolyCIM, section 3.4.2,
prefers the first to the third, and copies last; here every share is timed, and that order breaks
ties. Counts need not divide: what is left over is at most one step of some macros. With
`movement=false` all macros share the positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.passes import ModulePass

from cim_opt.passes.explain import remark


@dataclass(frozen=True)
class PolyMapMacrosPass(ModulePass):
    """Sets `macros` of each `poly.kernel`; see the module's documentation."""

    name = "poly-map-macros"

    machine: str = "cim-32x64-8"
    movement: bool = True
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.lowering.poly_plans import planned_kernels
        from cim_opt.mapping.cim_plan import steps_text

        for kernel, choice in planned_kernels(op, self.machine, self.movement):
            split = choice.plan.split
            counts = (split.rounds, split.groups, split.outputs, split.positions)
            kernel.macros = DenseArrayBase.from_list(i64, counts)
            if self.explain:
                remark(
                    kernel,
                    f"macros: {split.rounds} rounds x {split.groups} groups x "
                    f"{split.outputs} output channels x {split.positions} positions, "
                    f"{steps_text(choice.plan.macro_steps)}, {choice.cycles:,} cycles",
                )
