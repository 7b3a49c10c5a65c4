"""Covers of one axis without dilation that need no search: blocks, combs and chunks.

In each, the outputs of every class modulo the period reach every tap at least once:

    block    B is a period of neighbours, E their whole footprint
    comb     B is several periods of neighbours, E runs of one period far apart: B meets every run
             with other taps
    chunk    E is an interval shorter than the footprint, B outputs far apart: each meets it with
             another chunk of the taps
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """At a multiple p of `period` outputs p + b meet inputs stride * p + e."""

    period: int
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]


def plain_lines(taps: int, stride: int, columns: int) -> Iterator[Line]:
    """Blocks, then combs, then chunks, with at most `columns` outputs."""
    for period in range(1, columns + 1):
        yield block(taps, stride, period)
    if taps == 1:
        return
    for period in range(1, columns):
        for turns in range(2, columns // period + 1):
            yield comb(taps, stride, period, turns)
    for period in range(1, columns):
        for length in range(stride * period, taps + stride * (period - 1)):
            found = chunk(taps, stride, period, length)
            if len(found.outputs) <= columns:
                yield found


def block(taps: int, stride: int, size: int) -> Line:
    """`size` neighbours with all their inputs."""
    inputs = sorted({stride * b + k for b in range(size) for k in range(taps)})
    return Line(size, tuple(range(size)), tuple(inputs))


def comb(taps: int, stride: int, period: int, turns: int) -> Line:
    """`turns` periods of neighbours with runs of inputs that lie as many periods apart."""
    run, far = stride * period, stride * period * turns
    # The last class needs inputs 0 .. reach - 1 of the first; moving by runs closes the gaps.
    reach = taps + stride * (period - 1)
    inputs = sorted({u // far * far + u % run + far - run for u in range(reach)})
    return Line(period, tuple(range(period * turns)), tuple(inputs))


def chunk(taps: int, stride: int, period: int, length: int) -> Line:
    """Outputs that together meet `length` neighbouring inputs with every tap."""
    # No further apart than needed: outputs that lie close meet the borders of a map less often.
    widest = length // (stride * period)
    outputs: list[int] = []
    for first in range(period):
        left = max(0, taps - (length - stride * first))
        others = -(-left // (stride * period * widest))
        hop = period * -(-left // (stride * period * others)) if others else 0
        outputs += [first - hop * number for number in range(others + 1)]
    return Line(period, tuple(sorted(outputs)), tuple(range(length)))
