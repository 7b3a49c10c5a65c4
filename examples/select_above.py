"""Select: the elements above a threshold, in order, and how many there are.

Run it with `python examples/select_above.py`.
"""

import sys
from typing import Any

import numpy as np
from show import show

from cim_opt.frontend import Execution, Pipeline


def select_above(a: Any, threshold: np.int32, **options: Any) -> Execution:
    p = Pipeline(len(a))
    kept = p.filter(lambda x, t: x > t, a, shared=threshold)
    p.fetch(kept, kept.count)
    return p.execute(**options)


def main() -> int:
    a = np.random.default_rng(0).integers(0, 100, 1_000_003, dtype=np.int32)
    run = select_above(a, np.int32(89))
    print(f"{run[1]} of {a.size} elements are above 89")
    return show(run)


if __name__ == "__main__":
    sys.exit(main())
