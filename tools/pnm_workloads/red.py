"""RED: the sum of a vector."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

from cim_opt.frontend import Pipeline


def red(x: Any) -> Pipeline:
    p = Pipeline()
    p.fetch(p.reduce(lambda total, x: total + x, x))
    return p
