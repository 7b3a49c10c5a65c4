"""What xDSL's tools get from cim-opt: dialects, passes and targets by name.

Every start of `xdsl-opt` in the environment loads this module, so it holds only names and
factories; the factories import what they return when it is first asked for.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.universe import XDSL_UNIVERSE, Universe

DIALECTS = {
    "pattern": "cim_opt.dialects.pattern:Pattern",
    "upmem": "cim_opt.dialects.upmem:Upmem",
    "simdram": "cim_opt.dialects.simdram:Simdram",
    "poly": "cim_opt.dialects.poly:Poly",
    "cim": "cim_opt.dialects.cim:Cim",
}

EXTENDED_DIALECTS = {
    "linalg": "cim_opt.dialects.linalg_convolutions:Linalg",
}
"""Dialects of xDSL with operations of ours beside its own; see `_extend_stock_dialects`."""

PASSES = {
    "pattern-fuse": "cim_opt.passes.pattern_fuse:PatternFusePass",
    "pattern-narrow": "cim_opt.passes.pattern_narrow:PatternNarrowPass",
    "upmem-strength-reduce": "cim_opt.passes.upmem_strength_reduce:UpmemStrengthReducePass",
    "upmem-unroll": "cim_opt.passes.upmem_unroll:UpmemUnrollPass",
    "upmem-share": "cim_opt.passes.upmem_share:UpmemSharePass",
    "convert-pattern-to-upmem": (
        "cim_opt.lowering.convert_pattern_to_upmem:ConvertPatternToUpmemPass"
    ),
    "pattern-to-upmem": "cim_opt.passes.pipelines:PatternToUpmemPipeline",
    "convert-pattern-to-simdram": (
        "cim_opt.lowering.convert_pattern_to_simdram:ConvertPatternToSimdramPass"
    ),
    "simdram-assign-polarity": "cim_opt.passes.simdram_assign_polarity:SimdramAssignPolarityPass",
    "convert-pattern-to-poly": "cim_opt.lowering.convert_pattern_to_poly:ConvertPatternToPolyPass",
    "convert-linalg-to-poly": "cim_opt.lowering.convert_linalg_to_poly:ConvertLinalgToPolyPass",
    "simdram-allocate-rows": "cim_opt.passes.simdram_allocate_rows:SimdramAllocateRowsPass",
    "pattern-to-simdram": "cim_opt.passes.pipelines:PatternToSimdramPipeline",
    "poly-reuse": "cim_opt.passes.poly_reuse:PolyReusePass",
    "poly-pretile": "cim_opt.passes.poly_pretile:PolyPretilePass",
    "poly-affine-schedule": "cim_opt.passes.poly_affine_schedule:PolyAffineSchedulePass",
    "poly-coalesce": "cim_opt.passes.poly_coalesce:PolyCoalescePass",
    "poly-posttile": "cim_opt.passes.poly_posttile:PolyPosttilePass",
    "poly-verify": "cim_opt.passes.poly_verify:PolyVerifyPass",
    "poly-cover": "cim_opt.passes.poly_cover:PolyCoverPass",
    "poly-map-macros": "cim_opt.passes.poly_map_macros:PolyMapMacrosPass",
    "poly-layout": "cim_opt.passes.poly_layout:PolyLayoutPass",
    "poly-data-movement": "cim_opt.passes.poly_data_movement:PolyDataMovementPass",
    "convert-poly-to-cim": "cim_opt.lowering.convert_poly_to_cim:ConvertPolyToCimPass",
    "conv-to-cim": "cim_opt.passes.pipelines:ConvToCimPipeline",
}

PASS_SUMMARIES = {
    "pattern-fuse": "join chains of patterns into one kernel",
    "pattern-narrow": "compute in fewer bits where the result is provably the same",
    "upmem-strength-reduce": "cheaper operations of kernels that give the same values",
    "upmem-unroll": "innermost loops of kernels do several iterations at once",
    "upmem-share": "kernels compute and load once what they use several times",
    "convert-pattern-to-upmem": "place, distribute and lower pattern operations to upmem",
    "pattern-to-upmem": "named pipeline: pattern-fuse, canonicalize, pattern-narrow, "
    "convert-pattern-to-upmem, upmem-strength-reduce, upmem-unroll, upmem-share; fuse=false leaves "
    "out the first two, narrow=false the third, reduce_strength=false, unroll=1 and share=false "
    "those after the conversion",
    "convert-pattern-to-simdram": "turn pattern operations into bbops on vertical objects",
    "simdram-assign-polarity": "store objects of a simdram program complemented where that is "
    "cheaper",
    "convert-pattern-to-poly": "turn patterns that sum products into kernels of loops",
    "convert-linalg-to-poly": "turn convolutions and matrix products into kernels of loops",
    "simdram-allocate-rows": "give every vertical object of a simdram program its D rows",
    "poly-reuse": "find the directions along which a kernel reuses its operands",
    "poly-pretile": "split a kernel's loops into the levels that a schedule needs",
    "poly-affine-schedule": "choose the vectors along which loops become rows and columns",
    "poly-coalesce": "fuse a schedule's coordinates into virtual rows and columns",
    "poly-posttile": "map virtual rows and columns to a macro's, and make the cover",
    "poly-verify": "check schedules and covers: every product once, on a real macro",
    "poly-cover": "choose the images of weights that a kernel's macros apply",
    "poly-map-macros": "share a machine's macros among the tiles of a kernel",
    "poly-layout": "choose how a kernel's inputs lie in memory",
    "poly-data-movement": "choose when inputs come and sums leave while macros work",
    "convert-poly-to-cim": "turn mapped kernels into programs of macro instructions",
    "conv-to-cim": "named pipeline: convert-linalg-to-poly, convert-pattern-to-poly, poly-cover, "
    "poly-map-macros, poly-layout, poly-data-movement, poly-verify, convert-poly-to-cim; "
    "verify=false leaves out the check",
    "pattern-to-simdram": "named pipeline: pattern-fuse, canonicalize, pattern-narrow, "
    "convert-pattern-to-simdram, simdram-assign-polarity, simdram-allocate-rows; narrow=false and "
    "polarity=false leave out those",
}
"""One line a pass for `--help`, kept here so that no pass module is imported for it."""

TARGETS = {
    "simdram-bbop": "cim_opt.lowering.translate_simdram_to_bbop:BbopTarget",
    "upmem-c": "cim_opt.lowering.translate_upmem_to_c:UpmemCTarget",
}


def _lazy(where: str) -> Callable[[], Any]:
    """A factory that imports `module:name` when it is called."""

    def load() -> Any:
        module, _, name = where.partition(":")
        return getattr(import_module(module), name)

    return load


def _extend_stock_dialects() -> None:
    """Puts our extended dialects in the place of xDSL's.

    A second dialect of one name is refused, so xDSL's own universe gets another factory. All tools
    load every universe before they ask for a dialect, xDSL's own tools too.
    """
    for name, where in EXTENDED_DIALECTS.items():
        XDSL_UNIVERSE.all_dialects[name] = _lazy(where)


_extend_stock_dialects()

CIM_UNIVERSE = Universe(
    all_dialects={name: _lazy(where) for name, where in DIALECTS.items()},
    all_passes={name: _lazy(where) for name, where in PASSES.items()},
    all_targets={name: _lazy(where) for name, where in TARGETS.items()},
)
