"""Majority-inverter forms: which sets of majorities compute given functions, all of them.

A function is a truth table in an integer: bit i is its value for the i-th assignment of the
variables. Only assignments that can occur have a bit, so that don't-cares need no notation. A
function and its complement count as one, since an inverter costs no majority.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations


def majority(x: int, y: int, z: int) -> int:
    """Bit by bit, the value that at least two of the three have."""
    return (x & y) | (z & (x | y))


def regular(function: int, ones: int) -> int:
    """The one of `function` and its complement that is false for the first assignment."""
    return function ^ ones if function & 1 else function


@dataclass(frozen=True)
class Form:
    """Functions that are enough to compute the targets, one majority each.

    `leaves` and `nodes` are regular (see `regular`); every node is a majority of leaves and other
    nodes, each direct or complemented. `ones` is the truth table of the constant 1.
    """

    ones: int
    leaves: frozenset[int]
    nodes: frozenset[int]

    def triples(self, function: int) -> Iterator[tuple[int, int, int]]:
        """All (x, y, z) of three different functions of the form with this majority."""
        others = sorted((self.leaves | self.nodes) - {regular(function, self.ones)})
        for x, y, z in combinations(others, 3):
            yield from signed_triples(x, y, z, function, self.ones)


def signed_triples(
    x: int, y: int, z: int, function: int, ones: int
) -> Iterator[tuple[int, int, int]]:
    """The ways to complement x, y and z so that their majority is `function`."""
    for signed_x in (x, x ^ ones):
        for signed_y in (y, y ^ ones):
            for signed_z in (z, z ^ ones):
                if majority(signed_x, signed_y, signed_z) == function:
                    yield signed_x, signed_y, signed_z


def majorities(functions: Iterable[int], ones: int) -> set[int]:
    """The regular functions that are a majority of three of `functions` or their complements."""
    found: set[int] = set()
    for x, y, z in combinations(functions, 3):
        # Complementing all three complements the majority: four of the eight ways are enough.
        for triple in ((x, y, z), (x ^ ones, y, z), (x, y ^ ones, z), (x, y, z ^ ones)):
            found.add(regular(majority(*triple), ones))
    return found


def forms(targets: Iterable[int], leaves: Iterable[int], ones: int, nodes: int) -> list[Form]:
    """All forms with exactly that many nodes, each of which is a target or serves another."""
    regular_leaves = frozenset(regular(leaf, ones) for leaf in leaves)
    wanted = frozenset(regular(target, ones) for target in targets) - regular_leaves
    complete: set[frozenset[int]] = set()
    seen: set[frozenset[int]] = set()

    def grow(chosen: frozenset[int]) -> None:
        if chosen in seen:
            return
        seen.add(chosen)
        missing = wanted - chosen
        left = nodes - len(chosen)
        if left == 0:
            complete.add(chosen)
            return
        available = majorities(sorted(regular_leaves | chosen), ones) - chosen - regular_leaves
        # As many nodes as targets are left: each must be a target.
        for node in sorted(available & missing if left == len(missing) else available):
            grow(chosen | {node})

    if len(wanted) <= nodes:
        grow(frozenset())
    return [
        Form(ones, regular_leaves, chosen)
        for chosen in sorted(complete, key=sorted)
        if not _has_unused(chosen, wanted, regular_leaves, ones)
    ]


def _has_unused(
    nodes: frozenset[int], wanted: frozenset[int], leaves: frozenset[int], ones: int
) -> bool:
    form = Form(ones, leaves, nodes)
    used: set[int] = set()
    for node in nodes:
        for triple in form.triples(node):
            used.update(regular(function, ones) for function in triple)
    return not nodes - wanted <= used


def fewest_nodes(targets: Sequence[int], leaves: Sequence[int], ones: int) -> int:
    """How many majorities the targets need at least."""
    nodes = 0
    while not forms(targets, leaves, ones, nodes):
        nodes += 1
    return nodes
