"""The stages that the twelve kernels of `cim-bench pum` are made of, each one pipeline.

A stage is for vectors of one length; data that it needs several times, such as the rows of a
matrix product, is laid out by the host before. Inputs are named; scalars are given as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, mul
from typing import Any, Literal

import numpy as np

from cim_opt.frontend import Pipeline

BYTE = (0, 255)
"""What 8-bit inputs hold."""

PAIRS = "pairs"
Range = tuple[int, int]
Layout = Literal["auto", "output-stationary", "reduction-in-lane"]


@dataclass(frozen=True)
class Part:
    """One pipeline that runs `times` times, compiled with the option `mapping`.

    `ranges` are those of its inputs when the kernel's own inputs are 8-bit numbers; an input
    without one may hold anything.
    """

    name: str
    build: Callable[[], Pipeline]
    times: int = 1
    ranges: Mapping[str, Range] = field(default_factory=dict[str, Range])
    mapping: Layout = "auto"


@dataclass(frozen=True)
class Stage:
    """One pipeline, which a kernel runs `times` times, and other ways to compute the same.

    In the ordinary program its innermost loop has `trip` rounds and is run `loops` times (each
    time the pipeline is); `body` lists the operations of a round with their bits, by the names of
    microprograms. A reduction is not among them: `reduces` has the bits of its sums, or 0. `ranges`
    as for a part. `scalars` are ways that give one operand of the products as numbers that the
    host knows. `batches` says how many of its `times` do not depend on each other, batch by batch;
    left out, each depends on the one before.
    """

    name: str
    build: Callable[[], Pipeline]
    loops: int
    trip: int
    body: tuple[tuple[str, int], ...]
    times: int = 1
    ranges: Mapping[str, Range] = field(default_factory=dict[str, Range])
    reduces: int = 0
    scalars: Mapping[str, tuple[Part, ...]] = field(default_factory=dict[str, tuple[Part, ...]])
    batches: Sequence[int] = ()

    def ways(self) -> dict[str, tuple[Part, ...]]:
        """How the stage may be computed; `pairs`: both operands side by side in the columns."""
        return {PAIRS: (Part(self.name, self.build, self.times, self.ranges),), **self.scalars}


def _dot_products(group: Any, *others: Any) -> Any:
    """The sums of products of one group and each of several others."""
    count = len(others)

    def step(*values: Any) -> Any:
        sums, x, ys = values[:count], values[count], values[count + 1 :]
        return _one_or_all([total + x * y for total, y in zip(sums, ys, strict=True)])

    def combine(*values: Any) -> Any:
        return _one_or_all([values[i] + values[count + i] for i in range(count)])

    return group.reduce(step, *others, init=_one_or_all([0] * count), combine=combine)


def _one_or_all(values: list[Any]) -> Any:
    return tuple(values) if len(values) > 1 else values[0]


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
    p.fetch(p.group(_dot_products, a, b, size=group))
    return p


def products_with_rows(outputs: int, rows: Any) -> Pipeline:
    """For each of some `rows`, `outputs` sums of products of that row and a group of b.

    The same as `dot_products`, but one operand is the same for all outputs: with outputs side by
    side, the host issues each of its numbers as a scalar. All rows in one pipeline bring b into
    the columns once.
    """
    p = Pipeline(outputs * rows.shape[1])
    b = p.input(rows.dtype, "b")
    made = p.group(_dot_products, b, size=rows.shape[1], shared=tuple(rows))
    p.fetch(*(made if len(rows) > 1 else [made]))
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
