"""What integer values of a function can be, before it runs: a `Range` for each SSA value.

    analysis = RangeAnalysis(function)
    analysis.of(value)        # of a tensor: one range for all its elements

Arguments have the range that the function declares (`pattern.range`), else that of their type.
Element functions are followed from the ranges of their arguments to those of what they yield,
nested patterns, `scf.if` and `scf.for` included.

What is found holds on every machine, whatever order it folds in: an accumulator's range holds
every partial result, those that start from the neutral element too. A sum of N elements, N known,
has log2(N) bits more than an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp
from cim_opt.dialects.pattern_range import declared_range
from cim_opt.mapping import range_functions as functions
from cim_opt.mapping.ranges import Range, sum_range
from cim_opt.passes.fold_forms import Step, count_step, simple_step
from cim_opt.passes.pattern_bodies import yields_of
from cim_opt.passes.pattern_neutral import neutral_elements

INDEX_BITS = 64
LENGTH = Range.of(INDEX_BITS, (0, (1 << 63) - 1))
ROUNDS = 3
"""How often a loop's values are followed before what still changes is given up."""

Values = list[Range | None]


def bits_of(type: Attribute) -> int | None:
    """Bits of an integer or index, or of a tensor's elements; None for anything else."""
    element = type.element_type if isa(type, TensorType) else type
    if isinstance(element, IndexType):
        return INDEX_BITS
    if isa(element, IntegerType) and 1 <= element.width.data <= 64:
        return element.width.data
    return None


class RangeAnalysis:
    """Ranges of all integer values in a function.

    Raises UserError for a declared range that makes no sense.
    """

    def __init__(self, function: FuncOp):
        self._ranges: dict[SSAValue, Range] = {}
        if not function.body.blocks:
            return
        for arg in function.args:
            declared = declared_range(arg)
            if declared is not None:
                self._set(arg, Range.signed(declared.width, declared.low, declared.high))
        for block in function.body.blocks:
            self._block(block)

    def of(self, value: SSAValue) -> Range | None:
        """The range of an integer, or of a tensor's elements; None for what is no integer."""
        known = self._ranges.get(value)
        if known is not None:
            return known
        bits = bits_of(value.type)
        return None if bits is None else Range.full(bits)

    # -- blocks ----------------------------------------------------------------------------------

    def _set(self, value: SSAValue, known: Range | None) -> None:
        if known is not None:
            assert known.width == bits_of(value.type)
            self._ranges[value] = known

    def _all(self, values: Sequence[SSAValue]) -> Values:
        return [self.of(value) for value in values]

    def _block(self, block: Block, arguments: Values | None = None) -> Values:
        """Follows a block from its arguments; gives the ranges of its terminator's operands."""
        if arguments is not None:
            for arg, known in zip(block.args, arguments, strict=True):
                self._set(arg, known)
        for op in block.ops:
            self._operation(op)
        last = block.last_op
        return [] if last is None else self._all(last.operands)

    def _operation(self, op: Operation) -> None:
        match op:
            case FoldOp():
                results = self._fold(op)
            case PatternOp():
                results = self._pattern(op)
            case scf.ForOp():
                results = self._for(op)
            case scf.IfOp():
                results = self._if(op)
            case _:
                results = self._simple(op)
        for value, known in zip(op.results, results, strict=False):
            self._set(value, known)

    def _simple(self, op: Operation) -> Values:
        """Operations without regions; for others nothing is known of results and regions."""
        rule = RULES.get(op.name)
        if rule is None:
            return []
        operands = self._all(op.operands)
        known = [operand for operand in operands if operand is not None]
        return [] if len(known) < len(operands) else rule(op, known)

    # -- control flow ----------------------------------------------------------------------------

    def _if(self, op: scf.IfOp) -> Values:
        branches = [
            self._block(region.block)
            for region in (op.true_region, op.false_region)
            if region.blocks
        ]
        if len(branches) < 2:
            return []
        condition = self.of(op.cond)
        if condition is not None and condition.value is not None:
            return branches[0 if condition.value else 1]
        return [_join(a, b) for a, b in zip(*branches, strict=True)]

    def _for(self, op: scf.ForOp) -> Values:
        low, high = self.of(op.lb), self.of(op.ub)
        assert low is not None and high is not None
        index = Range.of(low.width, (low.low, max(low.low, high.high - 1)))
        body = op.body.block
        return self._fixed_point(
            self._all(op.iter_args), lambda carried: self._block(body, [index, *carried])
        )

    def _fixed_point(self, start: Values, step: Callable[[Values], Values]) -> Values:
        """The least ranges found that hold `start` and all that `step` makes of them.

        What still changes after some rounds is taken to be anything. `step` has run on the answer.
        """
        current = start
        for rounds in range(ROUNDS + len(start) + 1):
            joined = [_join(a, b) for a, b in zip(current, step(current), strict=True)]
            if joined == current:
                return current
            current = [
                new if rounds < ROUNDS or new == old or new is None else Range.full(new.width)
                for old, new in zip(current, joined, strict=True)
            ]
        step(current)
        return current

    # -- patterns --------------------------------------------------------------------------------

    def _pattern(self, op: PatternOp) -> Values:
        yielded = self._block(op.body.block, self._all([*op.inputs, *op.shared]))
        return [*yielded[1:], LENGTH] if isinstance(op, FilterBase) else yielded

    def _fold(self, op: FoldOp) -> Values:
        inits, inputs = self._all(op.inits), self._all(op.inputs)
        neutrals = neutral_elements(op)
        # First with nothing known of accumulators: what a step adds does not depend on them.
        nothing = [_full_like(init) for init in inits]
        self._fold_body(op, nothing, inputs)
        steps = [simple_step(op, k) or count_step(op, k) for k in range(len(inits))]
        totals = [
            self._total(op, step, init) if step is not None else None
            for step, init in zip(steps, inits, strict=True)
        ]
        starts: Values = []
        for k, (init, total) in enumerate(zip(inits, totals, strict=True)):
            start = _join(init, total) if total is not None else init
            if op.combine is None:
                start = _join(start, inputs[k])
            if start is not None and neutrals is not None:
                start = start.join(Range.constant(start.width, int(neutrals[k])))
            starts.append(start)
        sums = [step is not None and step.kind is arith.AddiOp for step in steps]

        def turn(accs: Values) -> Values:
            yielded = self._fold_body(op, accs, inputs)
            joined = yielded
            if op.combine is not None:
                joined = self._block(op.combine.block, [*accs, *accs])
            new = [_join(a, b) for a, b in zip(yielded, joined, strict=True)]
            # A partial sum of the elements is no more than `total` says, whatever the order.
            return [start if sums[k] else new[k] for k, start in enumerate(accs)]

        accs = self._fixed_point(starts, turn)
        self._set_sums(
            op, [acc if is_sum else None for acc, is_sum in zip(accs, sums, strict=True)]
        )
        return [acc if total is None else total for acc, total in zip(accs, totals, strict=True)]

    def _set_sums(self, op: FoldOp, accs: Values) -> None:
        """Sets what sums yield: partial sums again, not one more element than there are."""
        for block in (op.body.block, *(region.block for region in op.regions[1:] if region.blocks)):
            for value, known in zip(yields_of(block), accs, strict=True):
                if isinstance(value.owner, arith.AddiOp):
                    self._set(value, known)

    def _fold_body(self, op: FoldOp, accs: Values, inputs: Values) -> Values:
        """Follows the element function; without a combine region it joins accumulators as well."""
        if op.combine is None:
            inputs = [_join(x, acc) for x, acc in zip(inputs, accs, strict=True)]
        return self._block(op.body.block, [*accs, *inputs, *self._all(op.shared)])

    def _total(self, op: FoldOp, step: Step, init: Range | None) -> Range | None:
        """What a fold by a simple step can give; `init` itself is among it."""
        added = self._added(op, step)
        if added is None or init is None:
            return None
        if step.kind is arith.AddiOp:
            length = op.input_length()
            return sum_range(added, None if length < 0 else length, init)
        function = TWO_OPERANDS[step.kind.name]
        (total,) = self._fixed_point(
            [init.join(added)],
            lambda now: [function(now[0], now[0]) if now[0] is not None else None],
        )
        return total

    def _added(self, op: FoldOp, step: Step) -> Range | None:
        """The range of what a step puts into its accumulator."""
        if op.combine is None:
            # The body also joins accumulators; elements are those of the input.
            return self.of(op.inputs[op.input_args().index(step.value)])  # pyright: ignore
        return self.of(step.value)


def _join(a: Range | None, b: Range | None) -> Range | None:
    return a.join(b) if a is not None and b is not None else None


def _full_like(a: Range | None) -> Range | None:
    return None if a is None else Range.full(a.width)


# -- operations ------------------------------------------------------------------------------------

Rule = Callable[[Operation, list[Range]], Values]

TWO_OPERANDS: dict[str, Callable[[Range, Range], Range]] = {
    "arith.addi": functions.add,
    "arith.subi": functions.subtract,
    "arith.muli": functions.multiply,
    "arith.andi": functions.bit_and,
    "arith.ori": functions.bit_or,
    "arith.xori": functions.bit_xor,
    "arith.shli": functions.shift_left,
    "arith.shrsi": functions.shift_right_s,
    "arith.shrui": functions.shift_right_u,
    "arith.divsi": functions.divide_s,
    "arith.divui": functions.divide_u,
    "arith.remsi": functions.remainder_s,
    "arith.remui": functions.remainder_u,
    "arith.floordivsi": functions.divide_floor_s,
    "arith.ceildivsi": functions.divide_ceiling_s,
    "arith.ceildivui": functions.divide_ceiling_u,
    "arith.minsi": functions.minimum_s,
    "arith.maxsi": functions.maximum_s,
    "arith.minui": functions.minimum_u,
    "arith.maxui": functions.maximum_u,
}
"""By operation name: ranges of integer operations with two operands and a result of one width."""

ONE_OPERAND: dict[str, Callable[[Range], Range]] = {
    "math.absi": functions.absolute,
    "math.ctpop": functions.count_ones,
    "math.ctlz": functions.count_leading_zeros,
    "math.cttz": functions.count_trailing_zeros,
}


def _by_two(function: Callable[[Range, Range], Range]) -> Rule:
    return lambda op, known: [function(known[0], known[1])]


def _by_one(function: Callable[[Range], Range]) -> Rule:
    return lambda op, known: [function(known[0])]


def _result_bits(op: Operation) -> int:
    bits = bits_of(op.results[0].type)
    assert bits is not None
    return bits


def _cast(op: Operation, known: list[Range]) -> Values:
    """An index cast: extends by the sign, or cuts off."""
    bits = _result_bits(op)
    if bits >= known[0].width:
        return [functions.extend_s(known[0], bits)]
    return [functions.truncate(known[0], bits)]


def _constant(op: Operation, _: list[Range]) -> Values:
    assert isinstance(op, arith.ConstantOp)
    bits, attr = bits_of(op.result.type), op.value
    if bits is None:
        return []
    if isinstance(attr, IntegerAttr):
        return [Range.constant(bits, attr.value.data)]
    if not isa(attr, DenseIntOrFPElementsAttr):
        return []
    values = [value for value in dict.fromkeys(attr.get_values()) if isinstance(value, int)]
    if not values:
        return []
    found = Range.constant(bits, values[0])
    for value in values[1:]:
        found = found.join(Range.constant(bits, value))
    return [found]


def _compare(op: Operation, known: list[Range]) -> Values:
    assert isinstance(op, arith.CmpiOp)
    a, b = known
    number = op.predicate.value.data
    if number < 2:
        same = functions.equal(a, b)
        return [same if number == 0 else functions.negate(same)]
    less = functions.less_s if number < 6 else functions.less_u
    # lt, le, gt, ge: a < b, not b < a, b < a, not a < b.
    match (number - 2) % 4:
        case 0:
            return [less(a, b)]
        case 1:
            return [functions.negate(less(b, a))]
        case 2:
            return [less(b, a)]
        case _:
            return [functions.negate(less(a, b))]


def _extended_sum(op: Operation, known: list[Range]) -> Values:
    return [functions.add(*known), functions.carry_out(*known)]


def _joined(op: Operation, known: list[Range]) -> Values:
    """A tensor made of scalars, or of a tensor and a scalar."""
    if not known:
        return []
    found = known[0]
    for more in known[1:]:
        found = found.join(more)
    return [found]


RULES: dict[str, Rule] = {
    **{name: _by_two(function) for name, function in TWO_OPERANDS.items()},
    **{name: _by_one(function) for name, function in ONE_OPERAND.items()},
    "arith.constant": _constant,
    "arith.cmpi": _compare,
    "arith.select": lambda op, known: [functions.select(*known)],
    "arith.extsi": lambda op, known: [functions.extend_s(known[0], _result_bits(op))],
    "arith.extui": lambda op, known: [functions.extend_u(known[0], _result_bits(op))],
    "arith.trunci": lambda op, known: [functions.truncate(known[0], _result_bits(op))],
    "arith.index_cast": _cast,
    "arith.addui_extended": _extended_sum,
    "arith.mulsi_extended": lambda op, known: [
        functions.multiply(*known),
        functions.multiply_high_s(*known),
    ],
    "arith.mului_extended": lambda op, known: [
        functions.multiply(*known),
        functions.multiply_high_u(*known),
    ],
    "tensor.extract": lambda op, known: [known[0]],
    "tensor.insert": lambda op, known: [known[0].join(known[1])],
    "tensor.from_elements": _joined,
    "tensor.splat": lambda op, known: [known[0]],
    "tensor.cast": lambda op, known: [known[0]],
    "tensor.extract_slice": lambda op, known: [known[0]],
    "tensor.dim": lambda op, known: [LENGTH],
}
"""By operation name: ranges of the results. Of what is not here, nothing is known."""
