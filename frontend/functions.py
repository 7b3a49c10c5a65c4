"""Functions for element functions; each also takes NumPy values, and then does what NumPy does."""

from __future__ import annotations

from typing import Any
from typing import cast as cast_type

import numpy as np

from cim_opt.frontend.element_types import element_type
from cim_opt.frontend.scope import Traced
from cim_opt.frontend.values import apply


def _traced(*values: Any) -> bool:
    return any(isinstance(value, Traced) for value in values)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b: what a Python `if` cannot say."""
    if _traced(condition, a, b):
        return apply("where", condition, a, b)
    return cast_type(Any, np.where(condition, a, b))


def minimum(a: Any, b: Any) -> Any:
    """The smaller of the two; NaN when one is NaN."""
    return apply("min", a, b) if _traced(a, b) else np.minimum(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of the two; NaN when one is NaN."""
    return apply("max", a, b) if _traced(a, b) else np.maximum(a, b)


def clip(x: Any, low: Any, high: Any) -> Any:
    """x, but at least `low` and at most `high`."""
    return minimum(maximum(x, low), high)


def cast(x: Any, dtype: Any) -> Any:
    """x in another element type: a dtype, a NumPy type, or a name such as "i32"."""
    return x.astype(element_type(dtype).dtype)


def truncdiv(a: Any, b: Any) -> Any:
    """The integer quotient towards zero, as in C: without the correction of a signed `//`."""
    if _traced(a, b):
        return apply("quotient", a, b)
    quotient: Any = (a - np.fmod(a, b)) // b  # NumPy gives 0 for a division by zero, as we do
    return quotient


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of `truncdiv`, with the sign of a."""
    return apply("remainder", a, b) if _traced(a, b) else np.fmod(a, b)


def sqrt(x: Any) -> Any:
    """The square root of a float32."""
    return apply("sqrt", x) if _traced(x) else np.sqrt(x)


def exp(x: Any) -> Any:
    """e to the power of a float32."""
    return apply("exp", x) if _traced(x) else np.exp(x)


def log(x: Any) -> Any:
    """The natural logarithm of a float32."""
    return apply("log", x) if _traced(x) else np.log(x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent of a float32."""
    return apply("tanh", x) if _traced(x) else np.tanh(x)


def floor(x: Any) -> Any:
    """The largest whole number that is at most the float32 x."""
    return apply("floor", x) if _traced(x) else np.floor(x)


def ceil(x: Any) -> Any:
    """The smallest whole number that is at least the float32 x."""
    return apply("ceil", x) if _traced(x) else np.ceil(x)
