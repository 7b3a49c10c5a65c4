"""Element functions become kernel code: tensors turn into views of WRAM buffers.

A slice, a shared tensor or a tensor accumulator is a `View`: a buffer, where the view starts, and
its length. Nested patterns become loops over views; their results live in scratch buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ReduceOp, ScanOp, YieldOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.upmem_last_use import last_use

FEW = 4
"""Elements up to which a copy is no loop."""


@dataclass(frozen=True)
class View:
    """`length` elements of a WRAM buffer from element `base` on."""

    buffer: SSAValue
    base: Index
    length: int
    mutable: bool = False

    def same_place(self, other: View) -> bool:
        """True when both are the same elements of the same buffer."""
        return (self.buffer, self.base, self.length) == (other.buffer, other.base, other.length)


def frozen(value: Value) -> Value:
    """The same value, not to be overwritten."""
    return replace(value, mutable=False) if isinstance(value, View) else value


Value = SSAValue | View
"""A scalar, or where a tensor lies."""
Replaced = Mapping[Operation, Callable[[dict[SSAValue, Value]], Sequence[Value]]]
"""What emits the code of some operations."""
_NOTHING: Replaced = {}


def static_length(attr: Attribute, op: Operation) -> int:
    """Length of a 1-D tensor that a kernel holds. Raises UserError when it is `?`."""
    assert isa(attr, TensorType)
    length = attr.get_shape()[0] if attr.get_num_dims() == 1 else DYNAMIC_INDEX
    if length == DYNAMIC_INDEX:
        raise UserError(
            f"'{op.name}' holds a {attr} on a DPU",
            "upmem needs tensors inside element functions, and shared ones, 1-D of static length",
            "give the type its length",
            location_of(op),
        )
    return length


class BodyInliner:
    """Copies element functions into kernel code.

    `scratch` allocates a buffer of a tasklet (element type, length), `table` gives the view of a
    constant tensor.
    """

    def __init__(
        self,
        emit: Emitter,
        scratch: Callable[[Attribute, int], SSAValue],
        table: Callable[[DenseIntOrFPElementsAttr], View],
    ):
        self.emit = emit
        self._scratch = scratch
        self._table = table

    def inline(
        self, block: Block, args: Sequence[Value], replaced: Replaced | None = None
    ) -> list[Value]:
        """Copies `block` with its arguments bound to `args`; returns what it yields.

        For operations of the block in `replaced` their functions emit the code, given the values
        that are known so far, and return the results.
        """
        values: dict[SSAValue, Value] = dict(zip(block.args, args, strict=True))
        return self._inline_ops(block, values, replaced or {})

    def scalar(self, value: Value) -> SSAValue:
        """A value that types say is a scalar."""
        assert isinstance(value, SSAValue)
        return value

    def copy(self, source: View, target: View) -> None:
        """Copies elements from view to view; more than a few in a loop."""
        if source.same_place(target):
            return
        emit = self.emit
        if source.length <= FEW:
            values = [
                emit.load(source.buffer, emit.add(source.base, i)) for i in range(source.length)
            ]
            for i, value in enumerate(values):
                emit.store(value, target.buffer, emit.add(target.base, i))
            return
        with emit.loop(0, source.length) as loop:
            value = emit.load(source.buffer, emit.add(source.base, loop.index))
            emit.store(value, target.buffer, emit.add(target.base, loop.index))

    def inline_independent(
        self, block: Block, args: Sequence[Value], accumulators: Sequence[SSAValue]
    ) -> dict[SSAValue, Value]:
        """Copies the operations of `block` that need none of `accumulators`.

        Returns the values so far; `inline_rest` copies the others. What works on a tensor that an
        earlier one of the others reads is left to them: it may overwrite the tensor.
        """
        values: dict[SSAValue, Value] = dict(zip(block.args, args, strict=True))
        needing = set(accumulators)
        for op in block.ops:
            operands = [operand for inner in op.walk() for operand in inner.operands]
            if any(operand in needing for operand in operands):
                needing.update(op.results)
                needing.update(value for value in operands if isa(value.type, TensorType))
            elif not isinstance(op, YieldOp):
                values.update(zip(op.results, self._inline_op(op, values), strict=True))
        return values

    def inline_rest(self, block: Block, values: dict[SSAValue, Value]) -> list[Value]:
        """Copies what `inline_independent` has left; returns what the block yields."""
        return self._inline_ops(block, values)

    # -- one operation after the other ---------------------------------------------------------

    def _inline_ops(
        self, block: Block, values: dict[SSAValue, Value], replaced: Replaced = _NOTHING
    ) -> list[Value]:
        yielded: list[Value] = []
        for op in block.ops:
            if op.results and all(result in values for result in op.results):
                continue
            if isinstance(op, YieldOp | scf.YieldOp):
                yielded = [values[operand] for operand in op.operands]
            else:
                special = replaced.get(op)
                results = special(values) if special else self._inline_op(op, values)
                values.update(zip(op.results, results, strict=True))
        return yielded

    def _inline_op(self, op: Operation, values: dict[SSAValue, Value]) -> Sequence[Value]:
        match op:
            case arith.ConstantOp():
                return [self._constant(op)]
            case tensor.ExtractOp():
                view, index = values[op.tensor], _known(self.scalar(values[op.indices[0]]))
                assert isinstance(view, View)
                return [self.emit.load(view.buffer, self.emit.add(view.base, index))]
            case tensor.InsertOp():
                return [self._insert(op, values)]
            case tensor.DimOp():
                view = values[op.source]
                assert isinstance(view, View)
                return [self.emit.value(view.length)]
            case tensor.CastOp():
                view = values[op.source]
                return [view if last_use(op, op.source) else frozen(view)]
            case tensor.FromElementsOp():
                return [self._from_elements(op, values)]
            case tensor.SplatOp():
                return [self._splat(op, values)]
            case tensor.EmptyOp():
                return [self._new_view(op.results[0].type, op)]
            case scf.IfOp():
                return self._if(op, values)
            case scf.ForOp():
                return self._for(op, values)
            case FoldOp():
                return self._fold(op, [frozen(values[operand]) for operand in op.operands])
            case PatternOp():
                return self._pattern(op, [frozen(values[operand]) for operand in op.operands])
            case _:
                return self._copy_scalar_op(op, values)

    def _copy_scalar_op(self, op: Operation, values: dict[SSAValue, Value]) -> Sequence[Value]:
        if op.regions or any(isa(v.type, TensorType) for v in (*op.operands, *op.results)):
            raise UserError(
                f"'{op.name}' in an element function",
                "upmem takes arith and math on scalars, tensor.extract, insert, from_elements, "
                "splat, empty, dim and cast, scf.if and scf.for, and nested patterns",
                "rewrite it with these",
                location_of(op),
            )
        mapper = {operand: self.scalar(values[operand]) for operand in op.operands}
        return list(self.emit.insert(op.clone(dict(mapper))).results)

    def _constant(self, op: arith.ConstantOp) -> Value:
        if isinstance(op.value, DenseIntOrFPElementsAttr):
            return self._table(op.value)
        return self.emit.constant(op.value)

    # -- tensors -------------------------------------------------------------------------------

    def _new_view(self, attr: Attribute, op: Operation) -> View:
        assert isa(attr, TensorType)
        length = static_length(attr, op)
        return View(self._scratch(attr.element_type, length), 0, length, mutable=True)

    def _copy_of(self, view: View) -> View:
        target = self._room_like(view)
        self.copy(view, target)
        return target

    def _room_like(self, view: View) -> View:
        assert isa(view.buffer.type, MemRefType)
        buffer = self._scratch(view.buffer.type.element_type, view.length)
        return View(buffer, 0, view.length, mutable=True)

    def _insert(self, op: tensor.InsertOp, values: dict[SSAValue, Value]) -> View:
        view = values[op.dest]
        assert isinstance(view, View)
        if not (view.mutable and last_use(op, op.dest)):
            view = self._copy_of(view)
        index = _known(self.scalar(values[op.indices[0]]))
        self.emit.store(
            self.scalar(values[op.scalar]), view.buffer, self.emit.add(view.base, index)
        )
        return view

    def _from_elements(self, op: tensor.FromElementsOp, values: dict[SSAValue, Value]) -> View:
        view = self._new_view(op.results[0].type, op)
        for index, operand in enumerate(op.operands):
            self.emit.store(self.scalar(values[operand]), view.buffer, index)
        return view

    def _splat(self, op: tensor.SplatOp, values: dict[SSAValue, Value]) -> View:
        view = self._new_view(op.results[0].type, op)
        self.fill(view, self.scalar(values[op.operands[0]]))
        return view

    def fill(self, view: View, value: SSAValue) -> None:
        """Stores `value` into every element of the view."""
        with self.emit.loop(0, view.length) as loop:
            self.emit.store(value, view.buffer, self.emit.add(view.base, loop.index))

    # -- control flow --------------------------------------------------------------------------

    def _if(self, op: scf.IfOp, values: dict[SSAValue, Value]) -> Sequence[Value]:
        blocks: list[Block] = []
        yields: list[list[Value]] = []
        for region in op.regions:
            if region.blocks:
                blocks.append(Block())
                with self.emit.inside(blocks[-1]):
                    yields.append(self._inline_ops(region.block, dict(values)))
        results = [self._joined(op, n, [y[n] for y in yields]) for n in range(len(op.results))]
        for block, yielded in zip(blocks, yields, strict=True):
            with self.emit.inside(block):
                _check_lengths(op, yielded, results)
                self.settle(yielded, results)
                self.emit.insert(scf.YieldOp(*_scalars(yielded)))
        types = [value.type for value in _scalars(yields[0])]
        condition = self.scalar(values[op.cond])
        then, *otherwise = (Region(block) for block in blocks)
        branches = scf.IfOp(condition, types, then, otherwise[0] if otherwise else None)
        lowered = iter(self.emit.insert(branches).results)
        return [v if isinstance(v, View) else next(lowered) for v in _unshared(results)]

    def _joined(self, op: scf.IfOp, number: int, yielded: Sequence[Value]) -> Value:
        """A result of all branches: where they left it, or in a place of its own."""
        first = yielded[0]
        if not isinstance(first, View):
            return first
        views = [view for view in yielded if isinstance(view, View)]
        if not all(first.same_place(view) for view in views):
            return self._room_like(first)
        sources = [block.last_op.operands[number] for block in _blocks(op) if block.last_op]
        ends_here = all(op.is_ancestor(source.owner) or last_use(op, source) for source in sources)
        return first if ends_here and all(view.mutable for view in views) else frozen(first)

    def _for(self, op: scf.ForOp, values: dict[SSAValue, Value]) -> Sequence[Value]:
        carried = self._carried(op, values)
        low, high, step = (self.scalar(values[v]) for v in (op.lb, op.ub, op.step))
        with self.emit.loop(low, high, step, _scalars(carried)) as loop:
            inner = iter(loop.carried)
            args = [v if isinstance(v, View) else next(inner) for v in carried]
            bound = dict(values)
            bound.update(zip(op.body.block.args, [loop.index, *args], strict=True))
            yielded = self._inline_ops(op.body.block, bound)
            _check_lengths(op, yielded, carried)
            self.settle(yielded, carried)
            loop.next = _scalars(yielded)
        outer = iter(loop.results)
        return [v if isinstance(v, View) else next(outer) for v in carried]

    def _carried(self, op: scf.ForOp, values: dict[SSAValue, Value]) -> list[Value]:
        """What a loop starts from; a tensor that others read too is copied before it changes."""
        block = op.body.block
        assert block.last_op is not None
        carried: list[Value] = []
        rows = zip(op.iter_args, block.args[1:], block.last_op.operands, strict=True)
        for operand, inside, yielded in rows:
            value = values[operand]
            if isinstance(value, View):
                alone = not any(isinstance(v, View) and value.same_place(v) for v in carried)
                if alone and yielded is inside:
                    value = frozen(value)
                elif not (alone and value.mutable and last_use(op, operand)):
                    value = self._copy_of(value)
            carried.append(value)
        return carried

    # -- nested patterns -----------------------------------------------------------------------

    def _slice(self, op: PatternOp, view: Value, owner: Index) -> Value:
        """What the element function sees of an input: an element, or a view of its slice."""
        assert isinstance(view, View)
        base = self.emit.add(view.base, self.emit.mul(owner, op.group_size))
        if op.takes_slices:
            return View(view.buffer, base, op.slice_length)
        return self.emit.load(view.buffer, base)

    def _owners(self, op: PatternOp) -> int:
        return static_owners(op)

    def _pattern(self, op: PatternOp, operands: Sequence[Value]) -> Sequence[Value]:
        assert not isinstance(op, FilterBase)
        inputs = operands[: len(op.inputs)]
        shared = operands[len(op.inputs) :]
        owners = self._owners(op)
        targets = [self._target(op, index, owners) for index in range(len(op.outs))]
        with self.emit.loop(0, owners) as loop:
            args = [self._slice(op, view, loop.index) for view in inputs]
            yielded = self.inline(op.body.block, [*args, *shared])
            self._store_all(yielded, targets, loop.index)
        return targets

    def _target(self, op: PatternOp, index: int, owners: int) -> View:
        attr = op.outs[index].type
        assert isa(attr, TensorType)
        return View(self._scratch(attr.element_type, owners), 0, owners, mutable=True)

    def _store_all(self, values: Sequence[Value], targets: Sequence[View], index: Index) -> None:
        for value, target in zip(values, targets, strict=True):
            self.emit.store(self.scalar(value), target.buffer, self.emit.add(target.base, index))

    def _fold(self, op: FoldOp, operands: Sequence[Value]) -> Sequence[Value]:
        inputs = operands[: len(op.inputs)]
        shared = operands[len(op.inputs) : len(op.inputs) + len(op.shared)]
        inits = operands[len(op.inputs) + len(op.shared) :]
        if isinstance(op, ScanOp):
            return self._scan(op, inputs, shared, [self.scalar(value) for value in inits])
        assert isinstance(op, ReduceOp)
        if op.tensor_accumulators:
            return self._reduce_tables(op, inputs, shared, inits)
        owners = self._owners(op)
        with self.emit.loop(0, owners, 1, [self.scalar(v) for v in inits]) as loop:
            args = [self._slice(op, view, loop.index) for view in inputs]
            yielded = self.inline(op.body.block, [*loop.carried, *args, *shared])
            loop.next = [self.scalar(value) for value in yielded]
        return list(loop.results)

    def _scan(
        self,
        op: ScanOp,
        inputs: Sequence[Value],
        shared: Sequence[Value],
        inits: Sequence[SSAValue],
    ) -> Sequence[Value]:
        owners = self._owners(op)
        targets = [self._target(op, index, owners) for index in range(len(op.outs))]
        with self.emit.loop(0, owners, 1, inits) as loop:
            if op.exclusive is not None:
                self._store_all(loop.carried, targets, loop.index)
            args = [self._slice(op, view, loop.index) for view in inputs]
            yielded = self.inline(op.body.block, [*loop.carried, *args, *shared])
            if op.exclusive is None:
                self._store_all(yielded, targets, loop.index)
            loop.next = [self.scalar(value) for value in yielded]
        return targets

    def _reduce_tables(
        self,
        op: ReduceOp,
        inputs: Sequence[Value],
        shared: Sequence[Value],
        inits: Sequence[Value],
    ) -> Sequence[Value]:
        tables: list[Value] = []
        for init in inits:
            assert isinstance(init, View)
            table = self._new_view(op.inits[len(tables)].type, op)
            self.copy(init, table)
            tables.append(table)
        with self.emit.loop(0, self._owners(op)) as loop:
            args = [self._slice(op, view, loop.index) for view in inputs]
            self.update_tables(op.body.block, tables, [*args, *shared])
        return tables

    def update_tables(self, block: Block, tables: Sequence[Value], args: Sequence[Value]) -> None:
        """Runs an element function whose accumulators are tensors, in place."""
        self.settle(self.inline(block, [*tables, *args]), tables)

    def settle(self, yielded: Sequence[Value], targets: Sequence[Value]) -> None:
        """Copies yielded tensors to where `targets` are, unless they are there."""
        moves = [
            (value, target)
            for value, target in zip(yielded, targets, strict=True)
            if isinstance(value, View) and isinstance(target, View)
            if not value.same_place(target)
        ]
        written = {target.buffer for _, target in moves}
        # All are read before any is written: one may lie where another goes.
        sources = [self._copy_of(v) if v.buffer in written else v for v, _ in moves]
        for source, (_, target) in zip(sources, moves, strict=True):
            self.copy(source, target)


def _check_lengths(op: Operation, values: Sequence[Value], targets: Sequence[Value]) -> None:
    for value, target in zip(values, targets, strict=True):
        if isinstance(value, SSAValue) or isinstance(target, SSAValue):
            continue
        if value.length == target.length:
            continue
        raise UserError(
            f"'{op.name}' yields tensors of {target.length} and of {value.length} elements",
            "upmem keeps a tensor that control flow changes in one place of WRAM",
            "make them of one length",
            location_of(op),
        )


def _known(index: SSAValue) -> Index:
    """The number that an index is, if it is a constant."""
    if isinstance(index.owner, arith.ConstantOp) and isa(index.owner.value, IntegerAttr):
        return index.owner.value.value.data
    return index


def _scalars(values: Sequence[Value]) -> list[SSAValue]:
    return [value for value in values if isinstance(value, SSAValue)]


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]


def _unshared(values: Sequence[Value]) -> list[Value]:
    """The same values; tensors that lie in one place are not to be overwritten."""
    places = [value for value in values if isinstance(value, View)]
    return [
        frozen(value)
        if isinstance(value, View) and sum(value.same_place(other) for other in places) > 1
        else value
        for value in values
    ]


def static_owners(op: PatternOp) -> int:
    """How often a nested pattern's element function runs; its inputs have static lengths."""
    lengths = {static_length(value.type, op) for value in op.inputs}
    return max(0, (max(lengths) - op.window_size + 1) // op.group_size)
