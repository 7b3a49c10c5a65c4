"""Helpers of the files that put programs together: rows of operands, and the finished program."""

from collections.abc import Sequence

from cim_opt.errors import UserError
from cim_opt.microprograms.model import AAP, C0, Address, Bit, Operand, RowProgram, bit
from cim_opt.microprograms.steps import Steps


def rows(operand: Operand) -> list[Address]:
    """The D rows of an operand, lowest bit first."""
    return [bit(operand.name, index) for index in range(operand.width)]


def extended(operand: Operand, width: int, signed: bool) -> list[Address]:
    """The rows of an operand read as one of `width` bits: extension repeats rows, at no cost.

    Only for operands that are not complemented where an unsigned one grows.
    """
    own = rows(operand)[:width]
    fill: Address = own[-1] if signed else C0
    return own + [fill] * (width - len(own))


def finish(
    steps: Steps,
    name: str,
    width: int,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    scratch: Sequence[Operand] = (),
) -> RowProgram:
    """The program of the commands that `steps` collected; unused rows of `scratch` are dropped."""
    used = (Operand(operand.name, _used_rows(steps, operand.name)) for operand in scratch)
    return RowProgram(
        steps.library,
        name,
        width,
        tuple(inputs),
        tuple(outputs),
        tuple(operand for operand in used if operand.width),
        tuple(steps.commands),
    )


def _used_rows(steps: Steps, operand: str) -> int:
    """One more than the highest row of the operand that a command writes."""
    written = (x.destination for x in steps.commands if isinstance(x, AAP))
    indexes = (x.index for x in written if isinstance(x, Bit) and x.operand == operand)
    return max(indexes, default=-1) + 1


def unsupported(name: str, what: str, remedy: str) -> UserError:
    """An error for a variant that no library has."""
    return UserError(f"microprogram {name}: {what}", None, remedy)
