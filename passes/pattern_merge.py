"""Joining two patterns that stand side by side over the same inputs into one.

    %s = pattern.reduce(%x in %a) init(%p = %zero) { f(p, x) }
    %t = pattern.reduce(%y in %a) init(%q = %one) { g(q, y) }

becomes

    %s, %t = pattern.reduce(%x in %a) init(%p = %zero, %q = %one) { f(p, x), g(q, x) }
        combine(%l, %m, %r, %n) { f(l, r), g(m, n) }
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from cim_opt.dialects.pattern import FoldOp, MapOp, PatternOp, ReduceOp
from cim_opt.passes.pattern_bodies import (
    Parameters,
    build_like,
    combine_block_for,
    copy_into,
    end_with,
    static_length,
    yields_of,
)
from cim_opt.passes.pattern_compose import can_have_combine
from cim_opt.passes.pattern_neutral import neutral_elements


def can_merge(first: PatternOp, second: PatternOp) -> bool:
    """True when `merge(first, second)` is defined and there is a place in their block for it."""
    if not _have_same_inputs(first, second) or place_of_merged(first, second) is None:
        return False
    if static_length([*first.inputs, *second.inputs]) is None:
        return False
    return isinstance(first, MapOp) or _folds_fit(first, second)


def _have_same_inputs(first: PatternOp, second: PatternOp) -> bool:
    """True when the inputs are the same; for reduces, when one has all inputs of the other."""
    ours, theirs = set(first.inputs), set(second.inputs)
    if isinstance(first, MapOp) and isinstance(second, MapOp):
        return ours == theirs
    if isinstance(first, ReduceOp) and isinstance(second, ReduceOp):
        return ours <= theirs or theirs <= ours
    return False


def _folds_fit(first: PatternOp, second: PatternOp) -> bool:
    """True when one combine region can serve both.

    Their neutral elements are read off it together: known for both or by contract for both, or
    an `init` that is not neutral would be taken for neutral.
    """
    if not isinstance(first, FoldOp) or not isinstance(second, FoldOp):
        return False
    if first.tensor_accumulators or second.tensor_accumulators:
        return False
    if not can_have_combine(first) or not can_have_combine(second):
        return False
    return (neutral_elements(first) is None) == (neutral_elements(second) is None)


def place_of_merged(first: PatternOp, second: PatternOp) -> InsertPoint | None:
    """Where one operation can stand for both, `first` coming first in their block."""
    if first.parent is None or first.parent is not second.parent:
        return None
    if not any(_comes_before(user, second) for user in _users_in_block(first)):
        return InsertPoint.before(second)
    if all(_is_defined_before(value, first) for value in second.operands):
        return InsertPoint.before(first)
    return None


def _users_in_block(op: Operation) -> set[Operation]:
    assert op.parent is not None
    users = {use.operation for result in op.results for use in result.uses}
    outer = {op.parent.find_ancestor_op_in_block(user) for user in users}
    return {user for user in outer if user is not None}


def _comes_before(op: Operation, other: Operation) -> bool:
    """True when `op` is `other` or stands before it in their block."""
    return op is other or op.is_before_in_block(other)


def _is_defined_before(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    if isinstance(owner, Block) or owner.parent is not op.parent:
        return True
    return owner is not op and owner.is_before_in_block(op)


def merge(first: PatternOp, second: PatternOp) -> PatternOp:
    """A new operation with the results of `first` and then of `second`; `can_merge` holds."""
    parameters = Parameters()
    parameters.add(first)
    parameters.add(second)
    accs = [
        *first.body.block.args[: len(first.accumulators())],
        *second.body.block.args[: len(second.accumulators())],
    ]
    body = parameters.block(accs)
    arguments: dict[SSAValue, SSAValue] = dict(zip(accs, body.args[: len(accs)], strict=True))
    values = list[SSAValue]()
    for op in (first, second):
        arguments |= parameters.arguments_of(op, body, len(accs))
        values += copy_into(body, op.body.block, arguments, op.yielded())
    return build_like(
        first,
        list(parameters.inputs),
        list(parameters.shared),
        [*first.accumulators(), *second.accumulators()],
        [out.type for out in [*first.outs, *second.outs]],
        end_with(body, values),
        _merged_combine(first, second),
    )


def _merged_combine(first: PatternOp, second: PatternOp) -> Block | None:
    if not isinstance(first, FoldOp) or not isinstance(second, FoldOp):
        return None
    blocks = [first.combine_block(), second.combine_block()]
    halves = [len(first.inits), len(second.inits)]
    left = [arg for block, half in zip(blocks, halves, strict=True) for arg in block.args[:half]]
    right = [arg for block, half in zip(blocks, halves, strict=True) for arg in block.args[half:]]
    merged = combine_block_for([*left, *right])
    arguments: dict[SSAValue, SSAValue] = dict(zip([*left, *right], merged.args, strict=True))
    values = list[SSAValue]()
    for block in blocks:
        values += copy_into(merged, block, arguments, yields_of(block))
    return end_with(merged, values)
