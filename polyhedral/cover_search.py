"""Finds covers by exact search: output offsets B and input offsets E over a lattice.

A set of pairs (B, E) over a lattice L covers the taps K when for every class c of the positions
modulo L and every tap k some pair has an output b of class c in B and the input stride * b + k in
E. The solver (CP-SAT of OR-Tools) is an extra and works when tables are made, never in a compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from cim_opt.errors import UserError
from cim_opt.polyhedral import lattice as lattices
from cim_opt.polyhedral.kernel import Point
from cim_opt.polyhedral.lattice import Lattice

Pair = tuple[tuple[Point, ...], tuple[Point, ...]]
"""Output offsets B and input offsets E of one image, without channels."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Taps and strides along the axes, without dilation or channels, and the macro's sizes."""

    taps: Point
    strides: Point
    rows: int
    columns: int

    @property
    def depth(self) -> int:
        """Products of one output."""
        return prod(self.taps)

    @property
    def most(self) -> int:
        """A bound on the index of one image's lattice: every output takes ceil(depth / rows)
        columns."""
        return self.columns // -(-self.depth // self.rows)


def cp_sat() -> ModuleType:
    """The solver's module. Raises UserError when it is not installed."""
    try:
        from ortools.sat.python import cp_model  # pyright: ignore
    except ImportError as error:
        raise UserError(
            "no solver for covers",
            "OR-Tools is not installed",
            "pip install 'cim-opt[covers]'",
        ) from error
    return cp_model  # pyright: ignore


def find(
    problem: Problem,
    lattice: Lattice,
    candidates: Iterable[Point],
    *,
    images: int = 1,
    fixed: bool = False,
    seconds: float = 2.0,
    workers: int = 1,
) -> tuple[Pair, ...] | None:
    """Pairs that cover the problem with outputs out of `candidates`, or None.

    With `fixed` every image has all the candidates for outputs. The fewest outputs and then the
    fewest inputs that the solver finds within the time; None also when the time is up. Seconds
    are the solver's own, which it counts by its work: other programs do not change what it finds.
    """
    cp: Any = cp_sat()
    model = _Model(cp, problem, lattice, tuple(candidates), images, fixed)
    solver = cp.CpSolver()
    solver.parameters.max_deterministic_time = seconds
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = 1
    status = solver.solve(model.model)
    if status not in (cp.OPTIMAL, cp.FEASIBLE):
        return None
    pairs = model.pairs(solver)
    model.improve(solver)
    if solver.solve(model.model) in (cp.OPTIMAL, cp.FEASIBLE):
        pairs = model.pairs(solver)
    return pairs


class _Model:
    """The Boolean model: an output, an input of each image; a use of a tap by an output."""

    def __init__(
        self,
        cp: Any,
        problem: Problem,
        lattice: Lattice,
        candidates: tuple[Point, ...],
        images: int,
        fixed: bool,
    ):
        self.model = cp.CpModel()
        self.problem = problem
        self.outputs: list[dict[Point, Any]] = []
        self.inputs: list[dict[Point, Any]] = []
        taps = tuple(product(*map(range, problem.taps)))
        kinds = lattices.classes(lattice, np.array(candidates, dtype=np.int64)).tolist()
        serving: dict[tuple[int, Point], list[Any]] = {
            (kind, tap): [] for kind in range(lattices.index(lattice)) for tap in taps
        }
        for _ in range(images):
            self._add_image(candidates, taps, kinds, serving)
        for literals in serving.values():
            self.model.add_bool_or(literals)
        if fixed:
            for chosen in self.outputs:
                for literal in chosen.values():
                    self.model.add(literal == 1)

    def _add_image(
        self,
        candidates: tuple[Point, ...],
        taps: tuple[Point, ...],
        kinds: list[int],
        serving: dict[tuple[int, Point], list[Any]],
    ) -> None:
        outputs = {b: self.model.new_bool_var("") for b in candidates}
        inputs: dict[Point, Any] = {}
        for output, kind in zip(candidates, kinds, strict=True):
            for tap in taps:
                place = reached(self.problem.strides, output, tap)
                if place not in inputs:
                    inputs[place] = self.model.new_bool_var("")
                use = self.model.new_bool_var("")
                self.model.add_implication(use, outputs[output])
                self.model.add_implication(use, inputs[place])
                serving[kind, tap].append(use)
        self.model.add(sum(outputs.values()) <= self.problem.columns)
        self.model.add(sum(inputs.values()) <= self.problem.rows)
        self.outputs.append(outputs)
        self.inputs.append(inputs)

    def improve(self, solver: Any) -> None:
        """From the solution found on: as few outputs and then as few inputs as possible."""
        outputs = [literal for chosen in self.outputs for literal in chosen.values()]
        inputs = [literal for chosen in self.inputs for literal in chosen.values()]
        self.model.clear_hints()
        for literal in (*outputs, *inputs):
            self.model.add_hint(literal, solver.value(literal))
        self.model.minimize(len(inputs) * sum(outputs) + sum(inputs))

    def pairs(self, solver: Any) -> tuple[Pair, ...]:
        """The pairs of the solution."""
        return tuple(
            (
                tuple(point for point, literal in sorted(outputs.items()) if solver.value(literal)),
                tuple(point for point, literal in sorted(inputs.items()) if solver.value(literal)),
            )
            for outputs, inputs in zip(self.outputs, self.inputs, strict=True)
        )


def reached(strides: Sequence[int], output: Point, tap: Point) -> Point:
    """The input that an output reads at a tap."""
    return tuple(s * o + k for s, o, k in zip(strides, output, tap, strict=True))


def box(sizes: Sequence[int]) -> tuple[Point, ...]:
    """All points from 0 to sizes - 1."""
    return tuple(product(*map(range, sizes)))


def windows(rank: int, least: int, most: int, widest: int) -> Iterator[Point]:
    """Boxes of `least` to `most` points with sides up to `widest`, small ones first."""
    sides = product(range(1, widest + 1), repeat=rank)
    yield from sorted(
        (side for side in sides if least <= prod(side) <= most),
        key=lambda side: (prod(side), max(side), side),
    )


def essentially_different(problem: Problem, size: int) -> list[Lattice]:
    """Lattices of the index, one for each kind up to mirrors and swaps of equal axes."""
    seen: set[frozenset[Point]] = set()
    found: list[Lattice] = []
    rank = len(problem.taps)
    for lattice in lattices.lattices(rank, size):
        if _points(lattice, size) not in seen:
            found.append(lattice)
            seen.update(_images_of(problem, lattice, size))
    return found


def _points(lattice: Lattice, size: int) -> frozenset[Point]:
    """The lattice's points in a box of side `size`, which is a period of it."""
    points = np.array(box((size,) * len(lattice)), dtype=np.int64)
    inside = points[lattices.classes(lattice, points) == 0]
    return frozenset(map(tuple, inside.tolist()))


def _images_of(problem: Problem, lattice: Lattice, size: int) -> Iterator[frozenset[Point]]:
    from itertools import permutations

    rank = len(lattice)
    alike = list(zip(problem.taps, problem.strides, strict=True))
    points = _points(lattice, size)
    for order in permutations(range(rank)):
        if any(alike[a] != alike[b] for a, b in enumerate(order)):
            continue
        for signs in product((1, -1), repeat=rank):
            yield frozenset(
                tuple(signs[a] * point[order[a]] % size for a in range(rank)) for point in points
            )
