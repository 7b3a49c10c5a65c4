"""Sums of products of wide integers as kernels that multiply digits of 8 bits."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType, i8, i16, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from cim_opt.dialects.mac_body import WIDTHS
from cim_opt.dialects.pattern import MapOp, YieldOp, vector_length, vector_type
from cim_opt.lowering.pattern_products import Factor, Product
from cim_opt.lowering.poly_kernels import build_kernel
from cim_opt.mapping.ranges import Range
from cim_opt.passes.pattern_bodies import copy_into
from cim_opt.passes.range_analysis import RangeAnalysis
from cim_opt.polyhedral.recognise import Access

DIGIT = 8
WORD = 32


def digits_of(known: Range | None) -> int:
    """How many signed digits of 8 bits hold every word of a range; 4 hold all of 32 bits."""
    if known is None:
        return WORD // DIGIT
    for count in range(1, WORD // DIGIT):
        ones = (256**count - 1) // 255
        if -128 * ones <= known.low and known.high <= 127 * ones:
            return count
    return WORD // DIGIT


@dataclass
class DigitKernels:
    """Replaces one pattern by kernels, with what prepares their operands and joins their sums."""

    product: Product
    analysis: RangeAnalysis
    _ops: list[Operation] = field(default_factory=list[Operation])

    def replace(self) -> None:
        """Puts kernels in the place of the pattern. One without any product stays."""
        product = self.product
        if 0 in (product.sums, product.length):
            return
        element, counts = self._digit_plan()
        first = self._digits(product.first, element, counts[0])
        second = self._digits(product.second, element, counts[1])
        init = self._outside(product.init)
        is_plain = len(first) == len(second) == 1 and product.total is product.yielded
        if is_plain:
            start = self._splat(init)
            result = self._kernel(first[0], second[0], start)
        else:
            zero = self._constant(IntegerAttr(0, i32))
            sums = self._sums(first, second, self._splat(zero))
            result = self._joined(sums, init)
        self._finish(result)

    # -- operands --------------------------------------------------------------------------------

    def _insert(self, op: Operation) -> SSAValue:
        op.location = self.product.op.location
        Rewriter.insert_op(op, InsertPoint.before(self.product.op))
        return op.results[0]

    def _constant(self, attr: IntegerAttr[IntegerType] | IntegerAttr[IndexType]) -> SSAValue:
        return self._insert(arith.ConstantOp(attr))

    def _outside(self, value: SSAValue) -> SSAValue:
        """The value, or a copy of the constant in the pattern that it is."""
        owner = value.owner
        if isinstance(owner, Operation) and owner.parent is self.product.block:
            return self._insert(owner.clone())
        return value

    def _splat(self, value: SSAValue) -> SSAValue:
        """A tensor of one element a sum, all of them `value`."""
        return self._insert(tensor.SplatOp(value, [], TensorType(i32, [self.product.sums])))

    def _digit_plan(self) -> tuple[IntegerType, tuple[int, int]]:
        """The type of digits, and how many each factor has.

        A macro takes four times as long for i16 as for i8: half the columns, twice the bits.
        """
        known = [self.analysis.of(factor.value) for factor in self._factors()]
        counts = digits_of(known[0]), digits_of(known[1])
        pairs = sum((i + j) * DIGIT < WORD for i in range(counts[0]) for j in range(counts[1]))
        fit = all(r is not None and r.low >= -(1 << 15) and r.high < 1 << 15 for r in known)
        return (i16, (1, 1)) if fit and pairs > 4 else (i8, counts)

    def _factors(self) -> tuple[Factor, Factor]:
        return self.product.first, self.product.second

    def _digits(self, factor: Factor, element: IntegerType, count: int) -> list[SSAValue]:
        """Vectors of digits, the lowest first."""
        vector = self._outside(factor.vector)
        if count == 1 and self._is_extension(factor, element):
            return [vector]
        block = Block(arg_types=[factor.element.type])
        (rest,) = copy_into(block, factor.block, {factor.element: block.args[0]}, [factor.value])
        digits: list[SSAValue] = []
        for number in range(count):
            digit = arith.TruncIOp(rest, element)
            block.add_op(digit)
            digits.append(digit.result)
            if number < count - 1:
                rest = _rest(block, rest, digit.result)
        block.add_op(YieldOp(*digits))
        length = vector_length(vector)
        types = [TensorType(element, [length])] * count
        op = MapOp([vector], [], types, Region(block))
        self._insert(op)
        return list(op.outs)

    @staticmethod
    def _is_extension(factor: Factor, widest: IntegerType) -> bool:
        """Whether the factor is an element of the vector that macros take, extended by its sign."""
        value = factor.value
        while isinstance(value.owner, arith.ExtSIOp):
            value = value.owner.input
        if value is not factor.element or not isa(value.type, IntegerType):
            return False
        width = value.type.width.data
        return width in WIDTHS and width <= widest.width.data

    # -- sums ------------------------------------------------------------------------------------

    def _kernel(self, first: SSAValue, second: SSAValue, init: SSAValue) -> SSAValue:
        product = self.product
        accesses = [
            Access(((product.step if factor.slides else 0, 1),), (0,)) for factor in self._factors()
        ]
        output = Access(((1, 0),), (0,))
        extents = (product.sums, product.length)
        return self._insert(build_kernel((first, second, init), extents, [*accesses, output]))

    def _sums(
        self, first: list[SSAValue], second: list[SSAValue], zeros: SSAValue
    ) -> list[SSAValue]:
        """Sums of the products of digits i and j, by i + j."""
        sums: dict[int, SSAValue] = {}
        for i, left in enumerate(first):
            for j, right in enumerate(second):
                if (i + j) * DIGIT < WORD:
                    sums[i + j] = self._kernel(left, right, sums.get(i + j, zeros))
        return [sums[place] for place in sorted(sums)]

    def _joined(self, sums: list[SSAValue], init: SSAValue) -> SSAValue:
        """What the pattern yields, from the sums of its digits."""
        product = self.product
        block = Block(arg_types=[*(i32 for _ in sums), i32])
        total: SSAValue = block.args[-1]
        for place, part in enumerate(block.args[:-1]):
            shifted: SSAValue = part
            if place:
                by = arith.ConstantOp(IntegerAttr(place * DIGIT, i32))
                shift = arith.ShLIOp(part, by.result)
                block.add_ops((by, shift))
                shifted = shift.result
            added = arith.AddiOp(total, shifted)
            block.add_op(added)
            total = added.result
        if product.block is not None:
            (total,) = _copy_epilogue(block, product, total)
        block.add_op(YieldOp(total))
        type = TensorType(total.type, [product.sums])
        return self._insert(MapOp(sums, [init], [type], Region(block)))

    def _finish(self, result: SSAValue) -> None:
        op = self.product.op
        out = op.outs[0]
        if self.product.block is None:
            zero = self._constant(IntegerAttr(0, IndexType()))
            result = self._insert(tensor.ExtractOp(result, [zero], i32))
        elif result.type != out.type:
            result = self._insert(tensor.CastOp(result, vector_type(out)))
        result.name_hint = out.name_hint
        Rewriter.replace_op(op, [], [result])


def _rest(block: Block, value: SSAValue, digit: SSAValue) -> SSAValue:
    """(value - digit) / 256: what the higher digits stand for."""
    extended = arith.ExtSIOp(digit, i32)
    less = arith.SubiOp(value, extended.result)
    by = arith.ConstantOp(IntegerAttr(DIGIT, i32))
    shifted = arith.ShRSIOp(less.result, by.result)
    block.add_ops((extended, less, by, shifted))
    return shifted.result


def _copy_epilogue(block: Block, product: Product, total: SSAValue) -> list[SSAValue]:
    """What the pattern computes from its sum, copied to the end of `block`."""
    assert product.block is not None
    reduce = product.total.owner
    mapping: dict[SSAValue, SSAValue] = {product.total: total}
    if product.yielded is product.total:
        return [total]
    for op in product.block.ops:
        if op is reduce or isinstance(op, YieldOp):
            continue
        if all(operand in mapping for operand in op.operands) and not op.regions:
            block.add_op(op.clone(mapping))
    return [mapping[product.yielded]]
