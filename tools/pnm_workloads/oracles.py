"""Results of the workloads by NumPy, written independently of their pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def va(a: Array, b: Array) -> Sequence[Array]:
    return [np.add(a, b)]


def sel(x: Array) -> Sequence[Array]:
    return [x[x % 2 != 0]]


def uni(x: Array) -> Sequence[Array]:
    return [x[:-1][np.diff(x) != 0]]


def red(x: Array) -> Sequence[Array]:
    return [x.sum()]


def scan(x: Array) -> Sequence[Array]:
    return [np.cumsum(x)]


def hst(pixels: Array) -> Sequence[Array]:
    return [np.bincount(pixels >> 4, minlength=256).astype(np.uint32)]


def gemv(matrix: Array, vector: Array) -> Sequence[Array]:
    rows = matrix.reshape(-1, len(vector)).astype(np.int64)
    return [(rows @ vector.astype(np.int64)).astype(np.int32)]


def mlp(first: Array, x: Array, *others: Array) -> Sequence[Array]:
    y, size, dtype = first, len(x), first.dtype
    for matrix in (first, *others):
        y = np.maximum(gemv(matrix, x)[0], 0)
        x = y[:size].astype(dtype)
    return [y]


def ts(series: Array, query: Array, mean: Array, deviation: Array) -> Sequence[Array]:
    m = len(query)
    if len(series) < m:
        return [np.array(np.iinfo(np.int32).max, np.int32)]
    dot = np.correlate(series.astype(np.int64), query.astype(np.int64))
    above, scale = dot - m * 63 * mean.astype(np.int64), 37 * deviation.astype(np.int64)
    ratio = np.sign(above) * (np.abs(above) // scale)
    return [(2 * (m - ratio)).min().astype(np.int32)]


def _errors_to_sums(features: Sequence[Array], error: Array) -> Sequence[Array]:
    return [(error * x.astype(np.int64) >> 10).sum() for x in features]


def linreg(*arrays: Array) -> Sequence[Array]:
    features, target, weights = arrays[:-2], arrays[-2], arrays[-1]
    dot = np.array(features, np.int64).T @ weights.astype(np.int64)
    return _errors_to_sums(features, (dot >> 6) - target)


def logreg(*arrays: Array) -> Sequence[Array]:
    features, label, weights = arrays[:-2], arrays[-2], arrays[-1]
    dot = np.array(features, np.int64).T @ weights.astype(np.int64)
    # A value of the table is that of its step's start: steps are 1/64 wide, from -8 to 8.
    step = np.clip(dot >> 10, -512, 511) / 64
    return _errors_to_sums(features, np.rint(4096 / (1 + np.exp(-step))).astype(np.int64) - label)


def kmeans(*arrays: Array) -> Sequence[Array]:
    points, centres = np.array(arrays[:-1], np.int64).T, arrays[-1].reshape(10, 10)
    distance = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    nearest = distance.argmin(axis=1) if len(points) else np.zeros(0, np.int64)
    sums = np.zeros((10, 11), np.int64)
    np.add.at(sums, nearest, np.hstack([points, np.ones((len(points), 1), np.int64)]))
    return [sums.reshape(-1).astype(np.int32)]
