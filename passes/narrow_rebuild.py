"""Rebuilding the body of a function with narrower values.

Every value of the old body has a counterpart in the new one that may be narrower, and is extended
or cut off where it is needed in another width: so extensions that nobody needs are never made.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp
from cim_opt.mapping.ranges import Range, as_signed, mask_of
from cim_opt.passes.narrow_demand import demanded_bits
from cim_opt.passes.narrow_policy import Form, Widths, compare_form, form_of, round_up
from cim_opt.passes.narrow_storage import Storage, combine_of, simple_steps
from cim_opt.passes.pattern_bodies import build_like, end_with, new_block
from cim_opt.passes.range_analysis import RangeAnalysis


@dataclass(frozen=True)
class _Value:
    """The counterpart of an old value: extended by the sign, or by zeros, it is that value."""

    new: SSAValue
    by_sign: bool = False


class Rebuilder:
    """Copies blocks, narrowing what the ranges of `analysis` allow and `plan` says."""

    def __init__(
        self, analysis: RangeAnalysis, plan: Mapping[SSAValue, Storage], widths: Widths
    ) -> None:
        self.analysis = analysis
        self.plan = plan
        self.widths: Widths = widths
        self._values: dict[SSAValue, _Value] = {}
        self._casts: dict[tuple[SSAValue, int, bool], SSAValue] = {}
        self._block = Block()
        self._demand: dict[SSAValue, int] = {}
        self._in_function = True
        self._steps: dict[SSAValue, Storage] = {}
        """Results of operations that are the steps of narrow accumulators."""
        self._as_they_are: set[Operation | Block] = set()

    def function_block(self, old: Block, new: Block) -> None:
        """Copies the block of a function, whose arguments stay as they are, into `new`."""
        for arg, copy in zip(old.args, new.args, strict=True):
            copy.name_hint = arg.name_hint
            self._values[arg] = _Value(copy)
        self._copy_block(old, new, {})

    # -- blocks ----------------------------------------------------------------------------------

    @contextmanager
    def _inside(self, new: Block) -> Generator[None]:
        """Emits into `new`; casts made in it are not seen outside."""
        before = self._block, dict(self._casts), self._demand
        self._block = new
        yield
        self._block, self._casts, self._demand = before

    def _copy_block(self, old: Block, new: Block, yielded: Mapping[int, int]) -> None:
        """Copies a block with its terminator, if that is not a pattern's."""
        with self._inside(new):
            self._demand = {} if self._in_function else demanded_bits(old, yielded)
            for op in old.ops:
                self._operation(op)

    def _element_function(
        self, old: Block, types: Sequence[Attribute], signs: Sequence[bool], kept: Sequence[int]
    ) -> Block:
        """A copy of an element function for arguments of these types.

        `signs` says how arguments are extended to what they were, and `kept` in how many bits
        each value is yielded; 0 stands for all.
        """
        new = new_block(types, old.args)
        for arg, copy, by_sign in zip(old.args, new.args, signs, strict=True):
            self._values[arg] = _Value(copy, by_sign)
        outside, self._in_function = self._in_function, False
        with self._inside(new):
            self._demand = demanded_bits(old, {k: bits for k, bits in enumerate(kept) if bits})
            last = old.last_op
            assert last is not None
            for op in old.ops:
                if op is not last:
                    self._operation(op)
            pairs = zip(last.operands, kept, strict=True)
            values = [self._low(v, bits) if bits else self._whole(v) for v, bits in pairs]
            end_with(new, values)
        self._in_function = outside
        return new

    # -- values ----------------------------------------------------------------------------------

    def _emit(self, op: Operation, like: SSAValue | None = None) -> SSAValue:
        self._block.add_op(op)
        if like is not None and op.results:
            op.results[0].name_hint = like.name_hint
        return op.results[0]

    def _whole(self, old: SSAValue) -> SSAValue:
        """The counterpart of `old` in its own type."""
        if isa(old.type, IntegerType):
            return self._low(old, old.type.width.data)
        return self._values[old].new

    def _low(self, old: SSAValue, bits: int) -> SSAValue:
        """A value of `bits` bits, the lowest ones of `old`."""
        value = self._values[old]
        return self._cast(value.new, bits, value.by_sign, old)

    def _cast(self, value: SSAValue, bits: int, by_sign: bool, like: SSAValue) -> SSAValue:
        assert isa(value.type, IntegerType)
        width = value.type.width.data
        if bits == width:
            return value
        key = (value, bits, by_sign and bits > width)
        if key not in self._casts:
            self._casts[key] = self._emit(_cast_op(value, bits, by_sign), like)
        return self._casts[key]

    def _through(self, old: SSAValue, bits: int) -> SSAValue:
        """`old` in `bits` bits by way of the narrowest type that holds it.

        A multiplication that knows its operands to be so narrow is cheaper.
        """
        known = self._range(old)
        least, by_sign = known.narrowest()
        least = round_up(least, self.widths)
        if least >= bits or known.value is not None:
            return self._low(old, bits)
        if _bits(self._values[old].new.type) <= least:
            return self._low(old, bits)
        low = self._low(_unmasked(old, least), least)
        return self._cast(low, bits, by_sign, old)

    def _range(self, old: SSAValue) -> Range:
        known = self.analysis.of(old)
        assert known is not None
        return known

    # -- operations ------------------------------------------------------------------------------

    def _operation(self, op: Operation) -> None:
        if isinstance(op, PatternOp):
            self._pattern(op)
        elif self._in_function:
            if not isinstance(op, tensor.ExtractOp) or not self._extract(op):
                self._copy(op)
        elif op in self._as_they_are or not self._narrow(op):
            self._copy(op)

    def _copy(self, op: Operation) -> None:
        """Copies an operation as it is, and narrows inside of it."""
        wholes = {operand: self._whole(operand) for operand in op.operands}
        if not op.regions:
            copy = op.clone(wholes)
            self._block.add_op(copy)
        else:
            copy = op.clone_without_regions(wholes)
            self._block.add_op(copy)
            for region, empty in zip(op.regions, copy.regions, strict=True):
                self._copy_region(region, empty)
        for result, new in zip(op.results, copy.results, strict=True):
            new.name_hint = result.name_hint
            self._values[result] = _Value(new)

    def _copy_region(self, region: Region, empty: Region) -> None:
        copies = [Block(arg_types=[arg.type for arg in block.args]) for block in region.blocks]
        for block, copy in zip(region.blocks, copies, strict=True):
            for arg, new in zip(block.args, copy.args, strict=True):
                new.name_hint = arg.name_hint
                self._values[arg] = _Value(new)
        for block, copy in zip(region.blocks, copies, strict=True):
            self._copy_block(block, copy, {})
            empty.add_block(copy)

    def _narrow(self, op: Operation) -> bool:
        """Writes a narrower form of `op`; False when there is none that is better."""
        match op:
            case arith.ExtSIOp() | arith.ExtUIOp():
                return self._extension(op)
            case arith.TruncIOp():
                bits = _bits(op.result.type)
                low = self._low(op.input, min(bits, _bits(self._values[op.input].new.type)))
                self._values[op.result] = _Value(low, self._values[op.input].by_sign)
                return True
            case arith.CmpiOp():
                return self._comparison(op)
            case tensor.ExtractOp():
                return self._extract(op)
            case _:
                return len(op.results) == 1 and self._arithmetic(op)

    def _extension(self, op: arith.ExtSIOp | arith.ExtUIOp) -> bool:
        value = self._values[op.input]
        by_sign = isinstance(op, arith.ExtSIOp)
        if _bits(value.new.type) == _bits(op.input.type):
            self._values[op.result] = _Value(value.new, by_sign)
        elif by_sign == value.by_sign or not value.by_sign:
            self._values[op.result] = value
        else:
            self._values[op.result] = _Value(self._whole(op.input), by_sign)
        return True

    def _extract(self, op: tensor.ExtractOp) -> bool:
        source = self._values[op.tensor]
        if source.new.type == op.tensor.type:
            return False
        indices = [self._whole(index) for index in op.indices]
        assert isa(source.new.type, TensorType)
        new = tensor.ExtractOp(source.new, indices, source.new.type.element_type)
        self._values[op.result] = _Value(self._emit(new, op.result), source.by_sign)
        return True

    def _comparison(self, op: arith.CmpiOp) -> bool:
        if self.widths != "any" or not isa(op.lhs.type, IntegerType):
            return False
        predicate, bits = compare_form(op, self._range(op.lhs), self._range(op.rhs))
        lhs, rhs = self._low(op.lhs, bits), self._low(op.rhs, bits)
        new = self._emit(arith.CmpiOp(lhs, rhs, predicate), op.result)
        self._values[op.result] = _Value(new)
        return True

    def _arithmetic(self, op: Operation) -> bool:
        result = op.results[0]
        if not isa(result.type, IntegerType) or isinstance(op, arith.ConstantOp):
            return False
        if not all(isa(operand.type, IntegerType) for operand in op.operands):
            return False
        form = self._form(op, result, result.type.width.data)
        if form is None:
            return False
        free = _unmasked(result, form.bits)
        if free is not result:
            self._values[result] = _Value(self._low(free, form.bits), form.by_sign)
            return True
        operands = [self._operand(op, operand, form) for operand in op.operands]
        new = form.kind.create(
            operands=operands,
            result_types=[IntegerType(form.bits)],
            properties=_default_properties(form.kind),
        )
        self._values[result] = _Value(self._emit(new, result), form.by_sign)
        return True

    def _form(self, op: Operation, result: SSAValue, width: int) -> Form | None:
        """What to write for an operation on integers of `width` bits, None for itself."""
        storage = self._steps.get(result)
        if storage is not None:
            return Form(type(op), storage.bits, storage.by_sign)
        ranges = [self._range(operand) for operand in op.operands]
        demanded = self._demand.get(result, width)
        if width == 1:
            return None
        return form_of(op, ranges, self._range(result), demanded, self.widths)

    def _operand(self, op: Operation, operand: SSAValue, form: Form) -> SSAValue:
        if isinstance(op, arith.SelectOp) and operand is op.cond:
            return self._low(operand, 1)
        if isinstance(op, arith.MuliOp):
            return self._through(operand, form.bits)
        return self._low(operand, form.bits)

    # -- patterns --------------------------------------------------------------------------------

    def _pattern(self, op: PatternOp) -> None:
        inputs = [self._values[value] for value in op.inputs]
        shared = [self._whole(value) for value in op.shared]
        accs = [self._kept(out) if isinstance(op, FoldOp) else 0 for out in op.results]
        inits = [
            self._low(init, bits) if bits else self._whole(init)
            for init, bits in zip(op.accumulators(), accs, strict=False)
        ]
        types = [
            *(init.type for init in inits),
            *(
                _with_element(arg.type, value.new.type)
                for arg, value in zip(op.input_args(), inputs, strict=True)
            ),
            *(value.type for value in shared),
        ]
        signs = [
            *(self._extended_by_sign(out) for out in op.results[: len(inits)]),
            *(value.by_sign for value in inputs),
            *(False for _ in shared),
        ]
        kept = [self._kept(out) for out in op.results]
        if isinstance(op, FilterBase):
            kept = [0, *kept[:-1]]
        if isinstance(op, FoldOp):
            for value, out in zip(op.yielded(), op.results, strict=True):
                if out in self.plan:
                    self._steps[value] = self.plan[out]
            if op.combine is None:
                # The neutral element is read off these.
                self._as_they_are.update(value.owner for value in op.yielded())
        body = self._element_function(op.body.block, types, signs, kept)
        new = build_like(
            op,
            [value.new for value in inputs],
            shared,
            inits,
            [self._result_type(out) for out in op.results],
            body,
            self._combine(op, inits, inputs) if isinstance(op, FoldOp) else None,
        )
        self._block.add_op(new)
        for out, result in zip(op.results, new.results, strict=True):
            result.name_hint = out.name_hint
            self._values[out] = _Value(result, self._extended_by_sign(out))

    def _combine(
        self, op: FoldOp, inits: Sequence[SSAValue], inputs: Sequence[_Value]
    ) -> Block | None:
        """The combine region: a copy, or made of the steps where accumulators or inputs changed."""
        if [init.type for init in inits] != [init.type for init in op.inits]:
            return self._new_combine(op, inits)
        if op.combine is not None:
            # As it is: the neutral element is read off it.
            return op.combine.clone().detach_block(0)
        if [value.new.type for value in inputs] != [value.type for value in op.inputs]:
            return self._new_combine(op, inits)
        return None

    def _new_combine(self, op: FoldOp, inits: Sequence[SSAValue]) -> Block:
        steps = simple_steps(op)
        assert steps is not None
        region = combine_of(steps, [init.type for init in inits])
        return region.detach_block(0)

    def _kept(self, out: SSAValue) -> int:
        """Bits in which a pattern's result is kept, 0 for all."""
        storage = self.plan.get(out)
        return 0 if storage is None else storage.bits

    def _extended_by_sign(self, out: SSAValue) -> bool:
        storage = self.plan.get(out)
        return storage is not None and storage.by_sign

    def _result_type(self, out: SSAValue) -> Attribute:
        bits = self._kept(out)
        if not bits:
            return out.type
        return _with_element(out.type, IntegerType(bits))


def _with_element(attr: Attribute, like: Attribute) -> Attribute:
    """`attr` with the element type of `like`."""
    element = like.element_type if isa(like, TensorType) else like
    return TensorType(element, attr.get_shape()) if isa(attr, TensorType) else element


def _bits(attr: Attribute) -> int:
    assert isa(attr, IntegerType)
    return attr.width.data


def _cast_op(value: SSAValue, bits: int, by_sign: bool) -> Operation:
    """The value in another width; a constant stays one."""
    width, target = _bits(value.type), IntegerType(bits)
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        number = owner.value.value.data & mask_of(width)
        number = as_signed(width, number) if by_sign or bits < width else number
        return arith.ConstantOp(IntegerAttr(as_signed(bits, number & mask_of(bits)), target))
    if bits < width:
        return arith.TruncIOp(value, target)
    return arith.ExtSIOp(value, target) if by_sign else arith.ExtUIOp(value, target)


def _unmasked(value: SSAValue, bits: int) -> SSAValue:
    """What a mask that keeps all of the lowest `bits` bits was applied to."""
    owner = value.owner
    if not isinstance(owner, arith.AndIOp):
        return value
    for operand, mask in (owner.operands, reversed(owner.operands)):
        constant = mask.owner
        if not isinstance(constant, arith.ConstantOp):
            continue
        kept = constant.value
        if isinstance(kept, IntegerAttr) and kept.value.data & mask_of(bits) == mask_of(bits):
            return _unmasked(operand, bits)
    return value


def _default_properties(kind: type[Operation]) -> dict[str, Attribute]:
    """The properties of an operation, without the promise that it does not overflow."""
    if issubclass(kind, arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.ShLIOp):
        return {"overflowFlags": arith.IntegerOverflowAttr("none")}
    return {}
