"""Proofs of long programs by induction over the steps of a recurrence.

A product is a sum of rows of partial products, a quotient comes bit by bit. Such a program is cut
where the words of a step are complete. Between two cuts the words of the earlier step are free
variables, of which only the invariant is known, and every other row that the program left holds
anything; z3 proves that the rows then hold the words of the next step. So each query is about
one step only, for all words at once.

Which row holds which bit is found by running the program on some numbers beside it. That is a
guess, and every guess is proved: a wrong one can only make the proof fail.
"""

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cim_opt.microprograms.model import AAP, AP, B_ROWS, Bit, RowProgram, Wordlines
from cim_opt.microprograms.proofs_meaning import Term, load_z3
from cim_opt.microprograms.proofs_recurrences import Lane, Recurrence
from cim_opt.microprograms.subarray import Algebra, Subarray


class Value(NamedTuple):
    """What a row holds: in the lanes of the run beside, and as a term."""

    lanes: int
    term: Term


def paired(lanes: int) -> Algebra[Value]:
    """Rows of `lanes` numbers and terms at once."""
    z3 = load_z3()
    ones = (1 << lanes) - 1

    def complement(x: Value) -> Value:
        return Value(x.lanes ^ ones, ~x.term)

    def majority(x: Value, y: Value, z: Value) -> Value:
        number = (x.lanes & y.lanes) | (z.lanes & (x.lanes | y.lanes))
        return Value(number, (x.term & y.term) | (z.term & (x.term | y.term)))

    zero, one = Value(0, z3.BitVecVal(0, 1)), Value(ones, z3.BitVecVal(1, 1))
    return Algebra(zero, one, complement, majority)


Row = Bit | str


class _Uses:
    """When each row is read and written."""

    def __init__(self, program: RowProgram) -> None:
        self.times: dict[Row, list[int]] = {}
        self.reads: dict[Row, list[bool]] = {}
        for number, command in enumerate(program.commands):
            address = command.address if isinstance(command, AP) else command.source
            self._note(address, number, True)
            if isinstance(command, AAP):
                self._note(command.destination, number, False)
        for operand in program.outputs:
            for index in range(operand.width):
                self._note(Bit(operand.name, index), len(program.commands), True)

    def _note(self, address: Any, number: int, read: bool) -> None:
        rows: list[Row] = []
        if isinstance(address, Bit):
            rows = [address]
        elif isinstance(address, Wordlines):
            rows = [row for row, _ in address.cells]
        for row in rows:
            self.times.setdefault(row, []).append(number)
            self.reads.setdefault(row, []).append(read)

    def is_read_after(self, row: Row, number: int) -> bool:
        """Whether what the row holds after command `number` is read before it is replaced."""
        times = self.times.get(row, [])
        at = bisect_left(times, number + 1)
        return at < len(times) and self.reads[row][at]


@dataclass
class Failure:
    """A step that z3 did not prove: between which commands, and why."""

    step: int
    first: int
    last: int
    reason: str


# How often the words of some step may seem complete where they are not.
MAX_ATTEMPTS = 500


@dataclass
class _Guess:
    """A row, what it holds, the claim that this is a bit of the state, and the bit after a cut.

    Without a claim it is not known what the row holds.
    """

    rows: dict[Any, Value]
    row: Row
    value: Value
    claim: Any
    after: Term

    @property
    def is_data(self) -> bool:
        return isinstance(self.row, Bit)

    def test(self, model: Any) -> None:
        """Drop the claim if it is wrong in the model."""
        z3 = load_z3()
        if self.claim is None:
            return
        if not z3.is_true(model.eval(self.claim, model_completion=True)):
            self.claim = None


class Induction:
    """The proof of one program against a recurrence; `failure` is None once `run` has proved it."""

    def __init__(
        self, program: RowProgram, recurrence: Recurrence, lanes: Sequence[Lane], timeout_ms: int
    ) -> None:
        z3 = load_z3()
        self.z3 = z3
        self.program = program
        self.recurrence = recurrence
        self.lanes = lanes
        self.timeout_ms = timeout_ms
        self.ones = (1 << len(lanes)) - 1
        self.words: dict[str, Term] = {x.name: z3.BitVec(x.name, x.width) for x in program.inputs}
        self.uses = _Uses(program)
        written = {x.name for x in program.outputs}
        fixed = (x for x in program.inputs if x.name not in written)
        self.constant_rows = {Bit(x.name, i) for x in fixed for i in range(x.width)}
        self.cuts: list[int] = []
        self._fresh = 0
        self._inputs: dict[Bit, Value] = {}
        self._signed: tuple[int, dict[int, tuple[int, int]]] = (-1, {})
        self._assumed: list[Term] = []
        self._next: list[Term] = recurrence.start(self.words)
        if recurrence.first:
            self._next = recurrence.step(0, self._next, self.words)

    def run(self) -> Failure | None:
        """The first step that is not proved, or None."""
        subarray = self._subarray()
        commands = self.program.commands
        step, reason, attempts = self.recurrence.first, "its words were never complete", 0
        wanted = self._wanted(step)
        for number in range(-1, len(commands)):
            if number >= 0:
                subarray.execute([commands[number]])
            while self._may_cut(subarray, step, number, wanted):
                failed = self._cut(subarray, step, number, wanted)
                if failed is not None:
                    reason, attempts = failed, attempts + 1
                    break
                step += 1
                wanted = self._wanted(step)
            if attempts > MAX_ATTEMPTS:
                break
        if step <= self.recurrence.last:
            return self._failed(step, len(commands), reason)
        return self._conclude(subarray, step)

    def _may_cut(
        self, subarray: Subarray[Value], step: int, number: int, wanted: list[int]
    ) -> bool:
        if step > self.recurrence.last:
            return False
        if number >= 0:
            command = self.program.commands[number]
            if not isinstance(command, AAP) or not isinstance(command.destination, Bit):
                return False
        return self._complete(subarray, wanted, number)

    def _subarray(self) -> Subarray[Value]:
        sizes = {x.name: x.width for x in self.program.operands.values()}
        fixed = frozenset(row.operand for row in self.constant_rows)
        subarray = Subarray(paired(len(self.lanes)), sizes, fixed)
        random.seed(2)
        subarray.rows.update({row: self._anything() for row in B_ROWS})
        for operand in self.program.operands.values():
            rows = (Bit(operand.name, index) for index in range(operand.width))
            subarray.data.update({row: self._anything() for row in rows})
        for operand in self.program.inputs:
            flip = (1 << operand.width) - 1 if operand.complemented else 0
            numbers = [lane[operand.name] ^ flip for lane in self.lanes]
            word = self.words[operand.name]
            for index, column in enumerate(_columns(numbers, operand.width)):
                term = self.z3.Extract(index, index, word)
                row = Value(column, ~term if operand.complemented else term)
                self._inputs[Bit(operand.name, index)] = row
        subarray.data.update(self._inputs)
        return subarray

    def _anything(self) -> Value:
        """What a row holds that the program has not written."""
        return Value(random.getrandbits(len(self.lanes)), self._variable(1))

    def _signatures(self, step: int) -> dict[int, tuple[int, int]]:
        """Word and bit of the state after `step` steps by its values in the lanes."""
        if self._signed[0] == step:
            return self._signed[1]
        found: dict[int, tuple[int, int]] = {}
        states = [self.recurrence.closed(step, lane) for lane in self.lanes]
        for word, size in enumerate(self.recurrence.sizes(step)):
            for index, column in enumerate(_columns([state[word] for state in states], size)):
                found.setdefault(column, (word, index))
        for constant in (0, self.ones):
            found.pop(constant, None)
        self._signed = (step, found)
        return found

    def _wanted(self, step: int) -> list[int]:
        """The values in the lanes of all bits that some row must hold when a step is complete."""
        if step > self.recurrence.last:
            return []
        needed = self.recurrence.needed(step)
        return [lanes for lanes, (word, _) in self._signatures(step).items() if word in needed]

    def _complete(self, subarray: Subarray[Value], wanted: list[int], number: int) -> bool:
        """Whether rows that are read later hold all bits wanted, each direct or complemented."""
        held = {
            value.lanes
            for row, value in subarray.data.items()
            if self.uses.is_read_after(row, number)
        }
        return all(lanes in held or lanes ^ self.ones in held for lanes in wanted)

    def _cut(
        self, subarray: Subarray[Value], step: int, number: int, wanted: list[int]
    ) -> str | None:
        """Prove the words of `step` and take free variables in their place.

        Rows that only seemed to hold a bit hold anything afterwards. Where some bit then has no
        row, the words are not complete yet: says why, and changes nothing.
        """
        fresh = [self._variable(size) for size in self.recurrence.sizes(step)]
        guesses = self._guesses(subarray, number, self._known(step, fresh, self._next))
        invariant = self.recurrence.invariant(step, self._next, self.words)
        while True:
            reason, model = self._refuted(
                [invariant, *(x.claim for x in guesses if x.claim is not None)]
            )
            if reason is None:
                break
            if model is None or not self.z3.is_true(model.eval(invariant, model_completion=True)):
                return reason
            for guess in guesses:
                guess.test(model)
            held = {x.value.lanes for x in guesses if x.claim is not None and x.is_data}
            if not all(lanes in held or lanes ^ self.ones in held for lanes in wanted):
                return reason
        for guess in guesses:
            after = guess.after if guess.claim is not None else self._variable(1)
            guess.rows[guess.row] = Value(guess.value.lanes, after)
        self.cuts.append(number)
        self._assumed = [self.recurrence.invariant(step, fresh, self.words)]
        self._next = self.recurrence.step(step, fresh, self.words)
        return None

    def _guesses(
        self, subarray: Subarray[Value], number: int, known: dict[int, tuple[Term, Term]]
    ) -> list["_Guess"]:
        """Which known bit each row seems to hold whose contents are read later."""
        guesses: list[_Guess] = []
        for rows in (subarray.data, subarray.rows):
            held: dict[Any, Value] = dict(rows)
            for row, value in held.items():
                if row in self.constant_rows or not self.uses.is_read_after(row, number):
                    continue
                before, after = known.get(value.lanes) or (None, None)
                claim = None if before is None else value.term == before
                guesses.append(_Guess(rows, row, value, claim, after))
        return guesses

    def _known(
        self, step: int, fresh: Sequence[Term], proved: Sequence[Term]
    ) -> dict[int, tuple[Term, Term]]:
        """By values in the lanes: a bit that rows may hold, before the cut and after it."""
        known: dict[int, tuple[Term, Term]] = {}

        def add(lanes: int, before: Term, after: Term) -> None:
            known.setdefault(lanes, (before, after))
            known.setdefault(lanes ^ self.ones, (~before, ~after))

        zero = self.z3.BitVecVal(0, 1)
        add(0, zero, zero)
        for lanes, (word, index) in self._signatures(step).items():
            add(lanes, self._bit(proved[word], index), self._bit(fresh[word], index))
        extras = zip(
            self.recurrence.extras(proved, self.words),
            self.recurrence.extras(fresh, self.words),
            self._extra_signatures(step),
            strict=True,
        )
        for before, after, lanes in extras:
            add(lanes, before, after)
        for row, value in self._inputs.items():
            if row not in self.constant_rows:
                add(value.lanes, value.term, value.term)
        return known

    def _extra_signatures(self, step: int) -> list[int]:
        columns = zip(*(self.recurrence.closed_extras(step, x) for x in self.lanes), strict=True)
        return [sum(bit << i for i, bit in enumerate(column)) for column in columns]

    def _bit(self, word: Term, index: int) -> Term:
        return self.z3.Extract(index, index, word) if word.size() > 1 else word

    def _variable(self, size: int) -> Term:
        self._fresh += 1
        return self.z3.BitVec(f"free{self._fresh}", size)

    def _refuted(self, claims: Sequence[Any]) -> tuple[str | None, Any]:
        """Why not all claims follow from what is assumed, with a model if there is one."""
        solver = self.z3.SolverFor("QF_BV")
        solver.set("timeout", self.timeout_ms)
        solver.add(*self._assumed, self.z3.Not(self.z3.And(*claims)))
        answer = solver.check()
        if answer == self.z3.unsat:
            return None, None
        if answer == self.z3.unknown:
            return "z3 gave up", None
        return "a row is wrong", solver.model()

    def _conclude(self, subarray: Subarray[Value], step: int) -> Failure | None:
        wanted = self.recurrence.result(self._next, self.words)
        (operand,) = self.program.outputs
        claims: list[Any] = []
        for index in range(operand.width):
            row = subarray.data[Bit(operand.name, index)].term
            claims.append((~row if operand.complemented else row) == self._bit(wanted, index))
        reason, _ = self._refuted(claims)
        return self._failed(step, len(self.program.commands), reason) if reason else None

    def _failed(self, step: int, last: int, reason: str) -> Failure:
        return Failure(step, self.cuts[-1] + 1 if self.cuts else 0, last, reason)


def _columns(numbers: Sequence[int], width: int) -> list[int]:
    """Bit i of all numbers, one lane a bit, for every i below `width`."""
    # Python turns strings of digits around faster than a loop over bits does.
    words = [f"{number:0{width}b}" for number in reversed(numbers)]
    return [int("".join(column), 2) for column in zip(*words, strict=True)][::-1]
