"""PrIM's programs on vectors: VA, RED, SEL, UNI, SCAN (reduce, scan, scan).

16 tasklets and blocks of 1 KB that tasklets take in turn, as its authors chose. SEL and UNI copy
what each DPU kept one DPU after another. (Gomez-Luna et al., PrIM benchmarks.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, ModuleOp, TensorType, UnitAttr
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects import upmem
from cim_opt.dialects.pattern import ScanOp, YieldOp
from cim_opt.lowering.emit import Index
from cim_opt.lowering.host_vectors import empty
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.tools.pnm_baselines.frame import (
    I64,
    Array,
    Host,
    binary,
    cyclic,
    integer,
    merge_scalars,
    number,
    padded,
    to_index,
)

TASKLETS = 16
BLOCK_BYTES = 1024


def va(dpus: int, a: Array, b: Array) -> ModuleOp:
    """The sum goes over the second operand, in WRAM and in MRAM."""
    host = Host(dpus, (a, b))
    each, block = len(a) // dpus, BLOCK_BYTES // 4
    room = padded(each, 32)
    host.push(host.args[0], 0, each)
    host.push(host.args[1], room, each)
    kernel = host.kernel("va", TASKLETS)
    emit = kernel.emit
    first, second = (kernel.mram(offset, integer(32), room) for offset in (0, room))
    x, y = (kernel.wram(integer(32), block) for _ in range(2))
    with cyclic(kernel, each, block) as outer:
        count = emit.minimum(emit.sub(each, outer.index), block)
        kernel.read(first, outer.index, x, 0, count, block)
        kernel.read(second, outer.index, y, 0, count, block)
        with emit.loop(0, count) as i:
            total = binary(emit, AddiOp, emit.load(y, i.index), emit.load(x, i.index))
            emit.store(total, y, i.index)
        kernel.write(y, 0, second, outer.index, count, block)
    host.launch(kernel)
    return host.module(host.pull(integer(32), room, each))


def _sum_blocks(kernel: KernelBuilder, array: SSAValue, each: Index, block: int) -> SSAValue:
    """The sum of a tasklet's blocks of 64-bit numbers, kept in a register."""
    emit = kernel.emit
    buffer = kernel.wram(I64, block)
    start = emit.mul(kernel.tasklet, block)
    zero = number(emit, 0, 64)
    with emit.loop(start, each, TASKLETS * block, [zero]) as outer:
        count = emit.minimum(emit.sub(each, outer.index), block)
        kernel.read(array, outer.index, buffer, 0, count, block)
        with emit.loop(0, count, 1, outer.carried) as i:
            i.next = [binary(emit, AddiOp, i.carried[0], emit.load(buffer, i.index))]
        outer.next = i.results
    return outer.results[0]


def red(dpus: int, x: Array) -> ModuleOp:
    """Sums of tasklets are added up by one of them, those of DPUs, fetched in turn, by the host."""
    host = Host(dpus, (x,))
    each, block = len(x) // dpus, BLOCK_BYTES // 8
    room = padded(each, 64)
    host.push(host.args[0], 0, each)
    kernel = host.kernel("red", TASKLETS)
    array, out = kernel.mram(0, I64, room), kernel.mram(room, I64, 8)
    merge_scalars(kernel, _sum_blocks(kernel, array, each, block), out, AddiOp)
    host.launch(kernel)
    return host.module(host.total(host.pull(I64, room, 1, serial=True), AddiOp, 0))


def scan(dpus: int, x: Array) -> ModuleOp:
    """Sums of DPUs first; the host scans them; then blocks are scanned and moved up."""
    host = Host(dpus, (x,))
    each, block = len(x) // dpus, BLOCK_BYTES // 8
    room = padded(each, 64)
    host.push(host.args[0], 0, each)
    kernel = host.kernel("scan_reduce", TASKLETS)
    array, out = kernel.mram(0, I64, room), kernel.mram(2 * room, I64, 8)
    merge_scalars(kernel, _sum_blocks(kernel, array, each, block), out, AddiOp)
    host.launch(kernel)
    host.push(_before(host, host.pull(I64, 2 * room, 1)), 2 * room, 1)
    host.launch(_scan_blocks(host, each, block, room))
    return host.module(host.pull(I64, room, each))


def _before(host: Host, totals: SSAValue) -> SSAValue:
    """What comes before each DPU."""
    body = Block(arg_types=[I64, I64])
    total = AddiOp(body.args[0], body.args[1])
    body.add_ops([total, YieldOp(total)])
    op = ScanOp([totals], [number(host.emit, 0, 64)], [], Region(body))
    op.properties["exclusive"] = UnitAttr()
    return host.emit.insert(op).results[0]


def _scan_blocks(host: Host, each: int, block: int, room: int) -> KernelBuilder:
    """Scans a block, learns from the tasklet before what comes before it, and adds that."""
    kernel = host.kernel("scan_blocks", TASKLETS)
    emit = kernel.emit
    array, out = kernel.mram(0, I64, room), kernel.mram(room, I64, room)
    given = kernel.mram(2 * room, I64, 8)
    buffer = kernel.wram(I64, block)
    chain = kernel.wram(I64, 1, shared=True)

    def begin() -> Sequence[SSAValue]:
        kernel.read(given, 0, chain, 0, 1, 1)
        return ()

    emit.branch(emit.compare("eq", kernel.tasklet, 0), begin)
    kernel.barrier()
    with cyclic(kernel, each, block) as outer:
        count = emit.minimum(emit.sub(each, outer.index), block)
        kernel.read(array, outer.index, buffer, 0, count, block)
        with emit.loop(0, count, 1, [number(emit, 0, 64)]) as i:
            total = binary(emit, AddiOp, i.carried[0], emit.load(buffer, i.index))
            emit.store(total, buffer, i.index)
            i.next = [total]
        offset = chained(kernel, chain, i.results[0])
        with emit.loop(0, count) as j:
            moved = binary(emit, AddiOp, emit.load(buffer, j.index), offset)
            emit.store(moved, buffer, j.index)
        kernel.write(buffer, 0, out, outer.index, count, block)
    return kernel


def chained(kernel: KernelBuilder, chain: SSAValue, own: SSAValue) -> SSAValue:
    """What the tasklets before have come to; adds a tasklet's own. Tasklets come in their order.

    The programs hand a number on from tasklet to tasklet; here they take turns with a mutex.
    """
    emit = kernel.emit
    mine = kernel.wram(I64, 1)
    section = Block()
    with emit.inside(section):
        before = emit.load(chain, 0)
        emit.store(before, mine, 0)
        emit.store(binary(emit, AddiOp, before, own), chain, 0)
    emit.insert(upmem.CriticalOp(emit.value(0), Region(section)))
    return emit.load(mine, 0)


Keep = Callable[[KernelBuilder, SSAValue, Index], tuple[SSAValue, SSAValue]]
"""Whether to keep element i of a buffer, and its value."""


def _select(dpus: int, x: Array, each: int, halo: int, keep: Keep) -> ModuleOp:
    """Blocks are compacted; tasklets tell the next one where it writes, round after round."""
    host = Host(dpus, (x,))
    block = BLOCK_BYTES // 8
    room = padded(each + halo, 64)
    host.push(host.args[0], 0, each, halo)
    kernel = host.kernel("select", TASKLETS)
    emit = kernel.emit
    array, out = kernel.mram(0, I64, room), kernel.mram(room, I64, room)
    count_of = kernel.mram(2 * room, I64, 8)
    buffer, kept = kernel.wram(I64, block + halo), kernel.wram(I64, block)
    chain = kernel.wram(I64, 1, shared=True)

    def begin() -> Sequence[SSAValue]:
        emit.store(number(emit, 0, 64), chain, 0)
        return ()

    emit.branch(emit.compare("eq", kernel.tasklet, 0), begin)
    kernel.barrier()
    with cyclic(kernel, each, block) as outer:
        count = emit.minimum(emit.sub(each, outer.index), block)
        kernel.read(array, outer.index, buffer, 0, emit.add(count, halo), block + halo)
        with emit.loop(0, count, 1, [emit.value(0)]) as i:
            condition, value = keep(kernel, buffer, i.index)
            place = i.carried[0]

            def store(value: SSAValue = value, place: SSAValue = place) -> Sequence[SSAValue]:
                emit.store(value, kept, place)
                return [emit.value(emit.add(place, 1))]

            i.next = list(emit.branch(condition, store, lambda: [place]))
        mine = i.results[0]
        own = emit.insert(arith.IndexCastOp(mine, I64)).result
        before = to_index(emit, chained(kernel, chain, own))

        def write(before: SSAValue = before, mine: SSAValue = mine) -> Sequence[SSAValue]:
            kernel.write(kept, 0, out, before, mine, block)
            return ()

        emit.branch(emit.compare("ugt", mine, 0), write)
    kernel.barrier()

    def tell() -> Sequence[SSAValue]:
        kernel.write(chain, 0, count_of, 0, 1, 1)
        return ()

    emit.branch(emit.compare("eq", kernel.tasklet, 0), tell)
    host.launch(kernel)
    return host.module(_fetched_in_turn(host, room, each))


def _fetched_in_turn(host: Host, room: int, each: int) -> SSAValue:
    """What each DPU kept, one DPU after another, each as much as it has.

    Where DPUs keep different amounts, all are timed as the one that keeps most.
    """
    emit = host.emit
    counts = host.pull(I64, 2 * room, 1, serial=True)
    most = host.total(counts, arith.MaxUIOp, 0)
    capacity = emit.insert(arith.IndexCastOp(most, IndexType())).result
    dest = empty(emit, I64, each * host.dpus)
    op = upmem.GatherOp(host.set, room, capacity, counts, 1, dest, emit.value(0))
    op.properties["serial"] = UnitAttr()
    kept = emit.insert(op).result
    total = emit.insert(arith.IndexCastOp(host.total(counts, AddiOp, 0), IndexType())).result
    attr = TensorType(I64, [DYNAMIC_INDEX])
    return emit.insert(tensor.ExtractSliceOp(kept, [0], [total], [1], attr)).results[0]


def sel(dpus: int, x: Array) -> ModuleOp:
    """Keeps odd numbers."""

    def keep(kernel: KernelBuilder, buffer: SSAValue, i: Index) -> tuple[SSAValue, SSAValue]:
        emit = kernel.emit
        value = emit.load(buffer, i)
        low = binary(emit, arith.AndIOp, value, number(emit, 1, 64))
        return emit.insert(arith.CmpiOp(low, number(emit, 0, 64), "ne")).result, value

    return _select(dpus, x, len(x) // dpus, 0, keep)


def uni(dpus: int, x: Array) -> ModuleOp:
    """Keeps the last of equal neighbours; a DPU sees the first number of the next one."""

    def keep(kernel: KernelBuilder, buffer: SSAValue, i: Index) -> tuple[SSAValue, SSAValue]:
        emit = kernel.emit
        value, following = emit.load(buffer, i), emit.load(buffer, emit.add(i, 1))
        return emit.insert(arith.CmpiOp(value, following, "ne")).result, value

    return _select(dpus, x, (len(x) - 1) // dpus, 1, keep)
