"""Runs programs lowered to the `cim` dialect: results, and how long macros and memories take.

    results, report = CimSimulator().run(module, "main", [x, w])
    report = count(module, "main")            # the same report, without data

The host part is interpreted operation by operation; programs run exactly, on bytes. Cycles are
those of cost/cim_timing.py for the program's instructions; launches follow one another. Each launch
starts on an idle machine whose memories hold nothing but the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from cim_opt.dialects import cim
from cim_opt.dialects.cim_machine import machine_of
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.locations import location_of
from cim_opt.mapping.cim_layout import Array, LayoutError, pack, unpack
from cim_opt.simulators.cim_account import CimAccount
from cim_opt.simulators.cim_count import count_function
from cim_opt.simulators.cim_launch import place, program_of, read_result, write_operands
from cim_opt.simulators.cim_layouts import layout_of
from cim_opt.simulators.cim_memory import MachineState
from cim_opt.simulators.cim_program import Runner
from cim_opt.simulators.cim_report import CimReport
from cim_opt.simulators.elementwise import dtype_of, quiet
from cim_opt.simulators.host_cost import host_work
from cim_opt.simulators.odd_widths import odd_width, wrap
from cim_opt.simulators.reference import Handler, HostEvaluator, checked_arguments

Values = Any
Progress = Callable[[float, str], None]


class CimSimulator:
    """Simulates lowered modules on one machine.

    `machine` None takes the one that the module was lowered for (attribute `cim.machine`).
    `progress` is called with a fraction and a text at each launch.
    """

    def __init__(self, machine: CimMachine | None = None, progress: Progress | None = None):
        self.machine = machine
        self.progress = progress

    @quiet()
    def run(
        self, module: ModuleOp, entry: str, args: Sequence[Any]
    ) -> tuple[list[np.ndarray[Any, np.dtype[Any]] | np.generic], CimReport]:
        """Results of function `entry` for `args` (as `run_function` takes them), and the report."""
        machine = self.machine or machine_of(module)
        evaluator = CimEvaluator(module, machine, self.progress)
        values = checked_arguments(evaluator.function(entry), args)
        results: list[Any] = [np.array(value)[()] for value in evaluator.call(entry, values)]
        return results, evaluator.book.report()


def count(module: ModuleOp, entry: str, machine: CimMachine | None = None) -> CimReport:
    """The report of a run of function `entry`, without data: nothing is packed or computed.

    Raises UserError for what no run could do, and when how often something is launched depends on
    data. What depends on addresses is not checked.
    """
    book = CimAccount(machine or machine_of(module))
    count_function(HostEvaluator(module).function(entry), book)
    return book.report()


class CimEvaluator(HostEvaluator):
    """The host of a machine of macros."""

    makers: ClassVar[frozenset[str]] = HostEvaluator.makers | {
        "cim.pack",
        "cim.unpack",
        "cim.launch",
    }
    readers: ClassVar[frozenset[str]] = HostEvaluator.readers | {
        "cim.pack",
        "cim.unpack",
        "cim.launch",
    }

    def __init__(self, module: ModuleOp, machine: CimMachine, progress: Progress | None = None):
        super().__init__(module)
        self.machine = machine
        self.book = CimAccount(machine)
        self.progress = progress
        self._runners: dict[cim.ProgramOp, Runner] = {}
        self._junk: dict[SSAValue, Array | None] = {}

    def account(self, op: Operation, args: tuple[Values, ...], results: Sequence[Values]) -> None:
        """Charges what the host does beside packing and launching."""
        if not isinstance(op, cim.PackOp | cim.UnpackOp | cim.LaunchOp):
            self.book.host(*host_work(op, args, results))

    def pack(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A tensor as a program reads it."""
        assert isinstance(op, cim.PackOp)
        self.book.pack(op)
        packed = _laid_out(op, lambda: pack(layout_of(op), args[0]))
        return [packed.astype(dtype_of(op.packed.type), copy=False)]

    def unpack(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A result in order, added to `init`."""
        assert isinstance(op, cim.UnpackOp)
        self.book.unpack(op)
        junk = self._junk.get(op.packed)
        partial = op.partial is not None
        tensor = _laid_out(op, lambda: unpack(layout_of(op), args[0], junk, partial)) + args[1]
        width = odd_width(op.tensor.type)
        return [tensor if width is None else wrap(tensor, width)]

    def launch(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """One run of a program."""
        assert isinstance(op, cim.LaunchOp)
        program = program_of(op)
        if self.progress is not None:
            self.progress(0.0, f"launch of {op.program}")
        runner = self._runners.get(program)
        if runner is None:
            runner = self._runners[program] = Runner(program, self.machine)
        placement, state = place(op, self.machine), MachineState(self.machine)
        write_operands(op, placement, state, args)
        runner.run(state, placement.addresses)
        self.book.launch(op)
        result, self._junk[op.result] = read_result(op, placement, state)
        self._check_known(op)
        return [result]

    def _check_known(self, op: cim.LaunchOp) -> None:
        """Traps when something else than an unpack would see what was never computed."""
        junk = self._junk[op.result]
        if junk is None or all(isinstance(use.operation, cim.UnpackOp) for use in op.result.uses):
            return
        raise UserError(
            f"element {int(np.argmax(junk))} of the result of '{op.name}' {op.program} holds "
            "nothing that was computed",
            "only cim.unpack takes such a result, and leaves out what its map leaves out",
            "write every element, or unpack the result",
            location_of(op),
        )

    handlers: ClassVar[dict[str, Handler]] = {
        **HostEvaluator.handlers,
        "cim.pack": pack,
        "cim.unpack": unpack,
        "cim.launch": launch,
    }


def _laid_out(op: cim.PackOp | cim.UnpackOp, work: Callable[[], Array]) -> Array:
    try:
        return work()
    except LayoutError as error:
        raise UserError(
            f"'{op.name}': {error.what}", error.limit, "change the map", location_of(op)
        ) from error
