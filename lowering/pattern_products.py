"""Patterns that sum products of two vectors, taken apart for `convert-pattern-to-poly`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, i32
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cim_opt.dialects.pattern import PatternOp, ReduceOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.passes.pattern_bodies import needs_of


@dataclass(frozen=True)
class Factor:
    """What is multiplied: `value`, computed in `block` from one element `element` of a vector.

    `vector` is outside of the pattern, or a constant in it. With `slides` sum number r of the
    pattern reads the elements from r * step on; without it all of them read the same ones.
    """

    vector: SSAValue
    value: SSAValue
    element: BlockArgument
    block: Block
    slides: bool


@dataclass(frozen=True)
class Product:
    """`sums` sums of `length` products, each plus `init`, and what is made of the sums.

    Sum number r is `total` in the pattern `op`; the pattern yields `yielded`, which is computed
    from it and from constants in `block`. `init` is a value outside of `op`, or a constant in it.
    """

    op: PatternOp
    first: Factor
    second: Factor
    sums: int
    length: int
    step: int
    init: SSAValue
    total: SSAValue
    yielded: SSAValue
    block: Block | None


def product_of_reduce(op: ReduceOp) -> Product | None:
    """The sum of products that a reduce outside of other patterns is, or None."""
    factors = _factors(op)
    if factors is None:
        return None
    vectors = {arg: value for arg, value in zip(op.input_args(), op.inputs, strict=True)}
    first, second = (
        Factor(vectors[element], value, element, op.body.block, False) for value, element in factors
    )
    length = _known_length(op)
    result = op.outs[0]
    return Product(op, first, second, 1, length, 0, op.inits[0], result, result, None)


def product_of_group(op: PatternOp) -> Product | None:
    """The sums of products that a group, a window or both compute, or None."""
    reduces = [inner for inner in op.body.block.ops if isinstance(inner, ReduceOp)]
    if len(reduces) != 1 or len(op.outs) != 1:
        return None
    reduce = reduces[0]
    factors = _factors(reduce)
    if factors is None or not _is_epilogue(op, reduce):
        return None
    outside = dict[SSAValue, SSAValue](zip(op.input_args(), op.inputs, strict=True))
    shared = dict[SSAValue, SSAValue](zip(op.shared_args(), op.shared, strict=True))
    found: list[Factor] = []
    for value, element in factors:
        slice = reduce.inputs[reduce.input_args().index(element)]
        vector = outside.get(slice, shared.get(slice))
        if vector is None and isinstance(slice.owner, arith.ConstantOp):
            vector = slice
        if vector is None:
            return None
        found.append(Factor(vector, value, element, reduce.body.block, slice in outside))
    init = reduce.inits[0]
    init = shared.get(init, init)
    if init.owner is op.body.block or not any(factor.slides for factor in found):
        return None
    if _is_inside(op, init) and not isinstance(init.owner, arith.ConstantOp):
        return None
    return Product(
        op,
        found[0],
        found[1],
        _known_length(op),
        op.slice_length,
        op.group_size,
        init,
        reduce.outs[0],
        op.yielded()[0],
        op.body.block,
    )


def _is_inside(op: PatternOp, value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is op.body.block


def _known_length(op: PatternOp) -> int:
    """How often the element function runs. Raises UserError when that is not known."""
    owners = op.owners()
    if owners == DYNAMIC_INDEX:
        raise UserError(
            f"'{op.name}' works on {op.inputs[0].type}",
            "the mapping to macros needs every length",
            "give sizes=... or write it into the type",
            location_of(op),
        )
    return owners


def _factors(op: ReduceOp) -> list[tuple[SSAValue, BlockArgument]] | None:
    """Both factors of a sum of products, each with the element it comes from; None for others."""
    if len(op.outs) != 1 or op.combine is None:
        return None
    total, accumulator = op.yielded()[0].owner, op.accumulator_args()[0]
    if not isinstance(total, arith.AddiOp | arith.AddfOp):
        return None
    if accumulator not in total.operands:
        return None
    addend = total.rhs if total.lhs is accumulator else total.lhs
    product = addend.owner
    if not isinstance(product, arith.MuliOp | arith.MulfOp):
        return None
    elements = [_element(op, value) for value in product.operands]
    found = [element for element in elements if element is not None]
    if len(found) != 2:
        return None
    if product.result.type != i32:
        raise UserError(
            f"'{op.name}' sums products of {product.result.type}",
            "kernels accumulate in i32",
            "convert the elements, or run it on another target",
            location_of(op),
        )
    return list(zip(product.operands, found, strict=True))


def _element(op: ReduceOp, value: SSAValue) -> BlockArgument | None:
    """The one element that a value of a reduce's body is computed from; None if not just one."""
    arguments = needs_of(op.body.block, [value]).arguments
    if len(arguments) != 1:
        return None
    element = next(iter(arguments))
    return element if element in op.input_args() else None


def _is_epilogue(op: PatternOp, reduce: ReduceOp) -> bool:
    """Whether the rest of a group's body computes its result from the sum and constants alone."""
    needs = needs_of(op.body.block, op.yielded())
    allowed = {reduce, *needs_of(op.body.block, reduce.operands).operations}
    own = [inner for inner in needs.operations if inner not in allowed]
    values = {reduce.outs[0], *(result for inner in own for result in inner.results)}
    constants = [inner for inner in needs.operations if isinstance(inner, arith.ConstantOp)]
    values |= {result for inner in constants for result in inner.results}
    return all(not inner.regions and set(inner.operands) <= values for inner in own) and (
        op.yielded()[0] in values
    )
