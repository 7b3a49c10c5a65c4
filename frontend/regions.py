"""Tracing: runs a Python function once on traced values and keeps what it wrote as a region."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute, Block, Region, SSAValue

from cim_opt.dialects.pattern import YieldOp
from cim_opt.frontend.element_types import BOOL, ElementType, element_type
from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import as_list, is_numpy_scalar, is_python_number
from cim_opt.frontend.operators import to_ssa
from cim_opt.frontend.scope import Scope, Traced
from cim_opt.frontend.values import Scalar, Slice, tensor_type

Function = Callable[..., Any]


@dataclass(frozen=True)
class Parameter:
    """What a function gets for one argument: a scalar, or a slice when `length` is given.

    `outer` is the value of a shared operand, which the function may also see by another name.
    """

    element: ElementType
    length: int | None = None
    outer: SSAValue | None = None

    @property
    def attribute(self) -> Attribute:
        """Its type in the IR."""
        if self.length is None:
            return self.element.attribute
        return tensor_type(self.element, self.length)

    def traced(self, scope: Scope, ssa: SSAValue) -> Scalar | Slice:
        """The value that the function gets."""
        if self.length is None:
            return Scalar(scope, ssa, self.element)
        return Slice(scope, ssa, self.element, self.length)


class Trace:
    """One function that is being traced into a region of a pattern.

    `results` are what the function returned, one entry a result, numbers included; `finish` ends
    the region with the values to yield.
    """

    def __init__(
        self,
        f: Function,
        parent: Scope,
        parameters: Sequence[Parameter],
        *,
        order: Sequence[int] | None = None,
        what: str,
        no_capture: str | None = None,
    ) -> None:
        """Runs f. `order` are the parameters in the order of f's arguments."""
        if not callable(f):
            fail(
                f"the {what} is a {type(f).__name__}",
                "it is a Python function",
                "pass the function first, then the inputs",
            )
        self.f = f
        self.what = what
        block = Block(arg_types=[parameter.attribute for parameter in parameters])
        self.region = Region(block)
        self.scope = Scope(block, parent, no_capture=no_capture)
        for parameter, arg in zip(parameters, block.args, strict=True):
            if parameter.outer is not None:
                self.scope.bind_shared(parameter.outer, arg)
        self.arguments = [
            parameter.traced(self.scope, arg)
            for parameter, arg in zip(parameters, block.args, strict=True)
        ]
        order = range(len(parameters)) if order is None else order
        self._name(_parameter_names(f, what, len(order)), [block.args[i] for i in order])
        # A copy: `s[i] = v` in the function changes what its own name means.
        result = f(*(_copy(self.arguments[i]) for i in order))
        self.results: list[Any] = as_list(result)

    def _name(self, names: Sequence[str], args: Sequence[SSAValue]) -> None:
        for name, arg in zip(names, args, strict=False):
            arg.name_hint = ssa_name(name)

    def constant_or_value(self, result: Any) -> Scalar | Slice:
        """A result as a traced value, where its type is known."""
        if isinstance(result, Scalar | Slice):
            return result
        if isinstance(result, bool):
            return Scalar(self.scope, to_ssa(self.scope, result, BOOL), BOOL)
        if is_numpy_scalar(result):
            element = element_type(result.dtype)
            return Scalar(self.scope, to_ssa(self.scope, result, element), element)
        self._fail_result(result)
        raise AssertionError

    def _fail_result(self, result: Any) -> None:
        if result is None:
            fail(
                f"the {self.what} returns nothing",
                "what it returns is the result of the stage",
                "end it with return",
                self.f,
            )
        if is_python_number(result):
            fail(
                f"the {self.what} returns the Python number {result}",
                "its element type is not known",
                f"write np.int32({result}), or another type",
                self.f,
            )
        fail(
            f"the {self.what} returns a {type(result).__name__}",
            "it returns traced values, or a tuple of them",
            "compute with operators, where, minimum and maximum",
            self.f,
        )

    def typed(self, result: Any, parameter: Parameter) -> SSAValue:
        """The SSA value of a result that must have the parameter's type; numbers take it."""
        if is_python_number(result):
            if parameter.length is None:
                return to_ssa(self.scope, result, parameter.element)
            self._fail_result(result)
        value = self.constant_or_value(result)
        length = value.length if isinstance(value, Slice) else None
        if value.element != parameter.element or length != parameter.length:
            fail(
                f"the {self.what} returns {_text(value.element, length)} for an accumulator of "
                f"{_text(parameter.element, parameter.length)}",
                "it returns new accumulators, of the accumulators' types",
                "give init= with its type, such as np.int64(0), or cast what is returned",
                self.f,
            )
        return self.use(value)

    def use(self, value: Traced) -> SSAValue:
        """The value in the region."""
        return self.scope.use(value)

    def finish(self, values: Sequence[SSAValue]) -> Region:
        """Ends the region with its pattern.yield; the function's values are of no use then."""
        self.scope.append(YieldOp(*values))
        self.scope.close()
        return self.region


def _copy(value: Scalar | Slice) -> Scalar | Slice:
    if isinstance(value, Slice):
        return Slice(value.scope, value.ssa, value.element, value.length)
    return value


def _text(element: ElementType, length: int | None) -> str:
    return str(element) if length is None else f"{element} x {length}"


def _parameter_names(f: Function, what: str, count: int) -> list[str]:
    """Names of f's parameters; raises UserError when it does not take `count` arguments."""
    try:
        signature = inspect.signature(f)
    except (ValueError, TypeError):
        return []  # built in: Python itself complains when it is called
    try:
        signature.bind(*range(count))
    except TypeError:
        fail(
            f"the {what} takes {len(signature.parameters)} arguments, but gets {count}",
            "it gets the accumulators, one argument an input, and the shared operands",
            f"write it with {count} parameters",
            f,
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in signature.parameters.items() if p.kind in kinds]


def ssa_name(name: str | None) -> str | None:
    """A Python name as the name of an SSA value, None when it cannot be one."""
    if name is None or re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        return None
    # The IR's printer takes a trailing _1 for its own numbering and drops it.
    return re.sub(r"_+(\d+)$", r"\1", name)
