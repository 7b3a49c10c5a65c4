"""Named pipelines: passes that run others in a fixed order.

`pattern-to-upmem{machine=... tasklets=... block=... dpus=... fuse=... narrow=...}` is

    pattern-fuse, canonicalize, pattern-narrow, convert-pattern-to-upmem

with the conversion's options handed on. With `fuse=false` the first two are left out, so that every
pattern goes through MRAM as it is written; with `narrow=false` the third one.

`pattern-to-simdram{machine=... library=... mapping=... narrow=... polarity=...}` is

    pattern-fuse, canonicalize, pattern-narrow{widths=any}, pattern-group-to-reduce,
    convert-pattern-to-simdram, simdram-assign-polarity, simdram-allocate-rows

With `narrow=false` or `polarity=false` that pass is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class PatternToUpmemPipeline(ModulePass):
    """Compiles `pattern` programs for UPMEM.

    Before: functions with `pattern` operations. After: `upmem.kernel` operations, functions that
    launch them, and the module attribute `upmem.machine`.
    """

    name = "pattern-to-upmem"

    machine: str = "upmem-2560"
    tasklets: int | None = None
    block: int | None = None
    dpus: int | None = None
    fuse: bool = True
    narrow: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in self.steps():
            step.apply(ctx, op)

    def steps(self) -> list[ModulePass]:
        """The passes that this pipeline runs, in order."""
        from cim_opt.lowering.convert_pattern_to_upmem import ConvertPatternToUpmemPass

        convert = ConvertPatternToUpmemPass(
            machine=self.machine, tasklets=self.tasklets, block=self.block, dpus=self.dpus
        )
        steps: list[ModulePass] = []
        if self.fuse:
            steps += _fusion()
        if self.narrow:
            from cim_opt.passes.pattern_narrow import PatternNarrowPass

            steps.append(PatternNarrowPass())
        return [*steps, convert]


@dataclass(frozen=True)
class PatternToSimdramPipeline(ModulePass):
    """Compiles `pattern` programs for SIMDRAM.

    Before: functions with `pattern` operations. After: functions of bbops on vertical objects with
    their D rows, and the module attribute `simdram.machine`.
    """

    name = "pattern-to-simdram"

    machine: str = "simdram-1"
    library: str = "cim-opt"
    mapping: Literal["auto", "output-stationary", "reduction-in-lane"] = "auto"
    narrow: bool = True
    polarity: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in self.steps():
            step.apply(ctx, op)

    def steps(self) -> list[ModulePass]:
        """The passes that this pipeline runs, in order."""
        from cim_opt.hardware.simdram import load_machine
        from cim_opt.lowering.convert_pattern_to_simdram import ConvertPatternToSimdramPass
        from cim_opt.passes.pattern_group_to_reduce import PatternGroupToReducePass
        from cim_opt.passes.simdram_allocate_rows import SimdramAllocateRowsPass

        columns = load_machine(self.machine).lanes
        steps = _fusion()
        if self.narrow:
            from cim_opt.passes.pattern_narrow import PatternNarrowPass

            steps.append(PatternNarrowPass(widths="any"))
        steps += [
            PatternGroupToReducePass(columns=columns, mapping=self.mapping),
            ConvertPatternToSimdramPass(machine=self.machine),
        ]
        if self.polarity:
            from cim_opt.passes.simdram_assign_polarity import SimdramAssignPolarityPass

            steps.append(SimdramAssignPolarityPass(library=self.library))
        return [*steps, SimdramAllocateRowsPass(library=self.library)]


def _fusion() -> list[ModulePass]:
    from xdsl.transforms.canonicalize import CanonicalizePass

    from cim_opt.passes.pattern_fuse import PatternFusePass

    return [PatternFusePass(), CanonicalizePass()]
