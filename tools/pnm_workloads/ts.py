"""TS: the least distance between a query and the windows of a time series.

All numbers are whole. A window of m elements with mean a and deviation s has from a query with
mean b and deviation t the distance 2 (m - (dot - m a b) / (s t)); means and deviations are given.
"""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

from cim_opt.frontend import Pipeline, minimum, truncdiv

MEAN, DEVIATION = 63, 37
"""Of the query."""


def ts(series: Any, query: Any, mean: Any, deviation: Any) -> Pipeline:
    p, m = Pipeline(), len(query)
    dot = p.window(lambda w, q: (w * q).sum(), series, size=m, shared=query)
    distance = p.map(
        lambda d, a, s: 2 * (m - truncdiv(d - m * a * MEAN, s * DEVIATION)), dot, mean, deviation
    )
    p.fetch(p.reduce(minimum, distance))
    return p
