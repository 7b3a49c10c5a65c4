"""Covers: images of weights that a macro applies at every point of a lattice of output positions.

At a lattice point l an image reads the inputs stride * l + row and accumulates into the outputs
l + column; the cell where they meet holds the weight of one tap or zero. A cover does every
product of a kernel exactly once. Its weights do not depend on l: one image serves all positions.

Rectangles of outputs, im2col, channels side by side on the diagonal and kernels cut into chunks
are all covers; `cover_families` makes them, `cover_cache` looks solved ones up.

Several groups may share an image (`packed`): with P of them, an offset's channel runs over the
channels of P groups, group by group (oc = g * out_channels + channel of the group), and a step
serves the groups n * P + g. The tap number is that of the group's own weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import gcd

import numpy as np

from cim_opt.errors import UserError
from cim_opt.polyhedral import lattice as lattices
from cim_opt.polyhedral.kernel import MacKernel, Point
from cim_opt.polyhedral.lattice import Integers, Lattice


@dataclass(frozen=True, slots=True)
class Image:
    """One set of weights for a macro: what each row reads and each column accumulates.

    `rows` are input offsets (ic, x...) relative to stride * l, `columns` output offsets (oc, o...)
    relative to l, and `taps[row][column]` is a tap's number or -1 where the cell is zero.
    """

    rows: tuple[Point, ...]
    columns: tuple[Point, ...]
    taps: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Cover:
    """Images that a macro applies at every point of a lattice of output positions.

    `lattice` holds the rows of a basis in Hermite normal form over the axes, without channels;
    `packed` counts the groups that share an image.
    """

    lattice: Lattice
    images: tuple[Image, ...]
    packed: int = 1


# -- Making ---------------------------------------------------------------------------------------


def image_with(rows: Sequence[Point], columns: Sequence[Point], taps: Integers) -> Image:
    """The image with these cells, without the rows and columns that are zero throughout.

    Raises ValueError when no cell holds a tap.
    """
    used_rows: list[int] = np.flatnonzero((taps >= 0).any(axis=1)).tolist()
    used_columns: list[int] = np.flatnonzero((taps >= 0).any(axis=0)).tolist()
    if not used_rows:
        raise ValueError("an image without weights")
    return Image(
        tuple(rows[row] for row in used_rows),
        tuple(columns[column] for column in used_columns),
        tuple(map(tuple, taps[np.ix_(used_rows, used_columns)].tolist())),
    )


def taps_between(
    kernel: MacKernel, rows: Sequence[Point], columns: Sequence[Point], *, packed: int = 1
) -> Integers:
    """For each input and output offset (rows x columns) the tap that joins them, or -1."""
    inputs, outputs = _array(rows), _array(columns)
    groups = inputs[:, None, 0] // kernel.in_channels
    fits = groups == outputs[None, :, 0] // kernel.out_channels
    fits &= (groups >= 0) & (groups < packed)
    tap = np.broadcast_to(inputs[:, None, 0] % kernel.in_channels, fits.shape)
    for number, axis in enumerate(kernel.axes, start=1):
        distance = inputs[:, None, number] - axis.stride * outputs[None, :, number]
        fits &= (distance % axis.dilation == 0) & (distance >= 0)
        fits &= distance < axis.dilation * axis.taps
        tap = tap * axis.taps + distance // axis.dilation
    return np.where(fits, tap, -1)


def _array(points: Sequence[Point]) -> Integers:
    return np.array(points, dtype=np.int64)


def im2col(kernel: MacKernel, rows: int, columns: int) -> Cover:
    """One position a step: rows hold its window, columns output channels."""
    return rectangle(kernel, (1,) * kernel.rank, rows, columns)


def block_spread(kernel: MacKernel, block: Point) -> Point:
    """Distance of a block's outputs along each axis: those of one residue of the dilation."""
    return tuple(
        axis.dilation // gcd(axis.dilation, axis.stride) if size > 1 and axis.taps > 1 else 1
        for axis, size in zip(kernel.axes, block, strict=True)
    )


def rectangle(
    kernel: MacKernel,
    block: Point,
    rows: int,
    columns: int,
    *,
    strip: int | None = None,
    whole: bool = True,
    even: bool = False,
) -> Cover:
    """Blocks of outputs side by side; `strip`, `whole` and `even` as in `from_pairs`.

    Along an axis with dilation a block holds the outputs of one residue, which share inputs.
    Raises ValueError when the block has more outputs than the macro columns.
    """
    spread = block_spread(kernel, block)
    periods = [size * step for size, step in zip(block, spread, strict=True)]
    outputs = [range(0, period, step) for period, step in zip(periods, spread, strict=True)]
    inputs = [
        sorted({axis.reads(o, k) for o in values for k in range(axis.taps)})
        for axis, values in zip(kernel.axes, outputs, strict=True)
    ]
    return from_pairs(
        kernel,
        lattices.diagonal_lattice(periods),
        [(list(product(*outputs)), list(product(*inputs)))],
        rows,
        columns,
        strip=strip,
        whole=whole,
        even=even,
        residues=[range(size) for size in spread],
    )


def from_pairs(
    kernel: MacKernel,
    lattice: Lattice,
    pairs: Sequence[tuple[Sequence[Point], Sequence[Point]]],
    rows: int,
    columns: int,
    *,
    strip: int | None = None,
    whole: bool = True,
    even: bool = False,
    residues: Sequence[Iterable[int]] | None = None,
) -> Cover:
    """The cover whose images join output offsets with input offsets, both without channels.

    Pairs whose inputs do not fit the rows are cut into several images, along the axis `strip` (the
    first by default) and, if `whole`, on whole lines across it where that takes no more images;
    otherwise all images but the last are full. If `even`, the largest image has as few rows as can
    be with as many images. As many output channels share an image as the columns allow; images are
    repeated for the others, and moved to every point of `residues`
    (values along each axis). A product that several cells could do is done by the first. Raises
    ValueError when the outputs do not fit the columns.
    """
    widest = max(len(outputs) for outputs, _ in pairs)
    if widest > columns:
        raise ValueError(f"{widest} outputs on {columns} columns")
    share = min(kernel.out_channels, columns // widest)
    plain = replace(kernel, groups=1, out_channels=1, in_channels=1)
    done = np.zeros(lattices.index(lattice) * kernel.taps, dtype=np.bool_)
    images: list[Image] = []
    for outputs, unordered in pairs:
        inputs = sorted(unordered, key=lambda point: _first_axis(point, strip))
        cells = taps_between(plain, [(0, *e) for e in inputs], [(0, *b) for b in outputs])
        _keep_first(cells, lattices.classes(lattice, _array(outputs)), kernel.taps, done)
        cuts = partial(_even_cuts if even else _cuts, rows, strip, whole)
        images += _cut(kernel, inputs, outputs, cells, share, cuts)
    moved_images = tuple(
        moved(kernel, image, by)
        for image in images
        for by in product(*(residues or [(0,)] * kernel.rank))
    )
    return Cover(lattice, _for_all_channels(kernel, moved_images, share))


def _first_axis(point: Point, strip: int | None) -> Point:
    if strip is None:
        return point
    return (point[strip], *point[:strip], *point[strip + 1 :])


def _keep_first(
    cells: Integers, kinds: Integers, taps: int, done: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> None:
    """Clears the cells whose product is done already, and notes those that are kept."""
    keys = np.where(cells >= 0, kinds[None, :] * taps + cells, -1).ravel()
    kept = np.zeros(keys.size, dtype=np.bool_)
    kept[np.unique(keys, return_index=True)[1]] = True
    kept &= (keys >= 0) & ~done[keys]
    done[keys[kept]] = True
    cells[~kept.reshape(cells.shape)] = -1


def _cut(
    kernel: MacKernel,
    inputs: Sequence[Point],
    outputs: Sequence[Point],
    cells: Integers,
    share: int,
    cuts: Callable[[Sequence[Point]], Iterable[tuple[int, int]]],
) -> Iterator[Image]:
    """Images of the rows between cuts, all input channels, the first `share` output channels."""
    used: list[int] = np.flatnonzero((cells >= 0).any(axis=1)).tolist()
    channels = range(kernel.in_channels)
    deep = [(ic, *inputs[number]) for number in used for ic in channels]
    steps = kernel.taps * np.arange(kernel.in_channels)[None, :, None]
    kept = cells[used][:, None, :]
    taps = np.where(kept >= 0, kept + steps, -1).reshape(len(deep), len(outputs))
    wide = [(oc, *output) for oc in range(share) for output in outputs]
    for begin, end in cuts(deep):
        yield image_with(deep[begin:end], wide, np.tile(taps[begin:end], (1, share)))


def _cuts(
    limit: int, strip: int | None, whole: bool, rows: Sequence[Point]
) -> list[tuple[int, int]]:
    """Begin and end of each chunk: if `whole`, of whole lines where that takes no more chunks."""
    count = len(rows)
    plain = [(begin, min(begin + limit, count)) for begin in range(0, count, limit)]
    if not whole or not rows or len(rows[0]) == 1:
        return plain
    lines = [row[(strip or 0) + 1] for row in rows]
    edges = [at for at in range(1, count) if lines[at] != lines[at - 1]] + [count]
    chunks: list[tuple[int, int]] = []
    begin = 0
    while begin < count:
        end = max((edge for edge in edges if begin < edge <= begin + limit), default=0)
        if not end or len(chunks) == len(plain):
            return plain
        chunks.append((begin, end))
        begin = end
    return chunks


def _even_cuts(
    limit: int, strip: int | None, whole: bool, rows: Sequence[Point]
) -> list[tuple[int, int]]:
    """The same number of chunks, with the smallest limit that gives no more."""
    chunks = _cuts(limit, strip, whole, rows)
    low, high = -(-len(rows) // max(1, len(chunks))), limit
    while low < high:
        middle = (low + high) // 2
        fewer = _cuts(middle, strip, whole, rows)
        if len(fewer) > len(chunks):
            low = middle + 1
        else:
            high, chunks = middle, fewer
    return chunks


def _for_all_channels(kernel: MacKernel, images: Sequence[Image], share: int) -> tuple[Image, ...]:
    """`images` for the first `share` output channels, repeated for all of them."""
    result: list[Image] = []
    for begin in range(0, kernel.out_channels, share):
        left = min(share, kernel.out_channels - begin)
        for image in images:
            whole = image if left == share else _first_channels(image, left)
            columns = tuple((oc + begin, *where) for oc, *where in whole.columns)
            result.append(Image(whole.rows, columns, whole.taps))
    return tuple(result)


def _first_channels(image: Image, count: int) -> Image:
    kept = [number for number, column in enumerate(image.columns) if column[0] < count]
    taps = np.array(image.taps, dtype=np.int64)[:, kept]
    return image_with(image.rows, [image.columns[number] for number in kept], taps)


def moved(kernel: MacKernel, image: Image, by: Point) -> Image:
    """The image with its outputs moved by `by` and its inputs with them; same weights."""
    if not any(by):
        return image
    far = tuple(stride * step for stride, step in zip(kernel.strides, by, strict=True))
    return Image(_shift(image.rows, far), _shift(image.columns, by), image.taps)


def _shift(points: Sequence[Point], by: Point) -> tuple[Point, ...]:
    return tuple(
        (channel, *(a + b for a, b in zip(where, by, strict=True))) for channel, *where in points
    )


# -- Checking -------------------------------------------------------------------------------------


def check(
    cover: Cover, kernel: MacKernel, rows: int | None = None, columns: int | None = None
) -> None:
    """Raises UserError unless the cover does every product of the kernel exactly once.

    With `rows` and `columns` the images also have to fit the macro. Every position is a class of
    the lattice times a step, so the check is finite and holds for every size of the output.
    """
    if len(cover.lattice) != kernel.rank:
        raise UserError(
            f"a lattice of rank {len(cover.lattice)}", f"the kernel has {kernel.rank} axes"
        )
    if cover.packed < 1:
        raise UserError(f"{cover.packed} groups packed", "at least one shares an image")
    try:
        size = lattices.index(cover.lattice)
    except ValueError as error:
        raise UserError(str(error), "its rows are upper triangular") from error
    channels = cover.packed * kernel.out_channels
    counts = np.zeros((channels, size, kernel.depth), dtype=np.int64)
    for number, image in enumerate(cover.images):
        _check_shape(number, image, rows, columns)
        cells = _checked_cells(number, image, kernel, cover.packed)
        where, column = np.nonzero(cells >= 0)
        outputs = _array(image.columns)
        kinds = lattices.classes(cover.lattice, outputs[:, 1:])
        np.add.at(counts, (outputs[column, 0], kinds[column], cells[where, column]), 1)
    _check_counts(counts, cover, kernel)


def _check_shape(number: int, image: Image, rows: int | None, columns: int | None) -> None:
    for what, points, limit in (("rows", image.rows, rows), ("columns", image.columns, columns)):
        if limit is not None and len(points) > limit:
            raise UserError(f"image {number} has {len(points)} {what}", f"the macro has {limit}")
        if len(set(points)) != len(points):
            raise UserError(f"image {number} has two equal {what}", "each offset has one of them")


def _checked_cells(number: int, image: Image, kernel: MacKernel, packed: int) -> Integers:
    cells = np.array(image.taps, dtype=np.int64)
    if cells.shape != (len(image.rows), len(image.columns)):
        raise UserError(
            f"image {number} has cells of shape {cells.shape}",
            f"it has {len(image.rows)} rows and {len(image.columns)} columns",
        )
    expected = taps_between(kernel, image.rows, image.columns, packed=packed)
    wrong = np.argwhere((cells != -1) & (cells != expected))
    if wrong.size:
        row, column = wrong[0]
        raise UserError(
            f"image {number} has tap {cells[row, column]} between input {image.rows[row]} and "
            f"output {image.columns[column]}",
            f"the tap there is {expected[row, column]}"
            if expected[row, column] >= 0
            else "no tap joins them",
        )
    return cells


def _check_counts(counts: Integers, cover: Cover, kernel: MacKernel) -> None:
    wrong = np.argwhere(counts != 1)
    if not wrong.size:
        return
    oc, kind, tap = (int(value) for value in wrong[0])
    where = lattices.representatives(cover.lattice)[kind]
    times = int(counts[oc, kind, tap])
    done = "never" if times == 0 else f"{times} times"
    raise UserError(
        f"tap {kernel.taps_list()[tap]} of outputs {where} modulo the lattice, channel {oc}, is "
        f"done {done}",
        "each product is done once",
    )


# -- Counting -------------------------------------------------------------------------------------


def steps(cover: Cover, kernel: MacKernel) -> int:
    """Macro steps for all groups on the kernel's finite outputs; steps without outputs skipped.

    Raises ValueError when the lattice has no basis in Hermite normal form.
    """
    lattices.pivots(cover.lattice)
    total = 0
    for (positions, first), times in _image_kinds(cover, kernel).items():
        blocks = -(-(kernel.groups - first) // cover.packed)
        if blocks > 0:
            points = lattices.count_touching(cover.lattice, positions, kernel.output_shape)
            total += times * blocks * points
    return total


def _image_kinds(cover: Cover, kernel: MacKernel) -> Counter[tuple[tuple[Point, ...], int]]:
    """How many images touch which positions, and which is their first group."""
    return Counter(
        (
            tuple(sorted({column[1:] for column in image.columns})),
            min(column[0] for column in image.columns) // kernel.out_channels,
        )
        for image in cover.images
    )


def step_points(cover: Cover, image: Image, kernel: MacKernel) -> Integers:
    """The lattice points (n x d, in lexicographic order) at which the image meets an output."""
    if not cover.lattice:
        return np.zeros((1, 0), dtype=np.int64)
    positions = [column[1:] for column in image.columns]
    low, mask = lattices.touching(cover.lattice, positions, kernel.output_shape)
    points = np.argwhere(mask) + np.array(low, dtype=np.int64)
    return points[lattices.classes(cover.lattice, points) == 0]


def utilisation(cover: Cover, kernel: MacKernel, rows: int, columns: int) -> float:
    """Products a step over the macro's cells, on the kernel's finite outputs."""
    return kernel.macs / (steps(cover, kernel) * rows * columns)


def unbounded_utilisation(cover: Cover, kernel: MacKernel, rows: int, columns: int) -> float:
    """Products a step over the macro's cells when the outputs have no border."""
    a_period = lattices.index(cover.lattice) * cover.packed * kernel.out_channels * kernel.depth
    return a_period / (len(cover.images) * rows * columns)
