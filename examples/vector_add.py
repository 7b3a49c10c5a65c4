"""Sum of two vectors, element by element, on 2,560 simulated UPMEM processors.

Run it with `python examples/vector_add.py`.
"""

import sys
from typing import Any

import numpy as np
from show import show

from cim_opt.frontend import Execution, Pipeline


def vector_add(a: Any, b: Any, **options: Any) -> Execution:
    p = Pipeline(len(a))
    p.fetch(p.map(lambda x, y: x + y, a, b))
    return p.execute(**options)


def main() -> int:
    a, b = np.random.default_rng(0).integers(-1000, 1000, (2, 1_000_003), dtype=np.int32)
    return show(vector_add(a, b))


if __name__ == "__main__":
    sys.exit(main())
