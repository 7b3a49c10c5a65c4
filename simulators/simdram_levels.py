"""The two levels of simulation: words that NumPy computes with, and packed rows of bits.

Both run a `Recipe`, what one bbop issues. The word level takes the operation's meaning; the row
level executes the recipe's row commands, all tiles at once: tiles lie one after another in the
packed rows, which are as long as the object has lanes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from cim_opt.microprograms.compiled import compiled_in_order, no_garbage
from cim_opt.microprograms.model import RowProgram
from cim_opt.microprograms.packed import BoundProgram
from cim_opt.microprograms.packed import Words as Rows
from cim_opt.microprograms.transposition import from_vertical, to_vertical, words_for
from cim_opt.simulators.simdram_objects import VerticalObject
from cim_opt.simulators.simdram_programs import Recipe
from cim_opt.simulators.simdram_words import Words

BLOCK_WORDS = 4096
"""Words of each row that a program computes at once, so that rows stay in the cache."""

LEAST_WORDS = 64
"""Fewer take as long, as the time goes into calls."""

MAX_BOUND = 128
"""Programs that are kept bound; the largest one takes about 10 MB."""


class Level(ABC):
    """What objects hold, and how recipes run on it."""

    @abstractmethod
    def load(self, words: Words, made: VerticalObject) -> Any:
        """The data of the object `made` with these elements."""

    @abstractmethod
    def store(self, made: VerticalObject) -> Words:
        """The elements of an object."""

    @abstractmethod
    def run(self, recipe: Recipe, args: Sequence[VerticalObject], made: VerticalObject) -> Any:
        """The data of the result `made`."""


class WordLevel(Level):
    """Objects are arrays of words."""

    def load(self, words: Words, made: VerticalObject) -> Words:
        return words

    def store(self, made: VerticalObject) -> Words:
        return made.data

    def run(self, recipe: Recipe, args: Sequence[VerticalObject], made: VerticalObject) -> Words:
        return recipe.words([other.data for other in args], made.lanes)


class RowLevel(Level):
    """Objects are arrays of packed rows, one row a bit, 64 lanes a word."""

    def load(self, words: Words, made: VerticalObject) -> Rows:
        rows = to_vertical(words, made.width)
        return ~rows if made.complemented else rows

    def store(self, made: VerticalObject) -> Words:
        return from_vertical(~made.data if made.complemented else made.data, made.lanes)

    def run(self, recipe: Recipe, args: Sequence[VerticalObject], made: VerticalObject) -> Rows:
        words = words_for(made.lanes)
        result: Rows = np.empty((made.width, words), np.uint64)
        program = recipe.program()
        for start in range(0, words, BLOCK_WORDS):
            part = slice(start, min(start + BLOCK_WORDS, words))
            bound = bound_program(program, _block_words(part.stop - part.start))
            bound.run([other.data[:, part] for other in args], result[:, part])
        return result


def _block_words(words: int) -> int:
    """A few lengths of blocks serve all: programs are bound to each of them."""
    return max(LEAST_WORDS, 1 << (words - 1).bit_length())


class _Workspace:
    """Rows of one length that all programs run in, one program after the other."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.rows: Rows = np.empty((0, words), np.uint64)

    def take(self, count: int) -> Rows:
        """The first `count` rows; programs that are bound to fewer keep theirs."""
        if len(self.rows) < count:
            self.rows = np.empty((1 << (count - 1).bit_length(), self.words), np.uint64)
        return self.rows[:count]


@cache
def _workspace(words: int) -> _Workspace:
    return _Workspace(words)


class _Bound:
    """A program that is bound to a workspace: its operands are copied in, its result out."""

    def __init__(self, program: RowProgram, words: int) -> None:
        compiled = compiled_in_order(program)
        widths = [x.width for x in (*program.inputs, *program.outputs)]
        ends = list(accumulate(widths))
        rows = _workspace(words).take(ends[-1] + compiled.temporaries)
        self.operands = [rows[end - width : end] for end, width in zip(ends, widths, strict=True)]
        flat = list(rows)
        with no_garbage():
            self.bound = BoundProgram(compiled, flat[: ends[-1]], words, flat[ends[-1] :])

    def run(self, inputs: Sequence[Rows], result: Rows) -> None:
        """Executes the program on the inputs' rows."""
        words = result.shape[1]
        for own, given in zip(self.operands, inputs, strict=False):
            own[:, :words] = given
        self.bound.run()
        result[:] = self.operands[-1][:, :words]


@lru_cache(maxsize=MAX_BOUND)
def bound_program(program: RowProgram, words: int) -> _Bound:
    """Binding a program takes longer than running it, and loops run it again and again."""
    return _Bound(program, words)


LEVELS: dict[str, Callable[[], Level]] = {"bbop": WordLevel, "rows": RowLevel}
