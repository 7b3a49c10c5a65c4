"""What PrIM's programs take on real DPUs, predicted from the programs of `pnm_baselines`.

A measured point is a benchmark, the DPUs, and its size: elements in all, or rows (of 64 numbers in
GEMV, of as many as rows in MLP). DPUs get equal shares, so one is simulated. Cycles are linear in a
DPU's share from a few blocks a tasklet on; larger shares are extrapolated from two that are
simulated in full. Inputs are as PrIM makes them where that is known, with seeds that are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from cim_opt.cost.upmem_transfer import launch_seconds
from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.tools import prim_rounds
from cim_opt.tools.pnm_baselines import prim_rows, prim_tables, prim_vectors
from cim_opt.tools.upmem_points import Model, Parameters

MACHINE = "upmem-2560"
Array = npt.NDArray[Any]
Program = tuple[ModuleOp, list[Array]]
"""A program for one DPU and its inputs."""


@dataclass(frozen=True)
class Benchmark:
    """How to make a benchmark's program for a DPU's share of `units`, of so many `columns`.

    Shares up to twice `step` are simulated in full. `columns` is None where there are none, 0
    where they are as many as the point's parameter.
    """

    make: Callable[[int, int], Program]
    step: int
    columns: int | None = None
    least: int = 1
    """A DPU works on a multiple of so many units."""


def _numbers(count: int, most: int, kind: str) -> Array:
    return np.random.default_rng(count).integers(0, most, count).astype(kind)


def _va(units: int, _: int) -> Program:
    arrays = [_numbers(units, 1 << 30, "int32")] * 2
    return prim_vectors.va(1, *arrays), arrays


def _of_one(
    program: Callable[[Array], ModuleOp], values: Callable[[int], Array]
) -> Callable[[int, int], Program]:
    def make(units: int, _: int) -> Program:
        array = values(units)
        return program(array), [array]

    return make


def _random(units: int) -> Array:
    return _numbers(units, 1 << 30, "int64")


def _pixels(units: int) -> Array:
    return _numbers(units, 4096, "int32")


def _gemv(units: int, columns: int) -> Program:
    """Blocks are read whole: the traffic that uPIMulator publishes of its short rows is that."""
    arrays = [_numbers(units * columns, 50, "int32"), _numbers(columns, 50, "int32")]
    return prim_rows.gemv(1, *arrays, whole=True), arrays


def _mlp(units: int, columns: int) -> Program:
    """One layer; few weights and inputs are not 0."""
    weights, x = _numbers(units * columns, 50, "int32"), _numbers(columns, 50, "int32")
    weights[_numbers(units * columns, 100, "int32") < 98] = 0
    x[_numbers(columns, 100, "int32") < 96] = 0
    return prim_rows.gemv(1, weights, x), [weights, x]


def _ts(units: int, columns: int) -> Program:
    # About the 5 steps a product that uPIMulator publishes.
    series = np.arange(units + columns, dtype=np.int32) % 128
    ones = np.ones(units, np.int32)
    arrays = [series, series[:columns].copy(), ones, ones]
    return prim_rows.ts(1, *arrays), arrays


BLOCKS = 16 * 256
ROUNDS = 2 * prim_rounds.ROUND


def _in_rounds(program: Callable[[Array], ModuleOp], values: Callable[[int], Array]) -> Benchmark:
    return Benchmark(_of_one(program, values), ROUNDS, least=prim_rounds.ROUND)


BENCHMARKS: Mapping[str, Benchmark] = {
    "VA": Benchmark(_va, 2 * BLOCKS),
    "RED": Benchmark(_of_one(partial(prim_vectors.red, 1), _random), BLOCKS),
    "SEL": _in_rounds(prim_rounds.sel, lambda units: np.arange(1, units + 1)),
    "UNI": _in_rounds(prim_rounds.uni, lambda units: np.arange(units + 1) // 2),
    "SCAN-SSA": _in_rounds(prim_rounds.scan_ssa, _random),
    "SCAN-RSS": _in_rounds(prim_rounds.scan_rss, _random),
    "HST-S": Benchmark(_of_one(partial(prim_tables.hst_s, 1), _pixels), 2 * BLOCKS),
    "HST-L": Benchmark(_of_one(partial(prim_tables.hst_l, 1), _pixels), BLOCKS // 4),
    "GEMV": Benchmark(_gemv, 64, 64),
    "MLP": Benchmark(_mlp, 32, 0),
    "TS": Benchmark(_ts, 1024, 64, least=1024),
}
LAUNCHES = {"MLP": 3, "SCAN-SSA": 2, "SCAN-RSS": 2}
"""Launches that a point's time is the sum of, where they are not one."""

LEFT_OUT = ("BS", "TRNS")
"""Benchmarks that were measured, and that there is no program for."""


@cache
def _simulated(name: str, units: int, columns: int) -> float:
    """Cycles of all kernels on one DPU with so many units."""
    module, arrays = BENCHMARKS[name].make(units, columns)
    machine = replace(load_machine(MACHINE), dpus=1)
    simulator = UpmemSimulator(machine, addressing="compiled")
    _, report = simulator.run(module, "main", arrays)
    return report.cycles


def cycles(name: str, units: int, columns: int) -> float:
    """Cycles of one DPU with so many units, from at most two runs."""
    step = BENCHMARKS[name].step
    if units <= 2 * step:
        return _simulated(name, units, columns)
    low, high = (_simulated(name, n * step, columns) for n in (1, 2))
    return high + (high - low) * (units - 2 * step) / step


def _seconds(name: str, p: Parameters) -> float:
    benchmark = BENCHMARKS[name]
    dpus, size = p["dpus"], p["param"]
    share = -(-size // dpus // benchmark.least) * benchmark.least
    columns = size if benchmark.columns == 0 else benchmark.columns or 0
    layers = LAUNCHES.get(name, 1) if name == "MLP" else 1
    machine = load_machine(MACHINE)
    kernels = layers * cycles(name, share, columns) / machine.clock_hz
    return LAUNCHES.get(name, 1) * launch_seconds(machine, "measured", dpus) + kernels


def _model(name: str) -> Model:
    return Model(
        ("dpus", "param"), {}, lambda p: _seconds(name, p), lambda p: (p["dpus"], p["param"])
    )


MODELS: dict[str, Model] = {name: _model(name) for name in BENCHMARKS}
"""By the name of the benchmark."""
