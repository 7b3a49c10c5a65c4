"""Executes bbop streams on D rows, on two levels at once.

Every bbop is computed from the rows of its operands twice: by its meaning on words, and by its
microprogram's row commands, in place, with garbage in its scratch rows. Both must agree. Besides,
an operand must be an object that was written with the same rows, width and lanes, and that nothing
has overwritten since. What is wrong is a UserError at the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cim_opt.dialects.simdram import Opcode
from cim_opt.dialects.simdram_programs import bbop_program, fill_program, mul_scalar_program
from cim_opt.errors import Location, UserError
from cim_opt.microprograms.library import library
from cim_opt.microprograms.model import RowProgram
from cim_opt.microprograms.packed import BoundProgram, bind
from cim_opt.microprograms.transposition import from_vertical, to_vertical, words_for
from cim_opt.simulators import simdram_words
from cim_opt.simulators.simdram import gathered
from cim_opt.tools.bbop_host import BbopHost, bits_of, dtype_for
from cim_opt.tools.bbop_statements import (
    Bits,
    Compute,
    Constant,
    Expression,
    HostStep,
    Input,
    Loop,
    Output,
    Placed,
    Read,
    ScalarOf,
    Statement,
    Stream,
    Transpose,
    Vector,
)

Values = np.ndarray[Any, np.dtype[Any]]
MAX_COMMANDS = 20_000_000


@dataclass
class Counts:
    """What a stream did."""

    bbops: int = 0
    aap: int = 0
    ap: int = 0
    transposed_rows: int = 0
    read_rows: int = 0


@dataclass(frozen=True)
class _Object:
    """What lies in the D rows from `row` on, and who wrote it."""

    row: int
    width: int
    lanes: int
    complemented: bool
    line: int


class _Place(NamedTuple):
    """`width` rows from `row` on; of a constant, without a row, C0 and C1 by its bits.

    `complemented`: the rows hold the complement of the elements.
    """

    row: int | None
    width: int
    complemented: bool
    scalar: int = 0

    def overlaps(self, other: _Place) -> bool:
        """Whether they have a D row in common."""
        if self.row is None or other.row is None:
            return False
        return self.row < other.row + other.width and other.row < self.row + self.width


class BbopMachine(BbopHost):
    """D rows of one machine; `run` executes a stream on them.

    `inputs` are the vectors and scalars of the caller by name; after `run`, `outputs` has the
    results that the stream holds, by number, and `unfinished` what host steps make of the rest.
    """

    def __init__(self, stream: Stream, inputs: Mapping[str, Values]):
        super().__init__()
        self.stream = stream
        self.inputs = inputs
        self.outputs: dict[int, Any] = {}
        self.unfinished: dict[int, str] = {}
        self.counts = Counts()
        words = words_for(self.stream.lanes)
        rng = np.random.default_rng(0)
        # Rows hold anything when the power comes on.
        self.memory = rng.integers(0, 1 << 64, (self.stream.rows, words), np.uint64)
        self.constants = [np.zeros(words, np.uint64), ~np.zeros(words, np.uint64)]
        self.garbage = rng.integers(0, 1 << 64, (64 * 4, words), np.uint64)
        self.objects: dict[int, _Object] = {}
        self.library = library(self.stream.library)
        # Binding a program takes longer than running it, and loops run it again and again.
        self.bound: dict[object, BoundProgram] = {}

    def run(self) -> None:
        """Executes the whole stream."""
        self._block(self.stream.body)

    def _block(self, statements: list[Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Input():
                self.define(statement.name, self.inputs[statement.name], statement.element)
            case Constant():
                numbers = np.array(statement.numbers).astype(dtype_for(statement.element))
                self.define(statement.name, numbers, statement.element)
            case Vector():
                self.room(statement)
            case ScalarOf():
                self.define(statement.name, self.scalar(statement), statement.element)
            case Loop():
                self._loop(statement)
            case Transpose():
                self._transpose(statement)
            case Compute():
                self._compute(statement)
            case Read():
                self._read(statement)
            case HostStep():
                self.values.pop(statement.name, None)
                self.steps[statement.name] = statement
            case Output():
                self._output(statement)

    def _loop(self, loop: Loop) -> None:
        low, high = self.number(loop.low), self.number(loop.high)
        step = self.whole(loop.step, "step", 1)
        for index in range(low, high, step):
            self.define(loop.name, index, "index")
            self._block(loop.body)

    def _output(self, statement: Output) -> None:
        name = statement.value.name
        if name in self.steps and name not in self.values:
            self.unfinished[statement.number] = self.steps[name].what
        elif name and np.ndim(self.value(name, statement.value.at)):
            self.outputs[statement.number] = self.values[name]
        else:
            self.outputs[statement.number] = self.number(statement.value)

    # -- rows ------------------------------------------------------------------------------------

    def _lanes(self, expression: Expression) -> int:
        lanes = self.whole(expression, "lanes")
        if lanes > self.stream.lanes:
            raise UserError(
                f"{lanes} lanes", f"the machine has {self.stream.lanes}", None, expression.at
            )
        return lanes

    def _rows(self, row: int, width: int) -> Values:
        return self.memory[row : row + width]

    def _place(self, made: Placed, width: int, lanes: int, at: Location) -> None:
        """A new object; those that it overlaps are gone."""
        self._inside(made.row, width, at)
        self._overwrite(made.row, width)
        self.objects[made.row] = _Object(made.row, width, lanes, made.complemented, at[1])

    def _inside(self, row: int, width: int, at: Location) -> None:
        if row + width > self.stream.rows:
            raise UserError(
                f"rows {row} to {row + width - 1}",
                f"the machine has rows 0 to {self.stream.rows - 1}",
                "allocate rows for this machine",
                at,
            )

    def _overwrite(self, row: int, width: int) -> None:
        kept = self.objects.values()
        self.objects = {x.row: x for x in kept if x.row + x.width <= row or row + width <= x.row}

    def _needs(self, wanted: Placed, width: int, lanes: int, at: Location) -> None:
        """Refuses an operand that is not a whole object of that size and polarity."""
        row = wanted.row
        found = self.objects.get(row)
        if found is None:
            raise UserError(
                f"no object at D{row}",
                "nothing was written there, or it was overwritten since",
                "bring it in before",
                at,
            )
        if (found.width, found.lanes) != (width, lanes):
            raise UserError(
                f"D{row} read as {lanes} lanes of {width} bits",
                f"line {found.line} made it {found.lanes} lanes of {found.width} bits",
                None,
                at,
            )
        if found.complemented != wanted.complemented:
            written = "complemented" if found.complemented else "as it is"
            raise UserError(
                f"D{row} read {'complemented' if wanted.complemented else 'as it is'}",
                f"line {found.line} stored it {written}",
                f"call it {'~' if found.complemented else ''}D{row}",
                at,
            )

    def _transpose(self, statement: Transpose) -> None:
        source = self.vector(statement.source.vector, statement.source.at)
        start = self.whole(statement.source.index, "start")
        stride = self.whole(statement.stride, "stride")
        lanes = self._lanes(statement.lanes)
        have = bits_of(self.elements[statement.source.vector])
        if statement.width > have:
            raise UserError(
                f"{statement.width} bits of '{statement.source.vector}'",
                f"its elements have {have}",
                None,
                statement.at,
            )
        self._place(statement.result, statement.width, lanes, statement.at)
        words = gathered(source, start, stride, lanes, statement.width)
        self._store(statement.result, words, statement.width)
        self.counts.transposed_rows += self._charged(statement.width, lanes)

    def _store(self, place: Placed, words: Values, width: int) -> None:
        rows = to_vertical(words, width)
        self._rows(place.row, width)[:, : rows.shape[1]] = ~rows if place.complemented else rows

    def _load(self, place: Placed, width: int, lanes: int) -> Values:
        rows = self._rows(place.row, width)
        return from_vertical(~rows if place.complemented else rows, lanes)

    def _charged(self, width: int, lanes: int) -> int:
        """Whole rows of all subarrays that hold lanes."""
        return width * -(-lanes // self.stream.columns)

    def _read(self, statement: Read) -> None:
        name = statement.dest.vector
        vector = self.vector(name, statement.dest.at)
        position = self.whole(statement.dest.index, "position")
        stride = self.whole(statement.stride, "stride", 1)
        lanes = self._lanes(statement.lanes)
        self._needs(statement.source, statement.width, lanes, statement.at)
        if statement.width != bits_of(self.elements[name]):
            raise UserError(
                f"{statement.width} bits into '{name}'",
                f"its elements have {bits_of(self.elements[name])}",
                None,
                statement.at,
            )
        end = position + (lanes - 1) * stride + 1 if lanes else 0
        if end > len(vector):
            raise UserError(
                f"lanes go to {name}[{end - 1}]",
                f"it has {len(vector)} elements",
                None,
                statement.dest.at,
            )
        if name in self.inputs:
            raise UserError(
                f"'{name}' is written", "it is an input", "read into a vector", statement.dest.at
            )
        words = self._load(statement.source, statement.width, lanes)
        vector[position:end:stride] = words.view(vector.dtype)
        self.counts.read_rows += self._charged(statement.width, lanes)

    # -- bbops -----------------------------------------------------------------------------------

    def _compute(self, statement: Compute) -> None:
        lanes = self._lanes(statement.lanes)
        program, widths, out = self._program(statement)
        places = [
            self._operand(operand, width, lanes, statement.at)
            for operand, width in zip(statement.operands, widths, strict=True)
        ]
        args = [self._elements(place, lanes) for place in places]
        meant = self._meaning(statement, args, lanes, out)
        self._inside(statement.result.row, out, statement.at)
        self._execute(statement, program, places, out)
        self._compare(statement, meant, self._load(statement.result, out, lanes))
        self._place(statement.result, out, lanes, statement.at)
        self.counts.bbops += 1
        self.counts.aap += program.counts.aap
        self.counts.ap += program.counts.ap
        if self.counts.aap + self.counts.ap > MAX_COMMANDS:
            raise UserError(
                f"more than {MAX_COMMANDS:,} row commands",
                "the checker is for small streams",
                "check shorter vectors on a smaller machine",
                statement.at,
            )

    def _program(self, statement: Compute) -> tuple[RowProgram, list[int], int]:
        """The row program, the widths of the operands as written, and that of the result."""
        width, out = statement.width, statement.out
        if statement.scalar is not None:
            scalar = self.number(statement.scalar) & ((1 << width) - 1)
            return self._scalar_program(statement, scalar), [width] * len(statement.operands), width
        opcode = opcode_of(statement.mnemonic)
        widths = [width] * len(statement.operands)
        if opcode is Opcode.SELECT:
            widths[-1] = 1
        if out is None:
            out = 1 if opcode in _TO_BIT else width
        elif (out > width) != (opcode is not Opcode.TRUNC) or out == width:
            raise UserError(
                f"{statement.mnemonic} from {width} to {out} bits",
                "extensions are to more bits, truncations to fewer",
                None,
                statement.at,
            )
        if statement.amount is not None and statement.amount < 0:
            raise UserError(f"shift by {statement.amount}", "0 or more", None, statement.at)
        polarity = [operand.complemented for operand in statement.operands]
        if opcode is Opcode.SELECT:
            polarity = [polarity[2], *polarity[:2]]
        polarity.append(statement.result.complemented)
        amount = statement.amount
        try:
            program = bbop_program(self.library, opcode, width, out, amount, tuple(polarity))
        except UserError as error:
            raise UserError(error.what, error.limit, error.remedy, statement.at) from error
        return program, widths, out

    def _scalar_program(self, statement: Compute, scalar: int) -> RowProgram:
        """That of a fill, or of a product with a scalar."""
        if any(operand.complemented for operand in statement.operands):
            raise UserError(
                "mul_scalar of a complemented object",
                "its programs multiply plain ones",
                "copy it to a plain one",
                statement.at,
            )
        make = fill_program if statement.mnemonic == "fill" else mul_scalar_program
        try:
            return make(self.library, statement.width, scalar, statement.result.complemented)
        except UserError as error:
            raise UserError(error.what, error.limit, error.remedy, statement.at) from error

    def _meaning(self, statement: Compute, args: list[Values], lanes: int, out: int) -> Values:
        if statement.scalar is not None:
            scalar = self.number(statement.scalar)
            if statement.mnemonic == "fill":
                return simdram_words.filled(scalar, lanes, out)
            return simdram_words.multiply_by(args[0], scalar, out)
        opcode = opcode_of(statement.mnemonic)
        if opcode is Opcode.SELECT:
            args = [args[2], *args[:2]]
        return simdram_words.compute(opcode, args, statement.width, out, statement.amount)

    def _execute(
        self, statement: Compute, program: RowProgram, operands: list[_Place], out: int
    ) -> None:
        """Runs the row program where the operands lie."""
        result = _Place(statement.result.row, out, statement.result.complemented)
        if statement.mnemonic == "if_else":
            operands = [operands[2], *operands[:2]]
        if program.scratch_rows:
            self._scratch(statement, program.scratch_rows, [*operands, result])
        key = (program, *operands, result)
        try:
            if key not in self.bound:
                self.bound[key] = self._bind(*key)
        except ValueError as error:
            raise UserError(
                f"'{statement.mnemonic}' cannot write its result over its operand",
                "its microprogram still reads what it would overwrite",
                "give the result rows of its own",
                statement.at,
            ) from error
        self.bound[key].run()

    def _bind(self, program: RowProgram, *places: _Place) -> BoundProgram:
        """The program on these rows; ValueError where a result would overwrite an operand."""
        *operands, result = places
        if any(place.overlaps(result) and place.row != result.row for place in operands):
            raise ValueError("overlap in part")
        names = [x.name for x in (*program.inputs, *program.outputs)]
        return bind(program, dict(zip(names, map(self._at, places), strict=True)))

    def _operand(self, operand: Placed | Bits, width: int, lanes: int, at: Location) -> _Place:
        """Where an operand lies, which must be there in that size and polarity."""
        if isinstance(operand, Placed):
            self._needs(operand, width, lanes, at)
            return _Place(operand.row, width, operand.complemented)
        scalar = self.number(operand.scalar)
        bits = (~scalar if operand.complemented else scalar) & ((1 << width) - 1)
        return _Place(None, width, operand.complemented, bits)

    def _elements(self, place: _Place, lanes: int) -> Values:
        rows = np.array(self._at(place))
        return from_vertical(~rows if place.complemented else rows, lanes)

    def _at(self, place: _Place) -> list[Values]:
        """The rows of an operand or result, lowest bit first."""
        if place.row is not None:
            return list(self._rows(place.row, place.width))
        return [self.constants[place.scalar >> bit & 1] for bit in range(place.width)]

    def _scratch(self, statement: Compute, needed: int, others: list[_Place]) -> None:
        """Fills the scratch rows with garbage; what lay there is gone."""
        first = statement.scratch
        if first is None:
            raise UserError(
                f"'{statement.mnemonic}' without scratch rows",
                f"its microprogram needs {needed}",
                "add 'scratch' and the first of them",
                statement.at,
            )
        self._inside(first, needed, statement.at)
        if any(place.overlaps(_Place(first, needed, False)) for place in others):
            raise UserError(
                f"scratch rows {first} to {first + needed - 1} of '{statement.mnemonic}'",
                "they lie over its operands or result",
                "give them rows of their own",
                statement.at,
            )
        self._overwrite(first, needed)
        self._rows(first, needed)[:] = self.garbage[:needed]

    def _compare(self, statement: Compute, meant: Values, got: Values) -> None:
        wrong = np.flatnonzero(meant != got)
        if len(wrong):
            lane = int(wrong[0])
            raise UserError(
                f"'{statement.mnemonic}' gives {int(got[lane])} in lane {lane}",
                f"its meaning is {int(meant[lane])}",
                "its microprogram or its rows are wrong",
                statement.at,
            )


_TO_BIT = {
    *(Opcode.EQ, Opcode.NE, Opcode.LTU, Opcode.LTS, Opcode.LEU, Opcode.LES),
    *(Opcode.GTU, Opcode.GTS, Opcode.GEU, Opcode.GES),
}


def opcode_of(mnemonic: str) -> Opcode:
    """The bbop of a mnemonic."""
    return Opcode.SELECT if mnemonic == "if_else" else Opcode(mnemonic)
