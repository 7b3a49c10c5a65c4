"""Affine schedules: worked examples, the public prototype's counts, and exact scores.

Counts of the prototype: expectations of its own tests, and runs of its public version.
"""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polyhedral_oracle import counted_steps

from cim_opt.mapping.cim_schedules import best_schedule
from cim_opt.polyhedral.affine_basis import ANY, PROTOTYPE, Rules, bases, box, coordinates
from cim_opt.polyhedral.affine_choices import parts_of
from cim_opt.polyhedral.affine_part import Part
from cim_opt.polyhedral.affine_schedule import box_steps, steps_of
from cim_opt.polyhedral.affine_search import search
from cim_opt.polyhedral.bounds import lower_bound
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.nest import Factors, nest_of
from cim_opt.polyhedral.pretile import pretilings

LINE = MacKernel(1, 2, 1, (Axis(8, 3),))
"""Two output channels, eight outputs, three taps."""

NO_PRETILING = replace(PROTOTYPE, pretile=False)
NO_SKEW = replace(PROTOTYPE, affine=False)
PHASES = replace(PROTOTYPE, levels=3)
"""What the prototype uses for dilated convolutions."""


def _square(size: int, taps: int, stride: int = 1, dilation: int = 1) -> MacKernel:
    return MacKernel(1, 1, 1, (Axis(size, taps, stride, dilation),) * 2)


def _fewest(kernel: MacKernel, rows: int, columns: int, rules: Rules = ANY) -> int:
    return search(kernel, rows, columns, rules)[0].steps


# -- a convolution small enough to do by hand --------------------------------------------------


def test_boxes_of_the_line() -> None:
    basis = ((1, 0, 0), (0, 1, -1), (0, 0, 1))
    sizes = [box(row, (2, 8, 3))[1] for row in coordinates(basis)]
    assert sizes == [2, 8, 10] and sizes[0] * sizes[1] * sizes[2] == 160
    split = ((1, 0, 0, 0), (0, 0, 1, -1), (0, 0, 0, 1), (0, 1, 0, 0))
    sizes = [box(row, (2, 2, 4, 3))[1] for row in coordinates(split)]
    assert sizes == [2, 4, 6, 2] and 2 * 4 * 6 * 2 == 96
    two_skewed = ((1, 0, 0, 0), (0, 1, 0, -2), (0, 0, 1, -1), (0, 0, 0, 1))
    sizes = [box(row, (2, 4, 2, 3))[1] for row in coordinates(two_skewed)]
    assert sizes == [2, 4, 2, 10]


def _line_candidates(rules: Rules) -> list[tuple[Factors, int]]:
    """Levels of the outputs and steps on 6 x 8 of every schedule with rows."""
    parts = parts_of(LINE.axes[0], 8, rules)
    reducing = [part for part in parts if any(v.role == "row" for v in part.basis)]
    return [(part.factors[0], box_steps(LINE, (part,), 6, 8)) for part in reducing]


def test_candidates_of_the_line() -> None:
    assert sorted(_line_candidates(PROTOTYPE)) == [
        ((2, 4), 2),
        ((4, 2), 4),
        ((4, 2), 4),
        ((4, 2), 4),
        ((8,), 4),
        ((8,), 8),
    ]
    assert sorted(_line_candidates(NO_PRETILING)) == [((8,), 4), ((8,), 8)]
    nest = nest_of(LINE)
    assert sum(1 for t in pretilings(nest) for _ in bases(nest.split(t), PROTOTYPE)) == 6
    assert len(list(bases(nest, NO_PRETILING))) == 2


def test_steps_of_the_line() -> None:
    assert [_fewest(LINE, 6, 8, rules) for rules in (PROTOTYPE, NO_PRETILING, NO_SKEW)] == [2, 4, 8]
    best = search(LINE, 4, 4, PROTOTYPE)[0]
    assert (best.steps, best.utilisation, best.parts[0].factors[0]) == (4, 0.75, (4, 2))
    assert (best.virtual_rows, best.virtual_columns) == (4, 4)
    assert search(LINE, 3, 4, PROTOTYPE)[0].utilisation == 0.5
    assert _fewest(LINE, 3, 4, PROTOTYPE) == 8
    whole = search(LINE, 10, 16, NO_PRETILING)[0]
    assert (whole.steps, whole.utilisation) == (1, 0.3)


@pytest.mark.parametrize(
    ("size", "taps", "rows", "columns", "prototype", "here", "optimum"),
    [
        (8, 3, 4, 4, 4, 4, 3),
        (8, 3, 6, 4, 2, 2, 2),
        (8, 3, 8, 8, 2, 2, 2),
        (8, 3, 3, 4, 4, 4, 4),
        (8, 3, 5, 4, 4, 3, 3),
        (8, 5, 4, 4, 4, 4, 4),
        (8, 5, 6, 4, 4, 4, 3),
        (8, 5, 8, 4, 2, 2, 2),
        (7, 3, 6, 4, 4, 2, 2),
        (6, 4, 5, 4, 3, 3, 2),
        (8, 7, 8, 4, 4, 4, 3),
    ],
)
def test_one_channel_lines(
    size: int, taps: int, rows: int, columns: int, prototype: int, here: int, optimum: int
) -> None:
    """Optima are exact: lower counts were proved infeasible by a solver of set covers."""
    kernel = MacKernel(1, 1, 1, (Axis(size, taps),))
    assert _fewest(kernel, rows, columns, PROTOTYPE) == prototype
    assert _fewest(kernel, rows, columns) == here
    assert lower_bound(kernel, rows, columns).steps <= optimum <= here


def test_stride_and_dilation_of_a_line() -> None:
    strided = MacKernel(1, 1, 1, (Axis(8, 3, 2),))
    assert search(strided, 7, 4, PROTOTYPE)[0].utilisation == 24 / (4 * 28)
    assert _fewest(strided, 7, 4) == 3  # blocks of three outputs, the last of two
    dilated = MacKernel(1, 1, 1, (Axis(8, 3, 1, 2),))
    assert search(dilated, 8, 4, PROTOTYPE)[0].utilisation == 0.375
    assert _fewest(dilated, 6, 4, PROTOTYPE) == 2  # outputs of one parity need six inputs


# -- the prototype's operators -----------------------------------------------------------------


def test_schedules_of_a_small_depthwise_convolution() -> None:
    kernel = _square(8, 3)
    nest = nest_of(kernel)
    counts = [len(list(bases(nest.split(t), PROTOTYPE))) for t in pretilings(nest)]
    assert counts == [8, 5, 13, 3, 6, 12] and sum(counts) == 47
    best = search(kernel, 32, 8, PROTOTYPE)[0]
    assert (best.steps, best.utilisation) == (8, 0.28125)


GOLDEN = {  # size, taps, dilation: steps on 32 and 64 rows
    (112, 3, 1): (1568, 1568),
    (56, 3, 1): (392, 392),
    (28, 5, 1): (196, 98),
    (14, 3, 1): (28, 28),
    (14, 5, 1): (56, 28),
    (7, 5, 1): (14, 7),
    (7, 3, 1): (7, 7),
    (56, 7, 1): (1176, 784),
    (7, 7, 1): (21, 14),
    (56, 51, 1): (34496, 17248),
    (7, 13, 1): (56, 28),
    (28, 3, 2): (98, 98),
    (28, 5, 2): (224, 112),
    (28, 3, 4): (112, 112),
    (12, 13, 1): (126, 72),
    (14, 7, 1): (84, 49),
    (14, 9, 1): (112, 84),
    (28, 9, 1): (392, 196),
    (28, 11, 1): (588, 294),
    (56, 13, 1): (2744, 1568),
}


@pytest.mark.parametrize("shape", GOLDEN)
def test_prototype_counts_are_reproduced_and_never_exceeded(shape: tuple[int, int, int]) -> None:
    size, taps, dilation = shape
    kernel = _square(size, taps, 1, dilation)
    for rows, golden in zip((32, 64), GOLDEN[shape], strict=True):
        rules = PHASES if dilation > 1 else PROTOTYPE
        assert _fewest(kernel, rows, 8, rules) == golden
        assert lower_bound(kernel, rows, 8).steps <= _fewest(kernel, rows, 8) <= golden


OTHERS = [  # kernel, the prototype's steps on 32 and 64 rows, fewest found here
    (MacKernel(1, 4, 4, (Axis(8, 3),) * 2), (64, 32), (64, 32)),
    (MacKernel(1, 4, 4, (Axis(56, 3),) * 2), (3136, 1568), (3136, 1568)),
    (MacKernel(1, 1, 1, (Axis(56, 1), Axis(56, 11))), (392, 392), (392, 392)),
    (MacKernel(1, 1, 1, (Axis(14, 1), Axis(14, 11))), (28, 28), (28, 28)),
    (MacKernel(1, 8, 8, (Axis(14, 3),) * 2), (588, 392), (588, 392)),
    (MacKernel(1, 64, 64, (Axis(14, 3),) * 2), (28224, 14112), (28224, 14112)),
    (MacKernel(1, 1, 1, (Axis(56, 3, 2),) * 2), (784, 392), (784, 392)),
    (MacKernel(1, 1, 1, (Axis(28, 5, 2),) * 2), (294, 196), (280, 140)),
    (MacKernel(1, 4, 1, (Axis(8, 3),) * 3), (512, 256), (512, 256)),
    (MacKernel(1, 1, 1, (Axis(8, 3),) * 3), (192, 128), (128, 64)),
    (MacKernel(1, 1, 1, (Axis(28, 5),) * 3), (21952, 10976), (19208, 10976)),
]


@pytest.mark.parametrize(("kernel", "prototype", "here"), OTHERS)
def test_channels_strides_and_three_dimensions(
    kernel: MacKernel, prototype: tuple[int, int], here: tuple[int, int]
) -> None:
    rules = PROTOTYPE if kernel.rank < 3 else replace(PROTOTYPE, levels=2)
    assert tuple(_fewest(kernel, rows, 8, rules) for rows in (32, 64)) == prototype
    assert tuple(_fewest(kernel, rows, 8) for rows in (32, 64)) == here


@pytest.mark.parametrize("shape", GOLDEN)
def test_closed_form_of_the_prototype(shape: tuple[int, int, int]) -> None:
    """Blocks of a x b outputs, a and b divisors: what the search gives, or more."""
    size, taps, dilation = shape
    if dilation > 1:
        return
    divisors = [d for d in range(1, 9) if size % d == 0]
    for rows in (32, 64):
        formula = min(
            (size // a) * (size // b) * -(-((a - 1 + taps) * (b - 1 + taps)) // rows)
            for a in divisors
            for b in divisors
            if a * b <= 8
        )
        assert _fewest(_square(size, taps), rows, 8) <= formula


def test_without_skew_it_is_im2col() -> None:
    group = MacKernel(1, 4, 4, (Axis(8, 3),) * 2)
    assert [_fewest(group, rows, 8, NO_SKEW) for rows in (32, 64)] == [128, 64]
    assert _fewest(_square(112, 3), 32, 8, NO_SKEW) == 12544
    assert _fewest(_square(56, 7), 32, 8, NO_SKEW) == 6272


def test_utilisation_of_large_taps() -> None:
    assert round(search(_square(12, 13), 32, 8, PROTOTYPE)[0].utilisation, 5) == 0.75446
    assert round(search(_square(12, 13), 64, 8, PROTOTYPE)[0].utilisation, 5) == 0.66016
    assert round(search(_square(7, 13), 32, 8, PROTOTYPE)[0].utilisation, 4) == 0.5776
    assert search(_square(7, 13), 64, 8, PROTOTYPE)[0].utilisation == pytest.approx(0.57764, 1e-4)


def test_ties_go_to_fewer_images() -> None:
    # The prototype takes the first of many; some of them need two or four images.
    assert search(_square(112, 3), 64, 8)[0].images == 1
    assert search(_square(56, 7), 64, 8)[0].images == 1
    images = [schedule.images for schedule in search(_square(56, 7), 64, 8, most=6)]
    assert images == sorted(images) and len(images) > 1


def test_groups_multiply_steps_but_not_images() -> None:
    one, many = (search(MacKernel(g, 1, 1, (Axis(56, 7),) * 2), 32, 8)[0] for g in (1, 96))
    assert (many.steps, many.images) == (96 * one.steps, one.images)


def test_a_kernel_without_axes() -> None:
    best = search(MacKernel(2, 20, 40, ()), 32, 8)[0]
    assert (best.steps, best.images) == (2 * 2 * 3, 2 * 3)


def test_the_search_is_quick() -> None:
    parts_of.cache_clear()
    begin = time.process_time()
    assert _fewest(_square(112, 3), 32, 8) == 1568
    assert time.process_time() - begin < 1


# -- exact scores --------------------------------------------------------------------------------

AXES = st.builds(Axis, st.integers(1, 9), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))


@st.composite
def schedules(draw: st.DrawFn) -> tuple[MacKernel, tuple[Part, ...]]:
    """A kernel of one or two axes and any schedule of it, good or bad."""
    axes = tuple(draw(st.lists(AXES, min_size=1, max_size=2)))
    kernel = MacKernel(
        draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3)), axes
    )
    choices = [parts_of(axis, 4, replace(ANY, boxes=draw(st.booleans()))) for axis in axes]
    return kernel, tuple(draw(st.sampled_from(parts)) for parts in choices)


@settings(deadline=None, max_examples=60)
@given(schedules(), st.integers(1, 9), st.integers(1, 5))
def test_steps_are_counted_exactly(
    drawn: tuple[MacKernel, tuple[Part, ...]], rows: int, columns: int
) -> None:
    kernel, parts = drawn
    steps = steps_of(kernel, parts, rows, columns)
    assert steps == counted_steps(kernel, parts, rows, columns)
    assert steps <= box_steps(kernel, parts, rows, columns)
    assert steps >= lower_bound(kernel, rows, columns).steps


@settings(deadline=None, max_examples=40)
@given(AXES, st.integers(1, 12), st.integers(1, 6))
def test_the_search_finds_the_best_part_of_one_axis(axis: Axis, rows: int, columns: int) -> None:
    kernel = MacKernel(1, 1, 1, (axis,))
    best = search(kernel, rows, columns)[0]
    every = [steps_of(kernel, (part,), rows, columns) for part in parts_of(axis, columns, ANY)]
    assert best.steps == min(every) == steps_of(kernel, best.parts, rows, columns)


@pytest.mark.parametrize(
    "axes",
    [
        (Axis(5), Axis(1, 2, dilation=2), Axis(3, 3, 3, 3, 1), Axis(5, 3, 2, 2)),
        (Axis(5), Axis(4, 3, 2, 3), Axis(1, 3, 3, 3), Axis(2, 2, 1, 3, 1)),
        (Axis(5), Axis(7, 2, 3, 3), Axis(3, 3, 3, 2, 1), Axis(2, 3, 2, 1, 1)),
    ],
)
def test_levels_of_a_placed_schedule_have_one(axes: tuple[Axis, ...]) -> None:
    """What poly-pretile splits, poly-posttile can lay out, though other bases are as short."""
    kernel = MacKernel(1, 1, 5, axes)
    found = best_schedule(kernel, 32, 4)
    assert found is not None and found.is_placed(32, 4)
    again = best_schedule(kernel, 32, 4, splits=found.splits())
    assert again is not None and again.is_placed(32, 4)
