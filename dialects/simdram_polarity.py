"""Which row program computes on operands that are stored complemented.

Plain rows of a value x hold x, complemented ones hold ~x. `variant` says for each operation of the
dialect, and the polarity of its operands and result, which program of a library does that, and
with which options. No operation has all combinations; whether a given library has the program is
the library's to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_EACH = frozenset(("add", "sub", "and", "or", "xor"))
"""Operations whose programs have an option for each operand and the result."""

_ALL_ALIKE = frozenset(
    (
        *("minu", "mins", "maxu", "maxs", "shl_const", "shru_const", "shrs_const"),
        *("zext", "sext", "trunc"),
    )
)
"""Operations whose operands and result have one polarity."""

_OPPOSITES = {
    "eq": "ne",
    "ltu": "geu",
    "lts": "ges",
    "leu": "gtu",
    "les": "gts",
} | {"ne": "eq", "geu": "ltu", "ges": "lts", "gtu": "leu", "gts": "les"}
"""Comparisons, and those that hold where they do not."""

_OTHER_MOVES = {"copy": "not", "not": "copy"}


@dataclass(frozen=True)
class Variant:
    """The operation whose program is issued, and the program's options."""

    opcode: str
    options: dict[str, bool] = field(default_factory=dict[str, bool])


def variant(opcode: str, args: Sequence[bool], out: bool) -> Variant | None:
    """The program for this polarity (True: complemented) of operands and result.

    None where no program has it. `opcode` is a name of `simdram.Opcode`; for a select, `args` are
    the choice and the two values.
    """
    if not any(args) and not out:
        return Variant(opcode)
    if opcode in _OTHER_MOVES:
        return Variant(opcode if args[0] == out else _OTHER_MOVES[opcode])
    if opcode in _EACH:
        return _each(opcode, args, out)
    if opcode in _OPPOSITES:
        return _comparison(opcode, args, out)
    if opcode in _ALL_ALIKE:
        alike = all(x == out for x in args)
        return Variant(opcode, {"complemented": True}) if alike else None
    if opcode == "select":
        return _select(args, out)
    if opcode == "mul" and not any(args):
        return Variant(opcode, {"out_complemented": True})
    return None


def _each(opcode: str, args: Sequence[bool], out: bool) -> Variant | None:
    a, b = args
    # out = a + b wants the polarity of one of the operands; out = a - b that of a if they differ.
    if opcode == "add" and a == b != out:
        return None
    if opcode == "sub" and a != b and a != out:
        return None
    chosen = {"a_complemented": a, "b_complemented": b, "out_complemented": out}
    return Variant(opcode, {name: True for name, value in chosen.items() if value})


def _comparison(opcode: str, args: Sequence[bool], out: bool) -> Variant | None:
    if args[0] != args[1]:
        return None
    options = {"complemented": True} if args[0] else {}
    return Variant(_OPPOSITES[opcode] if out else opcode, options)


def _select(args: Sequence[bool], out: bool) -> Variant | None:
    choice, a, b = args
    if not a == b == out:
        return None
    chosen = {"choice_complemented": choice, "complemented": out}
    return Variant("select", {name: True for name, value in chosen.items() if value})
