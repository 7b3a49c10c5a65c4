"""Work of a machine's host: bytes through its memory, and operations on elements.

Charged: pattern operations that stay on the host, and copies of data. Free: what only changes how
data is looked at (slices, casts), allocation, and everything whose time is counted elsewhere
(loops, calls). A machine adds its own operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import tensor
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from cim_opt.dialects.pattern import PatternOp
from cim_opt.simulators.elementwise import is_elementwise

_FREE = {
    "arith.constant",
    "tensor.empty",
    "tensor.cast",
    "tensor.extract_slice",
    "scf.if",
    "scf.for",
    "func.call",
}

Work = tuple[float, float]
"""Bytes moved, and operations."""


def host_work(op: Operation, args: Sequence[Any], results: Sequence[Any]) -> Work:
    """Bytes that an operation moves through memory, and operations that it computes."""
    if op.name in _FREE:
        return 0, 0
    if isinstance(op, PatternOp):
        return bytes_of(args) + bytes_of(results), _runs(op, args) * operations_of(op.body.block)
    if isinstance(op, tensor.InsertSliceOp):
        # The source is read and written; the rest only if the destination could not be kept.
        copied = 0 if results[0] is args[1] else 2 * args[1].nbytes
        return 2 * args[0].nbytes + copied, 0
    if is_elementwise(op) or op.name in ("tensor.dim", "tensor.extract"):
        # On scalars, or on whole tensors element by element.
        vectors = [value for value in (*args, *results) if np.ndim(value)]
        if op.name.startswith("tensor.") or not vectors:
            return 0, 1
        return bytes_of(vectors), max(value.size for value in vectors)
    # What is left makes a tensor.
    return bytes_of(args) + bytes_of(results), 1


def bytes_of(values: Sequence[Any]) -> int:
    """Bytes of those values that are arrays."""
    return sum(int(value.nbytes) for value in values if np.ndim(value))


def _runs(op: PatternOp, args: Sequence[Any]) -> int:
    """How often the element function runs."""
    length = len(args[0])
    return max(0, length - op.window_size + 1) // op.group_size


def operations_of(block: Block) -> int:
    """Operations of one execution of an element function, nested patterns by their lengths."""
    total = 0
    for op in block.ops:
        if op.has_trait(IsTerminator) or op.name == "arith.constant":
            continue
        if isinstance(op, PatternOp):
            owners = op.owners()
            total += max(1, owners) * operations_of(op.body.block)
            continue
        total += 1
        for region in op.regions:
            total += sum(operations_of(inner) for inner in region.blocks)
    return total
