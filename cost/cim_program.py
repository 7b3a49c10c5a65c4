"""The cycles of a program of statements, as the cost model times it.

Scalar work is that of the operations that lowering/cim_emit.py writes for the statements: constants
behind the first load of weights, or before it where it needs them; an addition for each address
that moves, for a loop its counter, and a move for each carried address that cannot stay in its
register. So the model's cycles are those that the simulator counts on the lowered program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cim_opt.cost.cim_instructions import (
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Scalar,
    Transfer,
    VectorAdd,
    VectorClear,
)
from cim_opt.cost.cim_timing import Timing, simulate
from cim_opt.hardware.cim import CimMachine
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
    operands,
    read_first,
    through_load,
)

_ENTRY = 0
"""The outermost block; constants and arguments belong to it."""


def time(
    statements: Sequence[Statement], machine: CimMachine, arguments: Sequence[str] = ("x", "w", "y")
) -> Timing:
    """The cycles of a program that starts with `arguments` set.

    Raises UserError for what the machine has not got.
    """
    registers = _Registers()
    registers.names = {name: _Value(_ENTRY, argument=True) for name in arguments}
    registers.walk(statements, _ENTRY)
    loops = iter(registers.loops)
    end = through_load(statements)
    head = _nodes(statements[:end], machine, loops)
    rest = _nodes(statements[end:], machine, loops)
    needed, others = (Scalar(sum(part)) for part in (registers.made[:end], registers.made[end:]))
    return simulate([needed, *head, others, *rest], machine)


def _nodes(
    statements: Sequence[Statement], machine: CimMachine, loops: Iterator[_Carried]
) -> list[Node]:
    """What the statements issue; `loops` are those in them, in the order in which they begin."""
    nodes: list[Node] = []
    for statement in statements:
        match statement:
            case Set():
                if statement.offset and isinstance(statement.source, str):
                    nodes.append(Scalar(1))
            case Repeat():
                carried = next(loops)
                body = _nodes(statement.body, machine, loops)
                if carried.back:
                    body.append(Scalar(carried.back))
                nodes += [Scalar(1 + carried.moves_in()), Loop(statement.count, tuple(body))]
            case Copy():
                target = statement.target_memory
                nodes.append(Transfer(statement.bytes, statement.source_memory, target))
            case Load():
                bytes = statement.rows * statement.macros * machine.bit_columns // 8
                nodes.append(LoadWeights(bytes, statement.macros))
            case Multiply():
                nodes.append(Mvm(statement.macros, statement.bits))
            case Add():
                nodes.append(VectorAdd(statement.elements))
            case Clear():
                nodes.append(VectorClear(statement.elements))
    return nodes


@dataclass(eq=False, slots=True)
class _Value:
    """What a register holds: the block that computes it, and how often it is used."""

    home: int
    argument: bool = False
    constant: bool = False
    uses: int = 0


@dataclass(slots=True)
class _Carried:
    """The values that a loop in block `outside` carries, and how many `back` moves it makes."""

    outside: int
    starts: list[_Value]
    back: int = 0

    def moves_in(self) -> int:
        """Carried values that need a register of their own: something else uses theirs again."""
        return sum(value.uses > 1 or value.home != self.outside for value in self.starts)


@dataclass(slots=True)
class _Registers:
    """The values of a program, block by block, as lowering/cim_emit.py makes them."""

    names: dict[str, _Value] = field(default_factory=dict[str, _Value])
    constants: dict[int, _Value] = field(default_factory=dict[int, _Value])
    loops: list[_Carried] = field(default_factory=list[_Carried])
    fresh: int = 0
    """Constants that are used by now."""
    made: list[int] = field(default_factory=list[int])
    """How many constants each statement of the outermost block is the first to use."""

    def walk(self, statements: Sequence[Statement], block: int) -> None:
        for statement in statements:
            before = self.fresh
            self._one(statement, block)
            if block == _ENTRY:
                self.made.append(self.fresh - before)

    def _one(self, statement: Statement, block: int) -> None:
        match statement:
            case Set(target, int(source), offset):
                self.names[target] = self._constant(source + offset)
            case Set(target, str(source), 0):
                self.names[target] = self.names[source]
            case Set(target, source, offset):
                self._use(source)
                self._use(offset)
                self.names[target] = _Value(block)
            case Repeat():
                self._loop(statement, block)
            case _:
                for operand in operands(statement):
                    self._use(operand)

    def _constant(self, value: int) -> _Value:
        return self.constants.setdefault(value, _Value(_ENTRY, constant=True))

    def _use(self, variable: Variable) -> _Value:
        value = self._constant(variable) if isinstance(variable, int) else self.names[variable]
        self.fresh += value.constant and value.uses == 0
        value.uses += 1
        return value

    def _loop(self, loop: Repeat, outside: int) -> None:
        for bound in (0, loop.count, 1):
            self._use(bound)
        read = {*read_first(loop.body)}
        names = [name for name in assigned(loop.body) if name in read and name in self.names]
        carried = _Carried(outside, [self._use(name) for name in names])
        self.loops.append(carried)
        inside = len(self.loops)
        before = dict(self.names)
        arguments = [_Value(inside, argument=True) for _ in names]
        self.names.update(zip(names, arguments, strict=True))
        self.walk(loop.body, inside)
        for name, argument in zip(names, arguments, strict=True):
            end = self._use(name)
            carried.back += end is not argument if end.argument else end.home != inside
        self.names = before | {name: _Value(outside) for name in names}
