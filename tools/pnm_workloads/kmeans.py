"""KMEANS: one round of k-means, ten centres in ten dimensions.

For each centre the sums of its points' coordinates, and how many they are, eleven numbers.
"""

# Element functions are traced and have no types.
# pyright: basic

from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline, where

CENTRES = DIMENSIONS = 10
ROW = DIMENSIONS + 1


def kmeans(points: Any, centres: Any) -> Pipeline:
    def step(sums: Any, *args: Any) -> Any:
        x, c = args[:-1], args[-1]
        least, place = distance(x, c, 0), np.int32(0)
        for k in range(1, CENTRES):
            d = distance(x, c, k)
            place, least = where(d < least, k * ROW, place), where(d < least, d, least)
        for i, a in enumerate((*x, 1)):
            sums = sums.add_at(place + i, a)
        return sums

    p, zeros = Pipeline(), np.zeros(CENTRES * ROW, np.int32)
    p.fetch(p.reduce(step, *points, init=zeros, combine=lambda a, b: a + b, shared=centres))
    return p


def distance(x: Any, centres: Any, k: int) -> Any:
    return sum((a - centres[k * DIMENSIONS + i]) ** 2 for i, a in enumerate(x))
