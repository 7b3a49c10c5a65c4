"""The fewest and the most yearly sunspots since 1700.

Run it with `python examples/extreme.py`.
"""

import sys
from typing import Any

from show import show
from sunspots import sunspots

from cim_opt.frontend import Execution, Pipeline, maximum, minimum


def extreme(series: Any, **options: Any) -> Execution:
    p = Pipeline(len(series))
    p.fetch(p.reduce(lambda low, x: minimum(low, x), series))
    p.fetch(p.reduce(lambda high, x: maximum(high, x), series))
    return p.execute(**options)


def main() -> int:
    run = extreme(sunspots())
    print(f"from {run[0] / 10} to {run[1] / 10} sunspots a year")
    return show(run)


if __name__ == "__main__":
    sys.exit(main())
