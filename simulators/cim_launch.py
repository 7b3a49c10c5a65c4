"""Places the tensors of a launch in global memory, and takes its result from there."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue, Use
from xdsl.traits import SymbolTable
from xdsl.utils.hints import isa

from cim_opt.dialects import cim
from cim_opt.dialects.cim import Memory
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.locations import location_of
from cim_opt.simulators.cim_arithmetic import packed_bytes
from cim_opt.simulators.cim_memory import Array, MachineState
from cim_opt.simulators.elementwise import dtype_of

BOUNDS = 3
"""Operands of a loop before those that it carries."""

HALVES = 4
"""Weights of so many bits share bytes."""


@dataclass(frozen=True)
class Placement:
    """Where a launch's operands lie, and last its result: addresses, and which lie in halves."""

    addresses: tuple[int, ...]
    halves: tuple[bool, ...]


def program_of(op: cim.LaunchOp) -> cim.ProgramOp:
    """The program that a launch runs."""
    program = SymbolTable.lookup_symbol(op, op.program)
    assert isinstance(program, cim.ProgramOp)
    return program


def width_of(type: Attribute) -> int:
    """Bits of an element of a tensor."""
    assert isa(type, TensorType)
    assert isa(type.element_type, IntegerType)
    return type.element_type.width.data


def tensor_bytes(type: Attribute, halves: bool = False) -> int:
    """Bytes of a tensor in global memory; with `halves`, two elements share one."""
    assert isa(type, TensorType)
    count = prod(type.get_shape())
    return -(-count // 2) if halves else count * dtype_of(type).itemsize


def place(op: cim.LaunchOp, machine: CimMachine) -> Placement:
    """One tensor after another, each from a multiple of what the memory delivers in a cycle.

    Elements take whole bytes, except weights of 4 bits: two of an operand that weights are loaded
    from share a byte. Raises UserError when the tensors do not fit.
    """
    program = program_of(op)
    halves = tuple(
        width_of(value.type) == HALVES and _holds_weights(address)
        for value, address in zip((*op.args, op.result), program.body.block.args, strict=True)
    )
    align, end = machine.global_width_bytes, 0
    addresses: list[int] = []
    for value, shared in zip((*op.args, op.result), halves, strict=True):
        start = -(-end // align) * align
        addresses.append(start)
        end = start + tensor_bytes(value.type, shared)
    if end > machine.global_bytes:
        raise UserError(
            f"the tensors of '{op.name}' {op.program} take {end:,} bytes",
            f"the global memory of {machine.name} has {machine.global_bytes:,}",
            "split the work into several launches, or use a machine with more memory",
            location_of(op),
        )
    return Placement(tuple(addresses), halves)


def in_halves(packed: SSAValue) -> bool:
    """Whether a tensor is launched on as weights of 4 bits, two of which share a byte."""
    return width_of(packed.type) == HALVES and any(
        isinstance(use.operation, cim.LaunchOp)
        and _holds_weights(program_of(use.operation).body.block.args[use.index])
        for use in packed.uses
    )


def _holds_weights(address: SSAValue) -> bool:
    """Whether weights are loaded from this address, or from one computed from it."""
    seen: set[SSAValue] = set()
    found = [address]
    while found:
        value = found.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            if isinstance(use.operation, cim.LoadWeightsOp):
                return True
            found += _passed_to(use)
    return False


def _passed_to(use: Use) -> list[SSAValue]:
    """The values that a use computes, or passes a value on to."""
    user = use.operation
    if isinstance(user, scf.ForOp):
        carried = use.index - BOUNDS
        return [user.body.block.args[1 + carried], user.results[carried]] if carried >= 0 else []
    loop = user.parent_op()
    if isinstance(user, scf.YieldOp) and isinstance(loop, scf.ForOp):
        return [loop.body.block.args[1 + use.index], loop.results[use.index]]
    return list(user.results)


def write_operands(
    op: cim.LaunchOp, placement: Placement, state: MachineState, values: tuple[Any, ...]
) -> None:
    """Puts the operands' bytes where they are placed."""
    memory = state.memories[Memory.GLOBAL]
    for address, halves, value in zip(placement.addresses, placement.halves, values, strict=False):
        memory.place(address, packed_bytes(value, halves))


def read_result(
    op: cim.LaunchOp, placement: Placement, state: MachineState
) -> tuple[Array, Array | None]:
    """The result, and which of its elements (bool) are not known; None when all are."""
    memory, start = state.memories[Memory.GLOBAL], placement.addresses[-1]
    type = op.result.type
    size, shape = tensor_bytes(type), type.get_shape()
    data = np.array(np.frombuffer(memory.data, np.uint8, size, start))
    values = data.view(dtype_of(type)).reshape(shape)
    if memory.all_known(start, start + size):
        return values, None
    known = np.frombuffer(memory.known, np.bool_, size, start)
    junk = np.asarray(~known.reshape(prod(shape), -1).all(axis=1))
    return values, junk.reshape(shape)
