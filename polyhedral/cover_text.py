"""Covers as isl maps, so that the legality check applies to them unchanged.

    { S[..] -> [group block, lattice point .., image, macro, row, column] }

with one piece for every box of taps of a column whose rows follow an affine function: a few dozen
for a cover of hundreds of cells, which is what keeps the proof short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cim_opt.polyhedral.cover import Cover, Image
from cim_opt.polyhedral.isl_text import linear_text, loop_names, statement
from cim_opt.polyhedral.kernel import MacKernel, Point


@dataclass(frozen=True, slots=True)
class _Box:
    """Taps `low` + 0 .. `sizes` - 1 of a column: their row is `row` + `steps` * (tap - low)."""

    column: int
    low: Point
    sizes: Point
    steps: Point
    row: int


def cover_text(cover: Cover, kernel: MacKernel) -> str:
    """The schedule map of a cover of `kernel`, all on macro 0."""
    taps = kernel.taps_list()
    pieces = [
        _piece(cover, kernel, number, image, box)
        for number, image in enumerate(cover.images)
        for box in _boxes(image, taps, kernel)
    ]
    return "{ " + "; ".join(pieces) + " }"


def _piece(cover: Cover, kernel: MacKernel, number: int, image: Image, box: _Box) -> str:
    channel, *offset = image.columns[box.column]
    group, oc = divmod(channel, kernel.out_channels)
    names = loop_names(kernel)
    outputs, taps = names[3 : 3 + kernel.rank], (names[2], *names[3 + kernel.rank :])
    point = [f"{o} - {b}" if b else o for o, b in zip(outputs, offset, strict=True)]
    start = box.row - sum(step * low for step, low in zip(box.steps, box.low, strict=True))
    row = linear_text(box.steps, taps, start)
    block = "g" if cover.packed == 1 else f"floor(g/{cover.packed})"
    where = [f"oc = {oc}", *_on_lattice(cover, point)]
    if cover.packed > 1:
        where.append(f"g mod {cover.packed} = {group}")
    for name, low, size in zip(taps, box.low, box.sizes, strict=True):
        where.append(f"{low} <= {name} <= {low + size - 1}")
    there = ", ".join((block, *point, str(number), "0", row, str(box.column)))
    return f"{statement(kernel)} -> [{there}] : {' and '.join(where)}"


def _on_lattice(cover: Cover, point: Sequence[str]) -> list[str]:
    """Conditions for a point to be one of the lattice, whose basis is triangular."""
    rest = [f"({text})" for text in point]
    conditions: list[str] = []
    for axis, basis in enumerate(cover.lattice):
        if basis[axis] > 1:
            conditions.append(f"{rest[axis]} mod {basis[axis]} = 0")
        times = f"floor({rest[axis]}/{basis[axis]})"
        rest = [
            f"({text} - {step}*{times})" if step and after > axis else text
            for after, (text, step) in enumerate(zip(rest, basis, strict=True))
        ]
    return conditions


def _boxes(image: Image, taps: Sequence[Point], kernel: MacKernel) -> list[_Box]:
    """All cells of an image as boxes, merged along one axis of taps after the other."""
    rank = 1 + kernel.rank
    boxes = [
        _Box(column, taps[tap], (1,) * rank, (0,) * rank, row)
        for row, cells in enumerate(image.taps)
        for column, tap in enumerate(cells)
        if tap >= 0
    ]
    for axis in range(rank):
        boxes = _merged(boxes, axis)
    return boxes


def _merged(boxes: Sequence[_Box], axis: int) -> list[_Box]:
    """Boxes of one tap along `axis` joined with their neighbours there."""
    lines: defaultdict[object, list[_Box]] = defaultdict(list)
    for box in boxes:
        others = (*box.low[:axis], *box.low[axis + 1 :])
        lines[(box.column, others, box.sizes, box.steps)].append(box)
    merged: list[_Box] = []
    for line in lines.values():
        line.sort(key=lambda box: box.low[axis])
        run = line[0]
        for box in line[1:]:
            joined = _joined(run, box, axis)
            if joined is None:
                merged.append(run)
            run = joined or box
        merged.append(run)
    return merged


def _joined(run: _Box, box: _Box, axis: int) -> _Box | None:
    """The run with one more box behind it, None when that is no affine run."""
    size = run.sizes[axis]
    if box.low[axis] != run.low[axis] + size:
        return None
    step = run.steps[axis] if size > 1 else box.row - run.row
    if box.row != run.row + step * size:
        return None
    return replace(
        run,
        sizes=(*run.sizes[:axis], size + 1, *run.sizes[axis + 1 :]),
        steps=(*run.steps[:axis], step, *run.steps[axis + 1 :]),
    )
