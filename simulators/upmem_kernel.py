"""Generates a Python function of NumPy calls for an `upmem.kernel`, which runs all lanes at once.

`compile_kernel(kernel, machine)` gives the function and its text; `kernel_source(kernel)` the text
alone, to look at. The text uses one variable a value (`v7`), one mask a region (`m2`), and calls a
`KernelRun` for whatever touches memory or is counted. Loops stay loops; `if` runs each branch
under a mask and merges what they yield.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine, load_machine
from cim_opt.locations import location_of
from cim_opt.simulators import elementwise
from cim_opt.simulators.upmem_aliases import may_stay_view
from cim_opt.simulators.upmem_index import on_indices
from cim_opt.simulators.upmem_lanes import join, split
from cim_opt.simulators.upmem_layout import check_layout, writing_phases
from cim_opt.simulators.upmem_selection import Addressing, Selection, select
from cim_opt.simulators.upmem_site import Site

_OPERATORS = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
    "arith.addf": "+",
    "arith.subf": "-",
    "arith.mulf": "*",
}
"""Operations that NumPy's operators compute as they are, except on i1."""


@dataclass(frozen=True)
class KernelCode:
    """A kernel as a Python function of a KernelRun and the launch's arguments."""

    name: str
    source: str
    function: Callable[..., None]
    tasklets: int
    wram_bytes: int


def compile_kernel(
    kernel: upmem.KernelOp,
    machine: UpmemMachine,
    addressing: Addressing = "pointer",
    selection: Selection | None = None,
    *,
    traced: bool = False,
) -> KernelCode:
    """The kernel as a function. Raises UserError for what does not fit the machine.

    `selection` says what is counted, when it is not what the kernel's instructions are. `traced`
    code counts instructions where they stand among transfers (see upmem_trace.py).
    """
    wram_bytes = check_layout(kernel, machine)
    writer = _Writer(kernel, selection or select(kernel, machine, addressing), traced)
    source = writer.write()
    exec(compile(source, f"<kernel @{kernel.sym_name.data}>", "exec"), writer.names)
    return KernelCode(
        kernel.sym_name.data,
        source,
        writer.names["kernel"],
        kernel.tasklets.value.data,
        wram_bytes,
    )


def kernel_source(kernel: upmem.KernelOp, machine: UpmemMachine | None = None) -> str:
    """The text of the function that simulates a kernel."""
    return compile_kernel(kernel, machine or load_machine("upmem-2560")).source


class _Writer:
    """Writes the text, and collects the objects that it names."""

    def __init__(self, kernel: upmem.KernelOp, selection: Selection, traced: bool):
        self.kernel = kernel
        self.traced = traced
        self.selection = selection
        self.writes = writing_phases(kernel)
        self.names: dict[str, Any] = {
            "join": join,
            "split": split,
            "where": np.where,
        }
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.indent = 0
        self.values: dict[SSAValue, str] = {}
        self.masks = 0
        self.in_critical = False

    def write(self) -> str:
        """The whole text: critical sections first, then the kernel."""
        block = self.kernel.body.block
        parameters = ["run", *(self.new_value(arg) for arg in block.args)]
        self.line(f"def kernel({', '.join(parameters)}):")
        self.indent += 1
        self.line("lanes = run.lanes")
        self.issue(block, "1", "None")
        self.block(block, "None")
        return "\n".join([*self.functions, *self.lines, ""])

    # -- text ----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def new_value(self, value: SSAValue) -> str:
        """A variable for a value."""
        name = f"v{len(self.values)}"
        self.values[value] = name
        return name

    def new_mask(self) -> str:
        self.masks += 1
        return f"m{self.masks}"

    def bind(self, prefix: str, thing: Any) -> str:
        """A name for an object that is not text."""
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = thing
        return name

    def site(self, op: Operation) -> str:
        return self.bind("at", Site.of(op))

    def of(self, *values: SSAValue) -> str:
        """The variables of values, separated by commas."""
        return ", ".join(self.values[value] for value in values)

    def issue(self, block: Block, times: str, mask: str) -> None:
        """Counts the block's instructions."""
        count = self.selection.blocks[block]
        if self.traced:
            count -= sum(self.selection.transfers.get(op, 0) for op in block.ops)
        if count:
            self.line(f"run.issue({count}, {times}, {mask})")

    # -- operations ----------------------------------------------------------------------------

    def block(self, block: Block, mask: str) -> None:
        """Writes the operations of a block, without its terminator's yield."""
        for op in block.ops:
            handler = HANDLERS.get(op.name)
            if handler is not None:
                handler(self, op, mask)
            elif elementwise.is_elementwise(op):
                self.elementwise(op, mask)
            else:
                raise UserError(
                    f"'{op.name}' cannot be in a kernel",
                    "kernels hold upmem, arith, math, scf.for, scf.if, memref.load and store",
                    "lower it first",
                    location_of(op),
                )

    def elementwise(self, op: Operation, mask: str) -> None:
        self.operand_cost(op, mask)
        left = ", ".join(self.new_value(result) for result in op.results)
        operator = _OPERATORS.get(op.name)
        if operator is not None and elementwise.dtype_of(op.operands[0].type) != np.bool_:
            a, b = (self.values[operand] for operand in op.operands)
            self.line(f"{left} = {a} {operator} {b}")
            return
        name = op.name.split(".")[1]
        function = on_indices(op, elementwise.function_of(op))
        self.line(f"{left} = {self.bind(name, function)}({self.of(*op.operands)})")

    def operand_cost(self, op: Operation, mask: str) -> None:
        """Counts an operation whose instructions depend on its operands."""
        by = self.selection.operands.get(op)
        if by is None:
            return
        operands = self.of(*op.operands)
        if by.kind == "mul":
            self.line(f"run.multiply({operands}, {by.bits}, {mask})")
        else:
            self.line(f"run.divide({operands}, {by.bits}, {by.signed}, {by.extra}, {mask})")

    def constant(self, op: Operation, mask: str) -> None:
        value = elementwise.constant_value(op)
        result = op.results[0]
        if np.ndim(value):
            raise UserError(
                "a constant in a kernel is a number", f"got {result.type}", None, location_of(op)
            )
        name = self.new_value(result)
        if isinstance(result.type, IndexType):
            self.line(f"{name} = {int(value)}")
        else:
            self.line(f"{name} = {self.bind('c', value)}  # {value}")

    def loop(self, op: Operation, mask: str) -> None:
        assert isinstance(op, scf.ForOp)
        body = op.body.block
        steps, inner = f"loop{len(self.lines)}", self.new_mask()
        bounds = self.of(op.lb, op.ub, op.step)
        self.line(f"{steps} = run.loop({bounds}, {mask}, {self.site(op)})")
        traced = self.traced and _has_steps(body)
        if not traced:
            self.issue(body, f"{steps}.trips", mask)
        carried = body.args[1:]
        for arg, init in zip(carried, op.iter_args, strict=True):
            self.line(f"{self.new_value(arg)} = {self.values[init]}")
        at_top = isinstance(op.parent_op(), upmem.KernelOp)
        each = f"run.steps({steps})" if at_top else steps
        self.line(f"for {self.new_value(body.args[0])}, {inner} in {each}:")
        self.indent += 1
        self.line("pass")
        if traced:
            self.issue(body, "1", inner)
        self.block(body, inner)
        if carried:
            self.carry(carried, self.yielded(body), mask, inner)
        self.indent -= 1
        for arg, result in zip(carried, op.results, strict=True):
            self.values[result] = self.values[arg]

    def carry(
        self, carried: Sequence[SSAValue], yielded: Sequence[SSAValue], outer: str, inner: str
    ) -> None:
        """What an iteration hands to the next one, on the lanes that ran it."""
        left = self.of(*carried)
        self.line(f"if {inner} is {outer}:")
        self.line(f"    {left} = {self.of(*yielded)}")
        merged = [
            f"where({inner}, {self.values[new]}, {self.values[old]})"
            for old, new in zip(carried, yielded, strict=True)
        ]
        self.line("else:")
        self.line(f"    {left} = {', '.join(merged)}")

    def yielded(self, block: Block) -> Sequence[SSAValue]:
        last = block.last_op
        return last.operands if isinstance(last, scf.YieldOp) else ()

    def branch(self, op: Operation, mask: str) -> None:
        assert isinstance(op, scf.IfOp)
        condition = self.values[op.cond]
        masks = self.new_mask(), self.new_mask()
        self.line(f"{masks[0]}, {masks[1]} = split({condition}, {mask})")
        results = [self.new_value(result) for result in op.results]
        for side, region, held in zip("ab", (op.true_region, op.false_region), masks, strict=True):
            if results:
                self.line(" = ".join(f"{name}{side}" for name in results) + " = None")
            if not region.blocks:
                continue
            self.line(f"if {held} is not False:")
            self.indent += 1
            self.line("pass")
            self.issue(region.block, "1", held)
            self.block(region.block, held)
            for name, value in zip(results, self.yielded(region.block), strict=True):
                self.line(f"{name}{side} = {self.values[value]}")
            self.indent -= 1
        for name in results:
            self.line(f"{name} = join({condition}, {masks[0]}, {masks[1]}, {name}a, {name}b)")

    def critical(self, op: Operation, mask: str) -> None:
        assert isinstance(op, upmem.CriticalOp)
        if self.in_critical:
            raise UserError(
                "a critical section in another one",
                "a tasklet holds one mutex at a time",
                "put it after the other one",
                location_of(op),
            )
        captured = _captured(op)
        name = f"critical{len(self.functions)}"
        names = self.of(*captured)
        inside = "".join(f", {self.values[value]}" for value in captured)
        outer_lines, outer_indent = self.lines, self.indent
        self.lines, self.indent, self.in_critical = [], 1, True
        inner = self.new_mask()
        self.line("lanes = run.lanes")
        self.issue(op.body.block, "1", inner)
        self.block(op.body.block, inner)
        self.functions += [f"def {name}(run, {inner}{inside}):", *self.lines, ""]
        self.lines, self.indent, self.in_critical = outer_lines, outer_indent, False
        group = f"({names},)" if captured else "()"
        mutex = self.values[op.mutex]
        self.line(f"run.critical({mutex}, {mask}, {name}, {group}, {self.site(op)})")

    def load(self, op: Operation, mask: str) -> None:
        assert isinstance(op, memref.LoadOp)
        self.check_wram(op, op.memref)
        array, index = self.of(op.memref), self.of(*op.indices)
        copy = "" if may_stay_view(op) else ".copy()"
        name = self.new_value(op.res)
        self.line(f"{name} = {array}.load(lanes, {index}, {mask}, {self.site(op)}){copy}")

    def store(self, op: Operation, mask: str) -> None:
        assert isinstance(op, memref.StoreOp)
        self.check_wram(op, op.memref)
        array, index, value = self.of(op.memref), self.of(*op.indices), self.of(op.value)
        self.line(f"{array}.store(lanes, {value}, {index}, {mask}, {self.site(op)})")

    def check_wram(self, op: Operation, array: SSAValue) -> None:
        if not isinstance(array, OpResult) or not isinstance(array.op, upmem.WramOp):
            raise UserError(
                f"'{op.name}' on {array.type}",
                "a DPU loads and stores elements of WRAM buffers",
                "move them with upmem.mram_read and upmem.mram_write",
                location_of(op),
            )

    def transfer(self, op: Operation, mask: str) -> None:
        assert isinstance(op, upmem.MramReadOp | upmem.MramWriteOp)
        method = "read" if isinstance(op, upmem.MramReadOp) else "write"
        operands = self.of(op.mram, op.mram_index, op.wram, op.wram_index, op.count)
        first = first_of_run(op)
        own = self.selection.transfers.get(op, 0)
        if self.traced and own:
            self.line(f"run.issue({own}, 1, {mask})")
        self.line(f"run.{method}({operands}, {mask}, {first}, {self.site(op)})")

    def mram(self, op: Operation, mask: str) -> None:
        assert isinstance(op, upmem.MramOp)
        length, dtype = self.array_of(op.result)
        offset = op.offset.value.data
        phases = self.bind("phases", self.writes.get(op.result, frozenset()))
        name = self.new_value(op.result)
        self.line(f"{name} = run.mram({offset}, {length}, {dtype}, {phases})")

    def wram(self, op: Operation, mask: str) -> None:
        assert isinstance(op, upmem.WramOp)
        length, dtype = self.array_of(op.result)
        name = self.new_value(op.result)
        if op.shared is None:
            self.line(f"{name} = run.private({length}, {dtype})")
            return
        phases = self.bind("phases", self.writes.get(op.result, frozenset()))
        self.line(f"{name} = run.shared({length}, {dtype}, {phases})")

    def array_of(self, value: SSAValue) -> tuple[int, str]:
        """Length, and the name of the dtype, of a 1-D memref."""
        attr = value.type
        assert isa(attr, MemRefType)
        dtype = elementwise.dtype_of(attr.element_type)
        self.names[dtype.name] = dtype
        return attr.get_shape()[0], dtype.name

    def tasklet_id(self, op: Operation, mask: str) -> None:
        self.line(f"{self.new_value(op.results[0])} = lanes.tasklet_id")

    def barrier(self, op: Operation, mask: str) -> None:
        self.line("run.barrier()")

    def nothing(self, op: Operation, mask: str) -> None:
        """What the operation around it has written already."""


def _captured(op: upmem.CriticalOp) -> list[SSAValue]:
    """Values from outside that a critical section uses, in the order of their use."""
    found: dict[SSAValue, None] = {}
    for inner in op.body.walk():
        for operand in inner.operands:
            owner = operand.owner
            block = owner if isinstance(owner, Block) else owner.parent_block()
            assert block is not None
            if block is not op.body.block and not op.is_ancestor(block):
                found[operand] = None
    return list(found)


def _has_steps(block: Block) -> bool:
    """Whether something in a block is timed among its instructions."""
    kinds = upmem.MramReadOp | upmem.MramWriteOp | upmem.CriticalOp
    return any(isinstance(op, kinds) for op in block.walk())


def first_of_run(op: Operation) -> bool:
    """For a transfer: False when another one stands before it with no region between."""
    current = op.prev_op
    while current is not None and not current.regions:
        if isinstance(current, upmem.MramReadOp | upmem.MramWriteOp):
            return False
        current = current.prev_op
    return True


HANDLERS: dict[str, Callable[[_Writer, Operation, str], None]] = {
    arith.ConstantOp.name: _Writer.constant,
    scf.ForOp.name: _Writer.loop,
    scf.IfOp.name: _Writer.branch,
    scf.YieldOp.name: _Writer.nothing,
    memref.LoadOp.name: _Writer.load,
    memref.StoreOp.name: _Writer.store,
    upmem.TaskletIdOp.name: _Writer.tasklet_id,
    upmem.MramOp.name: _Writer.mram,
    upmem.WramOp.name: _Writer.wram,
    upmem.MramReadOp.name: _Writer.transfer,
    upmem.MramWriteOp.name: _Writer.transfer,
    upmem.BarrierOp.name: _Writer.barrier,
    upmem.CriticalOp.name: _Writer.critical,
    upmem.ReturnOp.name: _Writer.nothing,
}
"""By operation name, besides the elementwise ones: how it is written."""
