"""Target `upmem-c`: the kernels of a lowered module as C programs of the UPMEM SDK.

Before:

    upmem.kernel @k tasklets 16 (%n: index) {
      %a = upmem.mram 0 : memref<1024xi32, #upmem<space mram>>
      %w = upmem.wram : memref<64xi32, #upmem<space wram>>
      upmem.mram_read %a[%n] to %w[%c0] count %c64 : ...
      ...
    }

After, in a file `k.c` behind `cim_dpu.h`, which has the arithmetic:

    BARRIER_INIT(meet, NR_TASKLETS);
    __host struct { uint32_t n; } k_args;
    static __dma_aligned uint32_t w_w[NR_TASKLETS][64];

    int main(void) {
      const uint32_t tasklet = me();
      mram_read(MRAM(0 + 4 * (k_args.n)), &w_w[tasklet][0], 4 * 64);
      ...
    }

Files stand one behind the other, each under a line `// ----- NAME`. Arrays lie at their offsets
behind DPU_MRAM_HEAP_POINTER; the host pushes, pulls and sets the arguments. An index is 32 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa
from xdsl.utils.target import Target

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.upmem_c_header import header

INDEX_BITS = 32
SEPARATOR = "// ----- "
POOL = 32
"""Mutexes of a pool, which the SDK wants to be a power of two; they are chosen by low bits."""

OPERATORS = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
}
FLOAT_OPERATORS = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
FUNCTIONS = {
    "arith.shli": "shl",
    "arith.shrui": "shru",
    "arith.shrsi": "shrs",
    "arith.divui": "divu",
    "arith.divsi": "divs",
    "arith.remui": "remu",
    "arith.remsi": "rems",
    "arith.floordivsi": "floordivs",
    "arith.ceildivsi": "ceildivs",
    "arith.ceildivui": "ceildivu",
    "arith.minsi": "mins",
    "arith.maxsi": "maxs",
    "arith.minui": "minu",
    "arith.maxui": "maxu",
    "math.absi": "abs",
}
COMPARISONS = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "lt{kind}({0}, {1})",
    "le": "!lt{kind}({1}, {0})",
    "gt": "lt{kind}({1}, {0})",
    "ge": "!lt{kind}({0}, {1})",
}
"""By predicate, without its sign. (C warns of comparing what is unsigned with 0.)"""
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


@dataclass(frozen=True)
class UpmemCTarget(Target):
    """Prints the kernels of a module as C."""

    name = "upmem-c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        for name, text in c_files(module).items():
            output.write(f"{SEPARATOR}{name}\n{text}")


def c_files(module: ModuleOp) -> dict[str, str]:
    """The files of a module's kernels by name: the header, and one for each kernel.

    Raises UserError for a module without kernels, and for what has no translation.
    """
    kernels = [op for op in module.ops if isinstance(op, upmem.KernelOp)]
    if not kernels:
        raise UserError(
            "the module has no upmem.kernel",
            "kernels are what becomes C",
            "lower it first, with -p pattern-to-upmem",
            location_of(module),
        )
    files = {"cim_dpu.h": header()}
    for kernel in kernels:
        _check_name(kernel)
        files[f"{kernel.sym_name.data}.c"] = kernel_to_c(kernel)
    return files


def _check_name(kernel: upmem.KernelOp) -> None:
    """Names go into the C text and name files."""
    name = kernel.sym_name.data
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UserError(
            f"kernel '{name}' has no name in C",
            "C names are of letters, digits and _",
            "rename it",
            location_of(kernel),
        )


def kernel_to_c(kernel: upmem.KernelOp) -> str:
    """The C program of a kernel, for NR_TASKLETS threads as the kernel has tasklets."""
    return _Kernel(kernel).text()


def width_of(attr: Attribute) -> int:
    """Bits of an integer or an index, as the IR has them; 0 for other types."""
    if isinstance(attr, IndexType):
        return INDEX_BITS
    return attr.width.data if isa(attr, IntegerType) else 0


def bits_of(attr: Attribute) -> int:
    """Bits of an integer or an index in C; an i1 is a byte."""
    return max(width_of(attr), 8)


def c_type(attr: Attribute, op: Operation) -> str:
    """The C type of a value."""
    if isinstance(attr, Float32Type):
        return "float"
    if isinstance(attr, Float64Type):
        return "double"
    widths = (1, 8, 16, 32, 64)
    if width_of(attr) in widths:
        return f"uint{bits_of(attr)}_t"
    raise UserError(
        f"'{op.name}' on {attr}",
        "C has integers of 8, 16, 32 and 64 bits, f32 and f64",
        "use one of these types",
        location_of(op),
    )


class _Kernel:
    """Writes one kernel."""

    def __init__(self, kernel: upmem.KernelOp):
        self.kernel = kernel
        self.name = kernel.sym_name.data
        self.names: dict[SSAValue, str] = {}
        self.buffers: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.uses: set[str] = set()
        self.offsets: dict[SSAValue, int] = {}

    def text(self) -> str:
        block = self.kernel.body.block
        fields = [f"{c_type(arg.type, self.kernel)} a{n};" for n, arg in enumerate(block.args)]
        for number, arg in enumerate(block.args):
            self.names[arg] = f"{self.name}_args.a{number}"
        self.block(block)
        parts = [f"/* Kernel @{self.name}: build it with -DNR_TASKLETS={self._tasklets()}. */"]
        parts += ["#include <defs.h>", "#include <mram.h>"]
        parts += [f"#include <{name}.h>" for name in sorted(self.uses)]
        parts += ['#include "cim_dpu.h"', ""]
        parts += ["#define MRAM(at) ((__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + (at))"]
        if "barrier" in self.uses:
            parts.append("BARRIER_INIT(meet, NR_TASKLETS);")
        if "mutex_pool" in self.uses:
            parts.append(f"MUTEX_POOL_INIT(mutexes, {POOL});")
        if fields:
            parts.append(f"__host struct {{ {' '.join(fields)} }} {self.name}_args;")
        body = ["", "int main(void) {", "  const uint32_t tasklet = me();", "  (void)tasklet;"]
        return "\n".join([*parts, *self.buffers, *body, *self.lines, "}", ""])

    def _tasklets(self) -> int:
        return self.kernel.tasklets.value.data

    # -- pieces --------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def value(self, value: SSAValue) -> str:
        """An operand: a name, or a number."""
        if isinstance(value.owner, arith.ConstantOp):
            return self.number(value.owner)
        return self.names[value]

    def number(self, op: arith.ConstantOp) -> str:
        attr = op.value
        if isa(attr, IntegerAttr):
            bits = bits_of(op.result.type)
            number = attr.value.data
            if width_of(op.result.type) == 1:
                number &= 1
            suffix = "ull" if bits == 64 else "u"
            text = f"{number % (1 << bits)}{suffix}"
            return text if bits >= 32 else f"(uint{bits}_t){text}"
        if isa(attr, FloatAttr):
            return self.float_number(attr.value.data, op.result.type)
        raise self.unknown(op)

    def float_number(self, number: float, attr: Attribute) -> str:
        if number != number:
            return '__builtin_nanf("")' if isinstance(attr, Float32Type) else '__builtin_nan("")'
        if number in (float("inf"), float("-inf")):
            return ("-" if number < 0 else "") + "__builtin_inff()"
        return float.hex(number) + ("f" if isinstance(attr, Float32Type) else "")

    def unknown(self, op: Operation) -> UserError:
        return UserError(
            f"'{op.name}' has no translation to C",
            "arith on integers and basic floats, math.absi, memref, scf and upmem have",
            "compute it from those",
            location_of(op),
        )

    def define(self, value: SSAValue, op: Operation, text: str) -> None:
        """A value that is computed once."""
        name = self.names[value] = f"v{len(self.names)}"
        attr = c_type(value.type, op)
        cast = f"({attr})" if attr.startswith("uint") else ""
        self.line(f"const {attr} {name} = {cast}({text});")
        self.line(f"(void){name};")

    def declare(self, value: SSAValue, op: Operation, start: str | None = None) -> str:
        """A value that control flow sets."""
        name = self.names[value] = f"v{len(self.names)}"
        self.line(f"{c_type(value.type, op)} {name}{'' if start is None else f' = {start}'};")
        self.line(f"(void){name};")
        return name

    def place(self, buffer: SSAValue, index: SSAValue) -> str:
        """An element of a WRAM buffer."""
        return f"{self.names[buffer]}[{self.value(index)}]"

    # -- operations ----------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        match op:
            case arith.ConstantOp() | scf.YieldOp():
                return
            case upmem.ReturnOp():
                self.line("return 0;")
            case upmem.TaskletIdOp():
                self.names[op.result] = "tasklet"
            case upmem.MramOp():
                self.offsets[op.result] = op.offset.value.data
            case upmem.WramOp():
                self.buffer(op)
            case upmem.MramReadOp() | upmem.MramWriteOp():
                self.transfer(op)
            case upmem.BarrierOp():
                self.uses.add("barrier")
                self.line("barrier_wait(&meet);")
            case upmem.CriticalOp():
                self.critical(op)
            case memref.LoadOp():
                self.define(op.res, op, self.place(op.memref, op.indices[0]))
            case memref.StoreOp():
                self.line(f"{self.place(op.memref, op.indices[0])} = {self.value(op.value)};")
            case scf.ForOp():
                self.loop(op)
            case scf.IfOp():
                self.branch(op)
            case _:
                self.define(op.results[0], op, self.expression(op))

    def expression(self, op: Operation) -> str:
        args = [self.value(operand) for operand in op.operands]
        if op.name in OPERATORS:
            return self.wrapping(op, args)
        if op.name in FLOAT_OPERATORS:
            return f"{args[0]} {FLOAT_OPERATORS[op.name]} {args[1]}"
        if op.name in FUNCTIONS:
            return self.function(op, args)
        match op:
            case arith.CmpiOp():
                return self.comparison(op, args)
            case arith.SelectOp():
                return f"{args[0]} ? {args[1]} : {args[2]}"
            case arith.ExtSIOp():
                return self.sign_extended(op.operands[0], args[0])
            case arith.ExtUIOp() | arith.TruncIOp():
                return self.cut(op.results[0].type, args[0])
            case arith.IndexCastOp():
                return self.sign_extended(op.operands[0], args[0])
            case arith.NegfOp():
                return f"-{args[0]}"
            case _:
                raise self.unknown(op)

    def function(self, op: Operation, args: list[str]) -> str:
        """A call of the header; an i1 with a sign is 0 or -1, as a byte."""
        result = op.results[0].type
        if width_of(result) == 1 and op.name.endswith("si"):
            args = [f"(uint8_t)-{arg}" for arg in args]
        return self.cut(result, f"{FUNCTIONS[op.name]}{bits_of(result)}({', '.join(args)})")

    def wrapping(self, op: Operation, args: list[str]) -> str:
        """Narrow operands would be promoted to int, whose overflow C leaves open."""
        if bits_of(op.results[0].type) < 32:
            args = [f"(uint32_t){arg}" for arg in args]
        return self.cut(op.results[0].type, f"{args[0]} {OPERATORS[op.name]} {args[1]}")

    def cut(self, attr: Attribute, text: str) -> str:
        """An i1 keeps its lowest bit."""
        return f"({text}) & 1u" if width_of(attr) == 1 else text

    def sign_extended(self, value: SSAValue, text: str) -> str:
        if width_of(value.type) == 1:
            return f"0u - (uint64_t){text}"
        return f"(int64_t)s{bits_of(value.type)}({text})"

    def comparison(self, op: arith.CmpiOp, args: list[str]) -> str:
        predicate = PREDICATES[op.predicate.value.data]
        if predicate in COMPARISONS:
            return COMPARISONS[predicate].format(*args)
        compared = op.operands[0].type
        if width_of(compared) == 1 and predicate[0] == "s":
            args = [f"(uint8_t)-{arg}" for arg in args]
        kind = f"{predicate[0]}{bits_of(compared)}"
        return COMPARISONS[predicate[1:]].format(*args, kind=kind)

    # -- memory --------------------------------------------------------------------------------

    def buffer(self, op: upmem.WramOp) -> None:
        attr = op.result.type
        assert isa(attr, MemRefType)
        name = f"w{len(self.buffers)}"
        element = c_type(attr.element_type, op)
        # Each tasklet's row starts at a multiple of 8 bytes.
        granule = 8 // upmem.element_bytes(attr.element_type)
        length = -(-attr.get_shape()[0] // granule) * granule
        shared = op.shared is not None
        rows = "" if shared else "[NR_TASKLETS]"
        self.buffers.append(f"static __dma_aligned {element} {name}{rows}[{length}];")
        self.names[op.result] = name if shared else f"{name}[tasklet]"

    def transfer(self, op: upmem.MramReadOp | upmem.MramWriteOp) -> None:
        attr = op.mram.type
        assert isa(attr, MemRefType)
        size = upmem.element_bytes(attr.element_type)
        at = f"MRAM({self.offsets[op.mram]}u + {size}u * {self.value(op.mram_index)})"
        buffer = f"&{self.place(op.wram, op.wram_index)}"
        moved = f"{size}u * {self.value(op.count)}"
        if isinstance(op, upmem.MramReadOp):
            self.line(f"mram_read({at}, {buffer}, {moved});")
        else:
            self.line(f"mram_write({buffer}, {at}, {moved});")

    # -- control flow --------------------------------------------------------------------------

    def critical(self, op: upmem.CriticalOp) -> None:
        self.uses.add("mutex_pool")
        self.line(f"mutex_pool_lock(&mutexes, {self.value(op.mutex)});")
        self.nested(op.body.block, "{", "}")
        self.line(f"mutex_pool_unlock(&mutexes, {self.value(op.mutex)});")

    def nested(self, block: Block, before: str, after: str) -> None:
        self.line(before)
        self.depth += 1
        self.block(block)
        self.depth -= 1
        self.line(after)

    def loop(self, op: scf.ForOp) -> None:
        carried = [
            self.declare(result, op, self.value(start))
            for result, start in zip(op.results, op.iter_args, strict=True)
        ]
        body = op.body.block
        index = self.names[body.args[0]] = f"v{len(self.names)}"
        for arg, name in zip(body.args[1:], carried, strict=True):
            self.names[arg] = name
        low, high, step = (self.value(value) for value in (op.lb, op.ub, op.step))
        self.line(
            f"for (uint32_t {index} = {low}; s32({index}) < s32({high}); {index} += {step}) {{"
        )
        self.depth += 1
        self.block(body)
        self.settle(body, carried, op)
        self.depth -= 1
        self.line("}")

    def branch(self, op: scf.IfOp) -> None:
        results = [self.declare(result, op) for result in op.results]
        for region, before in zip(
            op.regions, (f"if ({self.value(op.cond)}) {{", "else {"), strict=True
        ):
            if not region.blocks:
                continue
            self.line(before)
            self.depth += 1
            self.block(region.block)
            self.settle(region.block, results, op)
            self.depth -= 1
            self.line("}")

    def settle(self, block: Block, names: list[str], op: Operation) -> None:
        """What a block yields goes to its variables; all are read before one is written."""
        assert block.last_op is not None
        yielded = list(block.last_op.operands)
        texts = [self.value(value) for value in yielded]
        moves = [(n, t, v) for n, t, v in zip(names, texts, yielded, strict=True) if n != t]
        if len(moves) > 1:
            for number, (_, text, value) in enumerate(moves):
                self.line(f"const {c_type(value.type, op)} next{number} = {text};")
            moves = [(name, f"next{n}", value) for n, (name, _, value) in enumerate(moves)]
        for name, text, _ in moves:
            self.line(f"{name} = {text};")
