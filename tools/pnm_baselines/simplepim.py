"""SimplePIM's programs: VA, RED, HST, LINREG, LOGREG, KMEANS.

12 tasklets. A function of the user is called for every element, on pointers: its operands are
copied to a scratch place, it leaves its value in another, and a second function adds that to an
entry of a table in WRAM. Tables of tasklets are added up after a barrier; the host adds up those of
DPUs. What is gathered goes through a buffer and is copied. (Chen et al., SimplePIM, PACT 2023, and
its code.) In the baseline's favour: the calls themselves, and loading a program for each stage, are
not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.arith import AddiOp, MuliOp, SubiOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from cim_opt.lowering.emit import Index
from cim_opt.lowering.host_vectors import empty, insert_at
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.tools.pnm_baselines.frame import (
    Array,
    Host,
    binary,
    cyclic,
    dense,
    integer,
    number,
    padded,
    to_index,
    widened,
)
from cim_opt.tools.pnm_workloads.linreg import DIMENSIONS, GRADIENT_SHIFT
from cim_opt.tools.pnm_workloads.linreg import DOT_SHIFT as LINREG_SHIFT
from cim_opt.tools.pnm_workloads.logreg import DOT_SHIFT as LOGREG_SHIFT
from cim_opt.tools.pnm_workloads.logreg import SIGMOID, STEPS

TASKLETS = 12
BLOCK = 256
SAMPLE_BLOCK = 64
"""Of samples of eleven numbers, which SimplePIM takes 16 at a time."""

Function = Callable[[KernelBuilder, Sequence[SSAValue]], tuple[Sequence[SSAValue], Index]]
"""The user's function: values, and the entry of the table where they begin."""


def va(dpus: int, a: Array, b: Array) -> ModuleOp:
    """Two scattered vectors, zipped without being copied, and a map."""
    host = Host(dpus, (a, b))
    each = len(a) // dpus
    room = padded(each, 32)
    host.push(host.args[0], 0, each)
    host.push(host.args[1], room, each)
    kernel = host.kernel("map", TASKLETS)
    emit = kernel.emit
    arrays = [kernel.mram(n * room, integer(32), room) for n in range(3)]
    x, y, z = (kernel.wram(integer(32), BLOCK) for _ in range(3))
    pair = kernel.wram(integer(32), 2)
    with cyclic(kernel, each, BLOCK) as outer:
        count = emit.minimum(emit.sub(each, outer.index), BLOCK)
        kernel.read(arrays[0], outer.index, x, 0, count, BLOCK)
        kernel.read(arrays[1], outer.index, y, 0, count, BLOCK)
        with emit.loop(0, count) as i:
            for place, buffer in enumerate((x, y)):
                emit.store(emit.load(buffer, i.index), pair, place)
            emit.store(binary(emit, AddiOp, emit.load(pair, 0), emit.load(pair, 1)), z, i.index)
        kernel.write(z, 0, arrays[2], outer.index, count, BLOCK)
    host.launch(kernel)
    pulled = host.pull(integer(32), 2 * room, each)
    return host.module(insert_at(host.emit, pulled, empty(host.emit, integer(32), len(a)), 0))


def red(dpus: int, x: Array) -> ModuleOp:
    """A table of one entry."""

    def whole(
        kernel: KernelBuilder, values: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Index]:
        return values, 0

    host = Host(dpus, (x,))
    host.push(host.args[0], 0, len(x) // dpus)
    sums = _reduce(host, [64], len(x) // dpus, BLOCK // 2, 64, 1, whole)
    return host.module(host.total(sums, AddiOp, 0))


def hst(dpus: int, pixels: Array) -> ModuleOp:
    """The number of bins is a constant of the user's function: its product is a shift."""

    def bin_of(
        kernel: KernelBuilder, values: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Index]:
        emit = kernel.emit
        scaled = binary(emit, arith.ShLIOp, values[0], number(emit, 8))
        place = binary(emit, arith.ShRUIOp, scaled, number(emit, 12))
        return [number(emit, 1)], to_index(emit, place)

    host = Host(dpus, (pixels,))
    host.push(host.args[0], 0, len(pixels) // dpus)
    sums = _reduce(host, [32], len(pixels) // dpus, BLOCK, 32, 256, bin_of)
    return host.module(host.sums(sums, 256))


def linreg(dpus: int, *arrays: Array) -> ModuleOp:
    """Errors and gradients of 64 bits, as in its code."""

    def gradient(
        kernel: KernelBuilder, values: Sequence[SSAValue], weights: SSAValue
    ) -> Sequence[SSAValue]:
        emit = kernel.emit
        dot = _dot(kernel, values[:DIMENSIONS], weights)
        dot = binary(emit, arith.ShRSIOp, dot, number(emit, LINREG_SHIFT))
        error = binary(emit, SubiOp, widened(emit, dot, 64), widened(emit, values[-1], 64))
        return [_scaled(kernel, error, value) for value in values[:DIMENSIONS]]

    return _regression(dpus, arrays, gradient, None)


def logreg(dpus: int, *arrays: Array) -> ModuleOp:
    """The same with the sigmoid, from the table that the workload has."""

    def gradient(
        kernel: KernelBuilder, values: Sequence[SSAValue], weights: SSAValue, table: SSAValue
    ) -> Sequence[SSAValue]:
        emit = kernel.emit
        dot = _dot(kernel, values[:DIMENSIONS], weights)
        dot = binary(emit, arith.ShRSIOp, dot, number(emit, LOGREG_SHIFT))
        place = binary(emit, AddiOp, dot, number(emit, STEPS // 2))
        place = binary(emit, arith.MaxSIOp, place, number(emit, 0))
        place = binary(emit, arith.MinSIOp, place, number(emit, STEPS - 1))
        sigmoid = emit.load(table, to_index(emit, place))
        error = binary(emit, SubiOp, widened(emit, sigmoid, 64), widened(emit, values[-1], 64))
        return [_scaled(kernel, error, value) for value in values[:DIMENSIONS]]

    return _regression(dpus, arrays, gradient, SIGMOID)


def _dot(kernel: KernelBuilder, values: Sequence[SSAValue], weights: SSAValue) -> SSAValue:
    emit = kernel.emit
    total = number(emit, 0)
    for place, value in enumerate(values):
        product = binary(emit, MuliOp, emit.load(weights, place), value)
        total = binary(emit, AddiOp, total, product)
    return total


def _scaled(kernel: KernelBuilder, error: SSAValue, value: SSAValue) -> SSAValue:
    emit = kernel.emit
    product = binary(emit, MuliOp, error, widened(emit, value, 64))
    return binary(emit, arith.ShRSIOp, product, number(emit, GRADIENT_SHIFT, 64))


def _regression(
    dpus: int,
    arrays: Sequence[Array],
    gradient: Callable[..., Sequence[SSAValue]],
    table: Array | None,
) -> ModuleOp:
    host = Host(dpus, arrays)
    each = len(arrays[0]) // dpus
    room = padded(each, 32)
    for place, value in enumerate(host.args[:-1]):
        host.push(value, place * room, each)
    at = len(arrays[:-1]) * room
    tables: list[tuple[SSAValue, int]] = [(host.args[-1], DIMENSIONS)]
    if table is not None:
        tables.append((host.emit.constant(dense(table)), len(table)))

    def step(kernel: KernelBuilder, values: Sequence[SSAValue]) -> tuple[Sequence[SSAValue], Index]:
        return gradient(kernel, values, *shared), 0

    shared: list[SSAValue] = []
    widths = [32] * len(arrays[:-1])
    sums = _reduce(host, widths, each, SAMPLE_BLOCK, 64, DIMENSIONS, step, tables, shared, at)
    totals = host.sums(sums, DIMENSIONS, 64)
    places = [host.emit.value(place) for place in range(DIMENSIONS)]
    elements = [
        host.emit.insert(tensor.ExtractOp(totals, [place], integer(64))).result for place in places
    ]
    return host.module(*elements)


def kmeans(dpus: int, *arrays: Array) -> ModuleOp:
    """Squares of differences as they come, sums of 64 bits, 64-bit comparisons."""
    host = Host(dpus, arrays)
    each, count = len(arrays[0]) // dpus, 10
    room = padded(each, 32)
    for place, value in enumerate(host.args[:-1]):
        host.push(value, place * room, each)

    def step(kernel: KernelBuilder, values: Sequence[SSAValue]) -> tuple[Sequence[SSAValue], Index]:
        emit = kernel.emit
        best, least = number(emit, 0), _distance(kernel, values, shared[0], 0)
        for k in range(1, count):
            distance = _distance(kernel, values, shared[0], k)
            closer = emit.insert(arith.CmpiOp(distance, least, "slt")).result
            mine = number(emit, k * (DIMENSIONS + 1))
            best = emit.insert(arith.SelectOp(closer, mine, best)).result
            least = emit.insert(arith.SelectOp(closer, distance, least)).result
        return [*values, number(emit, 1)], to_index(emit, best)

    shared: list[SSAValue] = []
    tables = [(host.args[-1], count * DIMENSIONS)]
    widths, entries, at = [32] * DIMENSIONS, count * (DIMENSIONS + 1), DIMENSIONS * room
    sums = _reduce(host, widths, each, SAMPLE_BLOCK, 32, entries, step, tables, shared, at)
    return host.module(host.sums(sums, entries))


def _distance(
    kernel: KernelBuilder, values: Sequence[SSAValue], centres: SSAValue, k: int
) -> SSAValue:
    emit = kernel.emit
    total = number(emit, 0, 64)
    for place, value in enumerate(values):
        difference = binary(emit, SubiOp, value, emit.load(centres, k * DIMENSIONS + place))
        square = binary(emit, MuliOp, difference, difference)
        total = binary(emit, AddiOp, total, widened(emit, square, 64))
    return total


def _reduce(
    host: Host,
    widths: Sequence[int],
    each: int,
    block: int,
    bits: int,
    entries: int,
    function: Function,
    tables: Sequence[tuple[SSAValue, int]] = (),
    shared: list[SSAValue] | None = None,
    at: int | None = None,
) -> SSAValue:
    """Tables of all DPUs, of `entries` elements of so many bits.

    Input n of so many bits is where n such arrays end; `tables` follow from byte `at` on, and
    `shared` becomes their buffers.
    """
    kernel = host.kernel("reduce", TASKLETS)
    emit = kernel.emit
    rooms = [padded(each, width) for width in widths]
    starts = [sum(rooms[:place]) for place in range(len(rooms) + 1)]
    inputs = [
        kernel.mram(start, integer(width), room)
        for start, width, room in zip(starts, widths, rooms, strict=False)
    ]
    buffers = [kernel.wram(integer(width), block) for width in widths]
    place = starts[-1] if at is None else at
    loads: list[tuple[SSAValue, SSAValue, int]] = []
    for value, length in tables:
        room = padded(length, 32)
        host.broadcast(value, place)
        loads.append(
            (
                kernel.mram(place, integer(32), room),
                kernel.wram(integer(32), length, shared=True),
                length + length % 2,
            )
        )
        place += room
    if shared is not None:
        shared += [buffer for _, buffer, _ in loads]

    def load() -> Sequence[SSAValue]:
        for array, buffer, length in loads:
            kernel.read(array, 0, buffer, 0, length, length)
        return ()

    if loads:
        emit.branch(emit.compare("eq", kernel.tasklet, 0), load)
    table = kernel.wram(integer(bits), TASKLETS * entries, shared=True)
    base = emit.mul(kernel.tasklet, entries)
    with emit.loop(0, entries) as i:
        emit.store(number(emit, 0, bits), table, emit.add(base, i.index))
    kernel.barrier()
    scratch = [kernel.wram(integer(width), 1) for width in widths]
    results = kernel.wram(integer(bits), entries if entries < 256 else 1)
    with cyclic(kernel, each, block) as outer:
        count = emit.minimum(emit.sub(each, outer.index), block)
        for array, buffer in zip(inputs, buffers, strict=True):
            kernel.read(array, outer.index, buffer, 0, count, block)
        with emit.loop(0, count) as i:
            for buffer, copy in zip(buffers, scratch, strict=True):
                emit.store(emit.load(buffer, i.index), copy, 0)
            values, entry = function(kernel, [emit.load(copy, 0) for copy in scratch])
            for number_, value in enumerate(values):
                emit.store(value, results, number_)
            first = emit.add(base, entry)
            for number_ in range(len(values)):
                to = emit.add(first, number_)
                more = emit.load(results, number_)
                emit.store(binary(emit, AddiOp, emit.load(table, to), more), table, to)
    kernel.barrier()
    out = kernel.mram(place, integer(bits), padded(entries, bits))
    _add_tables(kernel, table, entries, out)
    host.launch(kernel)
    return host.pull(integer(bits), place, entries)


def _add_tables(kernel: KernelBuilder, table: SSAValue, entries: int, out: SSAValue) -> None:
    """Entries are added up over the tasklets' tables, and one tasklet writes them."""
    emit = kernel.emit
    with emit.loop(kernel.tasklet, entries, TASKLETS) as i:
        with emit.loop(1, TASKLETS, 1, [emit.load(table, i.index)]) as j:
            other = emit.load(table, emit.add(emit.mul(j.index, entries), i.index))
            j.next = [binary(emit, AddiOp, j.carried[0], other)]
        emit.store(j.results[0], table, i.index)
    kernel.barrier()

    def write() -> Sequence[SSAValue]:
        kernel.write(table, 0, out, 0, entries, entries)
        return ()

    emit.branch(emit.compare("eq", kernel.tasklet, 0), write)
