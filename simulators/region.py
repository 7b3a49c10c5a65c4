"""Runs element functions for whole batches of lanes with NumPy.

A block is turned once into a list of steps over numbered registers (a `Program`), and then run for
as many batches as there are chunks of data. Everything in it is NumPy: no step loops over lanes.

    regions = Regions(evaluate_pattern)
    outs = regions.program(op.body.block).run([x, y], Batch((N,)))

Control flow: `scf.if` on a value that differs between lanes runs both branches, each with the other
lanes masked off, and selects; on a uniform one it runs the branch. `scf.for` with uniform bounds is
a Python loop; with bounds that differ it runs until no lane is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import PatternOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators import batch as lanes
from cim_opt.simulators.batch import Batch, Shape
from cim_opt.simulators.elementwise import constant_value, dtype_of, function_of
from cim_opt.simulators.in_place import may_overwrite, overwritten, yields_fresh
from cim_opt.simulators.integer_functions import Values, where

Registers = list[Any]
Step = Callable[[Registers, Batch], None]
PatternEvaluator = Callable[["Regions", PatternOp, Sequence[Values], Batch], Sequence[Values]]


@dataclass(frozen=True, slots=True)
class Program:
    """The steps of an isolated block. Registers 0.. hold its arguments."""

    steps: Sequence[Step]
    registers: int
    results: Sequence[int]

    def run(self, args: Sequence[Values], batch: Batch) -> list[Values]:
        """What the block yields for `args`, in these lanes.

        Results may share memory with arguments, and have fewer lanes where they are uniform.
        Raises UserError for what the program does wrong, such as an index out of range.
        """
        registers: Registers = [*args, *([None] * (self.registers - len(args)))]
        for step in self.steps:
            step(registers, batch)
        return [registers[slot] for slot in self.results]


class Regions:
    """Programs of blocks, made when first asked for. `evaluate` runs nested pattern operations."""

    def __init__(self, evaluate: PatternEvaluator) -> None:
        self.evaluate = evaluate
        self._programs: dict[Block, Program] = {}

    def program(self, block: Block) -> Program:
        """The program of the single block of an element or combine function."""
        program = self._programs.get(block)
        if program is None:
            program = _Compiler(self).program(block)
            self._programs[block] = program
        return program


class _Compiler:
    """Turns one isolated block, with the blocks nested in it, into steps on shared registers."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.slots: dict[SSAValue, int] = {}

    def program(self, block: Block) -> Program:
        self._number(block.args)
        steps, results = self.block(block)
        return Program(steps, len(self.slots), results)

    def block(self, block: Block) -> tuple[list[Step], list[int]]:
        """Steps of a block whose arguments have their numbers, and the registers it yields."""
        steps = list[Step]()
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return steps, self.read(op.operands)
            steps.append(self.step(op))
        return steps, []

    def step(self, op: Operation) -> Step:
        if isinstance(op, PatternOp):
            return self._pattern(op)
        maker = _MAKERS.get(type(op), _Compiler.make_elementwise)
        return maker(self, op)

    def read(self, values: Sequence[SSAValue]) -> list[int]:
        return [self.slots[value] for value in values]

    def _number(self, values: Sequence[SSAValue]) -> list[int]:
        for value in values:
            self.slots[value] = len(self.slots)
        return [self.slots[value] for value in values]

    # -- one operation each ----------------------------------------------------------------------

    def make_elementwise(self, op: Operation) -> Step:
        function = function_of(op)
        sources, targets = self.read(op.operands), self._number(op.results)
        if len(targets) > 1:
            return _several_results(function, sources, targets)
        return _one_result(function, sources, targets[0])

    def make_constant(self, op: Operation) -> Step:
        value = constant_value(op)
        target = self._number(op.results)[0]
        is_tensor = lanes.rank_of(op.results[0].type) > 0

        def step(registers: Registers, batch: Batch) -> None:
            registers[target] = lanes.in_all_lanes(value, batch) if is_tensor else value

        return step

    def _pattern(self, op: PatternOp) -> Step:
        sources, targets = self.read(op.operands), self._number(op.results)
        regions = self.regions

        def step(registers: Registers, batch: Batch) -> None:
            args = [registers[slot] for slot in sources]
            _write(registers, targets, regions.evaluate(regions, op, args, batch))

        return step

    def make_extract(self, op: Operation) -> Step:
        source, *indices = self.read(op.operands)
        target = self._number(op.results)[0]

        def step(registers: Registers, batch: Batch) -> None:
            positions = [registers[slot] for slot in indices]
            registers[target] = lanes.extract(op, batch, registers[source], positions)

        return step

    def make_insert(self, op: Operation) -> Step:
        assert isinstance(op, tensor.InsertOp)
        value, dest, *indices = self.read(op.operands)
        target = self._number(op.results)[0]
        in_place = may_overwrite(op)

        def step(registers: Registers, batch: Batch) -> None:
            positions = [registers[slot] for slot in indices]
            registers[target] = lanes.insert(
                op, batch, in_place, registers[value], registers[dest], positions
            )

        return step

    def make_from_elements(self, op: Operation) -> Step:
        shape = _static_shape(op)
        sources, target = self.read(op.operands), self._number(op.results)[0]

        def step(registers: Registers, batch: Batch) -> None:
            elements = [registers[slot] for slot in sources]
            registers[target] = lanes.from_elements(shape, batch, elements)

        return step

    def make_splat(self, op: Operation) -> Step:
        shape = _static_shape(op)
        source, target = self.read(op.operands[:1])[0], self._number(op.results)[0]

        def step(registers: Registers, batch: Batch) -> None:
            registers[target] = lanes.splat(shape, batch, registers[source])

        return step

    def make_empty(self, op: Operation) -> Step:
        shape, dtype = _static_shape(op), dtype_of(op.results[0].type)
        target = self._number(op.results)[0]

        def step(registers: Registers, batch: Batch) -> None:
            registers[target] = np.zeros(shape + (1,) * batch.rank, dtype)

        return step

    def make_dim(self, op: Operation) -> Step:
        source, index = self.read(op.operands)
        rank = lanes.rank_of(op.operands[0].type)
        target = self._number(op.results)[0]

        def step(registers: Registers, batch: Batch) -> None:
            axis = lanes.checked(op, registers[index], rank, batch)
            shape = np.array(registers[source].shape[:rank], np.int64)
            registers[target] = shape[axis]

        return step

    def make_cast(self, op: Operation) -> Step:
        source, target = self.read(op.operands)[0], self._number(op.results)[0]

        def step(registers: Registers, batch: Batch) -> None:
            registers[target] = registers[source]

        return step

    def make_if(self, op: Operation) -> Step:
        assert isinstance(op, scf.IfOp)
        condition = self.slots[op.cond]
        branches = (self._branch(op.true_region.blocks), self._branch(op.false_region.blocks))
        targets = self._number(op.results)

        def step(registers: Registers, batch: Batch) -> None:
            _if(registers, batch, registers[condition], branches, targets)

        return step

    def _branch(self, blocks: Sequence[Block]) -> Branch:
        return self.block(blocks[0]) if blocks else ([], [])

    def make_for(self, op: Operation) -> Step:
        assert isinstance(op, scf.ForOp)
        block = op.body.block
        bounds = self.read([op.lb, op.ub, op.step])
        inits = self.read(op.iter_args)
        index, *carried = self._number(block.args)
        steps, yielded = self.block(block)
        overwritten_args = frozenset(arg.index - 1 for arg in overwritten(block))
        shared = frozenset(
            number for number, value in enumerate(_yielded(block)) if not yields_fresh(value)
        )
        loop = _Loop(
            op,
            bounds,
            inits,
            index,
            carried,
            steps,
            yielded,
            self._number(op.results),
            overwritten_args,
            shared,
        )
        return loop.run


Branch = tuple[Sequence[Step], Sequence[int]]

_MAKERS: dict[type[Operation], Callable[[_Compiler, Operation], Step]] = {
    arith.ConstantOp: _Compiler.make_constant,
    tensor.ExtractOp: _Compiler.make_extract,
    tensor.InsertOp: _Compiler.make_insert,
    tensor.FromElementsOp: _Compiler.make_from_elements,
    tensor.SplatOp: _Compiler.make_splat,
    tensor.EmptyOp: _Compiler.make_empty,
    tensor.DimOp: _Compiler.make_dim,
    tensor.CastOp: _Compiler.make_cast,
    scf.IfOp: _Compiler.make_if,
    scf.ForOp: _Compiler.make_for,
}


def _static_shape(op: Operation) -> Shape:
    """The shape of the tensor that `op` makes; UserError when it is not in the type."""
    attr = op.results[0].type
    assert isa(attr, TensorType)
    shape = attr.get_shape()
    if DYNAMIC_INDEX in shape:
        raise UserError(
            f"'{op.name}' in an element function makes a tensor of unknown length, {attr}",
            "tensors in element functions have static lengths",
            location=location_of(op),
        )
    return shape


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.operands if last is not None else ()


def _write(registers: Registers, targets: Sequence[int], values: Sequence[Values]) -> None:
    for target, value in zip(targets, values, strict=True):
        registers[target] = value


def _several_results(
    function: Callable[..., Any], sources: Sequence[int], targets: Sequence[int]
) -> Step:
    def step(registers: Registers, batch: Batch) -> None:
        _write(registers, targets, function(*[registers[slot] for slot in sources]))

    return step


def _one_result(function: Callable[..., Any], sources: Sequence[int], target: int) -> Step:
    if len(sources) != 2:

        def step(registers: Registers, batch: Batch) -> None:
            registers[target] = function(*[registers[slot] for slot in sources])

        return step
    left, right = sources

    def binary(registers: Registers, batch: Batch) -> None:
        registers[target] = function(registers[left], registers[right])

    return binary


def _if(
    registers: Registers,
    batch: Batch,
    condition: Values,
    branches: tuple[Branch, Branch],
    targets: Sequence[int],
) -> None:
    if np.size(condition) == 1 or condition.all() or not condition.any():
        taken = branches[0 if np.all(condition) else 1]
        _write(registers, targets, _run_branch(registers, taken, batch))
        return
    first = _run_branch(registers, branches[0], batch.under(condition))
    second = _run_branch(registers, branches[1], batch.under(~condition))
    pairs = zip(first, second, strict=True)
    _write(registers, targets, [where(condition, a, b) for a, b in pairs])


def _run_branch(registers: Registers, branch: Branch, batch: Batch) -> list[Values]:
    steps, yielded = branch
    for step in steps:
        step(registers, batch)
    return [registers[slot] for slot in yielded]


@dataclass(slots=True)
class _Loop:
    """An `scf.for`: the registers of its bounds, of what it carries, and the steps of its body."""

    op: scf.ForOp
    bounds: Sequence[int]
    inits: Sequence[int]
    index: int
    carried: Sequence[int]
    steps: Sequence[Step]
    yielded: Sequence[int]
    results: Sequence[int]
    overwritten: frozenset[int]
    """Numbers of carried values that the body writes into."""
    shared: frozenset[int]
    """Numbers of carried values that the body may give a buffer that others see, too."""

    def run(self, registers: Registers, batch: Batch) -> None:
        low, high, stride = (registers[slot] for slot in self.bounds)
        active = True if batch.mask is None else batch.mask
        if np.any((stride <= 0) & active):
            raise UserError(
                "step of 'scf.for' is not positive",
                "it is at least 1",
                "count upwards and subtract inside the loop",
                location=location_of(self.op),
            )
        self._carry(registers, self.inits, self.overwritten)
        numbers = [lanes.lane_of(value) for value in (low, high, stride)]
        if None in numbers:
            self._varying(registers, batch, low, high, stride)
        else:
            first, last, step = (int(number or 0) for number in numbers)
            self._uniform(registers, batch, range(first, last, max(1, step)))
        _write(registers, self.results, [registers[slot] for slot in self.carried])

    def _carry(self, registers: Registers, sources: Sequence[int], copied: frozenset[int]) -> None:
        """Sets what the loop carries; `copied` are the numbers of those that need a copy."""
        values = [registers[slot] for slot in sources]
        for number in copied:
            values[number] = lanes.owned(values[number])
        _write(registers, self.carried, values)

    def _body(self, registers: Registers, batch: Batch) -> None:
        for step in self.steps:
            step(registers, batch)

    def _uniform(self, registers: Registers, batch: Batch, positions: range) -> None:
        make = dtype_of(self.op.lb.type).type
        for position in positions:
            registers[self.index] = make(position)
            self._body(registers, batch)
            self._carry(registers, self.yielded, self.overwritten & self.shared)

    def _varying(
        self, registers: Registers, batch: Batch, low: Values, high: Values, stride: Values
    ) -> None:
        position, running = low, low < high
        while np.any(running if batch.mask is None else running & batch.mask):
            registers[self.index] = position
            before = [registers[slot] for slot in self.carried]
            # Lanes that have finished keep what they had, so the body writes into a copy.
            self._carry(registers, self.carried, self.overwritten)
            self._body(registers, batch.under(running))
            after = [registers[slot] for slot in self.yielded]
            merged = [where(running, a, b) for a, b in zip(after, before, strict=True)]
            _write(registers, self.carried, merged)
            following = position + stride
            running = running & (following < high) & (following > position)
            position = following
