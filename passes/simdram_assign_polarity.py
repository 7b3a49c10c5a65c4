"""`simdram-assign-polarity`: objects are stored complemented where that saves row commands.

Before, a sum of two vectors of 32 bits that takes 224 commands:

    %x = simdram.transpose %a[%i] stride %one count %n : ... -> !simdram.vec<32>
    %y = simdram.transpose %b[%i] stride %one count %n : ... -> !simdram.vec<32>
    %s = simdram.bbop add(%x, %y) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>

After, 193 commands, as b - ~a - 1 = a + b:

    %x = simdram.transpose %a[%i] stride %one count %n : ... -> !simdram.vec<32, complemented>
    %y = simdram.transpose %b[%i] stride %one count %n : ... -> !simdram.vec<32>
    %s = simdram.bbop add(%x, %y) :
        (!simdram.vec<32, complemented>, !simdram.vec<32>) -> !simdram.vec<32>

The host complements for free what it transposes, fills and reads back. So every object gets the
polarity that makes all bbops together cheapest, by the commands of their programs in the library,
each times the rounds of the loops around it (16 where they are not known). What a loop carries has
one polarity in and after the loop: an accumulator is complemented over the whole loop. Where it
comes in the other way, a `copy` before the loop complements it, at two commands a bit.
Scalars that only bbops read are addressed in the constant rows, and each of these bbops gets the
polarity that it likes. The choice itself is in `mapping/polarity.py`: exact, but for programs whose
objects meet in unusually many ways.

Comes before `simdram-allocate-rows`. A function that has complemented objects already stays as it
is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from cim_opt.dialects.simdram import (
    BbopOp,
    FillOp,
    MulScalarOp,
    Opcode,
    ReadOp,
    TransposeOp,
    VecType,
    is_complemented,
    width_of,
)
from cim_opt.dialects.simdram_polarity import variant
from cim_opt.dialects.simdram_programs import bbop_program
from cim_opt.errors import UserError
from cim_opt.mapping.polarity import Operation as Cost
from cim_opt.mapping.polarity import Polarity, assign
from cim_opt.microprograms.library import Library
from cim_opt.microprograms.library import library as library_of

UNKNOWN_ROUNDS = 16
"""Rounds that a loop counts as where its bounds are not constants."""

_SOME_SCALARS = [0x9E37_79B9_7F4A_7C15 * n for n in range(1, 17)]
"""Their low bits stand for scalars that are not known."""

_FREE = TransposeOp | FillOp | ReadOp | scf.YieldOp
"""Operations that take and give objects of either polarity at no cost."""


@dataclass(frozen=True)
class SimdramAssignPolarityPass(ModulePass):
    """Gives every vertical object its polarity; see the module's documentation."""

    name = "simdram-assign-polarity"

    library: str = "cim-opt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        library = library_of(self.library)
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            if not any(is_complemented(value) for value in _objects(function)):
                _Assignment(function, library).run()


def _objects(function: FuncOp) -> Iterator[SSAValue]:
    """All vertical objects of a function."""
    for op in function.walk():
        inner = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *inner):
            if isinstance(value.type, VecType):
                yield value


class _Assignment:
    """Polarities of one function."""

    def __init__(self, function: FuncOp, library: Library):
        self.function = function
        self.costs = _Costs(library)
        self.groups = _Groups()
        self.constants: dict[tuple[Operation, SSAValue], int] = {}
        """Choices for constants, one for each bbop that reads one."""

    def run(self) -> None:
        for op in self.function.walk():
            if isinstance(op, scf.ForOp):
                self._join(op)
        objects = [value for value in _objects(self.function) if not _is_constant(value)]
        numbers = [self.groups.number(value) for value in objects]
        operations = [cost for op in self.function.walk() for cost in self._costs_of(op)]
        chosen = assign(self.groups.count, operations).complemented
        for value, number in zip(objects, numbers, strict=True):
            if chosen[number]:
                Rewriter.replace_value_with_new_type(value, _complement(value))
        self._complement_constants(chosen)
        for op in list(self.function.walk()):
            if isinstance(op, scf.ForOp):
                _enter(op)

    def _join(self, loop: scf.ForOp) -> None:
        """What a loop carries has one polarity."""
        last = loop.body.block.last_op
        assert isinstance(last, scf.YieldOp)
        for values in zip(loop.body.block.args[1:], last.arguments, loop.results, strict=True):
            if isinstance(values[0].type, VecType):
                for other in values[1:]:
                    self.groups.join(values[0], other)

    def _costs_of(self, op: Operation) -> Iterator[Cost]:
        if isinstance(op, BbopOp):
            values = [*(self._operand(op, x) for x in op.args), self.groups.number(op.result)]
            yield _cost(values, self.costs.of(op), _rounds(op))
        elif isinstance(op, MulScalarOp):
            values = [self._operand(op, op.arg), self.groups.number(op.result)]
            yield _cost(values, self.costs.of_product(op), _rounds(op))
        elif isinstance(op, scf.ForOp):
            for value, inner in zip(op.iter_args, op.body.block.args[1:], strict=True):
                if isinstance(value.type, VecType):
                    values = [self.groups.number(value), self.groups.number(inner)]
                    yield _cost(values, self.costs.of_entry(width_of(value)), _rounds(op))
        elif not isinstance(op, _FREE):
            inner = [arg for region in op.regions for block in region.blocks for arg in block.args]
            for value in (*op.operands, *op.results, *inner):
                if isinstance(value.type, VecType) and not _is_constant(value):
                    yield Cost((self.groups.number(value),), {(False,): 0})

    def _operand(self, op: BbopOp | MulScalarOp, value: SSAValue) -> int:
        if not _is_constant(value):
            return self.groups.number(value)
        if (op, value) not in self.constants:
            self.constants[op, value] = self.groups.fresh()
        return self.constants[op, value]

    def _complement_constants(self, chosen: Polarity) -> None:
        """Fills the complement beside a constant, for those bbops that chose it."""
        made: dict[SSAValue, SSAValue] = {}
        for (op, value), number in self.constants.items():
            if not chosen[number]:
                continue
            if value not in made:
                made[value] = _complemented_fill(value)
            for index, operand in enumerate(op.operands):
                if operand is value:
                    op.operands[index] = made[value]
        for value in made:
            if not value.uses:
                assert isinstance(value.owner, FillOp)
                value.owner.detach()
                value.owner.erase()


def _cost(values: list[int], commands: dict[Polarity, int], rounds: int) -> Cost:
    """What an operation costs, from its commands by the polarity of `values`; some may be equal."""
    unique = tuple(dict.fromkeys(values))
    costs: dict[Polarity, int] = {}
    for key in product((False, True), repeat=len(unique)):
        polarity = tuple(key[unique.index(value)] for value in values)
        if polarity in commands:
            costs[key] = rounds * commands[polarity]
    return Cost(unique, costs)


def _enter(loop: scf.ForOp) -> None:
    """Complements what comes into a loop in another polarity than it is carried."""
    for index, (value, inner) in enumerate(
        zip(loop.iter_args, loop.body.block.args[1:], strict=True)
    ):
        if isinstance(inner.type, VecType) and value.type != inner.type:
            copy = BbopOp(Opcode.COPY, [value], inner.type)
            copy.location = loop.location
            assert loop.parent is not None
            loop.parent.insert_op_before(copy, loop)
            loop.operands[3 + index] = copy.result


def _complement(value: SSAValue) -> VecType:
    return VecType(width_of(value), complemented=True)


def _complemented_fill(value: SSAValue) -> SSAValue:
    fill = value.owner
    assert isinstance(fill, FillOp) and fill.parent is not None
    copy = fill.clone()
    fill.parent.insert_op_after(copy, fill)
    return Rewriter.replace_value_with_new_type(copy.result, _complement(value))


def _is_constant(value: SSAValue) -> bool:
    """Whether a value is a scalar that needs no rows, as only bbops read it."""
    return isinstance(value.owner, FillOp) and all(
        isinstance(use.operation, BbopOp | MulScalarOp) for use in value.uses
    )


class _Groups:
    """Values that have one polarity; each group has a number."""

    def __init__(self) -> None:
        self.parents: dict[SSAValue, SSAValue] = {}
        self.numbers: dict[SSAValue, int] = {}
        self.count = 0

    def join(self, left: SSAValue, right: SSAValue) -> None:
        """Before the first number is asked for."""
        first, second = self._root(left), self._root(right)
        if first is not second:
            self.parents[second] = first

    def _root(self, value: SSAValue) -> SSAValue:
        while value in self.parents:
            value = self.parents[value]
        return value

    def number(self, value: SSAValue) -> int:
        root = self._root(value)
        if root not in self.numbers:
            self.numbers[root] = self.fresh()
        return self.numbers[root]

    def fresh(self) -> int:
        """A number of its own."""
        self.count += 1
        return self.count - 1


class _Costs:
    """Commands of bbops by polarity."""

    def __init__(self, library: Library):
        self.library = library
        self.known: dict[object, dict[Polarity, int]] = {}

    def of(self, op: BbopOp) -> dict[Polarity, int]:
        """Of a bbop, by the polarity of its operands and its result."""
        amount = None if op.amount is None else op.amount.value.data
        width, out = width_of(op.args[-1]), width_of(op.result)
        key = (op.opcode.data, width, out, amount)
        if key not in self.known:
            self.known[key] = self._counted(*key, operands=len(op.args))
        return self.known[key]

    def of_entry(self, width: int) -> dict[Polarity, int]:
        """Of bringing an object into a loop, by its polarity before and in the loop."""
        flip = self.library.counts("not", width).total
        return {(x, y): flip if x != y else 0 for x in (False, True) for y in (False, True)}

    def of_product(self, op: MulScalarOp) -> dict[Polarity, int]:
        """Of a product with a scalar: the mean over some scalars where it is not a constant."""
        width, scalar = width_of(op.result), _constant(op.scalar)
        key = (width, scalar)
        if key not in self.known:
            scalars = _SOME_SCALARS if scalar is None else [scalar]
            self.known[key] = dict(self._products(width, scalars))
        return self.known[key]

    def _products(self, width: int, scalars: Sequence[int]) -> Iterator[tuple[Polarity, int]]:
        for complemented in (False, True):
            options = {"out_complemented": True} if complemented else {}
            try:
                counts = [
                    self.library.counts("mul_const", width, value=x % (1 << width), **options).total
                    for x in scalars
                ]
            except UserError:  # the library does not have this one
                if not complemented:
                    raise
                continue
            yield (False, complemented), sum(counts) // len(scalars)

    def _counted(
        self, opcode: Opcode, width: int, out: int, amount: int | None, operands: int
    ) -> dict[Polarity, int]:
        """Of every polarity of operands and result that the library has a program for."""
        counted: dict[Polarity, int] = {}
        for polarity in product((False, True), repeat=operands + 1):
            if variant(str(opcode), polarity[:-1], polarity[-1]) is None:
                continue
            try:
                program = bbop_program(self.library, opcode, width, out, amount, polarity)
            except UserError:  # the library does not have this one
                if not any(polarity):
                    raise
                continue
            counted[polarity] = program.counts.total
        return counted


def _rounds(op: Operation) -> int:
    """How often the loops around an operation run it, as far as is known."""
    rounds = 1
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        if isinstance(parent, scf.ForOp):
            rounds *= _loop_rounds(parent)
        parent = parent.parent_op()
    return rounds


def _loop_rounds(loop: scf.ForOp) -> int:
    low, high, step = (_constant(value) for value in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None or step < 1:
        return UNKNOWN_ROUNDS
    return max(1, -(-(high - low) // step))


def _constant(value: SSAValue) -> int | None:
    if isinstance(value, BlockArgument) or not isinstance(value.owner, arith.ConstantOp):
        return None
    attr = value.owner.value
    return attr.value.data if isa(attr, IntegerAttr) else None
