"""Convolutions and matrix products in plain NumPy, tap by tap; knows nothing of cim-opt.

Operands are described by letters, as in `nchw,fchw->nfhw`: d, h and w are spatial and slide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SPATIAL = "dhw"


def multiply(
    form: str,
    input: Array,
    weight: Array,
    init: Array,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    padding: Sequence[tuple[int, int]] = (),
    spatial: str = SPATIAL,
) -> Array:
    """init + the products, in the wrap-around integers of `init`."""
    operands, output = form.split("->")
    letters, taps = operands.split(",")
    sliding = [letter for letter in output if letter in spatial]
    strides = strides or [1] * len(sliding)
    dilations = dilations or [1] * len(sliding)
    zeros = dict(zip(sliding, padding or [(0, 0)] * len(sliding), strict=True))
    padded = np.pad(input.astype(np.int64), [zeros.get(letter, (0, 0)) for letter in letters])
    total = init.astype(np.int64)
    equation = f"{letters},{''.join(i for i in taps if i not in sliding)}->{output}"
    for tap in product(*(range(weight.shape[taps.index(letter)]) for letter in sliding)):
        at = dict(zip(sliding, zip(strides, dilations, tap, strict=True), strict=True))
        windows: list[slice] = []
        for letter in letters:
            if letter not in at:
                windows.append(slice(None))
                continue
            stride, dilation, k = at[letter]
            count = init.shape[output.index(letter)]
            start = k * dilation
            windows.append(slice(start, start + stride * (count - 1) + 1, stride))
        one = weight.astype(np.int64)[
            tuple(at[letter][2] if letter in at else slice(None) for letter in taps)
        ]
        total += np.einsum(equation, padded[tuple(windows)], one)
    return total.astype(init.dtype)


def outputs(size: int, taps: int, stride: int, dilation: int, zeros: tuple[int, int]) -> int:
    """How many positions a window has."""
    return (size + sum(zeros) - dilation * (taps - 1) - 1) // stride + 1
