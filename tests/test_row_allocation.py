"""Allocation of D rows: never overlapping, never beyond the capacity."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim_opt.mapping.row_allocation import Lifetime, RowsExceeded, allocate


def _life(start: int, length: int, rows: int) -> Lifetime:
    return Lifetime(start, start + length, rows)


LIVES = st.builds(_life, st.integers(0, 30), st.integers(0, 20), st.integers(1, 64))


def test_reuses_rows_of_objects_that_are_dead() -> None:
    lives = [Lifetime(0, 1, 32), Lifetime(1, 2, 32), Lifetime(2, 3, 32)]
    assert allocate(lives, 64) == [0, 32, 0]


def test_says_how_many_rows_it_would_take() -> None:
    with pytest.raises(RowsExceeded) as caught:
        allocate([Lifetime(0, 5, 32), Lifetime(1, 5, 32), Lifetime(3, 4, 1)], 64)
    assert (caught.value.needed, caught.value.time) == (65, 3)


def test_fills_the_lowest_gap_that_is_large_enough() -> None:
    lives = [Lifetime(0, 9, 8), Lifetime(0, 1, 8), Lifetime(0, 9, 8), Lifetime(2, 9, 16)]
    assert allocate(lives, 64) == [0, 8, 16, 24]
    assert allocate([*lives, Lifetime(3, 4, 8)], 64)[4] == 8


@given(st.lists(LIVES, max_size=25))
def test_objects_alive_together_share_no_row(lives: list[Lifetime]) -> None:
    rows = allocate(lives, 64 * 25)
    for a, b in combinations(range(len(lives)), 2):
        together = lives[a].start <= lives[b].end and lives[b].start <= lives[a].end
        apart = rows[a] + lives[a].rows <= rows[b] or rows[b] + lives[b].rows <= rows[a]
        assert apart or not together
