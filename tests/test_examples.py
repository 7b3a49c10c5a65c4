"""Every example, in MLIR and in Python, against plain NumPy that knows nothing of cim-opt."""

# The cases are lambdas over arrays of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from run_lines import run_command

from cim_opt.errors import UserError

EXAMPLES = Path(__file__).parent.parent / "examples"
TARGETS = ("reference", "upmem", "simdram")
SIZES = (0, 1, 7, 300, 2561)

# A Python example makes a program for its length, and refuses a window that is longer.
LEAST = {"moving_average": 11, "unique": 2}

Array = Any
"""A NumPy array or scalar."""


class Case(NamedTuple):
    """Inputs by argument name for a size and a generator, and what NumPy makes of them."""

    inputs: Callable[[int, np.random.Generator], dict[str, Array]]
    expected: Callable[..., Sequence[Array]]


def whole_range(n: int, rng: np.random.Generator, dtype: Any = np.int32) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, n, dtype, endpoint=True)


def wrapped(values: Array) -> Array:
    return np.asarray(values, np.int64).astype(np.int32)


def averages(series: Array) -> Array:
    if len(series) < 11:
        return np.empty(0, np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(series.astype(np.int64), 11)
    sums = wrapped(windows.sum(axis=1)).astype(np.int64)
    return (np.sign(sums) * (np.abs(sums) // 11)).astype(np.int32)


def changes(a: Array) -> Sequence[Array]:
    kept = a[:-1][a[:-1] != a[1:]]
    return [kept, kept.size]


CASES = {
    "dot_product": Case(
        lambda n, rng: {"a": whole_range(n, rng), "b": whole_range(n, rng)},
        lambda a, b: [wrapped((a.astype(np.int64) * b).sum())],
    ),
    "vector_add": Case(
        lambda n, rng: {"a": whole_range(n, rng), "b": whole_range(n, rng)},
        lambda a, b: [wrapped(a.astype(np.int64) + b)],
    ),
    "select_above": Case(
        lambda n, rng: {"a": rng.integers(-9, 9, n, np.int32), "threshold": np.int32(2)},
        lambda a, threshold: [a[a > threshold], (a > threshold).sum()],
    ),
    "unique": Case(lambda n, rng: {"a": rng.integers(0, 3, n, np.int8)}, changes),
    "prefix_sum": Case(
        lambda n, rng: {"a": whole_range(n, rng)},
        lambda a: [wrapped(np.cumsum(a.astype(np.int64)))],
    ),
    "histogram": Case(
        lambda n, rng: {"img": rng.integers(0, 256, n, np.uint8)},
        lambda img: [np.bincount(img, minlength=256)],
    ),
    "moving_average": Case(
        lambda n, rng: {"series": whole_range(n, rng)}, lambda series: [averages(series)]
    ),
    "extreme": Case(
        lambda n, rng: {"series": whole_range(n, rng)},
        lambda series: [
            series.min(initial=2**31 - 1),
            series.max(initial=-(2**31)),
        ],
    ),
    "gemv": Case(
        lambda n, rng: {
            "matrix": whole_range(64 * n, rng).reshape(n, 64),
            "vector": whole_range(64, rng),
        },
        lambda matrix, vector: [wrapped((matrix.astype(np.int64) * vector).sum(axis=1))],
    ),
}


@pytest.fixture
def examples_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def assert_same(got: Sequence[Array], expected: Sequence[Array]) -> None:
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_example_has_a_case_and_both_versions() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} == set(CASES)
    helpers = {"camera", "show", "side_by_side", "sunspots"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} - helpers == set(CASES)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_mlir(name: str, size: int, target: str, tmp_path: Path) -> None:
    inputs = CASES[name].inputs(size, np.random.default_rng(size))
    argv = ["cim-run", str(EXAMPLES / f"{name}.mlir"), "--target", target, "--report", "json"]
    for argument, value in inputs.items():
        path = tmp_path / f"{argument}.npy"
        np.save(path, np.ravel(value) if np.ndim(value) else value)
        argv += ["--input", f"{argument}={path}"]
    out, err = io.StringIO(), io.StringIO()
    code = run_command([*argv, "--save", str(tmp_path / "out.npz")], "", out, err)
    assert code == 0, out.getvalue() + err.getvalue()
    run = json.loads(out.getvalue())
    assert run["check"] is None if target == "reference" else run["check"]["ok"]
    with np.load(tmp_path / "out.npz") as saved:
        assert_same([saved[key] for key in sorted(saved)], CASES[name].expected(**inputs))


@pytest.mark.usefixtures("examples_importable")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_python(name: str, size: int, target: str) -> None:
    inputs = CASES[name].inputs(size, np.random.default_rng(size))
    if size < LEAST.get(name, 0):
        with pytest.raises(UserError):
            getattr(import_module(name), name)(*inputs.values(), target=target)
        return
    run = getattr(import_module(name), name)(*inputs.values(), target=target)
    assert_same(list(run), CASES[name].expected(**inputs))
    assert target == "reference" or run.check.ok


@pytest.mark.usefixtures("examples_importable")
@pytest.mark.parametrize("name", CASES)
def test_python_as_it_stands(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "histogram":
        pytest.importorskip("skimage")
    assert import_module(name).main() == 0
    printed = capsys.readouterr().out
    assert "equals the reference" in printed
    assert "upmem-2560" in printed


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_python_as_a_script() -> None:
    done = script("extreme.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("from 0.0 to 190.2 sunspots a year\n")


# The real inputs.


def test_sunspots(tmp_path: Path) -> None:
    done = script("sunspots.py", str(tmp_path / "s.npy"))
    assert done.returncode == 0, done.stderr
    series = np.load(tmp_path / "s.npy")
    assert series.dtype == np.int32
    assert series.size == 309
    # The greatest cycle known, of 1957, and the quiet years around 1711.
    assert (int(series.argmax()), series.max()) == (1957 - 1700, 1902)
    assert series[1711 - 1700] == series[1712 - 1700] == 0


def test_camera(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    done = script("camera.py", str(tmp_path / "c.npy"))
    assert done.returncode == 0, done.stderr
    pixels = np.load(tmp_path / "c.npy")
    assert (pixels.dtype, pixels.shape) == (np.uint8, (512 * 512,))
    assert np.unique(pixels).size > 200


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("camera.py", "FILE.npy"),
        ("sunspots.py", "FILE.npy"),
        ("side_by_side.py", "FILE.mlir [--size K ...]"),
    ],
)
def test_scripts_without_a_file(name: str, arguments: str) -> None:
    done = script(name)
    assert done.returncode == 2
    assert done.stderr == f"usage: python examples/{name} {arguments}\n"


@pytest.mark.usefixtures("examples_importable")
def test_camera_without_scikit_image(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "skimage", None)
    monkeypatch.setattr(sys, "argv", ["camera.py", "c.npy"])
    assert import_module("camera").main() == 1
    assert "run: pip install -e '.[examples]'" in capsys.readouterr().err


# Both machines in one table.


def test_side_by_side() -> None:
    done = script("side_by_side.py", str(EXAMPLES / "dot_product.mlir"), "--size", "70001")
    assert done.returncode == 0, done.stderr
    title, heads, *rows = done.stdout.splitlines()
    assert title == "@dot_product, both equal to the reference"
    assert heads.split() == ["milliseconds", "upmem-2560", "simdram-1"]
    for column, target in ((-2, "upmem"), (-1, "simdram")):
        there, computing, back, host, beside, total = (float(r.split()[column]) for r in rows)
        assert there + computing + back + host - beside == pytest.approx(total, abs=0.003)
        assert total == pytest.approx(
            1e3 * run_of_size("dot_product", target, 70001)["seconds"], abs=0.001
        )


def test_side_by_side_says_why_there_is_no_table() -> None:
    done = script("side_by_side.py", str(EXAMPLES / "dot_product.mlir"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "%a is tensor<?xi32> and has no length" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# Sizes around the number of DPUs and of columns, and large ones.

LARGEST = 16777216
AROUND_DPUS = (2559, 2560, 2561)
AROUND_COLUMNS = (65535, 65536, 65537)
DEFAULT_MACHINES = {"upmem": "upmem-2560", "simdram": "simdram-1"}


def run_of_size(name: str, target: str, size: int) -> Any:
    """The JSON of a run of the MLIR example on random inputs of that size."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["cim-run", str(EXAMPLES / f"{name}.mlir"), "--target", target, "--report", "json"]
    code = run_command([*argv, "--size", str(size)], "", out, err)
    assert code == 0, out.getvalue() + err.getvalue()
    return json.loads(out.getvalue())


@pytest.mark.parametrize("target", DEFAULT_MACHINES)
@pytest.mark.parametrize("size", [0, 1, 7, *AROUND_DPUS, *AROUND_COLUMNS, 1000003, LARGEST])
def test_dot_product_of_size(size: int, target: str) -> None:
    run = run_of_size("dot_product", target, size)
    assert run["check"]["ok"] is True
    assert run["machine"] == DEFAULT_MACHINES[target]
    assert run["seconds"] >= 0


@pytest.mark.usefixtures("examples_importable")
@pytest.mark.parametrize("size", AROUND_COLUMNS)
@pytest.mark.parametrize("name", CASES)
def test_around_one_tile_of_columns(name: str, size: int) -> None:
    inputs = CASES[name].inputs(size, np.random.default_rng(size))
    run = getattr(import_module(name), name)(*inputs.values(), target="simdram")
    assert_same(list(run), CASES[name].expected(**inputs))
    assert run.check.ok


def test_the_largest_vectors_are_added_on_simdram_within_seconds() -> None:
    start = time.process_time()
    run = run_of_size("vector_add", "simdram", LARGEST)
    assert time.process_time() - start < 5
    assert run["check"]["ok"] is True
    # Every tile of 65,536 columns is full, and each is one addition.
    assert run["report"]["bbops"] == LARGEST // 65536
    assert run["report"]["utilisation"] == 1
