"""What the host does with what DPUs give back: close gaps, fold partial results, join scans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.batch import Batch
from cim_opt.simulators.region import Program

Array = npt.NDArray[Any]
State = list[Any]


def compact(
    op: upmem.CompactOp | upmem.GatherOp,
    data: Array,
    capacity: int,
    counts: Array,
    dest: Array,
    position: int,
) -> None:
    """Puts the first counts[s] * scale elements of each segment s, one after another, in `dest`."""
    scale = op.scale.value.data
    kept = counts * scale
    bad = (counts < 0) | (kept > capacity)
    if bad.any():
        segment = int(np.argmax(bad))
        raise _error(
            op,
            f"segment {segment} keeps {int(kept[segment])} elements",
            f"segments have room for {capacity}",
        )
    if len(counts) * capacity > len(data):
        raise _error(
            op,
            f"{len(counts)} segments of {capacity} elements",
            f"the data has {len(data)} elements",
        )
    total = int(kept.sum())
    if not 0 <= position <= len(dest) - total:
        raise _error(
            op,
            f"{total} elements from position {position} on",
            f"the destination has {len(dest)}",
        )
    segments = data[: len(counts) * capacity].reshape(len(counts), capacity)
    dest[position : position + total] = segments[np.arange(capacity) < kept[:, None]]


def merge_reduce(
    op: upmem.MergeReduceOp, program: Program, partials: Sequence[Array], inits: State
) -> State:
    """Folds the partial results in order, neighbours first, onto the initial values."""
    state = [
        _partials(op, values, stride, np.shape(init))
        for values, stride, init in zip(partials, op.strides.get_values(), inits, strict=True)
    ]
    count = len(state[0])
    if any(len(values) != count for values in state):
        raise _error(
            op, f"accumulators have {[len(v) for v in state]} partial results", "one number of them"
        )
    while count > 1:
        even = count - count % 2
        left = [values[0:even:2] for values in state]
        right = [values[1:even:2] for values in state]
        joined = _join(program, left, right)
        state = [
            np.concatenate([values, old[even:]]) for values, old in zip(joined, state, strict=True)
        ]
        count = len(state[0])
    merged = _join(program, inits, [values[0] for values in state]) if count else inits
    # Copies: a combining function may hand on one of its operands.
    return [np.array(value)[()] for value in merged]


def _partials(op: Operation, values: Array, stride: int, shape: tuple[int, ...]) -> Array:
    """The partial results, one a row of the accumulator's shape."""
    size = shape[0] if shape else 1
    if stride < size:
        raise _error(op, f"partial results are {stride} elements apart", f"each takes {size}")
    count = 0 if len(values) < size else (len(values) - size) // stride + 1
    padded = values[: count * stride]
    if len(padded) < count * stride:
        # The last one need not be followed by its padding.
        padded = np.append(padded, np.zeros(count * stride - len(padded), values.dtype))
    rows = padded.reshape(count, stride)[:, :size]
    return rows if shape else rows[:, 0]


def merge_scan(
    op: upmem.MergeScanOp,
    program: Program,
    locals_: Sequence[Array],
    totals: Sequence[Array],
    inits: State,
    shared: Sequence[Any],
    per_dpu: int,
    chunk: int,
) -> tuple[list[Array], State]:
    """The whole scan of what DPUs have scanned for themselves, and the final values."""
    tasklets = op.tasklets.value.data
    dpus = _check_scan(op, locals_, totals, tasklets, per_dpu)
    starts = np.minimum(np.arange(tasklets) * chunk, per_dpu)
    ends = np.minimum(starts + chunk, per_dpu)
    if dpus and ends[-1] < per_dpu:
        raise _error(
            op,
            f"{tasklets} tasklets of {chunk} elements",
            f"they do not reach the {per_dpu} of a DPU",
        )
    used = int(np.count_nonzero(ends > starts))
    own = [values.reshape(dpus, tasklets)[:, :used].reshape(-1) for values in totals]
    before, carries = _running(program, own, inits, shared)
    merged = [np.empty_like(values) for values in locals_]
    offsets = [values.reshape(dpus, used) for values in before]
    rows = [values.reshape(dpus, per_dpu) for values in locals_]
    for tasklet in range(used):
        part = slice(int(starts[tasklet]), int(ends[tasklet]))
        left = [values[:, tasklet, None] for values in offsets]
        joined = _join(program, left, [values[:, part] for values in rows], shared)
        for out, values in zip(merged, joined, strict=True):
            out.reshape(dpus, per_dpu)[:, part] = values
    if op.exclusive is not None:
        merged = [_shifted(values, init) for values, init in zip(merged, inits, strict=True)]
    return merged, carries


def _check_scan(
    op: Operation, locals_: Sequence[Array], totals: Sequence[Array], tasklets: int, per_dpu: int
) -> int:
    """How many DPUs there are."""
    dpus = len(totals[0]) // tasklets
    if any(len(values) != dpus * tasklets for values in totals):
        raise _error(
            op, f"{len(totals[0])} totals", f"there is one for each of {tasklets} tasklets of a DPU"
        )
    if any(len(values) != dpus * per_dpu for values in locals_):
        raise _error(
            op,
            f"{len(locals_[0])} elements",
            f"{dpus} DPUs of {per_dpu} have {dpus * per_dpu}",
        )
    return dpus


def _running(
    program: Program, totals: list[Array], inits: State, shared: Sequence[Any]
) -> tuple[list[Array], State]:
    """The initial value combined with all totals before each one, and with all of them."""
    state = [
        np.concatenate([np.asarray(init)[None], values])
        for init, values in zip(inits, totals, strict=True)
    ]
    distance = 1
    while distance < len(state[0]):
        left = [values[:-distance] for values in state]
        right = [values[distance:] for values in state]
        joined = _join(program, left, right, shared)
        state = [
            np.concatenate([values[:distance], more])
            for values, more in zip(state, joined, strict=True)
        ]
        distance *= 2
    return [values[:-1] for values in state], [values[-1] for values in state]


def _shifted(values: Array, init: Any) -> Array:
    """What an exclusive scan has: the element before, and first the initial value."""
    out = np.empty_like(values)
    if len(out):
        out[0] = init
        out[1:] = values[:-1]
    return out


def _join(
    program: Program, left: Sequence[Any], right: Sequence[Any], shared: Sequence[Any] = ()
) -> list[Any]:
    """combine(left, right, shared), element by element."""
    shape = np.broadcast_shapes(*(np.shape(value) for value in (*left, *right)))
    joined = program.run([*left, *right, *shared], Batch(shape))
    return [np.broadcast_to(value, shape) for value in joined]


def _error(op: Operation, what: str, limit: str) -> UserError:
    return UserError(f"'{op.name}': {what}", limit, None, location_of(op))
