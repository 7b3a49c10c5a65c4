"""The choice of polarities: exact where it says so, against every assignment."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.mapping import polarity
from cim_opt.mapping.polarity import Operation, assign


def adder(a: int, b: int, out: int) -> Operation:
    """An addition of 8 bits: 49 with one complemented operand, else 56."""
    costs = {
        (x, y, z): 49 if x != y else 56
        for x, y, z in product((False, True), repeat=3)
        if x != y or x == z
    }
    return Operation((a, b, out), costs)


def test_one_operand_of_an_addition() -> None:
    found = assign(3, [adder(0, 1, 2)])
    assert (found.cost, found.plain_cost, found.exact) == (49, 56, True)
    assert sum(found.complemented) == 1 and not found.complemented[2]


def test_a_value_with_two_users() -> None:
    # 1 and 2 differ from 0 and from each other in every addition, which cannot be.
    found = assign(6, [adder(0, 1, 3), adder(0, 2, 4), adder(1, 2, 5)])
    assert found.cost == 49 + 49 + 56


def test_what_only_plain_values_allow_stays_plain() -> None:
    plain = {(False, False): 10}
    found = assign(2, [Operation((0, 1), plain)])
    assert found.complemented == (False, False)


def test_nothing() -> None:
    assert assign(0, []).complemented == ()
    assert assign(2, []).complemented == (False, False)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Operation((0, 0), {(False, False): 1}), r"an operation on values \(0, 0\) of 2"),
        (Operation((0, 2), {(False, False): 1}), r"an operation on values \(0, 2\) of 2"),
        (Operation((0, 1), {(True, False): 1}), r"values \(0, 1\) that cannot be done on plain"),
    ],
)
def test_refusals(operation: Operation, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assign(2, [operation])


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, list[Operation]]:
    count = draw(st.integers(1, 7))
    operations = list[Operation]()
    for _ in range(draw(st.integers(0, 8))):
        values = draw(
            st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True).map(tuple)
        )
        costs: dict[tuple[bool, ...], int] = {}
        for key in product((False, True), repeat=len(values)):
            if not any(key) or draw(st.booleans()):
                costs[key] = draw(st.integers(0, 20))
        operations.append(Operation(values, costs))
    return count, operations


def every(count: int, operations: list[Operation]) -> int:
    """The least cost of all assignments."""
    costs: list[int] = []
    for setting in product((False, True), repeat=count):
        keys = [tuple(setting[v] for v in x.values) for x in operations]
        if all(key in x.costs for key, x in zip(keys, operations, strict=True)):
            costs.append(sum(x.costs[key] for key, x in zip(keys, operations, strict=True)))
    return min(costs)


@settings(max_examples=150, deadline=None)
@given(problem=problems())
def test_exact(problem: tuple[int, list[Operation]]) -> None:
    count, operations = problem
    found = assign(count, operations)
    assert found.exact
    assert found.cost == every(count, operations)


@settings(max_examples=100, deadline=None)
@given(problem=problems(), neighbours=st.integers(0, 2))
def test_greedy_is_possible_and_not_worse_than_plain(
    problem: tuple[int, list[Operation]], neighbours: int
) -> None:
    count, operations = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polarity, "EXACT_NEIGHBOURS", neighbours)
        found = assign(count, operations)
    assert every(count, operations) <= found.cost <= found.plain_cost
    if found.exact:
        assert found.cost == every(count, operations)
