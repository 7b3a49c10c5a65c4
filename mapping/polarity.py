"""Which values are stored complemented, so that the operations on them cost least.

Every value has one polarity, plain or complemented. Every operation has a cost that depends on the
polarity of the few values it reads and writes, infinite where it cannot be done. The sum of all
costs, as a function of all polarities, is minimised:

* values are eliminated one after another: the costs that mention the value are added, and its
  better polarity for every polarity of its neighbours is kept (dynamic programming over the graph
  of values that meet in an operation). This is exact, and takes 2^w where w is how many neighbours
  a value has when it is eliminated: few, since programs are nearly trees;
* where w would exceed `EXACT_NEIGHBOURS`, one polarity of such a value, plain, is fixed, and the
  result is improved by single values and pairs that meet until nothing is gained.

All plain is always possible; ties are for fewer complemented values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

EXACT_NEIGHBOURS = 14

Polarity = tuple[bool, ...]
Cost = tuple[int, int]
"""Commands, and how many values are complemented."""


@dataclass(frozen=True)
class Operation:
    """The cost of an operation: `costs` has it by the polarity of `values`, in their order.

    Combinations that are not there are impossible; all plain must be there. A value may not come
    twice.
    """

    values: tuple[int, ...]
    costs: Mapping[Polarity, int]


@dataclass(frozen=True)
class Assignment:
    """The polarity of every value, what all operations cost with it, and with all plain."""

    complemented: tuple[bool, ...]
    cost: int
    plain_cost: int
    exact: bool


def assign(count: int, operations: Iterable[Operation]) -> Assignment:
    """The polarity of `count` values, numbered from 0, that makes `operations` cheapest.

    Raises ValueError for an operation that cannot be done on plain values, or that names one value
    twice.
    """
    known = list(operations)
    for operation in known:
        _check(operation, count)
    factors = [_factor(x) for x in known]
    factors += [_Factor((n,), {(False,): (0, 0), (True,): (0, 1)}) for n in range(count)]
    chosen, exact = _eliminate(count, factors)
    if not exact:
        _improve(chosen, factors)
    plain = sum(x.costs[(False,) * len(x.values)] for x in known)
    cost = sum(x.costs[tuple(chosen[v] for v in x.values)] for x in known)
    return Assignment(tuple(chosen), cost, plain, exact)


def _check(operation: Operation, count: int) -> None:
    values = operation.values
    if len(set(values)) != len(values) or not all(0 <= v < count for v in values):
        raise ValueError(f"an operation on values {values} of {count}")
    if (False,) * len(values) not in operation.costs:
        raise ValueError(f"an operation on values {values} that cannot be done on plain ones")


@dataclass(frozen=True)
class _Factor:
    """As `Operation`, with the second part of the cost."""

    values: tuple[int, ...]
    costs: Mapping[Polarity, Cost]

    def at(self, chosen: Sequence[bool]) -> Cost | None:
        return self.costs.get(tuple(chosen[v] for v in self.values))


def _factor(operation: Operation) -> _Factor:
    return _Factor(operation.values, {key: (cost, 0) for key, cost in operation.costs.items()})


@dataclass(frozen=True)
class _Step:
    """An eliminated value, and its better polarity by those of its neighbours."""

    value: int
    neighbours: tuple[int, ...]
    better: Mapping[Polarity, bool]


def _eliminate(count: int, factors: Sequence[_Factor]) -> tuple[list[bool], bool]:
    """The best polarities; and whether none was fixed."""
    holding: dict[int, list[_Factor]] = {value: [] for value in range(count)}
    for factor in factors:
        for value in factor.values:
            holding[value].append(factor)
    exact = True
    steps: list[_Step] = []
    while holding:
        value = min(holding, key=lambda v: (len(_neighbours(v, holding[v])), v))
        around = tuple(sorted(_neighbours(value, holding[value])))
        if len(around) > EXACT_NEIGHBOURS:
            exact = False
            step, rest = _Step(value, (), {(): False}), _fixed(value, holding[value])
        else:
            step, joined = _joined(value, around, holding[value])
            rest = [joined] if around else []
        steps.append(step)
        _replace(holding, value, rest)
    chosen = [False] * count
    for step in reversed(steps):
        chosen[step.value] = step.better[tuple(chosen[v] for v in step.neighbours)]
    return chosen, exact


def _neighbours(value: int, factors: Sequence[_Factor]) -> set[int]:
    return {v for factor in factors for v in factor.values} - {value}


def _replace(holding: dict[int, list[_Factor]], value: int, rest: Sequence[_Factor]) -> None:
    """Takes a value out: `rest` stands for the factors that it was in."""
    gone = holding.pop(value)
    touched = {v for factor in gone for v in factor.values} - {value}
    for other in touched:
        holding[other] = [x for x in holding[other] if not any(x is y for y in gone)]
    for factor in rest:
        for other in factor.values:
            holding[other].append(factor)


def _joined(
    value: int, around: tuple[int, ...], factors: Sequence[_Factor]
) -> tuple[_Step, _Factor]:
    """The value's better polarity, and what all its factors cost with it, by its neighbours."""
    costs: dict[Polarity, Cost] = {}
    better: dict[Polarity, bool] = {}
    for setting in product((False, True), repeat=len(around)):
        known = dict(zip(around, setting, strict=True))
        found = [
            (cost, polarity)
            for polarity in (False, True)
            if (cost := _total(factors, known | {value: polarity})) is not None
        ]
        # A setting that nothing allows is left out of the costs, and never asked for.
        if found:
            costs[setting], better[setting] = min(found)
    return _Step(value, around, better), _Factor(around, costs)


def _total(factors: Sequence[_Factor], known: Mapping[int, bool]) -> Cost | None:
    commands = complemented = 0
    for factor in factors:
        cost = factor.costs.get(tuple(known[v] for v in factor.values))
        if cost is None:
            return None
        commands, complemented = commands + cost[0], complemented + cost[1]
    return commands, complemented


def _fixed(value: int, factors: Sequence[_Factor]) -> list[_Factor]:
    """The factors with the value plain."""
    rest: list[_Factor] = []
    for factor in factors:
        at = factor.values.index(value)
        costs = {key[:at] + key[at + 1 :]: x for key, x in factor.costs.items() if not key[at]}
        values = factor.values[:at] + factor.values[at + 1 :]
        if values:
            rest.append(_Factor(values, costs))
    return rest


def _improve(chosen: list[bool], factors: Sequence[_Factor]) -> None:
    """Turns single values and pairs that meet, as long as that saves something."""
    holding: dict[int, list[_Factor]] = {}
    pairs: set[tuple[int, int]] = set()
    for factor in factors:
        pairs.update(combinations(sorted(factor.values), 2))
        for value in factor.values:
            holding.setdefault(value, []).append(factor)
    moves: list[tuple[int, ...]] = [*((value,) for value in sorted(holding)), *sorted(pairs)]
    while any([_turn(chosen, move, holding) for move in moves]):
        pass


def _turn(chosen: list[bool], move: tuple[int, ...], holding: dict[int, list[_Factor]]) -> bool:
    factors = list({id(x): x for value in move for x in holding[value]}.values())
    before = [factor.at(chosen) for factor in factors]
    for value in move:
        chosen[value] = not chosen[value]
    after = [factor.at(chosen) for factor in factors]
    if None not in after and _sum(after) < _sum(before):
        return True
    for value in move:
        chosen[value] = not chosen[value]
    return False


def _sum(costs: Sequence[Cost | None]) -> Cost:
    known = [cost for cost in costs if cost is not None]
    return sum(cost[0] for cost in known), sum(cost[1] for cost in known)
