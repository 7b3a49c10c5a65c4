"""The covers that are chosen: exact on every map, never more steps than known schedules."""

from __future__ import annotations

import time

import pytest
from cover_checks import assert_exact
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.polyhedral.cover import (
    check,
    im2col,
    steps,
    unbounded_utilisation,
)
from cim_opt.polyhedral.cover_choice import best_cover, candidates, rectangles
from cim_opt.polyhedral.cover_structure import arranged, output_period, strip_axis
from cim_opt.polyhedral.kernel import Axis, MacKernel


def square(size: int, taps: int, stride: int = 1, dilation: int = 1, rank: int = 2) -> MacKernel:
    return MacKernel(1, 1, 1, (Axis(size, taps, stride, dilation),) * rank)


# Steps of schedules that the public PolyCIM prototype finds, at 32 and 64 rows of 8 columns; from
# runs of its branch of April 2025.
PROTOTYPE = {
    "112 k3": (square(112, 3), 1568, 1568),
    "56 k3": (square(56, 3), 392, 392),
    "28 k3": (square(28, 3), 98, 98),
    "14 k3": (square(14, 3), 28, 28),
    "12 k3": (square(12, 3), 18, 18),
    "8 k3": (square(8, 3), 8, 8),
    "7 k3": (square(7, 3), 7, 7),
    "56 k5": (square(56, 5), 784, 392),
    "28 k5": (square(28, 5), 196, 98),
    "14 k5": (square(14, 5), 56, 28),
    "12 k5": (square(12, 5), 36, 18),
    "7 k5": (square(7, 5), 14, 7),
    "56 k7": (square(56, 7), 1176, 784),
    "28 k7": (square(28, 7), 294, 196),
    "14 k7": (square(14, 7), 84, 49),
    "12 k7": (square(12, 7), 54, 36),
    "7 k7": (square(7, 7), 21, 14),
    "56 k9": (square(56, 9), 1568, 784),
    "28 k9": (square(28, 9), 392, 196),
    "14 k9": (square(14, 9), 112, 84),
    "12 k9": (square(12, 9), 72, 36),
    "56 k11": (square(56, 11), 2352, 1176),
    "28 k11": (square(28, 11), 588, 294),
    "14 k11": (square(14, 11), 168, 84),
    "12 k11": (square(12, 11), 108, 54),
    "56 k13": (square(56, 13), 2744, 1568),
    "28 k13": (square(28, 13), 686, 392),
    "14 k13": (square(14, 13), 224, 112),
    "12 k13": (square(12, 13), 126, 72),
    "7 k13": (square(7, 13), 56, 28),
    "56 k51": (square(56, 51), 34496, 17248),
    "28 k3 d2": (square(28, 3, dilation=2), 98, 98),
    "28 k5 d2": (square(28, 5, dilation=2), 224, 112),
    "28 k3 d4": (square(28, 3, dilation=4), 112, 112),
    "28 k5 s2": (square(28, 5, stride=2), 294, 196),
    "56 1x11": (MacKernel(1, 1, 1, (Axis(56), Axis(56, 11))), 392, 392),
    "14 1x11": (MacKernel(1, 1, 1, (Axis(14), Axis(14, 11))), 28, 28),
    "56 k3 4 to 4": (MacKernel(1, 4, 4, (Axis(56, 3),) * 2), 3136, 1568),
    "8 k3 4 to 4": (MacKernel(1, 4, 4, (Axis(8, 3),) * 2), 64, 32),
    "14 k3 8 to 8": (MacKernel(1, 8, 8, (Axis(14, 3),) * 2), 588, 392),
    "28^3 k5": (square(28, 5, rank=3), 21952, 10976),
    "8^3 k3": (square(8, 3, rank=3), 192, 128),
    "8^3 k3 1 to 4": (MacKernel(1, 4, 1, (Axis(8, 3),) * 3), 512, 256),
}


@pytest.mark.parametrize("rows", [32, 64])
@pytest.mark.parametrize("name", PROTOTYPE)
def test_no_more_steps_than_the_prototype(name: str, rows: int) -> None:
    kernel, *known = PROTOTYPE[name]
    cover = best_cover(kernel, rows, 8)
    check(cover, kernel, rows, 8)
    assert steps(cover, kernel) <= known[rows == 64]
    assert steps(cover, kernel) <= steps(rectangles(kernel, rows, 8), kernel)


@pytest.mark.parametrize(
    ("taps", "rows", "size", "most"),
    [
        (5, 32, 112, 2688), (5, 32, 56, 728), (5, 32, 28, 196), (5, 32, 14, 56),
        (7, 32, 112, 3192), (7, 32, 56, 812), (7, 32, 28, 210), (7, 32, 14, 56),
        (7, 64, 112, 2147), (7, 64, 56, 550), (7, 64, 28, 145), (7, 64, 14, 39),
    ],
)  # fmt: skip
def test_steps_on_finite_maps(taps: int, rows: int, size: int, most: int) -> None:
    kernel = square(size, taps)
    assert steps(best_cover(kernel, rows, 8), kernel) <= most


@pytest.mark.parametrize(("size", "dilation", "most"), [(14, 1, 45), (28, 2, 175)])
def test_chunks_whose_rests_share_a_step(size: int, dilation: int, most: int) -> None:
    """Outputs no further apart than needed leave the border of a small map early."""
    kernel = square(size, 5, dilation=dilation)
    assert steps(best_cover(kernel, 32, 8), kernel) <= most


@pytest.mark.parametrize(
    ("taps", "rows", "stride", "most"),
    [
        (3, 32, 2, 551), (3, 64, 2, 392), (5, 32, 2, 841), (5, 64, 2, 626),
        (9, 32, 1, 1653), (9, 64, 1, 798), (7, 64, 2, 798),
    ],
)  # fmt: skip
def test_steps_of_one_image(taps: int, rows: int, stride: int, most: int) -> None:
    """On 56 x 56 outputs some candidate has one image and no more steps than this."""
    kernel = square(56, taps, stride)
    single = [c for c in candidates(kernel, rows, 8) if len(c.images) == 1]
    assert min(steps(cover, kernel) for cover in single) <= most


@pytest.mark.parametrize(
    ("taps", "rows", "stride", "rank", "percent"),
    [
        (3, 32, 1, 2, 28.1), (3, 64, 1, 2, 14.0),
        (5, 32, 1, 2, 48.8), (5, 64, 1, 2, 39.0),
        (7, 32, 1, 2, 76.5), (7, 64, 1, 2, 57.4),
        (9, 32, 1, 2, 63.2), (9, 64, 1, 2, 63.2),
        (11, 32, 1, 2, 72.0), (13, 64, 1, 2, 66.0),
        (3, 32, 2, 2, 21.0), (3, 64, 2, 2, 14.0),
        (5, 32, 2, 2, 39.0), (5, 64, 2, 2, 34.1),
        (7, 64, 2, 2, 47.8),
        (3, 32, 1, 3, 42.1), (3, 64, 1, 3, 42.1),
    ],
)  # fmt: skip
def test_utilisation_without_borders(
    taps: int, rows: int, stride: int, rank: int, percent: float
) -> None:
    kernel = square(56 if rank == 2 else 28, taps, stride, rank=rank)
    best = max(unbounded_utilisation(c, kernel, rows, 8) for c in candidates(kernel, rows, 8))
    assert 100 * best >= percent


@pytest.mark.parametrize(
    ("size", "taps", "rows", "fewest"),
    [
        (8, 3, 4, 3), (8, 3, 6, 2), (8, 3, 3, 4), (8, 3, 5, 3), (8, 5, 4, 4), (8, 5, 6, 3),
        (8, 5, 8, 2), (7, 3, 6, 2), (8, 7, 8, 3),
    ],
)  # fmt: skip
def test_small_lines_take_the_fewest_steps_at_all(
    size: int, taps: int, rows: int, fewest: int
) -> None:
    """On four columns; a solver has proved that fewer steps are not enough."""
    line = MacKernel(1, 1, 1, (Axis(size, taps),))
    cover = best_cover(line, rows, 4)
    check(cover, line, rows, 4)
    assert steps(cover, line) == fewest
    assert_exact(cover, line, fewest)


@st.composite
def kernels(draw: st.DrawFn) -> MacKernel:
    small = st.integers(1, 3)
    axis = st.builds(Axis, st.integers(1, 6), st.integers(1, 5), small, small)
    axes = draw(st.lists(axis, min_size=0, max_size=3).filter(_is_small))
    return MacKernel(draw(small), draw(small), draw(small), tuple(axes))


def _is_small(axes: list[Axis]) -> bool:
    return MacKernel(1, 1, 1, tuple(axes)).macs < 3000


@settings(max_examples=60, deadline=None)
@given(kernels(), st.sampled_from([4, 9, 16, 32]), st.sampled_from([1, 3, 4, 8, 16]))
def test_every_candidate_is_exact(kernel: MacKernel, rows: int, columns: int) -> None:
    found = candidates(kernel, rows, columns)
    for cover in found:
        check(cover, kernel, rows, columns)
        assert_exact(cover, kernel, steps(cover, kernel))
    taken = [steps(cover, kernel) for cover in found]
    assert taken == sorted(taken)
    assert arranged(im2col(kernel, rows, columns)) in found
    assert taken[0] <= steps(rectangles(kernel, rows, columns), kernel)


@pytest.mark.parametrize(
    ("taps", "rows", "stride"), [(5, 32, 1), (7, 32, 1), (7, 64, 1), (9, 64, 1), (5, 32, 2)]
)
def test_a_candidate_of_one_image_has_a_period_and_strips(
    taps: int, rows: int, stride: int
) -> None:
    kernel = square(56, taps, stride)
    fitting = [
        cover
        for cover in candidates(kernel, rows, 8)
        if len(cover.images) == 1 and output_period(cover)
        if strip_axis(cover.images[0], cover) is not None
    ]
    assert fitting
    assert steps(fitting[0], kernel) <= steps(rectangles(kernel, rows, 8), kernel) * 1.1


def test_choosing_is_fast() -> None:
    """Processor time of a kernel that was not asked for yet."""
    for kernel in (square(55, 7), MacKernel(32, 4, 4, (Axis(55, 3),) * 2), square(111, 3)):
        begin = time.process_time()
        best_cover(kernel, 32, 8)
        assert time.process_time() - begin < 1.5
