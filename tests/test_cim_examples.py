"""The convolutions in `examples/cim`, on every target that runs them, against plain NumPy."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from convolution_oracle import Array, multiply
from run_lines import run_command

from cim_opt.errors import UserError
from cim_opt.simulators.run import PIPELINES, lower
from cim_opt.tools.load_module import parse_text

EXAMPLES = Path(__file__).parent.parent / "examples"

CASES = {
    # shapes of input, weights and output; form, stride, padding
    "conv1d": (((10,), (2, 3), (2, 8)), "w,fw->fw", 1, 0),
    "conv2d": (((1, 8, 28, 28), (16, 8, 3, 3), (1, 16, 14, 14)), "nchw,fchw->nfhw", 2, 1),
    "depthwise": (((1, 4, 56, 56), (4, 7, 7), (1, 4, 56, 56)), "nchw,chw->nchw", 1, 3),
}


def test_every_example_has_a_case() -> None:
    assert {path.stem for path in (EXAMPLES / "cim").glob("*.mlir")} == set(CASES)


def run(path: Path, target: str, arrays: dict[str, Array], scratch: Path) -> list[Array]:
    """What cim-run saves, checked by itself as well."""
    argv = ["cim-run", str(path), "--target", target, "--report", "json"]
    for name, array in arrays.items():
        np.save(scratch / f"{name}.npy", array)
        argv += ["--input", f"{name}={scratch / name}.npy"]
    out, err = io.StringIO(), io.StringIO()
    code = run_command([*argv, "--save", str(scratch / "out.npz")], "", out, err)
    assert code == 0, out.getvalue() + err.getvalue()
    report = json.loads(out.getvalue())
    assert report["check"] is None if target == "reference" else report["check"]["ok"]
    with np.load(scratch / "out.npz") as saved:
        return [saved[key] for key in sorted(saved)]


@pytest.mark.parametrize("target", ["reference", "cim"])
@pytest.mark.parametrize("name", CASES)
def test_convolution(name: str, target: str, tmp_path: Path) -> None:
    shapes, form, stride, zeros = CASES[name]
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in shapes[:2])
    axes = sum(letter in "hw" for letter in form.split("->")[1])
    steps = [stride] * axes, [1] * axes, [(zeros, zeros)] * axes
    expected = multiply(form, x, w, np.zeros(shapes[2], np.int32), *steps)
    path = EXAMPLES / "cim" / f"{name}.mlir"
    (got,) = run(path, target, {"x": x, "w": w}, tmp_path)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_gemv_of_words_runs_unchanged(rows: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(rows)
    limits = np.iinfo(np.int32)
    matrix, vector = (
        rng.integers(limits.min, limits.max, n, np.int32, endpoint=True) for n in (64 * rows, 64)
    )
    expected = (matrix.reshape(rows, 64).astype(np.int64) * vector).sum(axis=1).astype(np.int32)
    path = EXAMPLES / "gemv.mlir"
    (got,) = run(path, "cim", {"matrix": matrix, "vector": vector}, tmp_path)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("length", [0, 1, 7, 2561])
def test_dot_product_runs_unchanged(length: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(length)
    a, b = (rng.integers(-(1 << 31), 1 << 31, length, np.int64).astype("i4") for _ in "ab")
    expected = np.array((a.astype(np.int64) * b).sum()).astype(np.int32)
    (got,) = run(EXAMPLES / "dot_product.mlir", "cim", {"a": a, "b": b}, tmp_path)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("target, name", [("upmem", "UPMEM"), ("simdram", "SIMDRAM")])
def test_convolutions_are_for_macros(target: str, name: str) -> None:
    text = (EXAMPLES / "cim" / "conv2d.mlir").read_text()
    module = parse_text(text, "conv2d.mlir")
    with pytest.raises(UserError) as error:
        lower(module, PIPELINES[target], {})
    assert error.value.message().endswith(
        f" on {name}; convolutions and other kernels are compiled for macros; this machine takes "
        "patterns; choose target cim, or write it with pattern.group"
    )
    assert error.value.location is not None
