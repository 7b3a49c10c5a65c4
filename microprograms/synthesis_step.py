"""What the synthesiser is asked for: one bit step as formulas, and where its state waits.

    Step(
        "subtract",
        inputs=("a", "b"),
        state=(("borrow", ("T3", "DCC1")),),
        results=(("out", "a ^ b ^ borrow"),),
        following=(("borrow", "maj(~a, b, borrow)"),),
    )

Inputs and results are D rows; a name that is both is a row that the step updates. A state
variable waits in rows of the B-group, before the step and, as its following value, after it.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cim_opt.errors import UserError
from cim_opt.microprograms.model import B_ROWS, Bit, bit
from cim_opt.microprograms.synthesis_forms import majority
from cim_opt.microprograms.synthesis_search import Rows

# Truth tables have 2^n bits, and the forms over more functions take hours.
MAX_VARIABLES = 6

# Pairs instead of a dictionary, so that a step can be compared and hashed.
Formulas = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Step:
    """One bit step.

    Formulas know `&`, `|`, `^`, `~`, `maj(x, y, z)`, 0 and 1 over inputs and state variables, or
    are a truth table `0x...` in which bit i is the value where variable k is bit k of i, inputs
    first. A row name with `~` in front holds the complement. Variables only ever take values for
    which `assume` is true. `scratch` D rows may hold anything in between.
    """

    name: str
    inputs: tuple[str, ...]
    results: Formulas = ()
    state: tuple[tuple[str, tuple[str, ...]], ...] = ()
    following: Formulas = ()
    assume: str = "1"
    scratch: int = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """Inputs, then state variables: variable k is bit k of an assignment's number."""
        return (*self.inputs, *(name for name, _ in self.state))

    @cached_property
    def assignments(self) -> list[int]:
        """The numbers of the assignments that can occur. Raises UserError for a wrong step."""
        self._check()
        count = 1 << len(self.variables)
        ones = (1 << count) - 1
        names = {
            name: sum(1 << i for i in range(count) if i >> k & 1)
            for k, name in enumerate(self.variables)
        }
        occurs = _evaluate(self.assume, names, ones, list(range(count)))
        found = [i for i in range(count) if occurs >> i & 1]
        if not found:
            raise UserError(f"step {self.name}: no values satisfy {self.assume!r}")
        return found

    @property
    def ones(self) -> int:
        """The truth table of the constant 1."""
        return (1 << len(self.assignments)) - 1

    @property
    def tables(self) -> dict[str, int]:
        """The truth table of every variable, one bit for each of `assignments`."""
        return {
            name: sum(1 << i for i, number in enumerate(self.assignments) if number >> k & 1)
            for k, name in enumerate(self.variables)
        }

    def formula(self, text: str) -> int:
        """The truth table of a formula. Raises UserError where it is none."""
        return _evaluate(text, self.tables, self.ones, self.assignments)

    @cached_property
    def rows(self) -> Rows:
        """What rows hold before the step and must hold after it."""
        tables = self.tables
        results = {name: self.formula(text) for name, text in self.results}
        following = {name: self.formula(text) for name, text in self.following}
        start: list[int | None] = [None] * 6
        goal: list[int | None] = [None] * 6
        for name, places in self.state:
            for place in places:
                row, flip = B_ROWS.index(place.removeprefix("~")), place.startswith("~")
                start[row] = tables[name] ^ (self.ones if flip else 0)
                goal[row] = following[name] ^ (self.ones if flip else 0)
        start += [tables.get(row.operand) for row in self.data]
        goal += [results.get(row.operand) for row in self.data]
        writable = (6 + i for i, row in enumerate(self.data) if row.operand not in tables)
        updated = (6 + i for i, row in enumerate(self.data) if row.operand in results)
        return Rows(self.data, tuple(start), tuple(goal), frozenset((*writable, *updated)))

    @property
    def data(self) -> tuple[Bit, ...]:
        """The D rows: inputs, results that are no inputs, scratch."""
        results = (name for name, _ in self.results if name not in self.inputs)
        names = (*self.inputs, *results, *(f"scratch{i}" for i in range(self.scratch)))
        return tuple(bit(name, 0) for name in names)

    def _check(self) -> None:
        names = self.variables
        if len(set(names)) != len(names):
            raise UserError(f"step {self.name}: a variable occurs twice", None, "rename one")
        if len(names) > MAX_VARIABLES:
            raise UserError(
                f"step {self.name} has {len(names)} variables",
                f"at most {MAX_VARIABLES} can be searched",
                "split the step",
            )
        if not self.results and not self.following:
            raise UserError(f"step {self.name} computes nothing", None, "give it a result")
        if {name for name, _ in self.state} != {name for name, _ in self.following}:
            raise UserError(
                f"step {self.name}: state variables and their following values differ",
                None,
                "give every state variable its places and its following value",
            )
        self._check_places()

    def _check_places(self) -> None:
        taken: set[str] = set()
        for name, places in self.state:
            for place in places:
                row = place.removeprefix("~")
                if row not in B_ROWS:
                    raise UserError(
                        f"step {self.name}: {name} cannot wait in '{place}'",
                        f"the rows of the B-group are {', '.join(B_ROWS)}",
                        "choose one of them, with ~ in front for the complement",
                    )
                if row in taken:
                    raise UserError(f"step {self.name}: two values wait in {row}")
                taken.add(row)


def _evaluate(text: str, names: Mapping[str, int], ones: int, assignments: list[int]) -> int:
    if text.strip().lower().startswith("0x"):
        return _explicit(text, assignments, len(names))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise _wrong(text) from None

    def value(node: ast.expr) -> int:
        match node:
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.Name(id=name):
                raise UserError(
                    f"unknown variable '{name}' in '{text}'",
                    None,
                    f"the variables are {', '.join(names)}",
                )
            case ast.Constant(value=0):
                return 0
            case ast.Constant(value=1):
                return ones
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return value(operand) ^ ones
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                return value(left) & value(right)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return value(left) | value(right)
            case ast.BinOp(left=left, op=ast.BitXor(), right=right):
                return value(left) ^ value(right)
            case ast.Call(func=ast.Name(id="maj"), args=[x, y, z], keywords=[]):
                return majority(value(x), value(y), value(z))
            case _:
                raise _wrong(text)

    return value(tree)


def _explicit(text: str, assignments: list[int], variables: int) -> int:
    try:
        table = int(text, 16)
    except ValueError:
        raise _wrong(text) from None
    bits = 1 << variables
    if table >> bits:
        raise UserError(f"truth table {text}", f"{variables} variables give {bits} bits")
    return sum(1 << i for i, number in enumerate(assignments) if table >> number & 1)


def _wrong(text: str) -> UserError:
    return UserError(
        f"not a formula: '{text}'",
        "a formula has &, |, ^, ~, maj(x, y, z), 0, 1 and names, or is a truth table 0x...",
        "write it with these",
    )
