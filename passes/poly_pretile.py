"""`poly-pretile`: splits the loops of a kernel into the levels that an affine schedule needs.

    %y = poly.kernel ... domain <"{ [oc, ow, kw] : ... }"> accesses [...] { ... }

becomes, on a machine of 8 columns

    %y = poly.kernel ... domain <"{ [oc, ow, kw] : ... }"> accesses [...]
        splits {"o0" = array<i64: 2, 4>}
        schedule <"{ [oc, ow, kw] -> split[oc, floor((ow)/4), (ow) mod 4, kw] }"> { ... }

Domain and accesses stay. Loops are named by what they do: g, oc, ic, o0 and k0 along axis 0, and so
on. The splits are those of the schedule with the fewest macro steps: loops into at most `levels`
factors, and blocks that leave a part over (`exact`: only factors). Channels are split where a macro
takes only some of them. Source: PolyCIM, section 3.3.1.
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
class PolyPretilePass(ModulePass):
    """Sets `splits` and `schedule` of each `poly.kernel`; see the module's documentation."""

    name = "poly-pretile"

    machine: str = "cim-32x64-8"
    levels: int = 2
    exact: bool = False
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.errors import UserError
        from cim_opt.hardware.cim import load_machine

        machine = load_machine(self.machine)
        if self.levels < 1:
            raise UserError(
                f"loops of {self.levels} levels", "a loop has at least 1", "use levels=2"
            )
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                self._split(kernel, machine)

    def _split(self, op: KernelOp, machine: CimMachine) -> None:
        from cim_opt.lowering.poly_kernels import recognise_kernel
        from cim_opt.lowering.poly_plans import bits_of, kernel_of
        from cim_opt.lowering.poly_schedules import (
            split_map,
            splits_attribute,
            stage_of,
            wrong_stage,
        )
        from cim_opt.mapping.cim_schedules import best_schedule
        from cim_opt.polyhedral.affine_basis import Rules

        if stage_of(op) not in ("none", "split"):
            raise wrong_stage(op, "poly-pretile comes first")
        found = recognise_kernel(op)
        rules = Rules(levels=self.levels, uneven=not self.exact)
        macro = machine.rows, machine.columns_of(bits_of(op))
        schedule = best_schedule(kernel_of(found), *macro, rules)
        assert schedule is not None
        op.splits = splits_attribute(schedule.splits())
        op.schedule = split_map(op, found, schedule.splits())
        if self.explain:
            remark(op, f"splits: {describe(schedule.splits())}; {schedule.describe(*macro)}")


def describe(splits: dict[str, tuple[int, ...]]) -> str:
    """The levels of the loops that are split."""
    texts = (f"{loop} = {' x '.join(map(str, levels))}" for loop, levels in splits.items())
    return ", ".join(texts) or "none"
