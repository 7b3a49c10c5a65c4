"""The seven matrix kernels of `cim-bench pum`: how they run, in stages and in plain NumPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cim_opt.tools import pum_stages as stages
from cim_opt.tools.pum_products import (
    MUL,
    product,
    product_stage,
    rows_of_products,
    scalar_parts,
)
from cim_opt.tools.pum_stages import BYTE, PAIRS, Stage

Data = dict[str, Any]
Sizes = dict[str, int]
ADD, SUB = ("add", 32), ("sub", 32)
ALPHA, BETA = 32412, 2123
"""Scalars of gemm and 2mm, as PolyBench has them."""


def combination_stage(n: int, m: int, greatest: int | None) -> Stage:
    """alpha * x + beta * y of matrices; `greatest` is the greatest number in x."""
    ranges = {"y": BYTE} if greatest is None else {"x": (0, greatest), "y": BYTE}
    build = partial(stages.combination, n * m, ALPHA, BETA)
    return Stage("combination", build, n, m, (MUL, MUL, ADD), ranges=ranges)


def combination(execute: Any, x: Any, y: Any) -> Any:
    """alpha * x + beta * y."""
    pipeline = stages.combination(x.size, ALPHA, BETA)
    return execute(pipeline, x=x.reshape(-1), y=y.reshape(-1))[0].reshape(x.shape)


def greatest_sum(count: int) -> int:
    """The greatest sum of so many products of 8-bit numbers."""
    return count * BYTE[1] ** 2


def _fitting(greatest: int) -> dict[str, stages.Range]:
    """A range of `a`, if it does not wrap around."""
    return {"a": (0, greatest)} if greatest < 1 << 32 else {}


def _matrices(rng: Any, limit: int, **shapes: tuple[int, int]) -> Data:
    return {k: rng.integers(0, limit, s, np.uint32) for k, s in shapes.items()}


# -- gemm, 2mm, 3mm, doitgen -----------------------------------------------------------------------


def gemm_stages(s: Sizes) -> list[Stage]:
    greatest = greatest_sum(s["nk"])
    return [
        product_stage("A*B", s["ni"], s["nj"], s["nk"], a=BYTE, b=BYTE),
        combination_stage(s["ni"], s["nj"], greatest if greatest < 1 << 32 else None),
    ]


def gemm_data(s: Sizes, rng: Any, limit: int) -> Data:
    ni, nj, nk = s["ni"], s["nj"], s["nk"]
    return _matrices(rng, limit, a=(ni, nk), b=(nk, nj), c=(ni, nj))


def gemm(execute: Any, d: Data, way: str = PAIRS) -> list[Any]:
    return [combination(execute, product(execute, d["a"], d["b"], way), d["c"])]


def plain_gemm(d: Data) -> list[Any]:
    return [(d["a"] @ d["b"]) * np.uint32(ALPHA) + d["c"] * np.uint32(BETA)]


def two_mm_stages(s: Sizes) -> list[Stage]:
    between = _fitting(greatest_sum(s["nk"]))
    return [
        product_stage("A*B", s["ni"], s["nj"], s["nk"], a=BYTE, b=BYTE),
        product_stage("*C", s["ni"], s["nl"], s["nj"], b=BYTE, **between),
        combination_stage(s["ni"], s["nl"], None),
    ]


def two_mm_data(s: Sizes, rng: Any, limit: int) -> Data:
    ni, nj, nk, nl = s["ni"], s["nj"], s["nk"], s["nl"]
    return _matrices(rng, limit, a=(ni, nk), b=(nk, nj), c=(nj, nl), d=(ni, nl))


def two_mm(execute: Any, d: Data, way: str = PAIRS) -> list[Any]:
    both = product(execute, product(execute, d["a"], d["b"], way), d["c"], way)
    return [combination(execute, both, d["d"])]


def plain_two_mm(d: Data) -> list[Any]:
    return [(np.uint32(ALPHA) * d["a"] @ d["b"]) @ d["c"] + d["d"] * np.uint32(BETA)]


def three_mm_stages(s: Sizes) -> list[Stage]:
    ni, nj, nk, nl, nm = (s[name] for name in ("ni", "nj", "nk", "nl", "nm"))
    left, right = _fitting(greatest_sum(nk)), _fitting(greatest_sum(nm))
    last = dict(left)
    if right:
        last["b"] = right["a"]
    return [
        product_stage("A*B", ni, nj, nk, a=BYTE, b=BYTE),
        product_stage("C*D", nj, nl, nm, a=BYTE, b=BYTE),
        product_stage("E*F", ni, nl, nj, **last),
    ]


def three_mm_data(s: Sizes, rng: Any, limit: int) -> Data:
    ni, nj, nk, nl, nm = (s[name] for name in ("ni", "nj", "nk", "nl", "nm"))
    return _matrices(rng, limit, a=(ni, nk), b=(nk, nj), c=(nj, nm), d=(nm, nl))


def three_mm(execute: Any, d: Data, way: str = PAIRS) -> list[Any]:
    left, right = product(execute, d["a"], d["b"], way), product(execute, d["c"], d["d"], way)
    return [product(execute, left, right, way)]


def plain_three_mm(d: Data) -> list[Any]:
    return [(d["a"] @ d["b"]) @ (d["c"] @ d["d"])]


def doitgen_stages(s: Sizes) -> list[Stage]:
    return [product_stage("A*C4", s["nr"] * s["nq"], s["np"], s["np"], a=BYTE, b=BYTE)]


def doitgen_data(s: Sizes, rng: Any, limit: int) -> Data:
    return _matrices(rng, limit, a=(s["nr"] * s["nq"], s["np"]), c4=(s["np"], s["np"]))


def doitgen(execute: Any, d: Data, way: str = PAIRS) -> list[Any]:
    return [product(execute, d["a"], d["c4"], way)]


def plain_doitgen(d: Data) -> list[Any]:
    return [d["a"] @ d["c4"]]


# -- covariance, pca, kmeans -----------------------------------------------------------------------


def covariance_stages(s: Sizes) -> list[Stage]:
    """`variables` with `points` each; means, differences, and a sum of products a pair."""
    variables, points = s["variables"], s["points"]
    pairs = variables * (variables + 1) // 2
    apart = (-BYTE[1], BYTE[1])
    return [
        Stage(
            "means",
            partial(stages.means, variables, points),
            variables,
            points,
            (),
            ranges={"data": BYTE},
            reduces=32,
        ),
        Stage(
            "differences",
            partial(stages.differences, variables * points),
            points,
            variables,
            (SUB,),
            ranges={"x": BYTE, "mean": BYTE},
        ),
        Stage(
            "products",
            partial(stages.dot_products, pairs, points, np.int32),
            pairs,
            points,
            (MUL,),
            ranges={"a": apart, "b": apart},
            reduces=32,
            scalars={
                "left": scalar_parts(
                    range(variables, 0, -1), points, np.int32, scalars=apart, columns=apart
                )
            },
        ),
    ]


def covariance_data(s: Sizes, rng: Any, limit: int) -> Data:
    return _matrices(rng, limit, x=(s["points"], s["variables"]))


def pca_data(s: Sizes, rng: Any, limit: int) -> Data:
    return {"x": covariance_data(s, rng, limit)["x"].T.copy()}


def _covariance(execute: Any, rows: Any, way: str) -> list[Any]:
    """Sums of products of all pairs of rows, and the means."""
    variables, points = rows.shape
    (mean,) = execute(stages.means(variables, points), data=rows.reshape(-1))
    spread = np.repeat(mean, points)
    (apart,) = execute(stages.differences(rows.size), x=rows.reshape(-1), mean=spread)
    sums = _products_of_pairs(execute, apart.reshape(rows.shape), way)
    # The host divides: one number a pair.
    return [mean, sums // (points - 1)]


def _products_of_pairs(execute: Any, rows: Any, way: str) -> Any:
    """The products of every row with itself and those after it."""
    variables, points = rows.shape
    if way != PAIRS:
        # A block's sums begin at its first row, a row's own at itself.
        made = rows_of_products(execute, rows, rows, first=True)
        return np.concatenate([sums[len(sums) - variables + i :] for i, sums in enumerate(made)])
    i, j = np.triu_indices(variables)
    pipeline = stages.dot_products(len(i), points, np.int32)
    (sums,) = execute(pipeline, a=rows[i].reshape(-1), b=rows[j].reshape(-1))
    return sums


def covariance(execute: Any, d: Data, way: str = PAIRS) -> list[Any]:
    return _covariance(execute, np.ascontiguousarray(d["x"].T), way)


def pca(execute: Any, d: Data, way: str = PAIRS) -> list[Any]:
    return _covariance(execute, d["x"], way)


def _plain_covariance(rows: Any) -> list[Any]:
    points = rows.shape[1]
    mean = np.add.reduce(rows, axis=1, dtype=np.uint32) // np.uint32(points)
    apart = rows.view(np.int32) - mean.view(np.int32)[:, None]
    whole = apart @ apart.T
    return [mean, whole[np.triu_indices(len(rows))] // (points - 1)]


def plain_covariance(d: Data) -> list[Any]:
    return _plain_covariance(np.ascontiguousarray(d["x"].T))


def plain_pca(d: Data) -> list[Any]:
    return _plain_covariance(d["x"])


def kmeans_stages(s: Sizes) -> list[Stage]:
    outputs = s["points"] * s["clusters"]
    build = partial(stages.distances, outputs, s["features"])
    ranges = {"x": BYTE, "centre": BYTE}
    return [Stage("distances", build, outputs, s["features"], (SUB, MUL), 1, ranges, 32)]


def kmeans_data(s: Sizes, rng: Any, limit: int) -> Data:
    made = _matrices(
        rng, limit, x=(s["points"], s["features"]), centres=(s["clusters"], s["features"])
    )
    return {name: array.view(np.int32) for name, array in made.items()}


def kmeans(execute: Any, d: Data) -> list[Any]:
    """One step: distances in DRAM; the host picks the nearest centre and moves the centres."""
    points, clusters = len(d["x"]), len(d["centres"])
    x = np.repeat(d["x"], clusters, axis=0)
    centre = np.tile(d["centres"], (points, 1))
    pipeline = stages.distances(points * clusters, d["x"].shape[1])
    (far,) = execute(pipeline, x=x.reshape(-1), centre=centre.reshape(-1))
    return [far, far.reshape(points, clusters).argmin(axis=1)]


def plain_kmeans(d: Data) -> list[Any]:
    apart = d["x"][:, None] - d["centres"][None]
    far = np.add.reduce(apart * apart, axis=2, dtype=np.int32)
    return [far.reshape(-1), far.argmin(axis=1)]
