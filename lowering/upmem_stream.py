"""Groups whose rows are read piece by piece, because a tasklet has no room for whole rows.

A row is summed up while its pieces go through a small buffer:

    scf.for %row = ... {
      %sum = scf.for %p = 0 to G step %piece iter_args(%a = %init) {
        upmem.mram_read ...              // a piece of the row, of every input
        scf.for %i = 0 to %piece ...     // the nested reduce, with shared vectors at %p + %i
      }
      memref.store ...                   // what the function makes of the sum
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import GroupOp, PatternOp, ReduceOp, vector_type
from cim_opt.dialects.upmem import element_bytes
from cim_opt.lowering.emit import Index
from cim_opt.lowering.upmem_body import Value, View, frozen
from cim_opt.lowering.upmem_kernel import KernelBuilder, dma_granule, element_of
from cim_opt.lowering.upmem_stages import StageCode, StageInput
from cim_opt.mapping.upmem_arrangement import ALIGN

WHOLE_ROW_BYTES = 2048
"""Rows of up to so many bytes are read whole: the largest transfer."""


def streamed_reduce(op: PatternOp) -> ReduceOp | None:
    """The nested reduce through which the rows of a group can be streamed, None if they cannot.

    It is all that uses the rows, it goes through them element by element, and it has scalar
    accumulators; rows are long, and each starts at a multiple of 8 bytes.
    """
    if not isinstance(op, GroupOp):
        return None
    sizes = [element_bytes(vector_type(value).element_type) for value in op.inputs]
    rows = [size * op.group_size for size in sizes]
    if max(rows) <= WHOLE_ROW_BYTES or any(row % ALIGN for row in rows):
        return None
    slices = op.body.block.args[: len(op.inputs)]
    users = {use.operation for arg in slices for use in arg.uses}
    if len(users) != 1:
        return None
    (user,) = users
    if not isinstance(user, ReduceOp) or user.tensor_accumulators:
        return None
    if user.parent_block() is not op.body.block or any(v in slices for v in user.shared):
        return None
    return user


class StreamedGroupCode(StageCode):
    """Emits a group whose rows go through buffers of `piece` elements."""

    def __init__(
        self,
        kernel: KernelBuilder,
        op: PatternOp,
        inputs: dict[SSAValue, SSAValue],
        outputs: dict[int, SSAValue],
        block: int,
        owners: Index,
        chunk: Index,
        piece: int,
    ):
        self.piece = piece
        super().__init__(kernel, op, inputs, outputs, block, owners, chunk)

    def _input(self, value: SSAValue, array: SSAValue) -> StageInput:
        name = f"{value.name_hint or 'vector'}_wram"
        buffer = self.kernel.wram(element_of(array), self.piece, name=name)
        return StageInput(array, buffer, self.piece)

    def emit_rows(self, reduce: ReduceOp) -> None:
        """One result for each row."""
        emit, body = self.emit, self.kernel.body
        buffers = self.out_buffers()
        with emit.loop(self.low, self.high, self.block) as outer:
            count = emit.minimum(emit.sub(self.high, outer.index), self.block)
            with emit.loop(0, count) as inner:
                start = emit.mul(emit.add(outer.index, inner.index), self.op.group_size)
                rows = [View(item.buffer, 0, self.op.group_size) for item in self._rows()]
                values = body.inline(
                    self.op.body.block,
                    [*rows, *self.shared],
                    {reduce: lambda known: self._stream(reduce, start, known)},
                )
                for index, buffer in buffers.items():
                    emit.store(body.scalar(values[index]), buffer, inner.index)
            self.write_blocks(buffers, outer.index, count)

    def _rows(self) -> list[StageInput]:
        return [self.inputs[value] for value in self.op.inputs]

    def _stream(
        self, reduce: ReduceOp, start: Index, known: dict[SSAValue, Value]
    ) -> Sequence[Value]:
        """The nested reduce over the row that starts at element `start` of its array."""
        emit, body = self.emit, self.kernel.body
        length, piece = self.op.group_size, self.piece
        inits = [body.scalar(known[value]) for value in reduce.inits]
        shared = [frozen(known[value]) for value in reduce.shared]
        with emit.loop(0, length, piece, inits) as outer:
            count: Index = piece
            if length % piece:
                count = emit.minimum(emit.sub(length, outer.index), piece)
            for item in self.inputs.values():
                place, step = emit.add(start, outer.index), dma_granule(element_of(item.array))
                self.kernel.read(item.array, place, item.buffer, 0, count, piece, step)
            with emit.loop(0, count, 1, outer.carried) as inner:
                elements = [
                    self._element(value, known, outer.index, inner.index) for value in reduce.inputs
                ]
                yielded = body.inline(reduce.body.block, [*inner.carried, *elements, *shared])
                inner.next = [body.scalar(value) for value in yielded]
            outer.next = inner.results
        return list(outer.results)

    def _element(
        self, value: SSAValue, known: dict[SSAValue, Value], piece: Index, index: Index
    ) -> SSAValue:
        """An element of a row, which lies at the start of its buffer, or of a shared vector."""
        view = known[value]
        assert isinstance(view, View) and isa(value.type, TensorType)
        if value in self.op.body.block.args[: len(self.op.inputs)]:
            return self.emit.load(view.buffer, index)
        base = self.emit.add(self.emit.add(view.base, piece), index)
        return self.emit.load(view.buffer, base)
