"""Instructions of each operation of a kernel, by operation name (see upmem_selection.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from cim_opt.cost import upmem_instructions as cost
from cim_opt.dialects import upmem
from cim_opt.simulators.upmem_addresses import constant_of
from cim_opt.simulators.upmem_products import (
    factor_bytes,
    is_extended_product,
    is_read_by_products_only,
)

if TYPE_CHECKING:
    from cim_opt.simulators.upmem_selection import Selector

REGISTER_BITS = 32
"""Width of an `index` on a DPU."""
CALL_INSTRUCTIONS = 4
"""Instructions of a call with its moves."""


@dataclass(frozen=True)
class OperandCost:
    """An operation whose instructions depend on its two operands: `mul` or `div`, and a rest."""

    kind: Literal["mul", "div"]
    bits: int
    signed: bool = False
    extra: int = 0

    @property
    def code(self) -> int:
        """Instructions in the kernel's text: all of a product of 16 bits, else a call's."""
        return cost.MUL16 if self.kind == "mul" and self.bits == 16 else CALL_INSTRUCTIONS


def bits_of(type: Attribute) -> int:
    """Width of a value in the DPU's registers."""
    if isa(type, IntegerType):
        return type.width.data
    if isinstance(type, IndexType):
        return REGISTER_BITS
    return upmem.element_bytes(type) * 8


Rule = Callable[["Selector", Operation], float]


def _free(_: Selector, op: Operation) -> float:
    return 0


def _simple(kind: str) -> Rule:
    """An operation on values of its first operand's type."""
    return lambda _, op: cost.instructions(kind, bits_of(op.operands[0].type))


def _shift(kind: str) -> Rule:
    def rule(_: Selector, op: Operation) -> float:
        bits, amount = bits_of(op.operands[0].type), constant_of(op.operands[1])
        return cost.instructions(kind, bits, constant=amount)

    return rule


def _multiply(selector: Selector, op: Operation) -> float:
    bits = bits_of(op.operands[0].type)
    for operand in op.operands:
        constant = constant_of(operand)
        if constant is not None:
            return cost.mul_constant(bits, constant)
    narrow = factor_bytes(op)
    if narrow is not None and min(narrow) == 1:
        return cost.mul_by_byte(max(narrow))
    if narrow is not None:
        # By the values, and the sum of the products is extended again where it has 16 bits.
        selector.result.operands[op] = OperandCost("mul", 16)
        return 0 if bits > 16 or _only_stored(op) else cost.instructions("truncate", bits)
    if bits == 32:
        selector.result.operands[op] = OperandCost("mul", bits)
        return _moves(op)
    called = bits == 64
    return cost.instructions("mul", bits) + (_moves(op) if called else 0)


def _moves(call: Operation) -> int:
    """Moves of the operands of a routine into its argument registers.

    A value that the loop around makes, and that nothing else uses, is made there.
    """
    around = call.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    moves = 0
    for value in dict.fromkeys(call.operands):
        places = sum(operand is value for operand in call.operands)
        made = value.owner
        fresh = isinstance(made, Operation) and (around is None or around.is_ancestor(made))
        mine = all(use.operation is call for use in value.uses)
        registers = max(1, bits_of(value.type) // REGISTER_BITS)
        moves += registers * (places - (1 if fresh and mine else 0))
    return moves


def _divide(kind: Literal["div", "rem"], signed: bool, extra: int = 0) -> Rule:
    def rule(selector: Selector, op: Operation) -> float:
        bits, constant = bits_of(op.operands[0].type), constant_of(op.operands[1])
        if bits == 1:
            return 1
        if constant is not None and constant and abs(constant) & (abs(constant) - 1) == 0:
            return extra + cost.instructions(kind, bits, signed=signed, constant=constant)
        selector.result.operands[op] = OperandCost("div", bits, signed, extra)
        return _moves(op)

    return rule


def _compare(_: Selector, op: Operation) -> float:
    if _fused(op.results[0]):
        return 0
    return cost.instructions("compare", bits_of(op.operands[0].type))


def _fused(condition: SSAValue) -> bool:
    """A comparison that only the branch of an `if` or a `select` in its block uses."""
    if not isinstance(condition, OpResult) or not isinstance(condition.op, arith.CmpiOp):
        return False
    uses = list(condition.uses)
    if len(uses) != 1 or uses[0].index != 0:
        return False
    user = uses[0].operation
    same_block = user.parent_block() is condition.op.parent_block()
    return same_block and isinstance(user, scf.IfOp | arith.SelectOp)


def _if(selector: Selector, op: Operation) -> float:
    assert isinstance(op, scf.IfOp)
    if op.false_region.blocks and len(op.false_region.block.ops) > 1:
        # A jump over the other branch, which does more than yield.
        selector.add(op.true_region.block, 1)
    condition = op.cond
    if not _fused(condition):
        return cost.instructions("branch", 1)
    assert isinstance(condition, OpResult)
    return _compare_and_branch(condition.op)


def _compare_and_branch(compare: Operation) -> float:
    """A branch on a comparison of its own block."""
    bits = bits_of(compare.operands[0].type)
    if bits == 64 and _predicate(compare) in (0, 1):
        # With 0 the two registers are joined by `or`, which branches; else each pair branches.
        return 1 if constant_of(compare.operands[1]) == 0 else 2
    if _tests_last_result(compare):
        return 0
    return cost.instructions("compare", bits)


_SETS_CONDITIONS = {
    "arith.addi",
    "arith.subi",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.shli",
    "arith.shrsi",
    "arith.shrui",
}


def _tests_last_result(compare: Operation) -> bool:
    """A comparison with 0 of what the operation right before it made in a whole register.

    Such an operation branches on its own result. Narrower results are compared by themselves:
    what is measured of 2-byte selections takes an instruction more than of 4-byte ones.
    """
    value = compare.operands[0]
    if constant_of(compare.operands[1]) != 0 or bits_of(value.type) != REGISTER_BITS:
        return False
    # Equal, not equal; signed less, greater or equal.
    if _predicate(compare) not in (0, 1, 2, 5) or not isinstance(value, OpResult):
        return False
    before = compare.prev_op
    while isinstance(before, arith.ConstantOp):
        before = before.prev_op
    return before is not None and value.op is before and before.name in _SETS_CONDITIONS


def _predicate(compare: Operation) -> int:
    assert isinstance(compare, arith.CmpiOp)
    return compare.predicate.value.data


def _select(_: Selector, op: Operation) -> float:
    extra = 0.0
    condition = op.operands[0]
    if _fused(condition):
        assert isinstance(condition, OpResult)
        bits = bits_of(condition.op.operands[0].type)
        # One compare-and-branch is part of the select; a comparison of pairs takes more.
        extra = cost.instructions("compare", bits) - cost.instructions("compare", 32)
    return extra + cost.instructions("select", bits_of(op.operands[1].type))


def _extend(signed: bool) -> Rule:
    def rule(_: Selector, op: Operation) -> float:
        source, target = op.operands[0], bits_of(op.results[0].type)
        if bits_of(source.type) in (8, 16) and is_read_by_products_only(op.results[0]):
            return 0
        if target == REGISTER_BITS and is_extended_product(source, signed):
            return 0
        by_load = isinstance(source, OpResult) and isinstance(source.op, memref.LoadOp)
        alike = all(use.operation.name == op.name for use in source.uses)
        if bits_of(source.type) == 1 and not signed:
            # A truth value is 0 or 1 in its register; a pair of registers needs its high one.
            return 0 if target <= REGISTER_BITS else 1
        if by_load and alike and target <= REGISTER_BITS:
            return 0
        if by_load and alike:
            return 1  # the high register of the pair
        return cost.instructions("extend", target, signed=signed)

    return rule


def _truncate(op: Operation, bits: int) -> float:
    """Narrow values are kept extended; a store or a product of bytes takes the low bits of any."""
    if _only_stored(op):
        return 0
    if bits in (8, 16) and is_read_by_products_only(op.results[0]):
        return 0
    return cost.instructions("truncate", bits)


def _only_stored(op: Operation) -> bool:
    """A result of which stores, which take the low bits of any, are the only uses."""
    uses = op.results[0].uses
    return all(isinstance(use.operation, memref.StoreOp) and use.index == 0 for use in uses)


def _index_cast(_: Selector, op: Operation) -> float:
    source, target = bits_of(op.operands[0].type), bits_of(op.results[0].type)
    if source > REGISTER_BITS and target == REGISTER_BITS:
        return 0  # the low register of the pair
    if target > source:
        return cost.instructions("extend", target, signed=True)
    return 0 if target == source else _truncate(op, target)


def _float_to_integer(_: Selector, op: Operation) -> float:
    return cost.instructions("float_to_int", _wider(op))


def _integer_to_float(_: Selector, op: Operation) -> float:
    return cost.instructions("int_to_float", _wider(op))


def _wider(op: Operation) -> int:
    bits = max(bits_of(op.operands[0].type), bits_of(op.results[0].type))
    return 64 if bits > REGISTER_BITS else REGISTER_BITS


def _multiply_extended(_: Selector, op: Operation) -> float:
    return cost.instructions("mul", 2 * bits_of(op.operands[0].type))


def _fused_multiply_add(_: Selector, op: Operation) -> float:
    bits = bits_of(op.operands[0].type)
    return cost.instructions("fmul", bits) + cost.instructions("fadd", bits)


def _trailing_zeros(_: Selector, op: Operation) -> float:
    # ~x & (x - 1), then count its ones.
    bits = bits_of(op.operands[0].type)
    kinds = ("sub", "and", "popcount")
    return sum(cost.instructions(kind, bits) for kind in kinds)


def _load(_: Selector, op: Operation) -> float:
    return cost.instructions("load", bits_of(op.results[0].type))


def _for(selector: Selector, op: Operation) -> float:
    assert isinstance(op, scf.ForOp)
    return selector.loop(op)


def _transfer(_: Selector, op: Operation) -> float:
    """One DMA instruction; two more to encode a size that is not known; and the two addresses.

    An address that an earlier transfer of the block made is still in its register.
    """
    assert isinstance(op, upmem.MramReadOp | upmem.MramWriteOp)
    size = 0 if constant_of(op.count) is not None else 2
    made: set[tuple[SSAValue, SSAValue]] = set()
    before = op.prev_op
    while before is not None:
        if isinstance(before, upmem.MramReadOp | upmem.MramWriteOp):
            made.update(_dma_addresses(before))
        before = before.prev_op
    return 1 + size + len(_dma_addresses(op) - made)


def _dma_addresses(op: upmem.MramReadOp | upmem.MramWriteOp) -> set[tuple[SSAValue, SSAValue]]:
    """The addresses of a transfer that are not constants."""
    pairs = ((op.mram, op.mram_index), (op.wram, op.wram_index))
    return {pair for pair in pairs if constant_of(pair[1]) is None}


def _critical(selector: Selector, op: Operation) -> float:
    assert isinstance(op, upmem.CriticalOp)
    machine = selector.machine
    return machine.mutex_lock_instructions + machine.mutex_unlock_instructions


RULES: dict[str, Rule] = {
    "arith.constant": _free,
    "arith.bitcast": _free,  # one set of registers for integers and floats
    "arith.addi": _simple("add"),
    "arith.subi": _simple("sub"),
    "arith.andi": _simple("and"),
    "arith.ori": _simple("or"),
    "arith.xori": _simple("xor"),
    "arith.minsi": _simple("min"),
    "arith.minui": _simple("min"),
    "arith.maxsi": _simple("max"),
    "arith.maxui": _simple("max"),
    "arith.shli": _shift("shl"),
    "arith.shrsi": _shift("shr"),
    "arith.shrui": _shift("shr"),
    "arith.muli": _multiply,
    "arith.divsi": _divide("div", signed=True),
    "arith.divui": _divide("div", signed=False),
    "arith.remsi": _divide("rem", signed=True),
    "arith.remui": _divide("rem", signed=False),
    # Rounding the other way: test the rest, correct the quotient.
    "arith.floordivsi": _divide("div", signed=True, extra=3),
    "arith.ceildivsi": _divide("div", signed=True, extra=3),
    "arith.ceildivui": _divide("div", signed=False, extra=2),
    "arith.mului_extended": _multiply_extended,
    "arith.mulsi_extended": _multiply_extended,
    "arith.addui_extended": lambda _, op: (
        cost.instructions("add", bits_of(op.operands[0].type))
        + cost.instructions("compare", bits_of(op.operands[0].type))
    ),
    "arith.cmpi": _compare,
    "arith.cmpf": _simple("fcompare"),
    "arith.select": _select,
    "arith.extsi": _extend(signed=True),
    "arith.extui": _extend(signed=False),
    "arith.trunci": lambda _, op: _truncate(op, bits_of(op.results[0].type)),
    "arith.index_cast": _index_cast,
    "arith.addf": _simple("fadd"),
    "arith.subf": _simple("fsub"),
    "arith.mulf": _simple("fmul"),
    "arith.divf": _simple("fdiv"),
    "arith.negf": _simple("fneg"),
    "arith.minimumf": _simple("fmin"),
    "arith.maximumf": _simple("fmax"),
    "arith.minnumf": _simple("fmin"),
    "arith.maxnumf": _simple("fmax"),
    "arith.fptosi": _float_to_integer,
    "arith.fptoui": _float_to_integer,
    "arith.sitofp": _integer_to_float,
    "arith.uitofp": _integer_to_float,
    "arith.extf": lambda _, op: cost.instructions("float_resize", 64),
    "arith.truncf": lambda _, op: cost.instructions("float_resize", 64),
    "math.absi": _simple("abs"),
    "math.absf": _simple("fabs"),
    "math.ctpop": _simple("popcount"),
    "math.ctlz": _simple("clz"),
    "math.cttz": _trailing_zeros,
    "math.fma": _fused_multiply_add,
    "memref.load": _load,
    "memref.store": lambda _, op: cost.instructions("store", bits_of(op.operands[0].type)),
    "scf.for": _for,
    "scf.if": _if,
    "scf.yield": _free,  # values are made in the registers where they are wanted
    "upmem.tasklet_id": _free,  # a register
    "upmem.mram": _free,  # a constant address
    "upmem.wram": _free,  # a constant address, or one that depends on the tasklet's number only
    "upmem.mram_read": _transfer,
    "upmem.mram_write": _transfer,
    "upmem.barrier": _free,  # its cycles are those of the measured barrier, not instructions
    "upmem.critical": _critical,
    "upmem.return": lambda _, op: 1,
}
"""By operation name: instructions without the regions. What is not here cannot run on a DPU."""
