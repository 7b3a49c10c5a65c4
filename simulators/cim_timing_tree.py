"""A `cim.program` as the events of cost/cim_timing.py: what is issued, in order, with its loops.

Scalar work is what a compiler would emit: one instruction for each operation on indices; constants
are loaded where they stand. A loop sets its counter once, and each iteration adds to it and
branches back; that a loop carries an address costs nothing where the address can stay in its
register, else one move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cim_opt.cost.cim_timing import (
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Scalar,
    Transfer,
    VectorAdd,
    VectorClear,
)
from cim_opt.dialects import cim
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.locations import location_of
from cim_opt.simulators.cim_program import EXPRESSIONS, constant_of, trips

WORD_BITS = 32

_COMPUTE: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.minsi": min,
    "arith.maxsi": max,
}
assert _COMPUTE.keys() == EXPRESSIONS.keys()

Known = dict[SSAValue, int | None]
"""Values of indices; None for what differs between iterations, or is an address of a tensor."""


class _Unknown(Exception):
    """A bound of this loop is not known."""

    def __init__(self, loop: scf.ForOp):
        super().__init__()
        self.loop = loop


def events_of(program: cim.ProgramOp, machine: CimMachine) -> tuple[Node, ...]:
    """All that a run of the program issues. Addresses do not matter.

    Raises UserError when a loop's bounds depend on the addresses of tensors.
    """
    known: Known = dict.fromkeys(program.body.block.args)
    try:
        return tuple(_block(program.body.block, known, machine))
    except _Unknown as unknown:
        raise UserError(
            "bounds of this loop depend on the addresses of tensors",
            "how often a loop of a cim.program runs is known before the launch",
            "count from 0 to a constant",
            location_of(unknown.loop),
        ) from unknown


def _block(block: Block, known: Known, machine: CimMachine) -> list[Node]:
    events: list[Node] = []
    scalars = 0
    for op in block.ops:
        if isinstance(op, arith.ConstantOp):
            known[op.result] = constant_of(op)
            scalars += 1
        elif op.name in _COMPUTE:
            known[op.results[0]] = _computed(op, known)
            scalars += 1
        elif isinstance(op, scf.ForOp):
            scalars += 1 + _moves_in(op)
            events += [Scalar(scalars), *_loop(op, known, machine)]
            scalars = 0
        elif type(op) in _EVENTS:
            events += [Scalar(scalars)] if scalars else []
            events.append(_EVENTS[type(op)](op, machine))
            scalars = 0
    last = block.last_op
    if isinstance(last, scf.YieldOp):
        scalars += _moves_back(last, block)
    return [*events, Scalar(scalars)] if scalars else events


def _computed(op: Operation, known: Known) -> int | None:
    left, right = (known[value] for value in op.operands)
    return None if left is None or right is None else _COMPUTE[op.name](left, right)


def _loop(op: scf.ForOp, known: Known, machine: CimMachine) -> list[Node]:
    bounds = [known[value] for value in (op.lb, op.ub, op.step)]
    low, high, step = bounds
    if low is None or high is None or step is None:
        raise _Unknown(op)
    rounds = trips(op, low, high, step)
    block = op.body.block
    known.update(dict.fromkeys(op.results))
    if not rounds:
        known.update(zip(op.results, (known[value] for value in op.iter_args), strict=True))
        return []
    known.update(dict.fromkeys(block.args))
    try:
        return [Loop(len(rounds), tuple(_block(block, known, machine)))]
    except _Unknown:
        return _unrolled(op, rounds, known, machine)


def _unrolled(op: scf.ForOp, rounds: range, known: Known, machine: CimMachine) -> list[Node]:
    """Iteration by iteration, for a loop whose inner loops do not all run equally often."""
    block = op.body.block
    carried = [known[value] for value in op.iter_args]
    events: list[Node] = []
    for counter in rounds:
        known.update(zip(block.args, (counter, *carried), strict=True))
        events.append(Loop(1, tuple(_block(block, known, machine))))
        last = block.last_op
        assert last is not None
        carried = [known[value] for value in last.operands]
    known.update(zip(op.results, carried, strict=True))
    return events


def _moves_in(op: scf.ForOp) -> int:
    """Carried values that need a register of their own: something else uses theirs again."""
    return sum(
        not value.has_one_use() or value.owner not in (op.parent_block(), *_made_beside(op))
        for value in op.iter_args
    )


def _made_beside(op: scf.ForOp) -> Sequence[Operation]:
    block = op.parent_block()
    return () if block is None else tuple(block.ops)


def _moves_back(op: scf.YieldOp, block: Block) -> int:
    """Values that an iteration passes on in another register than it keeps them in."""
    moves = 0
    for argument, value in zip(block.args[1:], op.operands, strict=True):
        if isinstance(value, BlockArgument):
            moves += value is not argument
        else:
            moves += value.owner.parent_block() is not block  # pyright: ignore
    return moves


def _copy(op: Operation, machine: CimMachine) -> Node:
    assert isinstance(op, cim.CopyOp)
    source, target = op.source_memory.data.value, op.target_memory.data.value
    return Transfer(op.bytes.value.data, source, target)


def _load_weights(op: Operation, machine: CimMachine) -> Node:
    assert isinstance(op, cim.LoadWeightsOp)
    macros, rows = op.macros.value.data, op.rows.value.data
    return LoadWeights(rows * macros * machine.bit_columns // 8, macros)


def _mvm(op: Operation, machine: CimMachine) -> Node:
    assert isinstance(op, cim.MvmOp)
    return Mvm(op.macros.value.data, op.bits.value.data)


def _vector_add(op: Operation, machine: CimMachine) -> Node:
    assert isinstance(op, cim.VectorAddOp)
    return VectorAdd(op.elements.value.data, WORD_BITS)


def _vector_clear(op: Operation, machine: CimMachine) -> Node:
    assert isinstance(op, cim.VectorClearOp)
    return VectorClear(op.elements.value.data)


_EVENTS: Mapping[type[Operation], Callable[[Operation, CimMachine], Node]] = {
    cim.CopyOp: _copy,
    cim.LoadWeightsOp: _load_weights,
    cim.MvmOp: _mvm,
    cim.VectorAddOp: _vector_add,
    cim.VectorClearOp: _vector_clear,
}
