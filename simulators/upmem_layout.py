"""What can be said of a kernel's memory before it runs: sizes, overlaps, who writes when."""

from __future__ import annotations

from itertools import combinations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.locations import location_of

Phases = frozenset[int]


def _bytes(value: SSAValue) -> int:
    attr = value.type
    assert isa(attr, MemRefType)
    return attr.get_shape()[0] * upmem.element_bytes(attr.element_type)


def check_layout(kernel: upmem.KernelOp, machine: UpmemMachine) -> int:
    """Bytes of WRAM that a kernel's buffers take.

    Raises UserError when buffers, arrays or tasklets do not fit the machine, or arrays overlap.
    """
    tasklets = kernel.tasklets.value.data
    name = kernel.sym_name.data
    if tasklets > machine.tasklets_max:
        raise UserError(
            f"kernel @{name} has {tasklets} tasklets",
            f"{machine.name} runs at most {machine.tasklets_max} on a DPU",
            "use fewer",
            location_of(kernel),
        )
    _check_arrays([op for op in kernel.body.walk() if isinstance(op, upmem.MramOp)], machine)
    private = shared = 0
    for op in kernel.body.walk():
        if isinstance(op, upmem.WramOp):
            # Buffers start at multiples of 8 bytes.
            size = _bytes(op.result) + -_bytes(op.result) % upmem.DMA_ALIGN
            if op.shared is None:
                private += size
            else:
                shared += size
    total, heap = private * tasklets + shared, machine.wram_heap(tasklets)
    if total > heap:
        raise UserError(
            f"kernel @{name} takes {total} bytes of WRAM: {tasklets} tasklets x {private} bytes "
            f"+ {shared} shared",
            f"{heap} bytes are left by {tasklets} stacks",
            "use smaller blocks or fewer tasklets",
            location_of(kernel),
        )
    return total


def _check_arrays(arrays: list[upmem.MramOp], machine: UpmemMachine) -> None:
    for op in arrays:
        end = op.offset.value.data + _bytes(op.result)
        if end > machine.mram_bytes:
            raise UserError(
                f"'{op.name}': the array ends at byte {end}",
                f"the MRAM of a DPU of {machine.name} has {machine.mram_bytes} bytes",
                "use more DPUs, or rounds",
                location_of(op),
            )
    for a, b in combinations(arrays, 2):
        first, second = sorted((a, b), key=lambda op: op.offset.value.data)
        start, other = first.offset.value.data, second.offset.value.data
        if start != other and other < start + _bytes(first.result):
            raise UserError(
                f"'{second.name}': the array at byte {other} overlaps the one at byte {start}",
                f"which ends at byte {start + _bytes(first.result)}",
                "move one of them, or give both the same offset",
                location_of(second),
            )


def writing_phases(kernel: upmem.KernelOp) -> dict[SSAValue, Phases]:
    """For each array and shared buffer, the phases (0 up to the first barrier) that write to it.

    MRAM arrays at the same offset are the same memory and have the same phases.
    """
    phases: dict[SSAValue, set[int]] = {}
    phase = 0
    for top in kernel.body.block.ops:
        if isinstance(top, upmem.BarrierOp):
            phase += 1
        for op in top.walk():
            written = _written(op)
            if written is not None:
                phases.setdefault(written, set()).add(phase)
    by_offset: dict[int, set[int]] = {}
    arrays = [op for op in kernel.body.walk() if isinstance(op, upmem.MramOp)]
    for op in arrays:
        by_offset.setdefault(op.offset.value.data, set()).update(phases.get(op.result, ()))
    for op in arrays:
        phases[op.result] = by_offset[op.offset.value.data]
    return {value: frozenset(found) for value, found in phases.items()}


def _written(op: object) -> SSAValue | None:
    if isinstance(op, memref.StoreOp):
        return op.memref
    if isinstance(op, upmem.MramReadOp):
        return op.wram
    if isinstance(op, upmem.MramWriteOp):
        return op.mram
    return None
