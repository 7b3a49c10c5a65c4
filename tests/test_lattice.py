"""Lattices: normal form, classes, enumeration and counting, against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.polyhedral import lattice as lattices
from cim_opt.polyhedral.lattice import Lattice


@st.composite
def bases(draw: st.DrawFn, rank: int) -> list[list[int]]:
    row = st.lists(st.integers(-5, 5), min_size=rank, max_size=rank)
    basis = draw(st.lists(row, min_size=rank, max_size=rank))
    size = round(abs(float(np.linalg.det(np.array(basis, dtype=np.float64)))))
    return (
        basis if 0 < size <= 40 else [[int(a == b) * 2 for a in range(rank)] for b in range(rank)]
    )


@given(st.integers(1, 3).flatmap(bases))
def test_hermite_form_is_the_same_lattice(basis: list[list[int]]) -> None:
    lattice = lattices.hermite(basis)
    determinant = np.linalg.det(np.array(basis, dtype=np.float64))
    assert lattices.index(lattice) == round(abs(float(determinant)))
    assert all(lattices.contains(lattice, row) for row in basis)
    sizes = lattices.pivots(lattice)
    for column, size in enumerate(sizes):
        assert all(0 <= lattice[row][column] < size for row in range(column))


def test_dependent_rows_are_no_basis() -> None:
    with pytest.raises(ValueError, match="no basis of a lattice"):
        lattices.hermite([[1, 2], [2, 4]])


@pytest.mark.parametrize(("rank", "size", "count"), [(1, 7, 1), (2, 4, 7), (2, 6, 12), (3, 4, 35)])
def test_all_lattices_of_an_index(rank: int, size: int, count: int) -> None:
    found = list(lattices.lattices(rank, size))
    assert len(found) == len(set(found)) == count  # 7 = 1 + 2 + 4, the sum of divisors
    assert all(lattices.index(lattice) == size for lattice in found)
    assert all(lattice == lattices.hermite(lattice) for lattice in found)


@pytest.mark.parametrize(
    "lattice", [((1, 2), (0, 4)), ((2, 0), (0, 3)), ((1, 0, 2), (0, 2, 1), (0, 0, 3))]
)
def test_classes_are_equal_for_differences_in_the_lattice(lattice: Lattice) -> None:
    points = np.array(list(product(range(-3, 4), repeat=len(lattice))))
    numbers = lattices.classes(lattice, points)
    assert set(numbers.tolist()) == set(range(lattices.index(lattice)))
    for point, number in zip(points[::5], numbers[::5], strict=True):
        inside = [lattices.contains(lattice, other - point) for other in points]
        assert inside == (numbers == number).tolist()
    named = np.array(lattices.representatives(lattice))
    assert lattices.classes(lattice, named).tolist() == list(range(len(named)))


@settings(deadline=None)
@given(
    st.sampled_from([((3, 0), (0, 2)), ((1, 2), (0, 5)), ((2, 1), (0, 2)), ((1, 0), (0, 4))]),
    st.sets(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=6),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
)
def test_counts_against_brute_force(
    lattice: Lattice, offsets: set[tuple[int, int]], shape: tuple[int, int]
) -> None:
    expected = [0] * lattices.index(lattice)
    for point in product(range(-12, 13), repeat=2):
        touched = [(point[0] + a, point[1] + b) for a, b in offsets]
        if any(0 <= a < shape[0] and 0 <= b < shape[1] for a, b in touched):
            expected[int(lattices.classes(lattice, np.array([point]))[0])] += 1
    assert lattices.counts_by_class(lattice, sorted(offsets), shape).tolist() == expected
    assert lattices.count_touching(lattice, sorted(offsets), shape) == expected[0]


@given(
    st.integers(1, 6),
    st.sets(st.integers(-9, 9), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_multiples_against_brute_force(period: int, offsets: set[int], size: int) -> None:
    points = range(-30 * period, 30 * period, period)
    expected = sum(any(0 <= point + offset < size for offset in offsets) for point in points)
    assert lattices.count_multiples(period, offsets, size) == expected
