"""Target `simdram-bbop`: a lowered function as the stream of bbops that the host issues.

Before:

    scf.for %i = %0 to %n step %64 iter_args(%dest = %empty) {
      %x = simdram.transpose %a[%i] stride 1 count %lanes row 0
      %y = simdram.bbop add(%x, %x) row 32
      %r = simdram.read %y into %dest[%i] stride 1
      scf.yield %r
    }

After, for a vector of 100 elements:

    loop i 0 100 64 {
      trsp_init D0 a[i] stride 1 N min((100 - i), 64) n 32
      add D32 D0 D0 N min((100 - i), 64) n 32
      read v0[i] stride 1 D32 N min((100 - i), 64) n 32
    }

Objects are named by their first D row, so `simdram-allocate-rows` comes before; `~D0` is one that
is stored complemented. What the host does
between bbops, as folding partial results, stands as `host` with the operation's name. The grammar
is that of `tools/bbop_stream.py`, which reads it again; `cim-bbop check` executes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i1,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa
from xdsl.utils.target import Target

from cim_opt.dialects.simdram import (
    CONSTANT_SHIFTS,
    EXTENSIONS,
    BbopOp,
    FillOp,
    MulScalarOp,
    Opcode,
    ReadOp,
    TransposeOp,
    VecType,
    element_width,
    is_complemented,
    width_of,
)
from cim_opt.dialects.simdram_library import chosen_library
from cim_opt.dialects.simdram_machine import machine_of
from cim_opt.errors import UserError
from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.locations import location_of
from cim_opt.lowering.bbop_expressions import Expr, joined
from cim_opt.lowering.bbop_values import (
    INDEX_OPS,
    WRAPPING,
    ConstantObject,
    HostStep,
    HostVector,
    Maker,
    PlacedObject,
    StreamValue,
    has_bbops,
    plain_name,
    scratch_of,
    spelled,
    static_length,
    written_in_place,
)

VERSION = 1
RESIZING = {*EXTENSIONS, Opcode.TRUNC}


@dataclass(frozen=True)
class BbopTarget(Target):
    """Prints one function as a bbop stream.

    `lengths` are those of the function's vectors of unknown length, in order; `function` is its
    name, needed when there are several; `library` is the one that the rows were allocated for,
    by default what the module says.
    """

    name = "simdram-bbop"

    lengths: tuple[int, ...] = ()
    function: str | None = None
    library: str | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        machine = machine_of(module)
        function = _function(module, self.function)
        library = chosen_library(module, self.library)
        output.write(bbop_stream(function, machine, self.lengths, library))


def bbop_stream(
    function: FuncOp, machine: SimdramMachine, lengths: tuple[int, ...], library: str
) -> str:
    """The stream of a lowered function. Raises UserError for what a stream cannot say."""
    stream = _Stream(function)
    stream.head(machine, library)
    stream.inputs(lengths)
    stream.block(function.body.block)
    return "\n".join(stream.lines) + "\n"


def _function(module: ModuleOp, name: str | None) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    chosen = [op for op in functions if name in (None, op.sym_name.data)]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(op.sym_name.data for op in functions) or "none"
    what = f"no function '{name}'" if name is not None else f"{len(functions)} functions"
    raise UserError(
        what, f"a stream is of one function; the module has {names}", "name one with function="
    )


class _Stream:
    """Writes lines; keeps what each value is called."""

    def __init__(self, function: FuncOp):
        self.function = function
        self.lines: list[str] = []
        self.values: dict[SSAValue, StreamValue] = {}
        self.names: set[str] = set()
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, wanted: str) -> str:
        """A name that nothing has yet; digits tell equal ones apart."""
        name, number = wanted, 0
        while name in self.names:
            name, number = f"{wanted}{number}", number + 1
        self.names.add(name)
        return name

    # -- head ------------------------------------------------------------------------------------

    def head(self, machine: SimdramMachine, library: str) -> None:
        self.line(f"bbop {VERSION}")
        sizes = f"columns {machine.columns} subarrays {machine.subarrays} rows {machine.data_rows}"
        self.line(f"machine {sizes}")
        self.line(f"library {library}")
        self.line(f"function {self.function.sym_name.data}")

    def inputs(self, lengths: tuple[int, ...]) -> None:
        arguments = self.function.body.block.args
        unknown = [arg for arg in arguments if static_length(arg) == DYNAMIC_INDEX]
        if len(unknown) != len(lengths) or any(length < 0 for length in lengths):
            raise UserError(
                f"{len(lengths)} lengths for '{self.function.sym_name.data}': {list(lengths)}",
                f"{len(unknown)} of its arguments have vectors of unknown length",
                "give one length, 0 or more, for each: -t 'simdram-bbop{lengths=...}'",
                location_of(self.function),
            )
        given = dict(zip(unknown, lengths, strict=True))
        for arg in arguments:
            name = self.fresh(plain_name(arg.name_hint) or f"arg{arg.index}")
            if isa(arg.type, TensorType):
                length = given.get(arg, static_length(arg))
                self.values[arg] = HostVector(name, length, arg.type.element_type)
                self.line(f"input {name} {length} {arg.type.element_type}")
            else:
                self.values[arg] = name
                self.line(f"input {name} {arg.type}")

    # -- operations ------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        match op:
            case TransposeOp():
                self.transpose(op)
            case FillOp():
                self.fill(op)
            case BbopOp():
                self.bbop(op)
            case MulScalarOp():
                self.mul_scalar(op)
            case ReadOp():
                self.read(op)
            case scf.ForOp() if has_bbops(op):
                self.loop(op)
            case scf.YieldOp():
                pass
            case ReturnOp():
                self.outputs(op)
            case _:
                self.on_host(op)

    def made(self, op: Maker, lanes: Expr) -> str:
        """The row of an operation's result; the object is known from now on."""
        if op.row is None:
            raise UserError(
                f"'{op.name}' names no D row",
                "a stream calls objects by their rows",
                "run simdram-allocate-rows first",
                location_of(op),
            )
        width, complemented = width_of(op.result), is_complemented(op.result)
        made = PlacedObject(op.row.value.data, width, lanes, complemented)
        self.values[op.result] = made
        return str(made)

    def object(self, value: SSAValue) -> PlacedObject | ConstantObject:
        found = self.values[value]
        assert isinstance(found, PlacedObject | ConstantObject)
        return found

    def expression(self, value: SSAValue) -> Expr:
        """A scalar of the host."""
        found = self.values[value]
        if isinstance(found, HostStep):
            return found.name
        assert isinstance(found, int | str)
        return found

    def vector_name(self, value: SSAValue) -> str:
        found = self.values[value]
        assert isinstance(found, HostVector | HostStep)
        return found.name

    def transpose(self, op: TransposeOp) -> None:
        lanes = self.expression(op.count)
        source = f"{self.vector_name(op.source)}[{self.expression(op.start)}]"
        stride = self.expression(op.stride)
        row = self.made(op, lanes)
        width = width_of(op.result)
        self.line(f"trsp_init {row} {source} stride {stride} N {lanes} n {width}")

    def fill(self, op: FillOp) -> None:
        lanes = self.expression(op.count)
        if "constant" in op.properties:
            scalar, width = self.expression(op.scalar), width_of(op.result)
            complemented = is_complemented(op.result)
            self.values[op.result] = ConstantObject(scalar, width, lanes, complemented)
            return
        row = self.made(op, lanes)
        self.line(f"fill {row} {self.expression(op.scalar)} N {lanes} n {width_of(op.result)}")

    def bbop(self, op: BbopOp) -> None:
        args = [self.object(value) for value in op.args]
        lanes = args[-1].lanes
        opcode = op.opcode.data
        if opcode is Opcode.SELECT:
            # As published: the objects to choose from, then the bit that chooses.
            args = [*args[1:], args[0]]
        width = width_of(op.args[-1])
        row = self.made(op, lanes)
        operands = " ".join(map(str, args))
        mnemonic = "if_else" if opcode is Opcode.SELECT else str(opcode)
        text = f"{mnemonic} {row} {operands} N {lanes} n {width}"
        if opcode in RESIZING:
            text += f" to {width_of(op.result)}"
        if opcode in CONSTANT_SHIFTS and op.amount is not None:
            text += f" by {op.amount.value.data}"
        self.line(text + scratch_of(op))

    def mul_scalar(self, op: MulScalarOp) -> None:
        arg = self.object(op.arg)
        scalar = self.expression(op.scalar)
        row = self.made(op, arg.lanes)
        width = width_of(op.result)
        self.line(f"mul_scalar {row} {arg} {scalar} N {arg.lanes} n {width}{scratch_of(op)}")

    def read(self, op: ReadOp) -> None:
        found = self.object(op.vec)
        dest = self.writable(op.dest)
        place = f"{dest.name}[{self.expression(op.position)}]"
        stride = self.expression(op.stride)
        self.line(f"read {place} stride {stride} {found} N {found.lanes} n {found.width}")
        self.values[op.result] = dest

    def writable(self, value: SSAValue) -> HostVector | HostStep:
        """A vector that is written in place; a copy where others still need it as it is."""
        found = self.values[value]
        assert isinstance(found, HostVector | HostStep)
        uses = [use for use in value.uses if not isinstance(use.operation, tensor.DimOp)]
        if isinstance(found, HostStep) or (found.own and len(uses) == 1):
            return found
        copy = HostVector(self.fresh("v"), found.length, found.element, True)
        self.line(f"vector {copy.name} {copy.length} {copy.element} of {found.name}")
        return copy

    # -- loops -----------------------------------------------------------------------------------

    def loop(self, op: scf.ForOp) -> None:
        body = op.body.block
        for value, inner, outer in zip(op.iter_args, body.args[1:], op.results, strict=True):
            self.values[inner] = self.values[outer] = self.carried(op, value, inner)
        bounds = [str(self.expression(value)) for value in (op.lb, op.ub, op.step)]
        name = self.fresh(plain_name(body.args[0].name_hint) or "i")
        self.values[body.args[0]] = name
        self.line(f"loop {name} {' '.join(bounds)} {{")
        self.depth += 1
        self.block(body)
        self.depth -= 1
        self.line("}")
        self.check_yield(op)

    def carried(self, loop: scf.ForOp, value: SSAValue, inner: BlockArgument) -> StreamValue:
        if isinstance(value.type, VecType):
            return self.values[value]
        last = loop.body.block.last_op
        assert last is not None
        if isinstance(self.values[value], HostVector) and written_in_place(
            last.operands[inner.index - 1], inner
        ):
            return self.writable(value)
        host = HostStep(self.fresh("h"))
        self.line(f"host {host.name} {inner.type} = carried by a loop")
        return host

    def check_yield(self, loop: scf.ForOp) -> None:
        last = loop.body.block.last_op
        assert last is not None
        for value, inner in zip(last.operands, loop.body.block.args[1:], strict=True):
            here, there = self.values[value], self.values[inner]
            if (
                isinstance(here, PlacedObject)
                and isinstance(there, PlacedObject)
                and here.row != there.row
            ):
                raise UserError(
                    f"'{loop.name}' carries an object from rows {here.row} on to {there.row} on",
                    "an object that a loop carries has one place",
                    "run simdram-allocate-rows first",
                    location_of(loop),
                )

    # -- the host --------------------------------------------------------------------------------

    def on_host(self, op: Operation) -> None:
        """Index arithmetic and room for vectors are part of the stream; the rest is a remark."""
        match op:
            case arith.ConstantOp():
                self.constant(op)
            case tensor.DimOp() if isinstance(self.values[op.source], HostVector):
                self.values[op.result] = self.length(op.source)
            case tensor.EmptyOp():
                self.empty(op)
            case tensor.CastOp():
                self.values[op.results[0]] = self.values[op.operands[0]]
            case tensor.ExtractOp() if isinstance(self.values[op.tensor], HostVector):
                self.extract(op)
            case _ if type(op) in INDEX_OPS and isinstance(op.results[0].type, IndexType):
                left, right = (self.expression(value) for value in op.operands)
                self.values[op.results[0]] = joined(INDEX_OPS[type(op)], left, right)
            case _ if self.is_scalar(op):
                self.scalar(op)
            case _:
                self.host_step(op)

    def is_scalar(self, op: Operation) -> bool:
        """True for integer arithmetic that wraps to the width of its result, whatever the sign."""
        known = all(isinstance(self.values[value], int | str) for value in op.operands)
        return known and (
            type(op) in WRAPPING or (isinstance(op, arith.ExtSIOp) and op.input.type != i1)
        )

    def scalar(self, op: Operation) -> None:
        operands = [self.expression(value) for value in op.operands]
        symbol = INDEX_OPS.get(type(op), "")
        text = joined(symbol, *operands) if len(operands) == 2 else operands[0]
        if isinstance(op, arith.ExtUIOp):
            # Scalars are signed numbers; this one is read without its sign.
            text = joined("%", text, 1 << element_width(op.input.type))
        name = self.fresh("s")
        self.line(f"scalar {name} {op.results[0].type} = {text}")
        self.values[op.results[0]] = name

    def length(self, value: SSAValue) -> Expr:
        found = self.values[value]
        assert isinstance(found, HostVector)
        return found.length

    def constant(self, op: arith.ConstantOp) -> None:
        if isinstance(op.value, DenseIntOrFPElementsAttr):
            numbers = [value for value in op.value.get_values() if isinstance(value, int)]
            element = op.value.get_element_type()
            vector = HostVector(self.fresh("c"), len(numbers), element)
            self.values[op.result] = vector
            self.line(f"constant {vector.name} {element} {' '.join(map(str, numbers))}")
        elif isa(op.value, IntegerAttr):
            self.values[op.result] = op.value.value.data
        else:
            self.host_step(op)

    def empty(self, op: tensor.EmptyOp) -> None:
        attr = op.tensor.type
        assert isa(attr, TensorType)
        length = self.expression(op.dynamic_sizes[0]) if op.dynamic_sizes else attr.get_shape()[0]
        vector = HostVector(self.fresh("v"), length, attr.element_type, True)
        self.values[op.tensor] = vector
        self.line(f"vector {vector.name} {length} {attr.element_type}")

    def extract(self, op: tensor.ExtractOp) -> None:
        name = self.fresh("s")
        place = f"{self.vector_name(op.tensor)}[{self.expression(op.indices[0])}]"
        self.line(f"scalar {name} {op.result.type} = {place}")
        self.values[op.result] = name

    def host_step(self, op: Operation) -> None:
        if has_bbops(op):
            raise UserError(
                f"'{op.name}' around bbops",
                "a stream has loops with bounds, and no other control flow",
                "keep bbops out of it",
                location_of(op),
            )
        found = [self.values[value] for value in op.operands]
        operands = [value.name for value in found if isinstance(value, HostVector | HostStep)]
        for result in op.results:
            host = HostStep(self.fresh("h"))
            self.values[result] = host
            # Nobody reads what a step is called; one line says where to look.
            of = f" of {', '.join(operands)}" if operands else ""
            self.line(f"host {host.name} {spelled(result.type)} = {op.name}{of}")

    def outputs(self, op: ReturnOp) -> None:
        for number, value in enumerate(op.operands):
            found = self.values[value]
            text = found.name if isinstance(found, HostVector | HostStep) else str(found)
            self.line(f"output {number} {text}")
