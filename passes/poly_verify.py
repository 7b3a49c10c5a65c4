"""`poly-verify`: checks how kernels are mapped, and changes nothing.

    %y = poly.kernel ... splits {...} basis {...} schedule <...> cover <...> { ... }

For each kernel:

- it is a multiply-accumulate over a box of loops, so its reductions may be reassociated;
- `reuse` has directions along which the operands keep their element;
- `schedule` does every iteration once, each in a cell and step of its own; along its rows a step
  reads one input each, along its columns it adds to one output each, by the accesses of the kernel;
  and it is the one that `splits` and `basis` describe;
- `cover` does every product once, its cells hold the weights that join their row and column, and
  after `poly-posttile` it is that of the schedule.

Schedules are checked by isl, covers on one period of their lattice, and by isl too where they have
few pieces. With `machine` rows and columns are also those of its macros. The first thing that is
wrong is the error; `explain` says what was checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.passes.explain import remark

if TYPE_CHECKING:
    from cim_opt.hardware.cim import CimMachine


@dataclass(frozen=True)
class PolyVerifyPass(ModulePass):
    """Checks each `poly.kernel`; see the module's documentation."""

    name = "poly-verify"

    machine: str | None = None
    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from cim_opt.hardware.cim import load_machine

        machine = None if self.machine is None else load_machine(self.machine)
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                checked = checked_parts(kernel, machine)
                if self.explain:
                    remark(kernel, f"verified: {', '.join(checked)}")


def checked_parts(op: KernelOp, machine: CimMachine | None) -> list[str]:
    """What was checked of a kernel. Raises UserError, with its place, for what is wrong."""
    from cim_opt.lowering.poly_checks import Checks

    try:
        return Checks(op, machine).run()
    except UserError as error:
        error.location = error.location or location_of(op)
        raise
