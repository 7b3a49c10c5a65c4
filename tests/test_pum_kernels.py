"""The kernels of `cim-bench pum` at small sizes: both machines give what plain NumPy gives."""

from typing import Any

import numpy as np
import pytest

from cim_opt.frontend import Pipeline
from cim_opt.tools.pum_kernels import KERNELS
from cim_opt.tools.pum_products import ROWS, WAYS, product
from cim_opt.tools.pum_stages import PAIRS


def executor(**options: Any) -> Any:
    def execute(pipeline: Pipeline, **inputs: Any) -> list[Any]:
        result = pipeline.execute(inputs=inputs, **options)
        assert result.check is not None
        assert result.check.ok
        return list(result)

    return execute


def check(name: str, limit: int, *way: str, **options: Any) -> None:
    """Asserts that every result of a kernel is that of NumPy, with its type."""
    kernel = KERNELS[name]
    data = kernel.data(kernel.sizes["small"], np.random.default_rng(1), limit)
    before = {key: value.copy() for key, value in data.items()}
    with np.errstate(over="ignore"):
        expected = kernel.plain(data)
        got = kernel.run(executor(**options), data, *way)
    assert all(np.array_equal(before[key], data[key]) for key in data)
    assert len(got) == len(expected) > 0
    for left, right in zip(got, expected, strict=True):
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)


@pytest.mark.parametrize("limit", [256, 1 << 31])
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_on_simdram_is_numpys(name: str, limit: int) -> None:
    check(name, limit, target="simdram")


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_by_published_programs_on_rows_is_numpys(name: str) -> None:
    check(name, 1 << 31, target="simdram", library="simdram", level="rows")


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_on_upmem_is_numpys(name: str) -> None:
    check(name, 1 << 31, target="upmem")


BY_SCALARS = [
    (name, way) for name, kernel in KERNELS.items() for way in kernel.ways if way != PAIRS
]


@pytest.mark.parametrize("level", ["bbop", "rows"])
@pytest.mark.parametrize("library", ["simdram", "cim-opt"])
@pytest.mark.parametrize(("name", "way"), BY_SCALARS)
def test_a_kernel_by_scalars_is_numpys(name: str, way: str, library: str, level: str) -> None:
    options = {"mapping": "output-stationary"}
    check(name, 1 << 31, way, target="simdram", library=library, level=level, options=options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [1, ROWS, ROWS + 3])
def test_a_product_of_more_rows_than_go_into_a_pipeline(rows: int, way: str) -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 1 << 32, (rows, 9), np.uint32)
    b = rng.integers(0, 1 << 32, (9, ROWS + 2), np.uint32)
    execute = executor(target="simdram", options={"mapping": "output-stationary"})
    got = product(execute, a, b, way)
    assert got.dtype == np.uint32
    assert np.array_equal(got, a @ b)


def test_a_covariance_of_more_variables_than_go_into_a_pipeline() -> None:
    kernel = KERNELS["pca"]
    sizes = {"variables": ROWS + 5, "points": 10}
    data = kernel.data(sizes, np.random.default_rng(6), 1 << 31)
    execute = executor(target="simdram", options={"mapping": "output-stationary"})
    with np.errstate(over="ignore"):
        expected = kernel.plain(data)
    for left, right in zip(expected, kernel.run(execute, data, "left"), strict=True):
        assert np.array_equal(left, right)


def test_there_are_twelve() -> None:
    assert len(KERNELS) == 12
    assert sum(kernel.is_matrix for kernel in KERNELS.values()) == 7
