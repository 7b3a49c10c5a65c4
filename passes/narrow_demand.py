"""How many low bits of each value in a block anyone looks at."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.passes.narrow_policy import LOW_BITS


def demanded_bits(block: Block, yielded: Mapping[int, int]) -> dict[SSAValue, int]:
    """By integer value made in `block`: low bits that matter, where these are not all of them.

    `yielded` says how many bits of the operands of the terminator matter, by their number; the
    others matter whole.
    """
    bits: dict[SSAValue, int] = {}
    for op in reversed(list(block.ops)):
        for result in op.results:
            if not isa(result.type, IntegerType):
                continue
            width = result.type.width.data
            most = max(
                (
                    _by_use(use.operation, use.index, bits, block, yielded, width)
                    for use in result.uses
                ),
                default=width,
            )
            if most < width:
                bits[result] = most
    return bits


def _by_use(
    user: Operation,
    number: int,
    bits: Mapping[SSAValue, int],
    block: Block,
    yielded: Mapping[int, int],
    width: int,
) -> int:
    """Low bits of operand `number` of `user` that matter, of `width`."""
    if user.parent is not block:
        return width
    if user is block.last_op:
        return min(width, yielded.get(number, width))
    passes_on = (
        isinstance(user, LOW_BITS)
        or (isinstance(user, arith.ShLIOp) and number == 0)
        or (isinstance(user, arith.SelectOp) and number > 0)
        or isinstance(user, arith.TruncIOp)
    )
    if not passes_on:
        return width
    result = user.results[0]
    assert isa(result.type, IntegerType)
    return bits.get(result, result.type.width.data)
