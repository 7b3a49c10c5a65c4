"""Covers as isl maps: legal by the same check, and refused as soon as a cell is wrong."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.errors import UserError
from cim_opt.polyhedral.affine_cover import to_cover
from cim_opt.polyhedral.affine_search import search
from cim_opt.polyhedral.cover import Cover, Image, from_pairs, im2col, rectangle
from cim_opt.polyhedral.cover_text import cover_text
from cim_opt.polyhedral.isl_text import kernel_text
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.legality import check_schedule, is_legal

SEVEN = MacKernel(96, 1, 1, (Axis(56, 7),) * 2)
FIVE = MacKernel(96, 1, 1, (Axis(28, 5),) * 2)


def _sliding() -> dict[str, tuple[MacKernel, Cover, int]]:
    """Covers that are no rectangles, written out, with the rows they need."""
    seven = from_pairs(
        SEVEN,
        ((2, 0), (0, 2)),
        [(list(product(range(2), range(4))), list(product(range(8), (2, 3, 6, 7))))],
        32,
        8,
    )
    skewed = from_pairs(
        SEVEN,
        ((1, 2), (0, 6)),
        [(list(product(range(4), (2, 3))), list(product(range(1, 9), range(2, 10))))],
        64,
        8,
    )
    line = [(0, 6), (0, 7), *product(range(2, 7), range(3, 9))]
    five = from_pairs(FIVE, ((1, 0), (0, 5)), [([(2, j) for j in range(8)], line)], 32, 8)
    return {
        "k=7, 32 rows": (SEVEN, seven, 32),
        "k=7, 64 rows": (SEVEN, skewed, 64),
        "k=5, 32 rows": (FIVE, five, 32),
        "im2col": (SEVEN, im2col(SEVEN, 32, 8), 32),
        "2 x 4 outputs": (SEVEN, rectangle(SEVEN, (2, 4), 32, 8), 32),
    }


@pytest.mark.parametrize("name", _sliding())
def test_covers_are_legal(name: str) -> None:
    kernel, cover, rows = _sliding()[name]
    check_schedule(kernel_text(kernel), cover_text(cover, kernel), rows, 8)


def test_cells_are_written_as_a_few_boxes() -> None:
    kernel, cover, _ = _sliding()["k=7, 32 rows"]
    cells = sum(tap >= 0 for row in cover.images[0].taps for tap in row)
    assert cells == 196 and cover_text(cover, kernel).count("->") < 30


def _with_cell(image: Image, row: int, column: int, tap: int) -> Image:
    cells = [list(line) for line in image.taps]
    cells[row][column] = tap
    return replace(image, taps=tuple(map(tuple, cells)))


def _broken(change: tuple[int, int, int]) -> str:
    kernel = MacKernel(1, 1, 1, (Axis(8, 3),))
    cover = rectangle(kernel, (4,), 6, 4)
    image = _with_cell(cover.images[0], *change)
    with pytest.raises(UserError) as caught:
        text = cover_text(replace(cover, images=(image,)), kernel)
        check_schedule(kernel_text(kernel), text, 6, 4)
    return caught.value.message()


def test_a_wrong_cell_is_refused() -> None:
    assert "is not done" in _broken((0, 0, -1))
    assert "done more than once" in _broken((4, 0, 0))
    swapped = MacKernel(1, 1, 1, (Axis(8, 3),))
    image = rectangle(swapped, (4,), 6, 4).images[0]
    image = _with_cell(_with_cell(image, 0, 0, 1), 1, 0, 0)
    text = cover_text(Cover(((4,),), (image,)), swapped)
    with pytest.raises(UserError, match="one row has several inputs"):
        check_schedule(kernel_text(swapped), text, 6, 4)


def test_a_lattice_that_is_too_fine_or_too_coarse_is_refused() -> None:
    kernel, cover, rows = _sliding()["k=7, 64 rows"]
    for lattice in (((1, 2), (0, 3)), ((1, 2), (0, 12)), ((1, 3), (0, 6))):
        text = cover_text(replace(cover, lattice=lattice), kernel)
        assert not is_legal(kernel_text(kernel), text, rows, 8)


def test_groups_that_share_an_image() -> None:
    """Two channels of one tap each on the diagonal; five channels need three blocks."""
    kernel = MacKernel(5, 1, 1, (Axis(4),))
    image = Image(((0, 0), (1, 0)), ((0, 0), (1, 0)), ((0, -1), (-1, 0)))
    text = cover_text(Cover(((1,),), (image,), packed=2), kernel)
    check_schedule(kernel_text(kernel), text, 2, 2)
    assert not is_legal(kernel_text(kernel), cover_text(Cover(((1,),), (image,)), kernel), 2, 2)


AXES = st.builds(Axis, st.integers(1, 7), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2))


@settings(deadline=None, max_examples=25)
@given(
    st.lists(AXES, min_size=0, max_size=2).map(tuple),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3)),
    st.integers(2, 12),
    st.integers(1, 5),
)
def test_covers_of_affine_schedules_are_legal(
    axes: tuple[Axis, ...], channels: tuple[int, int, int], rows: int, columns: int
) -> None:
    kernel = MacKernel(*channels, axes)
    cover = to_cover(search(kernel, rows, columns)[0], kernel, rows, columns)
    check_schedule(kernel_text(kernel), cover_text(cover, kernel), rows, columns)
