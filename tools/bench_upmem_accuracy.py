"""Table `upmem-accuracy` of cim-bench: predicted times of kernels beside measured ones.

A row is a kernel of a data set. The summary is over all points of a data set, by its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cim_opt.errors import UserError
from cim_opt.tools import prim_models, upmem_micro_models
from cim_opt.tools.accuracy import choices, percent_errors, spearman
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.upmem_points import DataSet, Model, Point, read_points

MODELS: dict[str, Model] = {**upmem_micro_models.MODELS, **prim_models.MODELS}
"""The kernels of points, by name."""

DEFAULT_FILES = ("upmem_kernels.json", "upmem_prim.json")
"""The data sets that come with the package, in the folder of data."""


def default_paths() -> list[Path]:
    """The files of points that come with the package."""
    return [Path(__file__).parent / "data" / name for name in DEFAULT_FILES]


@cache
def data_sets(paths: tuple[Path, ...]) -> dict[str, DataSet]:
    """The data sets of files, by name. Raises UserError for what is wrong in one of them."""
    found: dict[str, DataSet] = {}
    for path in paths:
        data = read_points(path, MODELS, prim_models.LEFT_OUT)
        if data.name in found:
            raise UserError(
                f"two data sets are named '{data.name}'",
                f"the second is '{path}'",
                "give it another name in its 'meta'",
            )
        found[data.name] = data
    return found


def measure(paths: tuple[Path, ...], name: str, kernel: str) -> Cells:
    """The row of one kernel of one data set; `pairs` are predicted and measured ms by workload."""
    points = [point for point in data_sets(paths)[name].points if point.kernel == kernel]
    predicted = [1000.0 * MODELS[kernel].seconds(point.parameters) for point in points]
    measured = [point.measured_ms for point in points]
    workloads = [_workload(point) for point in points]
    return statistics(workloads, predicted, measured) | {
        "pairs": list(zip(workloads, predicted, measured, strict=True))
    }


def _workload(point: Point) -> str:
    return repr((point.kernel, *MODELS[point.kernel].workload(point.parameters)))


def statistics(
    workloads: Sequence[str], predicted: Sequence[float], measured: Sequence[float]
) -> Cells:
    """Errors in percent, rank correlation, and choices among the configurations of workloads."""
    errors = np.abs(percent_errors(predicted, measured))
    chosen = choices(workloads, predicted, measured)
    return {
        "points": len(measured),
        "mape": float(errors.mean()),
        "max_error": float(errors.max()),
        "spearman": spearman(predicted, measured),
        "workloads": len(chosen),
        "top1": 100.0 * float(np.mean([best for best, _ in chosen])) if chosen else None,
        "regret": float(np.mean([regret for _, regret in chosen])) if chosen else None,
    }


def rows(paths: tuple[Path, ...]) -> Sequence[Row]:
    """A row for each kernel of each data set."""
    return [
        Row(f"{name} {kernel}", partial(measure, paths, name, kernel))
        for name, data in data_sets(paths).items()
        for kernel in dict.fromkeys(point.kernel for point in data.points)
    ]


def summary(measured: Sequence[Cells]) -> Cells:
    """The figures over all points of a data set, each by the name of the set."""
    pairs: dict[str, list[Any]] = defaultdict(list)
    for row in measured:
        pairs[str(row["row"]).rsplit(" ", 1)[0]] += row["pairs"]
    pooled = {name: statistics(*zip(*values, strict=True)) for name, values in pairs.items()}
    keys = ("points", "mape", "max_error", "spearman", "workloads", "top1", "regret")
    return {key: {name: cells[key] for name, cells in pooled.items()} for key in keys}


def shown(measured: Sequence[Cells]) -> Sequence[Cells]:
    """The rows without their points."""
    return [{key: value for key, value in row.items() if key != "pairs"} for row in measured]


def table(options: Mapping[str, Any]) -> Table:
    """The table for the files of `points`, or for those of the package."""
    given: Sequence[str] = options.get("points") or ()
    paths = tuple(Path(name) for name in given) or tuple(default_paths())
    return Table(
        "upmem-accuracy",
        "Predicted times of kernels against measured ones; errors and regret in %.",
        partial(rows, paths),
        summary,
        configured=table,
        shown=shown,
    )


TABLE = table({})
