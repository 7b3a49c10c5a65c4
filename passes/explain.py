"""What passes say about their decisions when they are asked to."""

from __future__ import annotations

import sys

from xdsl.ir import Operation

from cim_opt.locations import location_of


def remark(op: Operation, text: str) -> None:
    """Prints `file:line:col: remark: text` to stderr, as compilers do; `file...` where known."""
    location = location_of(op)
    place = "" if location is None else f"{location[0]}:{location[1]}:{location[2]}: "
    print(f"{place}remark: '{op.name}': {text}", file=sys.stderr)
