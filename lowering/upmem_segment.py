"""Which patterns run in one launch, and what that launch needs.

A *segment* is a run of patterns that share data and work on the same ranges: maps, windows and
groups hand their results on in MRAM; reduces, scans and filters end in the segment, since the host
finishes their results. `Segment.try_add` grows it; the properties then say, per unit of work, how
many elements of every value a DPU holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ReduceOp, ScanOp, vector_type
from cim_opt.dialects.upmem import element_bytes
from cim_opt.lowering.upmem_body import static_length, static_owners
from cim_opt.lowering.upmem_kernel import TableSource, dma_granule
from cim_opt.lowering.upmem_stages import starts_from_init
from cim_opt.lowering.upmem_stream import streamed_reduce
from cim_opt.mapping.upmem_arrangement import StageShape, Stream, granule
from cim_opt.passes.pattern_neutral import neutral_elements

SLOT_BYTES = 8
"""A partial result, a total or a count in MRAM takes one granule."""


@dataclass
class Segment:
    """Patterns of one launch; ratios count elements of a value, or owners of a pattern, a unit."""

    ops: list[PatternOp] = field(default_factory=list[PatternOp])
    _values: dict[SSAValue, Fraction] = field(default_factory=dict[SSAValue, Fraction])
    _owners: dict[PatternOp, Fraction] = field(default_factory=dict[PatternOp, Fraction])

    def try_add(self, op: PatternOp) -> bool:
        """Adds `op` when it can run in the same launch; says whether it has."""
        if not self.ops:
            self._add(op, Fraction(1))
            return True
        known = [self._values[value] for value in op.inputs if value in self._values]
        if not known or len(set(known)) > 1 or self._needs_host(op):
            return False
        self._add(op, known[0] / op.group_size)
        return True

    def _needs_host(self, op: PatternOp) -> bool:
        """True when an operand of `op` is whole only after the host has finished this segment."""
        mine = {result for member in self.ops for result in member.results}
        finished = {
            result
            for member in self.ops
            if isinstance(member, FoldOp | FilterBase)
            for result in member.results
        }
        return any(value in finished for value in op.inputs) or any(
            value in mine for value in (*op.shared, *op.accumulators())
        )

    def _add(self, op: PatternOp, owners: Fraction) -> None:
        self.ops.append(op)
        self._owners[op] = owners
        for value in op.inputs:
            self._values[value] = owners * op.group_size
        if not isinstance(op, FoldOp | FilterBase):
            for value in op.outs:
                self._values[value] = owners

    def drop_last(self) -> PatternOp:
        """Takes the pattern added last out again."""
        op = self.ops.pop()
        ops, self.ops, self._values, self._owners = self.ops, [], {}, {}
        for member in ops:
            self.try_add(member)
        return op

    # -- per unit ------------------------------------------------------------------------------

    @property
    def _scale(self) -> int:
        ratios = (*self._values.values(), *self._owners.values())
        return lcm(*(ratio.denominator for ratio in ratios))

    def owners_per_unit(self, op: PatternOp) -> int:
        """How often the element function of `op` runs in a unit."""
        return int(self._owners[op] * self._scale)

    def elements_per_unit(self, value: SSAValue) -> int:
        """Elements of a vector in a unit."""
        return int(self._values[value] * self._scale)

    def halos(self) -> dict[SSAValue, int]:
        """Elements of every vector that a DPU holds after its own, for the windows to come."""
        halos = dict.fromkeys(self._values, 0)
        for op in reversed(self.ops):
            need = self._halo_of(op, halos) * op.group_size + op.window_size - 1
            for value in op.inputs:
                halos[value] = max(halos[value], need)
        # A pattern stores all its results for all owners that it runs.
        for op in self.ops:
            most = self._halo_of(op, halos)
            halos.update((value, most) for value in op.outs if value in halos)
        return halos

    def _halo_of(self, op: PatternOp, halos: dict[SSAValue, int]) -> int:
        return max((halos.get(value, 0) for value in op.outs), default=0)

    def owner_halo(self, op: PatternOp) -> int:
        """Owners of `op` that a DPU runs beyond its own."""
        return self._halo_of(op, self.halos())

    @property
    def produced(self) -> list[SSAValue]:
        """Vectors that stay in MRAM between patterns, with those that the host fetches."""
        return [value for op in self.ops for value in op.outs if value in self._values]

    @property
    def external(self) -> list[SSAValue]:
        """Vectors that the host pushes, each once."""
        made = {result for op in self.ops for result in op.results}
        pushed = [value for op in self.ops for value in op.inputs if value not in made]
        return list(dict.fromkeys(pushed))

    def fetched(self, value: SSAValue) -> bool:
        """True when something outside the segment uses a result."""
        members = set[Operation](self.ops)
        return any(use.operation not in members for use in value.uses)

    def read_inside(self, value: SSAValue) -> bool:
        """True when a pattern of the segment reads a result of another one."""
        members = set[Operation](self.ops)
        return any(use.operation in members for use in value.uses)

    def kept_outputs(self, op: PatternOp) -> list[int]:
        """Results of `op` that must be stored: fetched, or read by another pattern."""
        outs = op.outs[:-1] if isinstance(op, FilterBase) else op.outs
        return [
            index
            for index, value in enumerate(outs)
            if self.fetched(value) or self.read_inside(value)
        ]

    @property
    def unit_granule(self) -> int:
        """Units after which all that the host pushes or pulls is at a multiple of 8 bytes."""
        steps = [self._bytes_per_unit(value) for value in self.external]
        steps += [self._bytes_per_unit(value) for value in self.produced if self.fetched(value)]
        for op in self.ops:
            if isinstance(op, ScanOp):
                owners = self.owners_per_unit(op)
                steps += [owners * element_bytes(vector_type(v).element_type) for v in op.outs]
        return granule(steps)

    def _bytes_per_unit(self, value: SSAValue) -> int:
        return self.elements_per_unit(value) * element_bytes(vector_type(value).element_type)

    # -- what its kernel needs -----------------------------------------------------------------

    def tables(self, ops: Sequence[PatternOp] | None = None) -> list[TableSource]:
        """Tensors that every DPU holds whole: shared operands, constants, some `init`s.

        Of all patterns, or of `ops`. Raises UserError for one whose length is not known.
        """
        found: list[TableSource] = []
        for op in self.ops if ops is None else ops:
            values = [value for value in op.shared if isa(value.type, TensorType)]
            if isinstance(op, FoldOp) and op.tensor_accumulators and starts_from_init(op):
                values += op.inits
            for value in values:
                static_length(value.type, op)
            found += values
            for region in op.regions:
                found += [constant for inner in region.walk() for constant in _tables_of(inner)]
        return list(dict.fromkeys(found))

    def shape(self, op: PatternOp, scratch_bytes: int) -> StageShape:
        """The needs of one pattern, for choosing tasklets and blocks."""
        reads = tuple(
            Stream(element_bytes(vector_type(v).element_type), op.group_size, op.window_size - 1)
            for v in dict.fromkeys(op.inputs)
        )
        writes, extra = self._writes(op)
        table_bytes = 0
        if isinstance(op, ReduceOp) and op.tensor_accumulators:
            table_bytes = sum(_table_bytes(value) for value in op.inits)
        return StageShape(
            reads,
            writes,
            self.owners_per_unit(op),
            estimate_instructions(op, len(reads), len(writes)),
            scratch_bytes + extra,
            table_bytes,
            isinstance(op, FoldOp) and neutral_elements(op) is not None,
            op.group_size if streamed_reduce(op) is not None else 0,
        )

    def _writes(self, op: PatternOp) -> tuple[tuple[Stream, ...], int]:
        """Output streams, and WRAM bytes a tasklet needs besides."""
        if isinstance(op, ReduceOp):
            return (), 2 * SLOT_BYTES * len(op.inits)
        if isinstance(op, FilterBase):
            streams = tuple(
                Stream(_kept_bytes(op, index), op.kept_length(op.kept()[index]))
                for index in self.kept_outputs(op)
            )
            step = granule([s.element_bytes * s.per_owner for s in streams])
            rest = sum(s.element_bytes * s.per_owner * step for s in streams)
            return streams, rest + SLOT_BYTES
        indices = range(len(op.outs)) if isinstance(op, ScanOp) else self.kept_outputs(op)
        streams = tuple(
            Stream(element_bytes(vector_type(op.outs[index]).element_type)) for index in indices
        )
        return streams, SLOT_BYTES * len(streams) if isinstance(op, ScanOp) else 0


def _tables_of(op: Operation) -> list[TableSource]:
    """The tensor that a constant is."""
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
        return []
    static_length(op.result.type, op)
    return [op.value]


def _kept_bytes(op: FilterBase, index: int) -> int:
    return element_bytes(vector_type(op.outs[index]).element_type)


def _table_bytes(value: SSAValue) -> int:
    attr = vector_type(value)
    length = -(-attr.get_shape()[0] // dma_granule(attr.element_type))
    return length * dma_granule(attr.element_type) * element_bytes(attr.element_type)


_HEAVY = {
    "arith.muli": 20.0,
    "arith.divsi": 35.0,
    "arith.divui": 30.0,
    "arith.remsi": 35.0,
    "arith.remui": 30.0,
    "arith.addf": 62.0,
    "arith.subf": 62.0,
    "arith.mulf": 176.0,
    "arith.divf": 1028.0,
    "arith.cmpf": 40.0,
}
"""Instructions of operations that a DPU does in software, roughly: enough to choose blocks."""


def estimate_instructions(op: PatternOp, reads: int, writes: int) -> float:
    """Roughly the instructions of one owner, in an unrolled loop: tasklets and blocks follow."""
    return 0.5 + 1.1 * reads + 1.1 * writes + _estimate_block(op.body.block)


def _estimate_block(block: Block) -> float:
    return sum(_estimate_op(op) for op in block.ops)


def _estimate_op(op: Operation) -> float:
    if isinstance(op, PatternOp):
        return static_owners(op) * (2.0 + _estimate_block(op.body.block))
    if isinstance(op, arith.ConstantOp):
        return 0.0
    inner = sum(_estimate_block(block) for region in op.regions for block in region.blocks)
    if isinstance(op, arith.MuliOp) and any(
        isinstance(operand.owner, arith.ConstantOp) for operand in op.operands
    ):
        return 3.0
    return inner + _HEAVY.get(op.name, 1.0)
