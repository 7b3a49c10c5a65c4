"""The shortest row program for one bit step, found backwards from what it must leave behind.

A situation says which rows must hold which functions; every other row may hold anything. Going
back over a command replaces the rows that it writes by the rows that it reads. Where it takes a
majority, the three functions come from one majority-inverter form, so that few choices arise. The
search is over when all demands are met by what the rows hold at the start.

It deepens one command at a time and leaves a situation as soon as a lower bound on the commands
before it (`_Bound`) exceeds what is left. Only useful commands occur: each writes a demanded row.
A function that depends on rows with unknown contents is never demanded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import NamedTuple

from cim_opt.microprograms.model import (
    AAP,
    AP,
    B_GROUP,
    B_ROWS,
    MAJORITIES,
    Address,
    Command,
    Constant,
    Wordlines,
)
from cim_opt.microprograms.synthesis_forms import Form, regular

# What each row must hold, B rows first, then D rows; None for a row that may hold anything.
Demands = tuple[int | None, ...]
# The rows that a command writes, and which of them take the complement.
Writes = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Rows:
    """The rows of a step. D rows are numbered after the six rows of the B-group.

    `start` and `goal` are the functions that rows hold before and must hold after. A D row can
    be written if it is in `writable`.
    """

    data: tuple[Address, ...]
    start: Demands
    goal: Demands
    writable: frozenset[int]


@dataclass(frozen=True)
class _Copy:
    """Reads one row, perhaps through its complementing wordline."""

    row: int
    complemented: bool


@dataclass(frozen=True)
class _Fill:
    """Reads the constant row of this value."""

    value: int


@dataclass(frozen=True)
class _Vote:
    """Takes the majority of three rows."""

    rows: tuple[int, int, int]


Reads = _Copy | _Fill | _Vote


@dataclass(frozen=True)
class _Move:
    """A command: the rows that it writes, and what it reads to do so."""

    command: Command
    writes: Writes
    reads: Reads


def _cells(address: Wordlines) -> Writes:
    return tuple((B_ROWS.index(row), complemented) for row, complemented in address.cells)


def _moves(rows: Rows) -> list[_Move]:
    """All commands but those that raise a row for reading and for writing its complement."""
    targets = [(address, _cells(address)) for address in B_GROUP]
    targets += [(rows.data[row - 6], ((row, False),)) for row in sorted(rows.writable)]
    moves = [_Move(AAP(to, Constant(v)), cells, _Fill(v)) for to, cells in targets for v in (0, 1)]
    sources = [(address, _Copy(*_cells(address)[0])) for address in B_GROUP[:8]]
    sources += [(address, _Copy(6 + i, False)) for i, address in enumerate(rows.data)]
    for to, cells in targets:
        written = {row for row, _ in cells}
        moves += [
            _Move(AAP(to, address), cells, source)
            for address, source in sources
            if source.row not in written
        ]
    for majority in MAJORITIES:
        a, b, c = (row for row, _ in _cells(majority))
        kept: Writes = ((a, False), (b, False), (c, False))
        moves.append(_Move(AP(majority), kept, _Vote((a, b, c))))
        for to, cells in targets:
            if to != majority and not any((row, True) in cells for row in (a, b, c)):
                writes = tuple(dict.fromkeys((*kept, *cells)))
                moves.append(_Move(AAP(to, majority), writes, _Vote((a, b, c))))
    return moves


class _Bound:
    """A lower bound on how many commands come before a situation.

    Every command gives one function to rows, direct or complemented. So functions are counted
    one by one: the fewest commands that give it to all rows that demand it, and one more for
    each further function that must be computed or loaded on the way.
    """

    def __init__(self, rows: Rows, form: Form, moves: Sequence[_Move]) -> None:
        self.rows = rows
        self.form = form
        copies = {move.writes for move in moves if not isinstance(move.reads, _Vote)}
        votes = {move.writes for move in moves if isinstance(move.reads, _Vote)}
        self.copies = sorted(copies)
        self.votes = sorted(votes)
        held = {regular(f, form.ones) for f in rows.start[:6] if f is not None}
        self.free = frozenset(held & form.leaves)
        self.triples = {
            node: sorted(
                {tuple(sorted(regular(f, form.ones) for f in t)) for t in form.triples(node)}
            )
            for node in form.nodes
        }
        self.grounded = self._grounded()
        self._spread: dict[tuple[bool, tuple[tuple[int, bool], ...]], int] = {}
        self._cone: dict[frozenset[int], int] = {}

    def __call__(self, demands: Demands, pending: frozenset[int]) -> int:
        ones = self.form.ones
        groups: dict[int, list[tuple[int, bool]]] = {}
        for row, function in enumerate(demands):
            if function is not None and function != self.rows.start[row]:
                groups.setdefault(regular(function, ones), []).append((row, bool(function & 1)))
        known = pending.union(groups)
        total = self.cone(known) + len(known) - len(groups)
        for function, places in groups.items():
            total += self.spread(function in self.form.nodes, tuple(places))
        return total

    def spread(self, computed: bool, places: tuple[tuple[int, bool], ...]) -> int:
        """The fewest commands, up to three, that give one function to all these rows."""
        key = (computed, places)
        if key not in self._spread:
            first = self.votes if computed else self.copies
            self._spread[key] = self._fewest(first, places)
        return self._spread[key]

    def _fewest(self, first: list[Writes], places: tuple[tuple[int, bool], ...]) -> int:
        left = {self._uncovered(writes, places) for writes in first}
        left = {rest for pair in left for rest in pair}
        if () in left:
            return 1
        for rest in left:
            if any(() in self._uncovered(w, rest) for w in (*self.copies, *self.votes)):
                return 2
        return 3

    @staticmethod
    def _uncovered(writes: Writes, places: tuple[tuple[int, bool], ...]) -> tuple[Writes, Writes]:
        """Which places are left if the function, or if its complement, is written."""
        by_row = dict(writes)
        return (
            tuple(p for p in places if by_row.get(p[0]) is not p[1]),
            tuple(p for p in places if by_row.get(p[0]) is not (not p[1])),
        )

    def cone(self, known: frozenset[int]) -> int:
        """How many further functions must be computed or loaded to compute those `known`."""
        if known not in self._cone:
            self._cone[known] = self._cheapest(known)
        return self._cone[known]

    def _cheapest(self, known: frozenset[int]) -> int:
        return min(len(s - known) for s in self.grounded if known - self.free <= s)

    def _grounded(self) -> list[frozenset[int]]:
        """The sets of functions that can be computed from the leaves among them and free ones."""
        paid = sorted(self.form.leaves - self.free)
        found: set[frozenset[int]] = set()

        def grow(chosen: frozenset[int]) -> None:
            if chosen in found:
                return
            found.add(chosen)
            at_hand = chosen | self.free
            for node, triples in self.triples.items():
                if node not in chosen and any(at_hand.issuperset(t) for t in triples):
                    grow(chosen | {node})

        for size in range(len(paid) + 1):
            for leaves in combinations(paid, size):
                grow(frozenset(leaves))
        return sorted(found, key=len)


class Way(NamedTuple):
    """What three rows hold, and whether their majority is a function that none of them has."""

    functions: tuple[int | None, int | None, int | None]
    computes: bool


@dataclass
class Search:
    """One search for programs over one form; `visited` counts the situations looked at."""

    rows: Rows
    form: Form
    visited: int = 0
    _failed: dict[tuple[Demands, frozenset[int]], int] = field(
        default_factory=dict[tuple[Demands, frozenset[int]], int]
    )

    def __post_init__(self) -> None:
        moves = _moves(self.rows)
        self._bound = _Bound(self.rows, self.form, moves)
        # Commands by the rows that they write, because most do not fit a situation.
        by_writes: dict[Writes, list[_Move]] = {}
        for move in moves:
            by_writes.setdefault(move.writes, []).append(move)
        self._by_writes = [
            (sum(1 << row for row, _ in writes), writes, same) for writes, same in by_writes.items()
        ]
        self._known_ways: dict[int, list[Way]] = {}

    def program(self, commands: int) -> list[Command] | None:
        """A program of at most that many commands, or None if there is none over this form."""
        return self._before(self.rows.goal, self.form.nodes, commands)

    def _before(self, demands: Demands, pending: frozenset[int], left: int) -> list[Command] | None:
        key = (demands, pending)
        if self._failed.get(key, -1) >= left:
            return None
        self.visited += 1
        bound = self._bound(demands, pending)
        if bound == 0:
            return []
        if bound <= left and left > 0:
            for command, earlier, computed in self._steps_back(demands):
                still = pending - {computed} if computed in pending else pending
                program = self._before(earlier, still, left - 1)
                if program is not None:
                    program.append(command)
                    return program
        self._failed[key] = left
        return None

    def _steps_back(self, demands: Demands) -> Iterator[tuple[Command, Demands, int | None]]:
        demanded = sum(1 << row for row, function in enumerate(demands) if function is not None)
        tried: set[tuple[int, int, Reads]] = set()
        for mask, writes, moves in self._by_writes:
            met = mask & demanded
            if not met:
                continue
            function = self._written(demands, writes)
            if function is None:
                continue
            rest = [None if mask >> row & 1 else f for row, f in enumerate(demands)]
            for move in moves:
                # What a command writes besides what is demanded makes no difference.
                key = (met, function, move.reads)
                if key in tried:
                    continue
                tried.add(key)
                for earlier, computes in self._earlier(move, function, rest):
                    computed = regular(function, self.form.ones) if computes else None
                    yield move.command, earlier, computed

    def _written(self, demands: Demands, writes: Writes) -> int | None:
        """The function that the command must have written, None if it cannot be the last one."""
        function = None
        for row, complemented in writes:
            demanded = demands[row]
            if demanded is None:
                continue
            if complemented:
                demanded ^= self.form.ones
            if function is None:
                function = demanded
            elif function != demanded:
                return None
        return function

    def _earlier(
        self, move: _Move, function: int, rest: list[int | None]
    ) -> Iterator[tuple[Demands, bool]]:
        """The demands before `move`, and whether it computes its function from others."""
        match move.reads:
            case _Vote((a, b, c)):
                for (x, y, z), computes in self._ways(function):
                    earlier = list(rest)
                    earlier[a], earlier[b], earlier[c] = x, y, z
                    yield tuple(earlier), computes
            case _Fill(value):
                if function == (self.form.ones if value else 0):
                    yield tuple(rest), False
            case _Copy(row, complemented):
                if complemented:
                    function ^= self.form.ones
                yield from self._before_copy(row, function, rest)

    def _before_copy(
        self, row: int, function: int, rest: list[int | None]
    ) -> Iterator[tuple[Demands, bool]]:
        # A D row that nothing writes holds the same at all times.
        if row >= 6 and row not in self.rows.writable:
            if function == self.rows.start[row]:
                yield tuple(rest), False
        elif rest[row] is None or rest[row] == function:
            earlier = list(rest)
            earlier[row] = function
            yield tuple(earlier), False

    def _ways(self, function: int) -> list[Way]:
        """What three rows may hold to have this majority, as few demands as possible each."""
        if function not in self._known_ways:
            ways = [
                Way(order, True)
                for triple in self.form.triples(function)
                for order in permutations(triple, 3)
            ]
            # Majorities that compute nothing: two rows agree, or two are complements.
            ways.append(Way((function, function, None), False))
            ways.append(Way((function, None, function), False))
            ways.append(Way((None, function, function), False))
            for other in sorted(self.form.leaves | self.form.nodes):
                if regular(function, self.form.ones) != other:
                    triple = (function, other, other ^ self.form.ones)
                    ways.extend(Way(order, False) for order in permutations(triple, 3))
            self._known_ways[function] = ways
        return self._known_ways[function]
