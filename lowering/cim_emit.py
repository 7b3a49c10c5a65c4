"""Programs of statements as `cim.program` operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects import cim
from cim_opt.dialects.cim import Memory
from cim_opt.lowering.emit import Emitter
from cim_opt.mapping.cim_code import INPUT, OUTPUT, WEIGHTS
from cim_opt.mapping.cim_statements import (
    Add,
    Clear,
    Copy,
    Load,
    Multiply,
    Repeat,
    Set,
    Statement,
    Variable,
    assigned,
    read_first,
)


def program(name: str, statements: Sequence[Statement]) -> cim.ProgramOp:
    """The program that runs the statements; its arguments are input, weights and output."""
    block = Block(arg_types=[IndexType()] * 3)
    values: dict[str, SSAValue] = {}
    for arg, variable in zip(block.args, (INPUT, WEIGHTS, OUTPUT), strict=True):
        arg.name_hint = variable
        values[variable] = arg
    _Writer(Emitter(block), values).write(statements)
    block.add_op(cim.ReturnOp())
    _make_constants_late(block)
    return cim.ProgramOp(name, Region(block))


def _make_constants_late(block: Block) -> None:
    """Moves constants behind the first load of weights, if nothing before that uses them.

    Loading takes longer than all of them.
    """
    load = next((op for op in block.ops if isinstance(op, cim.LoadWeightsOp)), None)
    if load is None:
        return
    needed: set[SSAValue] = set()
    for op in block.ops:
        needed |= {operand for inner in op.walk() for operand in inner.operands}
        if op is load:
            break
    for op in reversed([op for op in block.ops if isinstance(op, arith.ConstantOp)]):
        if op.result not in needed:
            op.detach()
            block.insert_op_after(op, load)


class _Writer:
    """Writes statements; `values` holds what each variable is at the place of writing."""

    def __init__(self, emitter: Emitter, values: dict[str, SSAValue]) -> None:
        self._emitter = emitter
        self._values = values

    def write(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._write(statement)

    def _write(self, statement: Statement) -> None:
        value = self._value
        match statement:
            case Set(target, source, offset):
                if isinstance(source, int):
                    self._values[target] = value(source + offset)
                else:
                    self._values[target] = self._moved(value(source), offset)
            case Copy():
                self._emitter.insert(
                    cim.CopyOp(
                        Memory(statement.source_memory),
                        value(statement.source),
                        Memory(statement.target_memory),
                        value(statement.target),
                        statement.bytes,
                    )
                )
            case Load(source, macros, rows):
                self._emitter.insert(cim.LoadWeightsOp(value(source), macros, rows))
            case Multiply(input, step, macros, rows, bits):
                self._emitter.insert(cim.MvmOp(value(input), step, macros, rows, bits))
            case Add(target, left, right, elements):
                operands = value(target), value(left), value(right)
                self._emitter.insert(cim.VectorAddOp(*operands, elements))
            case Clear(target, elements):
                self._emitter.insert(cim.VectorClearOp(value(target), elements))
            case Repeat():
                self._repeat(statement)

    def _value(self, variable: Variable) -> SSAValue:
        if isinstance(variable, int):
            return self._emitter.value(variable)
        return self._values[variable]

    def _moved(self, value: SSAValue, offset: int) -> SSAValue:
        """value + offset, computed here: what a register holds is not kept for later."""
        if not offset:
            return value
        moved = arith.AddiOp(value, self._emitter.value(offset))
        return self._emitter.insert(moved).result

    def _repeat(self, loop: Repeat) -> None:
        """A loop that carries the variables that its body changes and that were there before."""
        known = {*read_first(loop.body)}
        carried = [name for name in assigned(loop.body) if name in self._values]
        carried = [name for name in carried if name in known]
        start = [self._values[name] for name in carried]
        outside = dict(self._values)
        with self._emitter.loop(0, loop.count, carried=start) as built:
            self._values |= dict(zip(carried, built.carried, strict=True))
            self.write(loop.body)
            built.next = [self._values[name] for name in carried]
        # What the body alone sets is not known behind the loop.
        self._values = outside | dict(zip(carried, built.results, strict=True))
