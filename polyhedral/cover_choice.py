"""Chooses covers for a kernel and a macro: all families, by their exact numbers of steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cim_opt.polyhedral.cover import Cover, im2col, rectangle, steps
from cim_opt.polyhedral.cover_cache import lookup
from cim_opt.polyhedral.cover_packing import pack_blocks, pack_groups
from cim_opt.polyhedral.cover_structure import (
    accumulations,
    arranged,
    diagonal,
    output_period,
    output_run,
    strip_axis,
    weight_images,
)
from cim_opt.polyhedral.cover_tilings import Tiling, blocks, products
from cim_opt.polyhedral.kernel import MacKernel

MOST_IMAGES = 400
"""Covers are built until they have about this many images together, or a few at least."""


def best_cover(kernel: MacKernel, rows: int, columns: int) -> Cover:
    """The cover with the fewest steps on a macro of `rows` by `columns`; see `candidates`."""
    return candidates(kernel, rows, columns)[0]


def candidates(kernel: MacKernel, rows: int, columns: int, most: int = 16) -> list[Cover]:
    """At most `most` covers of different structure, those with few steps first.

    Each is the best of its structure: number of images and of different weights, period and run of
    its outputs, diagonal lattice, packed groups, rows in strips. Among equal steps those with few
    different weights, few images, a run, a diagonal lattice, strips and few accumulations come
    first. im2col is
    always among them. The result depends on nothing but the arguments.
    """
    return list(_candidates(kernel, rows, columns, most))


@lru_cache(maxsize=64)
def _candidates(kernel: MacKernel, rows: int, columns: int, most: int) -> tuple[Cover, ...]:
    plain = arranged(im2col(kernel, rows, columns))
    best: dict[object, tuple[tuple[float, ...], Cover]] = {}
    for cover in _covers(kernel, rows, columns):
        key, structure = rank(cover, kernel), _structure(cover)
        if structure not in best or key < best[structure][0]:
            best[structure] = (key, cover)
    ranked = [cover for _, cover in sorted(best.values(), key=lambda item: item[0])][:most]
    if plain not in ranked:
        ranked[most - 1 :] = [plain]
        ranked.sort(key=lambda cover: rank(cover, kernel))
    return tuple(ranked)


def rank(cover: Cover, kernel: MacKernel) -> tuple[float, ...]:
    """What covers are sorted by: steps, then how easily code for them runs fast."""
    return (
        steps(cover, kernel),
        weight_images(cover) / cover.packed,
        len(cover.images) / cover.packed,
        output_run(cover) is None,
        not diagonal(cover),
        sum(strip_axis(image, cover) is None for image in cover.images[:MOST_IMAGES]),
        accumulations(cover),
        cover.packed,
    )


def _structure(cover: Cover) -> object:
    period = output_period(cover)
    return (
        weight_images(cover),
        len(cover.images),
        cover.packed,
        period and period[2],
        output_run(cover) is None,
        diagonal(cover),
        strip_axis(cover.images[0], cover),
    )


def _covers(kernel: MacKernel, rows: int, columns: int) -> Iterator[Cover]:
    """Covers of all families, the promising ones."""
    tilings = products(kernel, rows, columns, most=24)
    tilings += sorted(
        lookup(kernel, columns), key=lambda tiling: tiling.steps(kernel, rows, columns)
    )[:12]
    tilings.sort(key=lambda tiling: tiling.steps(kernel, rows, columns))
    fewest = tilings[0].steps(kernel, rows, columns)
    images = 0
    for number, tiling in enumerate(tilings):
        # What takes many more steps is no candidate for anything.
        if images > MOST_IMAGES or (
            number >= 2 and tiling.steps(kernel, rows, columns) > 2 * fewest
        ):
            break
        for strip in _strips(kernel, tiling, rows):
            if images > MOST_IMAGES:
                break
            cover = arranged(tiling.built(kernel, rows, columns, strip))
            images += len(cover.images)
            yield cover
    yield from _packed(kernel, tilings, rows, columns)


def _strips(kernel: MacKernel, tiling: Tiling, rows: int) -> tuple[int | None, ...]:
    """The axes along which to cut; one is enough where nothing is cut."""
    if tiling.cuts(kernel, rows) == len(tiling.pairs):
        return (None,)
    axes = tuple(number for number, axis in enumerate(kernel.axes) if axis.taps > 1)
    return axes or (None,)


def _packed(kernel: MacKernel, tilings: list[Tiling], rows: int, columns: int) -> Iterator[Cover]:
    """Covers whose rests share steps, from tilings that could gain, and most from blocks."""

    def bound(tiling: Tiling) -> float:
        return tiling.fraction(kernel, rows, columns)

    fewest = min(tiling.steps(kernel, rows, columns) for tiling in tilings)
    gaining = sorted((tiling for tiling in tilings if bound(tiling) < fewest), key=bound)
    simple = [tiling for tiling in gaining if tiling.simple]
    others = [tiling for tiling in gaining if not tiling.simple]
    images = 0
    for tiling in simple[:5] + others[:5]:
        for strip in _strips(kernel, tiling, rows):
            if images > 2 * MOST_IMAGES:
                return
            base = tiling.built(kernel, rows, columns, strip, whole=False)
            for cover in _packings(kernel, base, rows, columns):
                images += len(cover.images)
                yield cover


def _packings(kernel: MacKernel, base: Cover, rows: int, columns: int) -> Iterator[Cover]:
    smallest = min(base.images, key=lambda image: len(image.rows))
    room = min(rows // len(smallest.rows), columns // len(smallest.columns))
    if len(base.images) > MOST_IMAGES // 8:
        return
    for copies in range(2, min(room, 8) + 1):
        if copies <= kernel.groups:
            yield arranged(pack_groups(base, kernel, copies, rows, columns))
        for axis in range(kernel.rank):
            yield arranged(pack_blocks(base, kernel, axis, copies, rows, columns))


def rectangles(kernel: MacKernel, rows: int, columns: int) -> Cover:
    """The block cover with the fewest steps; among equals the one with the fewest images."""
    covers = [rectangle(kernel, block, rows, columns) for block in blocks(kernel, columns)]
    return min(covers, key=lambda cover: (steps(cover, kernel), len(cover.images)))
