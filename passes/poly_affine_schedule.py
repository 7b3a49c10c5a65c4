"""`poly-affine-schedule`: chooses the vectors along which a kernel's loops become rows and columns.

    %y = poly.kernel ... splits {"o0" = array<i64: 2, 4>}
        schedule <"{ [oc, ow, kw] -> split[oc, floor((ow)/4), (ow) mod 4, kw] }"> { ... }

becomes

    %y = poly.kernel ... splits {"o0" = array<i64: 2, 4>}
        basis {"time" = [array<i64: 0, 1, 0, 0>],
               "row" = [array<i64: 0, 0, 0, 1>],
               "column" = [array<i64: 1, 0, 0, 0>, array<i64: 0, 0, 1, -1>]}
        schedule <"{ [oc, ow, kw] -> basis[floor((ow)/4), kw + (ow) mod 4, oc, (ow) mod 4] }">
        { ... }

Along the vectors of columns the input stays the same, along those of rows the output; (0, 0, 1, -1)
is skewed, and neighbouring outputs share a row that way. At most `skews` vectors are skewed (any
number by default). Of all bases the one with the fewest macro steps is taken, then the one with
the fewest sets of weights; without splits in the kernel the pass chooses these too. A basis that
the kernel has already is kept, and the schedule made for it. Source: PolyCIM, section 3.3.2.
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
    from cim_opt.mapping.cim_schedules import Schedule
    from cim_opt.polyhedral.kernel import MacKernel


@dataclass(frozen=True)
class PolyAffineSchedulePass(ModulePass):
    """Sets `basis`, `splits` and `schedule` of each `poly.kernel`; see the documentation."""

    name = "poly-affine-schedule"

    machine: str = "cim-32x64-8"
    skews: int | None = None
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.hardware.cim import load_machine

        machine = load_machine(self.machine)
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                self._schedule(kernel, machine)

    def _schedule(self, op: KernelOp, machine: CimMachine) -> None:
        from cim_opt.lowering import poly_schedules as schedules
        from cim_opt.lowering.poly_kernels import recognise_kernel
        from cim_opt.lowering.poly_plans import bits_of, kernel_of

        if schedules.stage_of(op) not in ("none", "split"):
            raise schedules.wrong_stage(op, "poly-affine-schedule comes before the others")
        found = recognise_kernel(op)
        kernel = kernel_of(found)
        macro = machine.rows, machine.columns_of(bits_of(op))
        if op.basis is None:
            schedule = self._chosen(op, kernel, macro)
        else:
            schedule = schedules.schedule_of(op, kernel)
        op.splits = schedules.splits_attribute(schedule.splits())
        op.basis = schedules.basis_attribute(schedule.basis())
        split = op.schedule or schedules.split_map(op, found, schedule.splits())
        op.schedule = schedules.then(op, split, schedules.basis_map(schedule))
        if self.explain:
            remark(op, f"basis: {describe(schedule)}; {schedule.describe(*macro)}")

    def _chosen(self, op: KernelOp, kernel: MacKernel, macro: tuple[int, int]) -> Schedule:
        """The best basis for the splits that are there, or for any. Raises UserError for none."""
        from cim_opt.errors import UserError
        from cim_opt.locations import location_of
        from cim_opt.lowering.poly_schedules import splits_of
        from cim_opt.mapping.cim_schedules import best_schedule
        from cim_opt.polyhedral.affine_basis import Rules

        splits = splits_of(op, kernel)
        schedule = best_schedule(kernel, *macro, Rules(skewed=self.skews), splits)
        if schedule is None:
            skews = "" if self.skews is None else f" with at most {self.skews} skewed vectors"
            raise UserError(
                f"no basis{skews} for these splits of the kernel",
                f"a skewed vector moves along each split loop, columns are at most {macro[1]}",
                "leave splits out: poly-affine-schedule chooses them too",
                location_of(op),
            )
        return schedule


def describe(schedule: Schedule) -> str:
    """What each vector moves along, by role."""
    from cim_opt.mapping.cim_schedules import level_names

    names = level_names(schedule.kernel, schedule.splits())
    texts: dict[str, list[str]] = {"columns": [], "rows": [], "times": []}
    for vector in schedule.basis():
        terms = (
            f"{'-' if entry < 0 else '+'} {'' if abs(entry) == 1 else abs(entry)}{name}"
            for name, entry in zip(names, vector.entries, strict=True)
            if entry
        )
        texts[f"{vector.role}s"].append(" ".join(terms).removeprefix("+ "))
    return ", ".join(f"{what} {', '.join(found) or 'none'}" for what, found in texts.items())
