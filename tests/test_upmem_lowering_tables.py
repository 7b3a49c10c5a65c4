"""Reductions with tensor accumulators on the simulated machine: own copies, shared ones, both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_machine import write_machines
from upmem_lowering import outputs, run_checked, vector

from cim_opt.simulators.report import Report


def histogram(bins: int, element: str = "i32", start: str = "0", combine: str = "addi") -> str:
    table = f"tensor<{bins}x{element}>"
    return f"""
func.func @main(%a: tensor<?xi32>) -> {table} {{
  %z = arith.constant dense<{start}> : {table}
  %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : {table}) {{
    %bins = arith.constant {bins} : i32
    %q = arith.remui %x, %bins : i32
    %i = arith.index_cast %q : i32 to index
    %v = tensor.extract %acc[%i] : {table}
    %one = arith.constant 1 : {element}
    %w = arith.{combine} %v, %one : {element}
    %u = tensor.insert %w into %acc[%i] : {table}
    pattern.yield %u : {table}
  }} combine(%l, %r) {{
    %s = arith.{combine} %l, %r : {element}
    pattern.yield %s : {element}
  }}
  func.return %h : {table}
}}
"""


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("bins", [1, 3, 7, 256, 2001])
def test_histograms_private_to_a_tasklet(bins: int, element: str) -> None:
    a = vector("i32", 5003)
    for start in ("0", "5"):
        (got,) = outputs(histogram(bins, element, start), a, machine="upmem-1")
        expected = np.bincount(a.view(np.uint32) % bins, minlength=bins) + int(start)
        assert (got == expected.astype(got.dtype)).all()


@pytest.mark.parametrize("tasklets", [1, 5, 11, 16, 24])
def test_histograms_shared_under_a_mutex(tasklets: int) -> None:
    a = vector("i32", 5003)
    text = histogram(6001)
    result = run_checked(text, a, machine="upmem-1", tasklets=tasklets)
    assert ("upmem.critical" in str(result.lowered)) == (tasklets > 1)
    expected = np.bincount(a.view(np.uint32) % 6001, minlength=6001)
    assert (result.outputs[0] == expected).all()


def test_a_histogram_over_several_dpus_and_rounds(tmp_path: Any) -> None:
    machine = write_machines(tmp_path)["narrow"]
    a = vector("i32", 100_003)
    result = run_checked(histogram(100, start="3"), a, machine=machine)
    assert isinstance(result.report, Report)
    assert result.report.kernels[0].launches > 1
    expected = np.bincount(a.view(np.uint32) % 100, minlength=100) + 3
    assert (result.outputs[0] == expected).all()


TWO_TABLES = """
func.func @main(%a: tensor<?xi16>) -> (tensor<5xi8>, tensor<5xi64>) {
  %z = arith.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi8>
  %m = arith.constant dense<-9223372036854775808> : tensor<5xi64>
  %h, %g = pattern.reduce(%x in %a : tensor<?xi16>)
      init(%acc = %z : tensor<5xi8>, %most = %m : tensor<5xi64>) {
    %bins = arith.constant 5 : i16
    %q = arith.remui %x, %bins : i16
    %i = arith.index_cast %q : i16 to index
    %v = tensor.extract %acc[%i] : tensor<5xi8>
    %one = arith.constant 1 : i8
    %w = arith.addi %v, %one : i8
    %u = tensor.insert %w into %acc[%i] : tensor<5xi8>
    %o = tensor.extract %most[%i] : tensor<5xi64>
    %l = arith.extsi %x : i16 to i64
    %n = arith.maxsi %o, %l : i64
    %p = tensor.insert %n into %most[%i] : tensor<5xi64>
    pattern.yield %u, %p : tensor<5xi8>, tensor<5xi64>
  } combine(%l, %lm, %r, %rm) {
    %s = arith.addi %l, %r : i8
    %t = arith.maxsi %lm, %rm : i64
    pattern.yield %s, %t : i8, i64
  }
  func.return %h, %g : tensor<5xi8>, tensor<5xi64>
}
"""


def test_two_tables_of_different_elements() -> None:
    for length in (0, 3, 1000, 7001):
        run_checked(TWO_TABLES, vector("i16", length), machine="upmem-1")


SWAP = """
func.func @main(%a: tensor<?xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %z = arith.constant dense<0> : tensor<2xi32>
  %h, %g = pattern.reduce(%x in %a : tensor<?xi32>)
      init(%p = %z : tensor<2xi32>, %q = %z : tensor<2xi32>) {
    %c0 = arith.constant 0 : index
    %v = tensor.extract %p[%c0] : tensor<2xi32>
    %w = arith.addi %v, %x : i32
    %u = tensor.insert %w into %p[%c0] : tensor<2xi32>
    %t = tensor.insert %w into %q[%c0] : tensor<2xi32>
    pattern.yield %u, %t : tensor<2xi32>, tensor<2xi32>
  } combine(%l, %lm, %r, %rm) {
    %s = arith.addi %l, %r : i32
    %t = arith.addi %l, %r : i32
    pattern.yield %s, %t : i32, i32
  }
  func.return %h, %g : tensor<2xi32>, tensor<2xi32>
}
"""


def test_tables_of_several_accumulators() -> None:
    run_checked(SWAP, vector("i32", 1000), machine="upmem-1")
