"""Lower bounds on macro steps that hold for every mapping, and how far one is from them.

Every mapping that does all products of a kernel, those with padding too.

One step picks at most R inputs, which its rows broadcast, and at most C outputs, which its columns
accumulate. Let D be the products an output sums and N the number of outputs.

B1: an output is in ceil(D / R) steps at least, and a step has C columns: N * ceil(D / R) / C.

B2, for D <= R: let q be the greatest number of outputs whose whole windows lie in R inputs. At most
q outputs of a step are done in that step alone, all others take two columns of some steps:
2 * N <= (C + q) * steps when q < C.

q by exhaustion: outputs of other groups, or that dilation keeps apart, share nothing. Among the
others windows are intervals along every axis, and pushing a set of outputs towards the origin
along one axis never adds inputs. So only sets that are closed downwards have to be looked at, and
those with fewer than C outputs are few; then the inputs are divided among sets that share nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd

from cim_opt.polyhedral.kernel import MacKernel, Point

MOST_OUTPUTS = 20
"""Sets of outputs that are looked at; more columns than this are bounded without B2."""


@dataclass(frozen=True, slots=True)
class Bound:
    """At least `steps` steps, by rule `rule` ("B1" or "B2"); `shared` is q, None if not needed."""

    steps: int
    rule: str
    shared: int | None = None


@dataclass(frozen=True, slots=True)
class Distance:
    """`steps` of a mapping against the bound, and the utilisation of both, 0 to 1."""

    steps: int
    bound: Bound
    utilisation: float
    reachable: float

    @property
    def ratio(self) -> float:
        """Steps over the bound; 1 when no mapping is better."""
        return self.steps / self.bound.steps

    def __str__(self) -> str:
        best = "no mapping takes fewer" if self.steps == self.bound.steps else "a bound"
        return (
            f"{self.steps} steps, utilisation {self.utilisation:.2%}; {self.bound.rule}: at least "
            f"{self.bound.steps} steps, {self.reachable:.2%} ({best})"
        )


def lower_bound(kernel: MacKernel, rows: int, columns: int) -> Bound:
    """The better of B1 and B2 for macros of `rows` by `columns` weights, all groups together."""
    slots = -(-kernel.depth // rows)
    plain = Bound(-(-kernel.outputs * slots // columns), "B1")
    if slots > 1 or columns > MOST_OUTPUTS:
        return plain
    shared = shared_outputs(kernel, rows, columns)
    if shared >= columns:
        return plain
    by_slots = Bound(-(-2 * kernel.outputs // (columns + shared)), "B2", shared)
    return max(plain, by_slots, key=lambda bound: bound.steps)


def distance(kernel: MacKernel, rows: int, columns: int, steps: int) -> Distance:
    """How far a mapping of `steps` steps is from the bound."""
    bound = lower_bound(kernel, rows, columns)
    cells = rows * columns
    return Distance(
        steps, bound, kernel.macs / (steps * cells), kernel.macs / (bound.steps * cells)
    )


def utilisation(kernel: MacKernel, rows: int, columns: int, steps: int) -> float:
    """Multiply-accumulates over the cells of all steps, 0 to 1; padding counts as useful."""
    return kernel.macs / (steps * rows * columns)


# -- outputs that share their inputs -------------------------------------------------------------


def shared_outputs(kernel: MacKernel, rows: int, most: int) -> int:
    """q: the most outputs whose windows lie in `rows` inputs together; looks up to `most`.

    0 when not even one window does. Never too small; where dilation divides an axis into residue
    classes of different sizes, all are taken to be as large as the largest.
    """
    spans: list[Span] = []
    still, classes = 1, kernel.groups
    for axis in kernel.axes:
        divisor = gcd(axis.stride, axis.dilation)
        phases = min(axis.dilation // divisor, axis.outputs)
        classes *= phases
        if axis.outputs == phases:
            still *= axis.taps
        else:
            spans.append((-(-axis.outputs // phases), axis.taps, axis.stride // divisor))
    room = rows // (still * kernel.in_channels)
    wanted = -(-most // kernel.out_channels)
    reaches = _least_reaches(tuple(spans), room, wanted)
    return min(most, kernel.out_channels * _divided(reaches, room, min(classes, wanted)))


Span = tuple[int, int, int]
"""(outputs, taps, stride) of the outputs of one residue class, as if there were no others."""


def _divided(reaches: tuple[int, ...], room: int, classes: int) -> int:
    """The most positions in `classes` sets that share no input, with `room` inputs in all."""
    best = [0] * (room + 1)
    for _ in range(classes):
        more = list(best)
        for size, reach in enumerate(reaches, start=1):
            for left in range(room - reach + 1):
                more[left + reach] = max(more[left + reach], best[left] + size)
        if more == best:
            break
        best = more
    return max(best)


@lru_cache(maxsize=1024)
def _least_reaches(spans: tuple[Span, ...], room: int, most: int) -> tuple[int, ...]:
    """Fewest inputs that 1, 2, .. positions of a class need: up to `room` inputs, `most` positions.

    Over all sets of positions that are closed downwards.
    """
    windows = list(product(*(range(taps) for _, taps, _ in spans)))
    level: set[frozenset[Point]] = {frozenset({tuple(0 for _ in spans)})}
    reaches: list[int] = []
    while len(reaches) < most:
        reach = {kept: _reach(kept, windows, spans) for kept in level}
        level = {kept for kept in level if reach[kept] <= room}
        if not level:
            break
        reaches.append(min(reach[kept] for kept in level))
        level = {bigger for kept in level for bigger in _grown(kept, spans)}
    return tuple(reaches)


def _grown(kept: frozenset[Point], spans: tuple[Span, ...]):
    """The sets with one position more that are closed downwards too."""
    for position in kept:
        for axis, (outputs, _, _) in enumerate(spans):
            more = (*position[:axis], position[axis] + 1, *position[axis + 1 :])
            if more in kept or more[axis] >= outputs:
                continue
            below = [(*more[:i], more[i] - 1, *more[i + 1 :]) for i in range(len(spans)) if more[i]]
            if kept.issuperset(below):
                yield kept | {more}


def _reach(kept: frozenset[Point], windows: list[Point], spans: tuple[Span, ...]) -> int:
    """How many inputs the windows of these positions have together."""
    strides = [stride for _, _, stride in spans]
    return len(
        {
            tuple(s * o + k for s, o, k in zip(strides, position, window, strict=True))
            for position in kept
            for window in windows
        }
    )
