"""The messages with which a source file refuses something, read off its text.

Tests use them to ask for a negative test of each message.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path


def refusals_in(
    path: Path, names: Collection[str] = ("VerifyException", "raise_error")
) -> list[list[str]]:
    """For each call of one of `names`: the constant pieces of its first argument."""
    found = list[list[str]]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in names:
                found.append(_pieces(node.args[0]))
    return found


def _pieces(node: ast.expr) -> list[str]:
    """The constant pieces of a message, without the values that go into it."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return [piece for value in values for piece in _pieces(value)]
        case _:
            return []
