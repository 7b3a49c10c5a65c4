"""Covers: what `check` refuses, how steps are counted, and the packing of rests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cover_checks import assert_exact

from cim_opt.errors import UserError
from cim_opt.polyhedral.cover import (
    Cover,
    Image,
    check,
    from_pairs,
    im2col,
    rectangle,
    step_points,
    steps,
    unbounded_utilisation,
    utilisation,
)
from cim_opt.polyhedral.cover_packing import (
    im2col_groups,
    merged,
    pack_blocks,
    pack_groups,
    packed_images,
)
from cim_opt.polyhedral.kernel import Axis, MacKernel


def square(size: int, taps: int, stride: int = 1, dilation: int = 1, groups: int = 1) -> MacKernel:
    """A depthwise kernel with two equal axes."""
    return MacKernel(groups, 1, 1, (Axis(size, taps, stride, dilation),) * 2)


LINE = MacKernel(1, 1, 1, (Axis(8, 3),))
GOOD = rectangle(LINE, (2,), 4, 4)


# -- check ----------------------------------------------------------------------------------------


def with_image(**changes: object) -> Cover:
    return replace(GOOD, images=(replace(GOOD.images[0], **changes),))  # pyright: ignore


@pytest.mark.parametrize(
    ("cover", "message"),
    [
        (replace(GOOD, lattice=((1,),)), r"tap \(0, 0\) of outputs \(0,\).* is done 2 times"),
        (replace(GOOD, lattice=((3,),)), r"tap \(0, 0\) of outputs \(2,\).* is done never"),
        (replace(GOOD, lattice=((2, 0), (0, 1))), "a lattice of rank 2; the kernel has 1 axes"),
        (replace(GOOD, images=GOOD.images * 2), "is done 2 times; each product is done once"),
        (replace(GOOD, images=()), "is done never"),
        (replace(GOOD, lattice=((-2,),)), "no lattice basis .*; its rows are upper triangular"),
        (replace(GOOD, packed=0), "0 groups packed"),
        (
            with_image(taps=((0, -1), (0, 0), (2, 1), (-1, 2))),
            "has tap 0 between input .*; the tap",
        ),
        (with_image(taps=((0, 0), (1, 0), (2, 1), (-1, 2))), "no tap joins them"),
        (with_image(taps=((0, -1), (1, 0), (2, 1), (-1, -1))), r"tap \(0, 2\).* is done never"),
        (with_image(taps=((0, -1), (1, 0), (2, 1))), r"has cells of shape \(3, 2\); it has 4 rows"),
        (with_image(rows=((0, 0), (0, 1), (0, 2), (0, 2))), "two equal rows"),
        (with_image(columns=((0, 0), (0, 0))), "two equal columns"),
        (with_image(columns=((0, 0), (1, 1))), "no tap joins them"),
    ],
)
def test_check_refuses(cover: Cover, message: str) -> None:
    check(GOOD, LINE, 4, 4)
    with pytest.raises(UserError) as error:
        check(cover, LINE)
    assert error.match(message) or pytest.fail(error.value.message())


def test_check_refuses_what_does_not_fit_the_macro() -> None:
    with pytest.raises(UserError, match="image 0 has 4 rows"):
        check(GOOD, LINE, 3, 4)
    with pytest.raises(UserError, match="image 0 has 2 columns"):
        check(GOOD, LINE, 4, 1)


def test_a_block_wider_than_the_macro_is_refused() -> None:
    with pytest.raises(ValueError, match="9 outputs on 8 columns"):
        rectangle(square(9, 3), (3, 3), 32, 8)


def test_no_lattice() -> None:
    with pytest.raises(ValueError, match="no lattice basis"):
        steps(replace(GOOD, lattice=((0,),)), LINE)


# -- steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "block", "rows", "expected"),
    [
        (square(112, 3), (2, 4), 32, 1568),
        (square(56, 7), (2, 4), 32, 1176),
        (square(56, 7), (2, 4), 64, 784),
        (square(28, 5, dilation=2), (2, 4), 32, 224),
        (square(28, 3, dilation=4), (1, 7), 32, 112),
        (MacKernel(1, 4, 4, (Axis(56, 3), Axis(56, 3))), (1, 2), 32, 3136),
        (MacKernel(1, 8, 8, (Axis(14, 3), Axis(14, 3))), (1, 1), 32, 588),
        (MacKernel(1, 1, 1, (Axis(8, 3),) * 3), (2, 2, 2), 64, 64),
        (MacKernel(1, 512, 512, (Axis(7),)), (1,), 32, 7 * 16 * 64),
        (MacKernel(1, 10, 100, ()), (), 32, 8),
        (MacKernel(3, 2, 1, (Axis(5, 3),)), (4,), 32, 6),
    ],
)
def test_steps_of_blocks(
    kernel: MacKernel, block: tuple[int, ...], rows: int, expected: int
) -> None:
    cover = rectangle(kernel, block, rows, 8)
    check(cover, kernel, rows, 8)
    assert steps(cover, kernel) == expected
    assert utilisation(cover, kernel, rows, 8) == kernel.macs / (expected * rows * 8)


@pytest.mark.parametrize(("taps", "rows"), [(3, 32), (5, 32), (7, 32), (7, 64), (13, 64)])
def test_im2col(taps: int, rows: int) -> None:
    kernel = square(12, taps, groups=3)
    cover = im2col(kernel, rows, 8)
    check(cover, kernel, rows, 8)
    assert steps(cover, kernel) == 3 * 144 * -(-taps * taps // rows)


def test_rows_are_cut_on_whole_lines() -> None:
    cover = rectangle(square(8, 7), (2, 4), 32, 8, strip=1)
    assert [len(image.rows) for image in cover.images] == [32, 32, 16]
    cover = rectangle(square(8, 7), (2, 4), 32, 8, strip=0)
    assert [len(image.rows) for image in cover.images] == [30, 30, 20]
    cover = rectangle(square(8, 7), (2, 4), 32, 8, strip=0, whole=False)
    assert [len(image.rows) for image in cover.images] == [32, 32, 16]


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("lattice", [((2, 0), (0, 2)), ((1, 2), (0, 4)), ((2, 1), (0, 2))])
def test_steps_on_every_size(size: int, lattice: tuple[tuple[int, ...], ...]) -> None:
    kernel = square(size, 7)
    outputs = [(a, b) for a in range(2) for b in range(4)]
    inputs = [(x, y) for x in range(8) for y in range(10)]
    cover = from_pairs(kernel, lattice, [(outputs, inputs)], 32, 8)
    check(cover, kernel, 32, 8)
    assert_exact(cover, kernel, steps(cover, kernel))


def test_step_points_are_in_the_lattice_and_in_order() -> None:
    kernel = square(5, 3)
    cover = rectangle(kernel, (2, 4), 32, 8)
    points = step_points(cover, cover.images[0], kernel)
    assert points.tolist() == [[0, 0], [0, 4], [2, 0], [2, 4], [4, 0], [4, 4]]


# -- packing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taps", "rows", "copies", "images", "share"),
    [(7, 32, 2, 5, 0.6125), (7, 64, 2, 3, 0.5104), (11, 32, 4, 21, 0.7202)],
)
def test_rests_of_blocks_share_a_step(
    taps: int, rows: int, copies: int, images: int, share: float
) -> None:
    kernel = square(16, taps)
    block = rectangle(kernel, (2, 4), rows, 8, strip=1, whole=False)
    cover = pack_blocks(block, kernel, 0, copies, rows, 8)
    check(cover, kernel, rows, 8)
    assert len(cover.images) == images
    cells = sum((np.array(image.taps) >= 0).sum() for image in cover.images)
    assert cells == copies * 8 * taps**2  # 784 for two blocks of k = 7
    assert unbounded_utilisation(cover, kernel, rows, 8) == pytest.approx(share, abs=1e-4)
    assert steps(cover, kernel) == images * 32 // copies
    assert_exact(cover, kernel, steps(cover, kernel))


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 7])
def test_groups_share_images(groups: int) -> None:
    kernel = square(6, 3, groups=groups)
    cover = im2col_groups(kernel, 32, 8)
    check(cover, kernel, 32, 8)
    assert len(cover.images) == 1  # up to three windows of nine inputs
    assert_exact(cover, kernel, steps(cover, kernel))
    assert steps(cover, kernel) == 36 * -(-groups // 3)


def test_groups_of_several_channels_share_images() -> None:
    kernel = MacKernel(3, 2, 3, (Axis(4, 2), Axis(3, 2, 2)))
    cover = pack_groups(im2col(kernel, 32, 8), kernel, 2, 32, 8)
    check(cover, kernel, 32, 8)
    assert len(cover.images) == 1
    assert_exact(cover, kernel, 24)
    with pytest.raises(ValueError, match="2 groups are packed already"):
        pack_groups(cover, kernel, 2, 32, 8)


def test_equal_columns_never_share_an_image() -> None:
    image = Image(((0, 0),), ((0, 0),), ((0,),))
    assert packed_images([image, replace(image, rows=((0, 1),), taps=((1,),))], 8, 8) == (
        image,
        replace(image, rows=((0, 1),), taps=((1,),)),
    )


def test_merged_images_share_rows() -> None:
    one = Image(((0, 0), (0, 1)), ((0, 0),), ((0,), (1,)))
    other = Image(((0, 1), (0, 2)), ((0, 1),), ((0,), (1,)))
    assert merged([one, other]) == Image(
        ((0, 0), (0, 1), (0, 2)), ((0, 0), (0, 1)), ((0, -1), (1, 0), (-1, 1))
    )


def test_even_images_have_as_few_rows_as_their_number_allows() -> None:
    kernel = MacKernel(1, 1, 1, (Axis(56, 7, pad=3, inputs=56),) * 2)
    full = rectangle(kernel, (2, 4), 64, 8, strip=1)
    even = rectangle(kernel, (2, 4), 64, 8, strip=1, even=True)
    assert [len(image.rows) for image in full.images] == [64, 16]
    assert [len(image.rows) for image in even.images] == [40, 40]
    assert_exact(even, kernel, 784)
