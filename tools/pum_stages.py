"""The stages that the twelve kernels of `cim-bench pum` are made of, each one pipeline.

A stage is for vectors of one length; data that it needs several times, such as the rows of a
matrix product, is laid out by the host before. Inputs are named; scalars are given as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, mul
from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline

BYTE = (0, 255)
"""What 8-bit inputs hold."""

Range = tuple[int, int]


@dataclass(frozen=True)
class Stage:
    """One pipeline, which a kernel runs `times` times.

    In the ordinary program its innermost loop has `trip` rounds and is run `loops` times (each
    time the pipeline is); `body` lists the operations of a round with their bits, by the names of
    microprograms. A reduction is not among them. `ranges` are those of the pipeline's inputs when
    the kernel's own inputs are 8-bit numbers; an input without one may hold anything.
    """

    name: str
    build: Callable[[], Pipeline]
    loops: int
    trip: int
    body: tuple[tuple[str, int], ...]
    times: int = 1
    ranges: Mapping[str, Range] = field(default_factory=dict[str, Range])


def _dot_product(x: Any, y: Any) -> Any:
    return (x * y).sum()


def _sum(row: Any) -> Any:
    return row.sum()


def _difference(x: Any, mean: Any) -> Any:
    return x.astype(np.int32) - mean.astype(np.int32)


def _distance(x: Any, centre: Any) -> Any:
    apart = x - centre
    return (apart * apart).sum()


def _eliminated(x: Any, q: Any, factor: Any) -> Any:
    return x - q * factor


def _quotient(x: Any, by: Any) -> Any:
    return x // by


def _average(a: Any, b: Any) -> Any:
    return (a + b + 1) >> 1


def dot_products(outputs: int, group: int, dtype: Any = np.uint32) -> Pipeline:
    """`outputs` sums of `group` products a * b."""
    p = Pipeline(outputs * group)
    a, b = p.input(dtype, "a"), p.input(dtype, "b")
    p.fetch(p.group(_dot_product, a, b, size=group))
    return p


def combination(length: int, alpha: int, beta: int) -> Pipeline:
    """alpha * x + beta * y, of numbers that the program holds."""

    def combine(x: Any, y: Any) -> Any:
        return x * alpha + y * beta

    p = Pipeline(length)
    x, y = p.input(np.uint32, "x"), p.input(np.uint32, "y")
    p.fetch(p.map(combine, x, y))
    return p


def means(outputs: int, group: int) -> Pipeline:
    """The means of groups, rounded down."""

    def divide(total: Any) -> Any:
        return total // group

    p = Pipeline(outputs * group)
    sums = p.group(_sum, p.input(np.uint32, "data"), size=group)
    p.fetch(p.map(divide, sums))
    return p


def differences(length: int) -> Pipeline:
    """x - mean, as signed numbers."""
    p = Pipeline(length)
    x, mean = p.input(np.uint32, "x"), p.input(np.uint32, "mean")
    p.fetch(p.map(_difference, x, mean))
    return p


def distances(outputs: int, group: int) -> Pipeline:
    """Squared distances of points and centres, `group` features each."""
    p = Pipeline(outputs * group)
    x, centre = p.input(np.int32, "x"), p.input(np.int32, "centre")
    p.fetch(p.group(_distance, x, centre, size=group))
    return p


def sum_of_products(length: int) -> Pipeline:
    """One sum of products x * y."""
    p = Pipeline(length)
    x, y = p.input(np.uint32, "x"), p.input(np.uint32, "y")
    p.fetch(p.reduce(add, p.map(mul, x, y), init=0))
    return p


def quotients(length: int, by: int) -> Pipeline:
    """x / by, rounded down."""
    p = Pipeline(length)
    p.fetch(p.map(_quotient, p.input(np.uint32, "x"), shared=np.uint32(by)))
    return p


def eliminated(length: int, factor: int) -> Pipeline:
    """x - factor * q."""
    p = Pipeline(length)
    x, q = p.input(np.uint32, "x"), p.input(np.uint32, "q")
    p.fetch(p.map(_eliminated, x, q, shared=np.uint32(factor)))
    return p


FIELDS = ("ex", "ex_next", "ey", "ey_next", "bza", "hz", "cxmh", "cxph")


def apml_row(length: int, scalars: Sequence[int]) -> Pipeline:
    """A row of the field update, new bza and hz, in whole numbers.

    The four scalars of the row are PolyBench's cymh/cyph, ch/cyph, mui*czp and mui*czm.
    """

    def update(
        ex: Any,
        ex_next: Any,
        ey: Any,
        ey_next: Any,
        bza: Any,
        hz: Any,
        cxmh: Any,
        cxph: Any,
        ratio: Any,
        ch: Any,
        plus: Any,
        minus: Any,
    ) -> Any:
        clf = ex - ex_next + ey_next - ey
        new = bza * ratio - clf * ch
        hz = cxmh // cxph * hz + plus // cxph * new - minus // cxph * bza
        return new, hz

    p = Pipeline(length)
    fields = [p.input(np.uint32, name) for name in FIELDS]
    p.fetch(p.map(update, *fields, shared=tuple(np.uint32(x) for x in scalars)))
    return p


def averages(length: int) -> Pipeline:
    """(a + b + 1) / 2 of pixels in 16 bits."""
    p = Pipeline(length)
    a, b = p.input(np.uint16, "a"), p.input(np.uint16, "b")
    p.fetch(p.map(_average, a, b))
    return p
