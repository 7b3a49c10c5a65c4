"""`poly-coalesce`: fuses the coordinates of a schedule into one virtual row and one virtual column.

    %y = poly.kernel ... basis {...}
        schedule <"{ [oc, ow, kw] -> basis[floor((ow)/4), kw + (ow) mod 4, oc, (ow) mod 4] }">
        { ... }

becomes

    %y = poly.kernel ... basis {...}
        schedule <"{ [oc, ow, kw] -> virtual[floor((ow)/4), kw + (ow) mod 4, 4oc + (ow) mod 4] }">
        { ... }

Channels count most, then the axes in order; sizes are those of the boxes of the coordinates.
Source: PolyCIM, section 3.3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.passes.explain import remark


@dataclass(frozen=True)
class PolyCoalescePass(ModulePass):
    """Composes `schedule` of each `poly.kernel`; see the module's documentation."""

    name = "poly-coalesce"

    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                self._coalesce(kernel)

    def _coalesce(self, op: KernelOp) -> None:
        from cim_opt.lowering import poly_schedules as schedules
        from cim_opt.lowering.poly_kernels import recognise_kernel
        from cim_opt.lowering.poly_plans import kernel_of

        if schedules.stage_of(op) != "basis":
            raise schedules.wrong_stage(op, "poly-coalesce follows poly-affine-schedule")
        schedule = schedules.schedule_of(op, kernel_of(recognise_kernel(op)))
        assert op.schedule is not None
        op.schedule = schedules.then(op, op.schedule, schedules.virtual_map(schedule))
        if self.explain:
            rows, columns = (schedules.sizes_of(schedule, role) for role in ("row", "column"))
            remark(op, f"coalesced: {_product(rows)} rows, {_product(columns)} columns")


def _product(sizes: tuple[int, ...]) -> str:
    from math import prod

    factors = " x ".join(map(str, sizes))
    return f"{prod(sizes)} ({factors})" if len(sizes) > 1 else f"{prod(sizes)}"
