"""`pattern-fuse`: fewer kernels, and no round trip through memory between them.

    %p = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
      %m = arith.muli %x, %y : i32
      pattern.yield %m : i32
    }
    %dot = pattern.reduce(%v in %p : tensor<?xi32>) init(%acc = %zero : i32) {
      %s = arith.addi %acc, %v : i32
      pattern.yield %s : i32
    }

becomes

    %dot = pattern.reduce(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
        init(%acc = %zero : i32) {
      %m = arith.muli %x, %y : i32
      %s = arith.addi %acc, %m : i32
      pattern.yield %s : i32
    } combine(%l, %r) {
      %s = arith.addi %l, %r : i32
      pattern.yield %s : i32
    }

After constants that are shared operands went into the bodies, three steps, each one ordered walk:

1. two reduces side by side become one when one of them reads all the inputs of the other and their
   accumulators are scalars: the inputs are read once, and a map before them has one consumer;
2. producer and consumer: a map goes into the map, filter, reduce or scan that reads it, and a map
   into the window, group or window_group before it. Several consumers take a map in if each of
   them can, its element function is cheap (at most 4 operations), and no more bytes are moved than
   before;
3. two maps over the same inputs become one, and two reduces as in step 1.

What stays as it is: a map whose result is returned or read as a shared operand; a reduce or scan
without a combine region whose neutral element is unknown, or that has shared operands other than
constants; a map before a window or group (each element would be computed once a window); what
follows a filter or scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.common_subexpression_elimination import cse

from cim_opt.dialects.pattern import (
    FilterBase,
    FoldOp,
    GroupOp,
    MapOp,
    PatternOp,
    ReduceOp,
    ScanOp,
    vector_length,
    vector_type,
)
from cim_opt.passes.pattern_canonicalize import fold_constants, is_small_constant
from cim_opt.passes.pattern_compose import can_compose, compose
from cim_opt.passes.pattern_merge import can_merge, merge, place_of_merged

CHEAP = 4
"""Operations, less constants, of an element function that several consumers may each compute."""


LONG_ROW = 512
"""Elements of a group from which on a row is more work than what is done with its result."""


@dataclass(frozen=True)
class PatternFusePass(ModulePass):
    """Joins chains of patterns into one; see the module's documentation.

    With `stages=false` only those inside of element functions.
    """

    name = "pattern-fuse"

    stages: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in _blocks_of(op):
            if self.stages:
                _fuse_block(block)
                continue
            for stage in _patterns_in(block):
                _fuse_block(stage.body.block)


def _fuse_block(block: Block) -> None:
    """Fuses the patterns of a block, then those nested in their element functions."""
    _fold_constants(block)
    _merge_all(block, (ReduceOp,))
    _compose_all(block)
    _merge_all(block, (MapOp, ReduceOp))
    for op in _patterns_in(block):
        _fuse_block(op.body.block)


def _blocks_of(op: Operation) -> list[Block]:
    """All blocks inside `op` that are not in an element function."""
    blocks = list[Block]()
    for region in op.regions:
        for block in region.blocks:
            blocks.append(block)
            for inner in block.ops:
                if not isinstance(inner, PatternOp):
                    blocks.extend(_blocks_of(inner))
    return blocks


def _patterns_in(block: Block) -> list[PatternOp]:
    return [op for op in block.ops if isinstance(op, PatternOp)]


def _replace(old: PatternOp, new: PatternOp) -> None:
    """Puts `new` in the place of `old`, and computes twice nothing that both parts of it do."""
    Rewriter.replace_op(old, new)
    cse(new.body)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def _fold_constants(block: Block) -> None:
    """Puts constant shared operands into the bodies: a combine region takes no operands."""
    for op in _patterns_in(block):
        constants = dict.fromkeys(value.owner for value in op.shared if is_small_constant(value))
        if not constants:
            continue
        _replace(op, fold_constants(op))
        for constant in constants:
            assert isinstance(constant, ConstantOp)
            if constant.result.first_use is None:
                _erase(constant)


# -- producer and consumer ------------------------------------------------------------------------


def _compose_all(block: Block) -> None:
    op = block.first_op
    while op is not None:
        # Consumers come later in the block, and what replaces them stands in their place.
        goes = isinstance(op, PatternOp) and _compose_with_users(op)
        following = op.next_op
        if goes:
            _erase(op)
        op = following


def _compose_with_users(producer: PatternOp) -> bool:
    """Puts `producer` into all that read it, if that is possible and pays; True if it did."""
    users = list(dict.fromkeys(use.operation for out in producer.results for use in out.uses))
    consumers = [user for user in users if isinstance(user, PatternOp)]
    if not users or len(consumers) < len(users):
        return False
    if any(consumer.parent is not producer.parent for consumer in consumers):
        return False
    if not all(can_compose(producer, consumer) for consumer in consumers):
        return False
    if any(_tells_a_length(producer, consumer) for consumer in consumers):
        return False
    if isinstance(producer, GroupOp) and any(_narrows(producer, user) for user in consumers):
        return False
    if len(consumers) > 1 and not _pays_to_repeat(producer, consumers):
        return False
    for consumer in consumers:
        _replace(consumer, compose(producer, consumer))
    return True


def _tells_a_length(producer: PatternOp, consumer: PatternOp) -> bool:
    """True when a scan of unknown length would get inputs of a known one, and so another type."""
    known = [vector_length(value) for value in producer.inputs if vector_length(value) >= 0]
    return isinstance(consumer, ScanOp) and bool(known) and vector_length(consumer.outs[0]) < 0


def _narrows(producer: GroupOp, consumer: PatternOp) -> bool:
    """True when a group of long rows would get narrower results.

    Results come a few a processor, and each processor writes whole granules of them: of narrow ones
    so many that some processors get no rows.
    """
    if producer.group_size < LONG_ROW or isinstance(consumer, FoldOp | FilterBase):
        return False
    return _bytes_of(set(consumer.outs)) < _bytes_of(set(producer.outs))


def _pays_to_repeat(producer: PatternOp, consumers: Sequence[PatternOp]) -> bool:
    """True when each of `consumers` may as well compute `producer`: few operations, few bytes."""
    work = [op for op in producer.body.walk() if not isinstance(op, ConstantOp)]
    if not isinstance(producer, MapOp) or len(work) - 1 > CHEAP:  # the yield is no work
        return False
    reads = _bytes_of(set(producer.inputs))
    results = set(producer.results)
    read_back = sum(_bytes_of(results.intersection(op.inputs)) for op in consumers)
    already_read = sum(_bytes_of(set(producer.inputs).intersection(op.inputs)) for op in consumers)
    written = _bytes_of(results)
    return reads * len(consumers) - already_read <= reads + written + read_back


def _bytes_of(vectors: AbstractSet[SSAValue]) -> int:
    """Bytes that one element of each of `vectors` takes."""
    total = 0
    for value in vectors:
        element = vector_type(value).element_type
        assert isinstance(element, FixedBitwidthType)
        total += max(1, element.bitwidth // 8)
    return total


# -- side by side ---------------------------------------------------------------------------------


def _merge_all(block: Block, kinds: tuple[type[PatternOp], ...]) -> None:
    earlier = list[PatternOp]()
    for op in _patterns_in(block):
        if not isinstance(op, kinds):
            continue
        partner = next((other for other in earlier if can_merge(other, op)), None)
        if partner is None:
            earlier.append(op)
            continue
        earlier[earlier.index(partner)] = _merge_in_place(partner, op)


def _merge_in_place(first: PatternOp, second: PatternOp) -> PatternOp:
    place = place_of_merged(first, second)
    assert place is not None
    merged = merge(first, second)
    Rewriter.insert_op(merged, place)
    for old, new in zip([*first.results, *second.results], merged.results, strict=True):
        old.replace_all_uses_with(new)
    _erase(first)
    _erase(second)
    cse(merged.body)
    return merged
