"""A row program as a list of word operations that leaves the same output rows.

A row copy moves no data here: it only says which value a row holds. Majorities become ANDs and ORs,
values that no output needs are dropped, and the rest goes through as few temporary rows as it can.
The result is what packed.py runs; subarray.py executes the commands themselves.
"""

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cim_opt.microprograms.model import (
    AAP,
    B_GROUP,
    B_ROWS,
    Address,
    Bit,
    Command,
    Constant,
    RowProgram,
    bit,
)
from cim_opt.microprograms.subarray import Algebra, Subarray

# A value is a number: 0 and 1 are the constant rows, then the rows of the caller, then results.
ZERO, ONE = 0, 1


class Operation(NamedTuple):
    """One pass over rows: `kind` is and, or, not, copy, or fill (with `sources` (0,) or (1,)).

    Places count the rows of the caller from 0; -1, -2, ... are temporary rows.
    """

    kind: str
    target: int
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """What `compile_program` makes: the operations in order, and how many temporary rows."""

    operations: tuple[Operation, ...]
    temporaries: int


class _Values:
    """Values by how they are computed: equal computations are one value, numbered in order."""

    def __init__(self, places: int) -> None:
        self.kinds = ["row"] * (2 + places)
        self.sources: list[tuple[int, ...]] = [()] * (2 + places)
        self._known: dict[tuple[str, int, int], int] = {}
        self._opposite = {ZERO: ONE, ONE: ZERO}

    def _value(self, kind: str, x: int, y: int) -> int:
        key = (kind, x, y) if x < y else (kind, y, x)
        value = self._known.get(key)
        if value is None:
            value = self._known[key] = self._new(kind, (x, y))
        return value

    def _new(self, kind: str, sources: tuple[int, ...]) -> int:
        self.kinds.append(kind)
        self.sources.append(sources)
        return len(self.kinds) - 1

    def complement(self, x: int) -> int:
        y = self._opposite.get(x)
        if y is None:
            y = self._opposite[x] = self._new("not", (x,))
            self._opposite[y] = x
        return y

    def conjunction(self, x: int, y: int) -> int:
        if x == y or y == ONE:
            return x
        if x == ONE:
            return y
        if ZERO in (x, y) or self._opposite.get(x) == y:
            return ZERO
        return self._value("and", x, y)

    def disjunction(self, x: int, y: int) -> int:
        if x == y or y == ZERO:
            return x
        if x == ZERO:
            return y
        if ONE in (x, y) or self._opposite.get(x) == y:
            return ONE
        return self._value("or", x, y)

    def majority(self, x: int, y: int, z: int) -> int:
        if x in (y, z):
            return x
        if y == z:
            return y
        opposite = self._opposite.get
        if opposite(x) == y:
            return z
        if opposite(x) == z:
            return y
        if opposite(y) == z:
            return x
        either = self.conjunction(self.disjunction(x, y), z)
        return self.disjunction(self.conjunction(x, y), either)


@lru_cache(maxsize=1024)
def compile_program(program: RowProgram, places: tuple[int, ...]) -> CompiledProgram:
    """Compile `program` for rows at `places`, in the order of `caller_bits`.

    Equal places are one row: an output may share the row of an input. Raises IllegalCommand or
    ValueError for a program that no subarray can execute.
    """
    bits = caller_bits(program)
    if len(bits) != len(places):
        raise ValueError(f"{program.name} has {len(bits)} rows, not {len(places)}")
    place_of = dict(zip(bits, places, strict=True))
    values = _Values(max(places, default=-1) + 1)
    with no_garbage():
        finals = _execute(program, place_of, values)
        return _Schedule(values, finals).compiled()


@contextmanager
def no_garbage() -> Generator[None]:
    """For code that makes many objects and no cycles: looking for those takes half its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compiled_in_order(program: RowProgram) -> CompiledProgram:
    """`program` for rows one after another, in the order of `caller_bits`."""
    return compile_program(program, tuple(range(len(caller_bits(program)))))


def caller_bits(program: RowProgram) -> list[Bit]:
    """The rows that a caller provides: inputs, then other outputs, lowest bits first."""
    operands = {x.name: x for x in (*program.inputs, *program.outputs)}
    return [bit(x.name, index) for x in operands.values() for index in range(x.width)]


def _execute(program: RowProgram, place_of: dict[Bit, int], values: _Values) -> dict[int, int]:
    """The value of each place that the program writes, in the end."""
    owner: dict[int, Bit] = {}
    shared: dict[Bit, Bit] = {}
    for row, place in place_of.items():
        owner.setdefault(place, row)
        if owner[place] != row:
            shared[row] = owner[place]
    given: dict[Bit, int] = {}
    for operand in program.inputs:
        for index in range(operand.width):
            place = place_of[bit(operand.name, index)]
            given[owner[place]] = 2 + place
    sizes = {x.name: x.width for x in program.operands.values()}
    commands = _renamed(program.commands, shared) if shared else program.commands
    after = _Interpreter(values, sizes, given).rows_after(commands)
    if after is None:
        # Something is illegal. The subarray says what.
        algebra = Algebra(ZERO, ONE, values.complement, values.majority)
        subarray = Subarray(algebra, sizes)
        subarray.data.update(given)
        subarray.execute(commands)
        after = subarray.data
    written = [bit(x.name, index) for x in program.outputs for index in range(x.width)]
    missing = [row for row in written if shared.get(row, row) not in after]
    if missing:
        raise ValueError(f"the program never writes {missing[0]}")
    return {place_of[row]: after[shared.get(row, row)] for row in written}


def _renamed(commands: tuple[Command, ...], shared: dict[Bit, Bit]) -> list[Command]:
    """The commands with one name for rows that are shared."""

    def name(address: Address) -> Address:
        return shared.get(address, address) if isinstance(address, Bit) else address

    return [AAP(name(x.destination), name(x.source)) if isinstance(x, AAP) else x for x in commands]


_UNKNOWN = -1
"""What a row holds that was never written."""


class _Interpreter:
    """Executes commands on values, as `Subarray` does, several times as fast.

    Each address is looked at once: after that it is the numbers of its rows.
    """

    def __init__(self, values: _Values, sizes: dict[str, int], given: dict[Bit, int]) -> None:
        self.values = values
        self.sizes = sizes
        # The constant rows, those of the B-group, then D rows as they come.
        self.state = [ZERO, ONE, *([_UNKNOWN] * len(B_ROWS))]
        self.slots: dict[Bit, int] = {}
        self.sources: dict[int, tuple[int, ...] | None] = {}
        self.destinations: dict[int, list[tuple[int, bool]] | None] = {}
        for row, value in given.items():
            self.state[self._slot(row)] = value

    def rows_after(self, commands: Sequence[Command]) -> dict[Bit, int] | None:
        """The values of the D rows; None where a command is illegal."""
        state, complement = self.state, self.values.complement
        for command in commands:
            destination = None
            if isinstance(command, AAP):
                source = self._source(command.source)
                destination = self._destination(command.destination)
                if destination is None:
                    return None
            else:
                source = self._source(command.address)
                if source is not None and len(source) != 3:
                    return None
            value = _UNKNOWN if source is None else self._sensed(source)
            if value == _UNKNOWN:
                return None
            for slot, complemented in destination or ():
                state[slot] = complement(value) if complemented else value
        return {row: state[slot] for row, slot in self.slots.items() if state[slot] != _UNKNOWN}

    def _sensed(self, source: tuple[int, ...]) -> int:
        """The value of one row, complemented where a second number says so, or of a majority."""
        state = self.state
        if len(source) == 3:
            first, second, third = source
            x, y, z = state[first], state[second], state[third]
            if _UNKNOWN in (x, y, z):
                return _UNKNOWN
            value = self.values.majority(x, y, z)
            state[first] = state[second] = state[third] = value
            return value
        value = state[source[0]]
        if len(source) == 2 and value != _UNKNOWN:
            return self.values.complement(value)
        return value

    def _slot(self, row: Bit) -> int:
        if row not in self.slots:
            self.slots[row] = len(self.state)
            self.state.append(_UNKNOWN)
        return self.slots[row]

    def _source(self, address: Address) -> tuple[int, ...] | None:
        key = id(address)  # The commands keep it.
        if key not in self.sources:
            self.sources[key] = self._found_source(address)
        return self.sources[key]

    def _found_source(self, address: Address) -> tuple[int, ...] | None:
        if isinstance(address, Constant):
            return (address.value,) if address.value in (ZERO, ONE) else None
        if isinstance(address, Bit):
            return (self._slot(address),) if self._is_data(address) else None
        if address not in B_GROUP or len(address.cells) == 2:
            return None
        slots = tuple(2 + B_ROWS.index(row) for row, _ in address.cells)
        return (*slots, 1) if address.cells[0][1] else slots

    def _destination(self, address: Address) -> list[tuple[int, bool]] | None:
        key = id(address)
        if key not in self.destinations:
            self.destinations[key] = self._found_destination(address)
        return self.destinations[key]

    def _found_destination(self, address: Address) -> list[tuple[int, bool]] | None:
        if isinstance(address, Bit):
            return [(self._slot(address), False)] if self._is_data(address) else None
        if isinstance(address, Constant) or address not in B_GROUP:
            return None
        return [(2 + B_ROWS.index(row), complemented) for row, complemented in address.cells]

    def _is_data(self, row: Bit) -> bool:
        return 0 <= row.index < self.sizes.get(row.operand, 0)


class _Schedule:
    """Places for values: each result goes to a row of the caller at once where it can."""

    def __init__(self, values: _Values, finals: dict[int, int]) -> None:
        self.values = values
        # Rows that keep their value need nothing.
        self.finals = {place: x for place, x in finals.items() if x != 2 + place}
        self.operations: list[Operation] = []
        self.where: dict[int, int] = {}
        self.free: list[int] = []
        self.temporaries = 0
        # For each value the last result that needs it, 0 for none, or one past all for those kept.
        self.last_use = [0] * len(values.kinds)
        self.needed = self._needed()

    def _needed(self) -> list[int]:
        """The values to compute, in order; notes the last use of each on the way."""
        last_use, kinds, sources = self.last_use, self.values.kinds, self.values.sources
        for x in self.finals.values():
            last_use[x] = len(kinds)
        needed: list[int] = []
        # From the last one back, so that whoever needs a value comes before it.
        for x in range(len(kinds) - 1, ONE, -1):
            if last_use[x] and kinds[x] != "row":
                needed.append(x)
                for source in sources[x]:
                    last_use[source] = last_use[source] or x
        needed.reverse()
        return needed

    def compiled(self) -> CompiledProgram:
        direct: dict[int, int] = {}
        for place, x in self.finals.items():
            # Not before the last read of what the row holds now.
            if self.last_use[2 + place] <= x:
                direct.setdefault(x, place)
        where, last_use, free = self.where, self.last_use, self.free
        kinds, sources_of = self.values.kinds, self.values.sources
        for x in self.needed:
            sources = sources_of[x]
            places = tuple([where[s] if s in where else s - 2 for s in sources])
            for source, place in zip(sources, places, strict=True):
                if place < 0 and last_use[source] == x:
                    free.append(place)
            target = where[x] = direct[x] if x in direct else self._temporary()
            self.operations.append(Operation(kinds[x], target, places))
        self._move_rest()
        return CompiledProgram(tuple(self.operations), self.temporaries)

    def _place(self, x: int) -> int:
        return self.where[x] if x in self.where else x - 2

    def _temporary(self) -> int:
        if self.free:
            return self.free.pop()
        self.temporaries += 1
        return -self.temporaries

    def _move_rest(self) -> None:
        """Values that are not yet where they belong; those in a row that changes go first."""
        rest = {place: x for place, x in self.finals.items() if self._place(x) != place}
        for x in set(rest.values()):
            if x > ONE and self._place(x) in rest:
                temporary = self._temporary()
                self.operations.append(Operation("copy", temporary, (self._place(x),)))
                self.where[x] = temporary
        for place, x in rest.items():
            if x in (ZERO, ONE):
                self.operations.append(Operation("fill", place, (x,)))
            else:
                self.operations.append(Operation("copy", place, (self._place(x),)))
