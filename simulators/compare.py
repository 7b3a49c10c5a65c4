"""Comparison of what a machine computed with the reference, and the rule it goes by.

Values are compared bit by bit (any NaN equals any NaN), unless a float sum or another float fold
over a whole vector went into them: a machine combines the elements in another order, and rounds
differently. The result of such a fold over n elements is given the bound

    min(2 n, 8 sqrt(n)) * eps * M,   eps = 2**-23

with M the largest magnitude that the accumulator has on its way from `init` to the result. As the
order of the elements is kept, each partial sum that a machine forms is the difference of two values
on that way, at most 2 M, so that each of n additions rounds by at most eps M, in either of the two
orders that are compared: 2 n eps M. The second factor is what rounding errors of random sign, which
add up like a random walk, do not exceed in practice. For folds other than sums the same numbers
are a rule of thumb. For tensor accumulators M is the largest element of the result.

What the program computes from the fold further on moves with it: the bound of a returned value is
how far it moves when each such fold moves by its bound, up or down (`rules_for` runs the reference
with moved results to see).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cim_opt.simulators.integer_functions import Values


@dataclass(frozen=True)
class Rule:
    """How a value is compared. `tolerance` is None for bit by bit.

    Otherwise it is the absolute difference that is allowed, one for all elements or one each, and
    `terms` and `magnitude` are the n and M of the fold that it comes from (the largest, if some).
    """

    tolerance: Values = None
    terms: int = 0
    magnitude: float = 0.0

    @property
    def exact(self) -> bool:
        return self.tolerance is None

    @property
    def bound(self) -> float:
        """The largest difference that is allowed at any element."""
        return 0.0 if self.exact or not np.size(self.tolerance) else float(np.max(self.tolerance))

    def __str__(self) -> str:
        if self.exact:
            return "bit-exact"
        return (
            f"float fold in another order, within {self.bound:.3g} "
            f"(n = {self.terms}, M = {self.magnitude:.3g})"
        )


EXACT = Rule()


@dataclass(frozen=True)
class Mismatch:
    """The first difference: `index` is None for a scalar, and for arrays of different shape.

    `expected` and `got` are elements; shapes or dtypes where those differ.
    """

    index: int | None
    expected: Any
    got: Any
    what: str = "value"

    def __str__(self) -> str:
        at = "" if self.index is None else f" at index {self.index}"
        return f"{self.what} differs{at}: expected {self.expected}, got {self.got}"


def compare(expected: Values, got: Values, rule: Rule = EXACT) -> Mismatch | None:
    """The first difference of `got` from `expected` that `rule` does not allow, or None.

    Both are arrays or NumPy scalars. A different dtype or shape is a difference.
    """
    want, have = np.asarray(expected), np.asarray(got)
    if want.dtype != have.dtype:
        return Mismatch(None, str(want.dtype), str(have.dtype), "type")
    if want.shape != have.shape:
        return Mismatch(None, _shape(want), _shape(have), "length")
    with np.errstate(all="ignore"):
        equal = _equal_bits(want, have) if rule.exact else _within(want, have, rule.tolerance)
    if np.all(equal):
        return None
    index = int(np.argmin(np.ravel(equal)))
    first = None if want.ndim == 0 else index
    return Mismatch(first, np.ravel(want)[index], np.ravel(have)[index])


def _shape(array: Values) -> Any:
    """A vector's length, the shape of anything else."""
    return array.shape[0] if array.ndim == 1 else array.shape


def _equal_bits(want: Values, have: Values) -> Values:
    if want.dtype.kind != "f":
        return want == have
    bits = np.dtype(f"i{want.dtype.itemsize}")
    same: Values = want.view(bits) == have.view(bits)
    return same | (np.isnan(want) & np.isnan(have))


def _within(want: Values, have: Values, tolerance: Values) -> Values:
    """True where the difference is allowed; infinities and NaN have to be the same."""
    wide_want, wide_have = want.astype(np.float64), have.astype(np.float64)
    near: Values = np.abs(wide_want - wide_have) <= tolerance
    return near | (wide_want == wide_have) | (np.isnan(wide_want) & np.isnan(wide_have))


def rules_for(module: Any, name: str, args: Sequence[Values]) -> list[Rule]:
    """The rule of each value that function `name` of `module` returns for `args`.

    Runs nothing when no float fold is in the program: all rules are bit-exact then. Else runs the
    reference, twice more for each such fold.
    """
    from cim_opt.simulators.fold_bounds import measured_rules

    return measured_rules(module, name, args)
