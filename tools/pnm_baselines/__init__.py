"""Programs that compiled ones are compared with, written by hand from their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import ModuleOp

from cim_opt.tools.pnm_baselines import cinm, prim_rows, prim_tables, prim_vectors, simplepim

Baseline = Callable[..., ModuleOp]
"""Makes the program for so many DPUs and the arrays of a workload, which divide among them."""

BASELINES: Mapping[tuple[str, str], Baseline] = {
    ("prim", "VA"): prim_vectors.va,
    ("prim", "SEL"): prim_vectors.sel,
    ("prim", "UNI"): prim_vectors.uni,
    ("prim", "RED"): prim_vectors.red,
    ("prim", "SCAN"): prim_vectors.scan,
    ("prim", "HST-S"): prim_tables.hst_s,
    ("prim", "HST-L"): prim_tables.hst_l,
    ("prim", "TS"): prim_rows.ts,
    **{("prim", f"GEMV i{bits}"): prim_rows.gemv for bits in (8, 16, 32)},
    **{("prim", f"MLP i{bits}"): prim_rows.mlp for bits in (8, 16, 32)},
    ("simplepim", "VA"): simplepim.va,
    ("simplepim", "RED"): simplepim.red,
    ("simplepim", "HST-S"): simplepim.hst,
    ("simplepim", "LINREG"): simplepim.linreg,
    ("simplepim", "LOGREG"): simplepim.logreg,
    ("simplepim", "KMEANS"): simplepim.kmeans,
    ("cinm", "VA"): cinm.va,
    **{("cinm", f"GEMV i{bits}"): cinm.gemv for bits in (8, 16, 32)},
    **{("cinm", f"MLP i{bits}"): cinm.mlp for bits in (8, 16, 32)},
}
"""By framework and workload."""
