"""Work of the host in a program with DPUs: merging, beside what every host does.

Transfers, launches and kernels are counted elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from cim_opt.dialects import upmem
from cim_opt.simulators import host_cost
from cim_opt.simulators.host_cost import Work, bytes_of, operations_of

_FREE = {
    "upmem.alloc",
    "upmem.free",
    "upmem.push",
    "upmem.broadcast",
    "upmem.pull",
    "upmem.launch",
    "upmem.wait",
    "upmem.host_thread",
}


def host_work(op: Operation, args: Sequence[Any], results: Sequence[Any]) -> Work:
    """Bytes that an operation moves through memory, and operations that it computes."""
    if op.name in _FREE:
        return 0, 0
    if isinstance(op, upmem.CompactOp):
        counts, dest = args[2], args[3]
        kept = int(counts.sum()) * op.scale.value.data * dest.itemsize
        return kept * 2 + counts.nbytes, len(counts)
    if isinstance(op, upmem.GatherOp):
        # The host makes a list of blocks: two a segment, what is kept and what is thrown away.
        return args[2].nbytes, 2 * len(args[2])
    if isinstance(op, upmem.MergeReduceOp):
        return _folding(op, args, results)
    if isinstance(op, upmem.MergeScanOp):
        elements = max(np.size(arg) for arg in args)
        return bytes_of(args) + bytes_of(results), elements * operations_of(op.combine.block)
    return host_cost.host_work(op, args, results)


def _folding(op: upmem.MergeReduceOp, args: Sequence[Any], results: Sequence[Any]) -> Work:
    """Folding partial results, without what lies between them."""
    moved = operations = 0
    rows = zip(args, op.strides.get_values(), results, strict=False)
    for partials, stride, result in rows:
        size = np.size(result)
        count = (len(partials) - size) // stride + 1 if len(partials) >= size else 0
        moved += count * size * partials.itemsize
        operations = max(operations, count * size)
    each = operations_of(op.combine.block)
    return moved + bytes_of(args[len(results) :]) + bytes_of(results), operations * each
