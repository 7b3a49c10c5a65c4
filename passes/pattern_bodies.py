"""Building pattern operations out of parts of others: what the rewrites of `pattern` share.

A rewrite never edits an element function. It makes a new block, copies what the wanted results
need into it, and builds a new operation around it, so that nothing half done is ever attached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from cim_opt.dialects.pattern import FoldOp, PatternOp, YieldOp, vector_length


@dataclass
class Needs:
    """What some values in a block are computed from: operations and arguments of that block."""

    operations: set[Operation] = field(default_factory=set[Operation])
    arguments: set[BlockArgument] = field(default_factory=set[BlockArgument])


def needs_of(block: Block, values: Iterable[SSAValue]) -> Needs:
    """The operations directly in `block`, and its arguments, that `values` are computed from."""
    needs = Needs()
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, BlockArgument):
            if value.block is block:
                needs.arguments.add(value)
            continue
        owner = value.owner
        assert isinstance(owner, Operation)
        outer = block.find_ancestor_op_in_block(owner)
        if outer is None or outer in needs.operations:
            continue
        needs.operations.add(outer)
        todo.extend(operand for op in outer.walk() for operand in op.operands)
    return needs


def yields_of(block: Block) -> Sequence[SSAValue]:
    """What the `pattern.yield` at the end of `block` yields."""
    last = block.last_op
    assert isinstance(last, YieldOp)
    return last.arguments


def copy_into(
    target: Block,
    source: Block,
    arguments: Mapping[SSAValue, SSAValue],
    values: Sequence[SSAValue],
) -> list[SSAValue]:
    """Copies to the end of `target` what `values` of `source` need; gives the copies of `values`.

    `arguments` says what stands for the arguments of `source` that they need.
    """
    mapping = dict(arguments)
    wanted = needs_of(source, values).operations
    for op in source.ops:
        if op in wanted:
            target.add_op(op.clone(mapping))
    return [mapping[value] for value in values]


def new_block(types: Sequence[Attribute], like: Sequence[SSAValue]) -> Block:
    """A block with arguments of these types that are named as `like`."""
    block = Block(arg_types=types)
    for arg, named in zip(block.args, like, strict=True):
        arg.name_hint = named.name_hint
    return block


def combine_block_for(like: Sequence[SSAValue]) -> Block:
    """A combine block for two accumulators' values each, typed as `like`: %l... and %r..."""
    block = Block(arg_types=[arg.type for arg in like])
    for arg in block.args:
        arg.name_hint = "l" if arg.index < len(like) // 2 else "r"
    return block


def static_length(vectors: Sequence[SSAValue]) -> int | None:
    """The length of vectors that all have one length: -1 for `?`, None when types contradict."""
    lengths = {vector_length(value) for value in vectors} - {DYNAMIC_INDEX}
    if len(lengths) > 1:
        return None
    return lengths.pop() if lengths else DYNAMIC_INDEX


def build_like(
    op: PatternOp,
    inputs: Sequence[SSAValue],
    shared: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    body: Block,
    combine: Block | None,
) -> PatternOp:
    """A new operation of the kind of `op`, with its sizes, flags, attributes and location."""
    if isinstance(op, FoldOp):
        combines = None if combine is None else Region(combine)
        new = type(op)(inputs, inits, shared, Region(body), combines, result_types)
    else:
        sizes = [op.size_of(name) for name in op.SIZE_NAMES]
        new = type(op)(inputs, shared, result_types, Region(body), sizes)
    for name, attr in op.properties.items():
        new.properties.setdefault(name, attr)
    new.attributes |= op.attributes
    new.location = op.location
    return new


@dataclass
class Parameters:
    """The operands of an operation under construction, each once, and their block arguments."""

    inputs: dict[SSAValue, BlockArgument] = field(default_factory=dict[SSAValue, BlockArgument])
    shared: dict[SSAValue, BlockArgument] = field(default_factory=dict[SSAValue, BlockArgument])

    def add(self, op: PatternOp, leave_out: Operation | None = None) -> None:
        """Adds the operands of `op`, except those inputs that are results of `leave_out`."""
        for value, arg in zip(op.inputs, op.input_args(), strict=True):
            if value.owner is not leave_out:
                self.inputs.setdefault(value, arg)
        for value, arg in zip(op.shared, op.shared_args(), strict=True):
            self.shared.setdefault(value, arg)

    def block(self, accumulators: Sequence[SSAValue] = ()) -> Block:
        """A block for the accumulators (like the given arguments), the inputs and the shared."""
        like = [*accumulators, *self.inputs.values(), *self.shared.values()]
        return new_block([arg.type for arg in like], like)

    def arguments_of(self, op: PatternOp, block: Block, accs: int = 0) -> dict[SSAValue, SSAValue]:
        """What stands in `block` for the input and shared arguments of `op`.

        `block` has `accs` accumulators; operands that were left out are not in the answer.
        """
        middle = accs + len(self.inputs)
        inputs = dict(zip(self.inputs, block.args[accs:middle], strict=True))
        shared = dict(zip(self.shared, block.args[middle:], strict=True))
        return {
            **{
                arg: inputs[value]
                for value, arg in zip(op.inputs, op.input_args(), strict=True)
                if value in inputs
            },
            **{
                arg: shared[value]
                for value, arg in zip(op.shared, op.shared_args(), strict=True)
                if value in shared
            },
        }


def end_with(block: Block, values: Sequence[SSAValue]) -> Block:
    """Ends `block` with a `pattern.yield` of `values`."""
    block.add_op(YieldOp(*values))
    return block
