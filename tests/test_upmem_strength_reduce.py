"""Cheaper operations of kernels give the same values, at the ends of the range too."""

from collections.abc import Sequence

import numpy as np
from upmem_lowering import Array, run_checked

from cim_opt.simulators.report import Report

SQUARES = """
func.func @main(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %y = pattern.map(%p in %a : tensor<?xi32>, %q in %b : tensor<?xi32>) -> tensor<?xi32> {
    %d = arith.subi %p, %q : i32
    %s = arith.muli %d, %d : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<?xi32>
}
"""

BINS = """
func.func @main(%a: tensor<?xi32>, %t: tensor<16xi32>) -> tensor<?xi32> {
  %y = pattern.map(%p in %a : tensor<?xi32>) shared(%u = %t : tensor<16xi32>) -> tensor<?xi32> {
    %c28 = arith.constant 28 : i32
    %s = arith.shrui %p, %c28 : i32
    %w = arith.extui %s : i32 to i64
    %i = arith.index_cast %w : i64 to index
    %v = tensor.extract %u[%i] : tensor<16xi32>
    pattern.yield %v : i32
  }
  func.return %y : tensor<?xi32>
}
"""


def saved(text: str, *args: Array) -> float:
    """Cycles that are saved; both runs are as the reference's."""
    return cycles_of(text, args, False) - cycles_of(text, args, True)


def cycles_of(text: str, args: Sequence[Array], on: bool) -> float:
    report = run_checked(text, *args, machine="upmem-1", reduce_strength=on).report
    assert isinstance(report, Report)
    return report.cycles


def ends_and_others(count: int) -> Array:
    ends = np.array([-(1 << 31), (1 << 31) - 1, -1, 0, 1, 46341, -46341], np.int32)
    rng = np.random.default_rng(0)
    return np.concatenate([ends, rng.integers(-1000, 1000, count - len(ends), np.int32)])


def test_squares_of_differences() -> None:
    a = ends_and_others(4096)
    assert saved(SQUARES, a, np.roll(a, 1)) > 4096


def test_indices_that_are_not_negative() -> None:
    a = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, 4096).astype(np.int32)
    assert saved(BINS, a, np.arange(16, dtype=np.int32)) > 4096 / 2
