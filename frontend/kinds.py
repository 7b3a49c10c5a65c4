"""What kind of Python object the user passed; each test also tells the type checker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard, cast

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def is_array(value: Any) -> TypeGuard[Array]:
    """A NumPy array with dimensions."""
    return isinstance(value, np.ndarray) and value.ndim > 0


def is_numpy_scalar(value: Any) -> TypeGuard[np.generic[Any]]:
    """A NumPy scalar, or an array without dimensions, which behaves like one."""
    return isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)


def is_python_number(value: Any) -> TypeGuard[bool | int | float]:
    """A Python number, which has no element type of its own; np.float64 is not one."""
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def is_integer(value: Any) -> TypeGuard[int]:
    """A Python or NumPy integer, but not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_list(value: Any) -> list[Any]:
    """The items of a tuple or list; anything else as the only item."""
    return list(cast(Iterable[Any], value)) if isinstance(value, tuple | list) else [value]
