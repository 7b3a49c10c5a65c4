"""The synthesiser: from one bit step to the shortest row program that computes it.

First the majority-inverter forms of the step are listed, fewest majorities first
(synthesis_forms.py). Then row programs over them are searched, shortest first
(synthesis_search.py). A length is given up only when no form has a program of it, so that the
first program is a shortest one under these rules:

- no demanded value depends on rows whose contents are unknown;
- no command raises a row for reading and for writing its complement;
- nothing but the step's own D rows and its scratch rows is used.

What is found is executed on all inputs and all contents of all other rows before it is returned.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cim_opt.errors import UserError
from cim_opt.microprograms.model import B_ROWS, Command
from cim_opt.microprograms.subarray import Subarray, integers
from cim_opt.microprograms.synthesis_forms import Form, forms
from cim_opt.microprograms.synthesis_search import Search
from cim_opt.microprograms.synthesis_step import Step

MAX_COMMANDS = 16


@dataclass(frozen=True)
class Synthesis:
    """A shortest program of a step: no shorter one exists under the rules of this module.

    `majorities`: how many different functions any program must compute. `visited`: how many
    situations the search looked at.
    """

    step: Step
    commands: tuple[Command, ...]
    majorities: int
    visited: int


class _Forms:
    """The forms of a step and the searches over them, made once for all lengths."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.rows = step.rows
        self.targets = [function for function in self.rows.goal if function is not None]
        self.leaves = [*step.tables.values(), 0]
        self.loads = _needed_loads(step)
        self._searches: dict[int, list[Search]] = {}

    def all(self) -> list[list[Search]]:
        """All searches so far."""
        return list(self._searches.values())

    def searches(self, nodes: int) -> list[Search]:
        if nodes not in self._searches:
            found: list[Form] = forms(self.targets, self.leaves, self.step.ones, nodes)
            self._searches[nodes] = [Search(self.rows, form) for form in found]
        return self._searches[nodes]


def _needed_loads(step: Step) -> int:
    """How many inputs some result depends on: each is loaded at least once."""
    bits = range(len(step.assignments))
    goal = [function for function in step.rows.goal if function is not None]

    def matters(k: int) -> bool:
        position = {number: i for i, number in enumerate(step.assignments)}
        pairs = [(i, position.get(step.assignments[i] ^ (1 << k))) for i in bits]
        return any(j is not None and (f >> i ^ f >> j) & 1 for i, j in pairs for f in goal)

    return sum(matters(k) for k in range(len(step.inputs)))


def synthesise(
    step: Step, most: int = MAX_COMMANDS, say: Callable[[str], None] = lambda _: None
) -> Synthesis:
    """A shortest program of `step`, of at most `most` commands.

    `say` gets a line about every length that is tried. Raises UserError for a step that is not
    well formed, and where there is no program of that length.
    """
    table = _Forms(step)
    fewest = 0
    while not table.searches(fewest):
        fewest += 1
    for commands in range(fewest + table.loads, most + 1):
        say(f"{step.name}: {commands} commands")
        program = _of_length(table, commands, fewest)
        if program is not None:
            verify(step, program)
            visited = sum(s.visited for searches in table.all() for s in searches)
            return Synthesis(step, tuple(program), fewest, visited)
    raise UserError(
        f"step {step.name} has no program of {most} commands or fewer",
        f"{fewest} majorities and {table.loads} loads are needed at least",
        "allow more commands, a scratch row, or other places for the state",
    )


def _of_length(table: _Forms, commands: int, fewest: int) -> list[Command] | None:
    # A program without loads to spare may compute more functions than it must.
    for nodes in range(fewest, commands - table.loads + 1):
        for search in table.searches(nodes):
            program = search.program(commands)
            if program is not None:
                return program
    return None


class WrongProgram(Exception):
    """A row program that does not compute its step: says which row is wrong for which values."""


def verify(step: Step, commands: Sequence[Command]) -> None:
    """Execute the program on all inputs and on all contents of all other rows.

    Raises WrongProgram where a result or a following state is not what the step says, or an
    input changes, and IllegalCommand for a command that no subarray can execute.
    """
    start, goal = step.rows.start, step.rows.goal
    free = [row for row, function in enumerate(start) if function is None]
    values = _with_garbage(step, free)
    lanes = len(step.assignments) << len(free)
    subarray = Subarray(integers(lanes), {row.operand: 1 for row in step.data})
    for row, value in enumerate(values):
        if row < 6:
            subarray.rows[B_ROWS[row]] = value
        else:
            subarray.data[step.data[row - 6]] = value
    subarray.execute(commands)
    for row, function in enumerate(goal):
        name = B_ROWS[row] if row < 6 else str(step.data[row - 6])
        got = subarray.rows[name] if row < 6 else subarray.data[step.data[row - 6]]
        wanted = start[row] if function is None and row not in step.rows.writable else function
        if wanted is None or (row < 6 and function is None):
            continue
        wrong = got ^ _spread(step, wanted, lanes)
        if wrong:
            raise WrongProgram(f"step {step.name}: {name} is wrong for {_values(step, wrong)}")


def _with_garbage(step: Step, free: Sequence[int]) -> list[int]:
    """The rows at the start, one lane for every assignment and every content of `free` rows."""
    count = len(step.assignments)
    lanes = count << len(free)
    values: list[int] = []
    for row, function in enumerate(step.rows.start):
        if function is not None:
            values.append(_spread(step, function, lanes))
            continue
        block = count << free.index(row)  # this many lanes of 0, then of 1, and so on
        pair = ((1 << block) - 1) << block
        values.append(sum(pair << at for at in range(0, lanes, 2 * block)))
    return values


def _spread(step: Step, function: int, lanes: int) -> int:
    count = len(step.assignments)
    return sum(function << at for at in range(0, lanes, count))


def _values(step: Step, wrong: int) -> str:
    lane = (wrong & -wrong).bit_length() - 1
    number = step.assignments[lane % len(step.assignments)]
    return ", ".join(f"{name} = {number >> k & 1}" for k, name in enumerate(step.variables))
