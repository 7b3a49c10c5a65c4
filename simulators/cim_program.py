"""Runs a `cim.program`, exactly: control flow and addresses as generated Python, bytes by NumPy.

Each instruction becomes a function that its addresses are passed to; it checks them, and moves or
computes all its bytes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import cim
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.locations import location_of
from cim_opt.simulators.cim_instructions import INSTRUCTIONS, check_instruction
from cim_opt.simulators.cim_memory import MachineState

EXPRESSIONS: Mapping[str, str] = {
    "arith.addi": "{} + {}",
    "arith.subi": "{} - {}",
    "arith.muli": "{} * {}",
    "arith.minsi": "min({}, {})",
    "arith.maxsi": "max({}, {})",
}
"""Scalar instructions on addresses and counters, as Python."""


_CONTROL = (cim.ReturnOp, scf.ForOp, scf.YieldOp, arith.ConstantOp)


def check_program(program: cim.ProgramOp, machine: CimMachine) -> None:
    """Refuses what no run of a program on the machine could do. Raises UserError."""
    for op in program.body.walk():
        if type(op) in INSTRUCTIONS:
            check_instruction(op, machine)
        elif not isinstance(op, _CONTROL) and op.name not in EXPRESSIONS:
            raise UserError(
                f"'{op.name}' in a cim.program",
                "it holds instructions of cim, scf.for, and on indices arith.constant, "
                f"{', '.join(EXPRESSIONS)}",
                "compute it on the host, or with these",
                location_of(op),
            )
        for value in op.results:
            if value.type != IndexType():
                raise UserError(
                    f"'{op.name}' makes a value of type {value.type} in a cim.program",
                    "addresses and counters have type index",
                    "use index",
                    location_of(op),
                )


def constant_of(op: arith.ConstantOp) -> int:
    """The number of an `arith.constant` of type index."""
    assert isa(op.value, IntegerAttr)
    return op.value.value.data


def trips(op: scf.ForOp, low: int, high: int, step: int) -> range:
    """The values of a loop's counter. UserError for a step that is not positive."""
    if step < 1:
        raise UserError(f"step of '{op.name}' is {step}", "it is at least 1", None, location_of(op))
    return range(low, high, step)


class Runner:
    """A program, ready to run on a machine."""

    def __init__(self, program: cim.ProgramOp, machine: CimMachine):
        check_program(program, machine)
        self.machine = machine
        writer = _Writer()
        self.text = writer.program(program)
        self._loops = writer.loops
        self._instructions = writer.instructions
        self._code = compile(self.text, f"<cim.program {program.sym_name.data}>", "exec")

    def run(self, state: MachineState, addresses: Sequence[int]) -> None:
        """Runs the program on a state, which it changes. Raises UserError when it traps."""
        names: dict[str, Any] = {}
        for name, op in self._instructions.items():
            names[name] = INSTRUCTIONS[type(op)](op, state)
        for name, loop in self._loops.items():
            names[name] = _counter(loop)
        exec(self._code, names)
        names["program"](*addresses)


def _counter(loop: scf.ForOp) -> Callable[[int, int, int], range]:
    return lambda low, high, step: trips(loop, low, high, step)


class _Writer:
    """Writes a program as a Python function named `program`."""

    def __init__(self):
        self.names: dict[SSAValue, str] = {}
        self.loops: dict[str, scf.ForOp] = {}
        self.instructions: dict[str, Operation] = {}
        self.lines: list[str] = []

    def program(self, program: cim.ProgramOp) -> str:
        block = program.body.block
        self.lines = [f"def program({', '.join(self.new(block.args))}):", "    pass"]
        self.block(block, "    ")
        return "\n".join(self.lines) + "\n"

    def new(self, values: Sequence[SSAValue]) -> list[str]:
        """Names of values that are defined here."""
        for value in values:
            self.names[value] = f"v{len(self.names)}"
        return self.of(values)

    def of(self, values: Sequence[SSAValue]) -> list[str]:
        return [self.names[value] for value in values]

    def block(self, block: Block, indent: str) -> None:
        for op in block.ops:
            if isinstance(op, arith.ConstantOp):
                self.lines.append(f"{indent}{self.new(op.results)[0]} = {constant_of(op)}")
            elif isinstance(op, scf.ForOp):
                self.loop(op, indent)
            elif op.name in EXPRESSIONS:
                text = EXPRESSIONS[op.name].format(*self.of(op.operands))
                self.lines.append(f"{indent}{self.new(op.results)[0]} = {text}")
            elif type(op) in INSTRUCTIONS:
                name = f"run{len(self.instructions)}"
                self.instructions[name] = op
                self.lines.append(f"{indent}{name}({', '.join(self.of(op.operands))})")

    def loop(self, op: scf.ForOp, indent: str) -> None:
        block = op.body.block
        name = f"trips{len(self.loops)}"
        self.loops[name] = op
        bounds = ", ".join(self.of((op.lb, op.ub, op.step)))
        inits = self.of(op.iter_args)
        counter, *carried = self.new(block.args)
        self.assign(carried, inits, indent)
        self.lines.append(f"{indent}for {counter} in {name}({bounds}):")
        inner = indent + "    "
        self.lines.append(f"{inner}pass")
        self.block(block, inner)
        last = block.last_op
        assert last is not None
        self.assign(carried, self.of(last.operands), inner)
        self.assign(self.new(op.results), carried, indent)

    def assign(self, targets: Sequence[str], values: Sequence[str], indent: str) -> None:
        if targets:
            self.lines.append(f"{indent}{', '.join(targets)} = {', '.join(values)}")
