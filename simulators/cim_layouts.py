"""The arrangement that a `cim.pack` or a `cim.unpack` describes, for mapping/cim_layout.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntElementsAttr, TensorType
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from cim_opt.dialects import cim
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.mapping.cim_layout import Array, Expression, Layout


def layout_of(op: cim.PackOp | cim.UnpackOp) -> Layout:
    """The layout of an operation's packed elements in its tensor."""
    made = [_expression(op, expression) for expression in op.map.data.results]
    tables = len(op.tables)
    tensor = op.tensor.type
    assert isinstance(tensor, TensorType)
    return Layout(
        shape=tuple(op.shape.get_values()),
        rows=tuple(made[:tables]),
        coordinates=tuple(made[tables:]),
        bounds=tuple(op.bounds.get_values()),
        index=tuple(_expression(op, expression) for expression in op.index.data.results),
        tables=tuple(array_of(table) for table in op.tables),
        tensor_shape=tensor.get_shape(),
        divisors=None if op.divisors is None else tuple(op.divisors.get_values()),
        dropped=None if op.dropped is None else array_of(op.dropped),
    )


def _expression(op: cim.PackOp | cim.UnpackOp, expression: AffineExpr) -> Expression:
    def function(axes: Sequence[Array]) -> Array:
        return np.asarray(_value(op, expression, axes))

    return Expression(function, frozenset(expression.used_dims()))


def array_of(attr: DenseIntElementsAttr) -> Array:
    """A table as an array of int64."""
    values = np.array(list(attr.get_values()), np.int64)
    return values.reshape(attr.type.get_shape())


def _value(op: cim.PackOp | cim.UnpackOp, expression: AffineExpr, axes: Sequence[Array]) -> Any:
    """An affine expression of arrays, one for each dimension."""
    match expression:
        case AffineDimExpr():
            return axes[expression.position]
        case AffineConstantExpr():
            return np.int64(expression.value)
        case AffineBinaryOpExpr():
            left = _value(op, expression.lhs, axes)
            right = _value(op, expression.rhs, axes)
            return _binary(op, expression.kind, left, right)
        case _:
            raise AssertionError(f"the verifier lets no symbols pass: {expression}")


def _binary(op: cim.PackOp | cim.UnpackOp, kind: AffineBinaryOpKind, left: Any, right: Any) -> Any:
    if kind is AffineBinaryOpKind.Add:
        return left + right
    if kind is AffineBinaryOpKind.Mul:
        return left * right
    if np.any(right < 1):
        raise UserError(
            f"the map of '{op.name}' divides by {int(np.min(right))}",
            "divisors are at least 1",
            "write a positive constant",
            location_of(op),
        )
    match kind:
        case AffineBinaryOpKind.FloorDiv:
            return left // right
        case AffineBinaryOpKind.CeilDiv:
            return -(-left // right)
        case AffineBinaryOpKind.Mod:
            return left % right
        case _:
            raise AssertionError(f"no other kind of expression: {kind}")
