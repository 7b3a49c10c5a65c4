"""The two libraries of row programs, by name.

`simdram` has programs as published, with the published counts wherever the released sequence
computes the right thing; `cim-opt` has shorter ones. Both offer the same operations:

    program = library("cim-opt").program("add", 32)
    program.counts.total                        # commands
    library("simdram").counts("mul", 8)

Operands are called a, b and out; `choice` is one bit, `acc` is read and written.
"""

import difflib
import inspect
from collections.abc import Callable
from functools import cache, lru_cache, partial

from cim_opt.errors import UserError
from cim_opt.microprograms import arithmetic, bitcount, constant, divide, logic, multiply, shift
from cim_opt.microprograms.model import Counts, RowProgram
from cim_opt.microprograms.short_steps import ShortSteps
from cim_opt.microprograms.steps import Steps

LIBRARY_NAMES = ("simdram", "cim-opt")
MAX_WIDTH = 64

Emitter = Callable[..., RowProgram]


def _named(emitter: Emitter, *names: str) -> dict[str, Emitter]:
    return {name: partial(emitter, name=name) for name in names}


_OPERATIONS: dict[str, Emitter] = {
    "copy": logic.copy,
    "fill": logic.fill,
    "not": logic.invert,
    "and": logic.conjunction,
    "or": logic.disjunction,
    "xor": logic.parity,
    "mask": logic.mask,
    "select": logic.select,
    "reduce_and": logic.reduce_and,
    "reduce_or": logic.reduce_or,
    "reduce_xor": logic.reduce_xor,
    "bitcount": bitcount.bitcount,
    "add": arithmetic.add,
    "sub": arithmetic.sub,
    "neg": arithmetic.negate,
    "negate_if": arithmetic.negate_if,
    "abs": arithmetic.absolute,
    "relu": arithmetic.relu,
    **_named(arithmetic.equality, "eq", "ne"),
    **_named(arithmetic.relation, "lt_u", "le_u", "gt_u", "ge_u", "lt_s", "le_s", "gt_s", "ge_s"),
    **_named(arithmetic.sign_test, "nonnegative", "negative", "positive"),
    **_named(arithmetic.extreme, "min_u", "max_u", "min_s", "max_s"),
    "shl_const": shift.constant_left,
    "shr_const": shift.constant_right,
    **_named(shift.variable, "shl", "shr_u", "shr_s"),
    "mul": multiply.multiply,
    **_named(multiply.accumulate, "mac", "msub"),
    "mul_const": constant.multiply,
    "mac_const": constant.multiply_accumulate,
    **_named(divide.unsigned, "div_u", "rem_u"),
    **_named(divide.signed, "div_s", "rem_s"),
}
OPERATIONS = tuple(_OPERATIONS)


class Library:
    """One set of row programs; made by `library`."""

    def __init__(self, name: str, steps: type[Steps]) -> None:
        self.name = name
        self._steps = steps

    def program(self, operation: str, width: int, **options: int | bool | None) -> RowProgram:
        """The row program of an operation on `width` bits; kept for the next call.

        `options(operation)` lists its options. Raises UserError for an unknown operation or
        option, a width outside 1 to 64, and a variant that the library does not have.
        """
        return _program(self._steps, operation, width, tuple(sorted(options.items())))

    def counts(self, operation: str, width: int, **options: int | bool | None) -> Counts:
        """The commands of `program`; for `mul_const` of a value, without making the program."""
        value, rest = options.get("value"), options.keys() - {"value"}
        if operation == "mul_const" and value is not None and 1 <= width <= MAX_WIDTH:
            value %= 1 << width
            if not rest:
                return constant.multiply_counts(self._steps, width, value)
            if rest == {"out_complemented"}:
                flag = bool(options["out_complemented"])
                return constant.multiply_counts(self._steps, width, value, flag)
        return self.program(operation, width, **options).counts


def options(operation: str) -> tuple[str, ...]:
    """The names of the options of an operation."""
    parameters = inspect.signature(_emitter(operation)).parameters.values()
    return tuple(x.name for x in parameters if x.kind is x.KEYWORD_ONLY and x.name != "name")


@cache
def library(name: str) -> Library:
    """A library by name; raises UserError where there is none of this name."""
    steps: dict[str, type[Steps]] = {"simdram": Steps, "cim-opt": ShortSteps}
    if name not in steps:
        raise UserError(
            f"unknown library of microprograms {name!r}",
            None,
            f"choose one of {', '.join(LIBRARY_NAMES)}",
        )
    return Library(name, steps[name])


def _emitter(operation: str) -> Emitter:
    if operation not in _OPERATIONS:
        near = difflib.get_close_matches(operation, OPERATIONS, n=3, cutoff=0.4)
        raise UserError(
            f"no microprogram {operation!r}", None, f"nearest: {', '.join(near or OPERATIONS[:3])}"
        )
    return _OPERATIONS[operation]


@lru_cache(maxsize=2048)
def _program(
    steps: type[Steps],
    operation: str,
    width: int,
    chosen: tuple[tuple[str, int | bool | None], ...],
) -> RowProgram:
    emitter = _emitter(operation)
    if not 1 <= width <= MAX_WIDTH:
        raise UserError(
            f"microprogram {operation} of {width} bits",
            f"1 to {MAX_WIDTH} bits",
            "narrow or split the operand",
        )
    known = options(operation)
    for name, _ in chosen:
        if name not in known:
            raise UserError(
                f"microprogram {operation} has no option {name!r}",
                None,
                f"it has {', '.join(known) or 'none'}",
            )
    missing = [
        x.name
        for x in inspect.signature(emitter).parameters.values()
        if x.kind is x.KEYWORD_ONLY and x.default is x.empty and x.name not in dict(chosen)
    ]
    if missing:
        raise UserError(f"microprogram {operation} without {missing[0]}", None, "give it a value")
    return emitter(steps(), width, **dict(chosen))
