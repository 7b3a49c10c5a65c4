"""Counts what a lowered function launches, packs and unpacks, without running it."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, SymbolTable
from xdsl.utils.hints import isa

from cim_opt.dialects import cim
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.cim_account import CimAccount
from cim_opt.simulators.cim_launch import place, program_of
from cim_opt.simulators.cim_program import check_program, trips
from cim_opt.simulators.elementwise import dtype_of
from cim_opt.simulators.host_cost import Work, host_work
from cim_opt.simulators.integer_functions import Values


def count_function(function: func.FuncOp, book: CimAccount) -> None:
    """Adds one call of a function to `book`. Raises UserError when data decides."""
    _count_block(function.body.block, 1, book)


def _count_block(block: Block, times: int, book: CimAccount) -> None:
    for op in block.ops:
        match op:
            case cim.LaunchOp():
                check_program(program_of(op), book.machine)
                place(op, book.machine)
                book.launch(op, times)
            case cim.PackOp():
                book.pack(op, times)
            case cim.UnpackOp():
                book.unpack(op, times)
            case func.CallOp():
                callee = SymbolTable.lookup_symbol(op, op.callee)
                assert isinstance(callee, func.FuncOp)
                _count_block(callee.body.block, times, book)
            case scf.ForOp() if _counts(op):
                bounds = [_constant(op, value) for value in (op.lb, op.ub, op.step)]
                _count_block(op.body.block, times * len(trips(op, *bounds)), book)
            case _ if _counts(op):
                raise UserError(
                    f"'{op.name}' decides by data what is launched",
                    "cycles are counted without data",
                    "run the program instead",
                    location_of(op),
                )
            case _ if not op.has_trait(IsTerminator):
                book.host(*_host_work(op), times)
            case _:
                pass


def _host_work(op: Operation) -> Work:
    """Work of the host on values of the operation's types."""
    values = [[_like(op, value) for value in some] for some in (op.operands, op.results)]
    return host_work(op, *values)


def _like(op: Operation, value: SSAValue) -> Values:
    """Something of the type's shape that takes no memory."""
    shape = value.type.get_shape() if isa(value.type, TensorType) else ()
    if DYNAMIC_INDEX in shape:
        raise UserError(
            f"'{op.name}' has a length that data decides",
            "cycles are counted without data",
            "run the program instead",
            location_of(op),
        )
    return np.broadcast_to(np.zeros((), dtype_of(value.type)), shape)


def _counts(op: Operation) -> bool:
    """Whether something that is counted lies in a region of the operation."""
    return any(
        isinstance(inner, cim.LaunchOp | cim.PackOp | cim.UnpackOp | func.CallOp)
        for region in op.regions
        for inner in region.walk()
    )


def _constant(op: scf.ForOp, value: SSAValue) -> int:
    source = value.owner
    if isinstance(source, arith.ConstantOp) and isa(source.value, IntegerAttr):
        return source.value.value.data
    raise UserError(
        f"bounds of '{op.name}' are not constants",
        "cycles are counted without data",
        "run the program instead",
        location_of(op),
    )
