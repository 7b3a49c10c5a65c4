"""Which folds round differently when their elements are combined in another order."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from cim_opt.dialects.pattern import FoldOp
from cim_opt.simulators.elementwise import element_type_of, is_elementwise

EXACT = frozenset(
    (
        "arith.select",
        "arith.negf",
        "arith.bitcast",
        "arith.minimumf",
        "arith.maximumf",
        "arith.minnumf",
        "arith.maxnumf",
        "math.absf",
        "math.copysign",
        "math.ceil",
        "math.floor",
        "math.trunc",
        "math.round",
        "math.roundeven",
    )
)
"""Float operations that do not round: they give an operand, its sign changed, or a whole number."""


def is_float(value: SSAValue) -> bool:
    """True for a float, and for a tensor of floats."""
    return isinstance(element_type_of(value.type), Float32Type | Float64Type)


def reassociates(op: FoldOp) -> bool:
    """True when the order in which `op` combines its elements shows in its result.

    That is so when an operation that rounds depends on an accumulator: a float sum does, a float
    minimum, or the sum of integers that were made from floats, does not.
    """
    if not any(is_float(value) for value in op.inits):
        return False
    accumulators = set[SSAValue](op.accumulator_args())
    if _rounds(op.body.block, accumulators):
        return True
    return op.combine is not None and _rounds(op.combine.block, set(op.combine.block.args))


def _rounds(block: Block, dependent: set[SSAValue]) -> bool:
    """True when an operation in `block` rounds a value that depends on one of `dependent`.

    Adds what depends on them to `dependent`.
    """
    for op in block.ops:
        if dependent.isdisjoint(_read_by(op)):
            continue
        if _is_rounding(op) or any(_rounds_nested(inner, dependent) for inner in op.regions):
            return True
        dependent.update(op.results)
    return False


def _rounds_nested(region: object, dependent: set[SSAValue]) -> bool:
    blocks: Iterable[Block] = getattr(region, "blocks", ())
    for block in blocks:
        dependent.update(block.args)
        if _rounds(block, dependent):
            return True
    return False


def _is_rounding(op: Operation) -> bool:
    floats = any(is_float(value) for value in op.results)
    return floats and is_elementwise(op) and op.name not in EXACT


def _read_by(op: Operation) -> set[SSAValue]:
    """Operands of `op` and of all operations nested in it."""
    return {value for inner in op.walk() for value in inner.operands}


def reassociated_folds(module: ModuleOp, function: func.FuncOp) -> list[FoldOp]:
    """The reassociated folds over whole vectors that `function` runs, itself or by calls.

    Folds nested in element functions are not among them: a lane runs them as they are written.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    waiting, seen = [function], {function}
    found = list[FoldOp]()
    while waiting:
        current = waiting.pop()
        for op in _host_operations(current):
            if isinstance(op, FoldOp) and reassociates(op):
                found.append(op)
            called = (
                functions.get(op.callee.string_value()) if isinstance(op, func.CallOp) else None
            )
            if called is not None and called not in seen:
                seen.add(called)
                waiting.append(called)
    return found


def _host_operations(function: func.FuncOp) -> Iterable[Operation]:
    """Operations of a function that run on whole vectors."""
    for op in function.body.walk():
        parent = op.parent_op()
        while parent is not None and parent is not function and parent.dialect_name() != "pattern":
            parent = parent.parent_op()
        if parent is function and not op.has_trait(IsTerminator):
            yield op
