"""Operations of the host on values whose data are not known: see simdram_abstract.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, PatternOp, ReduceOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.elementwise import dtype_of
from cim_opt.simulators.simdram_abstract import (
    Interval,
    Number,
    computed,
    ends,
    limits,
    unknown,
    vector,
)

Values = Any


def elementwise(op: Operation, args: tuple[Values, ...], dtype: np.dtype[Any]) -> Values:
    """The result of an operation on numbers or whole tensors, at least one of them unknown."""
    shaped = [value for value in args if np.ndim(value)]
    if shaped:
        return vector(tuple(shaped[0].shape), dtype)
    if op.name == "arith.cmpi":
        return _compared(op, args)
    if op.name == "arith.select":
        return _chosen(args, dtype)
    if dtype.kind == "f" or any(np.dtype(value.dtype).kind == "f" for value in args):
        return unknown(dtype)
    return computed(op.name, args, dtype)


def _compared(op: Operation, args: tuple[Number, ...]) -> Values:
    """A comparison; it is only known to depend on data or on a round."""
    of_data = any(isinstance(value, Interval) and value.of_data for value in args)
    return Interval(0, 1, np.dtype(np.bool_), of_data)


def _chosen(args: tuple[Number, ...], dtype: np.dtype[Any]) -> Values:
    choice, left, right = args
    if not isinstance(choice, Interval):
        return left if choice else right
    (low, high), (low2, high2) = ends(left), ends(right)
    of_data = any(isinstance(value, Interval) and value.of_data for value in args)
    return Interval(min(low, low2), max(high, high2), dtype, of_data)


def extremes(source: Any) -> tuple[int, int]:
    """The least and the greatest element of an array, or of its type."""
    if source.dtype.kind == "f" or not source.size:
        return limits(source.dtype)
    return int(source.min()), int(source.max())


def host_pattern(op: PatternOp, args: tuple[Values, ...]) -> Sequence[Values]:
    """Results of a pattern that the host computes: lengths follow from those of the inputs."""
    if isinstance(op, FilterBase):
        raise refused(op)
    inputs = args[: len(op.inputs)]
    owners = max(0, len(inputs[0]) - op.window_size + 1) // op.group_size
    results: list[Values] = []
    for number, out in enumerate(op.outs):
        dtype = dtype_of(out.type)
        if not isinstance(op, ReduceOp):
            results.append(vector((owners,), dtype))
        elif isa(out.type, TensorType):
            start = args[len(op.inputs) + number]
            results.append(vector(tuple(start.shape), dtype))
        else:
            results.append(unknown(dtype))
    return results


def refused(op: Operation) -> UserError:
    """What is said of an operation whose result has a length that depends on data."""
    return UserError(
        f"what '{op.name}' keeps depends on the program's data",
        "counting knows the lengths of the arguments and nothing of their elements",
        "run it on the simulator",
        location_of(op),
    )
