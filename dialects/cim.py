"""The `cim` dialect: digital compute-in-memory macros and the memories around them.

A *macro* is an array of R rows and C columns of weights. Each row takes one element of the input
register and broadcasts it along its columns; each column accumulates its products in the output
register. One `cim.mvm` does that on several macros at once. Copies move bytes between the global
memory, the input and output memories, and the registers; vector operations add 32-bit partial sums
in the output memory.

Host side, in a `func.func`: `cim.pack` arranges a tensor as the program reads it, `cim.launch` runs
a program on packed tensors, `cim.unpack` puts its result back in order. Device side, in a
`cim.program`: macro instructions, `scf.for`, and `arith` on indices. Addresses are bytes.

Sources: PolyCIM (the abstraction of macros, rows and columns), CIMFlow (the instruction set).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DenseIntElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, Operation, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.str_enum import StrEnum

MACHINE_ATTRIBUTE = "cim.machine"
"""Module attribute: the machine's name, or a dictionary of all its parameters."""

NOWHERE = -(1 << 30)
"""A table entry that lies outside every tensor."""

MAX_OFFSET = 2047
"""Largest constant that a copy adds to an address: 11 bits (CIMFlow's MEM_CPY)."""


class Memory(StrEnum):
    """What an address of a copy lies in."""

    GLOBAL = "global"
    INPUT = "input"
    OUTPUT = "output"
    INPUT_REGISTER = "input_register"
    OUTPUT_REGISTER = "output_register"


@irdl_attr_definition
class MemoryAttr(EnumAttribute[Memory], SpacedOpaqueSyntaxAttribute):
    """The memory of an address."""

    name = "cim.memory"


def _at_least(what: str, attr: IntegerAttr | None, least: int) -> None:
    if attr is not None and attr.value.data < least:
        raise VerifyException(f"{what} is at least {least}, got {attr.value.data}")


class _LayoutOp(IRDLOperation):
    """What `pack` and `unpack` share: where each packed element lies in the tensor."""

    KEEPS: ClassVar = "keeps"
    shape = prop_def(DenseArrayBase.constr(i64))
    map = prop_def(AffineMapAttr)
    bounds = prop_def(DenseArrayBase.constr(i64))
    index = prop_def(AffineMapAttr)
    tables = prop_def(ArrayAttr[DenseIntElementsAttr])
    divisors = opt_prop_def(DenseArrayBase.constr(i64))
    dropped = opt_prop_def(DenseIntElementsAttr)

    def _properties(
        self,
        shape: Sequence[int],
        map: AffineMap,
        bounds: Sequence[int],
        index: AffineMap,
        tables: Sequence[DenseIntElementsAttr],
        divisors: Sequence[int] | None,
        dropped: DenseIntElementsAttr | None,
    ) -> dict[str, Attribute]:
        properties: dict[str, Attribute] = {
            "shape": DenseArrayBase.from_list(i64, shape),
            "map": AffineMapAttr(map),
            "bounds": DenseArrayBase.from_list(i64, bounds),
            "index": AffineMapAttr(index),
            "tables": ArrayAttr(tables),
        }
        if divisors is not None:
            properties["divisors"] = DenseArrayBase.from_list(i64, divisors)
        if dropped is not None:
            properties["dropped"] = dropped
        return properties

    @staticmethod
    def _keeps(tensor: IntegerType, flat: IntegerType) -> bool:
        """Whether elements of these types pass."""
        return tensor == flat

    def _verify_layout(self, unpacked: SSAValue, packed: SSAValue) -> None:
        tensor, flat = _static_tensor(unpacked, "tensor"), _static_tensor(packed, "packed tensor")
        rank, tables = tensor.get_num_dims(), len(self.tables)
        shape = self.shape.get_values()
        if any(extent < 0 for extent in shape):
            raise VerifyException(f"extents of the shape are 0 or more, got {list(shape)}")
        count = 1
        for extent in shape:
            count *= extent
        if flat.get_shape() != (count,):
            raise VerifyException(f"packed tensor has {count} elements, got {flat}")
        if not self._keeps(tensor.element_type, flat.element_type):
            raise VerifyException(
                f"{self.name} {self.KEEPS} the element type, got {tensor} and {flat}"
            )
        map, index = self.map.data, self.index.data
        if index.num_symbols or len(index.results) != rank:
            raise VerifyException(f"index gives {rank} indices of the tensor, got {index}")
        coordinates = index.num_dims
        bounds = self.bounds.get_values()
        if len(bounds) != coordinates or any(bound < 1 for bound in bounds):
            raise VerifyException(
                f"there are {coordinates} bounds of at least 1, got {list(bounds)}"
            )
        if (
            map.num_symbols
            or map.num_dims != len(shape)
            or (len(map.results) != coordinates + tables)
        ):
            raise VerifyException(
                f"map takes the {len(shape)} indices of the shape and gives {tables} rows of "
                f"tables and {coordinates} coordinates, got {map}"
            )
        for table in self.tables:
            extents = table.type.get_shape()
            if len(extents) != 2 or extents[1] != coordinates:
                raise VerifyException(
                    f"a table has {coordinates} coordinates a row, got {table.type}"
                )
        if self.divisors is not None:
            divisors = self.divisors.get_values()
            if len(divisors) != coordinates or any(divisor < 1 for divisor in divisors):
                raise VerifyException(
                    f"there are {coordinates} divisors of at least 1, got {list(divisors)}"
                )
        if self.dropped is not None and self.dropped.type.get_shape()[1:] != (tables,):
            raise VerifyException(
                f"what is dropped names a row of each table, got {self.dropped.type}"
            )


def _static_tensor(value: SSAValue, what: str) -> TensorType[IntegerType]:
    attr = value.type
    if not isa(attr, TensorType) or not attr.has_static_shape():
        raise VerifyException(f"{what} has a static shape, got {attr}")
    if not isa(attr, TensorType[IntegerType]):
        raise VerifyException(f"{what} holds integers, got {attr}")
    return attr


@irdl_op_definition
class PackOp(_LayoutOp):
    """Arranges a tensor as a program reads it; done on the host, and charged.

    An element at index d of `shape` has coordinates: the sum of the last results of `map` and of
    one row of each table, the rows that the first results of `map` name. With `divisors` each
    coordinate is divided by its divisor. `index` takes the coordinates to indices of the tensor.
    What has a coordinate below 0 or not below its bound, does not divide, lies outside the tensor,
    or is dropped (pairs of rows of the tables), is 0: zeros around an image take no memory of their
    own. Packed elements may have more bits than the tensor's; they are extended by their sign.

    ```mlir
    %p = cim.pack %x shape [14, 8, 32] map affine_map<(g, m, r) -> (r, 0, g, m)>
      bounds [1, 62, 62] index affine_map<(c, h, w) -> (c, h - 3, w - 3)>
      tables [dense<...> : tensor<32x3xi32>] : tensor<1x56x56xi8> -> tensor<3584xi8>
    ```
    """

    name = "cim.pack"
    KEEPS: ClassVar = "keeps or widens"
    tensor = operand_def(TensorType)
    packed = result_def(TensorType)
    assembly_format = (
        "$tensor `shape` $shape `map` $map `bounds` $bounds `index` $index `tables` $tables "
        "(`divisors` $divisors^)? "
        "(`dropped` $dropped^)? attr-dict `:` type($tensor) `->` type($packed)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        tensor: SSAValue,
        shape: Sequence[int],
        map: AffineMap,
        bounds: Sequence[int],
        index: AffineMap,
        tables: Sequence[DenseIntElementsAttr],
        divisors: Sequence[int] | None = None,
        dropped: DenseIntElementsAttr | None = None,
        element: IntegerType | None = None,
    ):
        assert isa(tensor.type, TensorType)
        count = 1
        for extent in shape:
            count *= extent
        super().__init__(
            operands=[tensor],
            result_types=[TensorType(element or tensor.type.element_type, [count])],
            properties=self._properties(shape, map, bounds, index, tables, divisors, dropped),
        )

    @staticmethod
    def _keeps(tensor: IntegerType, flat: IntegerType) -> bool:
        return tensor.width.data <= flat.width.data

    def verify_(self) -> None:
        self._verify_layout(self.tensor, self.packed)


@irdl_op_definition
class UnpackOp(_LayoutOp):
    """Puts a program's result back in order; done on the host, and charged.

    The inverse of `cim.pack`: packed elements that lie outside the tensor are left out, and every
    element of the tensor has one packed element, which is added to `init`. With `partial` some have
    none, and stay as they are.

    ```mlir
    %y = cim.unpack %p into %init shape [98, 8] map affine_map<(t, c) -> (c, 0, t)>
      bounds [1, 784] index affine_map<(c, t) -> (c, t)>
      tables [dense<...> : tensor<8x2xi32>]
      : tensor<784xi32>, tensor<1x784xi32> -> tensor<1x784xi32>
    ```
    """

    name = "cim.unpack"
    packed = operand_def(TensorType)
    init = operand_def(TensorType)
    partial = opt_prop_def(UnitAttr)
    tensor = result_def(TensorType)
    assembly_format = (
        "$packed `into` $init (`partial` $partial^)? `shape` $shape `map` $map `bounds` $bounds "
        "`index` $index `tables` $tables (`divisors` $divisors^)? (`dropped` $dropped^)? "
        "attr-dict `:` type($packed) `,` type($init) `->` type($tensor)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        packed: SSAValue,
        init: SSAValue,
        shape: Sequence[int],
        map: AffineMap,
        bounds: Sequence[int],
        index: AffineMap,
        tables: Sequence[DenseIntElementsAttr],
        partial: bool = False,
    ):
        properties = self._properties(shape, map, bounds, index, tables, None, None)
        if partial:
            properties["partial"] = UnitAttr()
        super().__init__(operands=[packed, init], result_types=[init.type], properties=properties)

    def verify_(self) -> None:
        if self.init.type != self.tensor.type:
            raise VerifyException(f"init and result have one type, got {self.init.type}")
        self._verify_layout(self.tensor, self.packed)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a program: operands are placed in global memory, the result is taken from there.

    The program's arguments are the byte addresses of the operands and then of the result.

    ```mlir
    %y = cim.launch @conv(%x, %w) : (tensor<3584xi8>, tensor<2048xi8>) -> tensor<784xi32>
    ```
    """

    name = "cim.launch"
    program = prop_def(SymbolRefAttr)
    args = var_operand_def(TensorType)
    result = result_def(TensorType)
    assembly_format = "$program `(` $args `)` attr-dict `:` functional-type($args, $result)"
    traits = traits_def(Pure())

    def __init__(self, program: str, args: Sequence[SSAValue], result: TensorType):
        super().__init__(
            operands=[list(args)],
            result_types=[result],
            properties={"program": SymbolRefAttr(program)},
        )

    def verify_(self) -> None:
        program = SymbolTable.lookup_symbol(self, self.program)
        if not isinstance(program, ProgramOp):
            raise VerifyException(f"there is no cim.program {self.program}")
        if len(program.body.block.args) != len(self.args) + 1:
            raise VerifyException(
                f"{self.program} takes {len(program.body.block.args)} addresses, "
                f"got {len(self.args)} operands and a result"
            )
        for value in (*self.args, self.result):
            _static_tensor(value, "what a launch moves")


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """What the machine runs. Its arguments are byte addresses in global memory.

    ```mlir
    cim.program @conv(%x: index, %w: index, %y: index) {
      cim.load_weights %w macros 8 rows 32
      cim.return
    }
    ```
    """

    name = "cim.program"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, body: Region):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])

    def verify_(self) -> None:
        if any(arg.type != IndexType() for arg in self.body.block.args):
            raise VerifyException("a program takes addresses, of type index")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("a program ends in cim.return")

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name.data, parser.parse_region(args))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a program.

    ```mlir
    cim.return
    ```
    """

    name = "cim.return"
    assembly_format = "attr-dict"
    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(ProgramOp)))

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copies bytes between two memories, or within one; each address may have a constant added.

    The output register holds macro after macro, its columns in order, 4 bytes each.

    ```mlir
    cim.copy global[%x] to input_register[%zero] bytes 256
    cim.copy output_register[%zero] to output[%p] plus 256 bytes 256
    ```
    """

    name = "cim.copy"
    source_memory = prop_def(MemoryAttr)
    source = operand_def(IndexType)
    target_memory = prop_def(MemoryAttr)
    target = operand_def(IndexType)
    bytes = prop_def(IntegerAttr.constr(i64))
    source_offset = opt_prop_def(IntegerAttr.constr(i64))
    target_offset = opt_prop_def(IntegerAttr.constr(i64))
    assembly_format = (
        "$source_memory `[` $source `]` (`plus` $source_offset^)? `to` "
        "$target_memory `[` $target `]` (`plus` $target_offset^)? `bytes` $bytes attr-dict"
    )

    def __init__(
        self,
        source_memory: Memory,
        source: SSAValue,
        target_memory: Memory,
        target: SSAValue,
        bytes: int,
        source_offset: int = 0,
        target_offset: int = 0,
    ):
        properties: dict[str, Attribute] = {
            "source_memory": MemoryAttr(source_memory),
            "target_memory": MemoryAttr(target_memory),
            "bytes": IntegerAttr(bytes, i64),
        }
        if source_offset:
            properties["source_offset"] = IntegerAttr(source_offset, i64)
        if target_offset:
            properties["target_offset"] = IntegerAttr(target_offset, i64)
        super().__init__(operands=[source, target], properties=properties)

    def verify_(self) -> None:
        _at_least("bytes", self.bytes, 1)
        for offset in (self.source_offset, self.target_offset):
            if offset is not None and not 0 <= offset.value.data <= MAX_OFFSET:
                raise VerifyException(
                    f"a constant added to an address is 0 to {MAX_OFFSET}, got {offset.value.data}"
                )
        into_sums = self.target_memory.data is Memory.OUTPUT_REGISTER
        if into_sums and self.source_memory.data is not Memory.OUTPUT:
            raise VerifyException("the output register is loaded from output memory only")


@irdl_op_definition
class LoadWeightsOp(IRDLOperation):
    """Loads the first rows of the first macros from global memory.

    Row 0 of all these macros lies there first, macro after macro, then row 1: one row of all macros
    is written at a time. A macro's row takes the machine's bit columns, 8 bytes of 64.

    ```mlir
    cim.load_weights %w macros 8 rows 32
    ```
    """

    name = "cim.load_weights"
    source = operand_def(IndexType)
    macros = prop_def(IntegerAttr.constr(i64))
    rows = prop_def(IntegerAttr.constr(i64))
    assembly_format = "$source `macros` $macros `rows` $rows attr-dict"

    def __init__(self, source: SSAValue, macros: int, rows: int):
        super().__init__(
            operands=[source],
            properties={"macros": IntegerAttr(macros, i64), "rows": IntegerAttr(rows, i64)},
        )

    def verify_(self) -> None:
        _at_least("macros", self.macros, 1)
        _at_least("rows", self.rows, 1)


@irdl_op_definition
class MvmOp(IRDLOperation):
    """Multiplies on the first `macros` macros: macro m takes the input register at input + m*step.

    Row r takes element r from there; only the first `rows` rows take part. Column c of macro m
    becomes the sum over rows of input times weight, or with `accumulate` adds it to what the output
    register holds. `bits` is the width of inputs and weights: 4, 8 or 16; it sets the number of
    columns. Inputs of 4 bits take a byte each in the register, weights of 4 bits half a byte.

    ```mlir
    cim.mvm %zero step 32 macros 8 rows 32 bits 8
    cim.mvm %zero step 0 macros 8 rows 24 bits 8 accumulate
    ```
    """

    name = "cim.mvm"
    input = operand_def(IndexType)
    step = prop_def(IntegerAttr.constr(i64))
    macros = prop_def(IntegerAttr.constr(i64))
    rows = prop_def(IntegerAttr.constr(i64))
    bits = prop_def(IntegerAttr.constr(i64))
    accumulate = opt_prop_def(UnitAttr)
    assembly_format = (
        "$input `step` $step `macros` $macros `rows` $rows `bits` $bits "
        "(`accumulate` $accumulate^)? attr-dict"
    )
    WIDTHS: ClassVar = (4, 8, 16)

    def __init__(
        self,
        input: SSAValue,
        step: int,
        macros: int,
        rows: int,
        bits: int = 8,
        accumulate: bool = False,
    ):
        properties: dict[str, Attribute] = {
            "step": IntegerAttr(step, i64),
            "macros": IntegerAttr(macros, i64),
            "rows": IntegerAttr(rows, i64),
            "bits": IntegerAttr(bits, i64),
        }
        if accumulate:
            properties["accumulate"] = UnitAttr()
        super().__init__(operands=[input], properties=properties)

    def verify_(self) -> None:
        _at_least("step", self.step, 0)
        _at_least("macros", self.macros, 1)
        _at_least("rows", self.rows, 1)
        if self.bits.value.data not in self.WIDTHS:
            raise VerifyException(f"bits are 4, 8 or 16, got {self.bits.value.data}")


@irdl_op_definition
class VectorAddOp(IRDLOperation):
    """target[i] = left[i] + right[i] on 32-bit elements of the output memory.

    The target may be an operand. Sums wrap around.

    ```mlir
    cim.vector_add %y, %y, %partial elements 64
    ```
    """

    name = "cim.vector_add"
    target = operand_def(IndexType)
    left = operand_def(IndexType)
    right = operand_def(IndexType)
    elements = prop_def(IntegerAttr.constr(i64))
    assembly_format = "$target `,` $left `,` $right `elements` $elements attr-dict"

    def __init__(self, target: SSAValue, left: SSAValue, right: SSAValue, elements: int):
        super().__init__(
            operands=[target, left, right], properties={"elements": IntegerAttr(elements, i64)}
        )

    def verify_(self) -> None:
        _at_least("elements", self.elements, 1)


@irdl_op_definition
class VectorClearOp(IRDLOperation):
    """Sets 32-bit elements of the output memory to 0.

    ```mlir
    cim.vector_clear %y elements 64
    ```
    """

    name = "cim.vector_clear"
    target = operand_def(IndexType)
    elements = prop_def(IntegerAttr.constr(i64))
    assembly_format = "$target `elements` $elements attr-dict"

    def __init__(self, target: SSAValue, elements: int):
        super().__init__(operands=[target], properties={"elements": IntegerAttr(elements, i64)})

    def verify_(self) -> None:
        _at_least("elements", self.elements, 1)


def table_attribute(rows: Sequence[Sequence[int]]) -> DenseIntElementsAttr:
    """A table of a layout, 32-bit integers, one row after another."""
    columns = len(rows[0]) if rows else 0
    return DenseIntElementsAttr.from_list(
        TensorType(i32, [len(rows), columns]), [value for row in rows for value in row]
    )


OPERATIONS: list[type[Operation]] = [
    PackOp,
    UnpackOp,
    LaunchOp,
    ProgramOp,
    ReturnOp,
    CopyOp,
    LoadWeightsOp,
    MvmOp,
    VectorAddOp,
    VectorClearOp,
]

Cim = Dialect("cim", OPERATIONS, [MemoryAttr])
