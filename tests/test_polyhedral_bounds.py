"""Lower bounds: published values, and q against a search of all sets of outputs."""

from itertools import combinations, product
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.polyhedral.bounds import distance, lower_bound, shared_outputs, utilisation
from cim_opt.polyhedral.kernel import Axis, MacKernel


def _square(size: int, taps: int, stride: int = 1) -> MacKernel:
    return MacKernel(1, 1, 1, (Axis(size, taps, stride),) * 2)


@pytest.mark.parametrize(
    ("taps", "rows", "rule", "percent"),
    [
        (3, 32, "B1", 28.1),
        (3, 64, "B1", 14.1),
        (5, 32, "B2", 48.8),
        (5, 64, "B1", 39.1),
        (7, 32, "B1", 76.6),
        (7, 64, "B2", 57.4),
        (9, 32, "B1", 84.4),
        (9, 64, "B1", 63.3),
        (11, 32, "B1", 94.5),
        (13, 32, "B1", 88.0),
        (13, 64, "B1", 88.0),
    ],
)
def test_bounds_of_depthwise_convolutions(taps: int, rows: int, rule: str, percent: float) -> None:
    kernel = _square(1120, taps)  # large enough that rounding up does not show
    bound = lower_bound(kernel, rows, 8)
    assert bound.rule == rule
    assert 100 * utilisation(kernel, rows, 8, bound.steps) == pytest.approx(percent, abs=0.06)


def test_outputs_that_share_inputs() -> None:
    assert shared_outputs(_square(56, 5), 32, 8) == 2
    assert shared_outputs(_square(56, 7), 64, 8) == 4
    assert shared_outputs(_square(56, 3), 32, 8) == 8
    assert shared_outputs(_square(56, 7), 32, 8) == 0
    assert shared_outputs(_square(56, 3, 2), 32, 8) == 5
    assert shared_outputs(MacKernel(1, 4, 1, (Axis(56, 5),) * 2), 32, 8) == 8
    assert shared_outputs(MacKernel(1, 1, 2, (Axis(56, 3),) * 2), 32, 8) == 4
    cube = MacKernel(1, 1, 1, (Axis(8, 3),) * 3)
    assert [shared_outputs(cube, rows, 8) for rows in (32, 64)] == [1, 8]


def test_other_bounds() -> None:
    group = MacKernel(1, 4, 4, (Axis(56, 3),) * 2)
    assert [lower_bound(group, rows, 8).steps for rows in (32, 64)] == [3136, 1568]
    band = MacKernel(1, 1, 1, (Axis(56, 1), Axis(56, 11)))
    assert [lower_bound(band, rows, 8).steps for rows in (32, 64)] == [392, 392]
    cube = MacKernel(1, 1, 1, (Axis(80, 3),) * 3)
    bound = lower_bound(cube, 32, 8)
    assert (bound.rule, bound.shared) == ("B2", 1)
    assert utilisation(cube, 32, 8, bound.steps) == pytest.approx(0.4746, abs=1e-4)
    many = MacKernel(96, 1, 1, (Axis(112, 3),) * 2)
    assert lower_bound(many, 32, 8).steps == 96 * 1568


def test_distance_says_when_nothing_is_left() -> None:
    reached = distance(_square(112, 3), 32, 8, 1568)
    assert reached.ratio == 1 and reached.utilisation == reached.reachable == 0.28125
    assert "no mapping takes fewer" in str(reached)
    far = distance(_square(56, 7), 64, 8, 784)
    assert far.bound.steps == 523 and far.ratio > 1
    assert str(far) == ("784 steps, utilisation 38.28%; B2: at least 523 steps, 57.39% (a bound)")


AXES = st.builds(Axis, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(AXES, min_size=1, max_size=2),
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)),
    st.integers(1, 24),
    st.integers(1, 5),
)
def test_shared_outputs_against_all_sets(
    axes: list[Axis], channels: tuple[int, int, int], rows: int, most: int
) -> None:
    groups, oc, ic = channels
    kernel = MacKernel(groups, oc, ic, tuple(axes))
    windows = [
        frozenset((group, point) for point in kernel.window(o))
        for o in product(*map(range, kernel.output_shape))
        for group in range(groups)
    ]
    outputs = windows * oc
    best = 0
    for size in range(1, min(most, len(outputs)) + 1):
        sets = combinations(outputs, size)
        if not any(len(some[0].union(*some)) <= rows for some in sets):
            break
        best = size
    found = shared_outputs(kernel, rows, most)
    assert found >= best
    phases = [axis.dilation // gcd(axis.stride, axis.dilation) for axis in axes]
    if all(axis.outputs % n == 0 for axis, n in zip(axes, phases, strict=True)):
        assert min(found, len(outputs)) == best
