"""NumPy functions called on traced values: the ones with a meaning here, an error for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from cim_opt.frontend.errors import fail
from cim_opt.frontend.values import Scalar, apply

# By the ufunc's own name (np.abs.__name__ is "absolute").
_UFUNCS: dict[str, str] = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "fmod": "remainder",
    "power": "pow",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "left_shift": "lshift",
    "right_shift": "rshift",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "negative": "neg",
    "absolute": "abs",
    "invert": "invert",
    "minimum": "min",
    "maximum": "max",
    "sqrt": "sqrt",
    "exp": "exp",
    "log": "log",
    "tanh": "tanh",
    "floor": "floor",
    "ceil": "ceil",
}


def _square(x: Any) -> Any:
    return apply("mul", x, x)


def _positive(x: Any) -> Any:
    return x


def _matmul(a: Any, b: Any) -> Any:
    return apply("mul", a, b).sum()


def _divmod(a: Any, b: Any) -> Any:
    return apply("floordiv", a, b), apply("mod", a, b)


def _where(condition: Any, a: Any, b: Any) -> Any:
    return apply("where", condition, a, b)


def _clip(x: Any, low: Any, high: Any) -> Any:
    return apply("min", apply("max", x, low), high)


def _logical(name: str) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        return apply(name, *(o.astype(np.bool_) if hasattr(o, "astype") else o for o in operands))

    return call


_COMPOSED: dict[str, Callable[..., Any]] = {
    "square": _square,
    "positive": _positive,
    "matmul": _matmul,
    "divmod": _divmod,
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "logical_not": _logical("invert"),
}


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `ufunc(*inputs)` means when an input is traced."""
    name: str = ufunc.__name__
    if method != "__call__" or kwargs:
        _refuse(f"np.{name}" + (f".{method}" if method != "__call__" else " with keywords"))
    if name in _COMPOSED:
        return _COMPOSED[name](*inputs)
    if name in _UFUNCS:
        return apply(_UFUNCS[name], *inputs)
    _refuse(f"np.{name}")


def _fold(name: str) -> Callable[..., Any]:
    def call(values: Any) -> Any:
        if isinstance(values, Scalar):
            _refuse(f"np.{name} of a scalar")
        return getattr(values, name)()

    return call


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "clip": _clip,
    "dot": _matmul,
    **{name: _fold(name) for name in ("sum", "prod", "min", "max", "all", "any")},
    "amin": _fold("min"),
    "amax": _fold("max"),
}


def call_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What another NumPy function means when an argument is traced."""
    name = func.__name__
    if name not in _FUNCTIONS:
        _refuse(f"np.{name}")
    try:
        return _FUNCTIONS[name](*args, **kwargs)
    except TypeError:
        _refuse(f"np.{name} with these arguments")


def _refuse(what: str) -> NoReturn:
    known = sorted(set(_UFUNCS) | set(_COMPOSED) | set(_FUNCTIONS))
    fail(
        f"{what} is called on a traced value",
        "these NumPy functions are known, with positional arguments: " + ", ".join(known),
        "use operators, or the functions of cim_opt.frontend",
    )
