"""`convert-pattern-to-upmem`: patterns become UPMEM host code and kernels.

Before:

    func.func @sum(%a: tensor<?xi32>) -> i32 {
      %zero = arith.constant 0 : i32
      %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
        %s = arith.addi %acc, %x : i32
        pattern.yield %s : i32
      }
      func.return %r : i32
    }

After, shortened:

    module attributes {upmem.machine = "upmem-2560"} {
      upmem.kernel @sum_0 tasklets 16 (%owners: index, %chunk: index, %active: index) {
        scf.for ... {                       // this tasklet's blocks
          upmem.mram_read ...
          scf.for ... iter_args(%acc) ...   // the accumulator stays in a register
        }
        memref.store ...; upmem.barrier     // tasklet 0 merges and writes 8 bytes to MRAM
      }
      func.func @sum(%a: tensor<?xi32>) -> i32 {
        %rest = upmem.host_thread ...       // what does not divide into granules
        %set = upmem.alloc %used
        scf.for ... { upmem.push; upmem.launch @sum_0; upmem.wait; upmem.pull }
        %r = pattern.reduce ...             // the DPUs' partial results, then %rest
      }
    }

Patterns that stay on the host (leftovers, merges of partial results) are `pattern` operations in
the lowered function.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from cim_opt.dialects.pattern import PatternOp
from cim_opt.dialects.upmem import MACHINE_ATTRIBUTE, KernelOp
from cim_opt.dialects.upmem_machine import machine_attribute
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine, load_machine
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter
from cim_opt.lowering.function_lowering import (
    FunctionLowering,
    check_patterns_only,
    uses_any,
)
from cim_opt.lowering.upmem_host import Options, SegmentLowering
from cim_opt.lowering.upmem_launch import Merge, plan_launch
from cim_opt.lowering.upmem_segment import Segment
from cim_opt.lowering.upmem_widths import check_widths


@dataclass(frozen=True)
class ConvertPatternToUpmemPass(ModulePass):
    """Lowers `pattern` operations to the `upmem` dialect.

    Options: `machine` a name or a TOML file; `tasklets`, `block` (bytes of a WRAM block) and `dpus`
    fix what the cost formulas choose otherwise. `merge` says who puts the parts of scans and
    filters together. `machine`: DPUs scan in a second launch, from where they are told to start,
    and a scatter-gather transfer puts what filters keep in its place. `host`: a pass of its own.
    """

    name = "convert-pattern-to-upmem"

    machine: str = "upmem-2560"
    tasklets: int | None = None
    block: int | None = None
    dpus: int | None = None
    merge: Merge = "machine"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = load_machine(self.machine)
        options = checked_options(machine, self.tasklets, self.block, self.dpus, self.merge)
        kernels: list[KernelOp] = []
        taken = _symbols(op)
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            check_patterns_only(function, "UPMEM")
            check_widths(function)
            kernels += UpmemFunctionLowering(function, machine, options, taken).lower()
        if op.body.block.first_op is None:
            op.body.block.add_ops(kernels)
        else:
            op.body.block.insert_ops_before(kernels, op.body.block.first_op)
        op.attributes[MACHINE_ATTRIBUTE] = machine_attribute(machine)


def checked_options(
    machine: UpmemMachine,
    tasklets: int | None,
    block: int | None,
    dpus: int | None,
    merge: Merge = "machine",
) -> Options:
    """The user's choices, checked against the machine. Raises UserError."""
    if tasklets is not None:
        machine.wram_heap(tasklets)
    if block is not None and not (0 < block <= machine.dma_max_bytes and block % 8 == 0):
        raise UserError(
            f"block of {block} bytes",
            f"a transfer moves {machine.dma_min_bytes} to {machine.dma_max_bytes} bytes, "
            "a multiple of 8",
            "choose such a size",
        )
    if dpus is not None and not 0 < dpus <= machine.dpus:
        raise UserError(
            f"{dpus} DPUs on {machine.name}",
            f"it has 1 to {machine.dpus}",
            "choose a number in that range",
        )
    return Options(tasklets, block, dpus, merge)


def _symbols(module: ModuleOp) -> set[str]:
    """The names that are taken in the module."""
    names = [op.get_attr_or_prop("sym_name") for op in module.body.block.ops]
    return {name.data for name in names if isinstance(name, StringAttr)}


class UpmemFunctionLowering(FunctionLowering):
    """Rebuilds a function's body: host operations are moved over, segments are lowered.

    `taken` are the names of the module, to which it adds those of its kernels.
    """

    def __init__(self, function: FuncOp, machine: UpmemMachine, options: Options, taken: set[str]):
        super().__init__(function)
        self._taken = taken
        self.machine = machine
        self.options = options
        self.kernels: list[KernelOp] = []

    def lower(self) -> list[KernelOp]:
        """Lowers the function in place; returns the kernels it launches."""
        self.rebuild()
        return self.kernels

    def lower_block(self, block: Block, emit: Emitter) -> None:
        segment = Segment()
        for op in block.ops:
            if isinstance(op, PatternOp):
                if not segment.try_add(op):
                    self._lower_segments(segment, emit)
                    segment = Segment()
                    segment.try_add(op)
                continue
            results = set[SSAValue](result for member in segment.ops for result in member.results)
            if uses_any(op, results) or op.has_trait(IsTerminator):
                self._lower_segments(segment, emit)
                segment = Segment()
            self.copy(op, emit)
        self._lower_segments(segment, emit)

    def _lower_segments(self, segment: Segment, emit: Emitter) -> None:
        """Lowers a segment; one that does not fit the machine in one piece, in several."""
        ops = list(segment.ops)
        while ops:
            part = Segment()
            while ops and part.try_add(ops[0]):
                ops.pop(0)
            while len(part.ops) > 1 and not self._fits(part):
                ops.insert(0, part.drop_last())
            self._lower_segment(part, emit)

    def _lower_segment(self, segment: Segment, emit: Emitter) -> None:
        lowering = SegmentLowering(
            segment, emit, self.values, self.machine, self.options, self._kernel_names()
        )
        try:
            kernels = lowering.lower()
        except UserError as error:
            error.location = error.location or location_of(segment.ops[0])
            raise
        self._taken.update(kernel.sym_name.data for kernel in kernels)
        self.kernels += kernels

    def _kernel_names(self) -> Iterator[str]:
        """Names for the next kernels that the module does not have."""
        name = self.function.sym_name.data
        for number in itertools.count(len(self.kernels)):
            if f"{name}_{number}" not in self._taken:
                yield f"{name}_{number}"

    def _fits(self, segment: Segment) -> bool:
        try:
            plan_launch(segment, self.machine, None, self.options.tasklets, self.options.block)
        except UserError:
            return False
        return True
