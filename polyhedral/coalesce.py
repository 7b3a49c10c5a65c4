"""Coalescing: several coordinates fused into one number, the virtual row or column.

The first coordinate counts most: ((y1 * n2 + y2) * n3 + y3) .. for sizes n. Division and remainder
give the coordinates back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def mixed_radix(coordinates: Integers, sizes: Sequence[int]) -> Integers:
    """Numbers [point] of coordinates [point, coordinate], each in 0..size-1; 0 without any."""
    return coordinates @ np.array(weights(sizes), dtype=np.int64)


def digits(numbers: Integers, sizes: Sequence[int]) -> Integers:
    """The coordinates [point, coordinate] that `mixed_radix` gives these numbers for."""
    columns: list[Integers] = []
    for weight, size in zip(weights(sizes), sizes, strict=True):
        columns.append(numbers // weight % size)
    return np.array(columns, dtype=np.int64).reshape(len(sizes), len(numbers)).T


def weights(sizes: Sequence[int]) -> tuple[int, ...]:
    """What one step of each coordinate adds to the number."""
    return tuple(prod(sizes[i + 1 :]) for i in range(len(sizes)))


def text(names: Sequence[str], sizes: Sequence[int]) -> str:
    """The number as an isl expression of named coordinates; "0" without any."""
    terms = [
        name if weight == 1 else f"{weight}*{name}"
        for name, weight, size in zip(names, weights(sizes), sizes, strict=True)
        if size > 1
    ]
    return " + ".join(terms) or "0"


def map_text(names: Sequence[str], sizes: Sequence[int]) -> str:
    """The isl map from the coordinates, inside their box, to the number."""
    inside = " and ".join(f"0 <= {name} < {size}" for name, size in zip(names, sizes, strict=True))
    where = f" : {inside}" if inside else ""
    return f"{{ [{', '.join(names)}] -> [{text(names, sizes)}]{where} }}"
