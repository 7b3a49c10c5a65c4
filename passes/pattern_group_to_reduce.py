"""`pattern-group-to-reduce`: groups that only reduce become one reduce after the other.

Before:

    %y = pattern.group<4096>(%row in %m : tensor<8192xi32>) shared(%x = %v : tensor<4096xi32>)
        -> tensor<2xi32> {
      %r = pattern.reduce(%p in %row, %q in %x) init(%acc = %zero) { ... } combine(...) { ... }
      pattern.yield %r : i32
    }

After:

    %y = scf.for %i = 0 to 2 iter_args(%out = %empty) {
      %row = tensor.extract_slice %m[%i * 4096][4096]
      %r = pattern.reduce(%p in %row, %q in %v) init(%acc = %zero) { ... } combine(...) { ... }
      scf.yield (tensor.insert %r into %out[%i])
    }

This is the reduction-in-lane mapping of a machine that computes in columns: inputs of one output
lie side by side. `mapping=auto` does it where that takes fewer operations on `columns` columns than
outputs side by side (`mapping/simdram_lanes.py`); a length that is not known stays a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import scf, tensor
from xdsl.dialects.arith import ConstantOp, DivUIOp, ExtSIOp, ExtUIOp, MuliOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import GroupOp, ReduceOp, vector_length, vector_type
from cim_opt.mapping.simdram_lanes import choose_mapping


@dataclass(frozen=True)
class PatternGroupToReducePass(ModulePass):
    """Turns groups that only reduce into loops of reduces; see the module's documentation."""

    name = "pattern-group-to-reduce"

    columns: int = 65536
    mapping: Literal["auto", "output-stationary", "reduction-in-lane"] = "auto"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.mapping == "output-stationary":
            return
        for group in [inner for inner in op.walk() if isinstance(inner, GroupOp)]:
            reduce = _only_reduce(group)
            if reduce is not None and self._wanted(group):
                _rewrite(group, reduce)

    def _wanted(self, group: GroupOp) -> bool:
        outputs = group.owners()
        if self.mapping == "reduction-in-lane":
            return True
        if outputs == DYNAMIC_INDEX:
            return False
        return choose_mapping(outputs, group.group_size, self.columns) == "reduction-in-lane"


def _only_reduce(group: GroupOp) -> ReduceOp | None:
    """The one pattern of a group's element function, when that reads slices whole and is all.

    Its results may be widened, as they are after `pattern-narrow`.
    """
    ops = [op for op in group.body.block.ops if not isinstance(op, ConstantOp)]
    reduce, casts = ops[0], ops[1:-1]
    if not isinstance(reduce, ReduceOp) or reduce.tensor_accumulators:
        return None
    if not all(isinstance(op, ExtUIOp | ExtSIOp) for op in casts):
        return None
    slices: set[SSAValue] = set(group.input_args())
    whole = all(
        isinstance(value, BlockArgument) and isa(value.type, TensorType) for value in reduce.inputs
    )
    uses_slices = any(value in slices for value in reduce.inputs)
    same = [_before_casts(value) for value in group.yielded()] == list(reduce.outs)
    return reduce if whole and uses_slices and same else None


def _before_casts(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ExtUIOp | ExtSIOp):
        value = value.owner.input
    return value


def _rewrite(group: GroupOp, reduce: ReduceOp) -> None:
    """Replaces a group by a loop over its owners."""
    ops: list[Operation] = []

    def index(value: int) -> SSAValue:
        op = ConstantOp(IntegerAttr(value, IndexType()))
        ops.append(op)
        return op.result

    zero, one, size = index(0), index(1), index(group.group_size)
    owners = _owners(group, ops, size)
    outs = [_empty(out, owners, ops) for out in group.outs]
    body = Block(arg_types=[IndexType(), *(out.type for out in outs)])
    _fill_body(body, group, reduce, size)
    loop = scf.ForOp(zero, owners, one, outs, Region(body))
    assert group.parent is not None
    group.parent.insert_ops_before([*ops, loop], group)
    for old, new in zip(group.outs, loop.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    group.detach()
    group.erase()


def _owners(group: GroupOp, ops: list[Operation], size: SSAValue) -> SSAValue:
    owners = group.owners()
    if owners != DYNAMIC_INDEX:
        op = ConstantOp(IntegerAttr(owners, IndexType()))
        ops.append(op)
        return op.result
    zero = ConstantOp(IntegerAttr(0, IndexType()))
    length = tensor.DimOp(group.inputs[0], zero.result)
    quotient = DivUIOp(length.results[0], size)
    ops.extend([zero, length, quotient])
    return quotient.result


def _empty(out: SSAValue, owners: SSAValue, ops: list[Operation]) -> SSAValue:
    attr = vector_type(out)
    dynamic = [owners] if vector_length(out) == DYNAMIC_INDEX else []
    op = tensor.EmptyOp(dynamic, attr)
    ops.append(op)
    return op.results[0]


def _fill_body(body: Block, group: GroupOp, reduce: ReduceOp, size: SSAValue) -> None:
    start = MuliOp(body.args[0], size)
    body.add_op(start)
    values = dict[SSAValue, SSAValue](zip(group.shared_args(), group.shared, strict=True))
    for arg, vector in zip(group.input_args(), group.inputs, strict=True):
        attr = TensorType(vector_type(vector).element_type, [group.group_size])
        cut = tensor.ExtractSliceOp(vector, [start.result], [group.group_size], [1], attr)
        body.add_op(cut)
        values[arg] = cut.results[0]
    for op in group.body.block.ops:
        if isinstance(op, ConstantOp):
            copy = op.clone(values)
            body.add_op(copy)
            values[op.result] = copy.results[0]
    for op in group.body.block.ops:
        if op is reduce or isinstance(op, ExtUIOp | ExtSIOp):
            body.add_op(op.clone(values))
    yielded = [values[value] for value in group.yielded()]
    results: list[SSAValue] = []
    for value, out in zip(yielded, body.args[1:], strict=True):
        insert = tensor.InsertOp(value, out, [body.args[0]])
        body.add_op(insert)
        results.append(insert.results[0])
    body.add_op(scf.YieldOp(*results))
