"""Unique: of each run of equal neighbours, one.

Run it with `python examples/unique.py`.
"""

import sys
from typing import Any

import numpy as np
from show import show

from cim_opt.frontend import Execution, Pipeline


def unique(a: Any, **options: Any) -> Execution:
    """Keeps the last of each run. `a` ends in an element that only ends the run before it."""
    p = Pipeline(len(a))
    kept = p.filter(lambda w: w[0] != w[1], a, window=2)
    p.fetch(kept, kept.count)
    return p.execute(**options)


def main() -> int:
    a = np.sort(np.random.default_rng(0).integers(0, 5000, 1_000_003, dtype=np.int32))
    run = unique(np.append(a, np.int32(-1)))
    print(f"{run[1]} different values among {a.size}")
    return show(run)


if __name__ == "__main__":
    sys.exit(main())
