"""Loops of the host around bbops, one kind for each kind of result.

Element-wise results go lane by lane: lane l of a round has owner base + l. Folds and scans go by
column blocks: lane l has the owners l*K ... l*K + K-1, so that order is kept, and the last owners,
fewer than K, are evaluated apart and folded by the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.arith import AddiOp, ExtUIOp, IndexCastOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i1, i64
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects.pattern import FilterBase, FoldOp, ReduceOp, ScanOp, YieldOp, vector_type
from cim_opt.dialects.simdram import CompactOp, TransposeOp
from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.lowering.emit import Index
from cim_opt.lowering.host_vectors import empty, insert_at, length_of
from cim_opt.lowering.simdram_blocks import ColumnBlocks, scalar_type
from cim_opt.lowering.simdram_body import UNROLL, Item
from cim_opt.lowering.simdram_tables import Tables
from cim_opt.lowering.simdram_values import VectorEmitter, bits_of, number
from cim_opt.lowering.simdram_vectors import Vectors, as_vec, read
from cim_opt.lowering.simdram_views import Positions, View
from cim_opt.passes.pattern_neutral import neutral_elements


class Roots:
    """Emits the loops; `lanes` is how many columns the machine has in all its subarrays."""

    def __init__(self, vectors: Vectors, machine: SimdramMachine):
        self.vectors = vectors
        self.emit = vectors.emit
        self.lanes = machine.lanes
        self.machine = machine

    # -- element-wise --------------------------------------------------------------------------

    def elementwise(self, outputs: Sequence[SSAValue]) -> list[SSAValue]:
        """Host vectors of produced vectors that have the same length."""
        owners = self.vectors.length(outputs[0])
        dests = [empty(self.emit, scalar_type(value), owners) for value in outputs]

        def round_(base: Index, count: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            lanes = VectorEmitter(self.emit, count)
            positions = Positions(base, 1)
            return [
                read(
                    self.emit,
                    lanes.vec(self.vectors.at(value, positions, lanes)),
                    dest,
                    base,
                    1,
                )
                for value, dest in zip(outputs, carried, strict=True)
            ]

        return self._rounds(owners, dests, round_)

    def _rounds(
        self,
        owners: Index,
        carried: Sequence[SSAValue],
        body: Callable[[Index, Index, Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        emit = self.emit
        if isinstance(owners, int) and owners <= self.lanes:
            return body(0, owners, carried) if owners else list(carried)
        with emit.loop(0, owners, self.lanes, carried) as loop:
            count = emit.minimum(emit.sub(owners, loop.index), self.lanes)
            loop.next = body(loop.index, count, loop.carried)
        return list(loop.results)

    # -- filter --------------------------------------------------------------------------------

    def filter(self, op: FilterBase) -> list[SSAValue]:
        """Conditions are read back, one bit a lane; the host compacts."""
        emit = self.emit
        owners = self.vectors.owners(op)
        kept = [value for value, out in zip(op.kept(), op.outs, strict=False) if out.first_use]
        computed = [value for value in kept if self._host_copy(op, value) is None]
        dests = [empty(emit, i1, owners)]
        for value in computed:
            scale = op.kept_length(value)
            dests.append(empty(emit, scalar_type(value), emit.mul(owners, scale)))

        def round_(base: Index, count: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            lanes = VectorEmitter(emit, count)
            items = dict(
                zip(
                    op.yielded(),
                    self.vectors.evaluate(op, Positions(base, 1), lanes),
                    strict=True,
                )
            )
            mask = read(emit, as_vec(lanes, items[op.yielded()[0]]), carried[0], base, 1)
            results = [mask]
            for value, dest in zip(computed, carried[1:], strict=True):
                results.append(
                    self._read_kept(lanes, items[value], op.kept_length(value), dest, base)
                )
            return results

        mask, *data = self._rounds(owners, dests, round_)
        copies = dict(zip(computed, data, strict=True))
        results: dict[SSAValue, SSAValue] = {}
        for value in kept:
            source = copies[value] if value in copies else self._host_copy(op, value)
            assert source is not None
            results[value] = emit.insert(CompactOp(source, mask, op.kept_length(value))).result
        length = self._filter_length(op, results, mask)
        return [
            *(
                results[value] if out.first_use else mask
                for value, out in zip(op.kept(), op.outs, strict=False)
            ),
            length,
        ]

    def _host_copy(self, op: FilterBase, value: SSAValue) -> SSAValue | None:
        """The host's vector that a kept value comes from unchanged, if there is one."""
        args: list[SSAValue] = list(op.input_args())
        if value not in args:
            return None
        source = op.inputs[args.index(value)]
        return None if source in self.vectors.producers else self.vectors.values[source]

    def _read_kept(
        self, lanes: VectorEmitter, item: Item, scale: int, dest: SSAValue, base: Index
    ) -> SSAValue:
        if not isinstance(item, View):
            return read(self.emit, lanes.vec(item), dest, base, 1)
        start = self.emit.mul(base, scale)
        for index in range(scale):
            vec = lanes.vec(item.element(index))
            dest = read(self.emit, vec, dest, self.emit.add(start, index), scale)
        return dest

    def _filter_length(
        self, op: FilterBase, results: dict[SSAValue, SSAValue], mask: SSAValue
    ) -> SSAValue:
        """The length of the first kept vector; of the true conditions when nothing is kept."""
        emit = self.emit
        kept = op.kept()
        if kept and kept[0] in results:
            return emit.value(length_of(emit, results[kept[0]]))
        scale = op.kept_length(kept[0]) if kept else 1
        block = Block(arg_types=[i64, i1])
        one = ExtUIOp(block.args[1], i64)
        total = AddiOp(block.args[0], one)
        block.add_ops([one, total, YieldOp(total)])
        combine = Block(arg_types=[i64, i64])
        joined = AddiOp(combine.args[0], combine.args[1])
        combine.add_ops([joined, YieldOp(joined)])
        zero = emit.constant(IntegerAttr(0, i64))
        fold = ReduceOp([mask], [zero], [], Region(block), Region(combine))
        count = emit.insert(IndexCastOp(emit.insert(fold).results[0], IndexType())).result
        return emit.value(emit.mul(count, scale))

    # -- reduce --------------------------------------------------------------------------------

    def reduce(self, op: ReduceOp) -> list[SSAValue]:
        """Lanes fold their blocks; the host folds the lanes' results onto `init`."""
        blocks = self._column_blocks(op)
        if op.tensor_accumulators:
            starts = self.starts(op)
            assert starts is not None
            fold = partial(self.host_fold, op)
            return Tables(self.vectors, op, blocks, fold, starts, self.machine).reduce()
        partials = self._lane_folds(op, blocks)
        inits = [self.vectors.values[value] for value in op.inits]
        folded = self.host_fold(op, partials, inits)
        if blocks.rest == 0:
            return folded
        rest = self._rest_folds(op, blocks)
        return self.host_fold(op, rest, folded)

    def _column_blocks(self, op: FoldOp) -> ColumnBlocks:
        emit = self.emit
        owners = self.vectors.owners(op)
        size = emit.maximum(emit.ceil_div(owners, self.lanes), 1)
        used = emit.div(owners, size)
        rest = emit.sub(owners, emit.mul(used, size))
        return ColumnBlocks(owners, size, used, rest)

    def starts(self, op: FoldOp) -> list[Item] | None:
        """Neutral accumulators; None when a fold starts from its first element."""
        neutral = neutral_elements(op)
        if neutral is not None:
            return [
                number(int(value), scalar_type(init))
                for value, init in zip(neutral, op.inits, strict=True)
            ]
        if op.combine is not None:
            return [self.vectors.shared(value) for value in op.inits]
        return None

    def first_step(self, op: FoldOp, positions: Positions, lanes: VectorEmitter) -> list[SSAValue]:
        """Accumulators after the first owner of every lane."""
        starts = self.starts(op)
        if starts is None:
            items = self.vectors.elements(op, positions, lanes)
        else:
            items = self.vectors.fold_step(op, starts, positions, lanes)
        return [as_vec(lanes, item) for item in items]

    def _lane_folds(self, op: ReduceOp, blocks: ColumnBlocks) -> list[SSAValue]:
        emit = self.emit
        lanes = VectorEmitter(emit, blocks.used)
        first = self.first_step(op, Positions(0, blocks.size), lanes)
        last = self._fold_blocks(op, blocks, lanes, first)
        return [
            read(emit, vec, empty(emit, scalar_type(init), blocks.used), 0, 1)
            for vec, init in zip(last, op.inits, strict=True)
        ]

    def _fold_blocks(
        self,
        op: FoldOp,
        blocks: ColumnBlocks,
        lanes: VectorEmitter,
        first: Sequence[SSAValue],
        unrolled: int = 1,
    ) -> list[SSAValue]:
        """Accumulators after all owners of the lanes' blocks; the `unrolled` first are no loop."""
        current = list(first)
        for index in range(1, unrolled):
            items = self.vectors.fold_step(op, current, Positions(index, blocks.size), lanes)
            current = [as_vec(lanes, item) for item in items]
        if blocks.size == unrolled:
            return current
        with self.emit.loop(unrolled, blocks.size, 1, current) as loop:
            positions = Positions(loop.index, blocks.size)
            items = self.vectors.fold_step(op, loop.carried, positions, lanes)
            loop.next = [as_vec(lanes, item) for item in items]
        return list(loop.results)

    def _rest_folds(self, op: FoldOp, blocks: ColumnBlocks) -> list[SSAValue]:
        """Accumulators of the last owners, one a lane, each after that one owner."""
        emit = self.emit
        lanes = VectorEmitter(emit, blocks.rest)
        start = emit.mul(blocks.used, blocks.size)
        vecs = self.first_step(op, Positions(start, 1), lanes)
        return [
            read(emit, vec, empty(emit, scalar_type(init), blocks.rest), 0, 1)
            for vec, init in zip(vecs, op.inits, strict=True)
        ]

    def host_fold(
        self, op: FoldOp, partials: Sequence[SSAValue], inits: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The host folds partial results, in order, onto `inits`."""
        return list(self.emit.insert(self._host_op(ReduceOp, op, partials, inits)).results)

    def _host_op(
        self,
        kind: type[ReduceOp] | type[ScanOp],
        op: FoldOp,
        partials: Sequence[SSAValue],
        inits: Sequence[SSAValue],
    ) -> ReduceOp | ScanOp:
        shared: list[SSAValue] = []
        if op.combine is None:
            shared = [self.vectors.values[value] for value in op.shared]
            return kind(partials, inits, shared, op.body.clone())
        return kind(partials, inits, shared, op.combine.clone())

    # -- scan ----------------------------------------------------------------------------------

    def scan(self, op: ScanOp) -> list[SSAValue]:
        """Blocks are folded, the host scans their totals, then every lane scans its block.

        The first owners of each lane are gone through outside of the two loops, so that their
        objects are brought in once: all of them where a block is known to be short.
        """
        emit = self.emit
        blocks = self._column_blocks(op)
        size = blocks.size
        unrolled = size if isinstance(size, int) and size <= UNROLL else 1
        inits = [self.vectors.values[value] for value in op.inits]
        lanes = VectorEmitter(emit, blocks.used)
        first = self.first_step(op, Positions(0, blocks.size), lanes)
        totals = [
            read(emit, vec, empty(emit, scalar_type(init), blocks.used), 0, 1)
            for vec, init in zip(
                self._fold_blocks(op, blocks, lanes, first, unrolled), op.inits, strict=True
            )
        ]
        offsets = self._host_op(ScanOp, op, totals, inits)
        offsets.properties["exclusive"] = UnitAttr()
        begins = [self._transposed(value, blocks.used) for value in emit.insert(offsets).results]
        dests = [empty(emit, scalar_type(init), blocks.owners) for init in op.inits]
        carried = [*begins, *dests]
        for index in range(unrolled):
            carried = self._scan_step(op, blocks, lanes, index, carried)
        if blocks.size != unrolled:
            with emit.loop(unrolled, blocks.size, 1, carried) as loop:
                loop.next = self._scan_step(op, blocks, lanes, loop.index, loop.carried)
            carried = list(loop.results)
        results = carried[len(begins) :]
        if blocks.rest == 0:
            return results
        carry = self.host_fold(op, totals, inits)
        tail = self._host_op(ScanOp, op, self._rest_folds(op, blocks), carry)
        if op.exclusive is not None:
            tail.properties["exclusive"] = UnitAttr()
        start = emit.mul(blocks.used, blocks.size)
        return [
            insert_at(emit, part, whole, start)
            for part, whole in zip(emit.insert(tail).results, results, strict=True)
        ]

    def _scan_step(
        self,
        op: ScanOp,
        blocks: ColumnBlocks,
        lanes: VectorEmitter,
        index: Index,
        carried: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """Accumulators after each lane's owner `index`, and the results with those shown there."""
        count = len(op.inits)
        before, placed = carried[:count], carried[count:]
        items = self.vectors.fold_step(op, before, Positions(index, blocks.size), lanes)
        after = [as_vec(lanes, item) for item in items]
        shown = before if op.exclusive is not None else after
        reads = [
            read(self.emit, vec, dest, index, blocks.size)
            for vec, dest in zip(shown, placed, strict=True)
        ]
        return [*after, *reads]

    def _transposed(self, value: SSAValue, count: Index) -> SSAValue:
        emit = self.emit
        width = bits_of(vector_type(value).element_type)
        op = TransposeOp(value, emit.value(0), emit.value(1), emit.value(count), width)
        return emit.insert(op).result
