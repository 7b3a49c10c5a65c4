"""The `upmem` dialect: UPMEM near-bank processors (DPUs), host side and kernel side.

Host side, in a `func.func`: allocate a set of DPUs, push, broadcast and pull arrays at byte offsets
of every DPU's MRAM, launch a kernel, merge what comes back. Kernel side, in an `upmem.kernel`: the
same code on every tasklet of every DPU, with MRAM arrays, WRAM buffers, transfers between the two,
barriers and critical sections, plus `arith`, `math`, `scf` and `memref.load` / `memref.store`.

Memory spaces are attributes of memrefs: `memref<256xi32, #upmem<space wram>>`. An element takes
width/8 bytes, i1 one byte. MRAM transfers move whole elements, 8 to 2048 bytes, a multiple of
8 bytes, at addresses that are multiples of 8 (UPMEM SDK; PrIM, section 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation, EnumAttribute
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
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
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.str_enum import StrEnum

DMA_ALIGN = 8
"""Bytes: MRAM addresses and transfer sizes are multiples of it."""

MACHINE_ATTRIBUTE = "upmem.machine"
"""Module attribute: the machine's name, or a dictionary of all its parameters."""


class Space(StrEnum):
    """Where a kernel's memref lives."""

    MRAM = "mram"
    WRAM = "wram"


@irdl_attr_definition
class SpaceAttr(EnumAttribute[Space], SpacedOpaqueSyntaxAttribute):
    """Memory space of a kernel's memref: `#upmem<space mram>` or `#upmem<space wram>`."""

    name = "upmem.space"


@irdl_attr_definition
class DpusType(ParametrizedAttribute, TypeAttribute):
    """A set of allocated DPUs, numbered from 0."""

    name = "upmem.dpus"


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """A launch that may still be running."""

    name = "upmem.token"


def element_bytes(attr: Attribute) -> int:
    """Bytes of one element in memory: width/8 for integers and floats, 1 for i1."""
    if isa(attr, IntegerType) and attr.width.data in (1, 8, 16, 32, 64):
        return max(1, attr.width.data // 8)
    if isinstance(attr, Float32Type):
        return 4
    if isinstance(attr, Float64Type):
        return 8
    raise VerifyException(f"no memory size for elements of {attr}")


def memref_type(element: Attribute, length: int, space: Space) -> MemRefType:
    """A 1-D memref of `length` elements in `space`."""
    return MemRefType(element, [length], memory_space=SpaceAttr(space))


def space_of(value: SSAValue | Attribute) -> Space | None:
    """The memory space of a memref, None when it has none of ours."""
    attr = value.type if isinstance(value, SSAValue) else value
    if isa(attr, MemRefType) and isinstance(attr.memory_space, SpaceAttr):
        return attr.memory_space.data
    return None


def _check_vector(value: SSAValue, what: str) -> TensorType:
    attr = value.type
    if not isa(attr, TensorType) or attr.get_num_dims() != 1:
        raise VerifyException(f"{what} is a 1-D tensor, got {attr}")
    element_bytes(attr.element_type)
    return attr


def _element_type(attr: Attribute) -> Attribute:
    return attr.element_type if isa(attr, TensorType) else attr


def _check_combine(
    region: Region, types: Sequence[Attribute], shared: Sequence[SSAValue] = ()
) -> None:
    wanted = [*types, *types, *(value.type for value in shared)]
    if [arg.type for arg in region.block.args] != wanted:
        raise VerifyException("combine region takes the types of init twice, then the shared ones")
    last = region.block.last_op
    if not isinstance(last, YieldOp) or [value.type for value in last.arguments] != [*types]:
        raise VerifyException("combine region yields the types of init")


def _check_offset(offset: int) -> None:
    if offset < 0 or offset % DMA_ALIGN:
        raise VerifyException(f"MRAM offsets are multiples of {DMA_ALIGN} bytes, got {offset}")


# -- host side --------------------------------------------------------------------------------


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Allocates `count` DPUs; at most as many as the machine has. None is allowed: then pushes,
    launches and pulls do nothing.

    ```mlir
    %set = upmem.alloc %n : !upmem.dpus
    ```
    """

    name = "upmem.alloc"
    count = operand_def(IndexType)
    dpus = result_def(DpusType)
    assembly_format = "$count attr-dict `:` type($dpus)"
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, count: SSAValue):
        super().__init__(operands=[count], result_types=[DpusType()])


@irdl_op_definition
class FreeOp(IRDLOperation):
    """Gives the DPUs back.

    ```mlir
    upmem.free %set : !upmem.dpus
    ```
    """

    name = "upmem.free"
    dpus = operand_def(DpusType)
    assembly_format = "$dpus attr-dict `:` type($dpus)"
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, dpus: SSAValue):
        super().__init__(operands=[dpus])


@irdl_op_definition
class PushOp(IRDLOperation):
    """Transfer to MRAM: DPU d gets source[start + d*stride ... + count] at `offset`.

    All DPUs get the same number of bytes, count * element size, a multiple of 8. Elements past the
    end of the source are zeros. DPUs are served in parallel; `serial`, one after another.

    ```mlir
    upmem.push %a[%start] to %set at 1024 count %n stride %n : tensor<?xi32>
    upmem.push serial %a[%start] to %set at 1024 count %n stride %n : tensor<?xi32>
    ```
    """

    name = "upmem.push"
    source = operand_def(TensorType)
    start = operand_def(IndexType)
    dpus = operand_def(DpusType)
    count = operand_def(IndexType)
    stride = operand_def(IndexType)
    offset = prop_def(IntegerAttr.constr(i64))
    serial = opt_prop_def(UnitAttr)
    assembly_format = (
        "(`serial` $serial^)? $source `[` $start `]` `to` $dpus `at` $offset `count` $count "
        "`stride` $stride attr-dict `:` type($source)"
    )
    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        source: SSAValue,
        start: SSAValue,
        dpus: SSAValue,
        offset: int,
        count: SSAValue,
        stride: SSAValue,
    ):
        super().__init__(
            operands=[source, start, dpus, count, stride],
            properties={"offset": IntegerAttr(offset, i64)},
        )

    def verify_(self) -> None:
        _check_vector(self.source, "source")
        _check_offset(self.offset.value.data)


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Every DPU gets the whole source at `offset`, padded with zeros to a multiple of 8 bytes.

    ```mlir
    upmem.broadcast %table to %set at 2048 : tensor<16xi32>
    ```
    """

    name = "upmem.broadcast"
    source = operand_def(TensorType)
    dpus = operand_def(DpusType)
    offset = prop_def(IntegerAttr.constr(i64))
    assembly_format = "$source `to` $dpus `at` $offset attr-dict `:` type($source)"
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, source: SSAValue, dpus: SSAValue, offset: int):
        super().__init__(operands=[source, dpus], properties={"offset": IntegerAttr(offset, i64)})

    def verify_(self) -> None:
        _check_vector(self.source, "source")
        _check_offset(self.offset.value.data)


@irdl_op_definition
class PullOp(IRDLOperation):
    """Transfer from MRAM: dest[position + d*count ... + count] is what DPU d has at `offset`; the
    rest of `dest` is kept.

    All DPUs give the same number of bytes, count * element size, a multiple of 8. Elements that
    would land past the end of `dest` are dropped. DPUs are read in parallel; `serial`, one after
    another.

    ```mlir
    %r = upmem.pull %set at 4096 count %n into %dest[%position] : tensor<?xi32>
    %s = upmem.pull serial %set at 4096 count %n into %dest[%position] : tensor<?xi32>
    ```
    """

    name = "upmem.pull"
    DEST: ClassVar = VarConstraint("DEST", BaseAttr(TensorType))
    dpus = operand_def(DpusType)
    count = operand_def(IndexType)
    dest = operand_def(DEST)
    position = operand_def(IndexType)
    offset = prop_def(IntegerAttr.constr(i64))
    serial = opt_prop_def(UnitAttr)
    result = result_def(DEST)
    assembly_format = (
        "(`serial` $serial^)? $dpus `at` $offset `count` $count `into` $dest `[` $position `]` "
        "attr-dict `:` type($result)"
    )
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self, dpus: SSAValue, offset: int, count: SSAValue, dest: SSAValue, position: SSAValue
    ):
        super().__init__(
            operands=[dpus, count, dest, position],
            result_types=[dest.type],
            properties={"offset": IntegerAttr(offset, i64)},
        )

    def verify_(self) -> None:
        _check_vector(self.dest, "dest")
        _check_offset(self.offset.value.data)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Starts a kernel on all DPUs of the set; host operations until the wait run beside it.

    The arguments are the same on every DPU.

    ```mlir
    %t = upmem.launch @kernel on %set (%n, %scale) : (index, i32) -> !upmem.token
    ```
    """

    name = "upmem.launch"
    kernel = prop_def(SymbolRefAttr)
    dpus = operand_def(DpusType)
    args = var_operand_def()
    token = result_def(TokenType)
    assembly_format = (
        "$kernel `on` $dpus `(` $args `)` attr-dict `:` `(` type($args) `)` `->` type($token)"
    )
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, kernel: str, dpus: SSAValue, args: Sequence[SSAValue]):
        super().__init__(
            operands=[dpus, list(args)],
            result_types=[TokenType()],
            properties={"kernel": SymbolRefAttr(kernel)},
        )


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Waits until a launch has ended.

    ```mlir
    upmem.wait %t : !upmem.token
    ```
    """

    name = "upmem.wait"
    token = operand_def(TokenType)
    assembly_format = "$token attr-dict `:` type($token)"
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, token: SSAValue):
        super().__init__(operands=[token])


@irdl_op_definition
class CompactOp(IRDLOperation):
    """Host pass that closes the gaps a filter leaves: `data` is segments of `capacity` elements;
    of segment s the first counts[s] * scale go on in `dest`, from `position` on. The rest of `dest`
    is kept.

    ```mlir
    %kept = upmem.compact %data segments %capacity counts %counts scale 1 into %dest[%position]
        : tensor<?xi32>, tensor<?xi64> -> tensor<?xi32>
    ```
    """

    name = "upmem.compact"
    DEST: ClassVar = VarConstraint("DEST", BaseAttr(TensorType))
    data = operand_def(TensorType)
    capacity = operand_def(IndexType)
    counts = operand_def(TensorType)
    dest = operand_def(DEST)
    position = operand_def(IndexType)
    scale = prop_def(IntegerAttr.constr(i64))
    result = result_def(DEST)
    assembly_format = (
        "$data `segments` $capacity `counts` $counts `scale` $scale `into` $dest `[` $position `]` "
        "attr-dict `:` type($data) `,` type($counts) `->` type($result)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        data: SSAValue,
        capacity: SSAValue,
        counts: SSAValue,
        scale: int,
        dest: SSAValue,
        position: SSAValue,
    ):
        super().__init__(
            operands=[data, capacity, counts, dest, position],
            result_types=[dest.type],
            properties={"scale": IntegerAttr(scale, i64)},
        )

    def verify_(self) -> None:
        data = _check_vector(self.data, "data")
        counts = _check_vector(self.counts, "counts")
        if counts.element_type != i64:
            raise VerifyException(f"counts are i64, got {counts.element_type}")
        if _check_vector(self.dest, "dest").element_type != data.element_type:
            raise VerifyException("dest has the elements of data")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Scatter-gather transfer from MRAM: every DPU has segments of `capacity` elements at `offset`;
    of segment s of all the first counts[s] * scale go on in `dest`, from `position` on. The rest of
    `dest` is kept.

    All DPUs have the same number of segments, which take a multiple of 8 bytes. (The SDK's
    dpu_push_sg_xfer, with blocks of the counted lengths and one that is thrown away after each.)
    `serial` takes one DPU after another.

    ```mlir
    %kept = upmem.gather %set at 4096 segments %capacity counts %counts scale 1
        into %dest[%position] : tensor<?xi64> -> tensor<?xi32>
    ```
    """

    name = "upmem.gather"
    DEST: ClassVar = VarConstraint("DEST", BaseAttr(TensorType))
    dpus = operand_def(DpusType)
    capacity = operand_def(IndexType)
    counts = operand_def(TensorType)
    dest = operand_def(DEST)
    position = operand_def(IndexType)
    offset = prop_def(IntegerAttr.constr(i64))
    scale = prop_def(IntegerAttr.constr(i64))
    serial = opt_prop_def(UnitAttr)
    result = result_def(DEST)
    assembly_format = (
        "(`serial` $serial^)? $dpus `at` $offset `segments` $capacity `counts` $counts "
        "`scale` $scale `into` $dest `[` $position `]` attr-dict "
        "`:` type($counts) `->` type($result)"
    )
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        dpus: SSAValue,
        offset: int,
        capacity: SSAValue,
        counts: SSAValue,
        scale: int,
        dest: SSAValue,
        position: SSAValue,
    ):
        super().__init__(
            operands=[dpus, capacity, counts, dest, position],
            result_types=[dest.type],
            properties={"offset": IntegerAttr(offset, i64), "scale": IntegerAttr(scale, i64)},
        )

    def verify_(self) -> None:
        counts = _check_vector(self.counts, "counts")
        if counts.element_type != i64:
            raise VerifyException(f"counts are i64, got {counts.element_type}")
        _check_vector(self.dest, "dest")
        _check_offset(self.offset.value.data)


@irdl_op_definition
class MergeScanOp(IRDLOperation):
    """Host pass that turns local inclusive scans into one scan.

    Every DPU has scanned `per_dpu` elements, its tasklet t those from t*chunk, at most `chunk`
    (tasklets past the end none); `totals` has one value a DPU and tasklet, in that order. `locals`
    is the concatenation of all DPUs' elements. Element i of the result is combine(o, locals[i]),
    where o is the initial value combined with the totals of all segments before. `carries` are the
    initial value combined with all totals. With `exclusive`, result i is the inclusive result of
    i-1, and of i = 0 the initial value. The region takes (lhs..., rhs...), one of each a scan, and
    then the shared operands.

    ```mlir
    %y, %c = upmem.merge_scan locals(%l : tensor<?xi32>) totals(%t : tensor<?xi32>)
        init(%i : i32) tasklets 16 per_dpu %n chunk %k -> (tensor<?xi32>) carry (i32) {
    ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      upmem.yield %s : i32
    }
    ```
    """

    name = "upmem.merge_scan"
    locals_ = var_operand_def(TensorType)
    totals = var_operand_def(TensorType)
    inits = var_operand_def()
    shared = var_operand_def()
    per_dpu = operand_def(IndexType)
    chunk = operand_def(IndexType)
    tasklets = prop_def(IntegerAttr.constr(i64))
    exclusive = opt_prop_def(UnitAttr)
    merged = var_result_def(TensorType)
    carries = var_result_def()
    combine = region_def("single_block")
    irdl_options = (
        AttrSizedOperandSegments(as_property=True),
        AttrSizedResultSegments(as_property=True),
    )
    assembly_format = (
        "(`exclusive` $exclusive^)? `locals` `(` $locals_ `:` type($locals_) `)` "
        "`totals` `(` $totals `:` type($totals) `)` `init` `(` $inits `:` type($inits) `)` "
        "(`shared` `(` $shared^ `:` type($shared) `)`)? "
        "`tasklets` $tasklets `per_dpu` $per_dpu `chunk` $chunk "
        "`->` `(` type($merged) `)` `carry` `(` type($carries) `)` attr-dict-with-keyword $combine"
    )
    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(
        self,
        locals_: Sequence[SSAValue],
        totals: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        shared: Sequence[SSAValue],
        tasklets: int,
        per_dpu: SSAValue,
        chunk: SSAValue,
        combine: Region,
        exclusive: bool,
    ):
        super().__init__(
            operands=[list(locals_), list(totals), list(inits), list(shared), per_dpu, chunk],
            result_types=[[v.type for v in locals_], [v.type for v in inits]],
            properties={
                "tasklets": IntegerAttr(tasklets, i64),
                **({"exclusive": UnitAttr()} if exclusive else {}),
            },
            regions=[combine],
        )

    def verify_(self) -> None:
        count = len(self.inits)
        if not count or len(self.locals_) != count or len(self.totals) != count:
            raise VerifyException("has as many locals as totals and initial values, at least one")
        types = [value.type for value in self.inits]
        for vectors in (self.locals_, self.totals, self.merged):
            if [_check_vector(value, "scanned data").element_type for value in vectors] != types:
                raise VerifyException("locals, totals and results have elements of init's types")
        _check_combine(self.combine, types, self.shared)


@irdl_op_definition
class MergeReduceOp(IRDLOperation):
    """Host pass that folds the partial results of all DPUs, in order, onto the initial values.

    Partial result s of `partials` is its element s*stride, or for a tensor accumulator of K
    elements its elements s*stride ... + K, combined element by element. The region takes
    (lhs..., rhs...), one of each a reduce, and works on elements.

    ```mlir
    %r = upmem.merge_reduce partials(%p : tensor<?xi32>) init(%i : i32) strides [2] -> (i32) {
    ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      upmem.yield %s : i32
    }
    ```
    """

    name = "upmem.merge_reduce"
    partials = var_operand_def(TensorType)
    inits = var_operand_def()
    strides = prop_def(DenseArrayBase.constr(i64))
    merged = var_result_def()
    combine = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "`partials` `(` $partials `:` type($partials) `)` `init` `(` $inits `:` type($inits) `)` "
        "`strides` $strides `->` `(` type($merged) `)` attr-dict-with-keyword $combine"
    )
    traits = traits_def(Pure(), IsolatedFromAbove())

    def __init__(
        self,
        partials: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        strides: Sequence[int],
        combine: Region,
    ):
        super().__init__(
            operands=[list(partials), list(inits)],
            result_types=[[v.type for v in inits]],
            properties={"strides": DenseArrayBase.from_list(i64, list(strides))},
            regions=[combine],
        )

    def verify_(self) -> None:
        count = len(self.inits)
        if not count or len(self.partials) != count or len(self.strides) != count:
            raise VerifyException("has as many partials as strides and initial values")
        types = [_element_type(value.type) for value in self.inits]
        if [_check_vector(value, "partials").element_type for value in self.partials] != types:
            raise VerifyException("partials have the elements of init")
        _check_combine(self.combine, types)


@irdl_op_definition
class HostThreadOp(IRDLOperation):
    """Host work on a thread of its own, beside transfers and kernels, from here to the end.

    Its results may be used after it; the program's end waits for it.

    ```mlir
    %r = upmem.host_thread -> (tensor<?xi32>) {
      %y = pattern.map(%x in %tail : tensor<?xi32>) -> tensor<?xi32> {
        %d = arith.addi %x, %x : i32
        pattern.yield %d : i32
      }
      upmem.yield %y : tensor<?xi32>
    }
    ```
    """

    name = "upmem.host_thread"
    outs = var_result_def()
    body = region_def("single_block")
    assembly_format = "`->` `(` type($outs) `)` attr-dict-with-keyword $body"
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, result_types: Sequence[Attribute], body: Region):
        super().__init__(result_types=[list(result_types)], regions=[body])

    def verify_(self) -> None:
        last = self.body.block.last_op
        types = [value.type for value in self.outs]
        if not isinstance(last, YieldOp) or [v.type for v in last.arguments] != types:
            raise VerifyException("yields its results")


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends a combine region or a host thread.

    ```mlir
    upmem.yield %s : i32
    ```
    """

    name = "upmem.yield"
    traits = lazy_traits_def(
        lambda: (IsTerminator(), Pure(), HasParent(MergeScanOp, MergeReduceOp, HostThreadOp))
    )


# -- kernel side ------------------------------------------------------------------------------


@irdl_op_definition
class KernelOp(IRDLOperation):
    """What every tasklet of every DPU runs. Its arguments come from the launch.

    ```mlir
    upmem.kernel @k tasklets 16 (%n: index) {
      %t = upmem.tasklet_id : index
      upmem.return
    }
    ```
    """

    name = "upmem.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    tasklets = prop_def(IntegerAttr.constr(i64))
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, tasklets: int, body: Region):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "tasklets": IntegerAttr(tasklets, i64),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        if self.tasklets.value.data < 1:
            raise VerifyException(f"runs on at least 1 tasklet, got {self.tasklets.value.data}")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("kernel ends in upmem.return")

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        parser.parse_keyword("tasklets")
        tasklets = parser.parse_integer()
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name.data, tasklets, parser.parse_region(args))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f" tasklets {self.tasklets.value.data} ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a kernel.

    ```mlir
    upmem.return
    ```
    """

    name = "upmem.return"
    assembly_format = "attr-dict"
    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(KernelOp)))

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class TaskletIdOp(IRDLOperation):
    """This tasklet's number, from 0.

    ```mlir
    %t = upmem.tasklet_id : index
    ```
    """

    name = "upmem.tasklet_id"
    result = result_def(IndexType)
    assembly_format = "attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class MramOp(IRDLOperation):
    """The DPU's array at byte `offset` of MRAM, shared by its tasklets.

    ```mlir
    %a = upmem.mram 1024 : memref<4096xi32, #upmem<space mram>>
    ```
    """

    name = "upmem.mram"
    offset = prop_def(IntegerAttr.constr(i64))
    result = result_def(MemRefType)
    assembly_format = "$offset attr-dict `:` type($result)"
    traits = traits_def(NoMemoryEffect())

    def __init__(self, offset: int, element: Attribute, length: int):
        super().__init__(
            properties={"offset": IntegerAttr(offset, i64)},
            result_types=[memref_type(element, length, Space.MRAM)],
        )

    def verify_(self) -> None:
        _check_offset(self.offset.value.data)
        _check_memref(self.result, Space.MRAM)


@irdl_op_definition
class WramOp(IRDLOperation):
    """A buffer in WRAM: one a tasklet, or with `shared` one for all tasklets of the DPU.

    Buffers live as long as the kernel and start at multiples of 8 bytes.

    ```mlir
    %w = upmem.wram : memref<256xi32, #upmem<space wram>>
    %h = upmem.wram shared : memref<4096xi32, #upmem<space wram>>
    ```
    """

    name = "upmem.wram"
    shared = opt_prop_def(UnitAttr)
    result = result_def(MemRefType)
    assembly_format = "(`shared` $shared^)? attr-dict `:` type($result)"
    traits = traits_def(NoMemoryEffect())

    def __init__(self, element: Attribute, length: int, shared: bool = False):
        super().__init__(
            properties={"shared": UnitAttr()} if shared else {},
            result_types=[memref_type(element, length, Space.WRAM)],
        )

    def verify_(self) -> None:
        _check_memref(self.result, Space.WRAM)
        if not isinstance(self.parent_op(), KernelOp):
            raise VerifyException("WRAM buffers are allocated at the top of a kernel")


class _TransferOp(IRDLOperation):
    """What `mram_read` and `mram_write` share: two arrays, two first elements, a count."""

    mram = operand_def(MemRefType)
    mram_index = operand_def(IndexType)
    wram = operand_def(MemRefType)
    wram_index = operand_def(IndexType)
    count = operand_def(IndexType)

    def __init__(
        self,
        mram: SSAValue,
        mram_index: SSAValue,
        wram: SSAValue,
        wram_index: SSAValue,
        count: SSAValue,
    ):
        super().__init__(operands=[mram, mram_index, wram, wram_index, count])

    def verify_(self) -> None:
        mram = _check_memref(self.mram, Space.MRAM)
        wram = _check_memref(self.wram, Space.WRAM)
        if mram.element_type != wram.element_type:
            raise VerifyException(
                f"moves elements of one type, got {mram.element_type} and {wram.element_type}"
            )


@irdl_op_definition
class MramReadOp(_TransferOp):
    """DMA from MRAM to WRAM: `count` elements, 8 to 2048 bytes, a multiple of 8.

    ```mlir
    upmem.mram_read %m[%i] to %w[%j] count %n
        : memref<4096xi32, #upmem<space mram>>, memref<256xi32, #upmem<space wram>>
    ```
    """

    name = "upmem.mram_read"
    assembly_format = (
        "$mram `[` $mram_index `]` `to` $wram `[` $wram_index `]` `count` $count attr-dict "
        "`:` type($mram) `,` type($wram)"
    )
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class MramWriteOp(_TransferOp):
    """DMA from WRAM to MRAM: `count` elements, 8 to 2048 bytes, a multiple of 8.

    ```mlir
    upmem.mram_write %w[%j] to %m[%i] count %n
        : memref<256xi32, #upmem<space wram>>, memref<4096xi32, #upmem<space mram>>
    ```
    """

    name = "upmem.mram_write"
    assembly_format = (
        "$wram `[` $wram_index `]` `to` $mram `[` $mram_index `]` `count` $count attr-dict "
        "`:` type($wram) `,` type($mram)"
    )
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All tasklets of the DPU meet; stands where every tasklet passes.

    ```mlir
    upmem.barrier
    ```
    """

    name = "upmem.barrier"
    assembly_format = "attr-dict"
    traits = traits_def(MemoryWriteEffect())

    def __init__(self) -> None:
        super().__init__()

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), KernelOp):
            raise VerifyException(
                "a barrier stands at the top of a kernel, where all tasklets pass"
            )


@irdl_op_definition
class CriticalOp(IRDLOperation):
    """Runs its region under mutex `mutex`: one tasklet of the DPU at a time.

    ```mlir
    upmem.critical %m {
      memref.store %v, %h[%i] : memref<256xi32, #upmem<space wram>>
    }
    ```
    """

    name = "upmem.critical"
    mutex = operand_def(IndexType)
    body = region_def("single_block")
    assembly_format = "$mutex $body attr-dict"
    traits = traits_def(RecursiveMemoryEffect(), NoTerminator())

    def __init__(self, mutex: SSAValue, body: Region):
        super().__init__(operands=[mutex], regions=[body])


def _check_memref(value: SSAValue, space: Space) -> MemRefType:
    attr = value.type
    if not isa(attr, MemRefType) or attr.get_num_dims() != 1 or space_of(attr) is not space:
        raise VerifyException(f"expected a 1-D memref in {space}, got {attr}")
    if attr.get_shape()[0] == DYNAMIC_INDEX:
        raise VerifyException(f"memrefs have static length, got {attr}")
    element_bytes(attr.element_type)
    return attr


HOST_OPS: list[type[Operation]] = [
    AllocOp,
    FreeOp,
    PushOp,
    BroadcastOp,
    PullOp,
    LaunchOp,
    WaitOp,
    CompactOp,
    GatherOp,
    MergeScanOp,
    MergeReduceOp,
    HostThreadOp,
    YieldOp,
]

KERNEL_OPS: list[type[Operation]] = [
    KernelOp,
    ReturnOp,
    TaskletIdOp,
    MramOp,
    WramOp,
    MramReadOp,
    MramWriteOp,
    BarrierOp,
    CriticalOp,
]

Upmem = Dialect("upmem", [*HOST_OPS, *KERNEL_OPS], [SpaceAttr, DpusType, TokenType])
