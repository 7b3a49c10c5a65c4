"""Strength reduction: sums and multiples that are linear in a loop's induction variable.

    scf.for %i = %c0 to %n step %c1 {
      %r = arith.muli %i, %c24 : index
      %at = arith.addi %base, %r : index  // what is used: one addition to it in each iteration

Such a value starts before the loop and takes one addition an iteration, whatever it is made of,
and where the induction variable has no other use the loop counts down. It is taken for a loop where
that saves instructions. A product with a number that is known at run time only stays a call, as in
measured programs; a kernel that wants an addition instead carries the sum.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from cim_opt.cost import upmem_instructions as cost
from cim_opt.simulators.upmem_addresses import constant_of


@dataclass(frozen=True)
class Reduction:
    """What strength reduction makes of a loop.

    `taken` are the instructions of the operations that it changes; `before` those that it puts in
    front of the loop; `frees` says that nothing else uses the induction variable.
    """

    taken: dict[Operation, int]
    before: int
    frees: bool


def reduction_of(op: scf.ForOp, absorbed: Collection[Operation]) -> Reduction | None:
    """Strength reduction of a loop; None where it saves nothing.

    `absorbed` are operations that only make addresses and take no instructions anyway.
    """
    body = op.body.block
    members = [inner for inner in body.ops if inner not in absorbed]
    linear: dict[Operation, int] = {}
    for inner in members:
        plain = _plain_cost(inner, op, linear)
        if plain is not None:
            linear[inner] = plain
    taken = {inner: 0 if _feeds(inner, linear, absorbed) else 1 for inner in linear}
    frees = all(use.operation in linear or use.operation in absorbed for use in body.args[0].uses)
    ends = sum(taken.values())
    saved = sum(linear.values()) - ends + (1 if frees else 0)
    return Reduction(taken, ends, frees) if linear and saved > 0 else None


def _feeds(op: Operation, linear: Collection[Operation], absorbed: Collection[Operation]) -> bool:
    """True when only other members use the result."""
    uses = op.results[0].uses
    return all(use.operation in linear or use.operation in absorbed for use in uses)


def _plain_cost(op: Operation, loop: scf.ForOp, linear: Collection[Operation]) -> int | None:
    """What a linear operation takes without reduction; None for an operation that is not linear."""
    if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.ShLIOp):
        return None
    if not isinstance(op.result.type, IndexType):
        return None
    body = loop.body.block
    moving = [_moves(operand, body, linear) for operand in op.operands]
    fixed = [_is_outside(operand, body) for operand in op.operands]
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        return (
            1 if any(moving) and all(m or f for m, f in zip(moving, fixed, strict=True)) else None
        )
    if isinstance(op, arith.ShLIOp):
        return 1 if moving[0] and constant_of(op.rhs) is not None else None
    if not (moving[0] and fixed[1]) and not (moving[1] and fixed[0]):
        return None
    factor = constant_of(op.operands[1] if moving[0] else op.operands[0])
    return None if factor is None else int(cost.mul_constant(32, factor))


def _moves(value: SSAValue, body: Block, linear: Collection[Operation]) -> bool:
    return value is body.args[0] or (isinstance(value, OpResult) and value.op in linear)


def _is_outside(value: SSAValue, body: Block) -> bool:
    owner = value.owner
    return (owner if isinstance(owner, Block) else owner.parent_block()) is not body
