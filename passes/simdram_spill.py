"""Objects that do not fit into the D rows: made again where they are used, or kept by the host.

An object that came from a transposition or a fill is made again before each later use. Any other is
read back after it is made, and transposed in again before each later use. What a loop carries can
be kept by the host as well: the loop carries a vector then, transposed in before each use, and read
back at the end of each round.
"""

from __future__ import annotations

from xdsl.dialects import scf, tensor
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use

from cim_opt.dialects.simdram import (
    BbopOp,
    FillOp,
    MulScalarOp,
    ReadOp,
    TransposeOp,
    VecType,
    width_of,
)


def later_uses(value: SSAValue, place: Operation) -> list[Use]:
    """Uses that come when `place` has run: after it, or in a round of a loop around it."""
    outer = _chain(place)
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    return [use for use in value.uses if _comes_after(use.operation, outer, home)]


def just_made(value: SSAValue) -> bool:
    """True when only transpositions and fills lie between an object that is one and its use."""
    if not isinstance(value, OpResult) or not isinstance(value.op, TransposeOp | FillOp):
        return False
    users = {use.operation for use in value.uses}
    op = value.op.next_op
    while isinstance(op, TransposeOp | FillOp | ConstantOp):
        op = op.next_op
    return users == {op}


def _chain(op: Operation) -> dict[Block, Operation]:
    """For every block around `op`, the operation in it that holds `op`."""
    around: dict[Block, Operation] = {}
    current: Operation | None = op
    while current is not None and current.parent is not None:
        around[current.parent] = current
        current = current.parent_op()
    return around


def _comes_after(user: Operation, outer: dict[Block, Operation], home: Block | None) -> bool:
    current: Operation | None = user
    while current is not None and current.parent is not None:
        if current.parent in outer:
            place = outer[current.parent]
            if place is not current and place.is_before_in_block(current):
                return True
            # In one loop with the place, and older than the loop: it comes again.
            return current.parent is not home and _in_loop_below(current.parent, home)
        current = current.parent_op()
    return False


def _in_loop_below(block: Block, home: Block | None) -> bool:
    """True when a loop lies around `block` and inside `home`."""
    while block is not home:
        parent = block.parent_op()
        if parent is None or parent.parent is None:
            return False
        if isinstance(parent, scf.ForOp):
            return True
        block = parent.parent
    return False


def spill(value: SSAValue, uses: list[Use]) -> None:
    """Gives each of these uses an object of its own, made just before it."""
    if isinstance(value, OpResult) and isinstance(value.op, TransposeOp | FillOp):
        for use in uses:
            copy = value.op.clone()
            _before(use.operation, [copy])
            use.operation.operands[use.index] = copy.results[0]
        return
    count = lanes_of(value)
    kept = _read_back(value, count)
    assert isinstance(value.type, VecType)
    for use in uses:
        _transposed_again(use, kept, count, value.type)


def _read_back(value: SSAValue, count: SSAValue) -> SSAValue:
    kept, ops = _reading(value, count)
    if isinstance(value, OpResult):
        assert value.op.parent is not None
        value.op.parent.insert_ops_after(ops, value.op)
    else:
        assert isinstance(value, BlockArgument) and value.block.first_op is not None
        value.block.insert_ops_before(ops, value.block.first_op)
    return kept


def _reading(value: SSAValue, count: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """The host's vector of an object's elements, and the operations that make it."""
    attr = TensorType(IntegerType(width_of(value)), [DYNAMIC_INDEX])
    empty = tensor.EmptyOp([count], attr)
    zero, one = _index(0), _index(1)
    read = ReadOp(value, empty.results[0], zero.result, one.result)
    return read.result, [empty, zero, one, read]


def spill_carried(loop: scf.ForOp, index: int) -> None:
    """Lets the host keep the object that the loop carries at `index` of its values."""
    first = loop.iter_args[index]
    assert isinstance(first.type, VecType)
    kind, count = first.type, lanes_of(first)
    kept, ops = _reading(first, count)
    _before(loop, ops)
    inside, outside = loop.body.block.args[1 + index], loop.results[index]
    last = loop.body.block.last_op
    assert last is not None
    vector = loop.body.block.insert_arg(kept.type, 1 + index)
    if last.operands[index] is not inside:
        zero, one = _index(0), _index(1)
        read = ReadOp(last.operands[index], vector, zero.result, one.result)
        _before(last, [zero, one, read])
        last.operands[index] = read.result
    else:
        last.operands[index] = vector
    for use in list(inside.uses):
        _transposed_again(use, vector, count, kind)
    loop.body.block.erase_arg(inside)
    starts = [kept if at == index else value for at, value in enumerate(loop.iter_args)]
    again = scf.ForOp(loop.lb, loop.ub, loop.step, starts, loop.detach_region(loop.body))
    again.location = loop.location
    _before(loop, [again])
    for use in list(outside.uses):
        _transposed_again(use, again.results[index], count, kind)
    for old, new in zip(loop.results, again.results, strict=True):
        if old is not outside:
            old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


def _transposed_again(use: Use, vector: SSAValue, count: SSAValue, kind: VecType) -> None:
    zero, one = _index(0), _index(1)
    again = TransposeOp(vector, zero.result, one.result, count, kind)
    _before(use.operation, [zero, one, again])
    use.operation.operands[use.index] = again.result


def lanes_of(value: SSAValue) -> SSAValue:
    """The host's value for how many lanes an object has."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        assert isinstance(loop, scf.ForOp)
        return lanes_of(loop.iter_args[value.index - 1])
    assert isinstance(value, OpResult)
    match value.op:
        case TransposeOp() | FillOp():
            return value.op.count
        case BbopOp():
            return lanes_of(value.op.args[0])
        case MulScalarOp():
            return lanes_of(value.op.arg)
        case scf.ForOp():
            return lanes_of(value.op.iter_args[value.index])
        case _:
            raise AssertionError(f"'{value.op.name}' makes no vertical object")


def _index(number: int) -> ConstantOp:
    return ConstantOp(IntegerAttr(number, IndexType()))


def _before(place: Operation, ops: list[Operation]) -> None:
    assert place.parent is not None
    place.parent.insert_ops_before(ops, place)
