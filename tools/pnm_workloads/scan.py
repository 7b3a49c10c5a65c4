"""SCAN: all prefix sums of a vector."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

from cim_opt.frontend import Pipeline


def scan(x: Any) -> Pipeline:
    p = Pipeline()
    p.fetch(p.scan(lambda total, x: total + x, x))
    return p
