"""UNI: the last of each run of equal neighbours; the vector ends in a value that ends a run."""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

from cim_opt.frontend import Pipeline


def uni(x: Any) -> Pipeline:
    p = Pipeline()
    p.fetch(p.filter(lambda w: w[0] != w[1], x, window=2))
    return p
