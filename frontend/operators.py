"""From Python's operators to arith operations: one meaning a name, the type picks the operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation

from cim_opt.frontend.casts import cast_ssa
from cim_opt.frontend.element_types import BOOL, ElementType, constant, element_type
from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import is_array, is_numpy_scalar, is_python_number
from cim_opt.frontend.scope import Scope, Traced, innermost
from cim_opt.frontend.values import Scalar, Slice, Tensor

Operation = type[IRDLOperation]


@dataclass(frozen=True)
class _Row:
    """One operator: its sign in Python, and the operation for each kind of element type."""

    sign: str
    signed: Operation | None = None
    unsigned: Operation | None = None
    boolean: Operation | None = None
    floating: Operation | None = None

    def pick(self, element: ElementType) -> Operation | None:
        if element.is_float:
            return self.floating
        if element.is_bool:
            return self.boolean
        return self.signed if element.signed else self.unsigned


_BINARY: dict[str, _Row] = {
    "add": _Row("+", arith.AddiOp, arith.AddiOp, None, arith.AddfOp),
    "sub": _Row("-", arith.SubiOp, arith.SubiOp, None, arith.SubfOp),
    "mul": _Row("*", arith.MuliOp, arith.MuliOp, None, arith.MulfOp),
    "truediv": _Row("/", None, None, None, arith.DivfOp),
    "and": _Row("&", arith.AndIOp, arith.AndIOp, arith.AndIOp),
    "or": _Row("|", arith.OrIOp, arith.OrIOp, arith.OrIOp),
    "xor": _Row("^", arith.XOrIOp, arith.XOrIOp, arith.XOrIOp),
    "lshift": _Row("<<", arith.ShLIOp, arith.ShLIOp),
    "rshift": _Row(">>", arith.ShRSIOp, arith.ShRUIOp),
    "min": _Row("minimum", arith.MinSIOp, arith.MinUIOp, arith.AndIOp, arith.MinimumfOp),
    "max": _Row("maximum", arith.MaxSIOp, arith.MaxUIOp, arith.OrIOp, arith.MaximumfOp),
    # Towards zero, as in C.
    "quotient": _Row("truncdiv", arith.DivSIOp, arith.DivUIOp),
    "remainder": _Row("truncmod", arith.RemSIOp, arith.RemUIOp),
}

_UNARY: dict[str, _Row] = {
    "abs": _Row("abs", math.AbsIOp, None, None, math.AbsFOp),
    "sqrt": _Row("sqrt", floating=math.SqrtOp),
    "exp": _Row("exp", floating=math.ExpOp),
    "log": _Row("log", floating=math.LogOp),
    "tanh": _Row("tanh", floating=math.TanhOp),
    "floor": _Row("floor", floating=math.FloorOp),
    "ceil": _Row("ceil", floating=math.CeilOp),
}

# Signed, unsigned (and bool), float; `une` is true for NaN, as Python's != is.
_PREDICATES: dict[str, tuple[str, str, str, str]] = {
    "lt": ("<", "slt", "ult", "olt"),
    "le": ("<=", "sle", "ule", "ole"),
    "gt": (">", "sgt", "ugt", "ogt"),
    "ge": (">=", "sge", "uge", "oge"),
    "eq": ("==", "eq", "eq", "oeq"),
    "ne": ("!=", "ne", "ne", "une"),
}

_REMEDIES: dict[str, str] = {
    "truediv": "use // or cast to np.float32",
    "floordiv": "use floor(a / b)",
    "mod": "use a - floor(a / b) * b",
    "quotient": "use a / b",
    "pow": "multiply it out",
    **{name: "cast it: x.astype(np.float32)" for name in ("sqrt", "exp", "log", "tanh")},
    **{name: "leave it out, or cast: x.astype(np.float32)" for name in ("floor", "ceil")},
}


def apply(name: str, *operands: Any) -> Any:
    """The operation `name` on scalars, or element by element where an operand is a slice.

    Operands are traced values, Python numbers (they take the type of the others), NumPy scalars
    and 1-D arrays. Raises UserError for anything else, and when types differ.
    """
    if name == "convert":
        return _convert(*operands)
    if name == "cast":
        return _elementwise(partial(_cast, element_type(operands[1])), operands[:1])
    return _elementwise(partial(_scalar, name), operands)


def _elementwise(f: Callable[..., Any], operands: Sequence[Any]) -> Any:
    operands = with_slices(operands)
    if not any(isinstance(operand, Slice) for operand in operands):
        return f(*operands)
    from cim_opt.frontend.nested import nested  # it traces with the operators of this file

    slices = [operand for operand in operands if isinstance(operand, Slice)]

    def element(*elements: Scalar) -> Any:
        rest = iter(elements)
        return f(*(next(rest) if isinstance(o, Slice) else o for o in operands))

    return nested("map", element, slices)


def with_slices(operands: Sequence[Any]) -> list[Any]:
    """The operands, with arrays and vectors of the pipeline as slices."""
    scope = innermost([o for o in operands if isinstance(o, Traced)])
    if scope.parent is None and any(isinstance(o, Tensor) or is_array(o) for o in operands):
        fail(
            "an operation on vectors outside a stage",
            "vectors are computed with in stages",
            "use p.map(lambda a, b: a + b, x, y)",
        )
    return [_as_operand(scope, operand) for operand in operands]


def _as_operand(scope: Scope, operand: Any) -> Any:
    if is_array(operand):
        operand = scope.array_argument(operand)
    if isinstance(operand, Tensor) and not isinstance(operand, Slice):
        return as_slice(operand)
    return operand


def as_slice(vector: Tensor) -> Slice:
    """A vector of the pipeline as a function sees it: a small tensor that all elements share."""
    if vector.length < 0:
        fail(
            "a vector of unknown length is used inside a function",
            "vectors that all elements share have a fixed length",
            "give the pipeline its length, Pipeline(n), or pass the vector as an input of the "
            "stage",
        )
    return Slice(vector.scope, vector.ssa, vector.element, vector.length)


# -- scalars -----------------------------------------------------------------------------------


def _operand_type(operand: Any) -> ElementType | None:
    """The element type of an operand; None for a Python number, which takes the others'."""
    if isinstance(operand, Scalar):
        return operand.element
    if is_numpy_scalar(operand):
        return element_type(operand.dtype)
    if is_python_number(operand):
        return None
    fail(
        f"a value of type {type(operand).__name__} in an element function",
        "operands are traced values, numbers and 1-D NumPy arrays",
        "convert it to a number or an array before the stage",
    )


def _common_type(sign: str, operands: Sequence[Any]) -> ElementType:
    known = [t for t in map(_operand_type, operands) if t is not None]
    if not known:
        fail(
            f"{sign} of Python numbers only",
            "their type is not known",
            "write one of them with its type, such as np.int32(1)",
        )
    other = next((t for t in known if t != known[0]), None)
    if other is not None:
        fail(
            f"{known[0]} {sign} {other}",
            "both operands have one type, it does not change by itself",
            f"cast one of them, such as x.astype(np.{other})",
        )
    return known[0]


def to_ssa(scope: Scope, operand: Any, element: ElementType) -> SSAValue:
    """The operand in `scope`; a number becomes a constant of type `element`."""
    if isinstance(operand, Traced):
        return scope.use(operand)
    number = operand.item() if is_numpy_scalar(operand) else operand
    return scope.constant(constant(number, element))


@dataclass(frozen=True)
class Work:
    """Where an operation is being written, and the type of its operands."""

    scope: Scope
    element: ElementType

    def ssa(self, operand: Any) -> SSAValue:
        """An operand, or a number, as a value of the type."""
        return to_ssa(self.scope, operand, self.element)

    def scalar(self, ssa: SSAValue, element: ElementType | None = None) -> Scalar:
        """A traced scalar for a value."""
        return Scalar(self.scope, ssa, element or self.element)

    def binary(self, name: str, lhs: Any, rhs: Any) -> Scalar:
        """A two-operand operation by its name, as it stands in the table."""
        operation = _BINARY[name].pick(self.element)
        if operation is None:
            _unsupported(name, _BINARY[name].sign, self.element)
        op = operation(self.ssa(lhs), self.ssa(rhs))  # pyright: ignore[reportCallIssue]
        return self.scalar(self.scope.emit(op))

    def compare(self, name: str, lhs: Any, rhs: Any) -> Scalar:
        """A comparison; its result is bool."""
        _, signed, unsigned, floating = _PREDICATES[name]
        left, right = self.ssa(lhs), self.ssa(rhs)
        if self.element.is_float:
            op = arith.CmpfOp(left, right, floating)
        else:
            op = arith.CmpiOp(left, right, signed if self.element.signed else unsigned)
        return self.scalar(self.scope.emit(op), BOOL)

    def select(self, condition: Scalar, a: Any, b: Any) -> Scalar:
        """a where the condition holds, else b."""
        op = arith.SelectOp(self.scope.use(condition), self.ssa(a), self.ssa(b))
        return self.scalar(self.scope.emit(op))


def _scalar(name: str, *operands: Any) -> Any:
    scope = innermost([o for o in operands if isinstance(o, Traced)])
    if name == "where":
        return _where(scope, *operands)
    sign = _sign_of(name)
    work = Work(scope, _common_type(sign, operands))
    if name in _PREDICATES:
        return work.compare(name, *operands)
    if name in _UNARY or name in ("neg", "invert"):
        return _unary(work, name, operands[0])
    if name in ("floordiv", "mod", "pow"):
        from cim_opt.frontend.division import floor_divide, modulo, power  # made of Work

        return {"floordiv": floor_divide, "mod": modulo, "pow": power}[name](work, *operands)
    return work.binary(name, *operands)


def _sign_of(name: str) -> str:
    if name in _PREDICATES:
        return _PREDICATES[name][0]
    row = _BINARY.get(name) or _UNARY.get(name)
    if row is not None:
        return row.sign
    return {"floordiv": "//", "mod": "%", "pow": "**", "neg": "-", "invert": "~"}[name]


def _unsupported(name: str, sign: str, element: ElementType) -> NoReturn:
    if element.is_bool:
        remedy = "use &, |, ^ and ~, or cast: x.astype(np.int32)"
    else:
        remedy = _REMEDIES.get(name, "cast it: x.astype(...)")
    fail(f"{sign} of {element}", "there is no such operation", remedy)


def fail_unsupported(name: str, element: ElementType) -> NoReturn:
    """The error for an operator that the element type does not have."""
    _unsupported(name, _sign_of(name), element)


def _unary(work: Work, name: str, operand: Any) -> Scalar:
    element = work.element
    if name == "neg":
        return _negated(work, operand)
    if name == "invert":
        if element.is_float:
            _unsupported(name, "~", element)
        ones = True if element.is_bool else -1 if element.signed else element.limits[1]
        return work.binary("xor", operand, ones)
    if name == "abs" and not element.signed:
        return operand  # nothing to do for bool and unsigned integers
    operation = _UNARY[name].pick(element)
    if operation is None:
        _unsupported(name, name, element)
    op = operation(work.ssa(operand))  # pyright: ignore[reportCallIssue]
    return work.scalar(work.scope.emit(op))


def _negated(work: Work, operand: Any) -> Scalar:
    if work.element.is_float:
        return work.scalar(work.scope.emit(arith.NegfOp(work.ssa(operand))))
    if work.element.is_bool:
        _unsupported("neg", "-", work.element)
    return work.binary("sub", 0, operand)


def _where(scope: Scope, condition: Any, a: Any, b: Any) -> Any:
    if not isinstance(condition, Traced) and np.asarray(condition).dtype == np.bool_:
        condition = Scalar(scope, to_ssa(scope, bool(condition), BOOL), BOOL)
    if not isinstance(condition, Scalar) or not condition.element.is_bool:
        fail(
            f"the condition of where is {getattr(condition, 'element', type(condition).__name__)}",
            "conditions are bool",
            "compare it, such as x != 0",
        )
    work = Work(scope, _common_type("where", [a, b]))
    return work.select(condition, a, b)


def _cast(to: ElementType, operand: Any) -> Any:
    assert isinstance(operand, Scalar)
    return Scalar(operand.scope, cast_ssa(operand, to), to)


def _convert(element: ElementType, operand: Any, scope: Scope) -> Any:
    """A traced value as it is, or a number as a traced constant, both of type `element`."""
    if isinstance(operand, Tensor):
        return operand
    work = Work(scope, element)
    found = _operand_type(operand)
    if found is not None and found != element:
        fail(
            f"a {found} where a {element} is expected",
            "types do not change by themselves",
            f"cast it: .astype(np.{element})",
        )
    return work.scalar(work.ssa(operand))
