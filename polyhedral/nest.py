"""Loop nests with linear accesses, and their loops split into levels.

A kernel of d axes has the loops (oc, ic, o0 .. , k0 ..); groups index everything alike and stay
outside. Splitting loop n into factors (f_0, .., f_m), outermost first, writes it as
n = f_1 * .. * f_m * n_0 + .. + n_m. The product of the factors may exceed the size: then the last
blocks are partial, and only points with n < size are iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.polyhedral.reuse import Matrix, Row

Factors = tuple[int, ...]
"""Sizes of the levels of one loop, outermost first."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops and what their iterations access.

    `names` and `extents` are those of the loops before splitting, `factors` the levels of each.
    The access matrices have one column a level, in the order of loops and, within a loop,
    outermost first. Raises ValueError when levels cannot hold a loop.
    """

    names: tuple[str, ...]
    extents: tuple[int, ...]
    factors: tuple[Factors, ...]
    input: Matrix
    output: Matrix
    weight: Matrix

    def __post_init__(self):
        for name, extent, factors in zip(self.names, self.extents, self.factors, strict=True):
            if prod(factors) < extent or min(factors) < 1:
                raise ValueError(f"levels {factors} do not hold loop {name} of {extent}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of every level."""
        return tuple(size for factors in self.factors for size in factors)

    @property
    def sources(self) -> tuple[int, ...]:
        """The loop that each level comes from."""
        return tuple(i for i, factors in enumerate(self.factors) for _ in factors)

    @property
    def scales(self) -> tuple[int, ...]:
        """What one step of each level adds to its loop."""
        return tuple(prod(f[i + 1 :]) for f in self.factors for i in range(len(f)))

    @property
    def is_split(self) -> tuple[bool, ...]:
        """Whether each loop has more than one level."""
        return tuple(len(factors) > 1 for factors in self.factors)

    def split(self, factors: Sequence[Factors]) -> Nest:
        """This nest, which is not split yet, with the loops in these levels.

        Raises ValueError when the nest is split already or levels cannot hold a loop.
        """
        if any(self.is_split):
            raise ValueError("a nest is split once")
        levels = tuple(map(tuple, factors))
        scales = [[prod(f[i + 1 :]) for i in range(len(f))] for f in levels]
        return Nest(
            self.names,
            self.extents,
            levels,
            _refine(self.input, scales),
            _refine(self.output, scales),
            _refine(self.weight, scales),
        )

    def level_names(self) -> tuple[str, ...]:
        """Names of the levels: the loop's, with .0, .1 .. behind it when there are several."""
        return tuple(
            name if len(factors) == 1 else f"{name}.{i}"
            for name, factors in zip(self.names, self.factors, strict=True)
            for i in range(len(factors))
        )


def nest_of(kernel: MacKernel) -> Nest:
    """The loops (oc, ic, o0 .. , k0 ..) of one group; input index stride * o + dilation * k."""
    rank = kernel.rank
    count = 2 + 2 * rank
    names = ("oc", "ic", *(f"o{i}" for i in range(rank)), *(f"k{i}" for i in range(rank)))
    sizes = (kernel.out_channels, kernel.in_channels, *kernel.output_shape, *kernel.tap_shape)
    sliding = tuple(
        _row(count, {2 + i: axis.stride, 2 + rank + i: axis.dilation})
        for i, axis in enumerate(kernel.axes)
    )
    outputs = tuple(_row(count, {2 + i: 1}) for i in range(rank))
    taps = tuple(_row(count, {2 + rank + i: 1}) for i in range(rank))
    oc, ic = _row(count, {0: 1}), _row(count, {1: 1})
    return Nest(
        names,
        sizes,
        tuple((size,) for size in sizes),
        (ic, *sliding),
        (oc, *outputs),
        (oc, ic, *taps),
    )


def _row(count: int, entries: dict[int, int]) -> Row:
    return tuple(entries.get(i, 0) for i in range(count))


def _refine(matrix: Matrix, scales: Sequence[Sequence[int]]) -> Matrix:
    return tuple(
        tuple(value * scale for value, levels in zip(row, scales, strict=True) for scale in levels)
        for row in matrix
    )
