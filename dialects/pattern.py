"""The `pattern` dialect: data-parallel patterns over vectors.

A `func.func` is a pipeline. Its arguments are the inputs, what it returns is fetched, and
nothing else leaves the machine. Every operation reads 1-D tensors of one length N (static or `?`)
and *shared* operands, which are the same for every element. The element function is a region that
ends in `pattern.yield`; it is pure and sees nothing but its own arguments.

    %c = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
      %p = arith.muli %x, %y : i32
      pattern.yield %p : i32
    }

Source of the six patterns and their combinations: DaPPA, section 4.1 and Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoMemoryEffect,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    is_side_effect_free,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

MOST_BITS = 64
ELEMENT_TYPES_TEXT = "i1 to i64 and f32"

Binding = tuple[BlockArgument, SSAValue]


def is_element_type(attr: Attribute) -> bool:
    """True for the element types of the dialect: signless integers of 1 to 64 bits, and f32."""
    if not isa(attr, IntegerType):
        return isinstance(attr, Float32Type)
    return attr.signedness.data is Signedness.SIGNLESS and 1 <= attr.width.data <= MOST_BITS


def vector_type(value: SSAValue) -> TensorType:
    """The type of a value that the verifier has shown to be a tensor."""
    assert isa(value.type, TensorType)
    return value.type


def vector_length(value: SSAValue | Attribute) -> int:
    """Length of a 1-D tensor; -1 (xDSL's DYNAMIC_INDEX) when it is `?`."""
    attr = value.type if isinstance(value, SSAValue) else value
    assert isa(attr, TensorType)
    return attr.get_shape()[0]


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends an element function or a combine function with its results.

    ```mlir
    pattern.yield %keep, %x : i1, i32
    ```
    """

    name = "pattern.yield"
    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(*PATTERN_OPS)))


class PatternOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """What all patterns share: N-element inputs, shared operands, one element function.

    The region's arguments are, in this order: accumulators (reduce and scan only), one element
    or slice an input, one value a shared operand.
    """

    inputs = var_operand_def(TensorType)
    shared = var_operand_def()
    outs = var_result_def()
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsolatedFromAbove(), NoMemoryEffect(), RecursivelySpeculatable())

    SIZE_NAMES: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        shared: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        body: Region,
        sizes: Sequence[int] = (),
    ):
        """Builds a map, window, group or filter; `sizes` are in the order of `SIZE_NAMES`."""
        super().__init__(
            operands=[list(inputs), list(shared)],
            result_types=[list(result_types)],
            regions=[body],
            properties={
                name: IntegerAttr(size, i64)
                for name, size in zip(self.SIZE_NAMES, sizes, strict=True)
            },
        )

    # -- what a lowering asks ------------------------------------------------------------------

    def size_of(self, name: str) -> int:
        """The size property `name`, 1 where this pattern does not have it."""
        attr = self.properties.get(name)
        if attr is None:
            return 1
        assert isa(attr, IntegerAttr)
        return attr.value.data

    @property
    def window_size(self) -> int:
        """W: an element function sees W-1 elements after its own; 1 when there is no window."""
        return self.size_of("window")

    @property
    def group_size(self) -> int:
        """G: how many elements an element function owns; 1 when there is no group."""
        return self.size_of("group")

    @property
    def takes_slices(self) -> bool:
        """True when the element function gets tensors of G+W-1 elements, not single elements."""
        return bool(self.SIZE_NAMES)

    @property
    def slice_length(self) -> int:
        """Elements of an input that one call of the element function sees: G + W - 1."""
        return self.group_size + self.window_size - 1

    def accumulators(self) -> Sequence[SSAValue]:
        """Initial accumulator values; empty unless the pattern is a reduce or a scan."""
        return ()

    def input_args(self) -> Sequence[BlockArgument]:
        """The region's arguments for the inputs."""
        start = len(self.accumulators())
        return self.body.block.args[start : start + len(self.inputs)]

    def shared_args(self) -> Sequence[BlockArgument]:
        """The region's arguments for the shared operands."""
        return self.body.block.args[len(self.accumulators()) + len(self.inputs) :]

    def yielded(self) -> Sequence[SSAValue]:
        """What the element function yields."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last.arguments

    # -- verification --------------------------------------------------------------------------

    def verify_(self) -> None:
        self._verify_inputs()
        self._verify_sizes()
        self._verify_arguments()
        self._verify_pure(self.body)
        self._verify_results()

    def _verify_inputs(self) -> None:
        if not self.inputs:
            raise VerifyException("needs at least one input")
        lengths = set[int]()
        for value in self.inputs:
            attr = vector_type(value)
            if attr.get_num_dims() != 1:
                raise VerifyException(f"inputs are 1-D tensors, got {attr}; flatten it")
            if not is_element_type(attr.element_type):
                raise VerifyException(f"elements are {ELEMENT_TYPES_TEXT}, got {attr}")
            lengths.add(vector_length(value))
        lengths.discard(DYNAMIC_INDEX)
        if len(lengths) > 1:
            texts = " and ".join(str(n) for n in sorted(lengths))
            raise VerifyException(f"inputs have one length, got {texts}")

    def input_length(self) -> int:
        """N where a type tells it, else -1."""
        return max(vector_length(value) for value in self.inputs)

    def _verify_sizes(self) -> None:
        for name in self.SIZE_NAMES:
            if self.size_of(name) < 1:
                raise VerifyException(f"{name} size is at least 1, got {self.size_of(name)}")
        n = self.input_length()
        if n == DYNAMIC_INDEX:
            return
        if "window" in self.SIZE_NAMES and self.window_size > n:
            raise VerifyException(
                f"window size is at most the length, got {self.window_size} over {n} elements"
            )
        owned = n - self.window_size + 1
        if "window" in self.SIZE_NAMES and "group" in self.SIZE_NAMES:
            if owned % self.group_size:
                raise VerifyException(
                    f"group size divides the length less window-1, got {self.group_size} "
                    f"for {n} - {self.window_size - 1} = {owned}"
                )
        elif n % self.group_size:
            raise VerifyException(f"group size divides the length, got {self.group_size} for {n}")

    def owners(self) -> int:
        """How many times the element function runs, -1 when the length is `?`."""
        n = self.input_length()
        if n == DYNAMIC_INDEX:
            return DYNAMIC_INDEX
        return (n - self.window_size + 1) // self.group_size

    def _expected_arguments(self) -> list[Attribute]:
        elements: list[Attribute] = [vector_type(value).element_type for value in self.inputs]
        if self.takes_slices:
            elements = [TensorType(element, [self.slice_length]) for element in elements]
        return [
            *(value.type for value in self.accumulators()),
            *elements,
            *(value.type for value in self.shared),
        ]

    def _verify_arguments(self) -> None:
        expected = self._expected_arguments()
        actual = [arg.type for arg in self.body.block.args]
        if actual == expected:
            return
        if len(actual) != len(expected):
            raise VerifyException(
                f"element function takes {len(expected)} arguments, got {len(actual)}"
            )
        index = next(i for i, (a, e) in enumerate(zip(actual, expected, strict=True)) if a != e)
        raise VerifyException(
            f"argument {index} of the element function is {actual[index]}, "
            f"expected {expected[index]}"
        )

    def _verify_pure(self, region: Region) -> None:
        if not isinstance(region.block.last_op, YieldOp):
            raise VerifyException("element function ends in pattern.yield")
        for op in region.block.ops:
            impure = _impure_op(op)
            if impure is not None:
                raise VerifyException(f"element function is pure, got '{impure.name}'")
            if any(isinstance(inner, FilterBase) for inner in op.walk()):
                raise VerifyException(
                    "element function holds no filter: its length would differ by element"
                )

    def _verify_results(self) -> None:
        expected = [self._vector_of(value) for value in self._vector_yields()]
        self._verify_result_types(expected, [value.type for value in self.outs])

    def _vector_yields(self) -> Sequence[SSAValue]:
        return self.yielded()

    def _vector_of(self, value: SSAValue) -> TensorType:
        if not is_element_type(value.type):
            raise VerifyException(f"yields {ELEMENT_TYPES_TEXT}, got {value.type}")
        return TensorType(value.type, [self.owners()])

    def _verify_result_types(
        self, expected: Sequence[Attribute], actual: Sequence[Attribute]
    ) -> None:
        if len(expected) != len(actual):
            raise VerifyException(
                f"has {len(actual)} results, but its element function yields {len(expected)}"
            )
        for index, (want, got) in enumerate(zip(expected, actual, strict=True)):
            if not self._result_fits(want, got):
                raise VerifyException(f"result {index} is {got}, expected {want}")

    @classmethod
    def _result_fits(cls, want: Attribute, got: Attribute) -> bool:
        """True when `got` is `want`, or one of their lengths is `?`."""
        if want == got:
            return True
        if not isa(want, TensorType) or not isa(got, TensorType) or got.get_num_dims() != 1:
            return False
        lengths = {want.get_shape()[0], got.get_shape()[0]}
        return want.element_type == got.element_type and DYNAMIC_INDEX in lengths

    # -- syntax --------------------------------------------------------------------------------

    @classmethod
    def parse(cls, parser: Parser) -> PatternOp:
        sizes = _parse_sizes(parser, cls.SIZE_NAMES)
        inputs = _parse_bindings(parser, "in")
        shared = _parse_shared(parser)
        parser.parse_punctuation("->")
        result_types = _parse_result_types(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(
            [_slice_argument(name, value, cls.SIZE_NAMES, sizes) for name, value in inputs]
            + [_argument(name, value.type) for name, value in shared]
        )
        op = cls(
            [value for _, value in inputs],
            [value for _, value in shared],
            result_types,
            body,
            sizes,
        )
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        _print_sizes(printer, [self.size_of(name) for name in self.SIZE_NAMES])
        _print_bindings(printer, "in", self.input_args(), self.inputs)
        _print_shared(printer, self.shared_args(), self.shared)
        printer.print_string(" -> ")
        if len(self.outs) == 1:
            printer.print_attribute(self.outs[0].type)
        else:
            with printer.in_parens():
                printer.print_list([out.type for out in self.outs], printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cim_opt.passes.pattern_canonicalize import patterns_for

        return patterns_for(cls)


class FoldOp(PatternOp):
    """What `reduce` and `scan` share: accumulators, and a function that combines two of them.

    Without a `combine` region the element function itself combines, so there is one input an
    accumulator, of the same type. With a combine region it takes two accumulators' values and
    gives one; for a tensor accumulator it works on its elements. `init` is then neutral for it:
    combining with `init` changes nothing, unless the neutral value can be read off the region
    (sum, product, minimum, maximum, and, or, xor).
    """

    # All of them again: the order of operands and regions is the order of the definitions here.
    inputs = var_operand_def(TensorType)
    shared = var_operand_def()
    inits = var_operand_def()
    outs = var_result_def()
    body = region_def("single_block")
    combine = opt_region_def("single_block")

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        shared: Sequence[SSAValue],
        body: Region,
        combine: Region | None = None,
        result_types: Sequence[Attribute] | None = None,
    ):
        """Builds a reduce or a scan; its result types follow from its inputs when not given."""
        if result_types is None:
            result_types = self.infer_result_types(inputs, inits)
        IRDLOperation.__init__(
            self,
            operands=[list(inputs), list(shared), list(inits)],
            result_types=[list(result_types)],
            regions=[body, [combine] if combine is not None else []],
        )

    @classmethod
    def infer_result_types(
        cls, inputs: Sequence[SSAValue], inits: Sequence[SSAValue]
    ) -> list[Attribute]:
        """Result types of a fold over these inputs with these initial accumulators."""
        return [value.type for value in inits]

    def accumulators(self) -> Sequence[SSAValue]:
        return self.inits

    def accumulator_args(self) -> Sequence[BlockArgument]:
        """The region's arguments for the accumulators."""
        return self.body.block.args[: len(self.inits)]

    @property
    def tensor_accumulators(self) -> bool:
        """True when the accumulators are small tensors, as in a histogram."""
        return any(isa(value.type, TensorType) for value in self.inits)

    def combine_block(self) -> Block:
        """The function of two accumulators (lhs..., rhs...): the combine region, or the body.

        The body takes shared operands after them, the combine region does not.
        """
        return self.body.block if self.combine is None else self.combine.block

    def verify_(self) -> None:
        super().verify_()
        self._verify_accumulators()
        self._verify_combine()

    def _verify_accumulators(self) -> None:
        if not self.inits:
            raise VerifyException("needs at least one accumulator")
        yielded = [value.type for value in self.yielded()]
        types = [value.type for value in self.inits]
        if yielded != types:
            raise VerifyException(
                f"element function yields {_texts(yielded)}, but the accumulators are "
                f"{_texts(types)}"
            )
        shapes = set[tuple[int, ...]]()
        for attr in types:
            shapes.add(_accumulator_shape(attr))
        if len(shapes) > 1:
            raise VerifyException("accumulators are all scalars or all tensors of one length")

    def _verify_combine(self) -> None:
        elements = [_element_of(value.type) for value in self.inits]
        if self.combine is None:
            inputs = [vector_type(value).element_type for value in self.inputs]
            if self.tensor_accumulators or inputs != elements:
                raise VerifyException(
                    f"needs a combine region: its accumulators "
                    f"({_texts([value.type for value in self.inits])}) are not of the "
                    f"inputs' types ({_texts(inputs)})"
                )
            return
        actual = [arg.type for arg in self.combine.block.args]
        if actual != [*elements, *elements]:
            raise VerifyException(
                f"combine region takes ({_texts([*elements, *elements])}), got ({_texts(actual)})"
            )
        self._verify_pure(self.combine)
        last = self.combine.block.last_op
        assert isinstance(last, YieldOp)
        if [value.type for value in last.arguments] != elements:
            raise VerifyException(
                f"combine region yields {_texts(elements)}, got "
                f"{_texts([value.type for value in last.arguments])}"
            )

    def _verify_results(self) -> None:
        expected = self.infer_result_types(self.inputs, self.inits)
        self._verify_result_types(expected, [value.type for value in self.outs])

    @classmethod
    def parse(cls, parser: Parser) -> FoldOp:
        properties = cls._parse_flags(parser)
        inputs = _parse_bindings(parser, "in")
        parser.parse_keyword("init")
        inits = _parse_bindings(parser, "=")
        shared = _parse_shared(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(
            [_argument(name, value.type) for name, value in inits]
            + [_slice_argument(name, value, (), ()) for name, value in inputs]
            + [_argument(name, value.type) for name, value in shared]
        )
        combine = _parse_combine(parser, [_element_of(value.type) for _, value in inits])
        op = cls(
            [value for _, value in inputs],
            [value for _, value in inits],
            [value for _, value in shared],
            body,
            combine,
        )
        op.properties |= properties
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    @classmethod
    def _parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        return {}

    def _print_flags(self, printer: Printer) -> None:
        """Prints what stands between the operation's name and its inputs."""

    def print(self, printer: Printer) -> None:
        self._print_flags(printer)
        _print_bindings(printer, "in", self.input_args(), self.inputs)
        printer.print_string(" init")
        _print_bindings(printer, "=", self.accumulator_args(), self.inits)
        _print_shared(printer, self.shared_args(), self.shared)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        if self.combine is None:
            return
        printer.print_string(" combine")
        with printer.in_parens():
            printer.print_list(
                self.combine.block.args, lambda arg: printer.print_block_argument(arg, False)
            )
        printer.print_string(" ")
        printer.print_region(self.combine, print_entry_block_args=False)


@irdl_op_definition
class MapOp(PatternOp):
    """y[i] = f(x[i], ...): every element by itself.

    ```mlir
    %c = pattern.map(%x in %a : tensor<8xi32>, %y in %b : tensor<8xi32>)
        shared(%k = %s : i32) -> tensor<8xi32> {
      %p = arith.muli %x, %k : i32
      %q = arith.addi %p, %y : i32
      pattern.yield %q : i32
    }
    ```
    """

    name = "pattern.map"


@irdl_op_definition
class WindowOp(PatternOp):
    """y[i] = f(x[i .. i+W-1]) over N-W+1 overlapping windows; none when N < W.

    ```mlir
    %d = pattern.window<2>(%w in %a : tensor<8xi32>) -> tensor<7xi32> {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %x = tensor.extract %w[%zero] : tensor<2xi32>
      %y = tensor.extract %w[%one] : tensor<2xi32>
      %r = arith.subi %y, %x : i32
      pattern.yield %r : i32
    }
    ```
    """

    name = "pattern.window"
    window = prop_def(IntegerAttr.constr(i64))
    SIZE_NAMES: ClassVar[tuple[str, ...]] = ("window",)


@irdl_op_definition
class GroupOp(PatternOp):
    """y[i] = f(x[iG .. iG+G-1]) over N/G disjoint groups; G divides N.

    ```mlir
    %s = pattern.group<4>(%g in %a : tensor<8xi32>) shared(%z = %zero : i32) -> tensor<2xi32> {
      %r = pattern.reduce(%x in %g : tensor<4xi32>) init(%acc = %z : i32) {
        %t = arith.addi %acc, %x : i32
        pattern.yield %t : i32
      }
      pattern.yield %r : i32
    }
    ```
    """

    name = "pattern.group"
    group = prop_def(IntegerAttr.constr(i64))
    SIZE_NAMES: ClassVar[tuple[str, ...]] = ("group",)


@irdl_op_definition
class WindowGroupOp(PatternOp):
    """y[i] = f(x[iG .. iG+G+W-2]): groups that also see the W-1 elements after them.

    G divides N-W+1.

    ```mlir
    %s = pattern.window_group<2, 4>(%g in %a : tensor<9xi32>) -> tensor<2xi32> {
      %last = arith.constant 4 : index
      %x = tensor.extract %g[%last] : tensor<5xi32>
      pattern.yield %x : i32
    }
    ```
    """

    name = "pattern.window_group"
    window = prop_def(IntegerAttr.constr(i64))
    group = prop_def(IntegerAttr.constr(i64))
    SIZE_NAMES: ClassVar[tuple[str, ...]] = ("window", "group")


class FilterBase(PatternOp):
    """What the four filters share: a condition, and the values kept where it holds.

    The element function yields an i1 (keep or not) and then the values to keep. The results are
    the vectors of the kept values, in order, and, last, the length of the first of them, or, when
    nothing is kept, how often the condition held. Yielding a slice, as it came in, keeps the part
    of it that no other element owns: x[i] of a window, chunk i of a group.
    """

    def kept(self) -> Sequence[SSAValue]:
        """The values that are kept: what is yielded, less the condition."""
        return self.yielded()[1:]

    def kept_length(self, value: SSAValue) -> int:
        """How many elements one kept `value` is: G when it is a slice, else 1."""
        return self.group_size if value in self.input_args() and self.takes_slices else 1

    def _verify_results(self) -> None:
        yielded = self.yielded()
        if not yielded or yielded[0].type != i1:
            raise VerifyException("filter yields its condition, an i1, first")
        if not self.outs or not isinstance(self.outs[-1].type, IndexType):
            raise VerifyException("filter's last result is the length, an index")
        expected = [self._kept_vector(value) for value in self.kept()]
        self._verify_result_types(expected, [value.type for value in self.outs[:-1]])

    @classmethod
    def _result_fits(cls, want: Attribute, got: Attribute) -> bool:
        return want == got  # how many are kept is known only at run time

    def _kept_vector(self, value: SSAValue) -> TensorType:
        if isa(value.type, TensorType):
            if value not in self.input_args():
                raise VerifyException("filter keeps scalars, or slices as they came in")
            return TensorType(value.type.element_type, [DYNAMIC_INDEX])
        if not is_element_type(value.type):
            raise VerifyException(f"yields {ELEMENT_TYPES_TEXT}, got {value.type}")
        return TensorType(value.type, [DYNAMIC_INDEX])


@irdl_op_definition
class FilterOp(FilterBase):
    """Keeps the x[i] with f(x[i]) true, in order, and tells how many there are.

    ```mlir
    %y, %n = pattern.filter(%x in %a : tensor<8xi32>) shared(%t = %s : i32)
        -> (tensor<?xi32>, index) {
      %keep = arith.cmpi sgt, %x, %t : i32
      pattern.yield %keep, %x : i1, i32
    }
    ```
    """

    name = "pattern.filter"


@irdl_op_definition
class WindowFilterOp(FilterBase):
    """Keeps x[i] when f(x[i .. i+W-1]) is true, for the N-W+1 windows.

    ```mlir
    %y, %n = pattern.window_filter<2>(%w in %a : tensor<8xi32>) -> (tensor<?xi32>, index) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %x = tensor.extract %w[%zero] : tensor<2xi32>
      %next = tensor.extract %w[%one] : tensor<2xi32>
      %keep = arith.cmpi ne, %x, %next : i32
      pattern.yield %keep, %w : i1, tensor<2xi32>
    }
    ```
    """

    name = "pattern.window_filter"
    window = prop_def(IntegerAttr.constr(i64))
    SIZE_NAMES: ClassVar[tuple[str, ...]] = ("window",)


@irdl_op_definition
class GroupFilterOp(FilterBase):
    """Keeps chunk x[iG .. iG+G-1] when f of it is true. G divides N.

    ```mlir
    %y, %n = pattern.group_filter<2>(%g in %a : tensor<8xi32>) -> (tensor<?xi32>, index) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %x = tensor.extract %g[%zero] : tensor<2xi32>
      %y = tensor.extract %g[%one] : tensor<2xi32>
      %keep = arith.cmpi slt, %x, %y : i32
      pattern.yield %keep, %g : i1, tensor<2xi32>
    }
    ```
    """

    name = "pattern.group_filter"
    group = prop_def(IntegerAttr.constr(i64))
    SIZE_NAMES: ClassVar[tuple[str, ...]] = ("group",)


@irdl_op_definition
class WindowGroupFilterOp(FilterBase):
    """Keeps chunk i when f of it and the W-1 elements after it is true. G divides N-W+1.

    ```mlir
    %y, %n = pattern.window_group_filter<2, 2>(%g in %a : tensor<9xi32>)
        -> (tensor<?xi32>, index) {
      %zero = arith.constant 0 : index
      %last = arith.constant 2 : index
      %x = tensor.extract %g[%zero] : tensor<3xi32>
      %y = tensor.extract %g[%last] : tensor<3xi32>
      %keep = arith.cmpi slt, %x, %y : i32
      pattern.yield %keep, %g : i1, tensor<3xi32>
    }
    ```
    """

    name = "pattern.window_group_filter"
    window = prop_def(IntegerAttr.constr(i64))
    group = prop_def(IntegerAttr.constr(i64))
    SIZE_NAMES: ClassVar[tuple[str, ...]] = ("window", "group")


@irdl_op_definition
class ReduceOp(FoldOp):
    """r = f(...f(f(init, x[0]), x[1])...), f associative.

    ```mlir
    %sum = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %zero : i32) {
      %s = arith.addi %acc, %x : i32
      pattern.yield %s : i32
    }
    ```

    The accumulator may be a small tensor, with a combine region over its elements:

    ```mlir
    %hist = pattern.reduce(%x in %p : tensor<8xi8>) init(%bins = %zeros : tensor<256xi32>) {
      %u = arith.extui %x : i8 to i32
      %i = arith.index_cast %u : i32 to index
      %one = arith.constant 1 : i32
      %old = tensor.extract %bins[%i] : tensor<256xi32>
      %new = arith.addi %old, %one : i32
      %next = tensor.insert %new into %bins[%i] : tensor<256xi32>
      pattern.yield %next : tensor<256xi32>
    } combine(%l, %r) {
      %s = arith.addi %l, %r : i32
      pattern.yield %s : i32
    }
    ```
    """

    name = "pattern.reduce"

    @classmethod
    def _result_fits(cls, want: Attribute, got: Attribute) -> bool:
        return want == got


@irdl_op_definition
class ScanOp(FoldOp):
    """y[i] = f(...f(f(init, x[0]), x[1])..., x[i]), f associative; `exclusive` leaves out x[i].

    ```mlir
    %sums = pattern.scan(%x in %a : tensor<8xi32>) init(%acc = %zero : i32) {
      %s = arith.addi %acc, %x : i32
      pattern.yield %s : i32
    }
    ```
    """

    name = "pattern.scan"
    exclusive = opt_prop_def(UnitAttr)

    @classmethod
    def infer_result_types(
        cls, inputs: Sequence[SSAValue], inits: Sequence[SSAValue]
    ) -> list[Attribute]:
        length = max((vector_length(value) for value in inputs), default=DYNAMIC_INDEX)
        return [TensorType(_element_of(value.type), [length]) for value in inits]

    def verify_(self) -> None:
        super().verify_()
        if self.tensor_accumulators:
            raise VerifyException("scan takes scalar accumulators")

    @classmethod
    def _parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        if parser.parse_optional_keyword("exclusive") is None:
            return {}
        return {"exclusive": UnitAttr()}

    def _print_flags(self, printer: Printer) -> None:
        if self.exclusive is not None:
            printer.print_string(" exclusive ")


PATTERN_OPS: tuple[type[PatternOp], ...] = (
    MapOp,
    ReduceOp,
    ScanOp,
    FilterOp,
    WindowOp,
    GroupOp,
    WindowGroupOp,
    WindowFilterOp,
    GroupFilterOp,
    WindowGroupFilterOp,
)


# Operations that xDSL 0.75 declares without saying that they have no effects.
_PURE_OPS = (arith.ExtSIOp, arith.RemUIOp)


def _impure_op(op: Operation) -> Operation | None:
    """The first operation of `op` and those inside it that has effects, or may have."""
    if op.has_trait(RecursiveMemoryEffect):
        inner = (_impure_op(child) for region in op.regions for child in region.walk())
        return next((found for found in inner if found is not None), None)
    if isinstance(op, _PURE_OPS) or op.has_trait(IsTerminator) or is_side_effect_free(op):
        return None
    return op


def _texts(attrs: Sequence[Attribute]) -> str:
    return ", ".join(str(attr) for attr in attrs)


def _element_of(attr: Attribute) -> Attribute:
    return attr.element_type if isa(attr, TensorType) else attr


def _accumulator_shape(attr: Attribute) -> tuple[int, ...]:
    if not is_element_type(_element_of(attr)):
        raise VerifyException(f"accumulators hold {ELEMENT_TYPES_TEXT}, got {attr}")
    if not isa(attr, TensorType):
        return ()
    shape = attr.get_shape()
    if len(shape) != 1 or shape[0] == DYNAMIC_INDEX:
        raise VerifyException(f"tensor accumulators are 1-D of static length, got {attr}")
    return shape


NamedValue = tuple[Parser.UnresolvedArgument, SSAValue]


def _argument(name: Parser.UnresolvedArgument, attr: Attribute) -> Parser.Argument:
    return name.resolve(attr)


def _slice_argument(
    name: Parser.UnresolvedArgument,
    value: SSAValue,
    size_names: Sequence[str],
    sizes: Sequence[int],
) -> Parser.Argument:
    element = vector_type(value).element_type
    if not size_names:
        return name.resolve(element)
    return name.resolve(TensorType(element, [sum(sizes) - len(sizes) + 1]))


def _parse_sizes(parser: Parser, names: Sequence[str]) -> Sequence[int]:
    if not names:
        return ()
    position = parser.pos
    sizes = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
    if len(sizes) != len(names):
        expected = ", ".join(names)
        parser.raise_error(f"expected <{expected}>, got {len(sizes)} sizes", position)
    if any(size < 1 for size in sizes):
        parser.raise_error(f"sizes are at least 1, got {min(sizes)}", position)
    return sizes


def _print_sizes(printer: Printer, sizes: Sequence[int]) -> None:
    if not sizes:
        return
    with printer.in_angle_brackets():
        printer.print_list(sizes, printer.print_int)


def _parse_bindings(parser: Parser, word: str) -> list[NamedValue]:
    def binding() -> NamedValue:
        name = parser.parse_argument(expect_type=False)
        if word == "=":
            parser.parse_punctuation("=")
        else:
            parser.parse_keyword(word)
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        position = parser.pos
        attr = parser.parse_type()
        if word == "in" and not (isa(attr, TensorType) and attr.get_num_dims() == 1):
            parser.raise_error(f"inputs are 1-D tensors, got {attr}", position)
        return name, parser.resolve_operand(operand, attr)

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, binding)


def _parse_shared(parser: Parser) -> list[NamedValue]:
    if parser.parse_optional_keyword("shared") is None:
        return []
    return _parse_bindings(parser, "=")


def _print_bindings(
    printer: Printer,
    word: str,
    args: Sequence[BlockArgument],
    values: Sequence[SSAValue],
) -> None:
    def binding(pair: Binding) -> None:
        printer.print_block_argument(pair[0], print_type=False)
        printer.print_string(f" {word} ")
        printer.print_ssa_value(pair[1])
        printer.print_string(" : ")
        printer.print_attribute(pair[1].type)

    with printer.in_parens():
        printer.print_list(list(zip(args, values, strict=True)), binding)


def _print_shared(
    printer: Printer, args: Sequence[BlockArgument], values: Sequence[SSAValue]
) -> None:
    if values:
        printer.print_string(" shared")
        _print_bindings(printer, "=", args, values)


def _parse_result_types(parser: Parser) -> Sequence[Attribute]:
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return types if types is not None else [parser.parse_type()]


def _parse_combine(parser: Parser, elements: Sequence[Attribute]) -> Region | None:
    if parser.parse_optional_keyword("combine") is None:
        return None
    position = parser.pos
    names = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    if len(names) != 2 * len(elements):
        parser.raise_error(
            f"combine takes {2 * len(elements)} arguments, got {len(names)}", position
        )
    types = [*elements, *elements]
    return parser.parse_region([n.resolve(t) for n, t in zip(names, types, strict=True)])


OPERATIONS: list[type[Operation]] = [YieldOp, *PATTERN_OPS]

Pattern = Dialect("pattern", OPERATIONS, [])
