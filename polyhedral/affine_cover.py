"""Affine schedules as covers: one image for each use of the macro in a period.

An axis repeats after a block of outputs when the loop over blocks is time alone; otherwise, when
its outputs are spread over rows or columns as a whole, the period is the whole axis. Steps of the
cover on the kernel's outputs are exactly those that the schedule counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim_opt.polyhedral.affine_part import Part, measure, period
from cim_opt.polyhedral.affine_schedule import AffineSchedule
from cim_opt.polyhedral.coalesce import mixed_radix
from cim_opt.polyhedral.cover import Cover, Image
from cim_opt.polyhedral.kernel import Axis, MacKernel, Point
from cim_opt.polyhedral.lattice import diagonal_lattice

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Iterations:
    """Numbers of every iteration of a period, [iteration] or [iteration, coordinate]."""

    step: Integers
    row: Integers
    column: Integers
    tap: Integers
    inputs: Integers
    outputs: Integers


def to_cover(schedule: AffineSchedule, kernel: MacKernel, rows: int, columns: int) -> Cover:
    """The schedule of `kernel` on a macro of `rows` by `columns` weights as a cover.

    Raises ValueError when the schedule is not one of this kernel.
    """
    if len(schedule.parts) != kernel.rank:
        raise ValueError(f"a schedule of {len(schedule.parts)} axes for {kernel}")
    for part, axis in zip(schedule.parts, kernel.axes, strict=True):
        if part.extents != (axis.outputs, axis.taps):
            raise ValueError(f"a schedule of {part.extents} outputs and taps for {axis}")
    lattice = diagonal_lattice([period(part).spacing for part in schedule.parts])
    return Cover(lattice, _images(_iterations(schedule.parts, kernel), rows, columns))


def _iterations(parts: Sequence[Part], kernel: MacKernel) -> _Iterations:
    oc, ic = np.indices((kernel.out_channels, kernel.in_channels)).reshape(2, -1)
    zero = np.zeros_like(oc)
    every = _Iterations(zero, ic, oc, ic, ic[:, None], oc[:, None])
    for part, axis in zip(parts, kernel.axes, strict=True):
        every = _along(every, part, axis)
    return every


def _along(outside: _Iterations, part: Part, axis: Axis) -> _Iterations:
    """All pairs of iterations of the axes so far and of this one, which counts least."""
    found, repeat = measure(part), period(part)
    output, tap = np.indices(part.extents).reshape(2, -1)[:, repeat.keep]
    output = output - repeat.spacing * repeat.shift
    reads = axis.stride * output + axis.dilation * tap
    a, b = np.indices((len(outside.step), len(repeat.keep))).reshape(2, -1)
    return _Iterations(
        outside.step[a] * (int(repeat.time.max()) + 1) + repeat.time[b],
        outside.row[a] * found.rows + found.row[repeat.keep][b],
        outside.column[a] * found.columns + found.column[repeat.keep][b],
        outside.tap[a] * axis.taps + tap[b],
        np.column_stack((outside.inputs[a], reads[b])),
        np.column_stack((outside.outputs[a], output[b])),
    )


def _images(every: _Iterations, rows: int, columns: int) -> tuple[Image, ...]:
    image = _numbers(np.column_stack((every.step, every.column // columns, every.row // rows)))
    inputs, outputs = _numbers(every.inputs), _numbers(every.outputs)
    order = np.argsort(image, kind="stable")
    ends = np.flatnonzero(np.diff(image[order])) + 1
    images: list[Image] = []
    for chosen in np.split(order, ends):
        at_row, row = _merged(every.row[chosen] % rows, inputs[chosen])
        at_column, column = _merged(every.column[chosen] % columns, outputs[chosen])
        taps = np.full((len(at_row), len(at_column)), -1, dtype=np.int64)
        taps[row, column] = every.tap[chosen]
        images.append(
            Image(
                _points(every.inputs[chosen[at_row]]),
                _points(every.outputs[chosen[at_column]]),
                tuple(map(tuple, taps.tolist())),
            )
        )
    return tuple(images)


def _numbers(points: Integers) -> Integers:
    """One number for each point [point, coordinate], in lexicographic order of points."""
    low = points.min(axis=0)
    return mixed_radix(points - low, [int(size) + 1 for size in points.max(axis=0) - low])


def _merged(numbers: Integers, points: Integers) -> tuple[Integers, Integers]:
    """Where each point is first, in the order of lowest numbers, and every entry's place there.

    Rows that read one input become one: no column uses both, for the weight would be the same one.
    """
    order = np.argsort(numbers, kind="stable")
    _, first, place = np.unique(points[order], return_index=True, return_inverse=True)
    ranks = np.empty_like(first)
    ranks[np.argsort(first)] = np.arange(len(first))
    where = np.empty_like(order)
    where[order] = ranks[place]
    return order[np.sort(first)], where


def _points(array: Integers) -> tuple[Point, ...]:
    return tuple(map(tuple, array.tolist()))
