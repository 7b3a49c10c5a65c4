"""Multiply-accumulate bodies: `accumulator + a * b` with the elements of two operands.

The product is exact: operands are extended by their sign, to a type that holds every product or to
that of the accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import poly
from cim_opt.errors import UserError
from cim_opt.locations import location_of

WIDTHS = (4, 8, 16)
"""Bits of the elements that a kernel multiplies."""

_EXTENSIONS = (arith.ExtSIOp, arith.ExtUIOp, arith.ExtFOp, arith.SIToFPOp, arith.UIToFPOp)


@dataclass(frozen=True)
class Mac:
    """The arguments of a body that are multiplied, and the one that the product is added to."""

    first: BlockArgument
    second: BlockArgument
    accumulator: BlockArgument


def match_mac(block: Block) -> Mac | None:
    """The multiply-accumulate that a body of two elements and an accumulator is, or None.

    Raises UserError for one that cannot be computed: floats, unsigned elements, other widths.
    """
    if len(block.args) != 3 or block.last_op is None or len(block.last_op.operands) != 1:
        return None
    total = block.last_op.operands[0].owner
    if not isinstance(total, arith.AddiOp | arith.AddfOp):
        return None
    for accumulator, addend in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        product = _stripped(addend).owner
        if accumulator not in block.args or not isinstance(product, arith.MuliOp | arith.MulfOp):
            continue
        first, second = _stripped(product.lhs), _stripped(product.rhs)
        arguments = {first, second, accumulator}
        if arguments != set(block.args):
            continue
        assert isinstance(first, BlockArgument) and isinstance(second, BlockArgument)
        assert isinstance(accumulator, BlockArgument)
        mac = Mac(first, second, accumulator)
        _check(mac, product, (addend, product.lhs, product.rhs))
        return mac
    return None


def _stripped(value: SSAValue) -> SSAValue:
    """The value before extensions."""
    while isinstance(value.owner, _EXTENSIONS):
        value = value.owner.operands[0]
    return value


def _check(mac: Mac, product: Operation, extended: tuple[SSAValue, ...]) -> None:
    """Raises UserError when the products are not exact ones of small signed integers."""
    place = location_of(product)
    for value in (mac.first, mac.second, mac.accumulator):
        if not isinstance(value.type, IntegerType):
            raise UserError(
                f"a multiply-accumulate of {value.type}",
                "macros compute with integers only",
                "quantise to i8",
                place,
            )
    for value in extended:
        if isinstance(value.owner, arith.ExtUIOp):
            raise UserError(
                "unsigned elements in a multiply-accumulate",
                "macros multiply signed integers",
                "subtract half of the range, or extend to i16 first",
                place,
            )
    check_element(mac.first.type, place)
    check_element(mac.second.type, place)
    if mac.accumulator.type != i32:
        raise UserError(
            f"an accumulator of {mac.accumulator.type}",
            "kernels accumulate in i32",
            "accumulate in i32 and convert afterwards",
            place,
        )
    computed = product.results[0]
    if _width(computed) < min(_width(mac.first) + _width(mac.second), 32):
        raise UserError(
            f"a product of {mac.first.type} and {mac.second.type} in {computed.type}",
            "it wraps there",
            "extend the elements to i32 before they are multiplied",
            place,
        )


def check_element(element: Attribute, place: tuple[str, int, int] | None) -> None:
    """Raises UserError when a kernel cannot multiply elements of this type."""
    if isa(element, IntegerType) and element.width.data in WIDTHS:
        return
    raise UserError(
        f"a multiply-accumulate of {element} elements",
        "macros multiply i4, i8 and i16",
        "quantise, or declare the range of the values",
        place,
    )


def _width(value: SSAValue) -> int:
    assert isa(value.type, IntegerType)
    return value.type.width.data


def mac_body(first: Attribute, second: Attribute, accumulator: Attribute) -> Block:
    """The body of a `poly.kernel`: accumulator + first * second, extended by their signs."""
    block = Block(arg_types=[first, second, accumulator])
    values: list[SSAValue] = []
    for arg in block.args[:2]:
        extension = arith.ExtSIOp(arg, i32)
        block.add_op(extension)
        values.append(extension.result)
    product = arith.MuliOp(values[0], values[1])
    total = arith.AddiOp(block.args[2], product.result)
    block.add_ops((product, total, poly.YieldOp(total.result)))
    return block
