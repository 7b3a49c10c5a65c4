"""PrIM's histograms: HST-S with a table for each tasklet, HST-L with one table and a mutex.

The number of bins is an argument of the kernel, so that a pixel takes a real multiplication.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects import upmem
from cim_opt.lowering.emit import Index
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.tools.pnm_baselines.frame import (
    Array,
    Host,
    binary,
    cyclic,
    integer,
    number,
    padded,
    to_index,
)

TASKLETS = 16
BINS = 256
DEPTH = 12
Count = Callable[[KernelBuilder, SSAValue], None]
"""Counts one pixel's bin."""


def hst_s(dpus: int, pixels: Array) -> ModuleOp:
    """Blocks of 1 KB; tables of tasklets are added up after a barrier, a range of bins each."""

    def prepare(kernel: KernelBuilder, table: SSAValue) -> Count:
        emit = kernel.emit
        base = emit.mul(kernel.tasklet, BINS)
        with emit.loop(0, BINS) as i:
            emit.store(number(emit, 0), table, emit.add(base, i.index))
        return lambda kernel, bin: _increment(kernel, table, emit.add(base, to_index(emit, bin)))

    return _histogram(dpus, pixels, 256, TASKLETS, prepare)


def hst_l(dpus: int, pixels: Array) -> ModuleOp:
    """Blocks of 256 bytes; every pixel is counted under the mutex."""

    def prepare(kernel: KernelBuilder, table: SSAValue) -> Count:
        emit = kernel.emit
        share = BINS // TASKLETS
        with emit.loop(0, share) as i:
            place = emit.add(emit.mul(kernel.tasklet, share), i.index)
            emit.store(number(emit, 0), table, place)
        kernel.barrier()

        def count(kernel: KernelBuilder, bin: SSAValue) -> None:
            place = to_index(emit, bin)
            section = Block()
            with emit.inside(section):
                _increment(kernel, table, place)
            emit.insert(upmem.CriticalOp(emit.value(0), Region(section)))

        return count

    return _histogram(dpus, pixels, 64, 1, prepare)


def _increment(kernel: KernelBuilder, table: SSAValue, place: Index) -> None:
    emit = kernel.emit
    more = binary(emit, AddiOp, emit.load(table, place), number(emit, 1))
    emit.store(more, table, place)


def _histogram(
    dpus: int,
    pixels: Array,
    block: int,
    copies: int,
    prepare: Callable[[KernelBuilder, SSAValue], Count],
) -> ModuleOp:
    host = Host(dpus, (pixels,))
    each = len(pixels) // dpus
    room = padded(each, 32)
    host.push(host.args[0], 0, each)
    kernel = host.kernel("hst", TASKLETS)
    emit = kernel.emit
    bins = kernel.arg(_runtime(host, BINS))
    array, out = kernel.mram(0, integer(32), room), kernel.mram(room, integer(32), 4 * BINS)
    buffer = kernel.wram(integer(32), block)
    table = kernel.wram(integer(32), copies * BINS, shared=True)
    count_pixel = prepare(kernel, table)
    with cyclic(kernel, each, block) as outer:
        count = emit.minimum(emit.sub(each, outer.index), block)
        kernel.read(array, outer.index, buffer, 0, count, block)
        with emit.loop(0, count) as i:
            scaled = binary(emit, arith.MuliOp, emit.load(buffer, i.index), bins)
            count_pixel(kernel, binary(emit, arith.ShRUIOp, scaled, number(emit, DEPTH)))
    kernel.barrier()
    _write_bins(kernel, table, copies, out)
    host.launch(kernel)
    return host.module(host.sums(host.pull(integer(32), room, BINS), BINS))


def _runtime(host: Host, value: int) -> SSAValue:
    """A number that the kernel's compiler does not know: it comes in as an argument."""
    one = host.emit.constant(IntegerAttr(value, integer(32)))
    zero = host.emit.constant(IntegerAttr(0, integer(32)))
    return binary(host.emit, AddiOp, one, zero)


def _write_bins(kernel: KernelBuilder, table: SSAValue, copies: int, out: SSAValue) -> None:
    """Every tasklet adds up a range of bins over all copies, and writes it."""
    emit, share = kernel.emit, BINS // TASKLETS
    low = emit.mul(kernel.tasklet, share)
    if copies > 1:
        with emit.loop(low, emit.add(low, share)) as i:
            with emit.loop(1, copies, 1, [emit.load(table, i.index)]) as j:
                other = emit.load(table, emit.add(emit.mul(j.index, BINS), i.index))
                j.next = [binary(emit, AddiOp, j.carried[0], other)]
            emit.store(j.results[0], table, i.index)
    kernel.write(table, low, out, low, share, share)
