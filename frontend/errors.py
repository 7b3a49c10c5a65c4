"""Errors of the frontend, with the place in the user's Python file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from cim_opt.errors import Location, UserError

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


class UnknownAttribute(UserError, AttributeError):
    """What a value of a pipeline does not have; also an AttributeError, so hasattr works."""


def user_frame() -> FrameType | None:
    """The innermost frame that belongs to the user: neither the frontend's nor NumPy's."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        file = os.path.abspath(frame.f_code.co_filename)
        if not file.startswith((_OURS, _NUMPY)):
            return frame
        frame = frame.f_back
    return None


def user_location() -> Location | None:
    """(file, line, column) of the user's code that is running now, from 1."""
    frame = user_frame()
    if frame is None:
        return None
    positions = list(frame.f_code.co_positions())
    # Two bytes an instruction; f_lasti is -1 before the first one.
    line, _, column, _ = positions[max(frame.f_lasti, 0) // 2]
    return frame.f_code.co_filename, line or frame.f_lineno, (column or 0) + 1


def function_location(f: Callable[..., Any]) -> Location | None:
    """(file, line, column) of a Python function; where the user's code is when it is built in."""
    code = getattr(f, "__code__", None)
    if code is None:
        return user_location()
    return code.co_filename, code.co_firstlineno, 1


def fail(
    what: str,
    limit: str | None = None,
    remedy: str | None = None,
    at: Callable[..., Any] | None = None,
) -> NoReturn:
    """Raises a UserError at the line of the user that is running, or at the function `at`."""
    location = user_location() if at is None else function_location(at)
    raise UserError(what, limit, remedy, location)
