"""Named pipelines: passes that run others in a fixed order.

`pattern-to-upmem{machine=... tasklets=... block=... dpus=... fuse=... stages=... narrow=...
merge=... reduce_strength=... unroll=... share=...}` is

    pattern-fuse, canonicalize, pattern-narrow, convert-pattern-to-upmem, upmem-strength-reduce,
    upmem-unroll, upmem-share

with the conversion's options handed on. With `fuse=false` the first two are left out, so that every
pattern goes through MRAM as it is written; with `stages=false` only patterns inside of element
functions are fused; `narrow=false`, `reduce_strength=false` and `share=false` leave the passes of
that name out. `unroll` is the factor of upmem-unroll, which is chosen when it is left out; 1 leaves
loops as they are.

`pattern-to-simdram{machine=... library=... mapping=... narrow=... polarity=...}` is

    pattern-fuse, canonicalize, pattern-narrow{widths=any}, pattern-group-to-reduce,
    convert-pattern-to-simdram, simdram-assign-polarity, simdram-allocate-rows

With `narrow=false` or `polarity=false` that pass is left out.

`conv-to-cim{machine=... mapping=... order=... budget=... movement=... without=... verify=...
explain=... sizes=... entry=...}` is

    convert-linalg-to-poly, convert-pattern-to-poly, poly-cover, poly-map-macros, poly-layout,
    poly-data-movement, poly-verify, convert-poly-to-cim

`mapping` is a family of covers, or `best` of all by modelled cycles; `budget` ends the search for a
kernel after that many seconds. `movement=false` shares macros among positions only and overlaps
little; `without` leaves one step of the search for covers out. With `verify=false` the check is
left out.
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
    stages: bool = True
    narrow: bool = True
    merge: Literal["machine", "host"] = "machine"
    reduce_strength: bool = True
    unroll: int | None = None
    share: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in self.steps():
            step.apply(ctx, op)

    def steps(self) -> list[ModulePass]:
        """The passes that this pipeline runs, in order."""
        from cim_opt.lowering.convert_pattern_to_upmem import ConvertPatternToUpmemPass
        from cim_opt.passes.upmem_unroll import UpmemUnrollPass

        convert = ConvertPatternToUpmemPass(
            machine=self.machine,
            tasklets=self.tasklets,
            block=self.block,
            dpus=self.dpus,
            merge=self.merge,
        )
        steps: list[ModulePass] = []
        if self.fuse:
            steps += _fusion(self.stages)
        if self.narrow:
            from cim_opt.passes.pattern_narrow import PatternNarrowPass

            steps.append(PatternNarrowPass())
        steps.append(convert)
        if self.reduce_strength:
            from cim_opt.passes.upmem_strength_reduce import UpmemStrengthReducePass

            steps.append(UpmemStrengthReducePass())
        steps.append(UpmemUnrollPass(self.unroll))
        if self.share:
            from cim_opt.passes.upmem_share import UpmemSharePass

            steps.append(UpmemSharePass())
        return steps


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


@dataclass(frozen=True)
class ConvToCimPipeline(ModulePass):
    """Compiles convolutions, matrix products and patterns that sum products for CIM macros.

    Before: functions with `linalg` or `pattern` operations. After: `cim.program` operations,
    functions that launch them on packed tensors, and the module attribute `cim.machine`.
    """

    name = "conv-to-cim"

    machine: str = "cim-32x64-8"
    mapping: Literal["im2col", "diagonal", "rectangles", "covers", "best"] = "best"
    order: str | None = None
    budget: float | int | None = None
    movement: bool = True
    without: Literal["covers", "coalescing", "pretiling", "affine"] | None = None
    verify: bool = True
    explain: bool = False
    sizes: tuple[int, ...] | None = None
    entry: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for step in self.steps():
            step.apply(ctx, op)

    def steps(self) -> list[ModulePass]:
        """The passes that this pipeline runs, in order."""
        from cim_opt.lowering.convert_linalg_to_poly import ConvertLinalgToPolyPass
        from cim_opt.lowering.convert_pattern_to_poly import ConvertPatternToPolyPass
        from cim_opt.lowering.convert_poly_to_cim import ConvertPolyToCimPass
        from cim_opt.passes.poly_cover import PolyCoverPass
        from cim_opt.passes.poly_data_movement import PolyDataMovementPass
        from cim_opt.passes.poly_layout import PolyLayoutPass
        from cim_opt.passes.poly_map_macros import PolyMapMacrosPass
        from cim_opt.passes.poly_verify import PolyVerifyPass

        machine, movement, explain = self.machine, self.movement, self.explain
        steps: list[ModulePass] = [
            ConvertLinalgToPolyPass(),
            ConvertPatternToPolyPass(sizes=self.sizes, entry=self.entry),
            PolyCoverPass(machine, self.mapping, self.budget, movement, self.without, explain),
            PolyMapMacrosPass(machine, movement, explain),
            PolyLayoutPass(machine, movement, explain),
            PolyDataMovementPass(machine, self.order, movement, explain),
        ]
        if self.verify:
            steps.append(PolyVerifyPass(machine, explain))
        return [*steps, ConvertPolyToCimPass(machine=self.machine)]


def _fusion(stages: bool = True) -> list[ModulePass]:
    from xdsl.transforms.canonicalize import CanonicalizePass

    from cim_opt.passes.pattern_fuse import PatternFusePass

    return [PatternFusePass(stages), CanonicalizePass()]
