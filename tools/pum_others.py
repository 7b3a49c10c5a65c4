"""The other five kernels of `cim-bench pum`, which gain nothing from the published mapping."""

from __future__ import annotations

from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from cim_opt.tools import pum_stages as stages
from cim_opt.tools.pum_matrix import ADD, SUB, Data, Sizes
from cim_opt.tools.pum_products import MUL
from cim_opt.tools.pum_stages import BYTE, FIELDS, Stage

DIV = ("div_u", 32)


# -- gramschmidt -----------------------------------------------------------------------------------


def gramschmidt_stages(s: Sizes) -> list[Stage]:
    """Columns one after the other; what is left of them may hold anything, so no ranges.

    The columns after one do not depend on each other.
    """
    n, columns = s["ni"], s["nj"]
    later = range(columns)
    pairs = sum(later)
    sums = partial(stages.sum_of_products, n)
    return [
        Stage("norm", sums, 1, n, (MUL,), columns, reduces=32),
        Stage("divide", partial(stages.quotients, n, 1), 1, n, (DIV,), columns),
        Stage("products", sums, 1, n, (MUL,), pairs, reduces=32, batches=later),
        Stage(
            "eliminate", partial(stages.eliminated, n, 1), 1, n, (MUL, SUB), pairs, batches=later
        ),
    ]


def gramschmidt_data(s: Sizes, rng: Any, limit: int) -> Data:
    return {"a": rng.integers(0, limit, (s["nj"], s["ni"]), np.uint32)}


def gramschmidt(execute: Any, d: Data) -> list[Any]:
    """Rows of `a` are the columns of the matrix; whole numbers, norms rounded down."""
    a = d["a"].copy()
    n = a.shape[1]
    factors: list[int] = []
    for k in range(len(a)):
        (square,) = execute(stages.sum_of_products(n), x=a[k], y=a[k])
        (q,) = execute(stages.quotients(n, max(1, isqrt(int(square)))), x=a[k])
        for j in range(k + 1, len(a)):
            (factor,) = execute(stages.sum_of_products(n), x=q, y=a[j])
            (a[j],) = execute(stages.eliminated(n, int(factor)), x=a[j], q=q)
            factors.append(int(factor))
        a[k] = q
    return [a, np.array(factors, np.uint32)]


def plain_gramschmidt(d: Data) -> list[Any]:
    a = d["a"].copy()
    factors: list[int] = []
    for k in range(len(a)):
        norm = max(1, isqrt(int(np.add.reduce(a[k] * a[k], dtype=np.uint32))))
        a[k] //= np.uint32(norm)
        for j in range(k + 1, len(a)):
            factor = np.add.reduce(a[k] * a[j], dtype=np.uint32)
            a[j] -= a[k] * factor
            factors.append(int(factor))
    return [a, np.array(factors, np.uint32)]


# -- heartwall, backprop ---------------------------------------------------------------------------


def correlation_stages(s: Sizes) -> list[Stage]:
    """`outputs` sums of `inputs` products: windows and templates, or weights and inputs."""
    outputs, inputs = s["outputs"], s["inputs"]
    build = partial(stages.dot_products, outputs, inputs, np.int32)
    ranges = {"a": BYTE, "b": BYTE}
    return [Stage("products", build, outputs, inputs, (MUL,), ranges=ranges, reduces=32)]


def correlation_data(s: Sizes, rng: Any, limit: int) -> Data:
    shape = (s["outputs"], s["inputs"])
    return {name: rng.integers(0, limit, shape, np.int32) for name in ("a", "b")}


def _sums(execute: Any, a: Any, b: Any) -> Any:
    outputs, inputs = a.shape
    pipeline = stages.dot_products(outputs, inputs, np.int32)
    return execute(pipeline, a=a.reshape(-1), b=np.ascontiguousarray(b).reshape(-1))[0]


def heartwall(execute: Any, d: Data) -> list[Any]:
    """Correlation of a window and a template a point, in fixed point with 8 bits after it."""
    return [_sums(execute, d["a"], d["b"]) >> 8]


def plain_heartwall(d: Data) -> list[Any]:
    return [np.add.reduce(d["a"] * d["b"], axis=1, dtype=np.int32) >> 8]


def backprop(execute: Any, d: Data) -> list[Any]:
    """A layer forward: weights times inputs; the host computes the sigmoid."""
    inputs = np.tile(d["b"][0], (len(d["a"]), 1))
    return [_sigmoid(_sums(execute, d["a"], inputs))]


def plain_backprop(d: Data) -> list[Any]:
    return [_sigmoid(np.add.reduce(d["a"] * d["b"][0], axis=1, dtype=np.int32))]


def _sigmoid(sums: Any) -> Any:
    return 1 / (1 + np.exp(-(sums / 65536.0)))


# -- fdtd-apml, x264 -------------------------------------------------------------------------------

APML_BODY = (SUB, ADD, SUB, MUL, MUL, SUB, DIV, MUL, DIV, MUL, ADD, DIV, MUL, SUB)


def fdtd_apml_stages(s: Sizes) -> list[Stage]:
    """One step of the fields, row by row; scalars differ from row to row."""
    rows, length = s["cz"] * s["cym"], s["cxm"]
    build = partial(stages.apml_row, length, (1, 1, 1, 1))
    names = (*FIELDS, *(f"arg{len(FIELDS) + n}" for n in range(4)))
    ranges = dict.fromkeys(names, BYTE)
    return [Stage("rows", build, 1, length, APML_BODY, rows, ranges)]


def fdtd_apml_data(s: Sizes, rng: Any, limit: int) -> Data:
    rows, length = s["cz"] * s["cym"], s["cxm"]
    made: Data = {name: rng.integers(0, limit, (rows, length), np.uint32) for name in FIELDS}
    made["scalars"] = rng.integers(0, limit, (rows, 4), np.uint32)
    return made


def fdtd_apml(execute: Any, d: Data) -> list[Any]:
    made: list[Any] = []
    for row, scalars in enumerate(d["scalars"]):
        pipeline = stages.apml_row(d["ex"].shape[1], tuple(int(x) for x in scalars))
        made += execute(pipeline, **{name: d[name][row] for name in FIELDS})
    return made


def plain_fdtd_apml(d: Data) -> list[Any]:
    made: list[Any] = []
    for row, (ratio, ch, plus, minus) in enumerate(d["scalars"]):
        ex, ex_next, ey, ey_next, bza, hz, cxmh, cxph = (d[name][row] for name in FIELDS)
        new = ratio * bza - ch * (ex - ex_next + ey_next - ey)
        quotients = [_divided(x, cxph) for x in (cxmh, plus, minus)]
        made += [new, quotients[0] * hz + quotients[1] * new - quotients[2] * bza]
    return made


def _divided(x: Any, y: Any) -> Any:
    """Rounded down; by 0 it is 0."""
    return np.where(y == 0, np.uint32(0), x // np.maximum(y, np.uint32(1)))


def x264_stages(s: Sizes) -> list[Stage]:
    length = s["pixels"]
    body = (("add", 16), ("add", 16))
    ranges = {"a": BYTE, "b": BYTE}
    return [Stage("average", partial(stages.averages, length), 1, length, body, ranges=ranges)]


def x264_data(s: Sizes, rng: Any, limit: int) -> Data:
    return {name: rng.integers(0, min(limit, 256), s["pixels"], np.uint16) for name in "ab"}


def x264(execute: Any, d: Data) -> list[Any]:
    return list(execute(stages.averages(len(d["a"])), a=d["a"], b=d["b"]))


def plain_x264(d: Data) -> list[Any]:
    return [((d["a"].astype(np.uint32) + d["b"] + 1) // 2).astype(np.uint16)]
