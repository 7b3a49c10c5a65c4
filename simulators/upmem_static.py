"""Counts a kernel from its text and turns the counts into cycles, at any size, without its data.

    habits = observe(small_kernel, machine, arrays)
    result = static_counts(kernel, machine, habits)

A loop's body is counted once and multiplied by how often it runs. What the data decide is taken
from a run of the same kernel on less of them (`observe`): how often each branch of an `scf.if` is
taken, and the steps of each software multiplication and division. So the counts are exact when
those shares do not change with the size, and bounds of loops do not depend on data.

Products and quotients of numbers of iterations take what they do on average over a sample of them.
A loop whose body needs the number of its iteration, for bounds, is walked iteration by iteration.
Critical sections are not counted here: the simulator runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from cim_opt.cost.upmem_cycles import phase_cycles
from cim_opt.cost.upmem_instructions import div_instructions, mul_instructions
from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.locations import location_of
from cim_opt.simulators import elementwise
from cim_opt.simulators.upmem_index import on_indices
from cim_opt.simulators.upmem_kernel import KernelCode, compile_kernel, first_of_run
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_run import CAUSES, KernelCounts, KernelRun
from cim_opt.simulators.upmem_selection import Addressing, Selection, select

FloatArray = npt.NDArray[np.float64]
Arrays = Sequence[tuple[int, npt.NDArray[Any]]]
"""What is in MRAM before the launch: byte offsets and elements, alike on all DPUs."""

SAMPLES = 64
"""Iterations of a loop whose numbers stand for all of them where a product takes them."""

WALKED_ITERATIONS = 1 << 16
"""A loop that is walked iteration by iteration has at most so many."""


@dataclass
class Habits:
    """What the data of a kernel decide, by the number of the operation in the kernel's text.

    `taken` is the share of executions of an `scf.if` that go into its first region; `steps` are
    the mean instructions of one software multiplication or division.
    """

    taken: dict[int, float] = field(default_factory=dict[int, float])
    steps: dict[int, float] = field(default_factory=dict[int, float])


def observe(
    kernel: upmem.KernelOp,
    machine: UpmemMachine,
    arrays: Arrays,
    addressing: Addressing = "pointer",
    arguments: tuple[int, ...] = (),
) -> Habits:
    """Runs a kernel on one DPU, and says what its data decided."""
    selection, habits = select(kernel, machine, addressing), Habits()

    def issued(counted: Selection) -> float:
        code = compile_kernel(kernel, machine, selection=counted)
        return float(run_kernel(code, machine, arrays, arguments).instructions.sum())

    def executed(block: Block) -> float:
        only = dict.fromkeys(selection.blocks, 0) | {block: 1}
        return issued(Selection(only))

    for number, op in enumerate(kernel.walk()):
        block = op.parent_block()
        if isinstance(op, scf.IfOp):
            assert block is not None
            habits.taken[number] = executed(op.true_region.block) / max(executed(block), 1)
        elif op in selection.operands:
            assert block is not None
            own = Selection(
                dict.fromkeys(selection.blocks, 0), operands={op: selection.operands[op]}
            )
            habits.steps[number] = issued(own) / max(executed(block), 1)
    return habits


def run_kernel(
    code: KernelCode, machine: UpmemMachine, arrays: Arrays, arguments: tuple[int, ...] = ()
) -> KernelCounts:
    """Simulates one launch of a kernel on one DPU."""
    mram = Mram(1, machine.mram_bytes)
    for offset, values in arrays:
        mram.broadcast(values, offset)
    run = KernelRun(machine, mram, code.tasklets)
    code.function(run, *arguments)
    return run.finish()


def static_counts(
    kernel: upmem.KernelOp,
    machine: UpmemMachine,
    habits: Habits | None = None,
    addressing: Addressing = "pointer",
    arguments: tuple[int, ...] = (),
) -> KernelCounts:
    """Counts and cycles of one launch of a kernel on one DPU with these arguments.

    Raises UserError, with the operation's place, for what cannot be counted from the text.
    """
    walk = _Walk(kernel, machine, habits or Habits(), addressing)
    for value, number in zip(kernel.body.block.args, arguments, strict=True):
        walk.set(value, np.full(walk.tasklets, number))
    return walk.run()


class _NotKnown(Exception):
    """A bound that the text does not say, at this operation."""

    def __init__(self, op: Operation, what: str):
        super().__init__(what)
        self.op = op
        self.what = what


Known = npt.NDArray[Any]
"""The value on each tasklet."""


class _Walk:
    """Walks a kernel with the number of executions of the current block, by tasklet."""

    def __init__(
        self, kernel: upmem.KernelOp, machine: UpmemMachine, habits: Habits, addressing: Addressing
    ):
        self.kernel = kernel
        self.machine = machine
        self.selection = select(kernel, machine, addressing)
        self.habits = habits
        self.numbers = {op: number for number, op in enumerate(kernel.walk())}
        self.tasklets = kernel.tasklets.value.data
        self.values: dict[SSAValue, Known] = {}
        self.typical: dict[SSAValue, Known] = {}
        """Values in sampled iterations of the loops around, (samples, tasklets)."""
        self.phases = [_Phase(self.tasklets)]

    def run(self) -> KernelCounts:
        try:
            self.block(self.kernel.body.block, np.ones(self.tasklets))
        except _NotKnown as reason:
            raise UserError(
                f"'{reason.op.name}': {reason.what}",
                "counting from the text needs it",
                "run the kernel in the simulator",
                location_of(reason.op),
            ) from None
        return self._cycles()

    def _cycles(self) -> KernelCounts:
        result = KernelCounts(
            np.zeros((1, self.tasklets), np.int64), {cause: np.zeros(1) for cause in CAUSES}
        )
        for number, phase in enumerate(self.phases):
            cycles = phase.cycles(self.machine, barrier=number + 1 < len(self.phases))
            for cause in CAUSES:
                result.cycles[cause] += getattr(cycles, cause)
            result.instructions += np.rint(phase.instructions).astype(np.int64)
            result.read_bytes += int(phase.read_bytes.sum())
            result.write_bytes += int(phase.write_bytes.sum())
        return result

    def block(self, block: Block, times: FloatArray) -> None:
        self.phases[-1].instructions += self.selection.blocks[block] * times
        for op in block.ops:
            self.op(op, times)

    def op(self, op: Operation, times: FloatArray) -> None:
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            handler(self, op, times)
            return
        if op in self.selection.operands:
            self.phases[-1].instructions += self._steps(op) * times
        self._compute(op)

    def _steps(self, op: Operation) -> float | FloatArray:
        """Instructions of a software multiplication or division."""
        by = self.selection.operands[op]
        a, b = (self.typical.get(operand) for operand in op.operands)
        if a is not None and b is not None:
            if by.kind == "mul":
                taken = mul_instructions(a, b, by.bits)
            else:
                taken = div_instructions(a, b, by.bits, by.signed) + by.extra
            return taken.mean(axis=0)
        steps = self.habits.steps.get(self.numbers[op])
        if steps is None:
            raise _NotKnown(op, "its operands are not known")
        return steps

    def _compute(self, op: Operation) -> None:
        """The results, when all operands are known, and in the sampled iterations."""
        if not elementwise.is_elementwise(op):
            return
        function = on_indices(op, elementwise.function_of(op))
        for values in (self.values, self.typical):
            known = [values.get(operand) for operand in op.operands]
            if any(value is None for value in known):
                continue
            results = function(*known)
            several = results if len(op.results) > 1 else (results,)
            for result, value in zip(op.results, several, strict=True):
                values[result] = np.asarray(value)

    def constant(self, op: Operation, times: FloatArray) -> None:
        value = np.asarray(elementwise.constant_value(op))
        if isinstance(op.results[0].type, IndexType):
            value = value.astype(np.int64)
        self.set(op.results[0], np.broadcast_to(value, self.tasklets))

    def tasklet_id(self, op: Operation, times: FloatArray) -> None:
        self.set(op.results[0], np.arange(self.tasklets))

    def set(self, value: SSAValue, known: Known) -> None:
        """Notes a value that is known."""
        self.values[value] = known
        self.typical[value] = np.broadcast_to(known, (SAMPLES, self.tasklets))

    def loop(self, op: Operation, times: FloatArray) -> None:
        assert isinstance(op, scf.ForOp)
        lower, upper, step = (self.known(op, bound) for bound in (op.lb, op.ub, op.step))
        if (step <= 0).any():
            raise _NotKnown(op, "its step is not positive")
        trips = np.maximum(-((lower - upper) // step), 0)
        before = self.phases[-1].copy()
        variable = op.body.block.args[0]
        self.typical[variable] = lower + self._iterations(op, trips) * step
        try:
            self.block(op.body.block, times * trips)
            return
        except _NotKnown:
            if trips.max(initial=0) > WALKED_ITERATIONS:
                raise
        self.phases[-1] = before
        for iteration in range(int(trips.max(initial=0))):
            self.set(variable, lower + iteration * step)
            self.block(op.body.block, times * (iteration < trips))
        self.values.pop(variable, None)

    def _iterations(self, op: Operation, trips: Known) -> Known:
        """Numbers of sampled iterations, (samples, tasklets): evenly, in an order of its own."""
        order = np.random.default_rng(self.numbers[op]).permutation(SAMPLES)
        return ((order[:, None] + 0.5) / SAMPLES * trips).astype(np.int64)

    def branch(self, op: Operation, times: FloatArray) -> None:
        assert isinstance(op, scf.IfOp)
        condition = self.values.get(op.cond)
        if condition is None:
            share = self.habits.taken.get(self.numbers[op])
            if share is None:
                raise _NotKnown(op, "how often its condition holds is not known")
            holds = times * share
        else:
            holds = times * condition.astype(bool)
        if holds.any():
            self.block(op.true_region.block, holds)
        if op.false_region.blocks and (times - holds).any():
            self.block(op.false_region.block, times - holds)

    def transfer(self, op: Operation, times: FloatArray) -> None:
        assert isinstance(op, upmem.MramReadOp | upmem.MramWriteOp)
        attr = op.mram.type
        assert isa(attr, MemRefType)
        size = self.known(op, op.count) * upmem.element_bytes(attr.element_type)
        phase = self.phases[-1]
        if isinstance(op, upmem.MramReadOp):
            phase.reads += times
            phase.read_bytes += times * size
        else:
            phase.writes += times
            phase.write_bytes += times * size
        if first_of_run(op):
            phase.runs += times

    def barrier(self, op: Operation, times: FloatArray) -> None:
        self.phases.append(_Phase(self.tasklets))

    def critical(self, op: Operation, times: FloatArray) -> None:
        raise _NotKnown(op, "how long its mutex is held is not counted from the text")

    def known(self, op: Operation, value: SSAValue) -> Known:
        """A value on each tasklet."""
        found = self.values.get(value)
        if found is None:
            name = value.name_hint or (value.op.name if isinstance(value, OpResult) else "argument")
            raise _NotKnown(op, f"its operand %{name} is not known")
        return np.broadcast_to(found, self.tasklets)


class _Phase:
    """What each tasklet does between two barriers."""

    NAMES = ("instructions", "reads", "read_bytes", "writes", "write_bytes", "runs")

    def __init__(self, tasklets: int):
        self.instructions = np.zeros(tasklets)
        self.reads = np.zeros(tasklets)
        self.read_bytes = np.zeros(tasklets)
        self.writes = np.zeros(tasklets)
        self.write_bytes = np.zeros(tasklets)
        self.runs = np.zeros(tasklets)

    def copy(self) -> _Phase:
        other = _Phase(len(self.reads))
        for name in _Phase.NAMES:
            setattr(other, name, getattr(self, name).copy())
        return other

    def cycles(self, machine: UpmemMachine, barrier: bool) -> Any:
        """The closed form of the phase."""
        runs, transfers = self.runs.sum(), (self.reads + self.writes).sum()
        return phase_cycles(
            machine,
            self.instructions[None, :],
            self.reads,
            self.read_bytes,
            self.writes,
            self.write_bytes,
            burst=np.array([max(transfers / runs, 1.0) if runs else 1.0]),
            barrier=barrier,
        )


_HANDLERS: Mapping[str, Callable[[_Walk, Operation, FloatArray], None]] = {
    "arith.constant": _Walk.constant,
    "upmem.tasklet_id": _Walk.tasklet_id,
    "upmem.mram_read": _Walk.transfer,
    "upmem.mram_write": _Walk.transfer,
    "upmem.barrier": _Walk.barrier,
    "upmem.critical": _Walk.critical,
    "scf.for": _Walk.loop,
    "scf.if": _Walk.branch,
}
