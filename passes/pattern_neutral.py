"""The neutral element of a fold, read off the function that combines two accumulators.

Partial folds (one a tasklet, one a DPU) start from the neutral element, so that `init` enters the
result exactly once:

    %sum = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %ten : i32) {
      %s = arith.addi %acc, %x : i32
      pattern.yield %s : i32
    }

has the neutral element 0: `combine(0, x) == x == combine(x, 0)`, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from cim_opt.dialects.pattern import FoldOp, YieldOp

Neutral = Callable[[int], int | float]
"""Neutral element of an operation on elements of this many bits."""


def _largest_signed(width: int) -> int:
    return (1 << (width - 1)) - 1


def _smallest_signed(width: int) -> int:
    return 1 if width == 1 else -(1 << (width - 1))


def _all_ones(width: int) -> int:
    return 1 if width == 1 else -1


# -0.0 + x is x for every x, and 0.0 + -0.0 is not: the neutral element of a sum is -0.0.
# minnumf and maxnumf drop a NaN when the other operand is a number, so theirs is NaN.
_NEUTRALS: dict[type[Operation], Neutral] = {
    arith.AddiOp: lambda width: 0,
    arith.MuliOp: lambda width: 1,
    arith.AndIOp: _all_ones,
    arith.OrIOp: lambda width: 0,
    arith.XOrIOp: lambda width: 0,
    arith.MinSIOp: _largest_signed,
    arith.MaxSIOp: _smallest_signed,
    arith.MinUIOp: _all_ones,
    arith.MaxUIOp: lambda width: 0,
    arith.AddfOp: lambda width: -0.0,
    arith.MulfOp: lambda width: 1.0,
    arith.MinimumfOp: lambda width: inf,
    arith.MaximumfOp: lambda width: -inf,
    arith.MinnumfOp: lambda width: nan,
    arith.MaxnumfOp: lambda width: nan,
}


def neutral_elements(op: FoldOp) -> tuple[int | float, ...] | None:
    """One neutral element an accumulator of `op`, or None when one of them cannot be told.

    It can be told when the combining function (the combine region, else the body) gives
    accumulator k as `f(lhs_k, rhs_k)` or `f(rhs_k, lhs_k)`, f being one of addi, muli, andi, ori,
    xori, minsi, maxsi, minui, maxui, addf, mulf, minimumf, maximumf, minnumf, maxnumf. For a
    tensor accumulator it is the neutral value of every element.

    Integers are signed numbers of the accumulator's width (all bits set is -1), except that the
    true of i1 is 1. Floats include -0.0, infinities and NaN.
    """
    block = op.combine_block()
    count = len(op.inits)
    last = block.last_op
    if not isinstance(last, YieldOp) or len(last.arguments) != count:
        return None
    neutrals = list[int | float]()
    for index, value in enumerate(last.arguments):
        neutral = _neutral_of(value, block.args[index], block.args[count + index])
        if neutral is None:
            return None
        neutrals.append(neutral)
    return tuple(neutrals)


def _neutral_of(value: SSAValue, lhs: SSAValue, rhs: SSAValue) -> int | float | None:
    """Neutral element of the operation that joins `lhs` and `rhs` to `value`."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    neutral = _NEUTRALS.get(type(owner))
    if neutral is None or set(owner.operands) != {lhs, rhs}:
        return None
    return neutral(_width(value.type))


def _width(attr: Attribute) -> int:
    return attr.bitwidth if isinstance(attr, IntegerType) else 32
