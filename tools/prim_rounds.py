"""PrIM's programs whose tasklets meet in every round: SEL, UNI, SCAN-SSA, SCAN-RSS.

In a round each of 16 tasklets takes a block of 1 KB; a chain through the tasklets says what comes
before each, and all wait at a barrier before they write. Barriers stand at the top of a kernel, so
rounds are written one after another: a program for a few of them, on one DPU.
(Gomez-Luna et al., PrIM benchmarks; `pnm_baselines` has them without the barrier, at any size.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from cim_opt.lowering.emit import Index
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.tools.pnm_baselines.frame import (
    I64,
    Host,
    binary,
    cyclic,
    merge_scalars,
    number,
    padded,
    to_index,
)
from cim_opt.tools.pnm_baselines.prim_vectors import chained

TASKLETS = 16
BLOCK = 128
"""Elements of a block."""
ROUND = TASKLETS * BLOCK
"""Elements of a round."""

Array = npt.NDArray[Any]
Keep = Callable[[KernelBuilder, SSAValue, Index], tuple[SSAValue, SSAValue]]
"""Whether to keep element i of a buffer, and its value."""


def _starts(kernel: KernelBuilder, each: int) -> Iterator[Index]:
    """Where a tasklet's block starts in each round."""
    own = kernel.emit.mul(kernel.tasklet, BLOCK)
    for first in range(0, each, ROUND):
        yield kernel.emit.add(own, first)


def _begin_chain(kernel: KernelBuilder, start: int = 0) -> SSAValue:
    chain = kernel.wram(I64, 1, shared=True)
    emit = kernel.emit

    def begin() -> Sequence[SSAValue]:
        emit.store(number(emit, start, 64), chain, 0)
        return ()

    emit.branch(emit.compare("eq", kernel.tasklet, 0), begin)
    kernel.barrier()
    return chain


def _select(x: Array, halo: int, keep: Keep) -> ModuleOp:
    host, each = Host(1, (x,)), len(x) - halo
    room = padded(each + halo, 64)
    host.push(host.args[0], 0, each, halo)
    kernel = host.kernel("select", TASKLETS)
    emit = kernel.emit
    array, out = kernel.mram(0, I64, room), kernel.mram(room, I64, room)
    buffer, kept = kernel.wram(I64, BLOCK + halo), kernel.wram(I64, BLOCK)
    chain = _begin_chain(kernel)
    for start in _starts(kernel, each):
        kernel.read(array, start, buffer, 0, BLOCK + halo, BLOCK + halo)
        with emit.loop(0, BLOCK, 1, [emit.value(0)]) as i:
            condition, value = keep(kernel, buffer, i.index)
            place = i.carried[0]

            def store(value: SSAValue = value, place: SSAValue = place) -> Sequence[SSAValue]:
                emit.store(value, kept, place)
                return [emit.value(emit.add(place, 1))]

            i.next = list(emit.branch(condition, store, lambda place=place: [place]))
        mine = i.results[0]
        own = emit.insert(arith.IndexCastOp(mine, I64)).result
        before = to_index(emit, chained(kernel, chain, own))
        kernel.barrier()

        def write(before: SSAValue = before, mine: SSAValue = mine) -> Sequence[SSAValue]:
            kernel.write(kept, 0, out, before, mine, BLOCK)
            return ()

        emit.branch(emit.compare("ugt", mine, 0), write)
    host.launch(kernel)
    return host.module(host.pull(I64, room, each))


def sel(x: Array) -> ModuleOp:
    """Keeps odd numbers."""

    def keep(kernel: KernelBuilder, buffer: SSAValue, i: Index) -> tuple[SSAValue, SSAValue]:
        emit = kernel.emit
        value = emit.load(buffer, i)
        low = binary(emit, arith.AndIOp, value, number(emit, 1, 64))
        return emit.insert(arith.CmpiOp(low, number(emit, 0, 64), "ne")).result, value

    return _select(x, 0, keep)


def uni(x: Array) -> ModuleOp:
    """Keeps the last of equal neighbours; the array has one element more."""

    def keep(kernel: KernelBuilder, buffer: SSAValue, i: Index) -> tuple[SSAValue, SSAValue]:
        emit = kernel.emit
        value, following = emit.load(buffer, i), emit.load(buffer, emit.add(i, 1))
        return emit.insert(arith.CmpiOp(value, following, "ne")).result, value

    return _select(x, 1, keep)


def _sum(x: SSAValue, y: SSAValue) -> AddiOp:
    return AddiOp(x, y)


def _scan_blocks(host: Host, each: int, room: int) -> None:
    """Scans a block, learns what comes before it, and adds that."""
    kernel = host.kernel("scan", TASKLETS)
    emit = kernel.emit
    array, out = kernel.mram(0, I64, room), kernel.mram(room, I64, room)
    buffer = kernel.wram(I64, BLOCK)
    chain = _begin_chain(kernel)
    for start in _starts(kernel, each):
        kernel.read(array, start, buffer, 0, BLOCK, BLOCK)
        with emit.loop(0, BLOCK, 1, [number(emit, 0, 64)]) as i:
            total = binary(emit, AddiOp, i.carried[0], emit.load(buffer, i.index))
            emit.store(total, buffer, i.index)
            i.next = [total]
        offset = chained(kernel, chain, i.results[0])
        kernel.barrier()
        _add(kernel, buffer, offset)
        kernel.write(buffer, 0, out, start, BLOCK, BLOCK)
    host.launch(kernel)


def _add(kernel: KernelBuilder, buffer: SSAValue, offset: SSAValue) -> None:
    emit = kernel.emit
    with emit.loop(0, BLOCK) as j:
        emit.store(binary(emit, AddiOp, emit.load(buffer, j.index), offset), buffer, j.index)


def scan_rss(x: Array) -> ModuleOp:
    """One kernel adds the DPU's numbers up, the other scans them."""
    host, each = Host(1, (x,)), len(x)
    room = padded(each, 64)
    host.push(host.args[0], 0, each)
    kernel = host.kernel("sum", TASKLETS)
    emit = kernel.emit
    array, out = kernel.mram(0, I64, room), kernel.mram(2 * room, I64, 8)
    buffer = kernel.wram(I64, BLOCK)
    start = emit.mul(kernel.tasklet, BLOCK)
    with emit.loop(start, each, ROUND, [number(emit, 0, 64)]) as outer:
        kernel.read(array, outer.index, buffer, 0, BLOCK, BLOCK)
        with emit.loop(0, BLOCK, 1, outer.carried) as i:
            i.next = [binary(emit, AddiOp, i.carried[0], emit.load(buffer, i.index))]
        outer.next = i.results
    merge_scalars(kernel, outer.results[0], out, _sum)
    host.launch(kernel)
    _scan_blocks(host, each, room)
    return host.module(host.pull(I64, room, each))


def scan_ssa(x: Array) -> ModuleOp:
    """One kernel scans the DPU's numbers, the other adds what comes before the DPU: here 0."""
    host, each = Host(1, (x,)), len(x)
    room = padded(each, 64)
    host.push(host.args[0], 0, each)
    _scan_blocks(host, each, room)
    kernel = host.kernel("add", TASKLETS)
    emit = kernel.emit
    out, given = kernel.mram(room, I64, room), kernel.wram(I64, 1)
    buffer = kernel.wram(I64, BLOCK)
    emit.store(number(emit, 0, 64), given, 0)
    offset = emit.load(given, 0)
    with cyclic(kernel, each, BLOCK) as outer:
        kernel.read(out, outer.index, buffer, 0, BLOCK, BLOCK)
        _add(kernel, buffer, offset)
        kernel.write(buffer, 0, out, outer.index, BLOCK, BLOCK)
    host.launch(kernel)
    return host.module(host.pull(I64, room, each))


def reference(name: str, x: Array) -> Array:
    """What a program's output starts with."""
    if name == "SEL":
        return x[x % 2 != 0]
    if name == "UNI":
        return x[:-1][x[:-1] != x[1:]]
    return np.cumsum(x)
