"""Makes the lengths of a function's tensors known: for machines whose mapping needs them.

With the sizes (8192,)

    func.func @gemv(%m: tensor<?xi32>, %v: tensor<64xi32>) -> tensor<?xi32> {
      %y = pattern.group<64>(%row in %m : tensor<?xi32>) ... -> tensor<?xi32> { ... }
      func.return %y : tensor<?xi32>

becomes

    func.func @gemv(%m: tensor<?xi32>, %v: tensor<64xi32>) -> tensor<?xi32> {
      %n = tensor.cast %m : tensor<?xi32> to tensor<8192xi32>
      %y = pattern.group<64>(%row in %n : tensor<8192xi32>) ... -> tensor<128xi32> { ... }
      %z = tensor.cast %y : tensor<128xi32> to tensor<?xi32>
      func.return %z : tensor<?xi32>

The function's type stays. A call with other lengths is refused by the cast, so nothing is computed
wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ScanOp, vector_type
from cim_opt.errors import UserError
from cim_opt.locations import location_of


def dynamic_sizes(function: FuncOp) -> int:
    """How many `?` the types of the function's arguments have."""
    types = [arg.type for arg in function.args]
    shapes = [type.get_shape() for type in types if isa(type, TensorType)]
    return sum(shape.count(DYNAMIC_INDEX) for shape in shapes)


def specialise(module: ModuleOp, sizes: Sequence[int], entry: str | None = None) -> None:
    """Sets the `?` of the arguments of function `entry`, in their order, to `sizes`.

    Without `entry` it is the one function that has any. Raises UserError when that does not fit.
    """
    function = _entry(module, entry)
    wanted = dynamic_sizes(function)
    if wanted != len(sizes) or min(sizes, default=0) < 0:
        raise UserError(
            f"sizes={','.join(map(str, sizes))} for @{function.sym_name.data}",
            f"its arguments have {wanted} lengths `?`",
            "give one length of 0 or more for each",
            location_of(function),
        )
    block = function.body.block
    rest = list(sizes)
    first = block.first_op
    for arg in block.args:
        if not isa(arg.type, TensorType):
            continue
        shape = [rest.pop(0) if n == DYNAMIC_INDEX else n for n in arg.type.get_shape()]
        if tuple(shape) == arg.type.get_shape():
            continue
        cast = tensor.CastOp(arg, TensorType(arg.type.element_type, shape))
        cast.results[0].name_hint = arg.name_hint
        assert first is not None
        block.insert_op_before(cast, first)
        arg.replace_uses_with_if(cast.results[0], lambda use, made=cast: use.operation is not made)
        _follow(block, cast.results[0], arg.type)


def _entry(module: ModuleOp, entry: str | None) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp) and len(op.body.blocks) == 1]
    found = [
        op
        for op in functions
        if (op.sym_name.data == entry if entry is not None else dynamic_sizes(op) > 0)
    ]
    if len(found) != 1:
        raise UserError(
            f"sizes for {f'function @{entry}' if entry else 'no function in particular'}",
            f"{len(found)} functions are that" if entry else f"{len(found)} have lengths `?`",
            "name the function with entry=",
        )
    return found[0]


def _follow(block: Block, value: SSAValue, before: object) -> None:
    """Lets patterns that read `value` have results of known length; others get the old type."""
    for use in list(value.uses):
        user = use.operation
        if isinstance(user, PatternOp) and user.parent is block and value in user.inputs:
            continue
        if isinstance(user, tensor.DimOp):
            continue
        assert isa(before, TensorType)
        cast = tensor.CastOp(value, before)
        assert user.parent is not None
        user.parent.insert_op_before(cast, user)
        user.operands[use.index] = cast.results[0]
    readers = {use.operation for use in value.uses}
    for op in list(block.ops):
        if op not in readers or not isinstance(op, PatternOp) or isinstance(op, FilterBase):
            continue
        if isinstance(op, FoldOp) and not isinstance(op, ScanOp):
            continue
        for out in op.outs:
            _set_length(block, op, out)


def _set_length(block: Block, op: PatternOp, out: SSAValue) -> None:
    old = vector_type(out)
    new = TensorType(old.element_type, [op.owners()])
    if new == old or op.owners() == DYNAMIC_INDEX:
        return
    _follow(block, Rewriter.replace_value_with_new_type(out, new), old)
