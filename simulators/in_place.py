"""Which `tensor.insert` of an element function may write into its operand.

A tensor value is *fresh* when its buffer is its own: made by an operation that makes a new one, or
a block argument whose driver (the loop or the fold) promises so. An insert into a fresh value that
nothing reads afterwards need not copy it: a histogram would copy all its bins for every pixel.
"""

from __future__ import annotations

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from cim_opt.dialects.pattern import FoldOp

_MAKERS = (tensor.InsertOp, tensor.FromElementsOp, tensor.EmptyOp, tensor.SplatOp)
_READERS = (tensor.ExtractOp, tensor.DimOp)


def overwritten(block: Block) -> frozenset[BlockArgument]:
    """The arguments of `block` that an insert writes into; their buffers have to be their own."""
    found = set[BlockArgument]()
    for op in block.ops:
        if isinstance(op, tensor.InsertOp) and isinstance(op.dest, BlockArgument):
            found.update({op.dest} if may_overwrite(op) else ())
    return frozenset(found)


def may_overwrite(op: tensor.InsertOp) -> bool:
    """True when nothing sees the buffer of `op.dest` after `op`."""
    value = op.dest
    if not _is_fresh(value, op.parent_block()):
        return False
    return all(use.operation is op or _reads_before(use, op) for use in value.uses)


def yields_fresh(value: SSAValue) -> bool:
    """True when a yielded `value` has a buffer that no other value shares."""
    if not isinstance(value.owner, _MAKERS):
        return False
    others = [use for use in value.uses if not isinstance(use.operation, _READERS)]
    inserts = [use for use in others if isinstance(use.operation, tensor.InsertOp)]
    return len(others) - len(inserts) == 1


def _is_fresh(value: SSAValue, block: Block | None) -> bool:
    if isinstance(value, BlockArgument):
        return value.block is block and _is_carried(value)
    owner = value.owner
    return isinstance(owner, _MAKERS) and owner.parent_block() is block


def _is_carried(value: BlockArgument) -> bool:
    """True for an argument that a loop or a fold carries from one run to the next."""
    parent = value.block.parent_op()
    if isinstance(parent, scf.ForOp):
        return value.index >= 1
    return (
        isinstance(parent, FoldOp)
        and value.block is parent.body.block
        and value.index < len(parent.inits)
    )


def _reads_before(use: Use, op: Operation) -> bool:
    """True when `use` only reads elements, and does so before `op`."""
    if not isinstance(use.operation, _READERS):
        return False
    block = op.parent_block()
    assert block is not None
    ancestor = block.find_ancestor_op_in_block(use.operation)
    return ancestor is not None and ancestor is not op and ancestor.is_before_in_block(op)
