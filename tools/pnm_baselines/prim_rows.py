"""PrIM's programs on rows and windows: GEMV, MLP, TS.

GEMV reads the vector from MRAM again for every row, and adds every product to the result in WRAM.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import ModuleOp, TensorType, i32
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects.pattern import MapOp, YieldOp
from cim_opt.lowering.emit import Index
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.tools.pnm_baselines.frame import (
    Array,
    Host,
    binary,
    integer,
    merge_scalars,
    number,
    padded,
    widened,
)
from cim_opt.tools.pnm_workloads.ts import DEVIATION, MEAN

TASKLETS = 16
BLOCK_BYTES = 1024


def _gemv_kernel(
    host: Host, name: str, rows: int, columns: int, bits: int, relu: bool, whole: bool = False
) -> tuple[KernelBuilder, int, int]:
    """The kernel, and where the vector and the results lie; rows start at 0.

    `whole` reads blocks of 1 KB also where rows are shorter.
    """
    kernel = host.kernel(name, TASKLETS)
    emit = kernel.emit
    block = min(BLOCK_BYTES * 8 // bits, columns)
    read = BLOCK_BYTES * 8 // bits if whole else block
    more = read - block
    room, vector_room = padded(rows * columns + more, bits), padded(columns + more, bits)
    matrix = kernel.mram(0, integer(bits), room)
    vector = kernel.mram(room, integer(bits), vector_room)
    out = kernel.mram(room + vector_room, integer(32), padded(rows, 32))
    a, x = (kernel.wram(integer(bits), read) for _ in range(2))
    chunk = -(-rows // TASKLETS // 2) * 2
    results = kernel.wram(integer(32), chunk)
    low = emit.minimum(emit.mul(kernel.tasklet, chunk), rows)
    high = emit.minimum(emit.add(low, chunk), rows)
    with emit.loop(low, high) as row:
        place = emit.sub(row.index, low)
        emit.store(number(emit, 0), results, place)
        with emit.loop(0, columns, block) as piece:
            start = emit.add(emit.mul(row.index, columns), piece.index)
            kernel.read(matrix, start, a, 0, read, read)
            kernel.read(vector, piece.index, x, 0, read, read)
            with emit.loop(0, block) as i:
                left, right = (widened(emit, emit.load(b, i.index)) for b in (a, x))
                product = binary(emit, arith.MuliOp, left, right)
                total = binary(emit, AddiOp, emit.load(results, place), product)
                emit.store(total, results, place)
        if relu:
            value = emit.load(results, place)
            emit.store(binary(emit, arith.MaxSIOp, value, number(emit, 0)), results, place)

    def write() -> Sequence[SSAValue]:
        kernel.write(results, 0, out, low, emit.sub(high, low), chunk)
        return ()

    emit.branch(emit.compare("ult", low, high), write)
    return kernel, room, room + vector_room


def gemv(dpus: int, matrix: Array, vector: Array, whole: bool = False) -> ModuleOp:
    """Rows are shared out in pairs. `whole`: blocks are read whole where rows are shorter."""
    host = Host(dpus, (matrix, vector))
    columns, bits = len(vector), 8 * matrix.dtype.itemsize
    rows = len(matrix) // columns // dpus
    kernel, vector_at, out_at = _gemv_kernel(host, "gemv", rows, columns, bits, False, whole)
    host.push(host.args[0], 0, rows * columns)
    host.broadcast(host.args[1], vector_at)
    host.launch(kernel)
    return host.module(host.pull(integer(32), out_at, rows))


def mlp(dpus: int, first: Array, x: Array, *others: Array) -> ModuleOp:
    """A launch a layer; weights and input of the next one are pushed in between."""
    host = Host(dpus, (first, x, *others))
    columns, bits = len(x), 8 * x.dtype.itemsize
    rows = len(first) // columns // dpus
    value, y = host.args[1], host.args[1]
    for layer, weights in enumerate((host.args[0], *host.args[2:])):
        name = f"mlp_{layer}"
        kernel, vector_at, out_at = _gemv_kernel(host, name, rows, columns, bits, relu=True)
        host.push(weights, 0, rows * columns)
        host.broadcast(value, vector_at)
        host.launch(kernel)
        y = host.pull(integer(32), out_at, rows)
        value = next_input(host, y, columns, bits)
    return host.module(y)


def next_input(host: Host, y: SSAValue, columns: int, bits: int) -> SSAValue:
    """The first results, in the type of the inputs."""
    attr = TensorType(i32, [columns])
    cut = host.emit.insert(tensor.ExtractSliceOp(y, [0], [columns], [1], attr)).results[0]
    if bits == 32:
        return cut
    block = Block(arg_types=[i32])
    narrow = arith.TruncIOp(block.args[0], integer(bits))
    block.add_ops([narrow, YieldOp(narrow)])
    types = [TensorType(integer(bits), [columns])]
    return host.emit.insert(MapOp([cut], [], types, Region(block))).results[0]


def ts(dpus: int, series: Array, query: Array, mean: Array, deviation: Array) -> ModuleOp:
    """Blocks of 256 bytes of windows; each product is guarded by the test of the series' end."""
    host = Host(dpus, (series, query, mean, deviation))
    m, each = len(query), len(mean) // dpus
    series_room, query_room, room = padded(each + m, 32), padded(m, 32), padded(each, 32)
    offsets = (0, series_room, series_room + query_room, series_room + query_room + room)
    host.push(host.args[0], offsets[0], each, m)
    host.broadcast(host.args[1], offsets[1])
    host.push(host.args[2], offsets[2], each)
    host.push(host.args[3], offsets[3], each)
    out_at = offsets[3] + room
    kernel = host.kernel("ts", TASKLETS)
    rooms = (series_room, query_room, room, room)
    arrays = [
        kernel.mram(offset, integer(32), size) for offset, size in zip(offsets, rooms, strict=True)
    ]
    out = kernel.mram(out_at, integer(32), 16)
    merge_scalars(kernel, _least_distance(kernel, arrays, each, m), out, arith.MinSIOp)
    host.launch(kernel)
    found = host.pull(integer(32), out_at, 2, serial=True)
    attr = TensorType(integer(32), [dpus])
    every = host.emit.insert(tensor.ExtractSliceOp(found, [0], [dpus], [2], attr)).results[0]
    return host.module(host.total(every, arith.MinSIOp, (1 << 31) - 1))


def _least_distance(
    kernel: KernelBuilder, arrays: Sequence[SSAValue], each: int, m: int
) -> SSAValue:
    emit, block = kernel.emit, 64
    series, query, mean, deviation = arrays
    values = kernel.wram(integer(32), block + m)
    pattern = kernel.wram(integer(32), m)
    means, deviations = (kernel.wram(integer(32), block) for _ in range(2))
    kernel.read(query, 0, pattern, 0, m, m)
    chunk = -(-each // TASKLETS // 2) * 2
    low = emit.minimum(emit.mul(kernel.tasklet, chunk), each)
    high = emit.minimum(emit.add(low, chunk), each)
    most = number(emit, (1 << 31) - 1)
    with emit.loop(low, high, block, [most]) as outer:
        count = emit.minimum(emit.sub(high, outer.index), block)
        kernel.read(series, outer.index, values, 0, emit.add(count, m), block + m)
        kernel.read(mean, outer.index, means, 0, count, block)
        kernel.read(deviation, outer.index, deviations, 0, count, block)
        with emit.loop(0, count, 1, outer.carried) as i:
            dot = _guarded_dot(kernel, values, pattern, i.index, outer.index, each, m)
            parts = emit.load(means, i.index), emit.load(deviations, i.index)
            distance = _distance(kernel, dot, *parts, m)
            i.next = [binary(emit, arith.MinSIOp, i.carried[0], distance)]
        outer.next = i.results
    return outer.results[0]


def _guarded_dot(
    kernel: KernelBuilder,
    values: SSAValue,
    pattern: SSAValue,
    place: Index,
    start: Index,
    each: int,
    m: int,
) -> SSAValue:
    emit = kernel.emit
    with emit.loop(0, m, 1, [number(emit, 0)]) as j:
        at = emit.add(place, j.index)
        inside = emit.compare("ult", emit.add(start, at), each + m)

        def add(at: Index = at) -> Sequence[SSAValue]:
            product = binary(emit, arith.MuliOp, emit.load(values, at), emit.load(pattern, j.index))
            return [binary(emit, AddiOp, j.carried[0], product)]

        j.next = list(emit.branch(inside, add, lambda: [j.carried[0]]))
    return j.results[0]


def _distance(
    kernel: KernelBuilder, dot: SSAValue, mean: SSAValue, deviation: SSAValue, m: int
) -> SSAValue:
    """2 (m - (dot - m mean MEAN) / (deviation DEVIATION))"""
    emit = kernel.emit
    centre = binary(emit, arith.MuliOp, mean, number(emit, m * MEAN))
    above = binary(emit, arith.SubiOp, dot, centre)
    below = binary(emit, arith.MuliOp, deviation, number(emit, DEVIATION))
    ratio = binary(emit, arith.DivSIOp, above, below)
    rest = binary(emit, arith.SubiOp, number(emit, m), ratio)
    return binary(emit, AddiOp, rest, rest)
