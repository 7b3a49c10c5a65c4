"""`upmem-unroll`: innermost loops of kernels do several iterations at once.

Before:

    scf.for %i = %c0 to %n step %c1 {
      %x = memref.load %a[%i] : memref<256xi32, #upmem<space wram>>
      memref.store %x, %b[%i] : memref<256xi32, #upmem<space wram>>
    }

After, with `factor=2`:

    %0 = arith.andi %n, %c-2 : index
    scf.for %i = %c0 to %0 step %c2 {
      %x = memref.load %a[%i] ...
      memref.store %x, %b[%i] ...
      %1 = arith.addi %i, %c1 : index
      %x_1 = memref.load %a[%1] ...
      memref.store %x_1, %b[%1] ...
    }
    scf.for %i = %0 to %n step %c1 { ... }

A DPU takes one or two instructions for each iteration of a loop and for its pointers; the constants
of the copies go into the offsets of loads and stores, which cost nothing. Without `factor` it is
chosen by the size of the body; loops whose bodies are large, and kernels that would outgrow the
instruction memory, are left as they are.

Before that, loops that are known to do few iterations (a given `factor` at the most) become these,
unless the factor is 1. A loop around one that did is then itself innermost. Before:

    %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%acc = %start) -> (i32) {
      %x = memref.load %a[%i] : memref<256xi32, #upmem<space wram>>
      %s = arith.addi %acc, %x : i32
      scf.yield %s : i32
    }

After:

    %x = memref.load %a[%c0] : memref<256xi32, #upmem<space wram>>
    %r = arith.addi %start, %x : i32
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from cim_opt.dialects.upmem import KernelOp
from cim_opt.errors import UserError

FACTORS = ((12, 8), (24, 4), (48, 2))
"""Operations of a body up to which a loop does so many iterations at once."""

KERNEL_OPERATIONS = 1200
"""Operations that a kernel has at most after unrolling; instruction memory holds 4,096."""

FEW_OPERATIONS = 64
"""Operations of all iterations together up to which a loop of known length is no loop any more."""

MOST = 64
"""The largest factor."""


@dataclass(frozen=True)
class UpmemUnrollPass(ModulePass):
    """Unrolls innermost loops of kernels; see the module's documentation."""

    name = "upmem-unroll"

    factor: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.factor is not None and not 1 <= self.factor <= MOST:
            raise UserError(
                f"unrolling by {self.factor}",
                f"a loop does 1 to {MOST} iterations at once",
                "choose a number in that range, or leave it out",
            )
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                _unroll_kernel(kernel, self.factor)


def _unroll_kernel(kernel: KernelOp, factor: int | None) -> None:
    room = KERNEL_OPERATIONS - _size(kernel.body.block)
    if factor != 1:
        room -= _straighten(kernel, factor, room)
    for loop in [op for op in kernel.walk() if isinstance(op, scf.ForOp) and _innermost(op)]:
        size = _size(loop.body.block)
        times = _chosen(size) if factor is None else factor
        if times == 1 or constant(loop.step) != 1 or size * times > room:
            continue
        room -= size * times
        _unroll(loop, times)


def _straighten(kernel: KernelOp, factor: int | None, room: int) -> int:
    """Replaces loops of few iterations by these, inner ones first; the operations that adds.

    `room` are those that it may add. With a factor it is loops of at most so many iterations.
    """
    added = 0
    for loop in reversed([op for op in kernel.walk() if isinstance(op, scf.ForOp)]):
        times = _times(loop)
        if times is None or not _innermost(loop) or (factor and times > factor):
            continue
        size = _size(loop.body.block)
        if times == 1 or (size * times <= FEW_OPERATIONS and size * times <= room - added):
            added += size * (times - 1)
            _replace(loop, _iterations(loop, times))
    return added


def _times(loop: scf.ForOp) -> int | None:
    """How many iterations a loop of step 1 does, if that is known."""
    low, high = constant(loop.lb), constant(loop.ub)
    if low is None or high is None or constant(loop.step) != 1:
        return None
    return max(high - low, 0)


def _iterations(loop: scf.ForOp, times: int) -> Sequence[SSAValue]:
    """Copies of the body before a loop, as many as it does iterations; what they yield."""
    build = _Builder(loop)
    low = constant(loop.lb)
    assert low is not None
    carried: Sequence[SSAValue] = loop.iter_args
    for number in range(times):
        block = Block()
        carried = _copy(loop.body.block, block, [build.number(low + number), *carried])
        for op in list(block.ops):
            op.detach()
            build.put(op)
    return carried


def _innermost(loop: scf.ForOp) -> bool:
    """True when the loop holds nothing but arithmetic, WRAM accesses and branches on them."""
    return not any(
        isinstance(op, scf.ForOp) or op.name.startswith("upmem.") for op in loop.body.block.walk()
    )


def _size(block: Block) -> int:
    """Operations that may take instructions."""
    return sum(not isinstance(op, arith.ConstantOp | scf.YieldOp) for op in block.walk())


def _chosen(size: int) -> int:
    return next((factor for most, factor in FACTORS if size <= most), 1)


def constant(value: SSAValue) -> int | None:
    """The number that an index is, if it is a constant."""
    if isinstance(value.owner, arith.ConstantOp) and isa(value.owner.value, IntegerAttr):
        return value.owner.value.value.data
    return None


class _Builder:
    """Inserts operations before a loop; constants once."""

    def __init__(self, loop: scf.ForOp):
        self.loop = loop
        self._constants: dict[int, SSAValue] = {}

    def insert(self, op: Operation) -> SSAValue:
        """Inserts an operation with one result, and returns that."""
        self.put(op)
        return op.results[0]

    def put(self, op: Operation) -> None:
        block = self.loop.parent
        assert block is not None
        block.insert_op_before(op, self.loop)

    def number(self, value: int) -> SSAValue:
        if value not in self._constants:
            op = arith.ConstantOp(IntegerAttr(value, IndexType()))
            self._constants[value] = self.insert(op)
        return self._constants[value]


def _unroll(loop: scf.ForOp, factor: int) -> None:
    """Puts a loop of copies, and one for the rest unless there is none, in the place of `loop`."""
    build = _Builder(loop)
    low, high = constant(loop.lb), constant(loop.ub)
    known = None if low is None or high is None else max(high - low, 0)
    if known is not None:
        assert low is not None
        middle = build.number(low + known // factor * factor)
    else:
        middle = _rounded(build, loop, factor)
    carried: Sequence[SSAValue] = loop.iter_args
    if known is None or known >= factor:
        block = _copies(build, loop, factor)
        main = scf.ForOp(loop.lb, middle, build.number(factor), carried, Region(block))
        _insert_loop(loop, main)
        carried = main.results
    if known is not None and known % factor == 0:
        _replace(loop, carried)
        return
    rest = scf.ForOp(middle, loop.ub, loop.step, carried, loop.detach_region(0))
    _insert_loop(loop, rest)
    _replace(loop, rest.results)


def _rounded(build: _Builder, loop: scf.ForOp, factor: int) -> SSAValue:
    """Where the copies end: the loop's end, less what does not fill a whole step."""
    low = constant(loop.lb)
    count = loop.ub
    if low != 0:
        count = build.insert(arith.SubiOp(loop.ub, loop.lb))
    if low != 0 or not _counted(loop.ub):
        count = build.insert(arith.MaxSIOp(count, build.number(0)))
    if factor & (factor - 1) == 0:
        whole = build.insert(arith.AndIOp(count, build.number(-factor)))
    else:
        steps = build.insert(arith.DivUIOp(count, build.number(factor)))
        whole = build.insert(arith.MuliOp(steps, build.number(factor)))
    return whole if low == 0 else build.insert(arith.AddiOp(loop.lb, whole))


def _counted(value: SSAValue) -> bool:
    """True for a count that cannot be negative: the lesser of two, unsigned."""
    return isinstance(value.owner, arith.MinUIOp)


def _copies(build: _Builder, loop: scf.ForOp, factor: int) -> Block:
    """A body that does `factor` iterations, one behind the other."""
    body = loop.body.block
    block = Block(arg_types=[arg.type for arg in body.args])
    for old, new in zip(body.args, block.args, strict=True):
        new.name_hint = old.name_hint
    carried: list[SSAValue] = list(block.args[1:])
    for number in range(factor):
        index: SSAValue = block.args[0]
        if number:
            shifted = arith.AddiOp(index, build.number(number))
            block.add_op(shifted)
            index = shifted.result
        carried = _copy(body, block, [index, *carried])
    block.add_op(scf.YieldOp(*carried))
    return block


def _copy(body: Block, target: Block, args: Sequence[SSAValue]) -> list[SSAValue]:
    """Copies a body's operations; what it yields."""
    values = dict[SSAValue, SSAValue](zip(body.args, args, strict=True))
    for op in body.ops:
        if isinstance(op, scf.YieldOp):
            return [values.get(value, value) for value in op.operands]
        target.add_op(op.clone(values))
    raise AssertionError("a loop ends in scf.yield")


def _insert_loop(before: scf.ForOp, loop: scf.ForOp) -> None:
    block = before.parent
    assert block is not None
    loop.location = before.location
    block.insert_op_before(loop, before)


def _replace(loop: scf.ForOp, values: Sequence[SSAValue]) -> None:
    for old, new in zip(loop.results, values, strict=True):
        new.name_hint = new.name_hint or old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()
