"""Joining a pattern with the map before it, or a window or group with the map after it.

%y = pattern.map(%a in %x : ...) { m }            %r = pattern.reduce(%a in %x : ...)
%r = pattern.reduce(%b in %y : ...)       ->          init(...) { f(acc, m(a)) }
    init(...) { f(acc, b) }                           combine(%l, %r) { f(l, r) }
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, OpResult, SSAValue

from cim_opt.dialects.pattern import (
    FilterOp,
    FoldOp,
    GroupOp,
    MapOp,
    PatternOp,
    WindowGroupOp,
    WindowOp,
)
from cim_opt.passes.pattern_bodies import (
    Parameters,
    build_like,
    combine_block_for,
    copy_into,
    end_with,
    new_block,
    static_length,
    yields_of,
)
from cim_opt.passes.pattern_neutral import neutral_elements

Producer = MapOp | WindowOp | GroupOp | WindowGroupOp


def can_compose(producer: PatternOp, consumer: PatternOp) -> bool:
    """True when `compose(producer, consumer)` is defined; says nothing of who else uses it.

    A map goes into maps, filters, and those reduces and scans that can get a combine region. A
    window or a group takes the map after it in, if that reads nothing else.
    """
    made = set(producer.results)
    if not made.intersection(consumer.inputs) or made.intersection(consumer.shared):
        return False
    if isinstance(producer, MapOp):
        return _takes_elements(consumer) and _length_is_kept(producer, consumer)
    if not isinstance(producer, Producer) or not isinstance(consumer, MapOp):
        return False
    return made.issuperset(consumer.inputs)


def _takes_elements(consumer: PatternOp) -> bool:
    if isinstance(consumer, FoldOp):
        return can_have_combine(consumer)
    return isinstance(consumer, MapOp | FilterOp)


def can_have_combine(fold: FoldOp) -> bool:
    """True when `fold` has a combine region, or its body can become one.

    That makes `init` its neutral element by contract, so the real one must be known; and a
    combine region takes no shared operands.
    """
    if fold.combine is not None:
        return True
    return not fold.shared and neutral_elements(fold) is not None


def combine_of(fold: FoldOp) -> Block:
    """A new combine block for `fold`: a copy of its own, or of its body, that combines."""
    source = fold.combine_block()
    if fold.combine is None:
        block = combine_block_for(source.args)
    else:
        block = new_block([arg.type for arg in source.args], source.args)
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args, block.args, strict=True))
    return end_with(block, copy_into(block, source, mapping, yields_of(source)))


def _length_is_kept(producer: MapOp, consumer: PatternOp) -> bool:
    """True when the joined operation knows the length that `consumer` knows."""
    others = [value for value in consumer.inputs if value.owner is not producer]
    length = static_length([*others, *producer.inputs])
    return length is not None and consumer.input_length() in (length, DYNAMIC_INDEX)


def compose(producer: PatternOp, consumer: PatternOp) -> PatternOp:
    """A new operation that does what `producer` and then `consumer` do, with the latter's results.

    `can_compose` holds. Inputs and shared operands that are the same value become one.
    """
    whole = consumer if isinstance(producer, MapOp) else producer
    parameters = Parameters()
    parameters.add(producer)
    parameters.add(consumer, leave_out=producer)
    accs = consumer.body.block.args[: len(consumer.accumulators())]
    block = parameters.block(accs)

    used = sorted({_index(v) for v in consumer.inputs if v.owner is producer})
    made = copy_into(
        block,
        producer.body.block,
        parameters.arguments_of(producer, block, len(accs)),
        [producer.yielded()[index] for index in used],
    )
    by_result = dict(zip(used, made, strict=True))
    arguments = parameters.arguments_of(consumer, block, len(accs))
    arguments |= dict(zip(accs, block.args[: len(accs)], strict=True))
    for value, arg in zip(consumer.inputs, consumer.input_args(), strict=True):
        if value.owner is producer:
            arguments[arg] = by_result[_index(value)]
    end_with(block, copy_into(block, consumer.body.block, arguments, consumer.yielded()))

    return build_like(
        whole,
        list(parameters.inputs),
        list(parameters.shared),
        consumer.accumulators(),
        [value.type for value in consumer.outs],
        block,
        combine_of(consumer) if isinstance(consumer, FoldOp) else None,
    )


def _index(value: SSAValue) -> int:
    assert isinstance(value, OpResult)
    return value.index
