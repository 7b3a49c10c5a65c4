"""Builds an `upmem.kernel`: its arguments, MRAM arrays, WRAM buffers, tables and transfers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    TensorType,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.upmem import (
    BarrierOp,
    KernelOp,
    MramOp,
    MramReadOp,
    MramWriteOp,
    ReturnOp,
    TaskletIdOp,
    WramOp,
    element_bytes,
)
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.upmem_body import BodyInliner, View
from cim_opt.mapping.upmem_arrangement import granule, round_up

TableSource = SSAValue | DenseIntOrFPElementsAttr
"""A tensor that every DPU holds: a host value, or a constant in an element function."""


def element_of(memref: SSAValue) -> Attribute:
    """Element type of a memref."""
    assert isa(memref.type, MemRefType)
    return memref.type.element_type


def dma_granule(attr: Attribute) -> int:
    """Elements of this type in 8 bytes."""
    return granule([element_bytes(attr)])


class KernelBuilder:
    """One kernel under construction.

    `host_args` are the host values that its arguments stand for, in their order; `tables` maps
    tensors that every DPU holds to their MRAM offset.
    """

    def __init__(self, name: str, tasklets: int, dma_max_bytes: int):
        self.name = name
        self.tasklets = tasklets
        self._dma_max_bytes = dma_max_bytes
        self._block = Block()
        self.emit = Emitter(self._block)
        self.host_args: list[SSAValue] = []
        self._args: dict[SSAValue, SSAValue] = {}
        self._host: dict[SSAValue, SSAValue] = {}
        self._views: dict[TableSource, View] = {}
        self.tasklet: SSAValue = self.emit.at_head(TaskletIdOp()).result
        self.tasklet.name_hint = "tasklet"
        self.body = BodyInliner(self.emit, self._scratch, self._views.__getitem__)
        self.scratch_bytes = 0

    # -- what the kernel is given --------------------------------------------------------------

    def map_host(self, values: dict[SSAValue, SSAValue]) -> None:
        """Says which lowered host value stands for a value of the program."""
        self._host = values

    def arg(self, host: SSAValue) -> SSAValue:
        """The kernel's value for a host scalar; constants stay constants."""
        host = self._host.get(host, host)
        if isinstance(host.owner, arith.ConstantOp):
            return self.emit.constant(host.owner.value)
        if host not in self._args:
            self._args[host] = self._block.insert_arg(host.type, len(self._block.args))
            self._args[host].name_hint = host.name_hint
            self.host_args.append(host)
        return self._args[host]

    def index_arg(self, host: Index, name: str) -> Index:
        """The kernel's value for a host index; known ones stay known."""
        if isinstance(host, int):
            return host
        if isinstance(host.owner, arith.ConstantOp):
            attr = host.owner.value
            assert isa(attr, IntegerAttr)
            return attr.value.data
        value = self.arg(host)
        value.name_hint = value.name_hint or name
        return value

    # -- memory --------------------------------------------------------------------------------

    def mram(
        self, offset: int, element: Attribute, capacity_bytes: int, name: str | None = None
    ) -> SSAValue:
        """The array of `capacity_bytes` at `offset` of MRAM."""
        op = MramOp(offset, element, capacity_bytes // element_bytes(element))
        op.result.name_hint = name
        return self.emit.at_head(op).result

    def wram(
        self, element: Attribute, length: int, shared: bool = False, name: str | None = None
    ) -> SSAValue:
        """A WRAM buffer of at least `length` elements, whole granules."""
        padded = round_up(max(length, 1), dma_granule(element))
        op = WramOp(element, padded, shared)
        op.result.name_hint = name
        return self.emit.at_head(op).result

    def _scratch(self, element: Attribute, length: int) -> SSAValue:
        buffer = self.wram(element, length, name="scratch")
        assert isa(buffer.type, MemRefType)
        self.scratch_bytes += buffer.type.get_shape()[0] * element_bytes(element)
        return buffer

    def load_tables(self, tables: Sequence[tuple[TableSource, int]]) -> None:
        """Loads tensors at the given MRAM offsets into WRAM that all tasklets share."""
        if not tables:
            return
        emit = self.emit
        arrays: list[tuple[SSAValue, SSAValue, int]] = []
        for source, offset in tables:
            attr = source.type
            assert isa(attr, TensorType)
            length = attr.get_shape()[0]
            padded = round_up(max(length, 1), dma_granule(attr.element_type))
            capacity = padded * element_bytes(attr.element_type)
            array = self.mram(offset, attr.element_type, capacity, "table_mram")
            buffer = self.wram(attr.element_type, length, shared=True, name="table")
            self._views[source] = View(buffer, 0, length)
            arrays.append((array, buffer, padded))

        def load() -> Sequence[SSAValue]:
            for array, buffer, padded in arrays:
                self.read(array, 0, buffer, 0, padded, padded)
            return ()

        emit.branch(emit.compare("eq", self.tasklet, 0), load)
        self.barrier()

    def table(self, source: TableSource) -> View:
        """The view of a tensor that was loaded."""
        return self._views[source]

    # -- transfers -----------------------------------------------------------------------------

    def read(
        self,
        array: SSAValue,
        start: Index,
        buffer: SSAValue,
        to: Index,
        count: Index,
        most: int,
        multiple: int = 1,
    ) -> None:
        """MRAM to WRAM: `count` elements, rounded up to whole granules, at most `most`.

        `count` is known to be a multiple of `multiple`.
        """
        self._transfer(MramReadOp, array, start, buffer, to, count, most, multiple)

    def write(
        self,
        buffer: SSAValue,
        start: Index,
        array: SSAValue,
        to: Index,
        count: Index,
        most: int,
        multiple: int = 1,
    ) -> None:
        """WRAM to MRAM: `count` elements, rounded up to whole granules, at most `most`.

        `count` is known to be a multiple of `multiple`.
        """
        self._transfer(MramWriteOp, array, to, buffer, start, count, most, multiple)

    def _transfer(
        self,
        kind: type[MramReadOp] | type[MramWriteOp],
        array: SSAValue,
        mram_index: Index,
        buffer: SSAValue,
        wram_index: Index,
        count: Index,
        most: int,
        multiple: int,
    ) -> None:
        emit = self.emit
        element = element_of(array)
        step = dma_granule(element)
        if multiple % step:
            count = emit.round_up(count, step)
        largest = self._dma_max_bytes // element_bytes(element) // step * step
        if round_up(most, step) <= largest:
            values = map(emit.value, (mram_index, wram_index, count))
            m, w, c = values
            emit.insert(kind(array, m, buffer, w, c))
            return
        with emit.loop(0, count, largest) as loop:
            piece = emit.minimum(emit.sub(count, loop.index), largest)
            values = map(
                emit.value,
                (emit.add(mram_index, loop.index), emit.add(wram_index, loop.index), piece),
            )
            m, w, c = values
            emit.insert(kind(array, m, buffer, w, c))

    # -- the end -------------------------------------------------------------------------------

    def barrier(self) -> None:
        """All tasklets meet."""
        self.emit.insert(BarrierOp())

    def finish(self) -> KernelOp:
        """The kernel operation."""
        self.emit.insert(ReturnOp())
        return KernelOp(self.name, self.tasklets, Region(self._block))
