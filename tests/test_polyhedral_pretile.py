"""Splits of loops into levels, and which axes may be exchanged."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.nest import nest_of
from cim_opt.polyhedral.pretile import (
    blocks,
    count_pretilings,
    exact_splits,
    pretilings,
    symmetries,
    uneven_splits,
)


def test_exact_splits() -> None:
    assert exact_splits(8) == ((8,), (2, 4), (4, 2))
    assert exact_splits(7) == ((7,),)
    assert exact_splits(1) == ((1,),)
    assert exact_splits(8, 3) == ((8,), (2, 4), (2, 2, 2), (4, 2))
    counts = {size: len(exact_splits(size)) for size in (112, 56, 28, 14, 12, 9)}
    assert counts == {112: 9, 56: 7, 28: 5, 14: 3, 12: 5, 9: 2}


@given(st.integers(1, 60), st.integers(1, 4))
def test_exact_splits_are_all_products(size: int, levels: int) -> None:
    divisors = [d for d in range(2, size + 1) if size % d == 0]
    tuples = (t for n in range(1, levels + 1) for t in product(divisors, repeat=n))
    expected = {t for t in tuples if prod(t) == size} or {(size,)}
    found = exact_splits(size, levels)
    assert set(found) == expected and len(found) == len(expected)


@given(st.integers(1, 60), st.integers(1, 70))
def test_uneven_splits_hold_the_loop(size: int, most: int) -> None:
    for outer, inner in uneven_splits(size, most):
        assert 1 < inner <= most and inner < size
        assert (outer - 1) * inner < size <= outer * inner


@pytest.mark.parametrize(
    ("size", "taps", "count"),
    [
        (7, 3, 1),
        (8, 3, 6),
        (14, 3, 6),
        (28, 3, 15),
        (56, 3, 28),
        (112, 3, 45),
        (14, 9, 21),
        (28, 9, 55),
        (56, 9, 105),
    ],
)
def test_exchangeable_axes_are_tried_once(size: int, taps: int, count: int) -> None:
    nest = nest_of(MacKernel(1, 1, 1, (Axis(size, taps), Axis(size, taps))))
    assert len(list(pretilings(nest))) == count_pretilings(nest) == count
    assert len(list(pretilings(nest, symmetric=False))) == prod(
        len(exact_splits(extent)) for extent in nest.extents
    )


def test_finds_which_axes_may_be_exchanged() -> None:
    square = nest_of(MacKernel(1, 1, 1, (Axis(8, 3), Axis(8, 3))))
    assert symmetries(square) == (((0,),), ((1,),), ((2, 4), (3, 5)))
    cube = nest_of(MacKernel(1, 1, 1, (Axis(8, 3), Axis(8, 3), Axis(8, 3))))
    assert symmetries(cube)[2] == ((2, 5), (3, 6), (4, 7))


@pytest.mark.parametrize(
    "axes",
    [
        (Axis(56, 1), Axis(56, 11)),
        (Axis(8, 3), Axis(9, 3)),
        (Axis(8, 3, 2), Axis(8, 3, 1)),
        (Axis(8, 3, 1, 2), Axis(8, 3, 1, 1)),
    ],
)
def test_unequal_axes_are_not_exchanged(axes: tuple[Axis, ...]) -> None:
    classes = symmetries(nest_of(MacKernel(1, 1, 1, axes)))
    assert all(len(same) == 1 for same in classes)


def test_rows_and_columns_of_a_square_product_are_not_exchanged() -> None:
    nest = nest_of(MacKernel(1, 16, 16, (Axis(16),)))
    assert all(len(same) == 1 for same in symmetries(nest))
    # The single tap indexes the weight, so it is no axis of its own.
    assert blocks(nest) == ((0,), (1,), (2, 3))


def test_a_nest_refuses_levels_that_do_not_hold_a_loop() -> None:
    nest = nest_of(MacKernel(1, 1, 1, (Axis(8, 3),)))
    with pytest.raises(ValueError, match="do not hold loop o0 of 8"):
        nest.split(((1,), (1,), (2, 3), (3,)))
    split = nest.split(((1,), (1,), (3, 3), (3,)))
    assert split.scales == (1, 1, 3, 1, 1)
    assert split.level_names() == ("oc", "ic", "o0.0", "o0.1", "k0")
    with pytest.raises(ValueError, match="split once"):
        split.split(((1,), (1,), (8,), (3,)))
