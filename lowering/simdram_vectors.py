"""Vectors of a program on SIMDRAM: transposed from the host, or made where they are read.

A map, window or group is not run when it stands in the program: whoever reads its result evaluates
its element function at the positions that the lanes need, on vertical objects that stay in place.
Only what is returned, or what the host uses, is read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FoldOp, PatternOp, vector_type
from cim_opt.dialects.simdram import ReadOp, TransposeOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.host_vectors import length_of
from cim_opt.lowering.simdram_body import BodyVectorizer, Item
from cim_opt.lowering.simdram_values import Scalar, Value, VectorEmitter, bits_of, number
from cim_opt.lowering.simdram_views import Positions, SharedView, SliceView, View


class Vectors:
    """Vectors of the program: of the host, or patterns that are evaluated where they are read."""

    def __init__(self, emit: Emitter, values: dict[SSAValue, SSAValue]):
        self.emit = emit
        self.values = values
        self.producers: dict[SSAValue, tuple[PatternOp, int]] = {}

    def length(self, value: SSAValue) -> Index:
        """Elements of a vector."""
        if value not in self.producers:
            return length_of(self.emit, self.values[value])
        return self.owners(self.producers[value][0])

    def owners(self, op: PatternOp) -> Index:
        """How often an element function runs."""
        emit = self.emit
        length = self.length(op.inputs[0])
        halo = op.window_size - 1
        owned = emit.sub(emit.maximum(length, halo), halo) if halo else length
        return emit.div(owned, op.group_size)

    def shared(self, value: SSAValue) -> Item:
        """A shared operand, or an initial accumulator."""
        lowered = self.values[value]
        if isa(lowered.type, TensorType):
            shape = lowered.type.get_shape()
            if len(shape) != 1 or shape[0] == DYNAMIC_INDEX:
                raise UserError(
                    f"shared tensor of type {lowered.type}",
                    "simdram needs shared tensors 1-D of static length",
                    "give the type its length",
                    location_of(_reader(value)),
                )
            length = shape[0]
            return SharedView(self.emit, length, lowered)
        if isinstance(lowered.owner, ConstantOp) and isa(lowered.owner.value, IntegerAttr):
            return number(lowered.owner.value.value.data, lowered.type)
        return Scalar(lowered)

    def at(self, value: SSAValue, positions: Positions, vectors: VectorEmitter) -> Value:
        """The elements of a vector at the lanes' positions."""
        if value in self.producers:
            op, index = self.producers[value]
            key = ("owner", op, positions, vectors.count)
            yields = self.emit.once(key, lambda: self.evaluate(op, positions, vectors))
            result = yields[index]
            assert not isinstance(result, View)
            return result
        source = self.values[value]
        emit = self.emit
        operands = [emit.value(i) for i in (positions.start, positions.stride, vectors.count)]
        start, stride, count = operands
        width = bits_of(vector_type(source).element_type)
        return emit.once_outside(
            ("transpose", source, start, stride, count),
            (source, *operands),
            lambda: emit.insert(TransposeOp(source, start, stride, count, width)).result,
        )

    def elements(self, op: PatternOp, positions: Positions, vectors: VectorEmitter) -> list[Item]:
        """What the element functions of the owners at `positions` see of every input."""
        if not op.takes_slices:
            return [self.at(value, positions, vectors) for value in op.inputs]
        first = positions.of_slice(self.emit, op.group_size)
        return [
            SliceView(
                self.emit,
                op.slice_length,
                first,
                lambda where, v=value: self.at(v, where, vectors),
            )
            for value in op.inputs
        ]

    def evaluate(self, op: PatternOp, positions: Positions, vectors: VectorEmitter) -> list[Item]:
        """The element function of the owners at `positions`; not for folds."""
        args = [*self.elements(op, positions, vectors), *map(self.shared, op.shared)]
        return BodyVectorizer(vectors).run(op.body.block, args)

    def fold_step(
        self,
        op: FoldOp,
        accumulators: Sequence[Item],
        positions: Positions,
        vectors: VectorEmitter,
    ) -> list[Item]:
        """A fold's element function on the lanes' accumulators."""
        args = [*accumulators, *self.elements(op, positions, vectors)]
        return BodyVectorizer(vectors).run(op.body.block, [*args, *map(self.shared, op.shared)])


def _reader(value: SSAValue) -> Operation:
    """The first pattern that shares `value`, or accumulates into it."""
    users = [use.operation for use in value.uses if isinstance(use.operation, PatternOp)]
    return next(op for op in users if value in (*op.shared, *op.accumulators()))


def as_vec(vectors: VectorEmitter, item: Item) -> SSAValue:
    """The vertical object of an item that is no tensor."""
    assert not isinstance(item, View)
    return vectors.vec(item)


def read(emit: Emitter, vec: SSAValue, dest: SSAValue, position: Index, stride: Index) -> SSAValue:
    """`dest` with the object's lanes at position + l*stride."""
    return emit.insert(ReadOp(vec, dest, emit.value(position), emit.value(stride))).result
