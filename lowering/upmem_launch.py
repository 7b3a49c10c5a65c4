"""One launch planned: tasklets, blocks and MRAM offsets for a segment, on a given machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ReduceOp, ScanOp, vector_type
from cim_opt.dialects.upmem import element_bytes
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.lowering.upmem_emit import emit_stage
from cim_opt.lowering.upmem_kernel import KernelBuilder, TableSource, dma_granule
from cim_opt.lowering.upmem_segment import SLOT_BYTES, Segment
from cim_opt.lowering.upmem_stages import element_type, starts_from_first
from cim_opt.mapping.upmem_arrangement import (
    Blocking,
    MramArray,
    Placement,
    choose_blocking,
    place_arrays,
    round_up,
)

USUAL_UNITS = 8192
"""Units a DPU that blocks are chosen for when the length is not known: 21 million on 2,560."""


Merge = Literal["machine", "host"]
"""Who puts the parts of scans and filters together.

`machine`: DPUs scan from where they are told to start, and transfers put what filters keep in its
place; `host`: in a pass of its own over what it pulled.
"""


@dataclass(frozen=True)
class Place:
    """An array in MRAM: where, of what elements, and how many bytes."""

    offset: int
    element: Attribute
    capacity: int


@dataclass(frozen=True)
class Slot:
    """Name of an array that is not a value of the program: role, pattern, number."""

    role: str
    op: PatternOp
    index: int


ArrayKey = SSAValue | Slot | TableSource


@dataclass
class LaunchPlan:
    """Tasklets, blocks, and where every array of the segment lies in MRAM."""

    segment: Segment
    blocking: Blocking
    places: dict[ArrayKey, Place]
    units: int
    """Units that one launch takes at most on a DPU."""
    merge: Merge = "machine"

    @property
    def tasklets(self) -> int:
        """Tasklets of the kernel."""
        return self.blocking.tasklets

    def block(self, op: PatternOp) -> int:
        """Owners per block of a pattern."""
        return self.blocking.blocks[self.segment.ops.index(op)]

    def piece(self, op: PatternOp) -> int:
        """Elements of a row that are read at once, 0 when rows are read whole."""
        return self.blocking.pieces[self.segment.ops.index(op)]

    def copies(self, op: PatternOp) -> int:
        """Copies of a pattern's tensor accumulators in WRAM."""
        return self.blocking.copies[self.segment.ops.index(op)]

    def carries(self, op: PatternOp) -> bool:
        """Whether DPUs make the whole of a scan, in a second launch that is given its starts."""
        return self.merge == "machine" and isinstance(op, ScanOp) and not starts_from_first(op)

    def granule(self, op: PatternOp) -> int:
        """Owners to which tasklets' ranges of a pattern are cut."""
        return self.segment.shape(op, 0).granule


def plan_launch(
    segment: Segment,
    machine: UpmemMachine,
    units_per_dpu: int | None,
    tasklets: int | None,
    block: int | None,
    merge: Merge = "machine",
) -> LaunchPlan:
    """Chooses tasklets and blocks, and places the arrays. Raises UserError when nothing fits.

    `units_per_dpu` is None when the length is not known.
    """
    shapes = [segment.shape(op, _scratch_bytes(segment, op, machine)) for op in segment.ops]
    tables = segment.tables()
    shared = sum(table_bytes(table) for table in tables)
    work = USUAL_UNITS if units_per_dpu is None else min(units_per_dpu, 1 << 24)
    blocking = choose_blocking(machine, shapes, shared, work, tasklets, block)
    keys, arrays, elements = _arrays(segment, blocking)
    placement = place_arrays(machine, arrays, segment.unit_granule, units_per_dpu)
    places = _places(keys, elements, placement)
    return LaunchPlan(segment, blocking, places, placement.units, merge)


def table_bytes(table: TableSource) -> int:
    """Bytes of a tensor that every DPU holds, whole granules."""
    attr = table.type
    assert isa(attr, TensorType)
    return round_up(max(attr.get_shape()[0], 1) * element_bytes(attr.element_type), SLOT_BYTES)


def _places(
    keys: list[ArrayKey], elements: list[Attribute], placement: Placement
) -> dict[ArrayKey, Place]:
    rows = zip(keys, placement.offsets, elements, placement.capacities, strict=True)
    return {key: Place(offset, element, capacity) for key, offset, element, capacity in rows}


def _arrays(
    segment: Segment, blocking: Blocking
) -> tuple[list[ArrayKey], list[MramArray], list[Attribute]]:
    keys: list[ArrayKey] = []
    arrays: list[MramArray] = []
    elements: list[Attribute] = []

    def add(key: ArrayKey, element: Attribute, per_unit: int, fixed: int) -> None:
        keys.append(key)
        arrays.append(MramArray(per_unit, fixed))
        elements.append(element)

    halos = segment.halos()
    produced = [v for v in segment.produced if segment.fetched(v) or segment.read_inside(v)]
    for value in [*segment.external, *produced]:
        element = vector_type(value).element_type
        size = element_bytes(element)
        add(value, element, segment.elements_per_unit(value) * size, halos[value] * size)
    for op in segment.ops:
        for key, element, per_unit, fixed in _result_arrays(segment, op, blocking.tasklets):
            add(key, element, per_unit, fixed)
    for table in segment.tables():
        assert isa(table.type, TensorType)
        add(table, table.type.element_type, 0, table_bytes(table))
    return keys, arrays, elements


def _result_arrays(
    segment: Segment, op: PatternOp, tasklets: int
) -> list[tuple[ArrayKey, Attribute, int, int]]:
    """Arrays for what the host finishes: key, element type, bytes per unit, fixed bytes."""
    owners = segment.owners_per_unit(op)
    if isinstance(op, FilterBase):
        rows: list[tuple[ArrayKey, Attribute, int, int]] = []
        cut = segment.shape(op, 0).granule
        for index in segment.kept_outputs(op):
            element = vector_type(op.outs[index]).element_type
            size = element_bytes(element) * op.kept_length(op.kept()[index])
            rows.append((Slot("kept", op, index), element, owners * size, tasklets * cut * size))
        rows.append((Slot("counts", op, 0), i64, 0, tasklets * SLOT_BYTES))
        return rows
    if not isinstance(op, FoldOp):
        return []
    elements = [element_type(value) for value in op.inits]
    if isinstance(op, ScanOp):
        local: list[tuple[ArrayKey, Attribute, int, int]] = [
            (Slot("local", op, i), e, owners * element_bytes(e), 0) for i, e in enumerate(elements)
        ]
        return local + [
            (Slot(role, op, i), e, 0, tasklets * SLOT_BYTES)
            for role in ("totals", "starts")
            for i, e in enumerate(elements)
        ]
    sizes = [partial_stride(op, i) * element_bytes(e) for i, e in enumerate(elements)]
    if shares_partials(op):
        return [(Slot("partial", op, 0), elements[0], 0, sum(sizes))]
    return [
        (Slot("partial", op, i), e, 0, size)
        for i, (e, size) in enumerate(zip(elements, sizes, strict=True))
    ]


def shares_partials(op: FoldOp) -> bool:
    """Whether a DPU's partial results lie in one array, behind each other, and are pulled at once.

    They are scalars of one type: a transfer costs its latency, however little it moves.
    """
    kinds = {value.type for value in op.inits}
    return len(op.inits) > 1 and len(kinds) == 1 and not op.tensor_accumulators


def partial_stride(op: FoldOp, index: int) -> int:
    """Elements of one DPU's partial result: a granule, or a whole table of granules."""
    value = op.inits[index]
    step = dma_granule(element_type(value))
    if not isa(value.type, TensorType):
        return step
    return round_up(max(value.type.get_shape()[0], 1), step)


def carried_arrays(
    kernel: KernelBuilder, plan: LaunchPlan, op: ScanOp, arrays: dict[ArrayKey, SSAValue]
) -> tuple[dict[SSAValue, SSAValue], dict[int, SSAValue], dict[int, SSAValue]]:
    """The MRAM arrays of a scan that is given its starts: inputs, outputs, starts."""
    numbers = range(len(op.inits))
    inputs = {v: _array(kernel, plan, arrays, v) for v in dict.fromkeys(op.inputs)}
    outputs = {i: _array(kernel, plan, arrays, Slot("local", op, i)) for i in numbers}
    return (
        inputs,
        outputs,
        {i: _array(kernel, plan, arrays, Slot("starts", op, i)) for i in numbers},
    )


def _array(
    kernel: KernelBuilder, plan: LaunchPlan, arrays: dict[ArrayKey, SSAValue], key: ArrayKey
) -> SSAValue:
    """The kernel's value for an MRAM array, made once."""
    if key not in arrays:
        place = plan.places[key]
        name = key.role if isinstance(key, Slot) else "vector"
        if isinstance(key, SSAValue) and key.name_hint is not None:
            name = key.name_hint
        arrays[key] = kernel.mram(place.offset, place.element, place.capacity, f"{name}_mram")
    return arrays[key]


def stage_arrays(
    kernel: KernelBuilder, plan: LaunchPlan, op: PatternOp, arrays: dict[ArrayKey, SSAValue]
) -> tuple[dict[SSAValue, SSAValue], dict[int, SSAValue], dict[int, SSAValue]]:
    """A pattern's MRAM arrays: inputs, outputs, and what `emit_stage` calls extra."""

    def array(key: ArrayKey) -> SSAValue:
        return _array(kernel, plan, arrays, key)

    inputs = {value: array(value) for value in dict.fromkeys(op.inputs)}
    if isinstance(op, ScanOp):
        totals = {i: array(Slot("totals", op, i)) for i in range(len(op.inits))}
        locals_ = {i: array(Slot("local", op, i)) for i in totals} if not plan.carries(op) else {}
        return inputs, locals_, totals
    if isinstance(op, FilterBase):
        kept = plan.segment.kept_outputs(op)
        outputs = {index: array(Slot("kept", op, index)) for index in kept}
        return inputs, outputs, {0: array(Slot("counts", op, 0))}
    if isinstance(op, ReduceOp):
        count = 1 if shares_partials(op) else len(op.inits)
        return inputs, {i: array(Slot("partial", op, i)) for i in range(count)}, {}
    return inputs, {i: array(op.outs[i]) for i in plan.segment.kept_outputs(op)}, {}


def _scratch_bytes(segment: Segment, op: PatternOp, machine: UpmemMachine) -> int:
    """WRAM bytes of a tasklet for tensors inside the element function, found by a trial run."""
    kernel = KernelBuilder("trial", 2, machine.dma_max_bytes)
    kernel.load_tables([(table, 0) for table in segment.tables()])
    count = len(segment.ops)
    blocking = Blocking(2, (1,) * count, (2,) * count, 0, 0.0, (8,) * count)
    keys, arrays, elements = _arrays(segment, blocking)
    places = {
        key: Place(0, element, array.capacity(1))
        for key, element, array in zip(keys, elements, arrays, strict=True)
    }
    plan = LaunchPlan(segment, blocking, places, 1)
    inputs, outputs, extra = stage_arrays(kernel, plan, op, {})
    emit_stage(kernel, op, inputs, outputs, extra, 8, 8, 2, 8, 8, 1)
    return kernel.scratch_bytes
