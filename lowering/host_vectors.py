"""Vectors of the host in lowered code: their lengths, room for new ones, copies of functions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Block, SSAValue

from cim_opt.dialects.pattern import YieldOp, vector_length
from cim_opt.lowering.emit import Emitter, Index


def empty(emit: Emitter, element: Attribute, length: Index) -> SSAValue:
    """A host vector to be filled."""
    if isinstance(length, int):
        return emit.insert(tensor.EmptyOp([], TensorType(element, [length]))).results[0]
    attr = TensorType(element, [DYNAMIC_INDEX])
    return emit.insert(tensor.EmptyOp([length], attr)).results[0]


def insert_at(emit: Emitter, part: SSAValue, whole: SSAValue, position: Index) -> SSAValue:
    """`whole` with `part` from `position` on."""
    size = length_of(emit, part)
    op = tensor.InsertSliceOp.get(
        part,
        whole,
        static_sizes=[size if isinstance(size, int) else DYNAMIC_INDEX],
        static_offsets=[position if isinstance(position, int) else DYNAMIC_INDEX],
        sizes=[] if isinstance(size, int) else [size],
        offsets=[] if isinstance(position, int) else [position],
    )
    return emit.insert(op).results[0]


def length_of(emit: Emitter, value: SSAValue) -> Index:
    """Length of a host vector."""
    length = vector_length(value)
    if length != DYNAMIC_INDEX:
        return length
    return emit.once(
        ("dim", value), lambda: emit.insert(tensor.DimOp(value, emit.value(0))).results[0]
    )


def clone_block(emit: Emitter, block: Block, args: Sequence[SSAValue]) -> list[SSAValue]:
    """Copies the operations of a function's block; returns what it yields."""
    values = dict[SSAValue, SSAValue](zip(block.args, args, strict=True))
    for op in block.ops:
        if isinstance(op, YieldOp):
            return [values[value] for value in op.arguments]
        copy = emit.insert(op.clone(values))
        values.update(zip(op.results, copy.results, strict=True))
    raise AssertionError("an element function ends in pattern.yield")
