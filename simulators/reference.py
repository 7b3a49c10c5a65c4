"""The meaning of a program, computed with NumPy: what every machine's result is compared with.

`run_function` runs a `func.func` of pattern, arith, math, tensor and scf operations. Integers are
exact. Floats are computed in their own type; how reductions are ordered is told in folds.py.

`HostEvaluator` is the interpreter behind it, one operation of a function at a time (each works on
whole vectors). A simulator extends it with the operations of its machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FoldOp, PatternOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators import host_tensors, patterns
from cim_opt.simulators.declared_ranges import check_declared
from cim_opt.simulators.elementwise import (
    constant_value,
    dtype_of,
    function_of,
    is_elementwise,
    quiet,
)
from cim_opt.simulators.integer_functions import Function, Values
from cim_opt.simulators.patterns import pattern_regions

Handler = Callable[[Any, Operation, tuple[Values, ...]], Sequence[Values]]
"""Takes the evaluator, the operation and its operands' values; gives its results' values."""


@dataclass
class _Frame:
    """The values of one call of a function, and which of them have an array to themselves."""

    values: dict[SSAValue, Values] = field(default_factory=dict[SSAValue, Values])
    owned: set[SSAValue] = field(default_factory=set[SSAValue])


class HostEvaluator:
    """Runs functions of a module, operation by operation.

    A subclass adds operations to `handlers`, by name. It names those whose results are new arrays
    in `makers`, so that a later `tensor.insert_slice` may write into them, and those that are done
    with their operands' arrays when they return, and give none of them back, in `readers`.
    """

    handlers: ClassVar[dict[str, Handler]] = {
        "arith.constant": lambda evaluator, op, args: [constant_value(op)],
        "tensor.dim": host_tensors.dim,
        "tensor.empty": host_tensors.empty,
        "tensor.splat": host_tensors.splat,
        "tensor.from_elements": host_tensors.from_elements,
        "tensor.extract": host_tensors.extract,
        "tensor.insert": host_tensors.insert,
        "tensor.cast": host_tensors.cast,
        "tensor.concat": host_tensors.concat,
        "tensor.extract_slice": host_tensors.extract_slice,
        "tensor.insert_slice": host_tensors.insert_slice,
        "tensor.pad": host_tensors.pad,
        "poly.kernel": lambda evaluator, op, args: _kernels().kernel(evaluator, op, args),
        "scf.if": lambda evaluator, op, args: evaluator.run_if(op, args),
        "scf.for": lambda evaluator, op, args: evaluator.run_for(op, args),
        "func.call": lambda evaluator, op, args: evaluator.run_call(op, args),
    }
    makers: ClassVar[frozenset[str]] = frozenset(
        (
            "tensor.empty",
            "tensor.splat",
            "tensor.from_elements",
            "tensor.insert",
            "tensor.concat",
            "tensor.insert_slice",
        )
    )
    readers: ClassVar[frozenset[str]] = frozenset(("tensor.dim", "tensor.extract"))

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.regions = pattern_regions()
        self._functions: dict[Operation, Function] = {}
        self._frame = _Frame()

    # -- what a simulator uses or overrides ------------------------------------------------------

    def account(self, op: Operation, args: tuple[Values, ...], results: Sequence[Values]) -> None:
        """Called after each operation, also after a whole loop or call; does nothing here."""

    def may_overwrite(self, op: Operation, operand: int) -> bool:
        """True when `op` may write into the array of this operand: nobody else looks at it.

        The value was made in the block of `op`, has its array to itself, and is not used after
        `op`, nor before it by anything that could have kept its array.
        """
        value = op.operands[operand]
        if value not in self._frame.owned or _block_of(value) is not op.parent_block():
            return False
        return all(
            use.operation is op or self._reads_before(use.operation, op) for use in value.uses
        )

    def _reads_before(self, user: Operation, op: Operation) -> bool:
        if user.name not in self.readers or user.parent_block() is not op.parent_block():
            return False
        return user.is_before_in_block(op)

    def function(self, name: str) -> func.FuncOp:
        """The function of this name. UserError when there is none with one block."""
        for op in self.module.ops:
            if isinstance(op, func.FuncOp) and op.sym_name.data == name:
                return _with_body(op)
        names = [op.sym_name.data for op in self.module.ops if isinstance(op, func.FuncOp)]
        raise UserError(
            f"there is no function '{name}'",
            f"the module has {', '.join(names) or 'none'}",
            "name one of these as the entry" if names else "write a func.func",
        )

    def call(self, name: str, args: Sequence[Values]) -> list[Values]:
        """Results of a function. They may share memory with `args`; those are not written to."""
        return [value for value, _ in self._call(self.function(name), args)]

    # -- blocks ----------------------------------------------------------------------------------

    def _call(self, function: func.FuncOp, args: Sequence[Values]) -> list[tuple[Values, bool]]:
        """Results, each with whether its array is its own."""
        caller, self._frame = self._frame, _Frame()
        try:
            block = function.body.block
            self._set(block.args, [(value, False) for value in args])
            return self._run(block)
        finally:
            self._frame = caller

    def _run(self, block: Block) -> list[tuple[Values, bool]]:
        """Runs a block whose arguments are set; gives what its terminator passes on."""
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return [self._passed(value, op) for value in op.operands]
            self._execute(op)
        return []

    def _execute(self, op: Operation) -> None:
        args = tuple(self._frame.values[value] for value in op.operands)
        self._frame.owned.difference_update(op.results)
        results = self.evaluate(op, args)
        self._frame.values.update(zip(op.results, results, strict=True))
        if op.name in self.makers or (isinstance(op, PatternOp) and not isinstance(op, FoldOp)):
            self._frame.owned.update(op.results)
        self.account(op, args, results)

    def evaluate(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Results of one operation for its operands' values."""
        handler = self.handlers.get(op.name)
        if handler is not None:
            return handler(self, op, args)
        if isinstance(op, PatternOp):
            return patterns.evaluate(self.regions, op, args)
        if op.name.startswith("linalg."):
            return _kernels().structured(self, op, args)
        if not is_elementwise(op):
            raise UserError(
                f"'{op.name}' cannot be run on the host",
                "host code holds pattern, arith, math, tensor, scf and func operations",
                location=location_of(op),
            )
        function = self._functions.get(op)
        if function is None:
            function = self._functions[op] = function_of(op)
        results = function(*args)
        return results if len(op.results) > 1 else [results]

    def _set(self, targets: Sequence[SSAValue], values: Sequence[tuple[Values, bool]]) -> None:
        for target, (value, owned) in zip(targets, values, strict=True):
            self._frame.values[target] = value
            (self._frame.owned.add if owned else self._frame.owned.discard)(target)

    def _passed(self, value: SSAValue, user: Operation) -> tuple[Values, bool]:
        """A value that `user` passes on, with its array if nothing else keeps that."""
        owned = value in self._frame.owned and _block_of(value) is user.parent_block()
        return self._frame.values[value], owned and value.has_one_use()

    # -- control flow ----------------------------------------------------------------------------

    def run_if(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Runs the branch that `scf.if` takes."""
        assert isinstance(op, scf.IfOp)
        blocks = (op.true_region if args[0] else op.false_region).blocks
        return self._pass_to(op, self._run(blocks[0]) if blocks else [])

    def run_for(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Runs an `scf.for` as a Python loop."""
        assert isinstance(op, scf.ForOp)
        low, high, step = (int(value) for value in args[:3])
        if step < 1:
            raise UserError(
                f"step of '{op.name}' is {step}", "it is at least 1", location=location_of(op)
            )
        block = op.body.block
        make = dtype_of(op.lb.type).type
        carried = [self._passed(value, op) for value in op.iter_args]
        for position in range(low, high, step):
            self._set(block.args, [(make(position), False), *carried])
            carried = self._run(block)
        return self._pass_to(op, carried)

    def run_call(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Runs the function that `func.call` calls."""
        assert isinstance(op, func.CallOp)
        return self._pass_to(op, self._call(self.function(op.callee.string_value()), args))

    def _pass_to(self, op: Operation, values: Sequence[tuple[Values, bool]]) -> Sequence[Values]:
        self._set(op.results, values)
        return [value for value, _ in values]


def _kernels() -> Any:
    """The handlers of poly and linalg, imported when the first of their operations runs."""
    from cim_opt.simulators import kernels

    return kernels


def _block_of(value: SSAValue) -> Block | None:
    """The block whose argument, or whose operation's result, `value` is."""
    return value.block if isinstance(value, BlockArgument) else value.owner.parent_block()  # pyright: ignore


def _with_body(function: func.FuncOp) -> func.FuncOp:
    if len(function.body.blocks) != 1:
        raise UserError(
            f"function '{function.sym_name.data}' has {len(function.body.blocks)} blocks",
            "a pipeline is one block",
            "use scf.if and scf.for for control flow",
            location=location_of(function),
        )
    return function


@quiet()
def run_function(
    module: ModuleOp, name: str, args: Sequence[Any]
) -> list[np.ndarray[Any, np.dtype[Any]] | np.generic]:
    """What function `name` of `module` returns for `args`: arrays, and NumPy scalars.

    Each argument is an array of the dtype and length of its type (i1 bool, iN intN, f32 float32),
    or, for a scalar, a NumPy scalar or a Python number that fits. The results share no memory with
    the arguments. Raises UserError for arguments that do not fit, and for what the program does
    wrong, such as an index out of range, with the operation's place where it is known.
    """
    evaluator = HostEvaluator(module)
    function = evaluator.function(name)
    return [
        np.array(value)[()] for value in evaluator.call(name, checked_arguments(function, args))
    ]


def checked_arguments(function: func.FuncOp, args: Sequence[Any]) -> list[Values]:
    """`args` as the values of the function's arguments. UserError when they do not fit."""
    formal = function.body.block.args
    if len(args) != len(formal):
        raise UserError(
            f"function '{function.sym_name.data}' got {len(args)} arguments",
            f"it takes {len(formal)}",
            location=location_of(function),
        )
    checked = [_checked(arg, value) for arg, value in zip(formal, args, strict=True)]
    for arg, value in zip(formal, checked, strict=True):
        check_declared(_name_of(arg), arg, value)
    return checked


def _name_of(arg: BlockArgument) -> str:
    return f"%{arg.name_hint}" if arg.name_hint else f"number {arg.index}"


def _checked(arg: BlockArgument, value: Any) -> Values:
    name = _name_of(arg)
    dtype = dtype_of(arg.type)
    if not isa(arg.type, TensorType):
        return _checked_scalar(name, arg.type, value)
    if not hasattr(value, "dtype") or not hasattr(value, "ndim"):
        raise UserError(
            f"argument {name} is a {type(value).__name__}", f"it is a NumPy array for {arg.type}"
        )
    array = np.asarray(value)
    if array.dtype != dtype:
        raise UserError(
            f"argument {name} has elements of type {array.dtype}",
            f"its type is {arg.type}",
            f"convert it with .astype('{dtype}')",
        )
    shape = arg.type.get_shape()
    if len(shape) != array.ndim or any(
        want not in (DYNAMIC_INDEX, got) for want, got in zip(shape, array.shape, strict=True)
    ):
        raise UserError(
            f"argument {name} has shape {array.shape}",
            f"its type is {arg.type}",
            "pass an array of that length, or write ? for the length",
        )
    return array


def _checked_scalar(name: str, type: Attribute, value: Any) -> Values:
    """A NumPy scalar of `type`, from a Python number or a NumPy scalar."""
    dtype = dtype_of(type)
    if isinstance(value, bool | int | float | np.generic) or np.shape(value) == ():
        with np.errstate(all="ignore"):
            scalar = np.asarray(value)
            converted = scalar.astype(dtype)[()]
        same_kind = np.can_cast(scalar.dtype, dtype, "same_kind") or scalar.dtype == dtype
        if same_kind and (converted == scalar or converted != converted or dtype.kind == "f"):
            return converted
    raise UserError(f"argument {name} is {value!r}", f"its type is {type}", "pass such a number")
