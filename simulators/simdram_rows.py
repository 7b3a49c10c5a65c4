"""Row programs on packed rows: NumPy words of 64 lanes, one row a bit.

`compiled` replays a program's commands once, in a subarray whose rows hold numbers instead of
bits; the subarray traps what is illegal. What remains is the tape of majorities and complements
that the commands compute; copies of rows are gone, as they only rename values. `Tape.run` computes
it for all lanes, in blocks of lanes that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cim_opt.microprograms.model import Operand, RowProgram
from cim_opt.microprograms.subarray import Algebra, execute

Rows = npt.NDArray[np.uint64]
"""One row a bit of the object, 64 lanes a word, lane 0 in the lowest bit."""

BLOCK_WORDS = 2048
"""Words of each row that are computed at once: 131,072 lanes."""

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO, _ONE = 0, 1
_COMPLEMENT = -1

Step = tuple[int, int, int, int]
"""Slot of the result, slots of three operands; a complement has `_COMPLEMENT` for the last two."""


@dataclass(frozen=True)
class Tape:
    """What a program computes. Slots 0 and 1 hold zeros and ones; then come the inputs' rows."""

    inputs: int
    slots: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def run(self, rows: Sequence[Rows], words: int) -> Rows:
        """The rows of the outputs, one after another. `rows` are those of the inputs, in order."""
        result = np.empty((len(self.outputs), words), np.uint64)
        for start in range(0, words, BLOCK_WORDS):
            part = slice(start, min(start + BLOCK_WORDS, words))
            self._run_block([row for each in rows for row in each[:, part]], result[:, part])
        return result

    def _run_block(self, inputs: list[Rows], result: Rows) -> None:
        words = result.shape[1]
        slots: list[Rows] = [np.zeros(words, np.uint64), np.full(words, _ONES), *inputs]
        assert len(inputs) == self.inputs
        slots += [slots[0]] * (self.slots - len(slots))
        for target, a, b, c in self.steps:
            x = slots[a]
            if b == _COMPLEMENT:
                slots[target] = ~x
                continue
            y = slots[b]
            either = x | y
            either &= slots[c]
            either |= x & y
            slots[target] = either
        for row, slot in zip(result, self.outputs, strict=True):
            row[:] = slots[slot]


class _Recorder:
    """Numbers values as they are computed."""

    def __init__(self, inputs: int):
        self.count = 2 + inputs
        self.steps: list[Step] = []
        self._complements: dict[int, int] = {_ZERO: _ONE, _ONE: _ZERO}

    def complement(self, x: int) -> int:
        known = self._complements.get(x)
        if known is None:
            known = self._append(x, _COMPLEMENT, _COMPLEMENT)
            self._complements |= {x: known, known: x}
        return known

    def majority(self, x: int, y: int, z: int) -> int:
        return self._append(x, y, z)

    def _append(self, x: int, y: int, z: int) -> int:
        self.steps.append((self.count, x, y, z))
        self.count += 1
        return self.count - 1


def compiled(program: RowProgram) -> Tape:
    """The tape of a program. Raises IllegalCommand for what no subarray can execute."""
    inputs: dict[str, list[int]] = {}
    first = 2
    for operand in program.inputs:
        inputs[operand.name] = list(range(first, first + operand.width))
        first += operand.width
    recorder = _Recorder(first - 2)
    algebra = Algebra(_ZERO, _ONE, recorder.complement, recorder.majority)
    results = execute(program, inputs, algebra)
    outputs = [value for operand in program.outputs for value in results[operand.name]]
    return _with_slots(first - 2, recorder.steps, outputs)


def _with_slots(inputs: int, steps: list[Step], outputs: list[int]) -> Tape:
    """Slots for the numbered values, each used again when its value is needed no more."""
    fixed = 2 + inputs
    last = {value: number for number, step in enumerate(steps) for value in step[1:]}
    last |= dict.fromkeys(outputs, len(steps))
    slot_of = {value: value for value in range(fixed)}
    free: list[int] = []
    used = fixed
    placed = list[Step]()
    for number, (value, *operands) in enumerate(steps):
        a, b, c = (slot_of.get(x, x) for x in operands)
        for x in {x for x in operands if x >= fixed and last[x] == number}:
            free.append(slot_of[x])
        if value not in last:
            # Nobody reads it: the command is executed for nothing, as a last carry is.
            continue
        slot = free.pop() if free else used
        used = max(used, slot + 1)
        slot_of[value] = slot
        placed.append((slot, a, b, c))
    return Tape(inputs, used, tuple(placed), tuple(slot_of[value] for value in outputs))


def complemented(rows: Rows, operand: Operand) -> Rows:
    """The rows as the operand's program wants them, or gives them."""
    return ~rows if operand.complemented else rows
