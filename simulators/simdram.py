"""Runs programs lowered to the `simdram` dialect: results, and how long they would take in DRAM.

    results, report = SimdramSimulator(load_machine("simdram-1")).run(module, "main", [a, b])

The host part is interpreted operation by operation. At level `bbop` an operation on a vertical
object is a NumPy call on words; at level `rows` it is the microprogram's row commands, executed on
packed rows. Both give the same results and the same report.

Time: row commands by the chosen timing; transposition and read-back by the bytes of whole rows at
the channel's bandwidth; host work by its bytes and operations. Nothing overlaps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import simdram
from cim_opt.dialects.simdram import is_complemented, polarity_of, width_of
from cim_opt.dialects.simdram_library import chosen_library
from cim_opt.dialects.simdram_machine import machine_of
from cim_opt.errors import UserError
from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.locations import location_of
from cim_opt.microprograms.subarray import IllegalCommand
from cim_opt.simulators import host_cost
from cim_opt.simulators.elementwise import quiet
from cim_opt.simulators.host_cost import Work
from cim_opt.simulators.reference import Handler, HostEvaluator, checked_arguments
from cim_opt.simulators.simdram_account import Account
from cim_opt.simulators.simdram_levels import LEVELS, Level
from cim_opt.simulators.simdram_objects import NO_ROWS, Lifetimes, RowMap, VerticalObject
from cim_opt.simulators.simdram_programs import NO_PROGRAM, Programs, Recipe
from cim_opt.simulators.simdram_report import SimdramReport
from cim_opt.simulators.simdram_words import Words, resized, signed, word_dtype

Values = Any
Progress = Callable[[float, str], None]
Maker = simdram.BbopOp | simdram.FillOp | simdram.MulScalarOp | simdram.TransposeOp

PROGRESS_SECONDS = 0.2


class SimdramSimulator:
    """Simulates lowered modules on one machine.

    `machine` None takes the one that the module was lowered for (attribute `simdram.machine`).
    `library` names the microprograms (None: those that the module's rows were allocated for, else
    `cim-opt`), `level` is `bbop` or `rows`, `timing` names the preset of command times (None: the
    machine's own), `activation_limit` says whether the limit on activations counts in the
    end-to-end time (None: as the machine says). `progress` is called with a fraction of the current
    outermost loop and a text, at most every 0.2 s.
    """

    def __init__(
        self,
        machine: SimdramMachine | None = None,
        library: str | None = None,
        level: str = "bbop",
        progress: Progress | None = None,
        timing: str | None = None,
        activation_limit: bool | None = None,
    ):
        if level not in LEVELS:
            raise UserError(f"unknown level {level!r}", None, f"use one of {', '.join(LEVELS)}")
        self.machine = machine
        self.library = library
        self._programs: dict[str, Programs] = {}
        if library is not None:
            self._programs[library] = Programs(library)
        self.level = level
        self.progress = progress
        self.timing = timing
        self.activation_limit = activation_limit

    def programs_for(self, module: ModuleOp) -> Programs:
        """The recipes that a module is run with; kept for the next run."""
        name = chosen_library(module, self.library)
        if name not in self._programs:
            self._programs[name] = Programs(name)
        return self._programs[name]

    @quiet()
    def run(
        self, module: ModuleOp, entry: str, args: Sequence[Any]
    ) -> tuple[list[np.ndarray[Any, np.dtype[Any]] | np.generic], SimdramReport]:
        """Results of function `entry` for `args` (as `run_function` takes them), and the report."""
        machine = self.machine or machine_of(module)
        evaluator = SimdramEvaluator(module, machine, self)
        values = checked_arguments(evaluator.function(entry), args)
        results: list[Any] = [np.array(value)[()] for value in evaluator.call(entry, values)]
        return results, evaluator.report()


class SimdramEvaluator(HostEvaluator):
    """The host of a machine that computes in DRAM, and its subarrays."""

    makers: ClassVar[frozenset[str]] = HostEvaluator.makers | {"simdram.read", "simdram.compact"}
    readers: ClassVar[frozenset[str]] = HostEvaluator.readers | {
        "simdram.transpose",
        "simdram.compact",
    }

    def __init__(self, module: ModuleOp, machine: SimdramMachine, options: SimdramSimulator):
        super().__init__(module)
        self.machine = machine
        self.options = options
        self.programs = options.programs_for(module)
        timing = options.timing or machine.timing
        limit = options.activation_limit
        limited = machine.activation_limit if limit is None else limit
        self.book = Account(machine, timing, limited)
        self.level: Level = LEVELS[options.level]()
        self.rows = RowMap(machine.name, machine.data_rows)
        self.lifetimes = Lifetimes(module)
        self.most_lanes = machine.lanes
        self._next_progress = 0.0

    def report(self) -> SimdramReport:
        """The run so far."""
        options = self.options
        return self.book.report(self.programs.library, options.level, self.rows.peak)

    # -- which objects are needed ----------------------------------------------------------------

    def account(self, op: Operation, args: tuple[Values, ...], results: Sequence[Values]) -> None:
        if op.name not in _COUNTED_ELSEWHERE:
            self.book.host(op, *_host_work(op, args, results))
        self.rows.drop(self.lifetimes.ending.get(op, ()))

    def _set(self, targets: Sequence[SSAValue], values: Sequence[tuple[Values, bool]]) -> None:
        super()._set(targets, values)
        for target, (value, _) in zip(targets, values, strict=True):
            if isinstance(value, VerticalObject) and target not in self.lifetimes.unused:
                self.rows.bind(target, value)

    def _run(self, block: Block) -> list[tuple[Values, bool]]:
        passed = super()._run(block)
        # Nothing is placed before these are bound again, to what they are passed on to.
        self.rows.drop(self.lifetimes.made[block])
        return passed

    def _passed(self, value: SSAValue, user: Operation) -> tuple[Values, bool]:
        passed = super()._passed(value, user)
        if (value, user) in self.lifetimes.handed_on:
            self.rows.drop([value])
        return passed

    # -- objects -----------------------------------------------------------------------------------

    def _make(
        self, op: Maker, lanes: int, args: Sequence[Values], recipe: Recipe
    ) -> VerticalObject:
        """The object of an operation's result in its rows, without data yet; charges the bbop."""
        width = width_of(op.result)
        ending = set(self.lifetimes.ending.get(op, ()))

        def reusable(other: VerticalObject) -> bool:
            last = all(v in ending for v, x in self.rows.live.items() if x is other)
            return last and all(n in recipe.shared for n, x in enumerate(args) if x is other)

        row = self.rows.result(op, width, _number(op.row), reusable)
        made = VerticalObject(width, lanes, row, is_complemented(op.result))
        if recipe.scratch_rows:
            self._place_scratch(op, made, recipe.scratch_rows)
        self.rows.bind(op.result, made)
        return made

    def _place_scratch(self, op: Maker, made: VerticalObject, rows: int) -> None:
        given = _number(op.properties.get("scratch"))
        if given is None and op.row is not None:
            raise UserError(
                f"'{op.name}' names the rows of its result and no scratch rows",
                f"its microprogram needs {rows}",
                "allocate rows with simdram-allocate-rows for this library",
                location_of(op),
            )
        self.rows.scratch(op, rows, given, made)

    def _lanes(self, op: Operation, count: Values) -> int:
        """A number of lanes that the machine has."""
        lanes = int(count)
        if not 0 <= lanes <= self.most_lanes:
            machine = self.machine
            raise UserError(
                f"'{op.name}' of {lanes} lanes",
                f"{machine.name} computes with 0 to {self.most_lanes}: {machine.columns} columns "
                f"of {self.most_lanes // machine.columns} subarrays",
                "split the work into tiles, or use a machine with more subarrays",
                location_of(op),
            )
        return lanes

    def _common_lanes(self, op: Operation, args: Sequence[VerticalObject]) -> int:
        """The lanes of all operands."""
        for other in args[1:]:
            if other.lanes != args[0].lanes:
                raise UserError(
                    f"'{op.name}' of objects of {args[0].lanes} and {other.lanes} lanes",
                    "all operands have the same lanes",
                    "bring them in with the same count",
                    location_of(op),
                )
        return args[0].lanes

    def _tell(self, op: Operation) -> None:
        """Reports progress, not too often."""
        if self.options.progress is None or time.monotonic() < self._next_progress:
            return
        self._next_progress = time.monotonic() + PROGRESS_SECONDS
        loop = _outermost_loop(op)
        fraction = 0.0
        if loop is not None:
            values = self._frame.values
            low, high = int(values[loop.lb]), int(values[loop.ub])
            fraction = (int(values[loop.body.block.args[0]]) - low) / (high - low)
        self.options.progress(fraction, f"bbop {self.book.bbops:,}")

    # -- operations --------------------------------------------------------------------------------

    def transpose(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Host elements into columns."""
        assert isinstance(op, simdram.TransposeOp)
        self._tell(op)
        source, start, stride = args[0], int(args[1]), int(args[2])
        lanes = self._lanes(op, args[3])
        _not_negative(op, {"start": start, "stride": stride})
        made = self._make(op, lanes, (), NO_PROGRAM)
        words = gathered(source, start, stride, lanes, made.width)
        made.data = self.level.load(words, made)
        self.book.transpose(op, made.width, lanes)
        return [made]

    def fill(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A scalar into every lane."""
        assert isinstance(op, simdram.FillOp)
        scalar = _scalar_bits(args[0], width_of(op.result))
        lanes = self._lanes(op, args[1])
        complemented = is_complemented(op.result)
        recipe = self.programs.fill(width_of(op.result), scalar, complemented)
        if op.constant is not None:
            made = VerticalObject(width_of(op.result), lanes, NO_ROWS, complemented)
            made.data = self.level.run(recipe, (), made)
            return [made]
        made = self._make(op, lanes, (), recipe)
        made.data = self.level.run(recipe, (), made)
        self.book.bbop(op, recipe.counts, lanes)
        return [made]

    def bbop(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """One bulk bitwise operation."""
        assert isinstance(op, simdram.BbopOp)
        self._tell(op)
        lanes = self._common_lanes(op, args)
        return [self._computed(op, lanes, args, self._recipe(op))]

    def _recipe(self, op: simdram.BbopOp) -> Recipe:
        opcode, amount = op.opcode.data, _number(op.amount)
        width, out = width_of(op.args[-1]), width_of(op.result)
        return self._located(
            op, lambda: self.programs.bbop(opcode, width, out, amount, polarity_of(op))
        )

    def _located(self, op: Operation, find: Callable[[], Recipe]) -> Recipe:
        """A recipe; that the library has none is an error at the operation."""
        try:
            return find()
        except UserError as error:
            raise UserError(error.what, error.limit, error.remedy, location_of(op)) from error

    def mul_scalar(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Lanes times a number that the host knows."""
        assert isinstance(op, simdram.MulScalarOp)
        self._tell(op)
        width = width_of(op.result)
        scalar = _scalar_bits(args[1], width)
        complemented = is_complemented(op.result)
        recipe = self._located(op, lambda: self.programs.mul_scalar(width, scalar, complemented))
        return [self._computed(op, args[0].lanes, args[:1], recipe)]

    def _computed(
        self,
        op: Maker,
        lanes: int,
        args: Sequence[VerticalObject],
        recipe: Recipe,
    ) -> VerticalObject:
        made = self._make(op, lanes, args, recipe)
        try:
            made.data = self.level.run(recipe, args, made)
        except IllegalCommand as error:
            raise UserError(
                f"the microprogram of '{op.name}' is illegal: {error}",
                None,
                "use another library",
                location_of(op),
            ) from error
        self.book.bbop(op, recipe.counts, lanes)
        return made

    def read(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """An object back into a vector of the host."""
        assert isinstance(op, simdram.ReadOp)
        vec, dest, position, stride = args[0], args[1], int(args[2]), int(args[3])
        _not_negative(op, {"position": position})
        if vec.lanes > 1 and stride < 1:
            raise UserError(
                f"stride of '{op.name}' is {stride}", "it is at least 1", None, location_of(op)
            )
        end = position + (vec.lanes - 1) * stride + 1 if vec.lanes else 0
        if end > len(dest):
            raise UserError(
                f"'{op.name}' of {vec.lanes} lanes from {position} with stride {stride} is out of "
                "range",
                f"the vector has {len(dest)} elements",
                "read into a longer vector",
                location_of(op),
            )
        if not self.may_overwrite(op, 1) or not dest.flags.writeable:
            dest = dest.copy()
        words = self.level.store(vec)
        # The host holds integers as signed ones, those of other widths than NumPy's extended.
        values = words.view(np.bool_) if vec.width == 1 else signed(words, vec.width)
        dest[position : end : max(stride, 1)] = values
        self.book.read(op, vec.width, vec.lanes)
        return [dest]

    def compact(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Keeps the elements whose mask is true."""
        assert isinstance(op, simdram.CompactOp)
        data, mask = args
        scale = op.scale.value.data
        if len(mask) * scale > len(data):
            raise UserError(
                f"'{op.name}' by {len(mask)} bits of {scale} elements each",
                f"the data has {len(data)} elements",
                "use a mask of its length",
                location_of(op),
            )
        return [data[: len(mask) * scale].reshape(len(mask), scale)[mask].reshape(-1)]

    handlers: ClassVar[dict[str, Handler]] = {
        **HostEvaluator.handlers,
        "simdram.transpose": transpose,
        "simdram.fill": fill,
        "simdram.bbop": bbop,
        "simdram.mul_scalar": mul_scalar,
        "simdram.read": read,
        "simdram.compact": compact,
    }


_COUNTED_ELSEWHERE = {
    "simdram.transpose",
    "simdram.fill",
    "simdram.bbop",
    "simdram.mul_scalar",
    "simdram.read",
}


def _host_work(op: Operation, args: Sequence[Values], results: Sequence[Values]) -> Work:
    if isinstance(op, simdram.CompactOp):
        # The mask is read, and what is kept is read and written.
        return args[1].nbytes + 2 * results[0].nbytes, len(args[1])
    return host_cost.host_work(op, args, results)


def gathered(source: Words, start: int, stride: int, lanes: int, width: int) -> Words:
    """Words of source[start + l*stride] for every lane l, zeros past the end."""
    rest = max(0, len(source) - start)
    have = min(lanes, -(-rest // stride) if stride else lanes * (rest > 0))
    words = np.zeros(lanes, word_dtype(width))
    if stride:
        words[:have] = resized(source[start : start + have * stride : stride], width)
    elif have:
        words[:] = resized(source[start : start + 1], width)
    return words


def _number(attr: Attribute | None) -> int | None:
    return attr.value.data if isa(attr, IntegerAttr) else None


def _scalar_bits(scalar: Values, width: int) -> int:
    """The low `width` bits of a scalar that has as many, as the dialect asks for."""
    return int(scalar) & ((1 << width) - 1)


def _not_negative(op: Operation, numbers: dict[str, int]) -> None:
    for name, value in numbers.items():
        if value < 0:
            raise UserError(
                f"{name} of '{op.name}' is {value}", "it is 0 or more", None, location_of(op)
            )


def _outermost_loop(op: Operation) -> scf.ForOp | None:
    """The last loop on the way out of the function."""
    found: scf.ForOp | None = None
    current = op.parent_op()
    while current is not None and not isinstance(current, FuncOp):
        found = current if isinstance(current, scf.ForOp) else found
        current = current.parent_op()
    return found
