"""What `poly.kernel`, and the operations of `linalg` that become such, compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Operation

from cim_opt.dialects.mac_body import match_mac
from cim_opt.dialects.poly import KernelOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.polyhedral.recognise import Access
from cim_opt.simulators.affine_products import Array, sum_products, sum_products_at
from cim_opt.simulators.integer_functions import Values

if TYPE_CHECKING:
    import islpy as isl

CHUNK = 1 << 18
"""Points of a domain that is no box that are walked at a time."""


def kernel(evaluator: Any, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    """The result of a `poly.kernel`."""
    from cim_opt.polyhedral import sets

    assert isinstance(op, KernelOp)
    if match_mac(op.body.block) is None:
        raise UserError(
            "the body of this 'poly.kernel' is no multiply-accumulate",
            "kernels add the product of both elements to the third",
            location=location_of(op),
        )
    accesses: list[Access] = []
    for attr in op.accesses.data:
        rows = sets.affine_rows(sets.parse_map(attr.text.data))
        if rows is None:
            raise UserError(
                f"an access of this 'poly.kernel' is {attr.text.data}",
                "indices are sums of loops times integers",
                location=location_of(op),
            )
        accesses.append(Access(*rows))
    input, weight, init = (np.asarray(value) for value in args)
    domain = sets.parse_set(op.domain.text.data)
    extents = sets.extents_of(domain)
    if extents is not None:
        return [sum_products(extents, accesses, input, weight, init)]
    return [sum_products_at(_points(op, domain), accesses, input, weight, init)]


def _points(op: Operation, domain: isl.Set) -> Iterator[Array]:
    """The points of a bounded set, in parts of [points, loops]."""
    import islpy as isl

    rank = domain.dim(isl.dim_type.set)
    low = [domain.dim_min_val(i).to_python() for i in range(rank)]
    high = [domain.dim_max_val(i).to_python() for i in range(rank)]
    sizes = [b - a + 1 for a, b in zip(low, high, strict=True)]
    total = int(np.prod(sizes, dtype=np.int64))
    parts = domain.make_disjoint().get_basic_sets()
    for start in range(0, total, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, total))
        points = np.stack(np.unravel_index(numbers, sizes), axis=1) + np.array(low, np.int64)
        for part in parts:
            yield points[_inside(op, part, points)]


def _inside(op: Operation, part: isl.BasicSet, points: Array) -> Array:
    """Which points satisfy all constraints of a basic set."""
    import islpy as isl

    inside = np.ones(len(points), np.bool_)
    for constraint in part.get_constraints():
        if constraint.dim(isl.dim_type.div):
            raise UserError(
                f"the domain {part} of this 'poly.kernel' has divisions",
                "a domain that can be walked is bounded by sums of loops",
                location=location_of(op),
            )
        value = np.full(len(points), constraint.get_constant_val().to_python(), np.int64)
        for loop in range(points.shape[1]):
            factor = constraint.get_coefficient_val(isl.dim_type.set, loop).to_python()
            value += factor * points[:, loop]
        inside &= value == 0 if constraint.is_equality() else value >= 0
    return inside


def structured(evaluator: Any, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
    """The result of `linalg.fill` or of a multiply-accumulate of `linalg` on tensors."""
    if isinstance(op, FillOp):
        return [np.full(np.shape(args[1]), args[0], args[1].dtype)]
    if not isinstance(op, LinalgStructuredOperation) or len(op.res) != 1 or len(args) != 3:
        raise _unknown(op)
    try:
        mac = match_mac(op.body.block)
    except UserError as error:
        error.location = location_of(op)
        raise
    if mac is None or mac.accumulator.index != 2:
        raise _unknown(op)
    input, weight, init = (np.asarray(value) for value in args)
    maps = [attr.data for attr in op.get_indexing_maps()]
    sizes = [size for value in (input, weight, init) for size in value.shape]
    extents = op.get_shapes_to_loops_map().eval(sizes, [])
    accesses = [Access.of_function(map.num_dims, lambda p, m=map: m.eval(p, [])) for map in maps]
    return [sum_products(extents, accesses, input, weight, init)]


def _unknown(op: Operation) -> UserError:
    return UserError(
        f"'{op.name}' cannot be run on the host",
        "of linalg, fills and integer multiply-accumulates on tensors are computed",
        "write it with pattern operations",
        location_of(op),
    )
