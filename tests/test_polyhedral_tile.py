"""Coalescing and post-tiling: numbers and isl maps say the same."""

from itertools import product
from math import prod

import islpy as isl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim_opt.polyhedral import coalesce, posttile

SIZES = st.lists(st.integers(1, 5), max_size=4)


@given(SIZES)
def test_mixed_radix_counts_the_box(sizes: list[int]) -> None:
    points = np.array(list(product(*map(range, sizes))), dtype=np.int64).reshape(
        prod(sizes), len(sizes)
    )
    numbers = coalesce.mixed_radix(points, sizes)
    assert numbers.tolist() == list(range(prod(sizes)))
    assert coalesce.digits(numbers, sizes).tolist() == points.tolist()


def test_the_first_coordinate_counts_most() -> None:
    assert coalesce.weights((2, 8, 10)) == (80, 10, 1)
    assert coalesce.text(("a", "b", "c"), (2, 1, 10)) == "10*a + c"
    assert coalesce.text((), ()) == "0"


@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 5), (4, 1, 2), (7,)])
def test_map_of_coalescing(sizes: tuple[int, ...]) -> None:
    names = [f"y{i}" for i in range(len(sizes))]
    found = isl.Map(coalesce.map_text(names, sizes))
    assert found.is_bijective()
    assert found.range().is_equal(isl.Set(f"{{ [v] : 0 <= v < {prod(sizes)} }}"))
    last = ", ".join(str(size - 1) for size in sizes)
    image = isl.Set(f"{{ [{last}] }}").apply(found)
    assert image.is_equal(isl.Set(f"{{ [{prod(sizes) - 1}] }}"))


def test_map_of_tiling() -> None:
    found = isl.Map(posttile.map_text((80, 8), 32, 8))
    assert isl.Set("{ [70, 5] }").apply(found).is_equal(isl.Set("{ [2, 0, 6, 5] }"))
    assert posttile.text("v", 32, 32) == ("0", "v")
    assert posttile.text("v", 33, 32) == ("floor((v)/32)", "(v) mod 32")


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
        lambda shape: st.lists(
            st.lists(st.booleans(), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        )
    ),
    st.integers(1, 5),
    st.integers(1, 5),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_used_tiles_hold_a_cell(
    cells: list[list[bool]], rows: int, columns: int, repeat: tuple[int, int]
) -> None:
    high, wide = len(cells), len(cells[0])
    used = {
        ((a * high + i) // rows, (b * wide + j) // columns)
        for a, b in product(range(repeat[0]), range(repeat[1]))
        for i, j in product(range(high), range(wide))
        if cells[i][j]
    }
    array = np.array(cells, dtype=np.bool_)
    assert posttile.used_tiles(array, rows, columns, repeat) == len(used)
    assert posttile.tiles(high, rows) == len({i // rows for i in range(high)})
