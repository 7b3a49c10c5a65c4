"""Suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """`did you mean 'a' or 'b'?` for the names most like `name`; None when none is like it."""
    matches = get_close_matches(name, list(known), n=2, cutoff=0.7)
    if not matches:
        return None
    return f"did you mean {' or '.join(repr(match) for match in matches)}?"
