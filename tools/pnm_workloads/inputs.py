"""Data of the workloads: n units of each, like those of the programs that they are compared with.

The data decide how long a DPU takes: software multiplication stops at the last bit of the smaller
operand, and filters keep what they keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Make = Callable[[int, np.random.Generator], Sequence[Array]]

SAMPLE_DIMENSIONS = 10


def va(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """Two vectors of 31 random bits."""
    return [rng.integers(0, 1 << 31, n).astype(np.int32) for _ in range(2)]


def sel(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """1, 2, 3, ...: every other one is kept."""
    return [np.arange(1, n + 1, dtype=np.int64)]


def uni(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """Pairs of equal numbers, and one more that ends the last."""
    return [np.append(np.arange(n, dtype=np.int64) // 2, np.int64(-1))]


def red(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """A vector of 31 random bits in 64."""
    return [rng.integers(0, 1 << 31, n)]


def scan(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """A vector of 31 random bits in 64."""
    return red(n, rng)


def hst(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """Pixels of 12 bits, darker ones more often, as in a photograph."""
    return [(rng.beta(2.0, 3.0, n) * 4096).astype(np.uint32)]


def gemv(bits: int, columns: int) -> Make:
    """n rows of numbers from 0 to 49, and such a vector."""

    def make(n: int, rng: np.random.Generator) -> Sequence[Array]:
        dtype = np.dtype(f"int{bits}")
        return [rng.integers(0, 50, size).astype(dtype) for size in (n * columns, columns)]

    return make


def mlp(bits: int, columns: int) -> Make:
    """Three matrices of n rows and a vector; 98 % of the weights, and 96 % of the vector, are 0."""

    def sparse(size: int, share: float, rng: np.random.Generator) -> Array:
        values = rng.integers(1, 50, size)
        return np.where(rng.random(size) < share, values, 0).astype(f"int{bits}")

    def make(n: int, rng: np.random.Generator) -> Sequence[Array]:
        first, *others = (sparse(n * columns, 0.02, rng) for _ in range(3))
        return [first, sparse(columns, 0.04, rng), *others]

    return make


def ts(query: int) -> Make:
    """A series of n windows with values from 0 to 126, the query, means and deviations."""

    def make(n: int, rng: np.random.Generator) -> Sequence[Array]:
        series, pattern = (rng.integers(0, 127, size) for size in (n + query - 1, query))
        mean, deviation = rng.integers(56, 71, n), rng.integers(30, 44, n)
        return [a.astype(np.int32) for a in (series, pattern, mean, deviation)]

    return make


def _features(n: int, rng: np.random.Generator) -> list[Array]:
    return [rng.integers(0, 1024, n).astype(np.int32) for _ in range(SAMPLE_DIMENSIONS)]


def linreg(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """Ten features of 10 bits, a target of 10 bits, ten weights of 7 bits and a sign."""
    target = rng.integers(0, 1024, n).astype(np.int32)
    return [*_features(n, rng), target, rng.integers(-128, 128, SAMPLE_DIMENSIONS).astype(np.int32)]


def logreg(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """Ten features of 10 bits, labels 0 and 4096, ten weights of 7 bits and a sign."""
    label = (rng.integers(0, 2, n) * 4096).astype(np.int32)
    return [*_features(n, rng), label, rng.integers(-128, 128, SAMPLE_DIMENSIONS).astype(np.int32)]


def kmeans(n: int, rng: np.random.Generator) -> Sequence[Array]:
    """Points of ten coordinates of 10 bits, and ten centres."""
    return [*_features(n, rng), rng.integers(0, 1024, 100).astype(np.int32)]
