"""Scan over whole vectors with NumPy; how the work is cut up is told in folds.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cim_opt.dialects.pattern import FoldOp, ScanOp
from cim_opt.simulators.batch import Batch
from cim_opt.simulators.elementwise import dtype_of
from cim_opt.simulators.folds import (
    Fold,
    State,
    check_neutral,
    init_is_neutral,
    ranges,
    ufuncs_of,
)
from cim_opt.simulators.integer_functions import Values
from cim_opt.simulators.region import Regions

CHUNK = 32768
"""Elements that a combining function works on at once."""


def scan(
    regions: Regions,
    op: FoldOp,
    inputs: Sequence[Values],
    shared: Sequence[Values],
    inits: Sequence[Values],
    batch: Batch,
) -> list[Values]:
    """Results of a `pattern.scan`: fresh arrays of shape (N,) + lanes.

    UserError when `init` has to be neutral and is not.
    """
    assert isinstance(op, ScanOp)
    length = inputs[0].shape[0]
    fold = Fold.of(regions, op, shared, inits, batch)
    outs = [np.empty((length, *batch.shape), dtype_of(out.type)) for out in op.outs]
    if length == 0:
        return outs
    running_totals(fold, inputs, inits, outs)
    check_neutral(fold, inits, [out[-1] for out in outs])
    if op.exclusive is None:
        return outs
    for out, init in zip(outs, inits, strict=True):
        out[1:] = out[:-1].copy()
        out[0] = init
    return outs


def running_totals(
    fold: Fold, inputs: Sequence[Values], inits: Sequence[Values], outs: Sequence[Values]
) -> None:
    """Writes the running totals of at least one element, started from `inits`, to `outs`."""
    ufuncs = ufuncs_of(fold.op)
    if ufuncs is not None:
        for ufunc, value, out in zip(ufuncs, inputs, outs, strict=True):
            out[...] = ufunc.over(ufunc.ufunc.accumulate, value)
        _offset(fold, inits, outs)
    elif fold.lane_count(inputs[0].shape[0]) == 1:
        _sequential(fold, [*inits], inputs, outs)
    else:
        _running(fold, inputs, outs)
        if not init_is_neutral(fold.op):
            _offset(fold, inits, outs)


def _sequential(fold: Fold, state: State, inputs: Sequence[Values], outs: Sequence[Values]) -> None:
    """Writes the running totals of one element after the other, started from `state`."""
    for number in range(inputs[0].shape[0]):
        state = fold.step(state, [value[number] for value in inputs])
        for out, value in zip(outs, state, strict=True):
            out[number] = value


def _running(fold: Fold, inputs: Sequence[Values], outs: Sequence[Values]) -> None:
    """Writes the running totals, `init` left out, of at least one element."""
    length = inputs[0].shape[0]
    count = fold.lane_count(length)
    if count == 1:
        _running_sequential(fold, inputs, outs)
        return
    done = length // count * count
    _running_lanes(fold, inputs, outs, count)
    own = [ranges(out, count) for out in outs]
    totals = _running_totals(fold, [out[:, -1] for out in own], count)
    _offset_lanes(fold, totals, own, count)
    if done < length:
        rest = [out[done:] for out in outs]
        _running(fold, [value[done:] for value in inputs], rest)
        _offset(fold, [total[-1] for total in totals], rest)


def _running_sequential(fold: Fold, inputs: Sequence[Values], outs: Sequence[Values]) -> None:
    state, rest = fold.start(inputs)
    first = inputs[0].shape[0] - rest[0].shape[0]
    if first:
        for out, value in zip(outs, state, strict=True):
            out[0] = value
    _sequential(fold, state, rest, [out[first:] for out in outs])


def _running_lanes(
    fold: Fold, inputs: Sequence[Values], outs: Sequence[Values], count: int
) -> None:
    """Writes the running totals of each of `count` ranges by itself."""
    lockstep = fold.nested(count)
    own = [ranges(out, count) for out in outs]
    state = State()
    for part, elements in fold.blocks(inputs, count):
        rows = [np.empty((*elements[0].shape[:2], *fold.batch.shape), out.dtype) for out in outs]
        if part.start == 0:
            _running_sequential(lockstep, elements, rows)
        else:
            _sequential(lockstep, state, elements, rows)
        state = [row[-1] for row in rows]
        for out, row in zip(own, rows, strict=True):
            out[:, part] = row.swapaxes(0, 1)


def _running_totals(fold: Fold, totals: State, count: int) -> State:
    """Running totals of the lanes' totals, by doubling the distance that is summed over."""
    distance = 1
    while distance < count:
        left = [value[:-distance] for value in totals]
        right = [value[distance:] for value in totals]
        joined = fold.nested(count - distance).join(left, right)
        pairs = zip(totals, joined, strict=True)
        totals = [np.concatenate([value[:distance], more]) for value, more in pairs]
        distance *= 2
    return totals


def _offset_lanes(fold: Fold, totals: State, own: Sequence[Values], count: int) -> None:
    """Combines the total of all ranges before a range with the running totals in it, in place."""
    size = own[0].shape[1]
    rows = max(1, CHUNK // (size * max(1, fold.batch.size)))
    elements = fold.nested(size)
    for first in range(1, count, rows):
        last = min(count, first + rows)
        left = [total[first - 1 : last - 1, None] for total in totals]
        right = [out[first:last] for out in own]
        joined = elements.nested(last - first).join(left, right)
        for out, value in zip(right, joined, strict=True):
            out[...] = value


def _offset(fold: Fold, left: Sequence[Values], outs: Sequence[Values]) -> None:
    """Combines one state with all running totals after it, in place."""
    length = outs[0].shape[0]
    size = max(1, CHUNK // max(1, fold.batch.size))
    for first in range(0, length, size):
        part = slice(first, min(length, first + size))
        right = [out[part] for out in outs]
        joined = fold.nested(part.stop - first).join([*left], right)
        for out, value in zip(outs, joined, strict=True):
            out[part] = value
