"""Addresses of WRAM accesses in a kernel: which share a pointer, and what makes only addresses.

In an innermost loop most indices are linear in the induction variable. Accesses to one array whose
indices differ by a constant share one pointer, and the constant is the offset in the instruction.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue


def constant_of(value: SSAValue) -> int | None:
    """The integer that a value is known to be."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attr = value.op.value
        if isinstance(attr, IntegerAttr):
            return attr.value.data
    return None


Terms = dict[SSAValue, int]


def _linear(value: SSAValue, body: Block) -> tuple[Terms, list[Operation]] | None:
    """`value` as a sum of multiples of `body`'s arguments and of values from outside it.

    Constants are left out. Also gives the operations inside `body` that it is made of. None when
    something else inside the loop goes into it.
    """
    if constant_of(value) is not None:
        return {}, []
    if not isinstance(value, OpResult) or not _inside(value.op, body):
        own = value in body.args and value is not body.args[0]
        return None if own else ({value: 1}, [])
    op = value.op
    if isinstance(op, arith.IndexCastOp):
        inner = _linear(op.input, body)
        return inner and (inner[0], [*inner[1], op])
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        sign = 1 if isinstance(op, arith.AddiOp) else -1
        left, right = _linear(op.lhs, body), _linear(op.rhs, body)
        if left is None or right is None:
            return None
        terms = dict(left[0])
        for atom, factor in right[0].items():
            terms[atom] = terms.get(atom, 0) + sign * factor
        return terms, [*left[1], *right[1], op]
    if isinstance(op, arith.MuliOp | arith.ShLIOp):
        factor = constant_of(op.rhs)
        inner = _linear(op.lhs, body)
        if factor is None or inner is None:
            return None
        scale = factor if isinstance(op, arith.MuliOp) else 1 << min(factor, 63)
        return {atom: by * scale for atom, by in inner[0].items()}, [*inner[1], op]
    return None


def _inside(op: Operation, body: Block) -> bool:
    return body.find_ancestor_op_in_block(op) is not None


def _loop_body(op: Operation) -> Block | None:
    """The body of the innermost `scf.for` around an operation, if it holds no further loop."""
    current = op.parent_op()
    while current is not None and not isinstance(current, scf.ForOp):
        current = current.parent_op()
    if current is None or any(isinstance(inner, scf.ForOp) for inner in current.body.walk()):
        return None
    return current.body.block


class Addresses:
    """Which accesses share a pointer, and which operations only make addresses."""

    def __init__(self) -> None:
        self.pointers: dict[Block, set[object]] = {}
        self.invariant: dict[Block, set[object]] = {}
        self.computed: dict[Block, set[object]] = {}
        self.stored: set[Block] = set()
        """Bodies of innermost loops that store in every iteration."""
        self.absorbed: set[Operation] = set()

    def access(self, op: Operation, array: SSAValue, index: SSAValue) -> None:
        """Notes one access; the operations that only make its address are then free."""
        body = _loop_body(op)
        if body is not None and isinstance(op, memref.StoreOp) and op.parent_block() is body:
            self.stored.add(body)
        if constant_of(index) is not None:
            return
        found = None if body is None else _linear(index, body)
        if body is not None and found is not None:
            terms, made_by = found
            key = (array, frozenset((atom, by) for atom, by in terms.items() if by))
            moving = terms.get(body.args[0], 0) != 0
            (self.pointers if moving else self.invariant).setdefault(body, set()).add(key)
            self._absorb(made_by)
            return
        block = op.parent_block()
        assert block is not None
        base, adders = _without_constant(index)
        self._absorb(adders)
        self.computed.setdefault(block, set()).add((array, base))

    def _absorb(self, ops: Iterable[Operation]) -> None:
        # From the last to the first, so that each one's users have been decided before it.
        for op in reversed(list(ops)):
            if all(self._only_address(use.operation, use.index) for use in op.results[0].uses):
                self.absorbed.add(op)

    def _only_address(self, user: Operation, operand: int) -> bool:
        if user in self.absorbed:
            return True
        if isinstance(user, memref.LoadOp):
            return operand == 1
        return isinstance(user, memref.StoreOp) and operand == 2


def _without_constant(index: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """An index less the constant that is added to it last."""
    if isinstance(index, OpResult) and isinstance(index.op, arith.AddiOp):
        op = index.op
        if constant_of(op.rhs) is not None:
            return op.lhs, [op]
        if constant_of(op.lhs) is not None:
            return op.rhs, [op]
    return index, []
