"""The cycles of a program of statements, as the cost model times it."""

from __future__ import annotations

from collections.abc import Sequence

from cim_opt.cost.cim_instructions import (
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Scalar,
    Transfer,
    VectorAdd,
    VectorClear,
)
from cim_opt.cost.cim_timing import Timing, simulate
from cim_opt.hardware.cim import CimMachine
from cim_opt.mapping.cim_statements import (
    Add,
    Clear,
    Copy,
    Load,
    Multiply,
    Repeat,
    Set,
    Statement,
)


def time(statements: Sequence[Statement], machine: CimMachine) -> Timing:
    """The cycles of a program. Raises UserError for what the machine has not got."""
    constants = {0, *_constants(statements)}
    return simulate([Scalar(len(constants)), *_nodes(statements, machine)], machine)


def _nodes(statements: Sequence[Statement], machine: CimMachine) -> list[Node]:
    nodes: list[Node] = []
    for statement in statements:
        match statement:
            case Set():
                if statement.offset:
                    nodes.append(Scalar(1))
            case Repeat():
                nodes.append(Loop(statement.count, tuple(_nodes(statement.body, machine))))
            case Copy():
                target = statement.target_memory
                nodes.append(Transfer(statement.bytes, statement.source_memory, target))
            case Load():
                bytes = statement.rows * statement.macros * machine.bit_columns // 8
                nodes.append(LoadWeights(bytes, statement.macros))
            case Multiply():
                nodes.append(Mvm(statement.macros, statement.bits))
            case Add():
                nodes.append(VectorAdd(statement.elements))
            case Clear():
                nodes.append(VectorClear(statement.elements))
    return nodes


def _constants(statements: Sequence[Statement]) -> set[int]:
    """The numbers that the code holds in registers: addresses, steps and bounds of loops."""
    found: set[int] = set()
    for statement in statements:
        match statement:
            case Set():
                found |= {statement.offset} if statement.offset else set()
                found |= {statement.source} if isinstance(statement.source, int) else set()
            case Repeat():
                found |= {1, statement.count} | _constants(statement.body)
            case Copy():
                pair = (statement.source, statement.target)
                found |= {value for value in pair if isinstance(value, int)}
            case Add():
                triple = (statement.target, statement.left, statement.right)
                found |= {value for value in triple if isinstance(value, int)}
            case Load() | Multiply() | Clear():
                pass
    return found
