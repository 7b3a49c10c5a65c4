"""Lines of code of a workload, by a rule that can be run.

Counted is every line of its file that holds code that a user writes for the machine: stages,
element functions, the constants that they name, declarations of data, signatures; a call over five
lines is five. Not counted are imports, docstrings, comments and blank lines.
"""

from __future__ import annotations

import ast


def lines_of_code(text: str) -> int:
    """Lines of `text` that hold code, without imports, docstrings and comments."""
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node):
            left_out |= _lines(node)
    counted: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            counted |= _lines(node)
    blank = {n for n, line in enumerate(text.splitlines(), 1) if not _has_code(line)}
    return len(counted - left_out - blank)


def _lines(node: ast.AST) -> set[int]:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return set(range(first, last + 1))


def _is_text(node: ast.AST) -> bool:
    """A string that stands alone: a docstring, or words on the constant above."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _has_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")
