"""What the numbers of a kernel can be at most, and what is cheaper for that.

A part of `upmem-strength-reduce`. Comparisons of 64 bits whose operands fit in one register compare
that one; a test that a bit is 1 is one that it is not 0, on which `and` branches by itself. Before:

    %c1 = arith.constant 1 : i64
    %low = arith.andi %x, %c1 : i64         // two registers
    %odd = arith.cmpi eq, %low, %c1 : i64   // two comparisons

After:

    %y = arith.trunci %x : i64 to i32       // the low register
    %c1 = arith.constant 1 : i32
    %low = arith.andi %y, %c1 : i32
    %c0 = arith.constant 0 : i32
    %odd = arith.cmpi ne, %low, %c0 : i32

A product with a power of two that is shifted right again is one shift where no bit is lost:
(x * 256) >> 12 is x >> 4 for an x of 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

REGISTER_BITS = 32
DEPTH = 8
"""How many operations back a bound is looked for."""
EQ, NE = 0, 1
SIGNED = (2, 3, 4, 5)
"""Predicates of arith.cmpi."""


def cheaper_by_bits(op: Operation) -> None:
    """Puts a cheaper operation in the place of `op` where there is one."""
    for rule in RULES.get(op.name, ()):
        made = rule(op)
        if made is not None:
            made.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(made)
            _erase_unused(op)
            return


def _erase_unused(op: Operation) -> None:
    """Erases an operation that nothing uses, and what only it used."""
    if op.parent is None or any(result.first_use is not None for result in op.results):
        return
    operands = [value.owner for value in op.operands]
    op.detach()
    op.erase()
    for owner in dict.fromkeys(operands):
        if isinstance(owner, Operation) and owner.name.startswith("arith."):
            _erase_unused(owner)


# -- what is known of numbers --------------------------------------------------------------------


def width_of(type: Attribute) -> int | None:
    """Bits of an integer; None for an index and anything else."""
    return type.width.data if isa(type, IntegerType) else None


def constant_of(value: SSAValue) -> int | None:
    """The number that a value is, read without a sign; None when it is not known."""
    width = width_of(value.type)
    if width is None or not isinstance(value, OpResult):
        return None
    op = value.op
    if not isinstance(op, arith.ConstantOp) or not isa(op.value, IntegerAttr):
        return None
    return op.value.value.data & ((1 << width) - 1)


def most_of(value: SSAValue, depth: int = DEPTH) -> int:
    """The largest number that an integer can be, read without a sign."""
    width = width_of(value.type)
    assert width is not None
    full = (1 << width) - 1
    number = constant_of(value)
    if number is not None:
        return number
    if depth == 0 or not isinstance(value, OpResult):
        return full
    op = value.op
    match op:
        case arith.AndIOp():
            return min(most_of(operand, depth - 1) for operand in op.operands)
        case arith.ExtUIOp():
            return most_of(op.input, depth - 1)
        case arith.ExtSIOp():
            most = most_of(op.input, depth - 1)
            source = width_of(op.input.type)
            assert source is not None
            return full if most >> (source - 1) else most
        case arith.ShRUIOp():
            shift = constant_of(op.rhs)
            return full if shift is None else most_of(op.lhs, depth - 1) >> min(shift, width)
        case arith.RemUIOp():
            divisor = constant_of(op.rhs)
            return divisor - 1 if divisor else full
        case _:
            return full


# -- rules: the value that replaces an operation's, or None --------------------------------------


def _insert(before: Operation, op: Operation) -> SSAValue:
    block = before.parent
    assert block is not None
    block.insert_op_before(op, before)
    return op.results[0]


def _number(before: Operation, value: int, type: IntegerType) -> SSAValue:
    number = IntegerAttr(value, type, truncate_bits=True)
    return _insert(before, arith.ConstantOp(number, type))


def _compare_low(op: Operation) -> SSAValue | None:
    """A comparison of pairs of registers whose high ones are 0."""
    assert isinstance(op, arith.CmpiOp)
    if width_of(op.lhs.type) != 2 * REGISTER_BITS:
        return None
    most = max(most_of(op.lhs), most_of(op.rhs))
    by_sign = op.predicate.value.data in SIGNED
    if most >> (REGISTER_BITS - 1 if by_sign else REGISTER_BITS):
        return None
    low, other = _low(op, op.lhs), _low(op, op.rhs)
    compare = arith.CmpiOp(low, other, op.predicate.value.data)
    made = _insert(op, compare)
    test = _test_of_a_bit(compare)
    if test is not None:
        _erase_unused(compare)
    return test or made


def _low(before: Operation, value: SSAValue) -> SSAValue:
    """The low register of a pair."""
    number = constant_of(value)
    if number is not None:
        return _number(before, number, i32)
    if isinstance(value, OpResult) and isinstance(value.op, arith.AndIOp):
        low, other = (_low(before, operand) for operand in value.op.operands)
        return _insert(before, arith.AndIOp(low, other))
    if isinstance(value, OpResult) and isinstance(value.op, arith.ExtUIOp):
        source = value.op.input
        if source.type == i32:
            return source
        return _insert(before, arith.ExtUIOp(source, i32))
    return _insert(before, arith.TruncIOp(value, i32))


def _test_of_a_bit(op: Operation) -> SSAValue | None:
    """x & 2^k == 2^k, as x & 2^k != 0."""
    assert isinstance(op, arith.CmpiOp)
    predicate, number = op.predicate.value.data, constant_of(op.rhs)
    if predicate not in (EQ, NE) or not number or number & (number - 1):
        return None
    tested = op.lhs
    if not isinstance(tested, OpResult) or not isinstance(tested.op, arith.AndIOp):
        return None
    if number not in [constant_of(operand) for operand in tested.op.operands]:
        return None
    assert isa(tested.type, IntegerType)
    zero = _number(op, 0, tested.type)
    return _insert(op, arith.CmpiOp(tested, zero, NE if predicate == EQ else EQ))


def _shifted_back(op: Operation) -> SSAValue | None:
    """(x * 2^k) >> s, where the product is known not to wrap."""
    assert isinstance(op, arith.ShRUIOp)
    right, product = constant_of(op.rhs), op.lhs
    width = width_of(product.type)
    if right is None or width is None or right >= width or not isinstance(product, OpResult):
        return None
    left = _power(product.op)
    if left is None:
        return None
    x = product.op.operands[0]
    if most_of(x) << left >> width:
        return None
    if left == right:
        return x
    assert isa(x.type, IntegerType)
    amount = _number(op, abs(left - right), x.type)
    return _insert(op, arith.ShLIOp(x, amount) if left > right else arith.ShRUIOp(x, amount))


def _power(op: Operation) -> int | None:
    """k of a product of its first operand with 2^k, written as a product or a shift."""
    if isinstance(op, arith.ShLIOp):
        return constant_of(op.rhs)
    number = constant_of(op.rhs) if isinstance(op, arith.MuliOp) else None
    if not number or number & (number - 1):
        return None
    return number.bit_length() - 1


Rule = Callable[[Operation], SSAValue | None]
RULES: dict[str, tuple[Rule, ...]] = {
    "arith.cmpi": (_compare_low, _test_of_a_bit),
    "arith.shrui": (_shifted_back,),
}
