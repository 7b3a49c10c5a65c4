"""Reduces into small tensors on SIMDRAM: every bin has an accumulator object of its own.

In each lane every bin's accumulator takes the update where the lane's index is that bin, and keeps
its value elsewhere (masks and counts). As many bins as the D rows hold are folded at a time; then
the host folds the lanes' results of each bin. Where it takes less time, those of all bins are
brought in again, some neighbours into each column, and folded there before the host goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from cim_opt.dialects.pattern import ReduceOp, YieldOp, vector_length
from cim_opt.dialects.simdram import TransposeOp
from cim_opt.dialects.simdram_programs import bbop_program
from cim_opt.errors import UserError
from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.host_vectors import empty
from cim_opt.lowering.simdram_blocks import ColumnBlocks, scalar_type
from cim_opt.lowering.simdram_body import BINARY, BodyVectorizer, Item
from cim_opt.lowering.simdram_values import Value, VectorEmitter, bits_of
from cim_opt.lowering.simdram_vectors import Vectors, as_vec, read
from cim_opt.lowering.simdram_views import InsertedView, Positions, View
from cim_opt.mapping.simdram_partials import Partials, best_height
from cim_opt.microprograms.library import library
from cim_opt.microprograms.model import Counts

OTHER_ROWS = 640
"""D rows beside the accumulators, which a loop carries and which cannot be spilled.

The largest operation, a signed division of 64 bits, takes 512 with its operands and temporaries."""


@dataclass(frozen=True, eq=False)
class BinView(View):
    """A tensor accumulator of which the lanes hold one element, `bin`.

    An element at an index that differs by lane is right in the lanes where it is `bin`; `picked`
    notes these indices.
    """

    op: ReduceOp
    size: int
    bin: Index
    value: Value
    picked: list[Value] = field(default_factory=list[Value])

    @property
    def length(self) -> int:
        return self.size

    def element(self, index: Index) -> Value:
        if index is self.bin or index == self.bin:
            return self.value
        raise _refuse(self.op)

    def pick(self, vectors: VectorEmitter, index: Value) -> Value:
        self.picked.append(index)
        return self.value


def _refuse(op: ReduceOp) -> UserError:
    return UserError(
        f"'{op.name}' reads one element of its accumulator and writes another",
        "simdram updates each element of a tensor accumulator from itself",
        "read and write at one index",
        location_of(op),
    )


def _program_counts(op: Operation) -> Counts:
    """What an operation of a combining function takes, about: its program, or eight a bit."""
    bits = bits_of(op.results[0].type)
    opcode = BINARY.get(type(op))
    if opcode is None:
        return Counts(8 * bits, 0)
    return bbop_program(library("cim-opt"), opcode, bits, bits).counts


def _part(emit: Emitter, vector: SSAValue, begin: Index, size: int) -> SSAValue:
    """`size` elements of a vector of the host."""
    attr = TensorType(scalar_type(vector), [size])
    return emit.insert(tensor.ExtractSliceOp(vector, [begin], [size], [1], attr)).result


class Tables:
    """Emits a reduce with tensor accumulators."""

    def __init__(
        self,
        vectors: Vectors,
        op: ReduceOp,
        blocks: ColumnBlocks,
        host_fold: Callable[[Sequence[SSAValue], Sequence[SSAValue]], list[SSAValue]],
        starts: Sequence[Item],
        machine: SimdramMachine,
    ):
        self.vectors = vectors
        self.emit = vectors.emit
        self.op = op
        self.blocks = blocks
        self.host_fold = host_fold
        self.starts = starts
        self.machine = machine
        self.inits = [vectors.values[value] for value in op.inits]
        self.bins = vector_length(op.inits[0])

    def reduce(self) -> list[SSAValue]:
        """The accumulators, as tensors of the host."""
        emit = self.emit
        rows = sum(bits_of(scalar_type(value)) for value in self.inits)
        batch = max(1, min(self.bins, (self.machine.data_rows - OTHER_ROWS) // rows))
        full = self.bins // batch * batch
        height = self._height()
        one_batch = self._batch if height == 1 else self._kept_batch
        tables = list(self.inits)
        if height > 1:
            assert isinstance(self.blocks.used, int)
            length = self.bins * self.blocks.used
            tables = [empty(emit, scalar_type(t), length) for t in self.inits]
        if full == batch:
            tables = one_batch(0, batch, tables)
        else:
            with emit.loop(0, full, batch, tables) as loop:
                loop.next = one_batch(loop.index, batch, loop.carried)
            tables = list(loop.results)
        if full < self.bins:
            tables = one_batch(full, self.bins - full, tables)
        return tables if height == 1 else self._stacked(tables, height)

    # -- stacked partial results -----------------------------------------------------------------

    def _height(self) -> int:
        """How many lanes' results are folded in one column; 1 where the host folds all of them."""
        used, combine = self.blocks.used, self.op.combine
        if not isinstance(used, int) or self.blocks.rest != 0 or combine is None:
            return 1
        bits = sum(bits_of(scalar_type(t)) for t in self.inits)
        size = sum(-(-bits_of(scalar_type(t)) // 8) for t in self.inits)
        joins = [op for op in combine.block.ops if not isinstance(op, YieldOp)]
        taken = Counts(0, 0)
        for op in joins:
            taken += _program_counts(op)
        took = self.machine.program_seconds(taken, self.machine.timing)
        return best_height(Partials(self.bins, used, bits, size, len(joins), took), self.machine)

    def _kept_batch(self, first: Index, count: int, dests: Sequence[SSAValue]) -> list[SSAValue]:
        """The vectors of all partial results, with those of the bins from `first` on."""
        emit, blocks = self.emit, self.blocks
        bins = [emit.add(first, number) for number in range(count)]
        vecs = self._lane_folds(bins, blocks.used, Positions(0, blocks.size), blocks.size)
        results = list(dests)
        for number, vec in enumerate(vecs):
            position = emit.mul(bins[number // len(dests)], blocks.used)
            table = number % len(dests)
            results[table] = read(emit, vec, results[table], position, 1)
        return results

    def _stacked(self, partials: Sequence[SSAValue], height: int) -> list[SSAValue]:
        """Tables from the partial results of all bins: `height` neighbours to a column."""
        emit, op = self.emit, self.op
        assert isinstance(self.blocks.used, int) and op.combine is not None
        left = self.blocks.used // height
        lanes = VectorEmitter(emit, self.bins * left)
        combine = op.combine.block

        def brought_in(row: Index) -> list[SSAValue]:
            start, stride, count = (emit.value(i) for i in (row, height, self.bins * left))
            widths = [bits_of(scalar_type(value)) for value in self.inits]
            return [
                emit.insert(TransposeOp(vector, start, stride, count, width)).result
                for vector, width in zip(partials, widths, strict=True)
            ]

        with emit.loop(1, height, 1, brought_in(0)) as loop:
            items = [*loop.carried, *brought_in(loop.index)]
            joined = BodyVectorizer(lanes).run(combine, items)
            loop.next = [as_vec(lanes, item) for item in joined]
        columns = [
            read(emit, vec, empty(emit, scalar_type(t), self.bins * left), 0, 1)
            for vec, t in zip(loop.results, self.inits, strict=True)
        ]
        with emit.loop(0, self.bins, 1, self.inits) as each:
            begin = emit.mul(each.index, left)
            own = [_part(emit, column, begin, left) for column in columns]
            starts = [
                emit.insert(tensor.ExtractOp(t, [each.index], scalar_type(t))).result
                for t in self.inits
            ]
            each.next = [
                emit.insert(tensor.InsertOp(value, t, [each.index])).result
                for value, t in zip(self.host_fold(own, starts), each.carried, strict=True)
            ]
        return list(each.results)

    # -- one batch -------------------------------------------------------------------------------

    def _batch(self, first: Index, count: int, tables: Sequence[SSAValue]) -> list[SSAValue]:
        """Tables with the bins first ... first + count - 1 filled in."""
        emit, blocks = self.emit, self.blocks
        bins = [emit.add(first, number) for number in range(count)]
        starts = [
            emit.insert(tensor.ExtractOp(t, [emit.value(b)], scalar_type(t))).result
            for b in bins
            for t in self.inits
        ]
        folded = self._folded(bins, blocks.used, Positions(0, blocks.size), starts, blocks.size)
        if blocks.rest != 0:
            begin = Positions(emit.mul(blocks.used, blocks.size), 1)
            folded = self._folded(bins, blocks.rest, begin, folded, 1)
        results = list(tables)
        width = len(self.inits)
        for number, value in enumerate(folded):
            at = emit.value(bins[number // width])
            table = number % width
            results[table] = emit.insert(tensor.InsertOp(value, results[table], [at])).result
        return results

    def _folded(
        self,
        bins: Sequence[Index],
        lanes_count: Index,
        begin: Positions,
        inits: Sequence[SSAValue],
        size: Index,
    ) -> list[SSAValue]:
        """Folds `size` owners of every lane, then the lanes onto `inits`, for every bin."""
        emit = self.emit
        vecs = self._lane_folds(bins, lanes_count, begin, size)
        width = len(self.inits)
        results: list[SSAValue] = []
        for number in range(len(bins)):
            part = slice(number * width, (number + 1) * width)
            partials = [
                read(emit, vec, empty(emit, scalar_type(t), lanes_count), 0, 1)
                for vec, t in zip(vecs[part], self.inits, strict=True)
            ]
            results += self.host_fold(partials, inits[part])
        return results

    def _lane_folds(
        self, bins: Sequence[Index], lanes_count: Index, begin: Positions, size: Index
    ) -> list[SSAValue]:
        """Each bin's accumulators after `size` owners of every lane."""
        emit = self.emit
        lanes = VectorEmitter(emit, lanes_count)
        vecs = [
            as_vec(lanes, item)
            for b in bins
            for item in self._step(b, self._bin_starts(b), begin, lanes)
        ]
        width = len(self.inits)
        if size != 1:
            with emit.loop(1, size, 1, vecs) as loop:
                positions = begin.after(emit, loop.index)
                loop.next = [
                    as_vec(lanes, item)
                    for number, b in enumerate(bins)
                    for item in self._step(
                        b, loop.carried[number * width : (number + 1) * width], positions, lanes
                    )
                ]
            vecs = list(loop.results)
        return vecs

    def _bin_starts(self, b: Index) -> list[Value]:
        return [item.element(b) if isinstance(item, View) else item for item in self.starts]

    def _step(
        self, b: Index, accumulators: Sequence[Value], positions: Positions, lanes: VectorEmitter
    ) -> list[Value]:
        """A bin's accumulators after the owners at `positions`."""
        views = [BinView(self.op, self.bins, b, value) for value in accumulators]
        items = self.vectors.fold_step(self.op, views, positions, lanes)
        self._check_indices(views, items)
        return [item.element(b) for item in items if isinstance(item, View)]

    def _check_indices(self, views: Sequence[BinView], items: Sequence[Item]) -> None:
        picked = {index for view in views for index in view.picked}
        written: set[Value] = set()
        for item in items:
            while isinstance(item, InsertedView):
                written.add(item.index)
                item = item.base
        if len(picked) > 1 or (picked and not picked <= written) or (picked and len(written) > 1):
            raise _refuse(self.op)
