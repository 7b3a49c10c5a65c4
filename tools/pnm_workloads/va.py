"""VA: c = a + b."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

from cim_opt.frontend import Pipeline


def va(a: Any, b: Any) -> Pipeline:
    p = Pipeline()
    p.fetch(p.map(lambda a, b: a + b, a, b))
    return p
