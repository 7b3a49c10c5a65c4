"""Canonicalisation of `pattern` operations; xDSL's `canonicalize` finds it through them.

    %y, %z = pattern.map(%a in %x : tensor<?xi32>, %b in %u : tensor<?xi32>)
        shared(%k = %three : i32) -> (tensor<?xi32>, tensor<?xi32>) {
      %p = arith.muli %a, %k : i32
      %q = arith.addi %a, %b : i32
      pattern.yield %p, %q : i32, i32
    }                                                              // %z has no use

becomes

    %y = pattern.map(%a in %x : tensor<?xi32>) -> tensor<?xi32> {
      %k = arith.constant 3 : i32
      %p = arith.muli %a, %k : i32
      pattern.yield %p : i32
    }

Lengths are kept: an operation that knows its length from its operands' types still does.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import (
    FilterBase,
    FoldOp,
    MapOp,
    PatternOp,
    vector_length,
)
from cim_opt.passes.pattern_bodies import (
    Parameters,
    build_like,
    copy_into,
    end_with,
    needs_of,
    new_block,
    yields_of,
)
from cim_opt.passes.pattern_compose import can_compose, compose

LARGEST_FOLDED_TENSOR = 64
"""Elements of a constant tensor that is still copied into element functions."""


def patterns_for(op_class: type[PatternOp]) -> tuple[RewritePattern, ...]:
    """The canonicalisation patterns of an operation of the dialect."""
    general = (ForwardResults(), FoldConstantOperands())
    if issubclass(op_class, FoldOp):
        return (*general, NarrowFold())
    if issubclass(op_class, MapOp):
        return (*general, Narrow(), ComposeMaps())
    return (*general, Narrow())


# -- results that are inputs, or each other -----------------------------------------------------


class ForwardResults(RewritePattern):
    """A map's result that is an input is the input; two results that are the same are one."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, PatternOp) or isinstance(op, FoldOp):
            return
        first = dict[SSAValue, SSAValue]()
        if isinstance(op, MapOp):
            first.update(zip(op.input_args(), op.inputs, strict=True))
        values = op.kept() if isinstance(op, FilterBase) else op.yielded()
        for value, out in zip(values, op.outs, strict=False):
            other = first.setdefault(value, out)
            if other is not out and other.type == out.type and out.first_use is not None:
                rewriter.replace_all_uses_with(out, other)


# -- dead results, unused and repeated operands --------------------------------------------------


class Narrow(RewritePattern):
    """Drops results without a use, operands without a use, and operands given twice."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, PatternOp) or isinstance(op, FoldOp):
            return
        live = _live_results(op)
        yielded = op.yielded()
        values = [yielded[index] for index in live]
        if isinstance(op, FilterBase):
            # The condition is yielded first, and the last result, the length, is not yielded.
            values = [yielded[0], *(yielded[index + 1] for index in live[:-1])]
        parameters = _needed_parameters(op, values)
        if len(live) == len(op.outs) and _are_all(op, parameters):
            return
        block = parameters.block()
        arguments = parameters.arguments_of(op, block)
        end_with(block, copy_into(block, op.body.block, arguments, values))
        types = [op.outs[index].type for index in live]
        new = build_like(
            op, list(parameters.inputs), list(parameters.shared), (), types, block, None
        )
        _replace(op, new, live, rewriter)


def _live_results(op: PatternOp) -> list[int]:
    """Results with a use; of a filter also its length and what says how that counts."""
    live = [index for index, out in enumerate(op.outs) if out.first_use is not None]
    if not isinstance(op, FilterBase):
        return live
    length = len(op.outs) - 1
    kept = op.kept()
    live = [index for index in live if index != length]
    # The length is that of the first kept vector, where a slice counts all its elements.
    counts_as = op.kept_length(kept[live[0]]) if live else 1
    if kept and counts_as != op.kept_length(kept[0]):
        live = [0, *live]
    return [*live, length]


def _needed_parameters(op: PatternOp, values: Sequence[SSAValue]) -> Parameters:
    """The operands that `values` of the body need, each once; at least one input."""
    needed = needs_of(op.body.block, values).arguments
    inputs = list(zip(op.inputs, op.input_args(), strict=True))
    kept = [pair for pair in inputs if pair[1] in needed]
    if all(vector_length(value) != op.input_length() for value, _ in kept):
        # Some input has to say how long the results are.
        anchor = next(pair for pair in inputs if vector_length(pair[0]) == op.input_length())
        kept = [pair for pair in inputs if pair in kept or pair is anchor]
    parameters = Parameters()
    for value, arg in kept:
        parameters.inputs.setdefault(value, arg)
    for value, arg in zip(op.shared, op.shared_args(), strict=True):
        if arg in needed:
            parameters.shared.setdefault(value, arg)
    return parameters


def _are_all(op: PatternOp, parameters: Parameters) -> bool:
    """True when `parameters` are the operands of `op` as it is."""
    kept = (len(parameters.inputs), len(parameters.shared))
    return kept == (len(op.inputs), len(op.shared))


def _replace(op: PatternOp, new: PatternOp, live: Sequence[int], rewriter: PatternRewriter) -> None:
    """Replaces `op` by `new`, whose results are the `live` ones of `op`."""
    results: list[SSAValue | None] = [None] * len(op.results)
    for index, result in zip(live, new.results, strict=True):
        results[index] = result
    rewriter.replace(op, new, results)


class NarrowFold(RewritePattern):
    """The same for reduce and scan: an accumulator goes when no result in use depends on it.

    Without a combine region the inputs are tied to the accumulators, one each, and go with them.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, FoldOp):
            return
        live = _live_accumulators(op)
        if not live:
            return
        values = [op.yielded()[index] for index in live]
        parameters = _needed_parameters(op, values)
        inputs: list[SSAValue] = list(parameters.inputs)
        if op.combine is None:
            inputs = [op.inputs[index] for index in live]
            if max(vector_length(value) for value in inputs) != op.input_length():
                return
        kept = (len(live), len(inputs), len(parameters.shared))
        if kept == (len(op.inits), len(op.inputs), len(op.shared)):
            return
        body = _narrow_body(op, live, inputs, parameters)
        combine = None if op.combine is None else _narrow_combine(op, op.combine.block, live)
        inits = [op.inits[index] for index in live]
        types = [op.outs[index].type for index in live]
        new = build_like(op, inputs, list(parameters.shared), inits, types, body, combine)
        _replace(op, new, live, rewriter)


def _live_accumulators(op: FoldOp) -> list[int]:
    """The accumulators with a result in use, and those that these depend on."""
    live = set[int]()
    todo = [index for index, out in enumerate(op.outs) if out.first_use is not None]
    while todo:
        index = todo.pop()
        if index not in live:
            live.add(index)
            todo.extend(_accumulators_used(op, index))
    return sorted(live)


def _accumulators_used(op: FoldOp, index: int) -> set[int]:
    """The accumulators that the next value of accumulator `index` is computed from."""
    count = len(op.inits)
    used = {arg.index for arg in needs_of(op.body.block, [op.yielded()[index]]).arguments}
    if op.combine is None:
        # Input k stands for a second accumulator k.
        return {position % count for position in used if position < 2 * count}
    block = op.combine.block
    joined = needs_of(block, [yields_of(block)[index]]).arguments
    return {position for position in used if position < count} | {
        arg.index % count for arg in joined
    }


def _narrow_body(
    op: FoldOp, live: Sequence[int], inputs: Sequence[SSAValue], parameters: Parameters
) -> Block:
    """The body of `op` for the `live` accumulators, these inputs and these shared operands."""
    accs = [op.accumulator_args()[index] for index in live]
    old_inputs: list[BlockArgument] = list(parameters.inputs.values())
    if op.combine is None:
        old_inputs = [op.input_args()[index] for index in live]
    like = [*accs, *old_inputs, *parameters.shared.values()]
    block = new_block([arg.type for arg in like], like)
    arguments: dict[SSAValue, SSAValue] = {}
    if op.combine is not None:
        arguments.update(parameters.arguments_of(op, block, len(live)))
    arguments |= _shared_arguments(op, parameters, block)
    arguments |= dict(zip(like, block.args, strict=True))
    values = [op.yielded()[index] for index in live]
    return end_with(block, copy_into(block, op.body.block, arguments, values))


def _shared_arguments(op: FoldOp, parameters: Parameters, block: Block) -> dict[SSAValue, SSAValue]:
    """What stands in `block`, whose last arguments they are, for the shared arguments of `op`."""
    start = len(block.args) - len(parameters.shared)
    by_value = dict(zip(parameters.shared, block.args[start:], strict=True))
    return {
        arg: by_value[value]
        for value, arg in zip(op.shared, op.shared_args(), strict=True)
        if value in by_value
    }


def _narrow_combine(op: FoldOp, source: Block, live: Sequence[int]) -> Block:
    """The combine block `source` of `op` for the `live` accumulators."""
    count = len(op.inits)
    positions = [*live, *(count + index for index in live)]
    like = [source.args[position] for position in positions]
    block = new_block([arg.type for arg in like], like)
    arguments: dict[SSAValue, SSAValue] = dict(zip(like, block.args, strict=True))
    values = [yields_of(source)[index] for index in live]
    return end_with(block, copy_into(block, source, arguments, values))


# -- constants -----------------------------------------------------------------------------------


class FoldConstantOperands(RewritePattern):
    """A shared operand that is a constant becomes one inside the element function.

    A lowering then sees what it multiplies by. Tensors of up to 64 elements count.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, PatternOp) and any(map(is_small_constant, op.shared)):
            new = fold_constants(op)
            rewriter.replace(op, new, new.results)


def is_small_constant(value: SSAValue) -> bool:
    """True for a scalar `arith.constant`, and for one of a tensor of up to 64 elements."""
    if not isinstance(value.owner, ConstantOp):
        return False
    attr = value.owner.value
    if not isa(attr, DenseIntOrFPElementsAttr):
        return not isa(value.type, TensorType)
    return len(attr) <= LARGEST_FOLDED_TENSOR


def fold_constants(op: PatternOp) -> PatternOp:
    """A new operation that is `op` with its constant shared operands inside its body."""
    accs = op.body.block.args[: len(op.accumulators())]
    rest = [
        (value, arg)
        for value, arg in zip(op.shared, op.shared_args(), strict=True)
        if not is_small_constant(value)
    ]
    like = [*accs, *op.input_args(), *(arg for _, arg in rest)]
    block = new_block([arg.type for arg in like], like)
    arguments: dict[SSAValue, SSAValue] = dict(zip(like, block.args, strict=True))
    for value, arg in zip(op.shared, op.shared_args(), strict=True):
        if is_small_constant(value):
            assert isinstance(value.owner, ConstantOp)
            constant = value.owner.clone()
            block.add_op(constant)
            constant.result.name_hint = arg.name_hint
            arguments[arg] = constant.result
    end_with(block, copy_into(block, op.body.block, arguments, op.yielded()))
    combine = None
    if isinstance(op, FoldOp) and op.combine is not None:
        combine = _narrow_combine(op, op.combine.block, range(len(op.inits)))
    return build_like(
        op,
        op.inputs,
        [value for value, _ in rest],
        op.accumulators(),
        [out.type for out in op.outs],
        block,
        combine,
    )


# -- map after map -------------------------------------------------------------------------------


class ComposeMaps(RewritePattern):
    """A map whose results only one other map reads becomes part of that one."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, MapOp):
            return
        for value in op.inputs:
            producer = value.owner
            if not isinstance(producer, MapOp) or only_user(producer) is not op:
                continue
            if can_compose(producer, op):
                new = compose(producer, op)
                rewriter.replace(op, new, new.results)
                return


def only_user(op: Operation) -> Operation | None:
    """The operation that has all uses of the results of `op`, None when there is not just one."""
    users = {use.operation for result in op.results for use in result.uses}
    return users.pop() if len(users) == 1 else None
