"""Reading the usual forms of folds: an accumulator that each step joins with one value.

%n = arith.addi %acc, %v : i32            // v does not depend on accumulators
pattern.yield %n : i32
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.ir import Block, Operation, SSAValue

from cim_opt.dialects.pattern import FoldOp
from cim_opt.passes.pattern_bodies import needs_of, yields_of

COMBINERS: tuple[type[Operation], ...] = (
    arith.AddiOp,
    arith.MuliOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
)
"""Associative and commutative operations on integers."""


@dataclass(frozen=True)
class Step:
    """One step of an accumulator: `kind(acc, value)`; partial results are joined by `kind` too."""

    kind: type[Operation]
    value: SSAValue


def simple_step(op: FoldOp, number: int) -> Step | None:
    """The step of scalar accumulator `number`, None when it has another form.

    Without a combine region the value is the accumulator's own input.
    """
    yielded = op.yielded()[number]
    step = _joins(yielded, op.accumulator_args()[number])
    if step is None or not _combines_by(op, number, step.kind):
        return None
    if op.combine is None:
        return step if step.value is op.input_args()[number] else None
    return step if _is_free_of_accumulators(op, step.value) else None


def count_step(op: FoldOp, number: int) -> Step | None:
    """The same for one element of tensor accumulator `number`, as of a histogram.

    The accumulator is read and written once, at one position.
    """
    insert, acc = op.yielded()[number].owner, op.accumulator_args()[number]
    if not isinstance(insert, tensor.InsertOp) or insert.dest is not acc:
        return None
    for use in acc.uses:
        old = use.operation
        if not isinstance(old, tensor.ExtractOp) or list(old.indices) != list(insert.indices):
            continue
        step = _joins(insert.scalar, old.result)
        if step is not None and _combines_by(op, number, step.kind):
            return step if _is_free_of_accumulators(op, step.value) else None
    return None


def _joins(value: SSAValue, acc: SSAValue) -> Step | None:
    """`value` as one operation on `acc` and something else."""
    owner = value.owner
    if not isinstance(owner, COMBINERS):
        return None
    others = [operand for operand in owner.operands if operand is not acc]
    return Step(type(owner), others[0]) if len(others) == 1 else None


def _combines_by(op: FoldOp, number: int, kind: type[Operation]) -> bool:
    """True when partial results of accumulator `number` are joined by `kind` alone."""
    if op.combine is None:
        return True
    block, count = op.combine.block, len(op.inits)
    owner = yields_of(block)[number].owner
    halves = {block.args[number], block.args[count + number]}
    return isinstance(owner, kind) and set(owner.operands) == halves


def _is_free_of_accumulators(op: FoldOp, value: SSAValue) -> bool:
    block: Block = op.body.block
    return not needs_of(block, [value]).arguments.intersection(op.accumulator_args())
