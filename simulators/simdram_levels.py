"""The two levels of simulation: words that NumPy computes with, and packed rows of bits.

Both run a `Recipe`, what one bbop issues. The word level takes the operation's meaning; the row
level executes the recipe's row commands, all tiles at once: tiles lie one after another in the
packed rows, which are as long as the object has lanes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cim_opt.microprograms.packed import BoundProgram
from cim_opt.microprograms.packed import Words as Rows
from cim_opt.microprograms.transposition import from_vertical, to_vertical, words_for
from cim_opt.simulators.simdram_objects import VerticalObject
from cim_opt.simulators.simdram_programs import Recipe
from cim_opt.simulators.simdram_words import Words

BLOCK_WORDS = 4096
"""Words of each row that a program computes at once, so that rows stay in the cache."""


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
        for start in range(0, words, BLOCK_WORDS):
            part = slice(start, min(start + BLOCK_WORDS, words))
            subarray = _subarray(recipe, part.stop - part.start)
            subarray.run([other.data[:, part] for other in args], result[:, part])
        return result


class _Subarray:
    """Rows that one program is bound to: its operands are copied in, its result out."""

    def __init__(self, recipe: Recipe, words: int) -> None:
        program = recipe.program()
        operands = (*program.inputs, *program.outputs)
        self.rows: list[Rows] = [np.empty((x.width, words), np.uint64) for x in operands]
        flat = [row for operand in self.rows for row in operand]
        self.bound = BoundProgram(recipe.compiled(), flat, words)

    def run(self, inputs: Sequence[Rows], result: Rows) -> None:
        """Executes the program on the inputs' rows."""
        for own, given in zip(self.rows, inputs, strict=False):
            own[:] = given
        self.bound.run()
        result[:] = self.rows[-1]


@lru_cache(maxsize=16)
def _subarray(recipe: Recipe, words: int) -> _Subarray:
    """Binding a program takes longer than running it, and loops run it again and again."""
    return _Subarray(recipe, words)


LEVELS: dict[str, Callable[[], Level]] = {"bbop": WordLevel, "rows": RowLevel}
