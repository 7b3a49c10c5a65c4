"""Window and group sizes, and the lengths that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX

from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import is_integer


def check_size(name: str, size: Any) -> None:
    """Raises UserError unless `size` is an integer from 1."""
    if not is_integer(size):
        fail(f"the {name} size is {size!r}", "sizes are Python integers, from 1")
    if size < 1:
        fail(f"the {name} size is {size}", "sizes are at least 1")


def checked_owned(n: int, window: int | None, group: int | None, *, fixed: bool) -> int:
    """How many results `n` elements give; `fixed` when the type will say n.

    A window over fewer elements gives none, and is refused where that is known beforehand.
    """
    if window is not None and window > n and fixed:
        fail(
            f"the window size {window} is larger than the {n} elements",
            "a window is at most as long as its input",
            "make the window smaller or pad the input",
        )
    owned = max(0, n - (window or 1) + 1)
    if group is not None and owned % group:
        less = f" less {window - 1} for the window" if window else ""
        fail(
            f"the group size {group} does not divide the {n} elements{less}",
            "groups are of one size",
            "pad the input, np.pad(x, (0, k)), or choose another size",
        )
    return owned // (group or 1)


@dataclass(frozen=True)
class Extent:
    """The length of a vector of a pipeline.

    `origin` says how it follows from the pipeline's length: equal origins are equal lengths.
    `known` is the number, when there is data to count. `fixed`: the type in the IR says it.
    """

    origin: tuple[Any, ...]
    known: int | None
    fixed: bool

    @property
    def in_type(self) -> int:
        """The length in the IR: DYNAMIC_INDEX, a negative number, for `?`."""
        return self.known if self.fixed and self.known is not None else DYNAMIC_INDEX

    def same(self, other: Extent) -> bool:
        """True when both lengths are known to be equal."""
        if self.origin == other.origin:
            return True
        return self.known is not None and self.known == other.known

    def after(self, window: int | None, group: int | None) -> Extent:
        """The length of what a window or group stage gives; raises UserError for bad sizes."""
        if window is None and group is None:
            return self
        known = self.known
        if known is not None:
            known = checked_owned(known, window, group, fixed=self.fixed)
        return Extent(("part", self.origin, window or 1, group or 1), known, self.fixed)

    def __str__(self) -> str:
        return "?" if self.known is None else str(self.known)
