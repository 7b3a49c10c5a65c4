"""Table `pum` of cim-bench: twelve kernels in DRAM, counted at full size.

The baseline vectorises the innermost loop, as a compiler for SIMDRAM does: `loops` times as many
bbops a loop body as the trip count fills rows, each at the price of the published microprograms;
reductions are free and the last row counts whole. The other columns are counts of the kernels'
own programs, compiled at full size; what differs is named in `VARIANTS`. A stage's program is
counted once and multiplied by how often the kernel runs it.

Speed-ups compare row commands of one subarray, all of the same time. Transposition is apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern_range import RANGE_ATTRIBUTE
from cim_opt.hardware.simdram import load_machine
from cim_opt.microprograms.library import library as load_library
from cim_opt.passes.pipelines import PatternToSimdramPipeline
from cim_opt.simulators.simdram_count import Products, count
from cim_opt.simulators.simdram_count_report import CountReport
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.load_module import full_context
from cim_opt.tools.pum_kernels import KERNELS, Kernel
from cim_opt.tools.pum_stages import Stage

MACHINE = "simdram-1"
SETS = ("A", "B")


@dataclass(frozen=True)
class Variant:
    """What a column changes: microprograms, how products are charged, and narrowing."""

    library: str
    products: Products
    narrow: bool


VARIANTS = {
    # The choice of what lies in the columns; every product as SIMDRAM issues it.
    "published": Variant("simdram", "full", narrow=False),
    # Products without their high half.
    "modulo": Variant("simdram", "objects", narrow=False),
    # Products with scalars that the host knows, by their digits.
    "published_library": Variant("simdram", "issued", narrow=False),
    # Shorter microprograms.
    "own_library": Variant("cim-opt", "issued", narrow=False),
    # Inputs declared as 8-bit numbers.
    "narrowed": Variant("cim-opt", "issued", narrow=True),
}
COLUMNS = ("published", "published_library", "own_library", "narrowed")
SWITCHES = {
    "by_mapping": ("baseline", "published"),
    "by_modulo": ("published", "modulo"),
    "by_scalars": ("modulo", "published_library"),
    "by_programs": ("published_library", "own_library"),
    "by_narrowing": ("own_library", "narrowed"),
}
"""Switches, and the columns without and with it: each factor is on top of those before."""


@dataclass
class Totals:
    """Sums over the stages of a kernel."""

    commands: float = 0.0
    used: float = 0.0
    """Commands, weighted by the columns that they use."""
    compute: float = 0.0
    transposed: float = 0.0
    read: float = 0.0
    host: float = 0.0

    def add(self, report: CountReport, times: int) -> None:
        """One stage that runs so many times."""
        self.commands += report.commands * times
        self.used += report.commands * report.utilisation * times
        self.compute += report.unlimited_seconds * times
        self.transposed += report.transposed_seconds * times
        self.read += report.read_seconds * times
        self.host += report.host_seconds * times


def baseline(stages: Sequence[Stage], columns: int) -> Totals:
    """Commands of the vectorised innermost loops; nothing else is charged."""
    programs = load_library("simdram")
    totals = Totals()
    for stage in stages:
        body = 0
        for name, width in stage.body:
            wide = {"a_width": width, "b_width": width} if name == "mul" else {}
            body += programs.counts(name, width * (2 if wide else 1), **wide).total
        rows = -(-stage.trip // columns)
        times = stage.times * stage.loops
        totals.commands += times * rows * body
        totals.used += times * body * stage.trip / columns
    return totals


def counted(stages: Sequence[Stage], variant: Variant) -> Totals:
    """The compiled programs of all stages."""
    totals = Totals()
    for stage in stages:
        totals.add(count_stage(stage, variant), stage.times)
    return totals


def count_stage(stage: Stage, variant: Variant) -> CountReport:
    """One run of a stage's pipeline, compiled as the variant says."""
    module = stage.build().module()
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    if variant.narrow:
        declare_ranges(function, stage)
    lengths = [_shape(arg.type) for arg in function.body.block.args]
    pipeline = PatternToSimdramPipeline(
        machine=MACHINE, library=variant.library, narrow=variant.narrow
    )
    return _counted(pipeline, module, function.sym_name.data, lengths, variant)


def _counted(
    pipeline: PatternToSimdramPipeline,
    module: ModuleOp,
    entry: str,
    lengths: list[tuple[int, ...]],
    variant: Variant,
) -> CountReport:
    pipeline.apply(full_context(), module)
    module.verify()
    return count(module, entry, lengths, library=variant.library, products=variant.products)


def _shape(type: Attribute) -> tuple[int, ...]:
    return type.get_shape() if isa(type, TensorType) else ()


def declare_ranges(function: FuncOp, stage: Stage) -> None:
    """Writes the ranges of a stage's inputs on the function's arguments."""
    attributes: list[DictionaryAttr] = []
    known = set(stage.ranges)
    for arg in function.body.block.args:
        name = arg.name_hint or ""
        known.discard(name)
        bounds = stage.ranges.get(name)
        if bounds is None:
            attributes.append(DictionaryAttr({}))
            continue
        value = ArrayAttr([IntegerAttr(bound, i64) for bound in bounds])
        attributes.append(DictionaryAttr({RANGE_ATTRIBUTE: value}))
    assert not known, f"stage {stage.name} has no inputs {known}"
    function.arg_attrs = ArrayAttr(attributes)


def measure(kernel: Kernel, which: str) -> Cells:
    """The row of one kernel at one set of sizes."""
    stages = kernel.stages(kernel.sizes[which])
    machine = load_machine(MACHINE)
    base = baseline(stages, machine.columns)
    totals = {"baseline": base} | {
        name: counted(stages, variant) for name, variant in VARIANTS.items()
    }
    own = totals["own_library"]
    cells: Cells = {"baseline_commands": base.commands}
    for name in COLUMNS:
        cells[name] = base.commands / totals[name].commands
    for name, (before, after) in SWITCHES.items():
        cells[name] = totals[before].commands / totals[after].commands
    cells |= {
        "columns_baseline": base.used / base.commands,
        "columns_own": own.used / own.commands,
        "compute_seconds": own.compute,
        "transpose_seconds": own.transposed,
        "read_seconds": own.read,
        "host_seconds": own.host,
        "sizes": " ".join(f"{k}={v}" for k, v in kernel.sizes[which].items()),
    }
    return cells


def rows() -> Sequence[Row]:
    """All kernels at both sets of sizes."""
    return [
        Row(f"{which} {name}", partial(measure, kernel, which))
        for which in SETS
        for name, kernel in KERNELS.items()
    ]


def summary(measured: Sequence[Cells]) -> Cells:
    """Geometric means over the seven matrix kernels and all twelve, where all were measured.

    `geomean7` and `geomean12` are at the sizes of set A, those with `_b` at set B.
    """
    found = {row["row"]: row for row in measured}
    seven = [name for name, kernel in KERNELS.items() if kernel.is_matrix]
    result: Cells = {}
    for which, suffix in zip(SETS, ("", "_b"), strict=True):
        for key, names in (("geomean7", seven), ("geomean12", list(KERNELS))):
            chosen = [found.get(f"{which} {name}") for name in names]
            result[key + suffix] = _means(chosen)
    return result | {
        "claims of the paper": "2.0 mean of twelve, 3.3 of seven, 6.4 doitgen",
        "baseline": "innermost loops in full rows of 65,536 columns, reductions free",
        "sizes": "assumed, in two sets; published ones are not known kernel by kernel",
        "narrowed": "kernels' own inputs declared 0 to 255",
        "not in the speed-ups": "transposition, reading back, host; shown for own_library",
    }


def _means(rows: Sequence[Cells | None]) -> dict[str, float] | None:
    measured = [row for row in rows if row is not None]
    if len(measured) < len(rows):
        return None
    return {name: prod(row[name] for row in measured) ** (1 / len(measured)) for name in COLUMNS}


TABLE = Table(
    "pum",
    "Twelve kernels in DRAM: speed-up in row commands over vectorised innermost loops; by what.",
    rows,
    summary,
)
