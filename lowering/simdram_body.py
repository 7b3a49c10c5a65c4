"""Element functions become bbops: branches become selects, small loops are unrolled.

Each operation of the element function is looked up once; scalars that are the same in all lanes are
computed by the host. Tensors are views (`simdram_views`), so nested patterns store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, math, scf, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FoldOp, PatternOp, ReduceOp, ScanOp, YieldOp
from cim_opt.dialects.simdram import Opcode
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.simdram_values import (
    INDEX_WIDTH,
    Number,
    Scalar,
    Value,
    VectorEmitter,
    bits_of,
    number,
)
from cim_opt.lowering.simdram_views import (
    InsertedView,
    LazyView,
    ListView,
    SharedView,
    View,
)
from cim_opt.mapping.ranges import Range
from cim_opt.passes.range_analysis import RULES

UNROLL = 8
"""Loops of at most so many rounds are unrolled; others stay loops of the host."""

Item = Value | View

BINARY: dict[type[Operation], Opcode] = {
    arith.AddiOp: Opcode.ADD,
    arith.SubiOp: Opcode.SUB,
    arith.MuliOp: Opcode.MUL,
    arith.DivUIOp: Opcode.DIVU,
    arith.DivSIOp: Opcode.DIVS,
    arith.RemUIOp: Opcode.REMU,
    arith.RemSIOp: Opcode.REMS,
    arith.MinUIOp: Opcode.MINU,
    arith.MinSIOp: Opcode.MINS,
    arith.MaxUIOp: Opcode.MAXU,
    arith.MaxSIOp: Opcode.MAXS,
    arith.AndIOp: Opcode.AND,
    arith.OrIOp: Opcode.OR,
    arith.XOrIOp: Opcode.XOR,
    arith.ShLIOp: Opcode.SHL,
    arith.ShRUIOp: Opcode.SHRU,
    arith.ShRSIOp: Opcode.SHRS,
}

UNARY: dict[type[Operation], Opcode] = {
    math.AbsIOp: Opcode.ABS,
    math.CtPopOp: Opcode.BITCOUNT,
}

PREDICATES = (
    Opcode.EQ,
    Opcode.NE,
    Opcode.LTS,
    Opcode.LES,
    Opcode.GTS,
    Opcode.GES,
    Opcode.LTU,
    Opcode.LEU,
    Opcode.GTU,
    Opcode.GEU,
)
"""Comparisons in the order of arith.cmpi's predicates."""


class BodyVectorizer:
    """Evaluates element functions on all lanes at once."""

    def __init__(self, vectors: VectorEmitter):
        self.vectors = vectors
        self.emit: Emitter = vectors.emit
        self.guards = 0
        """How many `scf.if` are around the operation."""

    def run(self, block: Block, args: Sequence[Item]) -> list[Item]:
        """What `block` yields for these arguments."""
        values: dict[SSAValue, Item] = dict(zip(block.args, args, strict=True))
        return self._run(block, values)

    def _run(self, block: Block, values: dict[SSAValue, Item]) -> list[Item]:
        for op in block.ops:
            if isinstance(op, YieldOp | scf.YieldOp):
                return [values[operand] for operand in op.operands]
            values.update(zip(op.results, self._op(op, values), strict=True))
        return []

    def scalar(self, item: Item) -> Value:
        """A value that types say is no tensor."""
        assert not isinstance(item, View)
        return item

    def view(self, item: Item) -> View:
        """A value that types say is a tensor."""
        assert isinstance(item, View)
        return item

    # -- one operation -------------------------------------------------------------------------

    def _op(self, op: Operation, values: dict[SSAValue, Item]) -> Sequence[Item]:
        operands = [values[operand] for operand in op.operands]
        match op:
            case arith.ConstantOp():
                return [self._constant(op)]
            case tensor.ExtractOp():
                return [self._extract(self.view(operands[0]), self.scalar(operands[1]))]
            case tensor.InsertOp():
                value, view, index = self.scalar(operands[0]), self.view(operands[1]), operands[2]
                return [InsertedView(self.vectors, view, self.scalar(index), value)]
            case tensor.FromElementsOp():
                return [ListView(self.vectors, [self.scalar(item) for item in operands])]
            case tensor.SplatOp():
                filled = self.scalar(operands[0])
                return [LazyView(_length(op.results[0].type, op), lambda _: filled)]
            case tensor.DimOp():
                return [Number(self.view(operands[0]).length, IndexType())]
            case tensor.CastOp():
                return [operands[0]]
            case scf.IfOp():
                return self._if(op, values)
            case scf.ForOp():
                return self._for(op, values)
            case FoldOp():
                return self._fold(op, operands)
            case PatternOp():
                return self._pattern(op, operands)
            case _:
                return [self._scalar_op(op, operands)]

    def _extract(self, view: View, index: Value) -> Value:
        if self.guards and not isinstance(index, SSAValue):
            # Both branches are evaluated: this index may be one that the branch is to keep out.
            last = max(view.length - 1, 0)
            if isinstance(index, Number):
                kept = index.value if 0 <= index.value <= last else last
                index = Number(kept, index.type)
            else:
                index = Scalar(self.emit.value(self.emit.minimum(index.ssa, last)))
        return view.pick(self.vectors, index)

    def _constant(self, op: arith.ConstantOp) -> Item:
        attr = op.value
        if isinstance(attr, DenseIntOrFPElementsAttr):
            return SharedView(self.emit, _length(attr.type, op), self.emit.constant(attr))
        if not isa(attr, IntegerAttr):
            raise self._refuse(op)
        return number(attr.value.data, attr.type)

    def _refuse(self, op: Operation) -> UserError:
        return UserError(
            f"'{op.name}' in an element function",
            "simdram computes with integers, by bbops for arith, math.absi and math.ctpop, "
            "tensor.extract, insert, from_elements, splat and dim, scf.if and scf.for, and nested "
            "patterns; SIMDRAM has no floating point",
            "rewrite it with these, or run it on upmem",
            location_of(op),
        )

    # -- scalars -------------------------------------------------------------------------------

    def _scalar_op(self, op: Operation, items: Sequence[Item]) -> Value:
        if op.regions or len(op.results) != 1 or any(isinstance(item, View) for item in items):
            raise self._refuse(op)
        operands = [self.scalar(item) for item in items]
        if not any(isinstance(value, SSAValue) for value in operands):
            return self._on_host(op, operands)
        return self._on_lanes(op, operands)

    def _on_host(self, op: Operation, operands: Sequence[Value]) -> Value:
        known = _folded(op, operands)
        if known is not None:
            return known
        hosts = [self.vectors.host(v) for v in operands if not isinstance(v, SSAValue)]
        key = (type(op), *hosts, *op.properties.values(), op.results[0].type)
        copy = self.emit.once(
            key,
            lambda: self.emit.insert(op.clone(dict(zip(op.operands, hosts, strict=True)))),
        )
        return Scalar(copy.results[0])

    def _on_lanes(self, op: Operation, operands: list[Value]) -> Value:
        vectors = self.vectors
        if isinstance(op.operands[0].type, IndexType) and not isinstance(op, arith.IndexCastOp):
            # Lanes keep an index in the bits of the integer it was cast from.
            operands = [self._whole_index(value) for value in operands]
        match op:
            case arith.CmpiOp():
                opcode = PREDICATES[op.predicate.value.data]
                return vectors.bbop(opcode, operands)
            case arith.SelectOp():
                return vectors.select(*operands)
            case arith.ExtSIOp() | arith.ExtUIOp() | arith.TruncIOp():
                signed = isinstance(op, arith.ExtSIOp)
                return vectors.resize(operands[0], bits_of(op.results[0].type), signed)
            case arith.IndexCastOp():
                if isinstance(op.results[0].type, IndexType):
                    return operands[0]
                return vectors.resize(operands[0], bits_of(op.results[0].type), True)
            case _ if type(op) in BINARY:
                return vectors.binary(BINARY[type(op)], operands[0], operands[1])
            case _ if type(op) in UNARY:
                return vectors.bbop(UNARY[type(op)], operands)
            case _:
                raise self._refuse(op)

    def _whole_index(self, value: Value) -> Value:
        if isinstance(value, SSAValue):
            return self.vectors.resize(value, INDEX_WIDTH, True)
        if isinstance(value, Number) and isinstance(value.type, IndexType):
            return number(value.value, IntegerType(INDEX_WIDTH))
        return value

    # -- control flow --------------------------------------------------------------------------

    def _if(self, op: scf.IfOp, values: dict[SSAValue, Item]) -> Sequence[Item]:
        condition = self.scalar(values[op.cond])
        if not op.results:
            return []
        with self._guarded(self.guards + 1):
            then = self._run(op.true_region.block, dict(values))
            otherwise = self._run(op.false_region.block, dict(values))
        return [self._choose(condition, yes, no) for yes, no in zip(then, otherwise, strict=True)]

    @contextmanager
    def _guarded(self, guards: int) -> Generator[None]:
        """So many `scf.if` are around what is evaluated meanwhile."""
        before, self.guards = self.guards, guards
        yield
        self.guards = before

    def _choose(self, condition: Value, then: Item, otherwise: Item) -> Item:
        if isinstance(then, View) and isinstance(otherwise, View):
            return LazyView(
                then.length,
                lambda i: self.vectors.select(condition, then.element(i), otherwise.element(i)),
            )
        return self.vectors.select(condition, self.scalar(then), self.scalar(otherwise))

    def _for(self, op: scf.ForOp, values: dict[SSAValue, Item]) -> Sequence[Item]:
        low, high, step = (self.scalar(values[v]) for v in (op.lb, op.ub, op.step))
        if any(isinstance(bound, SSAValue) for bound in (low, high, step)):
            raise UserError(
                "'scf.for' whose bounds differ from element to element",
                "simdram runs all lanes in lockstep",
                "use bounds that are the same for all elements",
                location_of(op),
            )
        carried = [values[value] for value in op.iter_args]

        def body(index: Value, items: Sequence[Item]) -> list[Item]:
            bound = dict(values)
            bound.update(zip(op.body.block.args, [index, *items], strict=True))
            return self._run(op.body.block, bound)

        bounds = [self._index(bound) for bound in (low, high, step)]
        return self.repeat(bounds[0], bounds[1], bounds[2], carried, body, op)

    def _index(self, value: Value) -> Index:
        if isinstance(value, Number):
            return value.value
        assert isinstance(value, Scalar)
        return value.ssa

    def repeat(
        self,
        low: Index,
        high: Index,
        step: Index,
        carried: Sequence[Item],
        body: Callable[[Value, Sequence[Item]], list[Item]],
        op: Operation,
    ) -> list[Item]:
        """Runs `body` for every index, unrolled when short, else as a loop of the host."""
        items = list(carried)
        if isinstance(low, int) and isinstance(high, int) and isinstance(step, int):
            rounds = range(low, high, step)
            if len(rounds) <= UNROLL:
                for index in rounds:
                    items = body(Number(index, IndexType()), items)
                return items
        if any(isinstance(item, View) for item in items):
            raise UserError(
                f"'{op.name}' carries a tensor through more than {UNROLL} rounds",
                "simdram carries vertical objects only",
                "carry scalars, or use a reduce with a tensor accumulator",
                location_of(op),
            )
        vectors = [self.vectors.vec(self.scalar(item)) for item in items]
        with self.emit.loop(low, high, step, vectors) as loop:
            results = body(Scalar(loop.index), loop.carried)
            loop.next = [self.vectors.vec(self.scalar(item)) for item in results]
        return list(loop.results)

    # -- nested patterns -----------------------------------------------------------------------

    def _owners(self, op: PatternOp, inputs: Sequence[Item]) -> int:
        length = max(self.view(item).length for item in inputs)
        return max(0, (length - op.window_size + 1) // op.group_size)

    def _slices(self, op: PatternOp, inputs: Sequence[Item], owner: Index) -> list[Item]:
        base = self.emit.mul(owner, op.group_size)
        views = [self.view(item) for item in inputs]
        if not op.takes_slices:
            return [view.element(base) for view in views]
        return [
            LazyView(op.slice_length, lambda i, v=view: v.element(self.emit.add(base, i)))
            for view in views
        ]

    def _pattern(self, op: PatternOp, operands: Sequence[Item]) -> Sequence[Item]:
        inputs, shared = operands[: len(op.inputs)], operands[len(op.inputs) :]
        owners = self._owners(op, inputs)
        # Elements may be asked for outside of a branch, and are still guarded by it.
        guards = self.guards

        def result(number_: int) -> Callable[[Index], Value]:
            def compute(index: Index) -> Value:
                with self._guarded(max(guards, self.guards)):
                    args = [*self._slices(op, inputs, index), *shared]
                    return self.scalar(self.run(op.body.block, args)[number_])

            return compute

        return [LazyView(owners, result(index)) for index in range(len(op.outs))]

    def _fold(self, op: FoldOp, operands: Sequence[Item]) -> Sequence[Item]:
        inputs = operands[: len(op.inputs)]
        shared = operands[len(op.inputs) : len(op.inputs) + len(op.shared)]
        inits = operands[len(op.inputs) + len(op.shared) :]
        owners = self._owners(op, inputs)

        def step(index: Value, accumulators: Sequence[Item]) -> list[Item]:
            args = [*accumulators, *self._slices(op, inputs, self._index(index)), *shared]
            return self.run(op.body.block, args)

        if isinstance(op, ReduceOp):
            return self._reduce(op, owners, inits, step)
        assert isinstance(op, ScanOp)
        accumulators = list(inits)
        rows: list[list[Value]] = [[] for _ in inits]
        for index in range(owners):
            after = step(Number(index, IndexType()), accumulators)
            kept = accumulators if op.exclusive is not None else after
            for row, item in zip(rows, kept, strict=True):
                row.append(self.scalar(item))
            accumulators = after
        return [ListView(self.vectors, row) for row in rows]

    def _reduce(
        self,
        op: ReduceOp,
        owners: int,
        inits: Sequence[Item],
        step: Callable[[Value, Sequence[Item]], list[Item]],
    ) -> Sequence[Item]:
        if owners <= UNROLL or op.tensor_accumulators:
            items = list(inits)
            for index in range(owners):
                items = step(Number(index, IndexType()), items)
            return items
        # The first round apart: with a number for the accumulator it often costs nothing.
        first = step(Number(0, IndexType()), inits)
        return self.repeat(1, owners, 1, first, step, op)


def _folded(op: Operation, operands: Sequence[Value]) -> Number | None:
    """The result of an operation on numbers that are known now."""
    ranges: list[Range] = []
    for value in operands:
        if not isinstance(value, Number):
            return None
        ranges.append(Range.constant(bits_of(value.type), value.value))
    rule = RULES.get(op.name)
    found = rule(op, ranges) if rule is not None else []
    known = found[0].value if len(found) == 1 and found[0] is not None else None
    return None if known is None else number(known, op.results[0].type)


def _length(attr: Attribute, op: Operation) -> int:
    assert isa(attr, TensorType)
    length = attr.get_shape()[0] if attr.get_num_dims() == 1 else -1
    if length < 0:
        raise UserError(
            f"'{op.name}' holds a {attr} in an element function",
            "simdram needs tensors there 1-D of static length",
            "give the type its length",
            location_of(op),
        )
    return length
