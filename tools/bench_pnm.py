"""Table `pnm` of cim-bench: the thirteen workloads on 2,560 DPUs, beside other programs for them.

Compiled programs and those written by hand (`pnm_baselines`) run on the same simulator, which
counts them at full size (`sampled_reports`). Speed-ups are of end-to-end times; `kernel` columns
are the DPUs' part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import exp, log
from typing import Any

import numpy as np

from cim_opt.hardware.upmem import TRANSFER_MODELS, load_machine
from cim_opt.passes.pipelines import PatternToUpmemPipeline
from cim_opt.simulators.report import Report
from cim_opt.simulators.upmem_sample import Program, sampled_reports
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.load_module import full_context
from cim_opt.tools.pnm_baselines import BASELINES, Baseline
from cim_opt.tools.pnm_workloads import COLUMNS, WORKLOADS, Workload

MACHINE = "upmem-2560"
FRAMEWORKS = ("prim", "simplepim", "cinm", "published")
PUBLISHED: Mapping[str, Any] = {
    "stages": False,
    "tasklets": 11,
    "merge": "host",
    "reduce_strength": False,
    "unroll": 1,
}
"""How the published mapping is compiled: every stage goes through MRAM, on 11 tasklets, and the
host puts scans and filters together."""

PAPER: Mapping[str, Mapping[str, float]] = {
    "prim": {"HST-S": 3.2, "HST-L": 6.0, "MLP i32": 3.7},
    "simplepim": {"VA": 1.6, "RED": 2.2, "HST-S": 1.9},
}
"""Speed-ups that the paper's text gives (DaPPA, section 6.2); the others are said to be about 1."""

PAPER_MEANS: Mapping[str, float] = {"prim": 1.6, "simplepim": 1.4}
"""Geometric means that the same text gives."""

LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "prim_parallel": ("SEL", "UNI"),
    "published_unmerged": ("SEL", "UNI", "SCAN"),
}
"""Further means, and the workloads that they leave out: those whose results PrIM fetches from one
DPU after another, and those which the published mapping's host puts together. That is most of the
time of these programs, and says little of kernels."""

GRANULE = 8
"""Units of a DPU's share are a multiple of this, so that all of its arrays fill whole 8 bytes."""


def share_of(workload: Workload) -> int:
    """Units of each DPU at full size."""
    return workload.units // load_machine(MACHINE).dpus // GRANULE * GRANULE


def samples_of(workload: Workload) -> tuple[int, int]:
    """DPUs to run: enough that their results make the next layer's vector."""
    if not workload.name.startswith("MLP"):
        return 2, 4
    few = -(-COLUMNS // share_of(workload))
    return few, few + few // 4


def arrays_of(workload: Workload, dpus: int) -> list[Any]:
    """The inputs of so many DPUs, unsigned ones as the bytes that they are."""
    arrays = workload.arrays(share_of(workload) * dpus, np.random.default_rng(0))
    return [array.view(f"int{8 * array.dtype.itemsize}") for array in arrays]


def compiled(workload: Workload, options: Mapping[str, Any], dpus: int) -> Program:
    """The workload's pipeline, lowered for so many DPUs."""
    arrays = workload.arrays(share_of(workload) * dpus, np.random.default_rng(0))
    pipeline = workload.pipeline(*arrays)
    module = pipeline.module()
    PatternToUpmemPipeline(machine=MACHINE, dpus=dpus, **options).apply(full_context(), module)
    return module, pipeline.name, list(pipeline.arguments().values())


def written(workload: Workload, baseline: Baseline, dpus: int) -> Program:
    """A program written by hand, for so many DPUs."""
    arrays = arrays_of(workload, dpus)
    return baseline(dpus, *arrays), "main", arrays


def reports(workload: Workload, build: Callable[[int], Program]) -> Mapping[str, Report]:
    """The program's reports at full size, by model of transfers."""
    return sampled_reports(build, load_machine(MACHINE), samples_of(workload))


def programs(workload: Workload) -> dict[str, Callable[[int], Program]]:
    """The builders of the compiled program, `ours`, and of its baselines."""
    found: dict[str, Callable[[int], Program]] = {"ours": partial(compiled, workload, {})}
    for framework in FRAMEWORKS:
        baseline = BASELINES.get((framework, workload.name))
        if baseline is not None:
            found[framework] = partial(written, workload, baseline)
    found["published"] = partial(compiled, workload, PUBLISHED)
    return found


def measure(workload: Workload, models: Sequence[str]) -> Cells:
    """One row: milliseconds of all programs and what ours gains, by model of transfers."""
    taken = {name: reports(workload, build) for name, build in programs(workload).items()}
    cells: Cells = {"units": share_of(workload) * load_machine(MACHINE).dpus}
    for name, by_model in taken.items():
        kernel = by_model[models[0]].kernel_seconds
        cells[f"{name} kernel"] = 1e3 * kernel
        for model in models:
            cells[f"{name} {model}"] = 1e3 * by_model[model].seconds
    for name in taken:
        for model in models if name != "ours" else ():
            cells[f"x {name} {model}"] = cells[f"{name} {model}"] / cells[f"ours {model}"]
    for framework, values in PAPER.items():
        if workload.name in values:
            cells[f"x {framework} paper"] = values[workload.name]
    return cells | {"lines": workload.lines, "lines paper": workload.paper_lines}


def rows(models: Sequence[str]) -> list[Row]:
    """A row a workload."""
    return [Row(name, partial(measure, workload, models)) for name, workload in WORKLOADS.items()]


def summary(models: Sequence[str], measured: Sequence[Cells]) -> Cells:
    """Geometric means of the speed-ups over each framework, and the least of all, by model.

    `kernel` means are those of the DPUs' part alone; what others leave out is in `LEFT_OUT`.
    """
    cells: Cells = {}
    for framework in FRAMEWORKS:
        cells[f"geomean_{framework}"] = {
            model: _mean(measured, f"x {framework} {model}") for model in models
        }
        cells[f"kernel_geomean_{framework}"] = _ratios(measured, framework)
    for name, left_out in LEFT_OUT.items():
        framework, kept = name.split("_")[0], [r for r in measured if r["row"] not in left_out]
        cells[f"geomean_{name}"] = {
            model: _mean(kept, f"x {framework} {model}") for model in models
        }
    cells["geomean_paper"] = dict(PAPER_MEANS)
    cells["min_speedup"] = {model: _least(measured, model) for model in models}
    return cells


def _mean(measured: Sequence[Cells], column: str) -> float | None:
    values = [row[column] for row in measured if column in row]
    return exp(sum(log(value) for value in values) / len(values)) if values else None


def _ratios(measured: Sequence[Cells], framework: str) -> float | None:
    column = f"{framework} kernel"
    values = [row[column] / row["ours kernel"] for row in measured if column in row]
    return exp(sum(log(value) for value in values) / len(values)) if values else None


def _least(measured: Sequence[Cells], model: str) -> float | None:
    names = [f"x {framework} {model}" for framework in FRAMEWORKS]
    return min((row[name] for row in measured for name in names if name in row), default=None)


def shown(models: Sequence[str], measured: Sequence[Cells]) -> list[Cells]:
    """The columns that fit beside each other: our times, speed-ups, lines."""
    kept = ("row", "ours kernel", *(f"ours {model}" for model in models), "lines", "lines paper")
    return [
        {key: value for key, value in row.items() if key in kept or key.startswith("x ")}
        for row in measured
    ]


def table(options: Mapping[str, Any] | None = None) -> Table:
    """The table, for one model of transfers or for both."""
    models = (options["transfer"],) if options else TRANSFER_MODELS
    return Table(
        "pnm",
        f"Thirteen workloads on {MACHINE}: milliseconds, and speed-ups (x) over other programs",
        partial(rows, models),
        partial(summary, models),
        configured=table,
        shown=partial(shown, models),
    )


TABLE = table()
