"""Host code of one segment: distribution, transfers, launches, leftovers, and what the host merges.

units      = how many units the data have; used, per_dpu = an even split in granules
set        = upmem.alloc used
leftovers  = upmem.host_thread { the same patterns on what does not divide }
for base = 0 to per_dpu step what fits into MRAM:
  upmem.push ...; upmem.launch; upmem.wait; upmem.pull ...
upmem.free set
results    = merge of what was pulled and the leftovers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects import upmem
from cim_opt.dialects.pattern import (
    FilterBase,
    FoldOp,
    PatternOp,
    ReduceOp,
    ScanOp,
    vector_length,
    vector_type,
)
from cim_opt.dialects.upmem import KernelOp
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.host_vectors import length_of
from cim_opt.lowering.upmem_collect import (
    CarriedScanCollector,
    Collector,
    ElementwiseCollector,
    FilterCollector,
    ReduceCollector,
    Round,
    ScanCollector,
    Tail,
)
from cim_opt.lowering.upmem_emit import emit_stage
from cim_opt.lowering.upmem_kernel import KernelBuilder, TableSource, dma_granule
from cim_opt.lowering.upmem_launch import (
    ArrayKey,
    LaunchPlan,
    Merge,
    carried_arrays,
    plan_launch,
    stage_arrays,
)
from cim_opt.lowering.upmem_segment import Segment
from cim_opt.lowering.upmem_stages import emit_carried_scan


@dataclass(frozen=True)
class Options:
    """What the user may fix; None leaves the choice to the cost formulas."""

    tasklets: int | None = None
    block: int | None = None
    dpus: int | None = None
    merge: Merge = "machine"


class SegmentLowering:
    """Lowers one segment at the emitter's place; binds the segment's results in `values`."""

    def __init__(
        self,
        segment: Segment,
        emit: Emitter,
        values: dict[SSAValue, SSAValue],
        machine: UpmemMachine,
        options: Options,
        kernel_names: Iterator[str],
    ):
        self.segment = segment
        self.emit = emit
        self.values = values
        self.machine = machine
        self.options = options
        self.kernel_names = kernel_names
        self.owners: dict[PatternOp, Index] = {}

    def lower(self) -> list[KernelOp]:
        """Emits the host code; returns the kernels, none when no DPU has anything to do."""
        emit = self.emit
        used, per_dpu = self._split()
        machine_units = emit.mul(used, per_dpu)
        static = per_dpu if isinstance(per_dpu, int) else None
        options = self.options
        plan = plan_launch(
            self.segment, self.machine, static, options.tasklets, options.block, options.merge
        )
        rounds = emit.mul(emit.ceil_div(per_dpu, plan.units), used)
        collectors = [self._collector(op, plan, rounds) for op in self.segment.ops]
        carried = [value for collector in collectors for value in collector.start()]
        tail = self._leftovers(collectors, machine_units)
        kernels: list[KernelOp] = []
        if machine_units != 0:
            kernels, carried = self._machine_part(plan, collectors, used, per_dpu, carried)
        position = 0
        for collector in collectors:
            count = len(collector.carried_types)
            machine_owners = emit.mul(machine_units, self.segment.owners_per_unit(collector.op))
            collector.finish(carried[position : position + count], tail, machine_owners)
            position += count
        return kernels

    # -- distribution --------------------------------------------------------------------------

    def _split(self) -> tuple[Index, Index]:
        """DPUs used, and units of each: whole granules, as many DPUs as there are granules."""
        emit = self.emit
        units: Index | None = None
        lengths: dict[SSAValue, Index] = {}
        for value in self.segment.external:
            lengths[value] = length_of(emit, self.values[value])
        for op in self.segment.ops:
            length = lengths[op.inputs[0]]
            halo = op.window_size - 1
            owned = emit.sub(emit.maximum(length, halo), halo) if halo else length
            self.owners[op] = emit.div(owned, op.group_size)
            lengths.update({value: self.owners[op] for value in op.outs})
            mine = emit.div(self.owners[op], self.segment.owners_per_unit(op))
            if units is None or units is not mine:
                units = mine if units is None else emit.minimum(units, mine)
        assert units is not None
        step = self.segment.unit_granule
        most = self.machine.dpus if self.options.dpus is None else self.options.dpus
        granules = emit.div(units, step)
        used = emit.minimum(granules, most)
        per_dpu = emit.mul(emit.div(granules, emit.maximum(used, 1)), step)
        return used, per_dpu

    def _collector(self, op: PatternOp, plan: LaunchPlan, slots: Index) -> Collector:
        emit, values, owners = self.emit, self.values, self.owners[op]
        match op:
            case FilterBase():
                kept = self.segment.kept_outputs(op)
                return FilterCollector(emit, op, values, owners, kept)
            case ScanOp():
                kind = CarriedScanCollector if plan.carries(op) else ScanCollector
                return kind(emit, op, values, owners)
            case ReduceOp():
                return ReduceCollector(emit, op, values, owners, slots)
            case _:
                fetched = [i for i, out in enumerate(op.outs) if self.segment.fetched(out)]
                return ElementwiseCollector(emit, op, values, owners, fetched)

    # -- leftovers -----------------------------------------------------------------------------

    def _leftovers(self, collectors: Sequence[Collector], machine_units: Index) -> Tail | None:
        """The same patterns on the units that no DPU gets, on a host thread."""
        if all(
            self.owners[op] == self.emit.mul(machine_units, self.segment.owners_per_unit(op))
            for op in self.segment.ops
        ) and isinstance(machine_units, int):
            return None
        block = Block()
        tail = Tail({}, {})
        with self.emit.inside(block):
            for value in self.segment.external:
                start = self.emit.mul(machine_units, self.segment.elements_per_unit(value))
                tail.vectors[value] = self._cut(self.values[value], start)
            for collector in collectors:
                self._leftover(collector, tail)
            inner = self._wanted(collectors, tail)
            self.emit.insert(upmem.YieldOp(*inner))
        thread = upmem.HostThreadOp([value.type for value in inner], Region(block))
        outside = dict(zip(inner, self.emit.insert(thread).results, strict=True))
        return Tail(
            {old: outside[new] for old, new in tail.vectors.items() if new in outside},
            {
                op: [outside[value] for value in results]
                for op, results in tail.results.items()
                if all(value in outside for value in results)
            },
        )

    def _cut(self, value: SSAValue, start: Index) -> SSAValue:
        size = self.emit.sub(length_of(self.emit, value), start)
        length = size if isinstance(size, int) else DYNAMIC_INDEX
        attr = TensorType(vector_type(value).element_type, [length])
        return self.emit.insert(tensor.ExtractSliceOp(value, [start], [size], [1], attr)).results[0]

    def _leftover(self, collector: Collector, tail: Tail) -> None:
        if collector.needs_tail_inputs():
            return
        inputs = [self._loose(tail.vectors[value], collector.op) for value in collector.op.inputs]
        results = self.emit.insert(collector.tail_operation(inputs)).results
        tail.results[collector.op] = list(results)
        tail.vectors.update(zip(collector.op.outs, results, strict=True))

    def _loose(self, value: SSAValue, op: PatternOp) -> SSAValue:
        """A leftover shorter than the window has no owner: refused in a type, fine for a `?`."""
        if not 0 <= vector_length(value) < op.window_size:
            return value
        attr = TensorType(vector_type(value).element_type, [DYNAMIC_INDEX])
        return self.emit.insert(tensor.CastOp(value, attr)).results[0]

    def _wanted(self, collectors: Sequence[Collector], tail: Tail) -> list[SSAValue]:
        """What the collectors need of the leftovers."""
        wanted: list[SSAValue] = []
        for collector in collectors:
            if collector.needs_tail_inputs():
                wanted += [tail.vectors[value] for value in collector.op.inputs]
            elif isinstance(collector, ElementwiseCollector):
                wanted += [tail.vectors[collector.op.outs[i]] for i in collector.outputs]
            else:
                wanted += tail.results[collector.op]
        return list(dict.fromkeys(wanted))

    # -- the machine's part --------------------------------------------------------------------

    def _machine_part(
        self,
        plan: LaunchPlan,
        collectors: Sequence[Collector],
        used: Index,
        per_dpu: Index,
        carried: Sequence[SSAValue],
    ) -> tuple[list[KernelOp], list[SSAValue]]:
        emit = self.emit
        dpus = emit.insert(upmem.AllocOp(emit.value(used))).dpus
        dpus.name_hint = "dpus"
        for table in plan.segment.tables():
            source = self._table_value(table)
            emit.insert(upmem.BroadcastOp(source, dpus, plan.places[table].offset))
        if isinstance(per_dpu, int) and per_dpu <= plan.units:
            kernels, results = self._round(plan, collectors, dpus, used, 0, per_dpu, carried)
        else:
            with emit.loop(0, per_dpu, plan.units, carried) as loop:
                units = emit.minimum(emit.sub(per_dpu, loop.index), plan.units)
                kernels, results = self._round(
                    plan, collectors, dpus, used, loop.index, units, loop.carried
                )
                loop.next = results
            results = list(loop.results)
        emit.insert(upmem.FreeOp(dpus))
        return kernels, results

    def _table_value(self, table: TableSource) -> SSAValue:
        return self.values[table] if isinstance(table, SSAValue) else self.emit.constant(table)

    def _round(
        self,
        plan: LaunchPlan,
        collectors: Sequence[Collector],
        dpus: SSAValue,
        used: Index,
        base: Index,
        units: Index,
        carried: Sequence[SSAValue],
    ) -> tuple[list[KernelOp], list[SSAValue]]:
        emit, segment = self.emit, self.segment
        halos = segment.halos()
        for value in segment.external:
            self._push(plan, value, dpus, used, base, units, halos[value])
        round_ = Round(plan, dpus, used, emit.div(base, plan.units), base, units, {}, {})
        for op in segment.ops:
            owners = emit.add(emit.mul(units, segment.owners_per_unit(op)), segment.owner_halo(op))
            step = plan.granule(op)
            chunk = emit.mul(emit.ceil_div(owners, plan.tasklets * step), step)
            round_.owners[op], round_.chunks[op] = owners, chunk
        kernels = [self._launch(round_, self._kernel(plan, round_))]
        carried = self._each(collectors, carried, lambda c, mine: c.prepare(round_, mine))
        scans = [op for op in segment.ops if isinstance(op, ScanOp) and plan.carries(op)]
        if scans:
            kernels.append(self._launch(round_, self._scan_kernel(plan, round_, scans)))
        results = self._each(collectors, carried, lambda c, mine: c.collect(round_, mine))
        return kernels, results

    def _launch(self, round_: Round, kernel: KernelBuilder) -> KernelOp:
        launch = upmem.LaunchOp(kernel.name, round_.dpus, kernel.host_args)
        self.emit.insert(upmem.WaitOp(self.emit.insert(launch).token))
        return kernel.finish()

    def _each(
        self,
        collectors: Sequence[Collector],
        carried: Sequence[SSAValue],
        step: Callable[[Collector, Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """A step of every collector on the values that it carries."""
        results: list[SSAValue] = []
        for collector in collectors:
            position = len(results)
            results += step(collector, carried[position : position + len(collector.carried_types)])
        return results

    def _push(
        self,
        plan: LaunchPlan,
        value: SSAValue,
        dpus: SSAValue,
        used: Index,
        base: Index,
        units: Index,
        halo: int,
    ) -> None:
        emit = self.emit
        each = self.segment.elements_per_unit(value)
        stride = emit.mul(units, each)
        count = emit.round_up(emit.add(stride, halo), dma_granule(vector_type(value).element_type))
        start = emit.mul(emit.mul(base, used), each)
        op = upmem.PushOp(
            self.values[value],
            emit.value(start),
            dpus,
            plan.places[value].offset,
            emit.value(count),
            emit.value(stride),
        )
        emit.insert(op)

    def _builder(self, plan: LaunchPlan, ops: Sequence[PatternOp]) -> KernelBuilder:
        """A kernel of some of the patterns, with what they share loaded."""
        name = next(self.kernel_names)
        kernel = KernelBuilder(name, plan.tasklets, self.machine.dma_max_bytes)
        kernel.map_host(self.values)
        tables = self.segment.tables(ops)
        kernel.load_tables([(table, plan.places[table].offset) for table in tables])
        return kernel

    def _scan_kernel(
        self, plan: LaunchPlan, round_: Round, scans: Sequence[ScanOp]
    ) -> KernelBuilder:
        """The kernel of the second launch: scans that go on from what the host pushed."""
        kernel = self._builder(plan, scans)
        arrays: dict[ArrayKey, SSAValue] = {}
        for op in scans:
            inputs, outputs, starts = carried_arrays(kernel, plan, op, arrays)
            owners = kernel.index_arg(round_.owners[op], "owners")
            chunk = kernel.index_arg(round_.chunks[op], "chunk")
            block = plan.block(op)
            emit_carried_scan(kernel, op, inputs, outputs, starts, block, owners, chunk)
        return kernel

    def _kernel(self, plan: LaunchPlan, round_: Round) -> KernelBuilder:
        """The kernel of the first launch, all patterns."""
        emit, segment = self.emit, self.segment
        kernel = self._builder(plan, segment.ops)
        arrays: dict[ArrayKey, SSAValue] = {}
        made: set[SSAValue] = set()
        for op in segment.ops:
            if any(value in made for value in op.inputs):
                kernel.barrier()
                made.clear()
            owners, chunk = round_.owners[op], round_.chunks[op]
            active: Index = 1
            if isinstance(op, FoldOp):
                active = emit.ceil_div(owners, chunk)
            inputs, outputs, extra = stage_arrays(kernel, plan, op, arrays)
            emit_stage(
                kernel,
                op,
                inputs,
                outputs,
                extra,
                plan.block(op),
                plan.piece(op),
                plan.copies(op),
                kernel.index_arg(owners, "owners"),
                kernel.index_arg(chunk, "chunk"),
                kernel.index_arg(active, "active"),
            )
            made.update(op.outs)
        return kernel
