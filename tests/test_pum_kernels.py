"""The kernels of `cim-bench pum` at small sizes: both machines give what plain NumPy gives."""

from typing import Any

import numpy as np
import pytest

from cim_opt.frontend import Pipeline
from cim_opt.tools.pum_kernels import KERNELS


def executor(**options: Any) -> Any:
    def execute(pipeline: Pipeline, **inputs: Any) -> list[Any]:
        result = pipeline.execute(inputs=inputs, **options)
        assert result.check is not None
        assert result.check.ok
        return list(result)

    return execute


def check(name: str, limit: int, **options: Any) -> None:
    """Asserts that every result of a kernel is that of NumPy, with its type."""
    kernel = KERNELS[name]
    data = kernel.data(kernel.sizes["small"], np.random.default_rng(1), limit)
    before = {key: value.copy() for key, value in data.items()}
    with np.errstate(over="ignore"):
        expected = kernel.plain(data)
        got = kernel.run(executor(**options), data)
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


def test_there_are_twelve() -> None:
    assert len(KERNELS) == 12
    assert sum(kernel.is_matrix for kernel in KERNELS.values()) == 7
