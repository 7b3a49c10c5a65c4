"""What operations of the dialect issue, as row programs and on words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cim_opt.dialects.simdram import Opcode
from cim_opt.dialects.simdram_programs import bbop_program, fill_program, mul_scalar_program
from cim_opt.microprograms.compiled import CompiledProgram, compiled_in_order
from cim_opt.microprograms.library import library as load_library
from cim_opt.microprograms.model import Counts, RowProgram
from cim_opt.simulators import simdram_words
from cim_opt.simulators.simdram_words import Words

WordFunction = Callable[[Sequence[Words], int], Words]
"""Takes the operands' words and the number of lanes; gives those of the result."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """What one operation issues, and the same on words.

    `scratch_rows` are D rows that it needs besides those of operands and result; the result may lie
    in the rows of the operands that `shared` numbers. The program itself is made when it is asked
    for: a loop over a table of scalars has thousands of them.
    """

    counts: Counts
    scratch_rows: int
    shared: frozenset[int]
    words: WordFunction
    make: Callable[[], RowProgram] | None
    """None where nothing is issued: the transposition unit writes the rows."""

    def compiled(self) -> CompiledProgram:
        """The program for packed rows: those of the operands in order, then of the result."""
        return compiled_in_order(self.program())

    def program(self) -> RowProgram:
        """The row program."""
        assert self.make is not None
        return self.make()


def _recipe(make: Callable[[], RowProgram], words: WordFunction) -> Recipe:
    program = make()
    (out,) = program.outputs
    shared = (n for n, x in enumerate(program.inputs) if (x.name, out.name) in program.aliases)
    return Recipe(program.counts, program.scratch_rows, frozenset(shared), words, make)


NO_PROGRAM = Recipe(Counts(0, 0), 0, frozenset(), lambda args, lanes: args[0], None)
"""What bringing data in issues."""

MAX_RECIPES = 65536
"""Recipes that are kept; the libraries keep fewer programs."""


class Programs:
    """Recipes from the library of a name, kept for the next iteration of a loop."""

    def __init__(self, library: str):
        self.library = library
        self._library = load_library(library)
        self._recipes: dict[object, Recipe] = {}

    def bbop(
        self,
        opcode: Opcode,
        width: int,
        out: int,
        amount: int | None,
        polarity: tuple[bool, ...] = (),
    ) -> Recipe:
        """A bbop on values of `width` bits with a result of `out`; `amount` of a constant shift.

        `polarity` as `bbop_program` takes it.
        """
        return self._kept(
            (opcode, width, out, amount, polarity),
            lambda: bbop_program(self._library, opcode, width, out, amount, polarity),
            lambda args, lanes: simdram_words.compute(opcode, args, width, out, amount),
        )

    def fill(self, width: int, scalar: int, complemented: bool = False) -> Recipe:
        """The low `width` bits of a number in all lanes, stored complemented or as they are."""
        return self._kept(
            ("fill", width, scalar, complemented),
            lambda: fill_program(self._library, width, scalar, complemented),
            lambda args, lanes: simdram_words.filled(scalar, lanes, width),
        )

    def mul_scalar(self, width: int, scalar: int, complemented: bool = False) -> Recipe:
        """All lanes times a number, modulo 2**width, stored complemented or as it is."""
        recipe = self._recipes.get(("mul_scalar", width, scalar, complemented))
        if recipe is not None:
            return recipe
        # Whatever the number, it takes no scratch rows, and no rows of its operand: which number it
        # is depends on data. A program is not made to be counted: most numbers come once.
        recipe = Recipe(
            self._library.counts("mul_const", width, value=scalar, out_complemented=complemented),
            0,
            frozenset(),
            lambda args, lanes: simdram_words.multiply_by(args[0], scalar, width),
            lambda: mul_scalar_program(self._library, width, scalar, complemented),
        )
        return self._keep(("mul_scalar", width, scalar, complemented), recipe)

    def _kept(self, key: object, make: Callable[[], RowProgram], words: WordFunction) -> Recipe:
        recipe = self._recipes.get(key)
        return self._keep(key, _recipe(make, words)) if recipe is None else recipe

    def _keep(self, key: object, recipe: Recipe) -> Recipe:
        if len(self._recipes) >= MAX_RECIPES:
            self._recipes.clear()
        self._recipes[key] = recipe
        return recipe
