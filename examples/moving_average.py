"""Average of the yearly sunspot numbers over 11 years, about one solar cycle.

Run it with `python examples/moving_average.py`.
"""

import sys
from typing import Any

from show import show
from sunspots import FIRST_YEAR, sunspots

from cim_opt.frontend import Execution, Pipeline, truncdiv

YEARS = 11


def moving_average(series: Any, **options: Any) -> Execution:
    p = Pipeline(len(series))
    p.fetch(p.window(lambda years: truncdiv(years.sum(), YEARS), series, size=YEARS))
    return p.execute(**options)


def main() -> int:
    run = moving_average(sunspots())
    for start, tenths in list(enumerate(run[0], FIRST_YEAR))[::50]:
        print(f"{start} to {start + YEARS - 1}: {tenths / 10:5.1f} sunspots")
    return show(run)


if __name__ == "__main__":
    sys.exit(main())
