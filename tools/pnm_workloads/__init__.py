"""The thirteen workloads of a near-memory machine, each one pipeline of the Python frontend.

What they compute is that of the PrIM benchmarks (VA to MLP) and of the SimplePIM benchmarks
(LINREG, LOGREG, KMEANS); how is in the docstring of each file. Full sizes are those of PrIM's
strong scaling on the full system, and of SimplePIM's data a DPU, on 2,560 DPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.frontend import Pipeline
from cim_opt.tools.pnm_workloads import inputs, oracles
from cim_opt.tools.pnm_workloads.gemv import gemv
from cim_opt.tools.pnm_workloads.hst import hst
from cim_opt.tools.pnm_workloads.kmeans import kmeans
from cim_opt.tools.pnm_workloads.lines import lines_of_code
from cim_opt.tools.pnm_workloads.linreg import linreg
from cim_opt.tools.pnm_workloads.logreg import logreg
from cim_opt.tools.pnm_workloads.mlp import mlp
from cim_opt.tools.pnm_workloads.red import red
from cim_opt.tools.pnm_workloads.scan import scan
from cim_opt.tools.pnm_workloads.sel import sel
from cim_opt.tools.pnm_workloads.ts import ts
from cim_opt.tools.pnm_workloads.uni import uni
from cim_opt.tools.pnm_workloads.va import va

Array = npt.NDArray[Any]
FOLDER = Path(__file__).parent
DPUS = 2560
"""Of the system for which sizes are given."""
COLUMNS = 4096
"""Of the matrices of GEMV and MLP at full size."""
QUERY = 256
"""Elements of the query of TS at full size."""


@dataclass(frozen=True)
class Workload:
    """A workload: its pipeline, its data, and what should come out.

    `units` is its full size, in what DPUs share: elements, rows, or samples. `arrays(n, rng)` makes
    the arrays of n units, in the order of the pipeline's arguments; `pipeline(*arrays)` traces the
    program; `reference(*arrays)` are the results by NumPy, bit by bit. `file` has the pipeline,
    `paper_lines` are those of the published framework for the same workload (DaPPA, table 2).
    """

    name: str
    units: int
    arrays: Callable[[int, np.random.Generator], Sequence[Array]]
    pipeline: Callable[..., Pipeline]
    reference: Callable[..., Sequence[Array]]
    file: str
    paper_lines: int

    @property
    def lines(self) -> int:
        """Lines of code of its pipeline; see `lines_of_code`."""
        return lines_of_code((FOLDER / self.file).read_text(encoding="utf-8"))


def _spread(pipeline: Callable[..., Pipeline], *counts: int) -> Callable[..., Pipeline]:
    """A pipeline whose arguments are lists of so many arrays, as one of arrays."""

    def spread(*arrays: Array) -> Pipeline:
        groups: list[Any] = []
        rest = list(arrays)
        for count in counts:
            groups.append(rest[0] if count == 1 else rest[:count])
            rest = rest[count:]
        return pipeline(*groups)

    return spread


def _mlp_of(*arrays: Array) -> Pipeline:
    first, x, *others = arrays
    return mlp([first, *others], x)


def _gemv(bits: int, columns: int = COLUMNS) -> Workload:
    make = inputs.gemv(bits, columns)
    return Workload(f"GEMV i{bits}", 163_840, make, gemv, oracles.gemv, "gemv.py", 11)


def _mlp(bits: int, columns: int = COLUMNS) -> Workload:
    make = inputs.mlp(bits, columns)
    return Workload(f"MLP i{bits}", 163_840, make, _mlp_of, oracles.mlp, "mlp.py", 12)


def _ts(query: int = QUERY) -> Workload:
    return Workload("TS", 33_554_432, inputs.ts(query), ts, oracles.ts, "ts.py", 10)


WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("VA", 167_772_160, inputs.va, va, oracles.va, "va.py", 6),
        Workload("SEL", 251_658_240, inputs.sel, sel, oracles.sel, "sel.py", 4),
        Workload("UNI", 251_658_240, inputs.uni, uni, oracles.uni, "uni.py", 6),
        Workload("RED", 419_430_400, inputs.red, red, oracles.red, "red.py", 5),
        *(_gemv(bits) for bits in (8, 16, 32)),
        Workload("HST-S", 100_663_296, inputs.hst, hst, oracles.hst, "hst.py", 8),
        Workload("HST-L", 100_663_296, inputs.hst, hst, oracles.hst, "hst.py", 8),
        Workload("SCAN", 251_658_240, inputs.scan, scan, oracles.scan, "scan.py", 4),
        _ts(),
        *(_mlp(bits) for bits in (8, 16, 32)),
        Workload(
            "LINREG",
            10_000 * DPUS,
            inputs.linreg,
            _spread(linreg, 10, 1, 1),
            oracles.linreg,
            "linreg.py",
            15,
        ),
        Workload(
            "LOGREG",
            1_000 * DPUS,
            inputs.logreg,
            _spread(logreg, 10, 1, 1),
            oracles.logreg,
            "logreg.py",
            23,
        ),
        Workload(
            "KMEANS",
            1_000 * DPUS,
            inputs.kmeans,
            _spread(kmeans, 10, 1),
            oracles.kmeans,
            "kmeans.py",
            22,
        ),
    )
}

SMALL: Mapping[str, Workload] = (
    WORKLOADS
    | {
        workload.name: workload
        for workload in (*(_gemv(b, 16) for b in (8, 16, 32)), *(_mlp(b, 8) for b in (8, 16, 32)))
    }
    | {"TS": _ts(16)}
)
"""The workloads with small matrices and a short query, for checks."""
