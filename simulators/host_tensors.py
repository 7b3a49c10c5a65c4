"""What `tensor` operations mean on the host: one array a tensor, no lanes.

Each function takes the evaluator, the operation and its operands' values, and gives the results'
values. Sizes and offsets come from operands or from the text. An operation that makes a new tensor
from an old one writes into the old one when the evaluator says that nobody else sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators import batch as lanes
from cim_opt.simulators.batch import HOST, Shape
from cim_opt.simulators.elementwise import constant_value, dtype_of
from cim_opt.simulators.integer_functions import Values


class Evaluator(Protocol):
    """What a handler may ask of the evaluator that calls it."""

    def may_overwrite(self, op: Operation, operand: int) -> bool:
        """True when `op` may write into the array of this operand."""
        ...


def shape_of(type: Attribute) -> Shape:
    """The shape of a tensor type, with DYNAMIC_INDEX for `?`."""
    assert isa(type, TensorType)
    return type.get_shape()


def _filled_in(op: Operation, static: Sequence[int], dynamic: Sequence[Values]) -> Shape:
    """`static` with the operands' values in place of DYNAMIC_INDEX."""
    values = iter(dynamic)
    shape = tuple(int(next(values)) if n == DYNAMIC_INDEX else n for n in static)
    if any(length < 0 for length in shape):
        raise UserError(
            f"a size of '{op.name}' is negative, {min(shape)}",
            "sizes are at least 0",
            location=location_of(op),
        )
    return shape


def dim(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    axis = lanes.checked(op, args[1], np.ndim(args[0]), HOST)
    return [np.int64(args[0].shape[axis])]


def empty(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    shape = _filled_in(op, shape_of(op.results[0].type), args)
    return [np.zeros(shape, dtype_of(op.results[0].type))]


def splat(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    shape = _filled_in(op, shape_of(op.results[0].type), args[1:])
    return [np.full(shape, args[0])]


def from_elements(
    evaluator: Evaluator, op: Operation, args: tuple[Values, ...]
) -> Sequence[Values]:
    shape, dtype = shape_of(op.results[0].type), dtype_of(op.results[0].type)
    return [np.array(args, dtype).reshape(shape)]


def extract(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    return [lanes.extract(op, HOST, args[0], args[1:])]


def insert(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    in_place = evaluator.may_overwrite(op, 1)
    return [lanes.insert(op, HOST, in_place, args[0], args[1], args[2:])]


def cast(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    for want, got in zip(shape_of(op.results[0].type), args[0].shape, strict=True):
        if want not in (DYNAMIC_INDEX, got):
            raise UserError(
                f"'{op.name}' gets a tensor of length {got}",
                f"its type says {want}",
                location=location_of(op),
            )
    return [args[0]]


def concat(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    assert isinstance(op, tensor.ConcatOp)
    return [np.concatenate(args, axis=op.dim.value.data)]


def pad(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    """A tensor with one number around it."""
    assert isinstance(op, tensor.PadOp)
    last = op.region.block.last_op
    number = last.operands[0].owner if last is not None and last.operands else None
    if not isinstance(number, arith.ConstantOp):
        raise UserError(
            f"'{op.name}' computes what it pads with",
            "it pads with a constant",
            location=location_of(op),
        )
    count = len(op.low)
    low = _filled_in(op, op.static_low.get_values(), args[1 : 1 + count])
    high = _filled_in(op, op.static_high.get_values(), args[1 + count :])
    widths = list(zip(low, high, strict=True))
    return [np.pad(args[0], widths, constant_values=constant_value(number))]


def extract_slice(
    evaluator: Evaluator, op: Operation, args: tuple[Values, ...]
) -> Sequence[Values]:
    """The part of a tensor, as a view."""
    assert isinstance(op, tensor.ExtractSliceOp)
    part, _ = _part(op, args[0].shape, args[1:])
    view = args[0][part]
    rank = len(shape_of(op.result.type))
    return [view if view.ndim == rank else view.reshape(_without_ones(view.shape, rank))]


def insert_slice(evaluator: Evaluator, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    """The destination with the source written over a part of it."""
    assert isinstance(op, tensor.InsertSliceOp)
    source, dest = args[:2]
    part, sizes = _part(op, dest.shape, args[2:])
    if source.size != dest[part].size:
        raise UserError(
            f"'{op.name}' writes {source.size} elements",
            f"its sizes say {' x '.join(str(size) for size in sizes)}",
            location=location_of(op),
        )
    if not evaluator.may_overwrite(op, 1) or not dest.flags.writeable:
        dest = dest.copy()
    dest[part] = source.reshape(dest[part].shape)
    return [dest]


def _part(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp, shape: Shape, dynamic: Sequence[Values]
) -> tuple[tuple[slice, ...], Shape]:
    """The slice of each dimension, and the sizes. UserError when it leaves the tensor."""
    counts = [len(op.offsets), len(op.sizes)]
    offsets = _filled_in(op, op.static_offsets.get_values(), dynamic[: counts[0]])
    sizes = _filled_in(op, op.static_sizes.get_values(), dynamic[counts[0] : sum(counts)])
    strides = _filled_in(op, op.static_strides.get_values(), dynamic[sum(counts) :])
    for length, offset, size, stride in zip(shape, offsets, sizes, strides, strict=True):
        if size and (stride < 1 or offset + (size - 1) * stride >= length):
            raise UserError(
                f"'{op.name}' of {size} elements from {offset} with stride {stride} is out of "
                "range",
                f"the tensor has {length} elements",
                location=location_of(op),
            )
    parts = tuple(
        slice(offset, offset + size * stride, stride) if size else slice(0, 0)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    )
    return parts, sizes


def _without_ones(shape: Shape, rank: int) -> Shape:
    """`shape` with as many lengths of 1 left out, from the front, as bring it to `rank`."""
    kept = list(shape)
    while len(kept) > rank and 1 in kept:
        kept.remove(1)
    return tuple(kept)
