"""A row program as a list of word operations that leaves the same output rows.

A row copy moves no data here: it only says which value a row holds. Majorities become ANDs and ORs,
values that no output needs are dropped, and the rest goes through as few temporary rows as it can.
The result is what packed.py runs; subarray.py executes the commands themselves.
"""

from dataclasses import dataclass
from functools import lru_cache

from cim_opt.microprograms.model import AAP, Address, Bit, Command, RowProgram, bit
from cim_opt.microprograms.subarray import Algebra, Subarray

# A value is a number: 0 and 1 are the constant rows, then the rows of the caller, then results.
ZERO, ONE = 0, 1


@dataclass(frozen=True, slots=True)
class Operation:
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
    """Values by how they are computed: equal computations are one value."""

    def __init__(self, places: int) -> None:
        self.definitions: list[tuple[str, tuple[int, ...]]] = [("row", ())] * (2 + places)
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}
        self._opposite = {ZERO: ONE, ONE: ZERO}

    def _value(self, kind: str, *sources: int) -> int:
        key = (kind, tuple(sorted(sources)))
        if key not in self._known:
            self._known[key] = len(self.definitions)
            self.definitions.append((kind, sources))
        return self._known[key]

    def complement(self, x: int) -> int:
        if x not in self._opposite:
            y = self._value("not", x)
            self._opposite[x], self._opposite[y] = y, x
        return self._opposite[x]

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
        for pair, other in (((x, y), z), ((x, z), y), ((y, z), x)):
            if pair[0] == pair[1]:
                return pair[0]
            if self._opposite.get(pair[0]) == pair[1]:
                return other
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
    finals = _execute(program, place_of, values)
    return _Schedule(values, finals).compiled()


def caller_bits(program: RowProgram) -> list[Bit]:
    """The rows that a caller provides: inputs, then other outputs, lowest bits first."""
    operands = {x.name: x for x in (*program.inputs, *program.outputs)}
    return [bit(x.name, index) for x in operands.values() for index in range(x.width)]


def _execute(program: RowProgram, place_of: dict[Bit, int], values: _Values) -> dict[int, int]:
    """The value of each place that the program writes, in the end."""
    algebra = Algebra(ZERO, ONE, values.complement, values.majority)
    sizes = {x.name: x.width for x in program.operands.values()}
    subarray = Subarray(algebra, sizes)
    owner: dict[int, Bit] = {}
    shared: dict[Bit, Bit] = {}
    for row, place in place_of.items():
        owner.setdefault(place, row)
        if owner[place] != row:
            shared[row] = owner[place]
    for operand in program.inputs:
        for index in range(operand.width):
            place = place_of[bit(operand.name, index)]
            subarray.data[owner[place]] = 2 + place
    subarray.execute(_renamed(program.commands, shared) if shared else program.commands)
    written = [bit(x.name, index) for x in program.outputs for index in range(x.width)]
    missing = [row for row in written if shared.get(row, row) not in subarray.data]
    if missing:
        raise ValueError(f"the program never writes {missing[0]}")
    return {place_of[row]: subarray.data[shared.get(row, row)] for row in written}


def _renamed(commands: tuple[Command, ...], shared: dict[Bit, Bit]) -> list[Command]:
    """The commands with one name for rows that are shared."""

    def name(address: Address) -> Address:
        return shared.get(address, address) if isinstance(address, Bit) else address

    return [AAP(name(x.destination), name(x.source)) if isinstance(x, AAP) else x for x in commands]


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
        self.needed = self._needed()
        self.last_use = self._last_uses()

    def _needed(self) -> list[int]:
        """The values to compute, in order."""
        needed: set[int] = set()
        stack = list(self.finals.values())
        while stack:
            x = stack.pop()
            kind, sources = self.values.definitions[x]
            if kind != "row" and x not in needed:
                needed.add(x)
                stack.extend(sources)
        return sorted(needed)

    def _last_uses(self) -> dict[int, int]:
        """For each value, the last result that needs it, or one past all for those to keep."""
        last: dict[int, int] = {}
        for x in self.needed:
            for source in self.values.definitions[x][1]:
                last[source] = x
        past_all = len(self.values.definitions)
        return last | {x: past_all for x in self.finals.values()}

    def compiled(self) -> CompiledProgram:
        direct: dict[int, int] = {}
        for place, x in self.finals.items():
            # Not before the last read of what the row holds now.
            if x in self.last_use and self.last_use.get(2 + place, 0) <= x:
                direct.setdefault(x, place)
        for x in self.needed:
            kind, sources = self.values.definitions[x]
            places = tuple(self._place(source) for source in sources)
            for source in set(sources):
                self._release(source, x)
            self.where[x] = direct[x] if x in direct else self._temporary()
            self.operations.append(Operation(kind, self.where[x], places))
        self._move_rest()
        return CompiledProgram(tuple(self.operations), self.temporaries)

    def _place(self, x: int) -> int:
        return self.where[x] if x in self.where else x - 2

    def _temporary(self) -> int:
        if self.free:
            return self.free.pop()
        self.temporaries += 1
        return -self.temporaries

    def _release(self, source: int, now: int) -> None:
        place = self.where.get(source, 0)
        if place < 0 and self.last_use[source] <= now:
            self.free.append(place)

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
