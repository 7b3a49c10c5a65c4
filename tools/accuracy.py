"""How well predicted times agree with measured ones: errors, ranks, and what is chosen by them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def percent_errors(predicted: Sequence[float], measured: Sequence[float]) -> FloatArray:
    """(predicted - measured) / measured, in percent."""
    return 100.0 * (np.asarray(predicted) / np.asarray(measured) - 1.0)


def _ranks(values: Sequence[float]) -> FloatArray:
    """Ranks from 0; equal values share the mean of theirs."""
    array = np.asarray(values, np.float64)
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts + 1) / 2.0)[inverse]


def spearman(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Correlation of the ranks; None when there are no two different values on either side."""
    a, b = _ranks(predicted), _ranks(measured)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm else None


def choices(
    workloads: Sequence[Hashable], predicted: Sequence[float], measured: Sequence[float]
) -> list[tuple[bool, float]]:
    """For each workload of two or more points: is the predicted best the best, and the regret.

    Regret is how much longer, in percent, the predicted best takes than the best, as measured.
    """
    groups: dict[Hashable, list[int]] = {}
    for number, workload in enumerate(workloads):
        groups.setdefault(workload, []).append(number)
    found: list[tuple[bool, float]] = []
    for members in groups.values():
        if len(members) < 2:
            continue
        chosen = min(members, key=lambda number: predicted[number])
        best = min(measured[number] for number in members)
        found.append((measured[chosen] == best, 100.0 * (measured[chosen] / best - 1.0)))
    return found
