"""Sums of products over loops with affine accesses, in NumPy: what kernels and convolutions mean.

    O[Ao p + bo] += I[Ai p + bi] * W[Aw p + bw]      for every point p of a domain

A box of loops becomes matrix products: each operand is looked at through a view with a dimension a
loop, a bounded part of which is unrolled at a time, and floats multiply where every sum is exact.
Other domains are given as points, and gathered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from cim_opt.polyhedral.recognise import Access

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 1 << 22
"""Elements of the input that are unrolled at a time."""


def sum_products(
    extents: Sequence[int], accesses: Sequence[Access], input: Array, weight: Array, init: Array
) -> Array:
    """A new array: `init` plus the products of all points of a box of loops.

    `accesses` are those of input, weight and output. The arrays hold integers of up to 32 bits;
    sums wrap to the type of `init`. The input reads as zero outside of its array; the accesses to
    weight and output stay inside theirs.
    """
    if 0 in extents:
        return init.copy()
    reads, weights, writes = (
        {loop for loop in range(len(extents)) if access.uses(loop)} for access in accesses
    )
    every = range(len(extents))
    batch = [loop for loop in every if loop in reads & weights & writes]
    rows = [loop for loop in every if loop in writes - weights]
    columns = [loop for loop in every if loop in (writes & weights) - reads]
    summed = [loop for loop in every if loop not in writes]
    products = _chunked(
        _view(*_covering(extents, accesses[0], input), extents, [*batch, *rows, *summed]),
        _view(weight, accesses[1], extents, [*batch, *summed, *columns]),
        (len(batch), len(rows), len(summed)),
        _exact_type(prod(extents[loop] for loop in summed), input, weight),
    )
    total = init.astype(np.int64)
    _add(total, accesses[2], extents, [*batch, *rows, *columns], products.reshape(-1))
    return total.astype(init.dtype)


def sum_products_at(
    points: Iterable[Array], accesses: Sequence[Access], input: Array, weight: Array, init: Array
) -> Array:
    """As `sum_products`, for the points of any domain, given as arrays [points, loops]."""
    total = init.astype(np.int64)
    for part in points:
        places = [_places(part, access) for access in accesses]
        inside = np.all((places[0] >= 0) & (places[0] < np.array(input.shape)), axis=1)
        at_input, at_weight, at_output = (tuple(place[inside].T) for place in places)
        products = input[at_input].astype(np.int64) * weight[at_weight].astype(np.int64)
        np.add.at(total, at_output, products)
    return total.astype(init.dtype)


def _places(points: Array, access: Access) -> Array:
    """Indices [points, dimensions] that the access gives."""
    matrix = np.array(access.matrix, np.int64).reshape(-1, points.shape[1])
    return points @ matrix.T + np.array(access.offsets, np.int64)


def _exact_type(depth: int, input: Array, weight: Array) -> np.dtype[Any]:
    """The fastest type in which every sum of `depth` products is exact."""
    bound = depth
    for values in (input, weight):
        bound *= int(np.abs(values.astype(np.int64)).max(initial=1))
    if bound < 1 << 24:
        return np.dtype(np.float32)
    return np.dtype(np.float64 if bound < 1 << 53 else np.int64)


def _chunked(
    reads: Array, weights: Array, ranks: tuple[int, int, int], dtype: np.dtype[Any]
) -> Array:
    """Sums of products, [batch.., rows.., columns].

    `reads` is [batch.., rows.., summed..], `weights` [batch.., summed.., columns..], and `ranks`
    count the loops of each of the first three.
    """
    batch, rows, summed = ranks
    head, depth = reads.shape[: batch + rows], prod(reads.shape[batch + rows :])
    columns = prod(weights.shape[batch + summed :])
    out = np.empty((*head, columns), np.int64)
    for block in _blocks(head, max(1, CHUNK // depth)):
        left = reads[block].astype(dtype)
        right = weights[block[:batch]].astype(dtype)
        kept = left.shape[: left.ndim - summed]
        lead = kept[: right.ndim - (weights.ndim - batch)]
        products = np.matmul(
            left.reshape(*lead, prod(kept[len(lead) :]), depth),
            right.reshape(*lead, depth, columns),
        )
        out[block] = products.reshape(*kept, columns)
    return out


def _blocks(shape: Sequence[int], most: int) -> Iterator[tuple[int | slice, ...]]:
    """Parts of an array of `shape`, each of at most `most` elements, or of one."""
    split = len(shape)
    while split and prod(shape[split - 1 :]) <= most:
        split -= 1
    if split == 0:
        yield ()
        return
    step = max(1, most // prod(shape[split:]))
    for outer in np.ndindex(*shape[: split - 1]):
        for start in range(0, shape[split - 1], step):
            yield (*outer, slice(start, start + step))


def _covering(extents: Sequence[int], access: Access, array: Array) -> tuple[Array, Access]:
    """The array with zeros around it, as far as the access reaches, and the access to that."""
    bounds = zip(access.bounds(extents), array.shape, strict=True)
    widths = [(max(0, -low), max(0, high + 1 - size)) for (low, high), size in bounds]
    if not any(before or behind for before, behind in widths):
        return array, access
    offsets = (offset + width[0] for offset, width in zip(access.offsets, widths, strict=True))
    return np.pad(array, widths), Access(access.matrix, tuple(offsets))


def _view(array: Array, access: Access, extents: Sequence[int], loops: Sequence[int]) -> Array:
    """The array looked at with one dimension for each of `loops`."""
    first = array[tuple(slice(offset, offset + 1) for offset in access.offsets)]
    strides = [_step(access, loop, array.strides) for loop in loops]
    shape = [extents[loop] for loop in loops]
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)


def _step(access: Access, loop: int, strides: Sequence[int]) -> int:
    """How far one step of a loop goes in an array with these strides."""
    return sum(row[loop] * stride for row, stride in zip(access.matrix, strides, strict=True))


def _add(
    total: Array, access: Access, extents: Sequence[int], loops: Sequence[int], values: Array
) -> None:
    """Adds values, one for each point of `loops` in their order, where the access says."""
    units = [prod(total.shape[index + 1 :]) for index in range(total.ndim)]
    steps = [_step(access, loop, units) for loop in loops]
    sizes = [extents[loop] for loop in loops]
    where = np.array(sum(a * b for a, b in zip(access.offsets, units, strict=True)), np.int64)
    for step, size in zip(steps, sizes, strict=True):
        where = where[..., np.newaxis] + step * np.arange(size)
    flat, where = total.reshape(-1), where.reshape(-1)
    if _is_injective(steps, sizes):
        flat[where] += values
    else:
        np.add.at(flat, where, values)


def _is_injective(steps: Sequence[int], sizes: Sequence[int]) -> bool:
    """True when different points surely differ in the sum of step * point."""
    reach = 0
    for step, size in sorted((abs(step), size) for step, size in zip(steps, sizes, strict=True)):
        if step <= reach and size > 1:
            return False
        reach += step * (size - 1)
    return True
