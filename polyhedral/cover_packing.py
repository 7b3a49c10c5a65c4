"""Packs images that leave rows and columns free into one, side by side on the diagonal.

The rest of a block that is cut into images meets few outputs; the rests of several blocks, of
several residues or output channels, or of several groups (depthwise channels) share a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cim_opt.polyhedral.cover import Cover, Image, im2col, moved
from cim_opt.polyhedral.kernel import MacKernel, Point
from cim_opt.polyhedral.lattice import hermite


def pack_blocks(
    cover: Cover, kernel: MacKernel, axis: int, copies: int, rows: int, columns: int
) -> Cover:
    """The cover over `copies` neighbouring lattice points along a basis row, images packed."""
    basis = [list(row) for row in cover.lattice]
    step = cover.lattice[axis]
    basis[axis] = [copies * value for value in step]
    images = [
        moved(kernel, image, tuple(number * value for value in step))
        for number in range(copies)
        for image in cover.images
    ]
    return Cover(hermite(basis), packed_images(images, rows, columns), cover.packed)


def pack_groups(cover: Cover, kernel: MacKernel, copies: int, rows: int, columns: int) -> Cover:
    """The cover for `copies` groups at once, images of different groups packed.

    Raises ValueError when the cover has groups packed already.
    """
    if cover.packed != 1:
        raise ValueError(f"{cover.packed} groups are packed already")
    images = [_of_group(kernel, image, group) for group in range(copies) for image in cover.images]
    return Cover(cover.lattice, packed_images(images, rows, columns), copies)


def im2col_groups(kernel: MacKernel, rows: int, columns: int) -> Cover:
    """One position a step, for as many groups at once as fit; im2col when only one does."""
    fit = min(rows // kernel.depth, columns // kernel.out_channels, kernel.groups)
    return pack_groups(im2col(kernel, rows, columns), kernel, max(1, fit), rows, columns)


def _of_group(kernel: MacKernel, image: Image, group: int) -> Image:
    inputs, outputs = group * kernel.in_channels, group * kernel.out_channels
    return Image(
        tuple((ic + inputs, *where) for ic, *where in image.rows),
        tuple((oc + outputs, *where) for oc, *where in image.columns),
        image.taps,
    )


def packed_images(images: Iterable[Image], rows: int, columns: int) -> tuple[Image, ...]:
    """First fit, tallest image first: images share one while their rows and columns fit."""
    order = sorted(images, key=lambda image: (-len(image.rows), -len(image.columns)))
    bins: list[_Bin] = []
    for image in order:
        place = next((b for b in bins if b.fits(image, rows, columns)), None)
        if place is None:
            place = _Bin([], set(), 0)
            bins.append(place)
        place.add(image)
    return tuple(merged(place.images) for place in bins)


@dataclass(slots=True)
class _Bin:
    images: list[Image]
    rows: set[Point]
    columns: int

    def fits(self, image: Image, rows: int, columns: int) -> bool:
        """Whether there is room. Columns never coincide: each output is of one image's share."""
        if self.columns + len(image.columns) > columns:
            return False
        known = {column for other in self.images for column in other.columns}
        if not known.isdisjoint(image.columns):
            return False
        return len(self.rows.union(image.rows)) <= rows

    def add(self, image: Image) -> None:
        self.images.append(image)
        self.rows.update(image.rows)
        self.columns += len(image.columns)


def merged(images: Sequence[Image]) -> Image:
    """One image that does what `images` do; inputs that several read are one row.

    The images have no column in common.
    """
    if len(images) == 1:
        return images[0]
    rows = tuple(dict.fromkeys(row for image in images for row in image.rows))
    numbers = {row: number for number, row in enumerate(rows)}
    columns = tuple(column for image in images for column in image.columns)
    taps = np.full((len(rows), len(columns)), -1, dtype=np.int64)
    begin = 0
    for image in images:
        places = [numbers[row] for row in image.rows]
        taps[places, begin : begin + len(image.columns)] = image.taps
        begin += len(image.columns)
    return Image(rows, columns, tuple(map(tuple, taps.tolist())))
