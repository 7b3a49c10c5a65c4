"""Partial results of tensor accumulators: folded by the host, or stacked and folded in DRAM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simdram_lowering import SMALL, run_checked, write_machine

from cim_opt.hardware.simdram import load_machine
from cim_opt.mapping.simdram_partials import MOST_PARTIALS, Partials, best_height, seconds
from cim_opt.simulators.simdram_report import SimdramReport

MACHINE = load_machine("simdram-1")
CAMERA = Partials(256, 65536, 32, 4, 1, 224 * 49e-9)
"""A histogram of 256 bins, one partial sum a bin in each column."""

COUNT = ("%n = arith.addi %o, %one : i32", "%s = arith.addi %l, %r : i32")
# Not commutative: the last element of each bin that is not 0.
LAST = (
    "%c = arith.cmpi eq, %x, %zero : i32\n%n = arith.select %c, %o, %x : i32",
    "%zero2 = arith.constant 0 : i32\n%c2 = arith.cmpi eq, %r, %zero2 : i32\n"
    "%s = arith.select %c2, %l, %r : i32",
)


@pytest.fixture(scope="module")
def slow_host(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A machine whose host takes 10 us for an operation."""
    folder = tmp_path_factory.mktemp("machines")
    return write_machine(folder, {**SMALL, "host_scalar_ops_per_second": 100_000})


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_machine(tmp_path_factory.mktemp("machines"), SMALL)


def table(length: int | str, bins: int, functions: tuple[str, str]) -> str:
    """@main of elements and a table to start from."""
    body, combine = functions
    vec, acc = f"tensor<{length}xi32>", f"tensor<{bins}xi32>"
    return f"""func.func @main(%a: {vec}, %t: {acc}) -> {acc} {{
      %h = pattern.reduce(%x in %a : {vec}) init(%acc = %t : {acc}) {{
        %one = arith.constant 1 : i32
        %zero = arith.constant 0 : i32
        %bins = arith.constant {bins} : i32
        %j = arith.remui %x, %bins : i32
        %i = arith.index_cast %j : i32 to index
        %o = tensor.extract %acc[%i] : {acc}
        {body}
        %u = tensor.insert %n into %acc[%i] : {acc}
        pattern.yield %u : {acc}
      }} combine(%l, %r) {{
        {combine}
        pattern.yield %s : i32
      }}
      func.return %h : {acc}
    }}"""


def data(length: int, bins: int, functions: tuple[str, str]) -> tuple[Any, Any]:
    values = np.random.default_rng(length).integers(0, 3 * bins, length).astype(np.int32)
    start = np.arange(bins, dtype=np.int32) if functions is COUNT else np.zeros(bins, np.int32)
    return values, start


@pytest.mark.parametrize("functions", [COUNT, LAST], ids=["count", "last"])
@pytest.mark.parametrize("bins", [2, 11, 12, 25])
@pytest.mark.parametrize("length", [32, 64, 128, 256])
def test_stacked_partial_results(
    length: int, bins: int, functions: tuple[str, str], slow_host: str
) -> None:
    args = data(length, bins, functions)
    for level in ("bbop", "rows"):
        text = table(length, bins, functions)
        run = run_checked(text, *args, machine=slow_host, level=level)
        assert isinstance(run.report, SimdramReport)
        # One operation takes the host 10 us: each bin has far fewer than a partial result a lane.
        assert run.report.host_seconds < bins * min(length, 64) * 1e-5


@pytest.mark.parametrize("length", [0, 65, 130, "?"])
def test_lengths_that_leave_a_rest_are_folded_by_the_host(
    length: int | str, slow_host: str
) -> None:
    args = data(130 if length == "?" else int(length), 12, LAST)
    run_checked(table(length, 12, LAST), *args, machine=slow_host)


def test_a_quick_host_folds_by_itself(small: str) -> None:
    few = run_checked(table(128, 12, COUNT), *data(128, 12, COUNT), machine=small)
    assert isinstance(few.report, SimdramReport)
    # Two elements a lane for a batch of 11 bins and one of 1; the first elements serve both.
    assert few.report.transposed.count == 3


def test_the_camera_histogram() -> None:
    assert seconds(CAMERA, MACHINE, 1) == pytest.approx(23.5e-3, rel=0.01)
    assert best_height(CAMERA, MACHINE) == 256
    assert seconds(CAMERA, MACHINE, 256) < 6.5e-3


def test_heights() -> None:
    for partials in (1, 3, 6, 64, 65536 - 2):
        work = replace(CAMERA, partials=partials)
        chosen = best_height(work, MACHINE)
        assert partials % chosen == 0
        assert seconds(work, MACHINE, chosen) <= seconds(work, MACHINE, 1)
    # One fold of one row: bringing it in again takes longer than folding it.
    assert best_height(replace(CAMERA, folds=1), MACHINE) == 1
    # Nothing to fold.
    assert best_height(replace(CAMERA, partials=0), MACHINE) == 1
    # More than the host is to keep at once.
    assert best_height(replace(CAMERA, folds=2 * MOST_PARTIALS // 65536), MACHINE) == 1
