"""What the host does with each pattern's results: place, fold, offset or compact them.

A collector carries its results through the rounds of a segment and joins them, at the end, with
what the host made of the leftovers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.arith import AddiOp, IndexCastOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IndexType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import upmem
from cim_opt.dialects.pattern import (
    FilterBase,
    FoldOp,
    MapOp,
    PatternOp,
    ReduceOp,
    ScanOp,
    YieldOp,
    vector_type,
)
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.host_vectors import clone_block, empty, insert_at, length_of
from cim_opt.lowering.upmem_kernel import dma_granule
from cim_opt.lowering.upmem_launch import LaunchPlan, Slot, partial_stride, shares_partials
from cim_opt.lowering.upmem_stages import (
    constant_attr,
    element_type,
    starts_from_first,
    starts_from_init,
)
from cim_opt.mapping.upmem_arrangement import round_up
from cim_opt.passes.pattern_neutral import neutral_elements


@dataclass
class Round:
    """One launch: number, first unit and units of each DPU, DPUs; owners and chunks by pattern."""

    plan: LaunchPlan
    dpus: SSAValue
    used: Index
    number: Index
    base: Index
    units: Index
    owners: dict[PatternOp, Index]
    chunks: dict[PatternOp, Index]


@dataclass
class Tail:
    """The leftovers: their vectors as the host computed or cut them, and results of patterns."""

    vectors: dict[SSAValue, SSAValue]
    results: dict[PatternOp, list[SSAValue]]


class Collector:
    """Results of one pattern on the host; `values` maps the program's values to lowered ones."""

    def __init__(
        self, emit: Emitter, op: PatternOp, values: dict[SSAValue, SSAValue], owners: Index
    ):
        self.emit = emit
        self.op = op
        self.values = values
        self.owners = owners
        self.carried_types: Sequence[Attribute] = ()

    def needs_tail_inputs(self) -> bool:
        """True when `finish` works on the leftovers' inputs, not on their results."""
        return False

    def tail_operation(self, inputs: Sequence[SSAValue]) -> PatternOp:
        """The pattern on the leftovers."""
        raise NotImplementedError

    def start(self) -> list[SSAValue]:
        """Values to carry through the rounds; notes their types in `carried_types`."""
        started = self._start()
        self.carried_types = [value.type for value in started]
        return started

    def _start(self) -> list[SSAValue]:
        raise NotImplementedError

    def prepare(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Pushes what a second launch of the round needs; the values to carry on."""
        return list(carried)

    def collect(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Pulls a round's results; the values to carry on."""
        raise NotImplementedError

    def finish(self, carried: Sequence[SSAValue], tail: Tail | None, machine_owners: Index) -> None:
        """Binds the program's results in `values`; `tail` None means that nothing is left over."""
        raise NotImplementedError

    def pull(self, round_: Round, role: str, index: int, count: Index, length: Index) -> SSAValue:
        """A new host vector of `length` elements, pulled from an array of this pattern."""
        emit = self.emit
        place = round_.plan.places[Slot(role, self.op, index)]
        dest = empty(emit, place.element, length)
        op = upmem.PullOp(round_.dpus, place.offset, emit.value(count), dest, emit.value(0))
        return emit.insert(op).result

    def every(self, value: SSAValue, count: Index, stride: int) -> SSAValue:
        """Every `stride`-th of a vector's elements, `count` of them."""
        if stride == 1:
            return value
        length = count if isinstance(count, int) else DYNAMIC_INDEX
        attr = TensorType(vector_type(value).element_type, [length])
        op = tensor.ExtractSliceOp(value, [0], [count], [stride], attr)
        return self.emit.insert(op).results[0]

    def mapped(self, old: Sequence[SSAValue]) -> list[SSAValue]:
        """The lowered values of operands."""
        return [self.values[value] for value in old]

    def bind(self, old: SSAValue, new: SSAValue) -> None:
        """Binds a result, cast to the type that the program gave it."""
        if old.type != new.type:
            assert isa(old.type, TensorType)
            new = self.emit.insert(tensor.CastOp(new, old.type)).results[0]
        new.name_hint = old.name_hint
        self.values[old] = new


class ElementwiseCollector(Collector):
    """Map, window, group, window_group: results go to their place."""

    def __init__(
        self,
        emit: Emitter,
        op: PatternOp,
        values: dict[SSAValue, SSAValue],
        owners: Index,
        outputs: Sequence[int],
    ):
        super().__init__(emit, op, values, owners)
        self.outputs = outputs

    def _start(self) -> list[SSAValue]:
        return [
            empty(self.emit, vector_type(self.op.outs[index]).element_type, self.owners)
            for index in self.outputs
        ]

    def tail_operation(self, inputs: Sequence[SSAValue]) -> PatternOp:
        op = self.op
        types = [TensorType(vector_type(out).element_type, [DYNAMIC_INDEX]) for out in op.outs]
        sizes = [op.size_of(name) for name in op.SIZE_NAMES]
        return type(op)(inputs, self.mapped(op.shared), types, op.body.clone(), sizes)

    def collect(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        emit = self.emit
        per_unit = round_.plan.segment.owners_per_unit(self.op)
        count = emit.mul(round_.units, per_unit)
        position = emit.mul(emit.mul(round_.base, round_.used), per_unit)
        return [
            emit.insert(
                upmem.PullOp(
                    round_.dpus,
                    round_.plan.places[self.op.outs[index]].offset,
                    emit.value(count),
                    value,
                    emit.value(position),
                )
            ).result
            for index, value in zip(self.outputs, carried, strict=True)
        ]

    def finish(self, carried: Sequence[SSAValue], tail: Tail | None, machine_owners: Index) -> None:
        for index, value in zip(self.outputs, carried, strict=True):
            if tail is not None:
                value = insert_at(
                    self.emit, tail.vectors[self.op.outs[index]], value, machine_owners
                )
            self.bind(self.op.outs[index], value)


class ReduceCollector(Collector):
    """Partial results of all DPUs are folded onto `init`, then the leftovers'."""

    op: ReduceOp

    def __init__(
        self,
        emit: Emitter,
        op: PatternOp,
        values: dict[SSAValue, SSAValue],
        owners: Index,
        slots: Index,
    ):
        super().__init__(emit, op, values, owners)
        self._slots = slots
        self._strides = [partial_stride(self.op, i) for i in range(len(self.op.inits))]

    def needs_tail_inputs(self) -> bool:
        return starts_from_first(self.op)

    def tail_operation(self, inputs: Sequence[SSAValue]) -> PatternOp:
        return self._reduce(inputs, self._neutral_starts())

    def _neutral_starts(self) -> list[SSAValue]:
        neutral = neutral_elements(self.op)
        if neutral is None:
            assert starts_from_init(self.op)
            return self.mapped(self.op.inits)
        starts: list[SSAValue] = []
        for number, value in zip(neutral, self.op.inits, strict=True):
            attr = constant_attr(number, element_type(value))
            if isa(value.type, TensorType):
                attr = _splat(number, value.type)
            starts.append(self.emit.constant(attr))
        return starts

    def _reduce(self, inputs: Sequence[SSAValue], inits: Sequence[SSAValue]) -> ReduceOp:
        combine = self.op.combine.clone() if self.op.combine is not None else None
        return ReduceOp(inputs, inits, self.mapped(self.op.shared), self.op.body.clone(), combine)

    def _arrays(self) -> list[int]:
        """Elements of each array of partial results on a DPU."""
        return [sum(self._strides)] if shares_partials(self.op) else self._strides

    def _start(self) -> list[SSAValue]:
        emit = self.emit
        return [
            empty(emit, element_type(value), emit.mul(self._slots, stride))
            for value, stride in zip(self.op.inits, self._arrays(), strict=False)
        ]

    def collect(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        emit = self.emit
        slot = emit.mul(round_.number, round_.used)
        return [
            emit.insert(
                upmem.PullOp(
                    round_.dpus,
                    round_.plan.places[Slot("partial", self.op, index)].offset,
                    emit.value(each),
                    value,
                    emit.value(emit.mul(slot, each)),
                )
            ).result
            for index, (value, each) in enumerate(zip(carried, self._arrays(), strict=True))
        ]

    def finish(self, carried: Sequence[SSAValue], tail: Tail | None, machine_owners: Index) -> None:
        folded = self._fold(carried)
        if tail is not None and self.needs_tail_inputs():
            inputs = [tail.vectors[value] for value in self.op.inputs]
            folded = list(self.emit.insert(self._reduce(inputs, folded)).results)
        elif tail is not None:
            folded = self._combine(folded, tail.results[self.op])
        for old, new in zip(self.op.outs, folded, strict=True):
            self.bind(old, new)

    def _fold(self, partials: Sequence[SSAValue]) -> list[SSAValue]:
        inits = self.mapped(self.op.inits)
        strides = self._strides
        if shares_partials(self.op):
            starts = [sum(self._strides[:place]) for place in range(len(self._strides))]
            strides = self._arrays() * len(starts)
            partials = [self._from(partials[0], start, strides[0]) for start in starts]
        if self.op.combine is None:
            vectors = [
                self.every(value, self._slots, stride)
                for value, stride in zip(partials, strides, strict=True)
            ]
            return list(self.emit.insert(self._reduce(vectors, inits)).results)
        combine = combine_region(self.op)
        op = upmem.MergeReduceOp(partials, inits, strides, combine)
        return list(self.emit.insert(op).results)

    def _from(self, values: SSAValue, start: int, stride: int) -> SSAValue:
        """A vector of `stride` elements a DPU and round, without its first ones."""
        if start == 0:
            return values
        # Without a DPU there is nothing to cut off.
        rest = self.emit.mul(self._slots, stride)
        count = self.emit.sub(self.emit.maximum(rest, start), start)
        length = count if isinstance(count, int) else DYNAMIC_INDEX
        first = self.emit.minimum(rest, start)
        attr = TensorType(vector_type(values).element_type, [length])
        op = tensor.ExtractSliceOp(values, [first], [count], [1], attr)
        return self.emit.insert(op).results[0]

    def _combine(self, lhs: Sequence[SSAValue], rhs: Sequence[SSAValue]) -> list[SSAValue]:
        block = self.op.combine_block()
        if not self.op.tensor_accumulators:
            shared = self.mapped(self.op.shared) if self.op.combine is None else []
            return clone_block(self.emit, block, [*lhs, *rhs, *shared])
        region = Region(Block(arg_types=[arg.type for arg in block.args]))
        inner = Emitter(region.block)
        results = clone_block(inner, block, region.block.args)
        inner.insert(YieldOp(*results))
        types = [value.type for value in lhs]
        return list(self.emit.insert(MapOp([*lhs, *rhs], [], types, region)).results)


class ScanCollector(Collector):
    """Local scans get the offset of all elements before them."""

    op: ScanOp

    def needs_tail_inputs(self) -> bool:
        return True

    def _start(self) -> list[SSAValue]:
        outs = [empty(self.emit, element_type(value), self.owners) for value in self.op.inits]
        return [*outs, *self.mapped(self.op.inits)]

    def collect(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        emit, op = self.emit, self.op
        outs, carry = carried[: len(op.inits)], carried[len(op.inits) :]
        per_unit = round_.plan.segment.owners_per_unit(op)
        count = emit.mul(round_.units, per_unit)
        locals_ = [
            self.pull(round_, "local", index, count, emit.mul(count, round_.used))
            for index in range(len(op.inits))
        ]
        totals = self.totals(round_)
        merge = emit.insert(
            upmem.MergeScanOp(
                locals_,
                totals,
                carry,
                self.mapped(op.shared) if op.combine is None else [],
                round_.plan.tasklets,
                emit.value(round_.owners[op]),
                emit.value(round_.chunks[op]),
                combine_region(op),
                op.exclusive is not None,
            )
        )
        position = emit.mul(emit.mul(round_.base, round_.used), per_unit)
        placed = [
            insert_at(emit, part, whole, position)
            for part, whole in zip(merge.merged, outs, strict=True)
        ]
        return [*placed, *merge.carries]

    def totals(self, round_: Round) -> list[SSAValue]:
        """What every tasklet's range comes to, DPU after DPU; a vector an accumulator."""
        slots = self.emit.mul(round_.used, round_.plan.tasklets)
        found: list[SSAValue] = []
        for index, value in enumerate(self.op.inits):
            step = dma_granule(value.type)
            count = round_.plan.tasklets * step
            pulled = self.pull(round_, "totals", index, count, self.emit.mul(slots, step))
            found.append(self.every(pulled, slots, step))
        return found

    def finish(self, carried: Sequence[SSAValue], tail: Tail | None, machine_owners: Index) -> None:
        op = self.op
        outs = list(carried[: len(op.inits)])
        if tail is not None:
            inputs = [tail.vectors[value] for value in op.inputs]
            combine = op.combine.clone() if op.combine is not None else None
            scan = ScanOp(
                inputs,
                carried[len(op.inits) :],
                self.mapped(op.shared),
                op.body.clone(),
                combine,
            )
            if op.exclusive is not None:
                scan.properties["exclusive"] = op.exclusive
            parts = self.emit.insert(scan).results
            outs = [
                insert_at(self.emit, part, whole, machine_owners)
                for part, whole in zip(parts, outs, strict=True)
            ]
        for old, new in zip(op.outs, outs, strict=True):
            self.bind(old, new)


class CarriedScanCollector(ScanCollector):
    """Tasklets are told where to start, and a second launch makes the scan on the DPUs."""

    def prepare(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        op, count = self.op, len(self.op.inits)
        carry = carried[count:]
        totals = self.totals(round_)
        combine = op.combine
        shared = self.mapped(op.shared) if combine is None else []
        body = (op.body if combine is None else combine).clone()
        scan = ScanOp(totals, carry, shared, body)
        scan.properties["exclusive"] = UnitAttr()
        starts = list(self.emit.insert(scan).results)
        for index, value in enumerate(starts):
            self._push_starts(round_, index, value)
        return [*carried[:count], *self._after_all(round_, starts, totals)]

    def _push_starts(self, round_: Round, index: int, starts: SSAValue) -> None:
        emit, tasklets = self.emit, round_.plan.tasklets
        place = round_.plan.places[Slot("starts", self.op, index)]
        count = round_up(tasklets, dma_granule(place.element))
        zero, each, stride = (emit.value(number) for number in (0, count, tasklets))
        emit.insert(upmem.PushOp(starts, zero, round_.dpus, place.offset, each, stride))

    def _after_all(
        self, round_: Round, starts: Sequence[SSAValue], totals: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The accumulators after the last DPU's last tasklet."""
        emit = self.emit
        last = emit.value(emit.sub(emit.mul(round_.used, round_.plan.tasklets), 1))
        ends = [
            emit.insert(tensor.ExtractOp(value, [last], element_type(value))).result
            for value in (*starts, *totals)
        ]
        shared = self.mapped(self.op.shared) if self.op.combine is None else []
        return clone_block(emit, self.op.combine_block(), [*ends, *shared])

    def collect(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        emit, op = self.emit, self.op
        per_unit = round_.plan.segment.owners_per_unit(op)
        count = emit.value(emit.mul(round_.units, per_unit))
        position = emit.value(emit.mul(emit.mul(round_.base, round_.used), per_unit))
        outs = [
            emit.insert(
                upmem.PullOp(
                    round_.dpus,
                    round_.plan.places[Slot("local", op, index)].offset,
                    count,
                    value,
                    position,
                )
            ).result
            for index, value in enumerate(carried[: len(op.inits)])
        ]
        return [*outs, *carried[len(op.inits) :]]


class FilterCollector(Collector):
    """Kept values of all tasklets, rounds and leftovers, one behind the other."""

    op: FilterBase

    def __init__(
        self,
        emit: Emitter,
        op: PatternOp,
        values: dict[SSAValue, SSAValue],
        owners: Index,
        outputs: Sequence[int],
    ):
        super().__init__(emit, op, values, owners)
        self.outputs = outputs

    def tail_operation(self, inputs: Sequence[SSAValue]) -> PatternOp:
        op = self.op
        types = [value.type for value in op.outs]
        sizes = [op.size_of(name) for name in op.SIZE_NAMES]
        return type(op)(inputs, self.mapped(op.shared), types, op.body.clone(), sizes)

    def _start(self) -> list[SSAValue]:
        """Room for all that may be kept, and how often something was."""
        emit = self.emit
        vectors = [
            empty(
                emit,
                vector_type(self.op.outs[index]).element_type,
                emit.mul(self.owners, self._scale(index)),
            )
            for index in self.outputs
        ]
        return [*vectors, emit.value(0)]

    def _scale(self, index: int) -> int:
        """Elements that a kept owner adds to a result."""
        return self.op.kept_length(self.op.kept()[index])

    def collect(self, round_: Round, carried: Sequence[SSAValue]) -> list[SSAValue]:
        emit = self.emit
        slots = emit.mul(round_.used, round_.plan.tasklets)
        counts = self.pull(round_, "counts", 0, round_.plan.tasklets, slots)
        room = emit.mul(round_.chunks[self.op], round_.plan.tasklets)
        vectors: list[SSAValue] = []
        for index, dest in zip(self.outputs, carried, strict=False):
            scale = self._scale(index)
            capacity = emit.value(emit.mul(round_.chunks[self.op], scale))
            position = emit.value(emit.mul(carried[-1], scale))
            if round_.plan.merge == "host":
                each = emit.mul(room, scale)
                data = self.pull(round_, "kept", index, each, emit.mul(each, round_.used))
                op = upmem.CompactOp(data, capacity, counts, scale, dest, position)
            else:
                place = round_.plan.places[Slot("kept", self.op, index)].offset
                op = upmem.GatherOp(round_.dpus, place, capacity, counts, scale, dest, position)
            vectors.append(emit.insert(op).result)
        return [*vectors, emit.value(emit.add(carried[-1], self._sum(counts)))]

    def _sum(self, counts: SSAValue) -> SSAValue:
        block = Block(arg_types=[i64, i64])
        total = AddiOp(block.args[0], block.args[1])
        block.add_ops([total, YieldOp(total)])
        zero = self.emit.constant(constant_attr(0, i64))
        fold = self.emit.insert(ReduceOp([counts], [zero], [], Region(block)))
        return self.emit.insert(IndexCastOp(fold.results[0], IndexType())).result

    def finish(self, carried: Sequence[SSAValue], tail: Tail | None, machine_owners: Index) -> None:
        emit, kept = self.emit, carried[-1]
        for index, value in zip(self.outputs, carried, strict=False):
            length = emit.mul(kept, self._scale(index))
            if tail is not None:
                rest = tail.results[self.op][index]
                value = insert_at(emit, rest, value, length)
                length = emit.add(length, length_of(emit, rest))
            attr = TensorType(vector_type(value).element_type, [DYNAMIC_INDEX])
            cut = tensor.ExtractSliceOp(value, [0], [length], [1], attr)
            self.bind(self.op.outs[index], emit.insert(cut).results[0])
        first = self.op.kept()
        count = emit.mul(kept, self.op.kept_length(first[0]) if first else 1)
        if tail is not None:
            count = emit.add(count, tail.results[self.op][-1])
        self.bind(self.op.outs[-1], emit.value(count))


def combine_region(op: FoldOp) -> Region:
    """The function of two accumulators, and of shared operands if it takes any, for a merge."""
    block = op.combine_block()
    target = Block(arg_types=[arg.type for arg in block.args])
    inner = Emitter(target)
    results = clone_block(inner, block, target.args)
    inner.insert(upmem.YieldOp(*results))
    return Region(target)


def _splat(number: int | float, attr: TensorType) -> DenseIntOrFPElementsAttr:
    return DenseIntOrFPElementsAttr.from_list(attr, [number])  # pyright: ignore
