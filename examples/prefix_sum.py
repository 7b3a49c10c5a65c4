"""Prefix sum: y[i] = a[0] + ... + a[i].

Run it with `python examples/prefix_sum.py`.
"""

import sys
from typing import Any

import numpy as np
from show import show

from cim_opt.frontend import Execution, Pipeline


def prefix_sum(a: Any, **options: Any) -> Execution:
    p = Pipeline(len(a))
    p.fetch(p.scan(lambda total, x: total + x, a, init=0))
    return p.execute(**options)


def main() -> int:
    a = np.random.default_rng(0).integers(-1000, 1000, 1_000_003, dtype=np.int32)
    return show(prefix_sum(a))


if __name__ == "__main__":
    sys.exit(main())
