"""Runs covers on finite maps: numbers, products and steps, apart from the code that checks them."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from cim_opt.polyhedral.cover import Cover, Image, step_points
from cim_opt.polyhedral.kernel import MacKernel

Numbers = NDArray[np.int64]


def operands(kernel: MacKernel, seed: int = 0) -> tuple[Numbers, Numbers]:
    """Random input (groups, in_channels, reach...) and weights (groups, out_channels, depth)."""
    random = np.random.default_rng(seed)
    reach = tuple(axis.reach for axis in kernel.axes)
    x = random.integers(-99, 99, (kernel.groups, kernel.in_channels, *reach))
    return x, random.integers(-99, 99, (kernel.groups, kernel.out_channels, kernel.depth))


def convolved(kernel: MacKernel, x: Numbers, w: Numbers) -> Numbers:
    """The outputs (groups, out_channels, o...) tap by tap."""
    out = np.zeros((kernel.groups, kernel.out_channels, *kernel.output_shape), dtype=np.int64)
    taps = product(range(kernel.in_channels), *(range(axis.taps) for axis in kernel.axes))
    for number, (ic, *ks) in enumerate(taps):
        reads = tuple(
            slice(axis.dilation * k, axis.dilation * k + axis.stride * axis.outputs, axis.stride)
            for axis, k in zip(kernel.axes, ks, strict=True)
        )
        part = x[(slice(None), ic, *reads)]
        weights = w[:, :, number].reshape(*w.shape[:2], *(1,) * kernel.rank)
        out += weights * part[:, None]
    return out


def run(cover: Cover, kernel: MacKernel, x: Numbers, w: Numbers) -> tuple[Numbers, Numbers, int]:
    """Outputs, how many products each output had, and the steps, by applying every image."""
    out = np.zeros((kernel.groups, kernel.out_channels, *kernel.output_shape), dtype=np.int64)
    done = np.zeros_like(out)
    steps = 0
    for begin in range(0, kernel.groups, cover.packed):
        for image in cover.images:
            steps += _apply(image, cover, kernel, begin, (x, w, out, done))
    return out, done, steps


def _apply(
    image: Image,
    cover: Cover,
    kernel: MacKernel,
    begin: int,
    arrays: tuple[Numbers, Numbers, Numbers, Numbers],
) -> int:
    x, w, out, done = arrays
    rows, columns, taps = (np.array(part) for part in (image.rows, image.columns, image.taps))
    strides = np.array([axis.stride for axis in kernel.axes], dtype=np.int64)
    points = step_points(cover, image, kernel)
    groups = begin + columns[:, 0] // kernel.out_channels
    if groups.min() >= kernel.groups:
        return 0
    inputs = _gather(x, begin, rows, kernel, points * strides)
    known = groups < kernel.groups
    channel = columns[:, 0] % kernel.out_channels
    cells = w[np.minimum(groups, kernel.groups - 1), channel, taps]
    cells = np.where(taps >= 0, cells, 0)
    sums = inputs @ cells
    where = points[:, None, :] + columns[None, :, 1:]
    inside = ((where >= 0) & (where < kernel.output_shape)).all(axis=2) & known
    assert inside.any(axis=1).all(), "a step without outputs"
    step, column = np.nonzero(inside)
    place = (groups[column], channel[column], *where[step, column].T)
    np.add.at(out, place, sums[step, column])
    np.add.at(done, place, (taps >= 0).sum(axis=0)[column])
    return len(points)


def _gather(x: Numbers, begin: int, rows: Numbers, kernel: MacKernel, origins: Numbers) -> Numbers:
    where = origins[:, None, :] + rows[None, :, 1:]
    group = np.broadcast_to(begin + rows[:, 0] // kernel.in_channels, where.shape[:2])
    inside = ((where >= 0) & (where < x.shape[2:])).all(axis=2) & (group < kernel.groups)
    values = np.zeros(where.shape[:2], dtype=np.int64)
    channel = np.broadcast_to(rows[:, 0] % kernel.in_channels, where.shape[:2])
    values[inside] = x[(group[inside], channel[inside], *where[inside].T)]
    return values


def assert_exact(cover: Cover, kernel: MacKernel, steps: int) -> None:
    """The cover gives the convolution, does `depth` products an output and takes `steps` steps."""
    x, w = operands(kernel)
    out, done, taken = run(cover, kernel, x, w)
    assert np.array_equal(out, convolved(kernel, x, w))
    assert (done == kernel.depth).all()
    assert taken == steps
