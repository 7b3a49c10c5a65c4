"""When an element function reads a tensor for the last time, so that it may be overwritten."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue


def last_use(op: Operation, value: SSAValue) -> bool:
    """True when nothing reads `value` after `op`, which is one of its users."""
    if _repeats(op, value):
        return False
    return all(use.operation is op or _before(use.operation, op) for use in value.uses)


def _repeats(op: Operation, value: SSAValue) -> bool:
    """True when a loop runs `op` again with the same `value`."""
    current = op.parent_op()
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    block = op.parent
    while block is not None and block is not home:
        if isinstance(current, scf.ForOp):
            return True
        block = current.parent if current is not None else None
        current = current.parent_op() if current is not None else None
    return False


def _before(user: Operation, op: Operation) -> bool:
    """True when `user` runs before `op`, or on another branch, whenever both run."""
    around = dict[Block, Operation]()
    current: Operation | None = op
    while current is not None and current.parent is not None:
        around[current.parent] = current
        current = current.parent_op()
    current = user
    while current is not None and current.parent is not None:
        other = around.get(current.parent)
        if other is current:
            return isinstance(current, scf.IfOp)
        if other is not None:
            return current.is_before_in_block(other)
        current = current.parent_op()
    return False
