"""How far returned values may be from the reference, because float folds were reordered.

Measured by running the reference with one fold's result moved by its bound, for each such fold and
both directions; see compare.py for the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from cim_opt.dialects.pattern import FoldOp, ScanOp
from cim_opt.simulators.batch import HOST
from cim_opt.simulators.compare import EXACT, Rule
from cim_opt.simulators.elementwise import dtype_of, quiet
from cim_opt.simulators.folds import Fold
from cim_opt.simulators.integer_functions import Values
from cim_opt.simulators.reassociation import is_float, reassociated_folds
from cim_opt.simulators.reference import HostEvaluator, checked_arguments
from cim_opt.simulators.scans import running_totals

EPS = float(np.finfo(np.float32).eps)


@dataclass
class _Moved:
    """A fold whose float results are moved, by `sign` times their bound, and what was seen."""

    op: FoldOp
    sign: float
    terms: int = 0
    magnitude: float = 0.0
    bounds: dict[int, Values] = field(default_factory=dict[int, Values])


class _MovingEvaluator(HostEvaluator):
    """Runs a program with the results of one fold moved."""

    def __init__(self, module: ModuleOp, moved: _Moved) -> None:
        super().__init__(module)
        self.moved = moved

    def evaluate(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        results = super().evaluate(op, args)
        if op is not self.moved.op:
            return results
        assert isinstance(op, FoldOp)
        bounds = self._bounds(op, args, results)
        return [
            value if bound is None else value + (self.moved.sign * bound).astype(value.dtype)
            for value, bound in zip(results, bounds, strict=True)
        ]

    def _bounds(
        self, op: FoldOp, args: tuple[Values, ...], results: Sequence[Values]
    ) -> list[Values]:
        """One bound a float result, None for an integer result."""
        length = args[0].shape[0]
        terms = length + 1
        factor = min(2.0 * terms, 8.0 * sqrt(terms)) * EPS
        magnitudes = self._magnitudes(op, args, results)
        self.moved.terms = max(self.moved.terms, length)
        finite = [float(m) for m in magnitudes if m is not None and np.isfinite(m)]
        self.moved.magnitude = max([self.moved.magnitude, *finite])
        return [
            None if magnitude is None else np.maximum(magnitude, np.abs(value)) * factor
            for magnitude, value in zip(magnitudes, results, strict=True)
        ]

    def _magnitudes(
        self, op: FoldOp, args: tuple[Values, ...], results: Sequence[Values]
    ) -> list[Values]:
        """M of each float result."""
        if op.tensor_accumulators or args[0].shape[0] == 0:
            largest = [np.max(np.abs(value), initial=0.0) for value in results]
            return [
                np.float64(value) if is_float(init) else None
                for value, init in zip(largest, op.inits, strict=True)
            ]
        totals = results if isinstance(op, ScanOp) and op.exclusive is None else None
        inits = args[len(args) - len(op.inits) :]
        if totals is None:
            totals = self._running_totals(op, args)
        return [
            _largest(total, init) if is_float(operand) else None
            for total, init, operand in zip(totals, inits, op.inits, strict=True)
        ]

    def _running_totals(self, op: FoldOp, args: tuple[Values, ...]) -> list[Values]:
        count = len(op.inputs)
        inits = args[len(args) - len(op.inits) :]
        shared = args[count : len(args) - len(op.inits)]
        fold = Fold.of(self.regions, op, shared, inits, HOST)
        outs = [np.empty(args[0].shape[0], dtype_of(init.type)) for init in op.inits]
        running_totals(fold, args[:count], inits, outs)
        return outs


def _largest(totals: Values, init: Values) -> Values:
    """The largest finite magnitude of an accumulator on its way."""
    finite = np.where(np.isfinite(totals), np.abs(totals), 0)
    return np.maximum(np.float64(np.max(finite)), np.abs(np.float64(init)))


@quiet()
def measured_rules(module: ModuleOp, name: str, args: Sequence[Any]) -> list[Rule]:
    """The rule of each returned value: see `compare.rules_for`.

    A value whose length depends on a float fold, such as a filter by a mean, is compared bit by
    bit.
    """
    function = HostEvaluator(module).function(name)
    values = checked_arguments(function, args)
    folds = reassociated_folds(module, function)
    rules = [EXACT] * len(function.function_type.outputs)
    if not folds:
        return rules
    base = HostEvaluator(module).call(name, values)
    for fold in folds:
        moves = [_Moved(fold, sign) for sign in (1.0, -1.0)]
        runs = [_MovingEvaluator(module, moved).call(name, values) for moved in moves]
        rules = [
            _widened(rule, value, [run[number] for run in runs], moves[0])
            for number, (rule, value) in enumerate(zip(rules, base, strict=True))
        ]
    return rules


def _widened(rule: Rule, base: Values, others: Sequence[Values], moved: _Moved) -> Rule:
    """`rule`, widened by how far a value moved from `base`; unchanged when it did not."""
    if any(np.shape(other) != np.shape(base) for other in others):
        return rule
    distance = np.maximum(*(_distance(base, other) for other in others))
    if not np.any(distance > 0):
        return rule
    tolerance = distance if rule.exact else rule.tolerance + distance
    terms, magnitude = max(rule.terms, moved.terms), max(rule.magnitude, moved.magnitude)
    return Rule(tolerance, terms, magnitude)


def _distance(base: Values, other: Values) -> Values:
    distance = np.abs(np.asarray(base, np.float64) - np.asarray(other, np.float64))
    return np.where(np.isfinite(distance), distance, 0.0)
