"""What a code generator asks of covers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cim_opt.polyhedral.cover import check, from_pairs, im2col, rectangle
from cim_opt.polyhedral.cover_choice import candidates
from cim_opt.polyhedral.cover_packing import pack_groups
from cim_opt.polyhedral.cover_search import box
from cim_opt.polyhedral.cover_structure import (
    accumulations,
    along,
    arranged,
    diagonal,
    output_period,
    output_run,
    strip_axes,
    strip_axis,
    weight_images,
)
from cim_opt.polyhedral.kernel import Axis, MacKernel, Point
from cim_opt.polyhedral.lattice import Lattice, contains, index

SEVEN = MacKernel(1, 1, 1, (Axis(8, 7), Axis(8, 7)))
COMB = from_pairs(
    SEVEN,
    ((2, 0), (0, 2)),
    [(box((2, 4)), [(x, y) for x in range(8) for y in (2, 3, 6, 7)])],
    32,
    8,
)


def test_comb() -> None:
    assert accumulations(COMB) == 2
    assert weight_images(COMB) == 1
    assert diagonal(COMB)
    assert output_period(COMB) == (
        ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)), (0, 2), 2
    )  # fmt: skip
    assert strip_axes(COMB.images[0]) == (0,)
    assert strip_axis(COMB.images[0], COMB) == 0


def test_arranged_columns_are_turn_by_turn() -> None:
    cover = arranged(COMB)
    check(cover, SEVEN, 32, 8)
    period = output_period(cover)
    assert period is not None
    first, vector, turns = period
    assert cover.images[0].columns == tuple(
        along(column, vector, turn) for turn in range(turns) for column in first
    )


def test_blocks() -> None:
    cover = rectangle(SEVEN, (2, 4), 32, 8, strip=1)
    assert accumulations(cover) == pytest.approx((8 + 8 + 4) / 8)
    assert weight_images(cover) == len(cover.images) == 3
    period = output_period(cover)
    assert period is not None
    assert set(period[0]) == {(0, *point) for point in box((2, 4))}
    assert period[2] == 1
    assert all(strip_axes(image) == (0, 1) for image in cover.images)


def test_lattice_that_is_not_diagonal() -> None:
    cover = from_pairs(SEVEN, ((1, 2), (0, 4)), [(box((2, 4)), box((8, 10)))], 99, 8)
    assert not diagonal(cover)
    assert output_period(cover) is not None


@pytest.mark.parametrize("outputs", [(0, 1, 2), (0, 1, 2, 5), (0, 2), (0, 1, 2, 4)])
def test_no_period(outputs: tuple[int, ...]) -> None:
    """An odd number, turns by different vectors, a class without outputs, unequal classes."""
    line = rectangle(MacKernel(1, 1, 1, (Axis(9, 3),)), (2,), 8, 8)
    image = replace(line.images[0], columns=tuple((0, output) for output in outputs))
    cover = replace(line, images=(image,))
    assert output_period(cover) is None
    assert (output_run(cover) is None) == (outputs != (0, 1, 2))
    if len(outputs) == 2:
        assert arranged(line) == line
        assert arranged(cover) == cover


@pytest.mark.parametrize(
    ("lattice", "outputs", "vector", "length", "order"),
    [
        (((2, 0), (0, 3)), (2, 4), (0, 1), 4, 3),
        (((1, 0), (0, 5)), (1, 8), (0, 1), 8, 5),
        (((2, 0), (0, 2)), (2, 4), (0, 1), 4, 2),
        (((2, 0), (0, 4)), (2, 4), (0, 1), 4, 4),
        (((1, 1), (0, 4)), (1, 8), (0, 1), 8, 4),
    ],
)
def test_runs(lattice: Lattice, outputs: Point, vector: Point, length: int, order: int) -> None:
    inputs = box([size + 6 for size in outputs])
    cover = from_pairs(SEVEN, lattice, [(box(outputs), inputs)], 200, 8)
    # What a class has twice is done by its first output only: the columns that are left.
    image = replace(cover.images[0], columns=tuple((0, *point) for point in box(outputs)))
    run = output_run(replace(cover, images=(image,)))
    assert run is not None
    assert (run.vector, run.length, run.order) == (vector, length, order)
    assert len(run.section) == outputs[0]


def test_a_run_may_be_of_one_output() -> None:
    run = output_run(im2col(SEVEN, 64, 8))
    assert run is not None
    assert (run.section, run.length, run.order) == (((0, 0, 0),), 1, 1)
    assert output_run(im2col(MacKernel(1, 3, 2, ()), 8, 8)) is None
    assert run.vector == (0, 1)


def test_columns_of_candidates_lie_along_their_run() -> None:
    for size in (14, 15):
        kernel = MacKernel(1, 1, 1, (Axis(size, 7), Axis(size, 7)))
        for cover in candidates(kernel, 64, 8):
            run, period = output_run(cover), output_period(cover)
            if run is None or cover.images[1:]:
                continue
            by_run = [along(c, run.vector, j) for j in range(run.length) for c in run.section]
            if period is not None:
                first, vector, turns = period
                assert len(first) * turns == len(cover.images[0].columns)
                by_turn = [along(c, vector, j) for j in range(turns) for c in first]
                assert list(cover.images[0].columns) == by_turn
            else:
                assert list(cover.images[0].columns) == by_run


def test_moved_images_have_the_same_weights() -> None:
    kernel = MacKernel(1, 1, 1, (Axis(9, 3, 1, 2),) * 2)
    cover = rectangle(kernel, (2, 2), 32, 8)
    assert len(cover.images) == 4
    assert weight_images(cover) == 1
    period = output_period(cover)
    assert period is not None and period[2] == 1 and len(period[0]) == 16


def test_packed_groups_have_their_own_weights() -> None:
    kernel = MacKernel(2, 1, 1, (Axis(9, 5),))
    cover = pack_groups(im2col(kernel, 5, 8), kernel, 2, 5, 8)
    assert weight_images(cover) == 2
    assert accumulations(cover) == 1


@pytest.mark.parametrize(
    ("rows", "axes"),
    [
        ([(0, 0), (0, 1), (1, 0), (1, 1)], (0, 1)),
        ([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)], ()),
        ([(0, 0), (2, 0), (4, 0)], (0, 1)),
        ([(0, 0), (2, 0), (3, 0)], (1,)),
        ([(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 3)], (0,)),
    ],
)
def test_strips(rows: list[Point], axes: tuple[int, ...]) -> None:
    image = replace(COMB.images[0], rows=tuple((0, *row) for row in rows))
    assert strip_axes(image) == axes


@pytest.mark.parametrize("rows", [32, 64])
@pytest.mark.parametrize(
    ("taps", "stride", "dilation"), [(5, 1, 1), (7, 1, 1), (3, 1, 2), (5, 2, 1)]
)
def test_periods_of_candidates(taps: int, stride: int, dilation: int, rows: int) -> None:
    kernel = MacKernel(2, 1, 1, (Axis(14, taps, stride, dilation),) * 2)
    seen = 0
    for cover in candidates(kernel, rows, 8):
        period = output_period(cover)
        if period is None:
            continue
        seen += 1
        first, vector, turns = period
        assert contains(cover.lattice, vector)
        assert len(first) == index(cover.lattice) * cover.packed
        every = {along(column, vector, turn) for column in first for turn in range(turns)}
        assert every == {column for image in cover.images for column in image.columns}
    assert seen
