"""CINM's programs: VA, GEMV, MLP, a launch for every tile of a fixed size.

A tasklet's part of an operand is one buffer of WRAM, so that a tile of all tasklets is small; the
host pushes a tile, launches, and pulls, one tile after another, and sends the vector each time.
Tiles are of whole rows here, which lie one behind the other: laying parts of rows out for a
transfer is not counted. (Khan et al., CINM, and its code.)
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue

from cim_opt.dialects import upmem
from cim_opt.dialects.pattern import GroupOp, ReduceOp, YieldOp, vector_length, vector_type
from cim_opt.dialects.upmem import element_bytes
from cim_opt.lowering.emit import Index
from cim_opt.lowering.host_vectors import empty
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.tools.pnm_baselines.frame import Array, Host, binary, integer, number, padded, widened
from cim_opt.tools.pnm_baselines.prim_rows import next_input

TASKLETS = 16
SLICE = 256
"""Elements of a tasklet's part of a vector: 1 KB, of each operand."""
PIECE_BYTES = 2048


def _push_tile(host: Host, value: SSAValue, start: Index, offset: int, each: int) -> None:
    emit = host.emit
    first, count = emit.value(start), emit.value(each)
    emit.insert(upmem.PushOp(value, first, host.set, offset, count, count))


def _pull_tile(host: Host, dest: SSAValue, start: Index, offset: int, each: int) -> SSAValue:
    emit = host.emit
    op = upmem.PullOp(host.set, offset, emit.value(each), dest, emit.value(start))
    return emit.insert(op).result


def va(dpus: int, a: Array, b: Array) -> ModuleOp:
    """Tiles of 256 elements a tasklet."""
    host = Host(dpus, (a, b))
    each = len(a) // dpus
    tile = min(TASKLETS * SLICE, each)
    room = padded(tile, 32)
    kernel = host.kernel("tile", TASKLETS)
    emit = kernel.emit
    arrays = [kernel.mram(n * room, integer(32), room) for n in range(3)]
    x, y = (kernel.wram(integer(32), SLICE) for _ in range(2))
    low = emit.minimum(emit.mul(kernel.tasklet, SLICE), tile)
    count = emit.minimum(emit.sub(tile, low), SLICE)

    def add() -> list[SSAValue]:
        kernel.read(arrays[0], low, x, 0, count, SLICE)
        kernel.read(arrays[1], low, y, 0, count, SLICE)
        with emit.loop(0, count) as i:
            total = binary(emit, AddiOp, emit.load(x, i.index), emit.load(y, i.index))
            emit.store(total, y, i.index)
        kernel.write(y, 0, arrays[2], low, count, SLICE)
        return []

    emit.branch(emit.compare("ugt", count, 0), add)
    dest = empty(host.emit, integer(32), len(a))
    with host.emit.loop(0, len(a), dpus * tile, [dest]) as loop:
        _push_tile(host, host.args[0], loop.index, 0, tile)
        _push_tile(host, host.args[1], loop.index, room, tile)
        host.launch(kernel)
        loop.next = [_pull_tile(host, loop.carried[0], loop.index, 2 * room, tile)]
    return host.module(loop.results[0])


def gemv(dpus: int, matrix: Array, vector: Array) -> ModuleOp:
    """Four tasklets a row, so that a tile has four rows; the host adds up what they found."""
    host = Host(dpus, (matrix, vector))
    size = len(vector) * matrix.dtype.itemsize
    parts = 4 if size % 32 == 0 else 1
    y = _product(host, "gemv", host.args[0], host.args[1], parts, relu=False)
    return host.module(y)


def mlp(dpus: int, first: Array, x: Array, *others: Array) -> ModuleOp:
    """A row a tasklet."""
    host = Host(dpus, (first, x, *others))
    value, y = host.args[1], host.args[1]
    for place, weights in enumerate((host.args[0], *host.args[2:])):
        y = _product(host, f"mlp_{place}", weights, value, 1, relu=True)
        value = next_input(host, y, len(x), 8 * x.dtype.itemsize)
    return host.module(y)


def _product(
    host: Host, name: str, matrix: SSAValue, vector: SSAValue, parts: int, relu: bool
) -> SSAValue:
    """A matrix by a vector, tile by tile; rows are cut in so many parts."""
    emit = host.emit
    columns, length = _length(vector), _length(matrix)
    bits = 8 * element_bytes(vector_type(matrix).element_type)
    rows = length // columns // host.dpus
    tile = min(TASKLETS // parts, rows)
    room, vector_room = padded(tile * columns, bits), padded(columns, bits)
    kernel = _tile_kernel(host, name, tile, columns, bits, parts, relu)
    out_at = room + vector_room
    found = empty(emit, integer(32), rows * host.dpus * parts)
    with emit.loop(0, rows * host.dpus, tile * host.dpus, [found]) as loop:
        _push_tile(host, matrix, emit.mul(loop.index, columns), 0, tile * columns)
        host.broadcast(vector, room)
        host.launch(kernel)
        start = emit.mul(loop.index, parts)
        loop.next = [_pull_tile(host, loop.carried[0], start, out_at, tile * parts)]
    return loop.results[0] if parts == 1 else _added(host, loop.results[0], parts)


def _tile_kernel(
    host: Host, name: str, tile: int, columns: int, bits: int, parts: int, relu: bool
) -> KernelBuilder:
    kernel = host.kernel(name, TASKLETS)
    emit = kernel.emit
    room, vector_room = padded(tile * columns, bits), padded(columns, bits)
    matrix = kernel.mram(0, integer(bits), room)
    vector = kernel.mram(room, integer(bits), vector_room)
    out = kernel.mram(room + vector_room, integer(32), padded(tile * parts, 32))
    share = columns // parts
    piece = min(PIECE_BYTES * 8 // bits // 2, share)
    a, x = (kernel.wram(integer(bits), piece) for _ in range(2))
    results = kernel.wram(integer(32), TASKLETS + 1, shared=True)
    mine = kernel.tasklet
    emit.store(number(emit, 0), results, mine)

    def multiply() -> list[SSAValue]:
        row = emit.div(mine, parts)
        first = emit.mul(emit.sub(mine, emit.mul(row, parts)), share)
        with emit.loop(0, share, piece) as outer:
            at = emit.add(first, outer.index)
            kernel.read(matrix, emit.add(emit.mul(row, columns), at), a, 0, piece, piece)
            kernel.read(vector, at, x, 0, piece, piece)
            with emit.loop(0, piece) as i:
                left, right = (widened(emit, emit.load(b, i.index)) for b in (a, x))
                product = binary(emit, arith.MuliOp, left, right)
                total = binary(emit, AddiOp, emit.load(results, mine), product)
                emit.store(total, results, mine)
        if relu:
            value = emit.load(results, mine)
            emit.store(binary(emit, arith.MaxSIOp, value, number(emit, 0)), results, mine)
        return []

    emit.branch(emit.compare("ult", mine, tile * parts), multiply)
    kernel.barrier()

    def write() -> list[SSAValue]:
        kernel.write(results, 0, out, 0, tile * parts, tile * parts)
        return []

    emit.branch(emit.compare("eq", mine, 0), write)
    return kernel


def _added(host: Host, values: SSAValue, parts: int) -> SSAValue:
    """The sums of each row's parts, by the host."""
    element = integer(32)
    block = Block(arg_types=[TensorType(element, [parts])])
    inner = Block(arg_types=[element, element])
    total = AddiOp(inner.args[0], inner.args[1])
    inner.add_ops([total, YieldOp(total)])
    zero = arith.ConstantOp.from_int_and_width(0, element)
    fold = ReduceOp([block.args[0]], [zero.result], [], Region(inner))
    block.add_ops([zero, fold, YieldOp(fold)])
    types = [TensorType(element, [_length(values) // parts])]
    return host.emit.insert(GroupOp([values], [], types, Region(block), [parts])).results[0]


def _length(value: SSAValue) -> int:
    return vector_length(value)
