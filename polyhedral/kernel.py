"""Multiply-accumulate kernels: convolutions of any rank and matrix products as one loop nest.

    O[g, oc, o...] += I[g, ic, stride * o + dilation * k - pad ...] * W[g, oc, ic, k...]

for every group g, output channel oc, input channel ic, output position o and tap k. Depthwise
channels are groups of one channel, batch and the rows of a matrix are axes of one tap:

    MacKernel(96, 1, 1, (Axis(56, 7, 1, 1, 3, 56), Axis(56, 7, 1, 1, 3, 56)))   # depthwise, k = 7
    MacKernel(1, N, K, (Axis(M),))                                              # M x K by K x N

Coordinates, everywhere in this folder and for d axes:

    output offset   (oc, o_0 .. o_{d-1})
    input offset    (ic, x_0 .. x_{d-1}), x = stride * o + dilation * k; pad is not subtracted
    tap             (ic, k_0 .. k_{d-1}), numbered row-major over (in_channels, taps of the axes)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

Point = tuple[int, ...]
"""Integer coordinates."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One output axis that the input follows: input index = stride * o + dilation * k - pad.

    `pad` counts zeros before the first input; what lies behind the last input is zero too.
    `inputs` is None when the input is exactly as long as the accesses reach. Raises ValueError
    for counts that are not positive or a negative pad.
    """

    outputs: int
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    inputs: int | None = None

    def __post_init__(self):
        counts = (self.outputs, self.taps, self.stride, self.dilation)
        if min(counts) < 1 or self.pad < 0 or (self.inputs is not None and self.inputs < 1):
            raise ValueError(f"an axis has positive counts and no negative pad, not {self}")

    @property
    def reach(self) -> int:
        """Inputs from the first to the last that any output reads, padding counted."""
        return self.stride * (self.outputs - 1) + self.dilation * (self.taps - 1) + 1

    @property
    def length(self) -> int:
        """Inputs of the tensor along this axis, padding not counted."""
        return self.reach - self.pad if self.inputs is None else self.inputs

    def reads(self, output: int, tap: int) -> int:
        """The input offset that `output` reads at `tap`; pad is not subtracted."""
        return self.stride * output + self.dilation * tap


@dataclass(frozen=True, slots=True)
class MacKernel:
    """A multiply-accumulate kernel; see the top of this file.

    `groups` counts loops that index input, output and weight alike, `out_channels` and
    `in_channels` are counted for one group. Raises ValueError for counts that are not positive.
    """

    groups: int
    out_channels: int
    in_channels: int
    axes: tuple[Axis, ...]

    def __post_init__(self):
        if min(self.groups, self.out_channels, self.in_channels) < 1:
            raise ValueError(f"a kernel has at least one group and channel, not {self}")

    # -- counts ----------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Number of axes, d."""
        return len(self.axes)

    @property
    def positions(self) -> int:
        """Output positions: product of the axes' outputs."""
        return prod(self.output_shape)

    @property
    def taps(self) -> int:
        """Taps of one input channel: product of the axes' taps."""
        return prod(self.tap_shape)

    @property
    def depth(self) -> int:
        """Products that one output sums: in_channels * taps."""
        return self.in_channels * self.taps

    @property
    def outputs(self) -> int:
        """Outputs of all groups."""
        return self.groups * self.out_channels * self.positions

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all groups, those with padding counted."""
        return self.outputs * self.depth

    # -- shapes, without groups --------------------------------------------------------------------

    @property
    def output_shape(self) -> Point:
        """Outputs along each axis."""
        return tuple(axis.outputs for axis in self.axes)

    @property
    def tap_shape(self) -> Point:
        """Taps along each axis."""
        return tuple(axis.taps for axis in self.axes)

    @property
    def strides(self) -> Point:
        """Stride along each axis."""
        return tuple(axis.stride for axis in self.axes)

    @property
    def dilations(self) -> Point:
        """Dilation along each axis."""
        return tuple(axis.dilation for axis in self.axes)

    # -- taps and what they read -------------------------------------------------------------------

    def taps_list(self) -> tuple[Point, ...]:
        """All taps (ic, k...) in the order of their numbers."""
        return tuple(product(*map(range, (self.in_channels, *self.tap_shape))))

    def tap_index(self, tap: Sequence[int]) -> int:
        """The number of tap (ic, k...). Raises ValueError when there is no such tap."""
        index = 0
        for value, size in zip(tap, (self.in_channels, *self.tap_shape), strict=True):
            if not 0 <= value < size:
                raise ValueError(f"{tuple(tap)} is no tap of {self}")
            index = index * size + value
        return index

    def reads(self, position: Sequence[int], tap: Sequence[int]) -> Point:
        """The input offset (ic, x...) that the output at `position` reads at `tap` (ic, k...)."""
        where = zip(self.axes, position, tap[1:], strict=True)
        return (tap[0], *(axis.reads(o, k) for axis, o, k in where))

    def window(self, position: Sequence[int]) -> tuple[Point, ...]:
        """Input offsets that the output at `position` (o...) reads, in the order of taps."""
        return tuple(self.reads(position, tap) for tap in self.taps_list())
