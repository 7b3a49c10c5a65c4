"""Covers as attributes of `poly.kernel`, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseIntElementsAttr, TensorType, i32

from cim_opt.dialects.poly import CoverAttr, ImageAttr
from cim_opt.mapping.cim_search import Tiled, tile_of
from cim_opt.polyhedral.cover import Cover, Image, taps_between
from cim_opt.polyhedral.kernel import MacKernel, Point


def cover_attribute(tiled: Tiled, kernel: MacKernel) -> CoverAttr:
    """The cover of a tile of a kernel as an attribute."""
    tile = tile_of(kernel, tiled.channels)
    cover = tiled.cover
    images = [_image_attribute(image, tile, cover.packed) for image in cover.images]
    channels = (*tiled.channels, cover.packed)
    return CoverAttr(_table(cover.lattice), _table([channels]), ArrayAttr(images))


def cover_of(attr: CoverAttr, kernel: MacKernel) -> Tiled:
    """The cover that an attribute describes, for a kernel."""
    [(outputs, inputs, packed)] = _points(attr.channels)
    tile = tile_of(kernel, (outputs, inputs))
    images = tuple(_image(image, tile, packed) for image in attr.images)
    return Tiled(Cover(_points(attr.lattice), images, packed), (outputs, inputs))


def _image_attribute(image: Image, tile: MacKernel, packed: int) -> ImageAttr:
    meet = taps_between(tile, image.rows, image.columns, packed=packed)
    dropped = np.argwhere((meet >= 0) & (np.array(image.taps) < 0))
    pairs = [tuple(pair) for pair in dropped.tolist()]
    return ImageAttr(_table(image.rows), _table(image.columns), _table(pairs, 2))


def _image(attr: ImageAttr, tile: MacKernel, packed: int) -> Image:
    rows, columns = _points(attr.rows), _points(attr.columns)
    taps = taps_between(tile, rows, columns, packed=packed)
    for row, column in _points(attr.dropped):
        taps[row, column] = -1
    return Image(rows, columns, tuple(map(tuple, taps.tolist())))


def _table(points: Sequence[Point], width: int = 0) -> DenseIntElementsAttr:
    width = len(points[0]) if points else width
    return DenseIntElementsAttr.from_list(
        TensorType(i32, [len(points), width]), [value for point in points for value in point]
    )


def _points(attr: DenseIntElementsAttr) -> tuple[Point, ...]:
    count, width = attr.type.get_shape()
    values = [int(value) for value in attr.get_values()]
    return tuple(tuple(values[at * width : (at + 1) * width]) for at in range(count))
