"""The host of a bbop stream: names, vectors, and the arithmetic between bbops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType

from cim_opt.errors import Location, UserError
from cim_opt.simulators.elementwise import dtype_of
from cim_opt.tools.bbop_statements import (
    Element,
    Expression,
    HostStep,
    Input,
    ScalarOf,
    Stream,
    Vector,
)

Values = np.ndarray[Any, np.dtype[Any]]


class BbopHost:
    """What names stand for: vectors, scalars, and steps that are not executed."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.elements: dict[str, str] = {}
        self.steps: dict[str, HostStep] = {}

    def define(self, name: str, value: Any, element: str) -> None:
        self.values[name] = value
        self.elements[name] = element

    def value(self, name: str, at: Location) -> Any:
        if name in self.steps and name not in self.values:
            step = self.steps[name]
            raise UserError(
                f"'{name}' is made by a host step, '{step.what}' in line {step.at[1]}",
                "the checker executes bbops, not the host's steps between them",
                "check a program whose host steps come last",
                at,
            )
        if name not in self.values:
            raise UserError(f"'{name}' is not defined", None, "define it before", at)
        return self.values[name]

    def vector(self, name: str, at: Location) -> Values:
        value = self.value(name, at)
        if np.ndim(value) != 1:
            raise UserError(f"'{name}' is a scalar", "a vector is needed", None, at)
        return value

    def number(self, expression: Expression) -> int:
        """What the host computes."""
        if expression.number is not None:
            return expression.number
        if not expression.symbol:
            value = self.value(expression.name, expression.at)
            if np.ndim(value):
                raise UserError(
                    f"'{expression.name}' is a vector", "a number is needed", None, expression.at
                )
            return int(value)
        left, right = (self.number(operand) for operand in expression.operands)
        if expression.symbol in "/%" and right < 1:
            raise UserError(
                f"{left} {expression.symbol} {right}", "divisors are 1 or more", None, expression.at
            )
        return _ARITHMETIC[expression.symbol](left, right)

    def whole(self, expression: Expression, what: str, least: int = 0) -> int:
        value = self.number(expression)
        if value < least:
            raise UserError(f"{what} {value}", f"it is {least} or more", None, expression.at)
        return value

    def element(self, source: Element) -> Any:
        vector = self.vector(source.vector, source.at)
        index = self.number(source.index)
        if not 0 <= index < len(vector):
            raise UserError(
                f"{source.vector}[{index}]", f"it has {len(vector)} elements", None, source.at
            )
        return vector[index]

    def scalar(self, statement: ScalarOf) -> int:
        """A number of the scalar's type: signed, but for i1."""
        source = statement.source
        value = self.element(source) if isinstance(source, Element) else self.number(source)
        bits = bits_of(statement.element)
        value = int(value) & ((1 << bits) - 1)
        return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value

    def room(self, statement: Vector) -> None:
        length = self.whole(statement.length, "length")
        vector = np.zeros(length, dtype_for(statement.element))
        if statement.of is not None:
            source = self.vector(statement.of, statement.at)
            if len(source) != length or source.dtype != vector.dtype:
                raise UserError(
                    f"'{statement.of}' has {len(source)} elements of {source.dtype}",
                    f"its copy has {length} of {vector.dtype}",
                    None,
                    statement.at,
                )
            vector = source.copy()
        self.define(statement.name, vector, statement.element)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def bits_of(element: str) -> int:
    return 64 if element == "index" else int(element[1:])


def dtype_for(element: str) -> np.dtype[Any]:
    return dtype_of(IndexType() if element == "index" else IntegerType(bits_of(element)))


def random_inputs(stream: Stream, seed: int) -> dict[str, Values]:
    """Vectors and scalars for a stream's inputs, over the whole range of their types."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, Values] = {}
    for statement in stream.body:
        if isinstance(statement, Input):
            bits, dtype = bits_of(statement.element), dtype_for(statement.element)
            size = () if statement.length is None else (statement.length,)
            raw = rng.integers(0, 1 << 64, size, np.uint64, endpoint=False)
            drawn[statement.name] = _narrowed(np.asarray(raw), bits, dtype)
    return drawn


def _narrowed(raw: Values, bits: int, dtype: np.dtype[Any]) -> Values:
    """Signed values of so many bits."""
    if bits == 1:
        return (raw & np.uint64(1)).astype(dtype)
    spare = np.int64(64 - bits)
    return ((raw.view(np.int64) << spare) >> spare).astype(dtype)
