"""Programs for macros as data: what the code generator writes and the cost model times.

A program has variables that hold byte addresses. Statements change variables or work at them; a
loop repeats its body and keeps what the body did to the variables. No address depends on data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Variable = str | int
"""The name of a variable, or an address that is known."""


@dataclass(frozen=True, slots=True)
class Set:
    """target = source + offset."""

    target: str
    source: Variable
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """Copies bytes from one memory to another."""

    source_memory: str
    source: Variable
    target_memory: str
    target: Variable
    bytes: int


@dataclass(frozen=True, slots=True)
class Load:
    """Loads the first rows of the first macros."""

    source: Variable
    macros: int
    rows: int


@dataclass(frozen=True, slots=True)
class Multiply:
    """One macro step on the first macros; macro m reads `step` bytes after macro m - 1."""

    input: Variable
    step: int
    macros: int
    rows: int
    bits: int


@dataclass(frozen=True, slots=True)
class Add:
    """target = left + right, 32-bit elements of the output memory."""

    target: Variable
    left: Variable
    right: Variable
    elements: int


@dataclass(frozen=True, slots=True)
class Clear:
    """Zeros 32-bit elements of the output memory."""

    target: Variable
    elements: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """Runs the body `count` times."""

    count: int
    body: tuple[Statement, ...]


Statement = Set | Copy | Load | Multiply | Add | Clear | Repeat


def repeat(count: int, body: Sequence[Statement]) -> list[Statement]:
    """The body `count` times: nothing for 0, itself for 1, else a loop."""
    if count < 1:
        return []
    return list(body) if count == 1 else [Repeat(count, tuple(body))]


def assigned(body: Sequence[Statement]) -> list[str]:
    """The variables that a body sets, in the order in which they are first set."""
    return list(dict.fromkeys(_assigned(body)))


def _assigned(body: Sequence[Statement]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Set):
            yield statement.target
        elif isinstance(statement, Repeat):
            yield from _assigned(statement.body)


def read_first(body: Sequence[Statement]) -> list[str]:
    """The variables that a body reads before it sets them; a loop hands them on."""
    first: dict[str, None] = {}
    _read(body, set(), first)
    return list(first)


def _read(body: Sequence[Statement], known: set[str], first: dict[str, None]) -> None:
    for statement in body:
        if isinstance(statement, Repeat):
            _read(statement.body, known, first)
            continue
        for variable in operands(statement):
            if isinstance(variable, str) and variable not in known:
                first[variable] = None
        if isinstance(statement, Set):
            known.add(statement.target)


def operands(statement: Statement) -> tuple[Variable, ...]:
    """The addresses that a statement reads; those of a loop's body are its own."""
    match statement:
        case Set() | Load():
            return (statement.source,)
        case Copy():
            return (statement.source, statement.target)
        case Multiply():
            return (statement.input,)
        case Add():
            return (statement.target, statement.left, statement.right)
        case Clear():
            return (statement.target,)
        case Repeat():
            return ()


def without_unused(
    statements: Sequence[Statement], wanted: frozenset[str] = frozenset()
) -> list[Statement]:
    """The statements without assignments that nobody reads; `wanted` are read afterwards."""
    kept: list[Statement] = []
    for statement in reversed(statements):
        if isinstance(statement, Set) and statement.target not in wanted:
            continue
        if isinstance(statement, Repeat):
            inside, body = wanted, tuple(without_unused(statement.body, wanted))
            # What the next iteration reads is wanted as well; what only serves itself is not.
            while (more := inside | frozenset(read_first(body))) != inside:
                inside, body = more, tuple(without_unused(statement.body, more))
            statement = Repeat(statement.count, body)
            wanted = inside
        else:
            if isinstance(statement, Set):
                wanted -= {statement.target}
            wanted |= {name for name in operands(statement) if isinstance(name, str)}
        kept.append(statement)
    return kept[::-1]


def through_load(statements: Sequence[Statement]) -> int:
    """How many statements of the outermost block end with its first load; 0 when it has none."""
    places = [place for place, each in enumerate(statements) if isinstance(each, Load)]
    return places[0] + 1 if places else 0


def late(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with assignments that can wait behind the first load of weights.

    Scalar work then goes on while weights are loaded, instead of delaying them.
    """
    end = through_load(statements)
    if any(isinstance(statement, Repeat) for statement in statements[:end]):
        return [*statements]
    needed: set[Variable] = set()
    first: list[Statement] = []
    later: list[Statement] = []
    for statement in reversed(statements[:end]):
        if isinstance(statement, Set) and not needed & {statement.target, statement.source}:
            later.append(statement)
            continue
        needed |= {*assigned([statement]), *operands(statement)}
        first.append(statement)
    return [*first[::-1], *later[::-1], *statements[end:]]
