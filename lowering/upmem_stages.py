"""Kernel code of one pattern: every tasklet streams its range of owners through WRAM blocks.

Tasklet t owns owners lo = min(t*chunk, owners) to hi = min(lo+chunk, owners):

    scf.for %p = %lo to %hi step %block {
      %n = min(%hi - %p, %block)
      upmem.mram_read ...            // a block of every input
      scf.for %i = 0 to %n { ... }   // the element function
      upmem.mram_write ...           // a block of every output
    }
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ScanOp
from cim_opt.dialects.upmem import CriticalOp, element_bytes
from cim_opt.lowering.emit import Index, Loop
from cim_opt.lowering.upmem_body import Value, View
from cim_opt.lowering.upmem_kernel import KernelBuilder, dma_granule, element_of
from cim_opt.mapping.upmem_arrangement import granule, round_up
from cim_opt.passes.pattern_neutral import neutral_elements


def element_type(value: SSAValue) -> Attribute:
    """A scalar's type, or a tensor's element type."""
    return value.type.element_type if isa(value.type, TensorType) else value.type


def constant_attr(value: int | float, attr: Attribute) -> Attribute:
    """A number as an attribute of a scalar type."""
    if isa(attr, IntegerType):
        return IntegerAttr(int(value), attr, truncate_bits=True)
    assert isinstance(attr, Float32Type)
    return FloatAttr(value, attr)


def starts_from_first(op: FoldOp) -> bool:
    """True when a partial fold has nothing neutral to start from, only its first element."""
    return op.combine is None and neutral_elements(op) is None


def starts_from_init(op: FoldOp) -> bool:
    """True when `init` itself is neutral, as the op's contract says."""
    return op.combine is not None and neutral_elements(op) is None


@dataclass
class StageInput:
    """A distinct input of a stage: its array in MRAM and its buffer in WRAM."""

    array: SSAValue
    buffer: SSAValue
    most: int


class StageCode:
    """Emits one pattern operation into a kernel.

    `inputs` are MRAM arrays by host value, `outputs` those of the results that are kept, by result
    number (for a filter also the number of its length, for a fold its totals or partial results).
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        op: PatternOp,
        inputs: dict[SSAValue, SSAValue],
        outputs: dict[int, SSAValue],
        block: int,
        owners: Index,
        chunk: Index,
    ):
        self.kernel = kernel
        self.emit = kernel.emit
        self.op = op
        self.outputs = outputs
        self.block = block
        self.owners = owners
        self.chunk = chunk
        self.inputs = {
            value: self._input(value, array)
            for value, array in inputs.items()
            if value in op.inputs
        }
        self.shared = [self._shared(value) for value in op.shared]
        emit = self.emit
        self.low = emit.minimum(emit.mul(kernel.tasklet, chunk), owners)
        self.high = emit.minimum(emit.add(self.low, chunk), owners)
        for value, name in ((self.low, "low"), (self.high, "high")):
            if isinstance(value, SSAValue):
                value.name_hint = name

    def _input(self, value: SSAValue, array: SSAValue) -> StageInput:
        most = self.block * self.op.group_size + self.op.window_size - 1
        name = f"{value.name_hint or 'vector'}_wram"
        return StageInput(array, self.kernel.wram(element_of(array), most, name=name), most)

    def _shared(self, value: SSAValue) -> Value:
        if isa(value.type, TensorType):
            return self.kernel.table(value)
        return self.kernel.arg(value)

    # -- pieces --------------------------------------------------------------------------------

    @contextmanager
    def blocks(self, carried: Sequence[SSAValue] = ()) -> Generator[tuple[Loop, Index]]:
        """The loop over blocks, inputs read: the loop and how many owners this block has."""
        emit = self.emit
        with emit.loop(self.low, self.high, self.block, carried) as loop:
            count = emit.minimum(emit.sub(self.high, loop.index), self.block)
            for item in self.inputs.values():
                start = emit.mul(loop.index, self.op.group_size)
                elements = emit.add(emit.mul(count, self.op.group_size), self.op.window_size - 1)
                multiple = self.op.group_size if self.op.window_size == 1 else 1
                self.kernel.read(item.array, start, item.buffer, 0, elements, item.most, multiple)
            yield loop, count

    def elements(self, owner: Index) -> list[Value]:
        """What the element function of `owner` (of this block) sees of every input."""
        start = self.emit.mul(owner, self.op.group_size)
        if self.op.takes_slices:
            return [
                View(self.inputs[value].buffer, start, self.op.slice_length)
                for value in self.op.inputs
            ]
        loaded: dict[SSAValue, SSAValue] = {}
        for value in self.op.inputs:
            if value not in loaded:
                loaded[value] = self.emit.load(self.inputs[value].buffer, start)
        return [loaded[value] for value in self.op.inputs]

    def run(self, accumulators: Sequence[SSAValue], owner: Index) -> list[Value]:
        """The element function of `owner`."""
        args = [*accumulators, *self.elements(owner), *self.shared]
        return self.kernel.body.inline(self.op.body.block, args)

    def out_buffers(self) -> dict[int, SSAValue]:
        """A WRAM block for every kept result."""
        return {
            index: self.kernel.wram(element_of(array), self.block, name="out_wram")
            for index, array in self.outputs.items()
        }

    def write_blocks(self, buffers: dict[int, SSAValue], start: Index, count: Index) -> None:
        """Writes the blocks of all kept results."""
        for index, buffer in buffers.items():
            self.kernel.write(buffer, 0, self.outputs[index], start, count, self.block)

    # -- map, window, group --------------------------------------------------------------------

    def emit_elementwise(self) -> None:
        """Map, window, group, window_group: one value per owner."""
        buffers = self.out_buffers()
        with self.blocks() as (outer, count):
            with self.emit.loop(0, count) as inner:
                values = self.run((), inner.index)
                for index, buffer in buffers.items():
                    value = self.kernel.body.scalar(values[index])
                    self.emit.store(value, buffer, inner.index)
            self.write_blocks(buffers, outer.index, count)


class FoldCode(StageCode):
    """Reduce and scan: an accumulator in a register, or a table in WRAM."""

    op: FoldOp

    def _starts(self) -> list[SSAValue]:
        """The accumulators at the start of a tasklet's range."""
        neutral = neutral_elements(self.op)
        if neutral is not None:
            return [
                self.emit.constant(constant_attr(number, element_type(value)))
                for number, value in zip(neutral, self.op.inits, strict=True)
            ]
        if starts_from_init(self.op):
            return [self.kernel.arg(value) for value in self.op.inits]
        return [self._first(value) for value in self.op.inputs]

    def _first(self, value: SSAValue) -> SSAValue:
        item = self.inputs[value]
        step = dma_granule(element_of(item.array))
        # A tasklet without owners has low = owners, which need not be a multiple of 8 bytes.
        exact = isinstance(self.owners, int) and self.owners % step == 0
        start = self.low if exact else self.emit.round_down(self.low, step)
        self.kernel.read(item.array, start, item.buffer, 0, step, step)
        return self.emit.load(item.buffer, 0)

    def combine(self, lhs: Sequence[SSAValue], rhs: Sequence[SSAValue]) -> list[SSAValue]:
        """Combines two partial results."""
        args: list[Value] = [*lhs, *rhs]
        if self.op.combine is None:
            args += self.shared
        body = self.kernel.body
        return [body.scalar(v) for v in body.inline(self.op.combine_block(), args)]

    def _fold_blocks(
        self,
        buffers: dict[int, SSAValue],
        starts: Sequence[SSAValue] | None = None,
        before: bool = False,
    ) -> Sequence[SSAValue]:
        """Folds this tasklet's range; the last accumulators.

        Stores the accumulators of every step into `buffers`, those `before` or after it. `starts`
        are the accumulators to go on from, when they are known.
        """
        emit = self.emit
        skip_first = starts is None and starts_from_first(self.op)
        starts = self._starts() if starts is None else starts
        count_of = len(starts)
        carried = list(starts)
        if skip_first:
            for index, buffer in buffers.items():
                emit.store(starts[index], buffer, 0)
            carried.append(emit.value(1))
        with self.blocks(carried) as (outer, count):
            begin = outer.carried[count_of] if skip_first else 0
            with emit.loop(begin, count, 1, outer.carried[:count_of]) as inner:
                values = [self.kernel.body.scalar(v) for v in self.run(inner.carried, inner.index)]
                stored = inner.carried if before else values
                for index, buffer in buffers.items():
                    emit.store(stored[index], buffer, inner.index)
                inner.next = values
            self.write_blocks(buffers, outer.index, count)
            outer.next = [*inner.results, *([emit.value(0)] if skip_first else [])]
        return outer.results[:count_of]

    def emit_scan(self, totals: dict[int, SSAValue]) -> None:
        """The tasklet's total at slot t of `totals`, and, where kept, the scan of its range."""
        last = self._fold_blocks(self.out_buffers())
        for index, array in totals.items():
            step = dma_granule(element_of(array))
            buffer = self.kernel.wram(element_of(array), step)
            self.emit.store(last[index], buffer, 0)
            slot = self.emit.mul(self.kernel.tasklet, step)
            self.kernel.write(buffer, 0, array, slot, step, step)

    def emit_carried_scan(self, starts: dict[int, SSAValue], before: bool) -> None:
        """Scan of the tasklet's range that goes on from element t of each array of `starts`.

        Stores the accumulators `before` each step (an exclusive scan), or after it.
        """
        emit, tasklet = self.emit, self.kernel.tasklet
        first: list[SSAValue] = []
        for array in starts.values():
            step = dma_granule(element_of(array))
            buffer = self.kernel.wram(element_of(array), step, name="start")
            granule_start = emit.round_down(tasklet, step)
            self.kernel.read(array, granule_start, buffer, 0, step, step)
            first.append(emit.load(buffer, emit.sub(tasklet, granule_start)))
        self._fold_blocks(self.out_buffers(), first, before)

    def emit_reduce(self, active: Index) -> None:
        """Scalar accumulators: a partial result a tasklet, merged by tasklet 0.

        `active` is how many tasklets have at least one element.
        """
        emit, kernel = self.emit, self.kernel
        last = self._fold_blocks({})
        slots = [
            kernel.wram(value.type, kernel.tasklets, shared=True, name="slots") for value in last
        ]
        for value, slot in zip(last, slots, strict=True):
            emit.store(value, slot, kernel.tasklet)
        kernel.barrier()

        def merge() -> Sequence[SSAValue]:
            first = [emit.load(slot, 0) for slot in slots]
            with emit.loop(1, active, 1, first) as loop:
                loop.next = self.combine(
                    loop.carried, [emit.load(slot, loop.index) for slot in slots]
                )
            each = len(loop.results) // len(self.outputs)
            for index, array in self.outputs.items():
                self._write_partials(array, loop.results[index * each : (index + 1) * each])
            return ()

        emit.branch(emit.compare("eq", kernel.tasklet, 0), merge)

    def _write_partials(self, array: SSAValue, values: Sequence[SSAValue]) -> None:
        """Writes one value, or all of them behind each other, a granule each."""
        step = dma_granule(element_of(array))
        buffer = self.kernel.wram(element_of(array), step * len(values))
        for place, value in enumerate(values):
            self.emit.store(value, buffer, place * step)
        self.kernel.write(buffer, 0, array, 0, step * len(values), step * len(values))

    # -- tensor accumulators -------------------------------------------------------------------

    def emit_reduce_tables(self, copies: int) -> None:
        """Tensor accumulators: `copies` of each in WRAM, a tasklet's own when there are enough."""
        emit, kernel = self.emit, self.kernel
        tables = [self._table(value, copies) for value in self.op.inits]
        self._fill_tables(tables, copies)
        own = kernel.tasklet if copies == kernel.tasklets else self._rest(copies)
        views = [
            View(buffer, emit.mul(own, stride), length, mutable=True)
            for buffer, stride, length in tables
        ]
        block = self.op.body.block
        accumulators = self.op.accumulator_args()
        with self.blocks() as (_, count), emit.loop(0, count) as inner:
            args = [*views, *self.elements(inner.index), *self.shared]
            if copies == kernel.tasklets:
                kernel.body.update_tables(block, views, args[len(views) :])
            else:
                values = kernel.body.inline_independent(block, args, accumulators)
                section = Block()
                with emit.inside(section):
                    kernel.body.settle(kernel.body.inline_rest(block, values), views)
                emit.insert(CriticalOp(emit.value(own), Region(section)))
        kernel.barrier()
        self._merge_tables(tables, copies)

    def _table(self, value: SSAValue, copies: int) -> tuple[SSAValue, int, int]:
        assert isa(value.type, TensorType)
        length = value.type.get_shape()[0]
        stride = round_up(max(length, 1), dma_granule(value.type.element_type))
        buffer = self.kernel.wram(value.type.element_type, copies * stride, shared=True)
        return buffer, stride, length

    def _rest(self, copies: int) -> Index:
        """tasklet mod copies; fewer copies than tasklets are made by halving, rounding up."""
        emit = self.emit
        times = emit.div(self.kernel.tasklet, copies)
        return emit.sub(self.kernel.tasklet, emit.mul(times, copies))

    def _fill_tables(self, tables: Sequence[tuple[SSAValue, int, int]], copies: int) -> None:
        emit, kernel = self.emit, self.kernel
        neutral = neutral_elements(self.op)

        def fill() -> Sequence[SSAValue]:
            for index, (buffer, stride, length) in enumerate(tables):
                view = View(buffer, emit.mul(kernel.tasklet, stride), length)
                if neutral is None:
                    kernel.body.copy(kernel.table(self.op.inits[index]), view)
                else:
                    attr = constant_attr(neutral[index], element_of(buffer))
                    kernel.body.fill(view, emit.constant(attr))
            return ()

        if copies == kernel.tasklets:
            fill()
            return
        emit.branch(emit.compare("ult", kernel.tasklet, copies), fill)
        kernel.barrier()

    def _merge_tables(self, tables: Sequence[tuple[SSAValue, int, int]], copies: int) -> None:
        """Each tasklet combines a range of bins over all copies and writes it to MRAM."""
        emit, kernel = self.emit, self.kernel
        length = tables[0][2]
        step = max(dma_granule(element_of(buffer)) for buffer, _, _ in tables)
        bins = round_up(-(-length // kernel.tasklets), step)
        low = emit.minimum(emit.mul(kernel.tasklet, bins), length)
        high = emit.minimum(emit.add(low, bins), length)
        if copies > 1:
            with emit.loop(low, high) as outer:
                first = [emit.load(buffer, outer.index) for buffer, _, _ in tables]
                with emit.loop(1, copies, 1, first) as inner:
                    others = [
                        emit.load(buffer, emit.add(emit.mul(inner.index, stride), outer.index))
                        for buffer, stride, _ in tables
                    ]
                    inner.next = self.combine(inner.carried, others)
                for (buffer, _, _), value in zip(tables, inner.results, strict=True):
                    emit.store(value, buffer, outer.index)

        def write() -> Sequence[SSAValue]:
            for index, array in self.outputs.items():
                count = emit.sub(high, low)
                kernel.write(tables[index][0], low, array, low, count, bins)
            return ()

        emit.branch(emit.compare("ult", low, high), write)


class FilterCode(StageCode):
    """The four filters: kept values go to the tasklet's own part of the output, and their count."""

    op: FilterBase

    def emit_filter(self, counts: SSAValue) -> None:
        """Kept values of tasklet t start at t*chunk; their number is at slot t of `counts`."""
        emit, kernel = self.emit, self.kernel
        lengths = {i: self.op.kept_length(self.op.kept()[i]) for i in self.outputs}
        step = granule([n * element_bytes(element_of(self.outputs[i])) for i, n in lengths.items()])
        buffers = {
            i: kernel.wram(element_of(array), (self.block + step) * lengths[i])
            for i, array in self.outputs.items()
        }
        base = emit.mul(kernel.tasklet, self.chunk)
        zero = emit.value(0)
        with self.blocks([zero, zero]) as (outer, count):
            waiting, written = outer.carried
            filled = self._keep_block(buffers, lengths, count, waiting)
            whole = emit.round_down(filled, step)
            self._flush(buffers, lengths, emit.add(base, written), whole, self.block + step, step)
            rest = emit.sub(filled, whole)
            self._move_rest(buffers, lengths, whole, rest, step)
            outer.next = [emit.value(rest), emit.value(emit.add(written, whole))]
        waiting, written = outer.results
        self._flush(buffers, lengths, emit.add(base, written), waiting, step)
        total = emit.insert(IndexCastOp(emit.value(emit.add(written, waiting)), i64)).result
        buffer = kernel.wram(i64, 1)
        emit.store(total, buffer, 0)
        kernel.write(buffer, 0, counts, kernel.tasklet, 1, 1)

    def _keep_block(
        self, buffers: dict[int, SSAValue], lengths: dict[int, int], count: Index, waiting: SSAValue
    ) -> SSAValue:
        emit = self.emit
        with emit.loop(0, count, 1, [waiting]) as inner:
            condition, *values = self.run((), inner.index)
            position = inner.carried[0]

            def keep() -> Sequence[SSAValue]:
                for index, buffer in buffers.items():
                    self._keep(values[index], lengths[index], buffer, position)
                return [emit.value(emit.add(position, 1))]

            inner.next = list(
                emit.branch(self.kernel.body.scalar(condition), keep, lambda: [position])
            )
        return inner.results[0]

    def _keep(self, value: Value, length: int, buffer: SSAValue, position: SSAValue) -> None:
        emit = self.emit
        to = emit.mul(position, length)
        if isinstance(value, View):
            self.kernel.body.copy(View(value.buffer, value.base, length), View(buffer, to, length))
        else:
            emit.store(value, buffer, to)

    def _flush(
        self,
        buffers: dict[int, SSAValue],
        lengths: dict[int, int],
        to: Index,
        count: Index,
        most: int,
        multiple: int = 1,
    ) -> None:
        emit = self.emit
        if not buffers:
            return

        def write() -> Sequence[SSAValue]:
            for index, buffer in buffers.items():
                n = lengths[index]
                array = self.outputs[index]
                self.kernel.write(buffer, 0, array, emit.mul(to, n), emit.mul(count, n), most * n)
            return ()

        emit.branch(emit.compare("ugt", count, 0), write)

    def _move_rest(
        self,
        buffers: dict[int, SSAValue],
        lengths: dict[int, int],
        whole: Index,
        rest: Index,
        step: int,
    ) -> None:
        """Moves what does not fill 8 bytes to the front, where the next block goes on."""
        if step == 1:
            return
        emit = self.emit
        for index, buffer in buffers.items():
            n = lengths[index]
            with emit.loop(0, emit.mul(rest, n)) as loop:
                value = emit.load(buffer, emit.add(emit.mul(whole, n), loop.index))
                emit.store(value, buffer, loop.index)


def emit_carried_scan(
    kernel: KernelBuilder,
    op: ScanOp,
    inputs: dict[SSAValue, SSAValue],
    outputs: dict[int, SSAValue],
    starts: dict[int, SSAValue],
    block: int,
    owners: Index,
    chunk: Index,
) -> None:
    """Emits a scan that goes on from `starts`, an array of one value a tasklet by accumulator."""
    code = FoldCode(kernel, op, inputs, outputs, block, owners, chunk)
    code.emit_carried_scan(starts, before=op.exclusive is not None)
