"""Proofs by z3 that a row program computes its operation, for all inputs and all old contents.

    prove("cim-opt", "add", 64).holds
    prove("simdram", "div_u", 32).method

Two methods. Outright: the whole program is executed on terms and compared with the operation of
bit-vectors. By induction, for products, quotients and counts, where that is out of reach: the
program is cut between the steps of a recurrence, and each step is proved (proofs_induction.py).
Every row that the program does not write first holds a free variable at the start.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from cim_opt.microprograms.library import library
from cim_opt.microprograms.model import B_ROWS, Operand, RowProgram, bit
from cim_opt.microprograms.proofs_induction import Induction
from cim_opt.microprograms.proofs_meaning import Options, Term, load_z3, meaning
from cim_opt.microprograms.proofs_recurrences import (
    Count,
    Division,
    Lane,
    Product,
    ProductThenSum,
    Recurrence,
)
from cim_opt.microprograms.subarray import Subarray, operators

OUTRIGHT, INDUCTION = "outright", "induction"
# The widest operands for which z3 proves the whole program at once, in seconds at most. Any
# operation that is not here is proved outright at every width.
OUTRIGHT_WIDTHS = {
    "mul": 7,
    "mac": 6,
    "msub": 6,
    "div_u": 6,
    "rem_u": 6,
    "div_s": 6,
    "rem_s": 6,
    "bitcount": 16,
}
TIMEOUT_MS = 60_000
LANES_A_LENGTH = 4


@dataclass(frozen=True)
class Counterexample:
    """Inputs, as values, for which the program gives `got` and not `expected`."""

    inputs: Mapping[str, int]
    got: int
    expected: int

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value:#x}" for name, value in self.inputs.items())
        return f"{values}: {self.got:#x} instead of {self.expected:#x}"


@dataclass(frozen=True)
class Proof:
    """Whether the program is right for all inputs. `reason` says why it is not known to be.

    `steps` counts the queries of a proof by induction.
    """

    library: str
    operation: str
    width: int
    holds: bool
    method: str
    steps: int = 1
    counterexample: Counterexample | None = None
    reason: str | None = None


def prove(library_name: str, operation: str, width: int, **options: int | bool | None) -> Proof:
    """The proof for a program of a library. Raises UserError where there is no such program."""
    program = library(library_name).program(operation, width, **options)
    return prove_program(program, operation, options)


def prove_program(
    program: RowProgram, operation: str, options: Options, method: str | None = None
) -> Proof:
    """The proof that `program` computes `operation`, by the method that suits its width.

    Raises IllegalCommand for a program that no subarray can execute.
    """
    if method is None:
        narrow = program.width <= OUTRIGHT_WIDTHS.get(operation, program.width)
        method = OUTRIGHT if narrow else INDUCTION
    if method == OUTRIGHT:
        return _outright(program, operation, options)
    return _by_induction(program, operation, options)


def _proof(program: RowProgram, operation: str, holds: bool, method: str, **more: Any) -> Proof:
    return Proof(program.library, operation, program.width, holds, method, **more)


def _outright(program: RowProgram, operation: str, options: Options) -> Proof:
    z3 = load_z3()
    words = {x.name: z3.BitVec(x.name, x.width) for x in program.inputs}
    got = _symbolic(program, words)
    expected = meaning(operation, program.width, options, words)
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", TIMEOUT_MS)
    solver.add(got != expected)
    answer = solver.check()
    if answer == z3.unsat:
        return _proof(program, operation, True, OUTRIGHT)
    if answer == z3.unknown:
        return _proof(program, operation, False, OUTRIGHT, reason="z3 gave up")
    model = solver.model()

    def value(term: Term) -> int:
        return model.eval(term, model_completion=True).as_long()

    inputs = {name: value(word) for name, word in words.items()}
    wrong = Counterexample(inputs, value(got), value(expected))
    return _proof(
        program, operation, False, OUTRIGHT, counterexample=wrong, reason="the result is wrong"
    )


def _symbolic(program: RowProgram, words: Mapping[str, Term]) -> Term:
    """The value of the output as a term; rows hold free variables where nothing was written."""
    z3 = load_z3()
    algebra = operators(z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))
    operands = program.operands.values()
    written = {x.name for x in program.outputs}
    fixed = frozenset(x.name for x in program.inputs if x.name not in written)
    subarray: Subarray[Term] = Subarray(algebra, {x.name: x.width for x in operands}, fixed)
    subarray.rows.update({row: z3.BitVec(f"old {row}", 1) for row in B_ROWS})
    for operand in operands:
        for index in range(operand.width):
            if operand.name in words:
                row = z3.Extract(index, index, words[operand.name])
                row = ~row if operand.complemented else row
            else:
                row = z3.BitVec(f"old {operand.name}{index}", 1)
            subarray.data[bit(operand.name, index)] = row
    subarray.execute(program.commands)
    (output,) = program.outputs
    rows = [subarray.data[bit(output.name, index)] for index in reversed(range(output.width))]
    word = z3.Concat(*rows) if len(rows) > 1 else rows[0]
    return ~word if output.complemented else word


def _by_induction(program: RowProgram, operation: str, options: Options) -> Proof:
    reasons: list[str] = []
    lanes = sample(program.inputs)
    for recurrence in recurrences(program, operation, options):
        induction = Induction(program, recurrence, lanes, TIMEOUT_MS)
        failure = induction.run()
        if failure is None:
            steps = len(induction.cuts) + 1
            return _proof(program, operation, True, INDUCTION, steps=steps)
        where = f"commands {failure.first} to {failure.last}"
        reasons.append(f"step {failure.step}, {where}: {failure.reason}")
    wrong = _wrong_lane(program, operation, options, lanes)
    reason = reasons[0] if reasons else f"no recurrence is known for {operation}"
    return _proof(program, operation, False, INDUCTION, counterexample=wrong, reason=reason)


def _wrong_lane(
    program: RowProgram, operation: str, options: Options, lanes: list[Lane]
) -> Counterexample | None:
    """Some values for which the program gives the wrong result, if any of the sample does."""
    z3 = load_z3()
    for lane in lanes:
        words = {x.name: z3.BitVecVal(lane[x.name], x.width) for x in program.inputs}
        expected = z3.simplify(meaning(operation, program.width, options, words))
        got = z3.simplify(_symbolic(program, words))
        solver = z3.SolverFor("QF_BV")
        solver.add(got != expected)  # a wrong result may depend on what rows held before
        if solver.check() == z3.sat:
            number = solver.model().eval(got, model_completion=True).as_long()
            return Counterexample(lane, number, expected.as_long())
    return None


def recurrences(program: RowProgram, operation: str, options: Options) -> list[Recurrence]:
    """What may prove an operation by induction; any one that does is enough."""
    sizes = {x.name: x.width for x in program.inputs}
    if operation in ("mul", "mac", "msub"):
        sign = -1 if operation == "msub" else 1
        signed = bool(options.get("signed"))
        orders = [("a", "b"), ("b", "a")] if sizes["a"] <= sizes["b"] else [("b", "a"), ("a", "b")]
        narrow = operation != "mul" and max(sizes["a"], sizes["b"]) < program.width
        kind = ProductThenSum if narrow else Product
        return [kind(program.width, x, y, sizes, signed, sign) for x, y in orders]
    if operation in ("div_u", "rem_u", "div_s", "rem_s"):
        return [Division(program.width, operation)]
    if operation == "bitcount":
        return [Count(program.width, program.outputs[0].width)]
    return []


def sample(inputs: tuple[Operand, ...]) -> list[Lane]:
    """Values to run a program on beside its proof: corners and random ones, always the same."""
    random.seed(1)
    names = [x.name for x in inputs]
    corners = [sorted({0, 1, (1 << x.width) - 1, 1 << (x.width - 1)}) for x in inputs]
    lanes: list[Lane] = [dict(zip(names, values, strict=True)) for values in product(*corners)]
    # Numbers of every length beside long ones, or most quotients would be 0 or 1.
    for length in range(1, max((x.width for x in inputs), default=0) + 1):
        for short in names * LANES_A_LENGTH:
            lane = {x.name: random.getrandbits(x.width) for x in inputs}
            top = 1 << (length - 1)
            lane[short] = (lane[short] % top + top) % (1 << _width_of(short, inputs))
            lanes.append(lane)
    # All small divisors with all dividends that start with few bits: the first steps need them.
    for top, low in product(range(16), range(16)):
        lane: dict[str, int] = {}
        for number, x in enumerate(inputs):
            high = top << x.width >> 4 | random.getrandbits(x.width) >> 4
            lane[x.name] = low % (1 << x.width) if number % 2 else high
        lanes.append(lane)
    return lanes


def _width_of(name: str, operands: tuple[Operand, ...]) -> int:
    return next(x.width for x in operands if x.name == name)
