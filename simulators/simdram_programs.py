"""What operations of the dialect issue, as row programs and on words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cim_opt.dialects.simdram import Opcode
from cim_opt.dialects.simdram_programs import bbop_program, fill_program, mul_scalar_program
from cim_opt.microprograms.compiled import CompiledProgram, caller_bits, compile_program
from cim_opt.microprograms.library import library as load_library
from cim_opt.microprograms.model import Counts, RowProgram
from cim_opt.simulators import simdram_words
from cim_opt.simulators.simdram_words import Words

WordFunction = Callable[[Sequence[Words], int], Words]
"""Takes the operands' words and the number of lanes; gives those of the result."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """What one operation issues: a row program, and the same on words.

    Without a program it issues nothing: the transposition unit writes the rows.
    """

    program: RowProgram | None
    words: WordFunction

    @property
    def counts(self) -> Counts:
        """Row commands in one subarray."""
        return self.program.counts if self.program else Counts(0, 0)

    @property
    def scratch_rows(self) -> int:
        """D rows that it needs besides those of operands and result."""
        return self.program.scratch_rows if self.program else 0

    def may_share(self, operand: int) -> bool:
        """Whether the result may lie in the rows of this operand."""
        if self.program is None:
            return False
        pair = (self.program.inputs[operand].name, self.program.outputs[0].name)
        return pair in self.program.aliases

    @cached_property
    def compiled(self) -> CompiledProgram:
        """The program for packed rows: those of the operands in order, then of the result."""
        assert self.program is not None
        places = range(len(caller_bits(self.program)))
        return compile_program(self.program, tuple(places))


NO_PROGRAM = Recipe(None, lambda args, lanes: args[0])
"""What bringing data in issues."""


MAX_RECIPES = 4096
"""Recipes that are kept: programs for many numbers would fill the memory."""


class Programs:
    """Recipes from the library of a name, kept for the next iteration of a loop."""

    def __init__(self, library: str):
        self.library = library
        self._library = load_library(library)
        self._recipes: dict[object, Recipe] = {}

    def _kept(self, key: object, make: Callable[[], Recipe]) -> Recipe:
        if key not in self._recipes:
            if len(self._recipes) >= MAX_RECIPES:
                self._recipes.clear()
            self._recipes[key] = make()
        return self._recipes[key]

    def bbop(self, opcode: Opcode, width: int, out: int, amount: int | None) -> Recipe:
        """A bbop on values of `width` bits with a result of `out`; `amount` of a constant shift."""

        def make() -> Recipe:
            return Recipe(
                bbop_program(self._library, opcode, width, out, amount),
                lambda args, lanes: simdram_words.compute(opcode, args, width, out, amount),
            )

        return self._kept((opcode, width, out, amount), make)

    def fill(self, width: int, scalar: int) -> Recipe:
        """The low `width` bits of a number in all lanes."""

        def make() -> Recipe:
            return Recipe(
                fill_program(self._library, width, scalar),
                lambda args, lanes: simdram_words.filled(scalar, lanes, width),
            )

        return self._kept(("fill", width, scalar), make)

    def mul_scalar(self, width: int, scalar: int) -> Recipe:
        """All lanes times a number, modulo 2**width."""

        def make() -> Recipe:
            return Recipe(
                mul_scalar_program(self._library, width, scalar),
                lambda args, lanes: simdram_words.multiply_by(args[0], scalar, width),
            )

        return self._kept(("mul_scalar", width, scalar), make)
