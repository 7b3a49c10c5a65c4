"""Directions of reuse: null spaces, circuits, Hermite forms, inverses, all exact."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim_opt.polyhedral.affine_basis import box, coordinates
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.nest import nest_of
from cim_opt.polyhedral.reuse import (
    Matrix,
    circuits,
    hermite,
    inverse,
    null_space,
    primitive,
    rank,
)

ENTRY = st.integers(-6, 6)
MATRICES = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: st.tuples(*[st.tuples(*[ENTRY] * shape[1])] * shape[0])
)


def _times(matrix: Matrix, vector: tuple[int, ...]) -> list[int]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def test_directions_of_a_one_dimensional_convolution() -> None:
    over_oc_ow_kw = [((0, 1, 1),), ((1, 0, 0), (0, 1, 0)), ((1, 0, 0), (0, 0, 1))]
    found = [null_space(matrix, 3) for matrix in over_oc_ow_kw]
    assert found == [((1, 0, 0), (0, 1, -1)), ((0, 0, 1),), ((0, 1, 0),)]


def test_directions_of_a_two_dimensional_convolution() -> None:
    nest = nest_of(MacKernel(1, 8, 4, (Axis(14, 3), Axis(14, 3))))
    assert null_space(nest.input, 6) == (
        (1, 0, 0, 0, 0, 0),
        (0, 0, 1, 0, -1, 0),
        (0, 0, 0, 1, 0, -1),
    )
    assert null_space(nest.output, 6) == (
        (0, 1, 0, 0, 0, 0),
        (0, 0, 0, 0, 1, 0),
        (0, 0, 0, 0, 0, 1),
    )
    assert null_space(nest.weight, 6) == ((0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0))


@pytest.mark.parametrize(
    ("stride", "dilation", "direction"),
    [(1, 1, (1, -1)), (2, 1, (1, -2)), (1, 2, (2, -1)), (2, 3, (3, -2)), (4, 6, (3, -2))],
)
def test_direction_of_stride_and_dilation(
    stride: int, dilation: int, direction: tuple[int, int]
) -> None:
    assert null_space(((stride, dilation),), 2) == (direction,)


def test_directions_after_splitting() -> None:
    nest = nest_of(MacKernel(1, 1, 1, (Axis(8, 3),))).split(((1,), (1,), (4, 2), (3,)))
    assert nest.input[1] == (0, 0, 2, 1, 1)
    assert null_space(nest.input[1:], 5)[2:] == ((0, 0, 1, 0, -2), (0, 0, 0, 1, -1))
    assert (0, 0, 1, -2, 0) in circuits(nest.input[1:], 5)


@given(MATRICES)
def test_null_space_is_a_basis_of_all_null_vectors(matrix: Matrix) -> None:
    width = len(matrix[0])
    basis = null_space(matrix, width)
    assert len(basis) == width - rank(matrix) == rank(basis)
    for vector in basis:
        assert not any(_times(matrix, vector))
        assert next(value for value in vector if value) > 0
    # Every null vector is a whole combination of the basis: adding one changes no lattice.
    for vector in circuits(matrix, width, width):
        assert not any(_times(matrix, vector))
        assert primitive(vector) == vector
        assert hermite([*basis, vector]) == hermite(basis)


@given(MATRICES, ENTRY, ENTRY)
def test_hermite_form_depends_on_the_lattice_alone(matrix: Matrix, a: int, b: int) -> None:
    other = [list(row) for row in reversed(matrix)]
    other.append([a * x + b * y for x, y in zip(matrix[0], matrix[-1], strict=True)])
    assert hermite(other) == hermite(matrix)


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*[st.tuples(*[ENTRY] * n)] * n)))
def test_inverse_is_exact(matrix: Matrix) -> None:
    size = len(matrix)
    if rank(matrix) < size:
        with pytest.raises(ValueError, match="singular"):
            inverse(matrix)
        return
    numerators, denominators = inverse(matrix)
    for i in range(size):
        for j in range(size):
            column = [row[j] for row in matrix]
            value = sum(a * b for a, b in zip(numerators[i], column, strict=True))
            assert Fraction(value, denominators[i]) == int(i == j)


def test_zero_has_no_direction() -> None:
    with pytest.raises(ValueError, match="no direction"):
        primitive((0, 0))


def test_scaled_coordinates_of_a_basis_that_is_not_unimodular() -> None:
    # x = y1 * (2, -1) + y2 * (0, 1): y1 = o / 2 becomes o, y2 = k + o / 2 becomes o + 2 k.
    rows = coordinates(((2, -1), (0, 1)))
    assert rows == ((1, 0), (1, 2))
    assert [box(row, (8, 3)) for row in rows] == [(0, 8), (0, 7 + 2 * 2 + 1)]
