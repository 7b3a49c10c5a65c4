"""`upmem-share`: kernels compute and load once what they use several times.

Before:

    %1 = arith.addi %i, %c1 : index
    %x = memref.load %a[%1] : memref<256xi64, #upmem<space wram>>
    scf.if %keep {
      %2 = arith.addi %i, %c1 : index
      %y = memref.load %a[%2] : memref<256xi64, #upmem<space wram>>
      memref.store %y, %b[%p] : memref<256xi64, #upmem<space wram>>
    }

After:

    %1 = arith.addi %i, %c1 : index
    %x = memref.load %a[%1] : memref<256xi64, #upmem<space wram>>
    scf.if %keep {
      memref.store %x, %b[%p] : memref<256xi64, #upmem<space wram>>
    }

Constants that are added one after the other are added at once, so that iterations of an unrolled
loop see that the second element of one window is the first of the next. A value is known in its
block and those nested in it; a loaded one until its array, or with a barrier or a mutex any array,
may have changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free
from xdsl.utils.hints import isa

from cim_opt.dialects import upmem

Key = tuple[Hashable, ...]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class UpmemSharePass(ModulePass):
    """Removes repeated computations and loads of kernels; see the module's documentation."""

    name = "upmem-share"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, upmem.KernelOp):
                _share(kernel.body.block, Known())
                _erase_unused(kernel)


@dataclass
class Known:
    """Values that were computed, and elements that were loaded, by how."""

    values: dict[Key, SSAValue] = field(default_factory=dict[Key, SSAValue])
    loads: dict[tuple[SSAValue, SSAValue], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, SSAValue], SSAValue]
    )

    def inside(self) -> Known:
        """What is known at the start of a nested block."""
        return Known(dict(self.values), dict(self.loads))

    def forget(self, op: Operation) -> None:
        """Forgets what `op`, or what is nested in it, may change."""
        for inner in op.walk():
            if isinstance(inner, memref.StoreOp):
                self._forget_array(inner.memref)
            elif isinstance(inner, upmem.MramReadOp):
                self._forget_array(inner.wram)
            elif isinstance(inner, upmem.BarrierOp | upmem.CriticalOp):
                self.loads.clear()

    def _forget_array(self, array: SSAValue) -> None:
        for key in [key for key in self.loads if key[0] is array]:
            del self.loads[key]


def _share(block: Block, known: Known) -> None:
    for op in list(block.ops):
        if isinstance(op, memref.LoadOp) and len(op.indices) == 1:
            _replace_or_note(op, known.loads, (op.memref, op.indices[0]))
            continue
        if op.regions:
            _nested(op, known)
        elif _is_shared(op):
            _fold_constants(op, known)
            _replace_or_note(op, known.values, _key(op))
        known.forget(op)


def _nested(op: Operation, known: Known) -> None:
    """Goes into the regions of an operation; what a loop changes is not known in its body."""
    if not isinstance(op, scf.IfOp):
        known.forget(op)
    for region in op.regions:
        for block in region.blocks:
            _share(block, known.inside())


def _replace_or_note(op: Operation, known: dict[K, SSAValue], key: K) -> None:
    if key not in known:
        known[key] = op.results[0]
        return
    op.results[0].replace_all_uses_with(known[key])
    op.detach()
    op.erase()


def _is_pure(op: Operation) -> bool:
    return (
        len(op.results) == 1 and op.name.startswith(("arith.", "math.")) and is_side_effect_free(op)
    )


def _is_shared(op: Operation) -> bool:
    """A comparison is made again for each branch: it takes no instruction of its own there."""
    return _is_pure(op) and not isinstance(op, arith.CmpiOp)


def _key(op: Operation) -> Key:
    return (
        op.name,
        tuple(op.operands),
        frozenset(op.properties.items()),
        frozenset(op.attributes.items()),
        op.results[0].type,
    )


def _fold_constants(op: Operation, known: Known) -> None:
    """(x + a) + b becomes x + (a + b), for indices."""
    if not isinstance(op, arith.AddiOp) or not isinstance(op.result.type, IndexType):
        return
    inner, more = op.lhs, _index(op.rhs)
    if more is None or not isinstance(inner, OpResult) or not isinstance(inner.op, arith.AddiOp):
        return
    first = _index(inner.op.rhs)
    if first is None:
        return
    number = arith.ConstantOp(IntegerAttr(first + more, IndexType()))
    block = op.parent
    assert block is not None
    block.insert_op_before(number, op)
    total = known.values.setdefault(_key(number), number.result)
    if total is not number.result:
        number.detach()
        number.erase()
    op.operands[0] = inner.op.lhs
    op.operands[1] = total


def _index(value: SSAValue) -> int | None:
    """The number that an index is, if it is a constant."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        number = value.op.value
        return number.value.data if isa(number, IntegerAttr) else None
    return None


def _erase_unused(kernel: upmem.KernelOp) -> None:
    """Erases what nothing uses, from the last operation to the first."""
    for op in reversed(list(kernel.walk())):
        loads = isinstance(op, memref.LoadOp)
        if (loads or _is_pure(op)) and op.results[0].first_use is None:
            op.detach()
            op.erase()
