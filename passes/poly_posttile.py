"""`poly-posttile`: maps virtual rows and columns to those of a macro, and makes the cover.

    %y = poly.kernel ... basis {...}
        schedule <"{ [oc, ow, kw] -> virtual[floor((ow)/4), kw + (ow) mod 4, 4oc + (ow) mod 4] }">
        { ... }

becomes, on a macro with at least 6 rows

    %y = poly.kernel ... basis {...}
        schedule <"{ [oc, ow, kw] -> macro[floor((ow)/4), kw + (ow) mod 4, 4oc + (ow) mod 4] }">
        cover <dense<4> : tensor<1x1xi32>, ..., [#poly.image<...>]> { ... }

With more virtual rows than the macro has, the row is their remainder and the quotient one more
time, each with weights of its own. The cover has one image for each use of the macro in a period of
the schedule, so `convert-poly-to-cim` lowers exactly this schedule. Source: PolyCIM, section 3.3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.passes.explain import remark

if TYPE_CHECKING:
    from cim_opt.hardware.cim import CimMachine


@dataclass(frozen=True)
class PolyPosttilePass(ModulePass):
    """Composes `schedule` and sets `cover` of each `poly.kernel`; see the documentation."""

    name = "poly-posttile"

    machine: str = "cim-32x64-8"
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.hardware.cim import load_machine

        machine = load_machine(self.machine)
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                self._tile(kernel, machine)

    def _tile(self, op: KernelOp, machine: CimMachine) -> None:
        from cim_opt.errors import UserError
        from cim_opt.locations import location_of
        from cim_opt.lowering import poly_schedules as schedules
        from cim_opt.lowering.poly_covers import cover_attribute
        from cim_opt.lowering.poly_kernels import recognise_kernel
        from cim_opt.lowering.poly_plans import bits_of, kernel_of

        if schedules.stage_of(op) != "virtual":
            raise schedules.wrong_stage(op, "poly-posttile follows poly-coalesce")
        kernel = kernel_of(recognise_kernel(op))
        schedule = schedules.schedule_of(op, kernel)
        macro = machine.rows, machine.columns_of(bits_of(op))
        if not schedule.is_placed(*macro):
            raise UserError(
                f"a schedule for a macro of {macro[0]} rows and {macro[1]} columns whose sums lie "
                "in no known order",
                "steps take blocks of the outputs, or one set of weights slides over them",
                "leave splits of taps out, or choose the cover with poly-cover",
                location_of(op),
            )
        assert op.schedule is not None
        op.schedule = schedules.then(op, op.schedule, schedules.macro_map(schedule, *macro))
        op.cover = cover_attribute(schedule.tiled(*macro), kernel)
        if self.explain:
            used = schedule.on(*macro)
            remark(
                op,
                f"{used.virtual_rows} rows by {used.virtual_columns} columns on {macro[0]} by "
                f"{macro[1]}; {schedule.describe(*macro)}",
            )
