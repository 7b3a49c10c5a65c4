"""Random data, and how a function is traced, run and compared with itself on NumPy arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cim_opt.frontend import Pipeline

SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
INTEGERS = SIGNED + UNSIGNED
ALL = (np.bool_, *INTEGERS, np.float32)
SIZES = (0, 1, 7)
MACHINE = "upmem-1"
Array = np.ndarray[Any, Any]


def values(dtype: Any, n: int, seed: int = 0) -> Array:
    """Random values over the whole range of the type; the first ones are the extremes."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(n) < 0.5
    if dtype == np.float32:
        return rng.normal(0, 100, n).astype(np.float32)
    info = np.iinfo(dtype)
    data = rng.integers(info.min, info.max, n, dtype, endpoint=True)
    extremes = np.array([info.min, info.max, 0, 1], dtype)
    where_to = rng.permutation(n)[: len(extremes)]
    data[where_to] = extremes[: len(where_to)]
    return data


def run(p: Pipeline, *fetched: Any) -> list[Any]:
    """What the stages give: by NumPy, and the same on simulated machines."""
    p.fetch(*fetched)
    got = list(p.execute("reference"))
    machines = [p.execute("upmem", machine=MACHINE)]
    if "f32" not in p.to_mlir():
        machines.append(p.execute("simdram"))
    for machine in machines:
        assert machine.check.ok, machine.check
        assert machine.report is not None
        for one, other in zip(got, machine, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
    return list(machines[-1])


def check_map(f: Callable[..., Any], *arrays: Array) -> None:
    """f traced, by the reference, gives what f gives on NumPy arrays, in the same dtype."""
    p = Pipeline(len(arrays[0]))
    p.fetch(p.map(f, *arrays))
    got = p.execute("reference")[0]
    with np.errstate(all="ignore"):
        expected = np.asarray(f(*arrays))
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
