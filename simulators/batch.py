"""Values of an element function that runs for many elements at once.

The lanes of one evaluation have a shape, the *batch*: (N,) for the elements of one vector,
(L, N) when each of those runs a nested pattern over L elements, () on the host. A scalar of the
program is an array that broadcasts to the batch; it is 0-d when it is the same in all lanes. A
tensor of shape (K,) is an array of shape (K,) + one length a batch dimension, each the batch's own
or 1. A new batch dimension goes in front of the old ones, so scalars of the outer lanes need no
change in a nested pattern, and tensors get one more dimension of length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.integer_functions import Values

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The lanes of an evaluation: their shape, and which of them count.

    `mask` is an array of bool that broadcasts to `shape`, False where a surrounding `scf.if` or
    `scf.for` has the lane switched off; None when all lanes count.
    """

    shape: Shape
    mask: Values = None

    def under(self, condition: Values) -> Batch:
        """The same lanes, those off where `condition` is False."""
        mask = condition if self.mask is None else self.mask & condition
        return replace(self, mask=mask)

    def nested(self, lanes: int) -> Batch:
        """Lanes of a pattern over `lanes` elements inside each of these."""
        return replace(self, shape=(lanes, *self.shape))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of lanes."""
        size = 1
        for length in self.shape:
            size *= length
        return size


HOST = Batch(())


def rank_of(type: Attribute) -> int:
    """Number of dimensions of a tensor type, 0 for a scalar."""
    return type.get_num_dims() if isa(type, TensorType) else 0


def aligned(value: Values, rank: int) -> Values:
    """`value` with lengths of 1 put in front until it has `rank` dimensions."""
    missing = rank - np.ndim(value)
    return value if missing <= 0 else np.reshape(value, (1,) * missing + np.shape(value))


def in_nested(value: Values, type: Attribute) -> Values:
    """A value of the outer lanes as one of a nested pattern's lanes."""
    rank = rank_of(type)
    if rank == 0:
        return value
    return value.reshape((*value.shape[:rank], 1, *value.shape[rank:]))


def as_tensor(value: Values, length: int, batch: Batch) -> Values:
    """Scalars of a nested pattern's lanes, as a tensor of `length` elements of the outer lanes."""
    padded = aligned(value, batch.rank + 1)
    if padded.shape[0] == length:
        return padded
    return np.broadcast_to(padded, (length, *padded.shape[1:]))


def from_elements(shape: Shape, batch: Batch, elements: Sequence[Values]) -> Values:
    """A tensor of `shape` of these scalars, in row-major order."""
    padded = [aligned(element, batch.rank) for element in elements]
    stacked: Values = np.stack(np.broadcast_arrays(*padded))
    return stacked.reshape(shape + stacked.shape[1:])


def splat(shape: Shape, batch: Batch, value: Values) -> Values:
    """A tensor of `shape` with one value everywhere; read-only."""
    padded = aligned(value, batch.rank)
    return np.broadcast_to(padded, shape + padded.shape)


def in_all_lanes(values: Values, batch: Batch) -> Values:
    """A constant array, the same in all lanes."""
    return values.reshape(values.shape + (1,) * batch.rank)


def lane_of(index: Values) -> int | None:
    """The index as a number when it is the same in all lanes, else None."""
    return int(np.reshape(index, ())) if np.size(index) == 1 else None


def _grid(shape: Shape) -> tuple[Values, ...]:
    """For each dimension its own position, so that an index picks its own lane."""
    return tuple(
        np.arange(length).reshape((-1,) + (1,) * (len(shape) - 1 - axis))
        for axis, length in enumerate(shape)
    )


def _out_of_range(op: Operation, index: int, length: int) -> UserError:
    return UserError(
        f"index {index} of '{op.name}' is out of range",
        f"the tensor has {length} elements",
        "keep the index inside, or guard the access with scf.if",
        location=location_of(op),
    )


def checked(op: Operation, index: Values, length: int, batch: Batch) -> Values:
    """`index`, in range in the lanes that count (else UserError), and 0 where it is not."""
    single = lane_of(index)
    if single is not None:
        return _checked_single(op, single, length, batch)
    outside = index.view(np.uint64) >= np.uint64(length)
    if not outside.any():
        return index
    wrong = outside if batch.mask is None else outside & batch.mask
    if wrong.any():
        full = np.broadcast_to(index, wrong.shape)
        raise _out_of_range(op, int(full[wrong][0]), length)
    return np.where(outside, np.int64(0), index)


def _checked_single(op: Operation, index: int, length: int, batch: Batch) -> int:
    if 0 <= index < length:
        return index
    if batch.mask is None or np.any(batch.mask):
        raise _out_of_range(op, index, length)
    return 0


def _checked_all(
    op: Operation, tensor: Values, indices: Sequence[Values], batch: Batch
) -> tuple[Any, ...]:
    lengths = tensor.shape[: len(indices)]
    pairs = zip(indices, lengths, strict=True)
    return tuple(checked(op, index, length, batch) for index, length in pairs)


def extract(op: Operation, batch: Batch, tensor: Values, indices: Sequence[Values]) -> Values:
    """tensor[indices] in every lane. UserError when one that counts is out of range."""
    if 0 in tensor.shape[: len(indices)] and batch.mask is not None and not batch.mask.any():
        return tensor.dtype.type(0)
    where = _checked_all(op, tensor, indices, batch)
    if all(isinstance(index, int) for index in where):
        return tensor[where]
    lanes = tensor.shape[len(indices) :]
    if len(where) == 1 and all(length == 1 for length in lanes):
        return tensor.reshape(-1).take(where[0])
    if len(where) == 1 and lanes == where[0].shape and tensor.flags.c_contiguous:
        return tensor.reshape(-1).take(_flat(where[0]))
    full = np.broadcast_shapes(lanes, *(np.shape(index) for index in where))
    wide = np.broadcast_to(tensor, tensor.shape[: len(where)] + full)
    return wide[where + _grid(full)]


def _flat(index: Values) -> Values:
    """Flat positions of element `index` of each lane in a contiguous tensor of all lanes."""
    lane = cast(Values, np.arange(index.size))
    return index * np.int64(index.size) + lane.reshape(index.shape)


def insert(
    op: Operation,
    batch: Batch,
    in_place: bool,
    value: Values,
    tensor: Values,
    indices: Sequence[Values],
) -> Values:
    """`tensor` with tensor[indices] = value in every lane.

    Writes into `tensor` itself when `in_place` says that nobody else sees it and it has room for
    what differs between lanes; else into a copy.
    """
    where = _checked_all(op, tensor, indices, batch)
    rank = len(indices)
    shapes = [tensor.shape[rank:], np.shape(value), *(np.shape(index) for index in where)]
    full = np.broadcast_shapes(*shapes)
    shape = tensor.shape[:rank] + full
    if not in_place or tensor.shape != shape or not tensor.flags.writeable:
        tensor = np.array(np.broadcast_to(tensor, shape))
    if all(isinstance(index, int) for index in where):
        tensor[where] = value
    elif len(where) == 1 and full == where[0].shape and tensor.flags.c_contiguous:
        tensor.reshape(-1)[_flat(where[0])] = value
    else:
        tensor[where + _grid(full)] = value
    return tensor


def owned(value: Values) -> Values:
    """A copy that may be written to."""
    return np.array(value)


def slices(vector: Values, length: int, stride: int) -> Values:
    """All slices of `length` elements that start at multiples of `stride`, without a copy.

    `vector` has shape (N,) + lanes, the result (length, number of slices) + lanes.
    """
    count = max(0, (vector.shape[0] - length) // stride + 1) if vector.shape[0] >= length else 0
    if count == 0:
        return np.empty((length, 0, *vector.shape[1:]), vector.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(vector, length, axis=0)[::stride]
    return np.moveaxis(windows, -1, 0)
