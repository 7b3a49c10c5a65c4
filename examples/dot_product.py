"""Dot product of two vectors on 2,560 simulated UPMEM processors.

Run it with `python examples/dot_product.py`.
"""

import sys
from typing import Any

import numpy as np
from show import show

from cim_opt.frontend import Execution, Pipeline


def dot_product(a: Any, b: Any, **options: Any) -> Execution:
    p = Pipeline(len(a))
    products = p.map(lambda x, y: x * y, a, b)
    p.fetch(p.reduce(lambda total, x: total + x, products, init=0))
    return p.execute(**options)


def main() -> int:
    a, b = np.random.default_rng(0).integers(-1000, 1000, (2, 1_000_003), dtype=np.int32)
    run = dot_product(a, b)
    print(f"the product is {run[0]}")
    return show(run)


if __name__ == "__main__":
    sys.exit(main())
