"""The twelve kernels of `cim-bench pum`: sizes, stages, how they run, and the same in plain NumPy.

The sizes `A` and `B` are assumptions: published results name few of them. Both give the published
means, with the kernels in another order. `small` is for runs with data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cim_opt.tools import pum_matrix as matrix
from cim_opt.tools import pum_others as others
from cim_opt.tools.pum_matrix import Data, Sizes
from cim_opt.tools.pum_products import WAYS
from cim_opt.tools.pum_stages import PAIRS, Stage


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    `run(execute, data)` computes it by pipelines, `execute(pipeline, **inputs)` giving a
    pipeline's results; `plain(data)` is the same in NumPy. `data(sizes, rng, limit)` makes inputs
    from 0 to limit - 1. `is_matrix`: one of the seven that gain by the published mapping. Where
    there are more `ways` than one to use the columns, `run` takes one as its last argument.
    """

    name: str
    is_matrix: bool
    sizes: Mapping[str, Sizes]
    stages: Callable[[Sizes], list[Stage]]
    data: Callable[[Sizes, Any, int], Data]
    run: Callable[..., list[Any]]
    plain: Callable[[Data], list[Any]]
    ways: tuple[str, ...] = (PAIRS,)


def _same(small: Sizes, full: Sizes) -> dict[str, Sizes]:
    return {"small": small, "A": full, "B": full}


def _cube(names: str, small: int, a: int, b: int) -> dict[str, Sizes]:
    each = {"A": a, "B": b}
    shown: dict[str, Sizes] = {
        "small": {name: small + n for n, name in enumerate(names.split())},
    }
    return shown | {key: dict.fromkeys(names.split(), size) for key, size in each.items()}


def _covariance(a: int, b: int) -> dict[str, Sizes]:
    return {
        "small": {"variables": 5, "points": 7},
        "A": {"variables": a, "points": a},
        "B": {"variables": b, "points": b},
    }


_THREE_MM = _same(
    {"ni": 3, "nj": 5, "nk": 4, "nl": 6, "nm": 7},
    {"ni": 16000, "nj": 16000, "nk": 32000, "nl": 16000, "nm": 32000},
)
_KMEANS = _same(
    {"points": 9, "clusters": 3, "features": 4},
    {"points": 16384, "clusters": 16, "features": 16384},
)

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            "2mm",
            True,
            _cube("ni nj nk nl", 3, 32000, 16000),
            matrix.two_mm_stages,
            matrix.two_mm_data,
            matrix.two_mm,
            matrix.plain_two_mm,
            WAYS,
        ),
        Kernel(
            "3mm",
            True,
            _THREE_MM,
            matrix.three_mm_stages,
            matrix.three_mm_data,
            matrix.three_mm,
            matrix.plain_three_mm,
            WAYS,
        ),
        Kernel(
            "gemm",
            True,
            _cube("ni nj nk", 4, 32000, 16000),
            matrix.gemm_stages,
            matrix.gemm_data,
            matrix.gemm,
            matrix.plain_gemm,
            WAYS,
        ),
        Kernel(
            "covariance",
            True,
            _covariance(16000, 32000),
            matrix.covariance_stages,
            matrix.covariance_data,
            matrix.covariance,
            matrix.plain_covariance,
            (PAIRS, "left"),
        ),
        Kernel(
            "pca",
            True,
            _covariance(16000, 32000),
            matrix.covariance_stages,
            matrix.pca_data,
            matrix.pca,
            matrix.plain_pca,
            (PAIRS, "left"),
        ),
        Kernel(
            "doitgen",
            True,
            _same({"nr": 2, "nq": 3, "np": 5}, {"nr": 1000, "nq": 1000, "np": 10000}),
            matrix.doitgen_stages,
            matrix.doitgen_data,
            matrix.doitgen,
            matrix.plain_doitgen,
            WAYS,
        ),
        Kernel(
            "kmeans",
            True,
            _KMEANS,
            matrix.kmeans_stages,
            matrix.kmeans_data,
            matrix.kmeans,
            matrix.plain_kmeans,
        ),
        Kernel(
            "gramschmidt",
            False,
            _same({"ni": 6, "nj": 4}, {"ni": 4000, "nj": 4000}),
            others.gramschmidt_stages,
            others.gramschmidt_data,
            others.gramschmidt,
            others.plain_gramschmidt,
        ),
        Kernel(
            "heartwall",
            False,
            _same({"outputs": 4, "inputs": 9}, {"outputs": 51, "inputs": 2601}),
            others.correlation_stages,
            others.correlation_data,
            others.heartwall,
            others.plain_heartwall,
        ),
        Kernel(
            "backprop",
            False,
            _same({"outputs": 3, "inputs": 50}, {"outputs": 16, "inputs": 134_217_729}),
            others.correlation_stages,
            others.correlation_data,
            others.backprop,
            others.plain_backprop,
        ),
        Kernel(
            "fdtd-apml",
            False,
            _same({"cz": 2, "cym": 2, "cxm": 9}, {"cz": 64, "cym": 64, "cxm": 65536}),
            others.fdtd_apml_stages,
            others.fdtd_apml_data,
            others.fdtd_apml,
            others.plain_fdtd_apml,
        ),
        Kernel(
            "x264",
            False,
            _same({"pixels": 100}, {"pixels": 3840 * 2160}),
            others.x264_stages,
            others.x264_data,
            others.x264,
            others.plain_x264,
        ),
    )
}
