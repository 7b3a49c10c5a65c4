"""Row commands executed one by one, over values of any kind, with a trap for every illegal use.

The values of rows may be Python integers (a truth table, or one lane a bit), NumPy arrays, z3
bit-vectors: anything that `Algebra` knows how to complement and to take the majority of. So the
program that the simulator runs is the one that is proved.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cim_opt.microprograms.model import (
    AP,
    B_GROUP,
    Address,
    Bit,
    Command,
    Constant,
    Operand,
    RowProgram,
    Wordlines,
    bit,
)

V = TypeVar("V")


class IllegalCommand(Exception):
    """A row command that the subarray cannot execute: names the command and the address."""

    def __init__(self, number: int, command: Command, address: Address, reason: str) -> None:
        super().__init__(f"command {number} ({command}): {address}: {reason}")
        self.number = number
        self.command = command
        self.address = address
        self.reason = reason


@dataclass(frozen=True)
class Algebra(Generic[V]):
    """What the rows hold: the two constants, complement, and majority of three."""

    zero: V
    one: V
    complement: Callable[[V], V]
    majority: Callable[[V, V, V], V]


def operators(zero: V, one: V) -> Algebra[V]:
    """The algebra of values with the operators `&`, `|` and `~`, as NumPy and z3 have them."""

    def complement(x: Any) -> Any:
        return ~x

    def majority(x: Any, y: Any, z: Any) -> Any:
        return (x & y) | (z & (x | y))

    return Algebra(zero, one, complement, majority)


def integers(lanes: int) -> Algebra[int]:
    """Rows as Python integers of one bit a lane: for instance the truth table of a step."""
    ones = (1 << lanes) - 1

    def majority(x: int, y: int, z: int) -> int:
        return (x & y) | (z & (x | y))

    return Algebra(0, ones, lambda x: x ^ ones, majority)


class Subarray(Generic[V]):
    """The rows of one subarray while it executes commands.

    `sizes` says how many D rows each operand has; a row is unusable until it is written.
    Inputs in `read_only` trap when a command writes them.
    """

    def __init__(
        self, algebra: Algebra[V], sizes: Mapping[str, int], read_only: frozenset[str] = frozenset()
    ) -> None:
        self.algebra = algebra
        self.sizes = sizes
        self.read_only = read_only
        self.data: dict[Bit, V] = {}
        self.rows: dict[str, V] = {}
        self._number = 0
        self._command: Command | None = None

    def execute(self, commands: Iterable[Command]) -> None:
        """Execute every command in turn; raises IllegalCommand at the first one that cannot be."""
        for self._number, self._command in enumerate(commands):
            command = self._command
            if isinstance(command, AP):
                self._activate_majority(command.address)
                continue
            value = self._sense(command.source)
            self._write(command.destination, value)

    def _trap(self, address: Address, reason: str) -> IllegalCommand:
        assert self._command is not None
        return IllegalCommand(self._number, self._command, address, reason)

    def _activate_majority(self, address: Address) -> V:
        if not isinstance(address, Wordlines) or not address.is_majority:
            raise self._trap(address, "only an address of three B rows has a majority")
        if address not in B_GROUP:
            raise self._trap(address, self._why_unknown(address))
        value = self.algebra.majority(*(self._row(address, row) for row, _ in address.cells))
        for row, _ in address.cells:
            self.rows[row] = value
        return value

    def _sense(self, source: Address) -> V:
        if isinstance(source, Constant):
            self._check_constant(source)
            return self.algebra.one if source.value else self.algebra.zero
        if isinstance(source, Bit):
            self._check_data(source)
            if source not in self.data:
                raise self._trap(source, "the row was never written")
            return self.data[source]
        if source.is_majority:
            return self._activate_majority(source)
        if source not in B_GROUP:
            raise self._trap(source, self._why_unknown(source))
        if len(source.cells) == 2:
            raise self._trap(source, "two rows cannot be sensed at once")
        ((row, complemented),) = source.cells
        value = self._row(source, row)
        return self.algebra.complement(value) if complemented else value

    def _write(self, destination: Address, value: V) -> None:
        if isinstance(destination, Constant):
            raise self._trap(destination, "a constant row cannot be written")
        if isinstance(destination, Bit):
            self._check_data(destination)
            if destination.operand in self.read_only:
                raise self._trap(destination, "the program writes a row of its input")
            self.data[destination] = value
            return
        if destination not in B_GROUP:
            raise self._trap(destination, self._why_unknown(destination))
        for row, complemented in destination.cells:
            self.rows[row] = self.algebra.complement(value) if complemented else value

    def _row(self, address: Address, row: str) -> V:
        if row not in self.rows:
            raise self._trap(address, f"row {row} was never written")
        return self.rows[row]

    def _check_constant(self, address: Constant) -> None:
        if address.value not in (0, 1):
            raise self._trap(address, "there are two constant rows, C0 and C1")

    def _check_data(self, address: Bit) -> None:
        if address.operand not in self.sizes:
            raise self._trap(address, f"the program has no operand {address.operand!r}")
        size = self.sizes[address.operand]
        if not 0 <= address.index < size:
            raise self._trap(address, f"the operand has {size} rows")

    @staticmethod
    def _why_unknown(address: Wordlines) -> str:
        if len(address.cells) == 3 and any(complemented for _, complemented in address.cells):
            return "a majority cannot go through a complementing wordline"
        return "not one of the sixteen addresses of the B-group"


def execute(
    program: RowProgram, inputs: Mapping[str, Sequence[V]], algebra: Algebra[V]
) -> dict[str, tuple[V, ...]]:
    """The rows of every output of `program`, lowest bit first, given the rows of its inputs.

    Rows are as stored: the caller complements those of operands that are `complemented`.
    Raises IllegalCommand for a program that no subarray can execute, and ValueError for inputs
    that are not those of the program.
    """
    sizes = {operand.name: operand.width for operand in program.operands.values()}
    written = {operand.name for operand in program.outputs}
    read_only = frozenset(x.name for x in program.inputs if x.name not in written)
    subarray = Subarray(algebra, sizes, read_only)
    _check_inputs(program, inputs)
    for operand in program.inputs:
        for index, value in enumerate(inputs[operand.name]):
            subarray.data[bit(operand.name, index)] = value
    subarray.execute(program.commands)
    return {operand.name: _collect(subarray, operand) for operand in program.outputs}


def _check_inputs(program: RowProgram, inputs: Mapping[str, Sequence[Any]]) -> None:
    wanted = {operand.name: operand.width for operand in program.inputs}
    got = {name: len(rows) for name, rows in inputs.items()}
    if wanted != got:
        raise ValueError(f"{program.name} has inputs {wanted}, not {got}")


def _collect(subarray: Subarray[V], operand: Operand) -> tuple[V, ...]:
    rows = [bit(operand.name, index) for index in range(operand.width)]
    missing = [row for row in rows if row not in subarray.data]
    if missing:
        raise ValueError(f"the program never writes {missing[0]}")
    return tuple(subarray.data[row] for row in rows)


def check(program: RowProgram) -> None:
    """Raise IllegalCommand or ValueError unless the program is legal and writes all its outputs.

    Legality does not depend on the values in the rows, so one execution on nothing decides it.
    """
    nothing = Algebra[None](None, None, lambda _x: None, lambda _x, _y, _z: None)
    execute(program, {x.name: [None] * x.width for x in program.inputs}, nothing)
