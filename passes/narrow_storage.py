"""Which vectors and accumulators of a function can be kept in fewer bits.

A vector that patterns alone read, element by element, and that is not returned; with widths that
are free, an accumulator too, if each step joins it with one value by an associative operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Region, SSAValue, Use
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import (
    FilterBase,
    FoldOp,
    PatternOp,
    ReduceOp,
    ScanOp,
    YieldOp,
)
from cim_opt.passes.fold_forms import Step, simple_step
from cim_opt.passes.narrow_policy import Widths, round_up
from cim_opt.passes.range_analysis import RangeAnalysis


@dataclass(frozen=True)
class Storage:
    """Bits that each element has, and how it is extended to what it was."""

    bits: int
    by_sign: bool


def simple_steps(op: FoldOp) -> list[Step] | None:
    """The steps of all accumulators of `op`; None unless each of them is one operation."""
    if op.tensor_accumulators:
        return None
    steps = [simple_step(op, number) for number in range(len(op.inits))]
    found = [step for step in steps if step is not None]
    return found if len(found) == len(steps) else None


def combine_of(steps: Sequence[Step], types: Sequence[Attribute]) -> Region:
    """The combine region that joins accumulators of these types by the operations of `steps`."""
    block = Block(arg_types=[*types, *types])
    values: list[SSAValue] = []
    for number, step in enumerate(steps):
        left, right = block.args[number], block.args[len(steps) + number]
        left.name_hint, right.name_hint = "l", "r"
        joined = step.kind.create(operands=[left, right], result_types=[left.type])
        block.add_op(joined)
        values.append(joined.results[0])
    block.add_op(YieldOp(*values))
    return Region(block)


def plan_storage(
    function: FuncOp, analysis: RangeAnalysis, widths: Widths
) -> dict[SSAValue, Storage]:
    """How results of patterns in `function` are kept, where that takes fewer bits than now."""
    plan: dict[SSAValue, Storage] = {}
    for op in function.walk():
        if not isinstance(op, PatternOp):
            continue
        for number, out in enumerate(op.results):
            storage = _storage_of(op, number, out, analysis, widths)
            if storage is not None:
                plan[out] = storage
    return plan


def _storage_of(
    op: PatternOp, number: int, out: SSAValue, analysis: RangeAnalysis, widths: Widths
) -> Storage | None:
    element = out.type.element_type if isa(out.type, TensorType) else out.type
    known = analysis.of(out)
    if not isa(element, IntegerType) or known is None:
        return None
    bits, by_sign = known.narrowest()
    if isinstance(op, FoldOp):
        step = _free_step(op, number, widths)
        if step is None:
            return None
        if issubclass(step.kind, arith.MinSIOp | arith.MaxSIOp):
            bits, by_sign = known.signed_bits, True
        if issubclass(step.kind, arith.MinUIOp | arith.MaxUIOp):
            bits, by_sign = known.unsigned_bits, False
    if isinstance(op, FilterBase) and isa(op.kept()[number].type, TensorType):
        return None
    bits = round_up(bits, widths)
    if bits >= element.width.data:
        return None
    if not isinstance(op, ReduceOp) and not _only_read_by_element(out):
        return None
    return Storage(bits, by_sign)


def _free_step(op: FoldOp, number: int, widths: Widths) -> Step | None:
    """The step of accumulator `number` where accumulators of any width are wanted."""
    if widths != "any" or not isinstance(op, ReduceOp | ScanOp):
        return None
    steps = simple_steps(op)
    return None if steps is None else steps[number]


def _only_read_by_element(vector: SSAValue) -> bool:
    """True when all uses of a vector or slice take single elements out of it, or its length."""
    return all(_reads_elements(use) for use in vector.uses)


def _reads_elements(use: Use) -> bool:
    user = use.operation
    if isinstance(user, tensor.DimOp):
        return True
    if isinstance(user, tensor.ExtractOp):
        return use.index == 0
    if not isinstance(user, PatternOp) or use.index >= len(user.inputs):
        return False
    if isinstance(user, FoldOp) and user.combine is None and simple_steps(user) is None:
        return False
    arg = user.input_args()[use.index]
    return not isa(arg.type, TensorType) or _only_read_by_element(arg)
