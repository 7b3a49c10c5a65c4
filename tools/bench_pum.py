"""Table `pum` of cim-bench: twelve kernels in DRAM, counted at full size.

The baseline vectorises the innermost loop, as a compiler for SIMDRAM does (`pum_baseline.py`). The
other columns are counts of the kernels' own programs, compiled at full size; what differs is named
in `VARIANTS`. A stage's program is counted once and multiplied by how often the kernel runs it.
Where a stage can be computed in several ways, the one of the fewest row commands is taken.

Speed-ups compare the time that one subarray computes; row commands all take the same. What moves
data and what the host does is apart, but for what the baseline's switches charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern_range import RANGE_ATTRIBUTE
from cim_opt.hardware.simdram import load_machine
from cim_opt.passes.pipelines import PatternToSimdramPipeline
from cim_opt.simulators.simdram_count import Divisions, Products, count
from cim_opt.simulators.simdram_count_report import CountReport
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.load_module import full_context
from cim_opt.tools.pum_baseline import Switches, baseline
from cim_opt.tools.pum_kernels import KERNELS, Kernel
from cim_opt.tools.pum_stages import PAIRS, Part, Stage

MACHINE = "simdram-1"
SETS = ("A", "B")


@dataclass(frozen=True)
class Variant:
    """What a column changes: microprograms, how products and divisions are charged, and the rest.

    `polarity`: values may be stored complemented; `scalars`: a stage may give one operand of its
    products as scalars; `narrow`: with declared ranges.
    """

    library: str
    products: Products
    divisions: Divisions = "issued"
    polarity: bool = False
    scalars: bool = False
    narrow: bool = False


VARIANTS = {
    # The choice of what lies in the columns; every product and division as SIMDRAM issues it.
    "published": Variant("simdram", "full", "published"),
    # Products without their high half.
    "modulo": Variant("simdram", "objects", "published"),
    # Shorter microprograms.
    "programs": Variant("cim-opt", "objects"),
    # Values complemented where that saves commands.
    "polarity": Variant("cim-opt", "objects", polarity=True),
    # Products with scalars that the host knows, by their digits.
    "own_library": Variant("cim-opt", "issued", polarity=True, scalars=True),
    # Inputs declared as 8-bit numbers.
    "narrowed": Variant("cim-opt", "issued", polarity=True, scalars=True, narrow=True),
    # All but the shorter microprograms, at the original widths.
    "published_library": Variant("simdram", "issued", "published", scalars=True),
}
COLUMNS = ("published", "published_library", "own_library", "narrowed")
SWITCHES = {
    "by_mapping": ("baseline", "published"),
    "by_modulo": ("published", "modulo"),
    "by_programs": ("modulo", "programs"),
    "by_polarity": ("programs", "polarity"),
    "by_scalars": ("polarity", "own_library"),
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
    ways: dict[str, str] = field(default_factory=dict[str, str])
    """Stages whose products have one operand as scalars, and which."""

    def add(self, report: CountReport, times: int) -> None:
        """One program that runs so many times."""
        self.commands += report.commands * times
        self.used += report.commands * report.utilisation * times
        self.compute += report.unlimited_seconds * times
        self.transposed += report.transposed_seconds * times
        self.read += report.read_seconds * times
        self.host += report.host_seconds * times


def counted(stages: Sequence[Stage], variant: Variant) -> Totals:
    """The compiled programs of all stages, each in the way of the fewest row commands."""
    totals = Totals()
    for stage in stages:
        ways = stage.ways() if variant.scalars else {PAIRS: stage.ways()[PAIRS]}
        reports = {way: [count_part(p, variant) for p in parts] for way, parts in ways.items()}
        way = min(ways, key=lambda name: _commands(ways[name], reports[name]))
        for part, report in zip(ways[way], reports[way], strict=True):
            totals.add(report, part.times)
        if way != PAIRS:
            totals.ways[stage.name] = way
    return totals


def _commands(parts: Sequence[Part], reports: Sequence[CountReport]) -> float:
    return sum(p.times * report.commands for p, report in zip(parts, reports, strict=True))


def count_part(part: Part, variant: Variant) -> CountReport:
    """One run of a pipeline, compiled as the variant says."""
    module = part.build().module()
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    if variant.narrow:
        declare_ranges(function, part)
    lengths = [_shape(arg.type) for arg in function.body.block.args]
    pipeline = PatternToSimdramPipeline(
        machine=MACHINE,
        library=variant.library,
        mapping=part.mapping,
        narrow=variant.narrow,
        polarity=variant.polarity,
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
    return count(
        module,
        entry,
        lengths,
        library=variant.library,
        products=variant.products,
        divisions=variant.divisions,
    )


def _shape(type: Attribute) -> tuple[int, ...]:
    return type.get_shape() if isa(type, TensorType) else ()


def declare_ranges(function: FuncOp, part: Part) -> None:
    """Writes the ranges of a pipeline's inputs on the function's arguments."""
    attributes: list[DictionaryAttr] = []
    known = set(part.ranges)
    for arg in function.body.block.args:
        name = arg.name_hint or ""
        known.discard(name)
        bounds = part.ranges.get(name)
        if bounds is None:
            attributes.append(DictionaryAttr({}))
            continue
        value = ArrayAttr([IntegerAttr(bound, i64) for bound in bounds])
        attributes.append(DictionaryAttr({RANGE_ATTRIBUTE: value}))
    assert not known, f"{part.name} has no inputs {known}"
    function.arg_attrs = ArrayAttr(attributes)


def measure(kernel: Kernel, which: str, switches: Switches) -> Cells:
    """The row of one kernel at one set of sizes."""
    stages = kernel.stages(kernel.sizes[which])
    base = baseline(stages, load_machine(MACHINE), switches)
    totals = {name: counted(stages, variant) for name, variant in VARIANTS.items()}
    seconds = {"baseline": base.seconds} | {name: sums.compute for name, sums in totals.items()}
    own = totals["own_library"]
    cells: Cells = {"baseline_commands": float(base.commands), "baseline_seconds": base.seconds}
    for name in COLUMNS:
        cells[name] = base.seconds / seconds[name]
    for name, (before, after) in SWITCHES.items():
        cells[name] = seconds[before] / seconds[after]
    return cells | {
        "columns_baseline": base.used / base.commands if base.commands else None,
        "columns_own": own.used / own.commands,
        "compute_seconds": own.compute,
        "transpose_seconds": own.transposed,
        "read_seconds": own.read,
        "host_seconds": own.host,
        "scalars": _shown_ways(own),
        "narrowed_scalars": _shown_ways(totals["narrowed"]),
        "sizes": " ".join(f"{k}={v}" for k, v in kernel.sizes[which].items()),
    }


def _shown_ways(totals: Totals) -> str:
    return ", ".join(f"{name} {way}" for name, way in totals.ways.items())


def rows(switches: Switches) -> Sequence[Row]:
    """All kernels at both sets of sizes."""
    return [
        Row(f"{which} {name}", partial(measure, kernel, which, switches))
        for which in SETS
        for name, kernel in KERNELS.items()
    ]


def summary(measured: Sequence[Cells], switches: Switches) -> Cells:
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
        "baseline": "innermost loops at the published counts, division too (8,832 at 32 bits)",
        "switches": asdict(switches),
        "sizes": "assumed, in two sets; published ones are not known kernel by kernel",
        "scalars": "unknown ones by the mean of 256 drawn evenly from their range, seed fixed",
        "narrowed": "kernels' own inputs declared 0 to 255",
        "not in the speed-ups": "transposition, reading back, host; shown for own_library",
    }


def _means(rows: Sequence[Cells | None]) -> dict[str, float] | None:
    measured = [row for row in rows if row is not None]
    if len(measured) < len(rows):
        return None
    return {name: prod(row[name] for row in measured) ** (1 / len(measured)) for name in COLUMNS}


def table(options: Mapping[str, str]) -> Table:
    """The table against the baseline of these switches, by name."""
    switches = Switches(**options)  # pyright: ignore[reportArgumentType]
    return Table(
        "pum",
        "Twelve kernels in DRAM: speed-up in computing over vectorised innermost loops; by what.",
        partial(rows, switches),
        partial(summary, switches=switches),
        configured=table,
    )


TABLE = table({})
