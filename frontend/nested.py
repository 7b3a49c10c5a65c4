"""Patterns inside element functions: over the slices of a window or group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cim_opt.frontend.errors import fail
from cim_opt.frontend.operators import with_slices
from cim_opt.frontend.patterns import Fold, Result, Stage, build_elementwise, build_fold
from cim_opt.frontend.regions import Function
from cim_opt.frontend.scope import Scope, innermost
from cim_opt.frontend.sizes import check_size, checked_owned
from cim_opt.frontend.values import Scalar, Slice


def nested(
    pattern: str,
    f: Function,
    operands: Sequence[Any],
    *,
    size: int | None = None,
    window: int = 1,
    **options: Any,
) -> Any:
    """A map, reduce, scan, window or group of slices; `operands` are slices of one length.

    Gives Scalars for a reduce and Slices for the others, a tuple when there are several.
    """
    slices = with_slices(operands)
    _check_slices(slices)
    scope = innermost(slices)
    stage = Stage(scope, f, slices, [True] * len(slices))
    if pattern in ("reduce", "scan"):
        return _wrapped(scope, build_fold(stage, Fold(scan=pattern == "scan", **options)))
    if pattern == "window":
        stage = Stage(scope, f, slices, [True] * len(slices), window=size)
    if pattern == "group":
        wide = None if window == 1 else window
        stage = Stage(scope, f, slices, [True] * len(slices), window=wide, group=size)
    _check_sizes(stage)
    return _wrapped(scope, build_elementwise(stage))


def _check_slices(slices: Sequence[Any]) -> None:
    for value in slices:
        if not isinstance(value, Slice):
            fail(
                f"a pattern of a slice gets a {type(value).__name__}",
                "it takes slices and small arrays",
                "the function sees other values by their names, they need not be passed",
            )
    lengths = sorted({value.length for value in slices})
    if len(lengths) > 1:
        fail(
            f"slices of {' and '.join(map(str, lengths))} elements meet",
            "slices that are computed with have one length",
            "take a part, such as s[:4]",
        )


def _check_sizes(stage: Stage) -> None:
    for name, size in (("window", stage.window), ("group", stage.group)):
        if size is not None:
            check_size(name, size)
    checked_owned(stage.inputs[0].length, stage.window, stage.group, fixed=True)


def _wrapped(scope: Scope, results: Sequence[Result]) -> Any:
    values = [
        Scalar(scope, r.ssa, r.element)
        if r.length is None
        else Slice(scope, r.ssa, r.element, r.length)
        for r in results
    ]
    return values[0] if len(values) == 1 else tuple(values)
