"""When a loaded value may stay a view of its buffer, instead of a copy.

A load at an index that all lanes share is free as a view, but a later store to the buffer would
change the value. The rule is safe and simple: a view stays when nothing changes the buffer between
the load and the last use of the value, and no use hands the view itself on.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from cim_opt.dialects import upmem
from cim_opt.simulators import elementwise

_MAY_HAND_ON = {"arith.select", "arith.bitcast", "arith.index_cast", "math.absi", "math.ctpop"}


def may_stay_view(load: memref.LoadOp) -> bool:
    """True when the value of a load need not be copied."""
    changes = [use.operation for use in load.memref.uses if _changes(use.operation, load.memref)]
    if not changes:
        # Whoever it is handed to, nothing ever changes the buffer.
        return True
    users = {use.operation for use in load.res.uses}
    if any(user.parent_block() is not load.parent_block() for user in users):
        return False
    if not all(_makes_new(user) for user in users):
        return False
    return not _changed_before(load, users, changes)


def _changes(op: Operation, array: SSAValue) -> bool:
    if isinstance(op, memref.StoreOp):
        return op.memref is array
    return isinstance(op, upmem.MramReadOp) and op.wram is array


def _makes_new(user: Operation) -> bool:
    if isinstance(user, memref.StoreOp):
        return True
    return elementwise.is_elementwise(user) and user.name not in _MAY_HAND_ON


def _changed_before(load: Operation, users: set[Operation], changes: list[Operation]) -> bool:
    """Whether the buffer changes after the load while a user is still to come."""
    left = set(users)
    current = load.next_op
    while current is not None and left:
        left.discard(current)
        if left and any(current.is_ancestor(change) for change in changes):
            return True
        current = current.next_op
    return False
