"""A small builder for lowered code: structured control flow, and index arithmetic that folds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    LocationAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.utils.hints import isa

OpT = TypeVar("OpT", bound=Operation)
ResultT = TypeVar("ResultT")

BinaryOp = (
    arith.AddiOp
    | arith.SubiOp
    | arith.MuliOp
    | arith.DivUIOp
    | arith.MinUIOp
    | arith.MaxUIOp
    | arith.AndIOp
)

Index = int | SSAValue
"""An index that is known now, or a value that holds it."""


@dataclass
class Loop:
    """A loop being built: its induction variable, carried values, and what it yields next."""

    index: SSAValue
    carried: Sequence[SSAValue]
    next: Sequence[SSAValue] = ()
    results: Sequence[SSAValue] = field(default_factory=tuple)


class Emitter:
    """Appends operations to a block; constants go once to the head of the outermost block.

    What is inserted `at` a place of the user's text, and has no place of its own, gets that one, so
    that errors and reports point there.
    """

    def __init__(self, block: Block):
        self.block = block
        self._entry = block
        self._constants: dict[Attribute, SSAValue] = {}
        # What was already computed, in this block and in those around it.
        self._known: list[dict[Hashable, Any]] = [{}]
        self._blocks = [block]
        self._last_constant: Operation | None = None
        self._location: LocationAttr | None = None

    def insert(self, op: OpT) -> OpT:
        """Appends `op` to the current block."""
        if self._location is not None and isinstance(op.location, UnknownLoc):
            op.location = self._location
        self.block.add_op(op)
        return op

    @contextmanager
    def at(self, origin: Operation) -> Generator[None]:
        """What is inserted meanwhile comes from `origin`."""
        before, self._location = self._location, origin.location
        yield
        self._location = before

    def constant(self, attr: Attribute) -> SSAValue:
        """The value of a constant, made at most once."""
        if attr not in self._constants:
            assert isa(attr, IntegerAttr) or isa(attr, FloatAttr | DenseIntOrFPElementsAttr)
            op = arith.ConstantOp(attr)
            self.at_head(op)
            self._constants[attr] = op.result
        return self._constants[attr]

    def at_head(self, op: OpT) -> OpT:
        """Puts `op` after the constants and buffers at the head of the outermost block."""
        if self._last_constant is not None:
            self._entry.insert_op_after(op, self._last_constant)
        elif self._entry.first_op is not None:
            self._entry.insert_op_before(op, self._entry.first_op)
        else:
            self._entry.add_op(op)
        self._last_constant = op
        return op

    def once(self, key: Hashable, build: Callable[[], ResultT]) -> ResultT:
        """What `build` made for this key here or in a block around; built if not yet there."""
        for level in self._known:
            if key in level:
                return level[key]
        result = build()
        self._known[-1][key] = result
        return result

    def once_outside(
        self, key: Hashable, operands: Sequence[SSAValue], build: Callable[[], ResultT]
    ) -> ResultT:
        """Like `once`, and built outside of the loops around that do not change the operands."""

        def built() -> ResultT:
            depth = max(self._depth(value) for value in operands)
            inner, self.block = self.block, self._blocks[depth]
            try:
                result = build()
            finally:
                self.block = inner
            self._known[depth][key] = result
            return result

        return self.once(key, built)

    def _depth(self, value: SSAValue) -> int:
        """How many of the blocks being built lie around the one that makes `value`."""
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        if home is not None and home in self._blocks:
            return self._blocks.index(home)
        return len(self._blocks) - 1

    def value(self, index: Index) -> SSAValue:
        """An index as a value."""
        if isinstance(index, int):
            return self.constant(IntegerAttr(index, IndexType()))
        return index

    # -- index arithmetic; all operands are at least 0 -----------------------------------------

    def _binary(self, kind: type[BinaryOp], lhs: Index, rhs: Index) -> SSAValue:
        left, right = self.value(lhs), self.value(rhs)
        return self.once((kind, left, right), lambda: self.insert(kind(left, right)).results[0])

    def add(self, lhs: Index, rhs: Index) -> Index:
        """lhs + rhs"""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs + rhs
        if lhs == 0:
            return rhs
        return lhs if rhs == 0 else self._binary(arith.AddiOp, lhs, rhs)

    def sub(self, lhs: Index, rhs: Index) -> Index:
        """lhs - rhs"""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs - rhs
        return lhs if rhs == 0 else self._binary(arith.SubiOp, lhs, rhs)

    def mul(self, lhs: Index, rhs: Index) -> Index:
        """lhs * rhs"""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs * rhs
        if lhs == 0 or rhs == 0:
            return 0
        if lhs == 1:
            return rhs
        return lhs if rhs == 1 else self._binary(arith.MuliOp, lhs, rhs)

    def div(self, lhs: Index, rhs: Index) -> Index:
        """lhs / rhs rounded down"""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs // rhs
        return lhs if rhs == 1 else self._binary(arith.DivUIOp, lhs, rhs)

    def ceil_div(self, lhs: Index, rhs: Index) -> Index:
        """lhs / rhs rounded up"""
        if rhs == 1:
            return lhs
        return self.div(self.add(lhs, self.sub(rhs, 1)), rhs)

    def minimum(self, lhs: Index, rhs: Index) -> Index:
        """The smaller one"""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return min(lhs, rhs)
        return self._binary(arith.MinUIOp, lhs, rhs)

    def maximum(self, lhs: Index, rhs: Index) -> Index:
        """The larger one"""
        if isinstance(lhs, int) and isinstance(rhs, int):
            return max(lhs, rhs)
        return self._binary(arith.MaxUIOp, lhs, rhs)

    def round_up(self, value: Index, multiple: int) -> Index:
        """`value` rounded up to a multiple of a power of two"""
        if isinstance(value, int):
            return -(-value // multiple) * multiple
        return self.round_down(self.add(value, multiple - 1), multiple)

    def round_down(self, value: Index, multiple: int) -> Index:
        """`value` rounded down to a multiple of a power of two"""
        if isinstance(value, int):
            return value // multiple * multiple
        return value if multiple == 1 else self._binary(arith.AndIOp, value, -multiple)

    def compare(self, predicate: str, lhs: Index, rhs: Index) -> SSAValue:
        """lhs `predicate` rhs, an i1"""
        op = arith.CmpiOp(self.value(lhs), self.value(rhs), predicate)
        return self.insert(op).result

    # -- memory --------------------------------------------------------------------------------

    def load(self, buffer: SSAValue, index: Index) -> SSAValue:
        """buffer[index]"""
        return self.insert(memref.LoadOp.get(buffer, [self.value(index)])).results[0]

    def store(self, value: SSAValue, buffer: SSAValue, index: Index) -> None:
        """buffer[index] = value"""
        self.insert(memref.StoreOp.get(value, buffer, [self.value(index)]))

    # -- control flow --------------------------------------------------------------------------

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Appends to `block` for a while."""
        outer, self.block = self.block, block
        self._known.append({})
        self._blocks.append(block)
        try:
            yield
        finally:
            self.block = outer
            self._known.pop()
            self._blocks.pop()

    @contextmanager
    def loop(
        self, low: Index, high: Index, step: Index = 1, carried: Sequence[SSAValue] = ()
    ) -> Generator[Loop]:
        """A loop; the body sets `next`, and `results` hold what the last round left."""
        block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
        block.args[0].name_hint = "i"
        loop = Loop(block.args[0], block.args[1:])
        with self.inside(block):
            yield loop
            self.insert(scf.YieldOp(*loop.next))
        first, last, stride = self.value(low), self.value(high), self.value(step)
        op = self.insert(scf.ForOp(first, last, stride, list(carried), Region(block)))
        loop.results = op.results

    def branch(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]] | None = None,
    ) -> Sequence[OpResult]:
        """An `scf.if`; the functions build its branches and return what they yield."""
        blocks: list[Block] = []
        results: Sequence[SSAValue] = ()
        for build in (then, otherwise):
            block = Block()
            with self.inside(block):
                yielded = build() if build is not None else ()
                self.insert(scf.YieldOp(*yielded))
            results = results or yielded
            blocks.append(block)
        types = [value.type for value in results]
        false_region = Region() if otherwise is None else Region(blocks[1])
        op = self.insert(scf.IfOp(condition, types, Region(blocks[0]), false_region))
        return op.results
