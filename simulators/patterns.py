"""Map, window, group, their combination and the filters over whole vectors with NumPy.

Vectors have shape (N,) + lanes (see batch.py; on the host there are no other lanes). A long vector
is worked on in chunks that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.ir import BlockArgument

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ScanOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators import batch as lanes
from cim_opt.simulators.batch import Batch
from cim_opt.simulators.elementwise import dtype_of
from cim_opt.simulators.folds import reduce
from cim_opt.simulators.integer_functions import Values
from cim_opt.simulators.region import Regions
from cim_opt.simulators.scans import scan

CHUNK = 32768
"""Elements that an element function works on at once: some arrays of them fit the L2 cache."""


def pattern_regions() -> Regions:
    """A fresh set of compiled regions that knows the pattern operations."""
    return Regions(evaluate)


def evaluate(
    regions: Regions, op: PatternOp, args: Sequence[Values], batch: Batch = lanes.HOST
) -> Sequence[Values]:
    """Results of a pattern operation for its operands `args`, in their order in `op`.

    Vectors that come out of a host batch are fresh arrays. Raises UserError for lengths that do
    not fit (unequal, or not divided by the group) and for what an element function does wrong.
    """
    inputs, shared = args[: len(op.inputs)], args[len(op.inputs) :]
    check_lengths(op, inputs)
    if isinstance(op, FoldOp):
        values, inits = shared[: len(op.shared)], shared[len(op.shared) :]
        fold = scan if isinstance(op, ScanOp) else reduce
        return fold(regions, op, inputs, values, inits, batch)
    count = owners(op, inputs[0].shape[0])
    chunks = _chunks(regions, op, inputs, shared, batch, count)
    if isinstance(op, FilterBase):
        return _filter(op, inputs, list(chunks), count)
    return _map(op, chunks, batch, count)


def check_lengths(op: PatternOp, inputs: Sequence[Values]) -> None:
    """UserError when inputs of dynamic length turn out to have different ones."""
    lengths = sorted({value.shape[0] for value in inputs})
    if len(lengths) > 1:
        raise UserError(
            f"inputs of '{op.name}' have {lengths[0]} and {lengths[1]} elements",
            "all inputs of a pattern have one length",
            "cut or pad the longer or the shorter one",
            location=location_of(op),
        )


def owners(op: PatternOp, length: int) -> int:
    """How many times the element function runs over `length` elements; 0 for too short ones.

    UserError when the group size does not divide what it has to divide.
    """
    owned = max(0, length - op.window_size + 1)
    if owned % op.group_size:
        what = "length" if op.window_size == 1 else f"length less {op.window_size - 1}"
        raise UserError(
            f"group size {op.group_size} of '{op.name}' does not divide the {what}, {owned}",
            "groups are all of one size",
            f"pad the input to {length + -owned % op.group_size} elements",
            location=location_of(op),
        )
    return owned // op.group_size


def _chunks(
    regions: Regions,
    op: PatternOp,
    inputs: Sequence[Values],
    shared: Sequence[Values],
    batch: Batch,
    count: int,
) -> Iterator[tuple[slice, list[Values]]]:
    """What the element function yields, chunk by chunk, with the range of owners of each."""
    program = regions.program(op.body.block)
    elements = [_elements(op, value) for value in inputs]
    constants = [
        lanes.in_nested(value, operand.type)
        for value, operand in zip(shared, op.shared, strict=True)
    ]
    size = max(1, CHUNK // max(1, batch.size))
    for start in range(0, count, size):
        part = slice(start, min(count, start + size))
        own = [value[:, part] if op.takes_slices else value[part] for value in elements]
        yield part, program.run([*own, *constants], batch.nested(part.stop - start))


def _elements(op: PatternOp, vector: Values) -> Values:
    """What the element function sees of a vector, for all owners."""
    return lanes.slices(vector, op.slice_length, op.group_size) if op.takes_slices else vector


def _map(
    op: PatternOp, chunks: Iterator[tuple[slice, list[Values]]], batch: Batch, count: int
) -> list[Values]:
    outs = [np.empty((count, *batch.shape), dtype_of(out.type)) for out in op.outs]
    for part, yielded in chunks:
        for out, value in zip(outs, yielded, strict=True):
            out[part] = value
    return outs


def _filter(
    op: FilterBase,
    inputs: Sequence[Values],
    chunks: Sequence[tuple[slice, list[Values]]],
    count: int,
) -> list[Values]:
    """Kept vectors and, last, the length of the first (how many conditions held if none)."""
    keep = np.zeros(count, np.bool_)
    for part, values in chunks:
        keep[part] = values[0]
    results = [
        _kept(op, inputs, number, keep, [(part, values[1 + number]) for part, values in chunks])
        for number in range(len(op.outs) - 1)
    ]
    length = results[0].shape[0] if results else np.count_nonzero(keep)
    return [*results, np.int64(length)]


def _kept(
    op: FilterBase,
    inputs: Sequence[Values],
    number: int,
    keep: Values,
    parts: Sequence[tuple[slice, Values]],
) -> Values:
    """The vector of the kept values `number`, given chunk by chunk."""
    value = op.kept()[number]
    if op.takes_slices and isinstance(value, BlockArgument) and value in op.input_args():
        vector = inputs[list(op.input_args()).index(value)]
        owned = vector[: keep.shape[0] * op.group_size].reshape(keep.shape[0], op.group_size)
        return owned[keep].reshape(-1)
    pieces = [np.broadcast_to(piece, keep[part].shape)[keep[part]] for part, piece in parts]
    return np.concatenate([np.empty(0, dtype_of(op.outs[number].type)), *pieces])
