"""What the hand-written baselines share: the host's part of a program, and pieces of kernels.

A baseline is built for a number of DPUs and for arrays that divide among them, so that all sizes
are constants of the program, as they are when a run-time library hands them to its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from cim_opt.dialects import upmem
from cim_opt.dialects.pattern import ReduceOp, YieldOp, vector_type
from cim_opt.dialects.upmem_machine import machine_attribute
from cim_opt.hardware.upmem import load_machine
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.host_vectors import empty
from cim_opt.lowering.upmem_kernel import KernelBuilder, dma_granule

Array = npt.NDArray[Any]
ALIGN = 8
Binary = Callable[[SSAValue, SSAValue], Any]


def integer(bits: int) -> IntegerType:
    """The type of an integer."""
    return IntegerType(bits)


def binary(emit: Emitter, op: Binary, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """The result of an `arith` operation on two values."""
    return emit.insert(op(lhs, rhs)).results[0]


def number(emit: Emitter, value: int, bits: int = 32) -> SSAValue:
    """A constant of an element type."""
    return emit.constant(IntegerAttr(value, integer(bits)))


def to_index(emit: Emitter, value: SSAValue) -> SSAValue:
    """An element as an index."""
    return emit.insert(arith.IndexCastOp(value, IndexType())).result


def widened(emit: Emitter, value: SSAValue, bits: int = 32) -> SSAValue:
    """A signed element of at most `bits` bits in so many bits."""
    if value.type == integer(bits):
        return value
    return emit.insert(arith.ExtSIOp(value, integer(bits))).result


class Host:
    """The program's host function: takes `arrays`, allocates `dpus` DPUs, frees them at the end."""

    def __init__(self, dpus: int, arrays: Sequence[Array]):
        self.dpus = dpus
        self.lengths = [len(array) for array in arrays]
        self.types = [integer(8 * array.dtype.itemsize) for array in arrays]
        types = [
            TensorType(element, [length])
            for element, length in zip(self.types, self.lengths, strict=True)
        ]
        self.block = Block(arg_types=types)
        self.emit = Emitter(self.block)
        self.args = self.block.args
        self.set = self.emit.insert(upmem.AllocOp(self.emit.value(dpus))).dpus
        self.kernels: list[upmem.KernelOp] = []

    def kernel(self, name: str, tasklets: int) -> KernelBuilder:
        """A kernel under construction."""
        return KernelBuilder(name, tasklets, 2048)

    def launch(self, kernel: KernelBuilder) -> None:
        """Launches a finished kernel and waits for it."""
        op = upmem.LaunchOp(kernel.name, self.set, kernel.host_args)
        self.emit.insert(upmem.WaitOp(self.emit.insert(op).token))
        if all(known.sym_name.data != kernel.name for known in self.kernels):
            self.kernels.append(kernel.finish())

    def push(self, value: SSAValue, offset: int, each: int, more: int = 0) -> None:
        """`each` elements to each DPU, and `more` that the next DPU has too."""
        emit = self.emit
        count = -(-(each + more) // _granule(value)) * _granule(value)
        zero, amount, stride = (emit.value(n) for n in (0, count, each))
        emit.insert(upmem.PushOp(value, zero, self.set, offset, amount, stride))

    def broadcast(self, value: SSAValue, offset: int) -> None:
        """The whole vector to each DPU."""
        self.emit.insert(upmem.BroadcastOp(value, self.set, offset))

    def pull(self, element: Attribute, offset: int, each: int, serial: bool = False) -> SSAValue:
        """`each` elements of each DPU, one DPU behind the other."""
        emit = self.emit
        dest = empty(emit, element, each * self.dpus)
        op = upmem.PullOp(self.set, offset, emit.value(each), dest, emit.value(0))
        if serial:
            op.properties["serial"] = UnitAttr()
        return emit.insert(op).result

    def total(self, values: SSAValue, operation: Binary, start: int) -> SSAValue:
        """A vector folded by an operation."""
        element = integer(8 * upmem.element_bytes(vector_type(values).element_type))
        body = Block(arg_types=[element, element])
        folded = operation(body.args[0], body.args[1])
        body.add_ops([folded, YieldOp(folded)])
        init = self.emit.constant(IntegerAttr(start, element))
        return self.emit.insert(ReduceOp([values], [init], [], Region(body))).results[0]

    def sums(self, tables: SSAValue, bins: int, bits: int = 32) -> SSAValue:
        """The sum of all DPUs' tables of `bins` elements."""
        element = integer(bits)
        block = Block(arg_types=[element, element])
        total = arith.AddiOp(block.args[0], block.args[1])
        block.add_ops([total, upmem.YieldOp(total)])
        zeros = self.emit.constant(dense(np.zeros(bins, np.dtype(f"int{bits}"))))
        op = upmem.MergeReduceOp([tables], [zeros], [bins], Region(block))
        return self.emit.insert(op).results[0]

    def module(self, *results: SSAValue) -> ModuleOp:
        """The finished program."""
        self.emit.insert(upmem.FreeOp(self.set))
        self.emit.insert(func.ReturnOp(*results))
        types = [arg.type for arg in self.block.args], [value.type for value in results]
        main = func.FuncOp("main", types, Region(self.block))
        module = ModuleOp([*self.kernels, main])
        machine = machine_attribute(load_machine("upmem-2560"))
        module.attributes[upmem.MACHINE_ATTRIBUTE] = machine
        module.verify()
        return module


def _granule(value: SSAValue) -> int:
    return dma_granule(vector_type(value).element_type)


def dense(values: Array) -> DenseIntOrFPElementsAttr:
    """A constant vector."""
    attr = TensorType(integer(8 * values.dtype.itemsize), [len(values)])
    return DenseIntOrFPElementsAttr.from_list(attr, [int(value) for value in values])


def padded(count: int, bits: int) -> int:
    """Bytes of an array in MRAM, with room for a transfer that is rounded up."""
    return -(-count * bits // 8 // ALIGN) * ALIGN + 2 * ALIGN


def merge_scalars(kernel: KernelBuilder, value: SSAValue, array: SSAValue, combine: Binary) -> None:
    """One value of each tasklet into the first element of `array`, by tasklet 0 after a barrier."""
    emit = kernel.emit
    slots = kernel.wram(value.type, kernel.tasklets, shared=True)
    emit.store(value, slots, kernel.tasklet)
    kernel.barrier()

    def merge() -> Sequence[SSAValue]:
        first = emit.load(slots, 0)
        with emit.loop(1, kernel.tasklets, 1, [first]) as loop:
            loop.next = [binary(emit, combine, loop.carried[0], emit.load(slots, loop.index))]
        step = dma_granule(value.type)
        buffer = kernel.wram(value.type, step)
        emit.store(loop.results[0], buffer, 0)
        kernel.write(buffer, 0, array, 0, step, step)
        return ()

    emit.branch(emit.compare("eq", kernel.tasklet, 0), merge)


def cyclic(kernel: KernelBuilder, count: Index, block: int) -> Any:
    """The blocks of a tasklet that takes every so many tasklets' one: a loop over their starts."""
    emit = kernel.emit
    start = emit.mul(kernel.tasklet, block)
    return emit.loop(start, count, kernel.tasklets * block)


I64 = i64
