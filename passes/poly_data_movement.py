"""`poly-data-movement`: when inputs come and sums leave while the macros work.

    %y = poly.kernel ... cover <...> macros [1, 1, 1, 8] { ... }

becomes

    %y = poly.kernel ... cover <...> macros [1, 1, 1, 8] order "MGLDF" { ... }

The letters are the instructions for one set of positions: M multiply, G bring the inputs of the
next set from global to input memory, D drain this set's sums from the output register, L let sums
leave (or add them to those that wait in the output memory), F fill the input register. L before D
is for the sums of the set before, after D for those of this set. Without G inputs come from global
memory at once. The order with the fewest cycles on the machine's model is taken: not volumes are
minimised but time, with weight loads, reads and writes of partial sums, and conflicts on memories
and units. `order` takes that one, and `movement=false` the one that overlaps least.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.passes.explain import remark


@dataclass(frozen=True)
class PolyDataMovementPass(ModulePass):
    """Sets `order` of each `poly.kernel`; see the module's documentation."""

    name = "poly-data-movement"

    machine: str = "cim-32x64-8"
    order: str | None = None
    movement: bool = True
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.lowering.poly_plans import planned_kernels

        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and self.order is not None:
                kernel.order = StringAttr(self.order)
        for kernel, choice in planned_kernels(op, self.machine, self.movement):
            kernel.order = StringAttr(choice.plan.order)
            if self.explain:
                stalls = sum(choice.timing.stalls.values())
                remark(
                    kernel,
                    f"order {choice.plan.order}: {choice.cycles:,} cycles, {stalls:,} of them "
                    f"stalls; {choice.plan.chunks} chunks, {choice.plan.parts} launches",
                )
