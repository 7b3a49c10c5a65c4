"""Arithmetic of the host in a bbop stream: numbers where they are known, else text.

Text is a name, a call of `min` or `max`, or stands in parentheses, so that pieces can be joined.
All operands are at least 0, as those of the index arithmetic that lowerings emit.
"""

from __future__ import annotations

from collections.abc import Callable

Expr = int | str
"""A number that is known now, or the text of one that the host computes."""

_KNOWN: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else a,
    "min": min,
    "max": max,
}


def joined(symbol: str, left: Expr, right: Expr) -> Expr:
    """`left symbol right`, computed when both are known; a division by 0 gives 0."""
    if isinstance(left, int) and isinstance(right, int):
        return _KNOWN[symbol](left, right)
    if symbol in ("min", "max"):
        return f"{symbol}({left}, {right})"
    if (symbol, right) in (("+", 0), ("-", 0), ("*", 1), ("/", 1)):
        return left
    if (symbol, left) in (("+", 0), ("*", 1)):
        return right
    return f"({left} {symbol} {right})"
