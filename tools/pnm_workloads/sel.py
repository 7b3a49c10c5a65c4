"""SEL: the odd ones of a vector, in order."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

from cim_opt.frontend import Pipeline


def sel(x: Any) -> Pipeline:
    p = Pipeline()
    p.fetch(p.filter(lambda x: (x & 1) == 1, x))
    return p
