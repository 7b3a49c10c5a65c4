"""A slow second opinion on pattern programs: one element at a time, in the order as written.

Shares nothing with the batched evaluator but the meaning of single arith and math operations.
Values are NumPy scalars, tensors are Python lists of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from cim_opt.dialects.pattern import FilterBase, FoldOp, PatternOp, ScanOp
from cim_opt.simulators.elementwise import constant_value, dtype_of, function_of, quiet

Environment = dict[SSAValue, Any]


@quiet()
def oracle(module: ModuleOp, name: str, args: Sequence[Any]) -> list[Any]:
    """What function `name` returns: NumPy scalars, and arrays."""
    function = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)
    values = [list(arg) if np.ndim(arg) else arg for arg in args]
    results = _block(function.body.block, values, {})
    types = function.function_type.outputs
    return [
        np.array(value, dtype_of(type)) if isinstance(value, list) else value
        for value, type in zip(results, types, strict=True)
    ]


def _block(block: Block, args: Sequence[Any], outer: Environment) -> list[Any]:
    values = {**outer, **dict(zip(block.args, args, strict=True))}
    for op in block.ops:
        operands = [values[value] for value in op.operands]
        if op is block.last_op:
            return operands
        values.update(zip(op.results, _operation(op, operands, values), strict=True))
    raise AssertionError("no terminator")


def _operation(op: Operation, args: list[Any], values: Environment) -> Sequence[Any]:
    match op:
        case arith.ConstantOp():
            constant = constant_value(op)
            return [list(constant) if np.ndim(constant) else constant]
        case PatternOp():
            return _pattern(op, args)
        case scf.IfOp():
            region = op.true_region if args[0] else op.false_region
            return _block(region.block, [], values) if region.blocks else []
        case scf.ForOp():
            carried: Sequence[Any] = args[3:]
            for i in range(int(args[0]), int(args[1]), int(args[2])):
                carried = _block(op.body.block, [np.int64(i), *carried], values)
            return carried
        case tensor.ExtractOp():
            assert args[1] >= 0
            return [args[0][args[1]]]
        case tensor.InsertOp():
            assert 0 <= args[2] < len(args[1])
            changed = list(args[1])
            changed[args[2]] = args[0]
            return [changed]
        case tensor.FromElementsOp():
            return [args]
        case tensor.SplatOp():
            return [[args[0]] * op.result.type.get_shape()[0]]
        case tensor.EmptyOp():
            return [[dtype_of(op.tensor.type).type(0)] * op.tensor.type.get_shape()[0]]
        case tensor.DimOp():
            return [np.int64(len(args[0]))]
        case _:
            result = function_of(op)(*args)
            return result if len(op.results) > 1 else [result]


def _pattern(op: PatternOp, args: list[Any]) -> Sequence[Any]:
    inputs, rest = args[: len(op.inputs)], args[len(op.inputs) :]
    shared, inits = rest[: len(op.shared)], rest[len(op.shared) :]
    if isinstance(op, FoldOp):
        return _fold(op, inputs, shared, inits)
    group, count = op.group_size, max(0, len(inputs[0]) - op.window_size + 1) // op.group_size
    outs: list[list[Any]] = [[] for _ in op.yielded()]
    for i in range(count):
        parts = [
            vector[i * group : i * group + op.slice_length] if op.takes_slices else vector[i]
            for vector in inputs
        ]
        for out, value in zip(outs, _block(op.body.block, [*parts, *shared], {}), strict=True):
            out.append(value)
    if not isinstance(op, FilterBase):
        return outs
    keep, kept = outs[0], list[list[Any]]()
    for values in outs[1:]:
        chosen = [value for value, wanted in zip(values, keep, strict=True) if wanted]
        if chosen and isinstance(chosen[0], list):
            chosen = [element for part in chosen for element in part[:group]]
        kept.append(chosen)
    return [*kept, np.int64(len(kept[0]) if kept else sum(keep))]


def _fold(op: FoldOp, inputs: list[Any], shared: list[Any], inits: list[Any]) -> Sequence[Any]:
    state, before, after = inits, list[Any](), list[Any]()
    for elements in zip(*inputs, strict=True):
        before.append(state)
        state = _block(op.body.block, [*state, *elements, *shared], {})
        after.append(state)
    if not isinstance(op, ScanOp):
        return state
    steps = after if op.exclusive is None else before
    return [[step[number] for step in steps] for number in range(len(inits))]
