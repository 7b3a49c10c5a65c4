"""`convert-linalg-to-poly`: convolutions and matrix products become `poly.kernel`.

    %y = linalg.conv_1d ins(%x, %w : tensor<10xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>)
        -> tensor<8xi32>

becomes

    %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>)
        domain <"{ [o0, k0] : 0 <= o0 <= 7 and 0 <= k0 <= 2 }">
        accesses [#poly.map<"{ [o0, k0] -> [o0 + k0] }">, ...] { ... }

All structured operations of `linalg` that multiply and accumulate are converted, named ones and
`linalg.generic` alike; others stay. A `tensor.pad` with zeros in front becomes part of the access,
so that no padded copy of the input is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import QuantizedMatmulOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from cim_opt.dialects.mac_body import match_mac
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.poly_kernels import build_kernel, shape_of
from cim_opt.polyhedral.recognise import Access

_PURE = (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)


@dataclass(frozen=True)
class ConvertLinalgToPolyPass(ModulePass):
    """Turns multiply-accumulates of `linalg` into `poly.kernel`; see the module's documentation."""

    name = "convert-linalg-to-poly"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, LinalgStructuredOperation):
                _convert(inner)


def _convert(op: LinalgStructuredOperation) -> None:
    if isinstance(op, QuantizedMatmulOp):
        raise UserError(
            f"'{op.name}' has zero points",
            "kernels multiply the elements as they are",
            "subtract the zero points first and use linalg.matmul",
            location_of(op),
        )
    try:
        mac = match_mac(op.body.block)
    except UserError as error:
        error.location = location_of(op)
        raise
    if mac is None or mac.accumulator.index != 2:
        return
    _check_tensors(op)
    extents = op.get_static_loop_ranges()
    init = op.outputs[0]
    if 0 in extents:
        Rewriter.replace_op(op, [], [init])
        return
    input, weight = op.inputs
    accesses = [_access(op, attr.data) for attr in op.get_indexing_maps()]
    source, accesses[0] = _without_padding(input, accesses[0])
    padded = not accesses[0].stays_in(shape_of(source), extents)
    try:
        kernel = build_kernel((source, weight, init), extents, accesses, padded)
    except UserError as error:
        error.location = location_of(op)
        raise
    kernel.location = op.location
    kernel.result.name_hint = op.res[0].name_hint
    Rewriter.insert_op(kernel, InsertPoint.before(op))
    Rewriter.replace_op(op, [], [kernel.result])
    if isinstance(input.owner, tensor.PadOp) and not input.uses:
        Rewriter.erase_op(input.owner)


def _check_tensors(op: LinalgStructuredOperation) -> None:
    """Raises UserError unless the operation computes a tensor of known shape from such."""
    for value in op.operands:
        if not isa(value.type, TensorType):
            raise UserError(
                f"'{op.name}' works on {value.type}",
                "kernels compute tensors from tensors",
                "convert before memory is assigned",
                location_of(op),
            )
        if DYNAMIC_INDEX in shape_of(value):
            raise UserError(
                f"'{op.name}' works on {value.type}",
                "the mapping to macros needs every size",
                "write the sizes into the types",
                location_of(op),
            )


def _access(op: LinalgStructuredOperation, map: AffineMap) -> Access:
    """The matrix and offsets of an indexing map. UserError for divisions and remainders."""
    for result in map.results:
        for part in result.dfs():
            if isinstance(part, AffineBinaryOpExpr) and part.kind not in _PURE:
                raise UserError(
                    f"an index of '{op.name}' is {result}",
                    "indices are sums of loops times integers",
                    "split the loop that is divided",
                    location_of(op),
                )
    return Access.of_function(map.num_dims, lambda point: map.eval(point, []))


def _without_padding(value: SSAValue, access: Access) -> tuple[SSAValue, Access]:
    """The tensor behind a `tensor.pad` with zeros, and the access to it."""
    pad = value.owner
    if not isinstance(pad, tensor.PadOp) or pad.nofold is not None or not _pads_zeros(pad):
        return value, access
    low, high = pad.static_low.get_values(), pad.static_high.get_values()
    if min((*low, *high), default=0) < 0:  # includes DYNAMIC_INDEX
        return value, access
    if DYNAMIC_INDEX in shape_of(pad.source):
        return value, access
    offsets = tuple(offset - zeros for offset, zeros in zip(access.offsets, low, strict=True))
    return pad.source, Access(access.matrix, offsets)


def _pads_zeros(pad: tensor.PadOp) -> bool:
    last = pad.region.block.last_op
    yielded: Sequence[SSAValue] = last.operands if last is not None else ()
    if len(yielded) != 1:
        return False
    constant = yielded[0].owner
    if not isinstance(constant, arith.ConstantOp) or not isinstance(constant.value, IntegerAttr):
        return False
    return constant.value.value.data == 0
