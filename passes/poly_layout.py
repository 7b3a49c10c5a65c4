"""`poly-layout`: chooses how a kernel's inputs lie in memory.

    %y = poly.kernel ... cover <...> macros [1, 1, 1, 8] { ... }

becomes

    %y = poly.kernel ... cover <...> macros [1, 1, 1, 8] layout "window1" { ... }

Every macro step reads one run of bytes. With layout `steps` each macro of each step has its inputs
to itself, one step after another: windows of the input that overlap are copied. With `window0`,
`window1`, ... the macros of a step take neighbouring positions along that axis, and their inputs
are one window in which what they share lies once; lines of the axis then are whole steps. The
fewest cycles decide, then the fewest bytes to bring into the layout: duplicates are made only where
they pay. `explain` gives both numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from cim_opt.passes.explain import remark


@dataclass(frozen=True)
class PolyLayoutPass(ModulePass):
    """Sets `layout` of each `poly.kernel`; see the module's documentation."""

    name = "poly-layout"

    machine: str = "cim-32x64-8"
    movement: bool = True
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.lowering.poly_plans import planned_kernels

        for kernel, choice in planned_kernels(op, self.machine, self.movement):
            plan = choice.plan
            kernel.layout = StringAttr(plan.layout)
            if self.explain:
                laid_out = plan.parts * prod(plan.input_shape) * plan.input_bytes
                groups = plan.kernel.groups * plan.kernel.in_channels
                raw = groups * prod(axis.length for axis in plan.kernel.axes) * plan.input_bytes
                remark(
                    kernel,
                    f"layout {plan.layout}: {laid_out:,} bytes of inputs for {raw:,} in the "
                    f"tensor, {choice.cycles:,} cycles, {plan.layout_cycles:,} for layout",
                )
