"""The `simdram` dialect: bit-serial computing in DRAM, as bbops over vertical objects.

A *vertical object*, `!simdram.vec<n>`, holds one n-bit element a column: bit i of all its elements
is one DRAM row. It spans as many subarrays as its lanes need; lanes are set by the operation that
brings data in. A *bbop* computes on all lanes at once, by a microprogram of row commands. The host
transposes vectors in, fills objects with a scalar, and reads objects back.

An object may be stored complemented, `!simdram.vec<n, complemented>`: its rows hold the complement
of each bit. Its elements are the same; the host complements as it transposes, fills and reads, and
bbops have programs for some polarities of operands and result (`simdram_polarity`).

Before `simdram-allocate-rows` objects are values; after it every operation names the D rows of its
result (`row`), the same in every subarray. Sources: SIMDRAM and MIMDRAM (the bbop instruction set),
DaPPA, section 4.3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.str_enum import StrEnum

from cim_opt.dialects.simdram_polarity import variant

MACHINE_ATTRIBUTE = "simdram.machine"
"""Module attribute: the machine's name, or a dictionary of all its parameters."""

LIBRARY_ATTRIBUTE = "simdram.library"
"""Module attribute: the library of microprograms that the rows were allocated for."""

MAX_WIDTH = 64


@irdl_attr_definition
class VecType(ParametrizedAttribute, TypeAttribute):
    """A vertical object of elements of `width` bits, 1 to 64: `!simdram.vec<32>`.

    Rows of a `!simdram.vec<32, complemented>` hold the complement of its elements.
    """

    name = "simdram.vec"
    width: IntAttr = param_def()
    complemented: UnitAttr | NoneAttr = param_def()

    def __init__(self, width: int, complemented: bool = False):
        super().__init__(IntAttr(width), UnitAttr() if complemented else NoneAttr())

    def verify(self) -> None:
        if not 1 <= self.width.data <= MAX_WIDTH:
            raise VerifyException(f"widths are 1 to {MAX_WIDTH} bits, got {self.width.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            width = IntAttr(parser.parse_integer())
            if parser.parse_optional_punctuation(",") is None:
                return [width, NoneAttr()]
            parser.parse_keyword("complemented")
            return [width, UnitAttr()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.width.data)
            if isinstance(self.complemented, UnitAttr):
                printer.print_string(", complemented")


class Opcode(StrEnum):
    """What a bbop computes; each names a microprogram."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIVU = "divu"
    DIVS = "divs"
    REMU = "remu"
    REMS = "rems"
    MINU = "minu"
    MINS = "mins"
    MAXU = "maxu"
    MAXS = "maxs"
    AND = "and"
    OR = "or"
    XOR = "xor"
    NOT = "not"
    ABS = "abs"
    RELU = "relu"
    BITCOUNT = "bitcount"
    EQ = "eq"
    NE = "ne"
    LTU = "ltu"
    LTS = "lts"
    LEU = "leu"
    LES = "les"
    GTU = "gtu"
    GTS = "gts"
    GEU = "geu"
    GES = "ges"
    SELECT = "select"
    SHL = "shl"
    SHRU = "shru"
    SHRS = "shrs"
    SHL_CONST = "shl_const"
    SHRU_CONST = "shru_const"
    SHRS_CONST = "shrs_const"
    ZEXT = "zext"
    SEXT = "sext"
    TRUNC = "trunc"
    COPY = "copy"


BINARY = {
    Opcode.ADD,
    Opcode.SUB,
    Opcode.MUL,
    Opcode.DIVU,
    Opcode.DIVS,
    Opcode.REMU,
    Opcode.REMS,
    Opcode.MINU,
    Opcode.MINS,
    Opcode.MAXU,
    Opcode.MAXS,
    Opcode.AND,
    Opcode.OR,
    Opcode.XOR,
    Opcode.SHL,
    Opcode.SHRU,
    Opcode.SHRS,
}
UNARY = {Opcode.NOT, Opcode.ABS, Opcode.RELU, Opcode.BITCOUNT, Opcode.COPY}
COMPARISONS = {
    Opcode.EQ,
    Opcode.NE,
    Opcode.LTU,
    Opcode.LTS,
    Opcode.LEU,
    Opcode.LES,
    Opcode.GTU,
    Opcode.GTS,
    Opcode.GEU,
    Opcode.GES,
}
CONSTANT_SHIFTS = {Opcode.SHL_CONST, Opcode.SHRU_CONST, Opcode.SHRS_CONST}
EXTENSIONS = {Opcode.ZEXT, Opcode.SEXT}


@irdl_attr_definition
class OpcodeAttr(EnumAttribute[Opcode], SpacedOpaqueSyntaxAttribute):
    """The opcode of a bbop."""

    name = "simdram.opcode"


def width_of(value: SSAValue | Attribute) -> int:
    """Bits of a vertical object's elements."""
    attr = value.type if isinstance(value, SSAValue) else value
    assert isinstance(attr, VecType)
    return attr.width.data


def is_complemented(value: SSAValue) -> bool:
    """Whether the rows of a vertical object hold the complement of its elements."""
    assert isinstance(value.type, VecType)
    return isinstance(value.type.complemented, UnitAttr)


def _result_type(result: int | VecType) -> VecType:
    return VecType(result) if isinstance(result, int) else result


def element_width(attr: Attribute) -> int:
    """Bits of a host element type."""
    if isa(attr, IntegerType):
        return attr.width.data
    raise VerifyException(f"vertical objects hold integers, got {attr}")


def _check_vector(value: SSAValue, what: str) -> TensorType:
    attr = value.type
    if not isa(attr, TensorType) or attr.get_num_dims() != 1:
        raise VerifyException(f"{what} is a 1-D tensor, got {attr}")
    element_width(attr.element_type)
    return attr


def _check_scalar(scalar: SSAValue, result: SSAValue) -> None:
    """How to extend a scalar to more bits is not said, so it has those of the object."""
    have = 64 if isinstance(scalar.type, IndexType) else element_width(scalar.type)
    if width_of(result) > have:
        raise VerifyException(
            f"takes at most the {have} bits of the scalar, got {width_of(result)}"
        )


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Brings host elements into columns: lane l gets source[start + l*stride], l < count.

    Elements past the end of the source are zeros. The object takes the low bits of the elements,
    as many as its width.

    ```mlir
    %x = simdram.transpose %a[%start] stride %s count %n : tensor<?xi32> -> !simdram.vec<32>
    ```
    """

    name = "simdram.transpose"
    source = operand_def(TensorType)
    start = operand_def(IndexType)
    stride = operand_def(IndexType)
    count = operand_def(IndexType)
    row = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(VecType)
    assembly_format = (
        "$source `[` $start `]` `stride` $stride `count` $count (`row` $row^)? attr-dict "
        "`:` type($source) `->` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue,
        start: SSAValue,
        stride: SSAValue,
        count: SSAValue,
        result: int | VecType,
    ):
        """`result` is the object's type, or the bits of a plain one."""
        super().__init__(
            operands=[source, start, stride, count], result_types=[_result_type(result)]
        )

    def verify_(self) -> None:
        have = element_width(_check_vector(self.source, "source").element_type)
        if width_of(self.result) > have:
            raise VerifyException(
                f"takes at most the {have} bits of an element, got {width_of(self.result)}"
            )


@irdl_op_definition
class FillOp(IRDLOperation):
    """Every lane gets a host scalar: one row copy of constant zeros or ones a bit.

    With `constant` it is no rows of its own and costs nothing: bbops that read it address the
    constant rows, C0 and C1, for its bits. Then only bbops may use it.

    ```mlir
    %x = simdram.fill %s count %n : i32 -> !simdram.vec<32>
    ```
    """

    name = "simdram.fill"
    scalar = operand_def(IntegerType | IndexType)
    count = operand_def(IndexType)
    constant = opt_prop_def(UnitAttr)
    row = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(VecType)
    assembly_format = (
        "$scalar `count` $count (`constant` $constant^)? (`row` $row^)? attr-dict "
        "`:` type($scalar) `->` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(self, scalar: SSAValue, count: SSAValue, width: int):
        super().__init__(operands=[scalar, count], result_types=[VecType(width)])

    def verify_(self) -> None:
        _check_scalar(self.scalar, self.result)
        if self.constant is None:
            return
        if self.row is not None:
            raise VerifyException("a constant has no rows of its own")
        for use in self.result.uses:
            if not isinstance(use.operation, BbopOp | MulScalarOp):
                raise VerifyException(
                    f"a constant is used by bbops only, not '{use.operation.name}'"
                )


@irdl_op_definition
class BbopOp(IRDLOperation):
    """One bulk bitwise operation on all lanes.

    Comparisons give one bit; `select` takes a bit and two objects; shifts by a constant, extensions
    and truncations are copies of rows. Results wrap around; a division by zero gives 0, its
    remainder the dividend; a shift by the width or more gives 0, or the sign. Opcodes take some
    polarities of operands and result (`simdram_polarity`); a `copy` may change it.

    ```mlir
    %s = simdram.bbop add(%a, %b) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
    %h = simdram.bbop shru_const(%s) amount 4 : (!simdram.vec<32>) -> !simdram.vec<32>
    ```
    """

    name = "simdram.bbop"
    opcode = prop_def(OpcodeAttr)
    args = var_operand_def(VecType)
    amount = opt_prop_def(IntegerAttr.constr(i64))
    row = opt_prop_def(IntegerAttr.constr(i64))
    scratch = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(VecType)
    assembly_format = (
        "$opcode `(` $args `)` (`amount` $amount^)? (`row` $row^)? (`scratch` $scratch^)? "
        "attr-dict `:` functional-type($args, $result)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        opcode: Opcode,
        args: Sequence[SSAValue],
        result: int | VecType,
        amount: int | None = None,
    ):
        """`result` is the object's type, or the bits of a plain one."""
        properties: dict[str, Attribute] = {"opcode": OpcodeAttr(opcode)}
        if amount is not None:
            properties["amount"] = IntegerAttr(amount, i64)
        super().__init__(
            operands=[list(args)], result_types=[_result_type(result)], properties=properties
        )

    def verify_(self) -> None:
        opcode = self.opcode.data
        widths = [width_of(value) for value in self.args]
        rule = _rule(opcode)
        if not rule(widths, width_of(self.result)):
            shown = ", ".join(str(width) for width in widths)
            raise VerifyException(
                f"{opcode} does not take ({shown}) bits to {width_of(self.result)}"
            )
        if (self.amount is not None) != (opcode in CONSTANT_SHIFTS):
            raise VerifyException("shifts by a constant have an amount, and nothing else has")
        if self.amount is not None and self.amount.value.data < 0:
            raise VerifyException(f"shifts by 0 or more, got {self.amount.value.data}")
        *args, out = polarity_of(self)
        if variant(str(opcode), args, out) is None:
            shown = ", ".join(map(_spelled, args))
            raise VerifyException(f"no program of {opcode} takes ({shown}) to {_spelled(out)}")


def polarity_of(op: BbopOp) -> tuple[bool, ...]:
    """Whether each operand, and then the result, is stored complemented."""
    return tuple(is_complemented(value) for value in (*op.args, op.result))


def _spelled(complemented: bool) -> str:
    return "complemented" if complemented else "plain"


Rule = Callable[[list[int], int], bool]


def _rule(opcode: Opcode) -> Rule:
    """Whether operands of these widths give a result of that width."""
    if opcode in BINARY:
        return lambda widths, out: widths == [out, out]
    if opcode in UNARY or opcode in CONSTANT_SHIFTS:
        return lambda widths, out: widths == [out]
    if opcode in COMPARISONS:
        return lambda widths, out: len(widths) == 2 and widths[0] == widths[1] and out == 1
    if opcode is Opcode.SELECT:
        return lambda widths, out: widths == [1, out, out]
    if opcode in EXTENSIONS:
        return lambda widths, out: len(widths) == 1 and widths[0] < out
    return lambda widths, out: len(widths) == 1 and widths[0] > out


@irdl_op_definition
class MulScalarOp(IRDLOperation):
    """Multiplies by a scalar that the host knows when it issues the operation.

    The host recodes the scalar to signed digits and issues one shifted addition or subtraction a
    non-zero digit; a scalar of 0 costs a fill. The operand is plain.

    ```mlir
    %p = simdram.mul_scalar %a, %k : !simdram.vec<32>, i32 -> !simdram.vec<32>
    ```
    """

    name = "simdram.mul_scalar"
    arg = operand_def(VecType)
    scalar = operand_def(IntegerType)
    row = opt_prop_def(IntegerAttr.constr(i64))
    scratch = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(VecType)
    assembly_format = (
        "$arg `,` $scalar (`row` $row^)? (`scratch` $scratch^)? attr-dict "
        "`:` type($arg) `,` type($scalar) `->` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(self, arg: SSAValue, scalar: SSAValue):
        super().__init__(operands=[arg, scalar], result_types=[arg.type])

    def verify_(self) -> None:
        if is_complemented(self.arg):
            raise VerifyException("multiplies plain objects, got a complemented one")
        if width_of(self.arg) != width_of(self.result):
            raise VerifyException(
                f"makes products of the {width_of(self.arg)} bits of its operand, got "
                f"{width_of(self.result)}"
            )
        _check_scalar(self.scalar, self.result)


@irdl_op_definition
class ReadOp(IRDLOperation):
    """Brings an object back: dest[position + l*stride] is lane l; the rest of `dest` is kept.

    ```mlir
    %r = simdram.read %v into %dest[%position] stride %s : !simdram.vec<32>, tensor<?xi32>
    ```
    """

    name = "simdram.read"
    DEST: ClassVar = VarConstraint("DEST", BaseAttr(TensorType))
    vec = operand_def(VecType)
    dest = operand_def(DEST)
    position = operand_def(IndexType)
    stride = operand_def(IndexType)
    result = result_def(DEST)
    assembly_format = (
        "$vec `into` $dest `[` $position `]` `stride` $stride attr-dict "
        "`:` type($vec) `,` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(self, vec: SSAValue, dest: SSAValue, position: SSAValue, stride: SSAValue):
        super().__init__(operands=[vec, dest, position, stride], result_types=[dest.type])

    def verify_(self) -> None:
        have = element_width(_check_vector(self.dest, "dest").element_type)
        if width_of(self.vec) != have:
            raise VerifyException(
                f"an object of {width_of(self.vec)} bits does not fit elements of {have}"
            )


@irdl_op_definition
class CompactOp(IRDLOperation):
    """Host pass of a filter: keeps data[i*scale ... + scale] where mask[i] is true.

    ```mlir
    %kept = simdram.compact %data by %mask scale 1 : tensor<?xi32>, tensor<?xi1> -> tensor<?xi32>
    ```
    """

    name = "simdram.compact"
    data = operand_def(TensorType)
    mask = operand_def(TensorType)
    scale = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType)
    assembly_format = (
        "$data `by` $mask `scale` $scale attr-dict "
        "`:` type($data) `,` type($mask) `->` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(self, data: SSAValue, mask: SSAValue, scale: int):
        element = _check_vector(data, "data").element_type
        super().__init__(
            operands=[data, mask],
            result_types=[TensorType(element, [DYNAMIC_INDEX])],
            properties={"scale": IntegerAttr(scale, i64)},
        )

    def verify_(self) -> None:
        data = _check_vector(self.data, "data")
        if _check_vector(self.mask, "mask").element_type != i1:
            raise VerifyException("mask holds i1")
        if self.scale.value.data < 1:
            raise VerifyException(f"scale is at least 1, got {self.scale.value.data}")
        if _check_vector(self.result, "result").element_type != data.element_type:
            raise VerifyException("result has the elements of data")


OPERATIONS: list[type[Operation]] = [
    TransposeOp,
    FillOp,
    BbopOp,
    MulScalarOp,
    ReadOp,
    CompactOp,
]

Simdram = Dialect("simdram", OPERATIONS, [VecType, OpcodeAttr])
