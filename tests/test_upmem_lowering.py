"""Lowered programs on the simulated machine, where random pipelines do not reach.

Every run is compared with the reference; some with plain NumPy too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_machine import write_machines
from upmem_lowering import outputs, run_checked, vector

from cim_opt.simulators.report import Report

# -- f32 -----------------------------------------------------------------------------------------

SQRT = """
func.func @main(%a: tensor<?xf32>, %k: f32) -> tensor<?xf32> {
  %y = pattern.map(%x in %a : tensor<?xf32>) shared(%s = %k : f32) -> tensor<?xf32> {
    %p = arith.mulf %x, %x : f32
    %q = arith.divf %p, %s : f32
    %r = arith.addf %q, %x : f32
    pattern.yield %r : f32
  }
  func.return %y : tensor<?xf32>
}
"""
NORM = """
func.func @main(%a: tensor<?xf32>) -> (f32, tensor<?xf32>) {
  %zero = arith.constant 0.5 : f32
  %r = pattern.reduce(%x in %a : tensor<?xf32>) init(%acc = %zero : f32) {
    %s = arith.addf %acc, %x : f32
    pattern.yield %s : f32
  }
  %y = pattern.scan(%x in %a : tensor<?xf32>) init(%acc = %zero : f32) {
    %s = arith.addf %acc, %x : f32
    pattern.yield %s : f32
  }
  func.return %r, %y : f32, tensor<?xf32>
}
"""


def test_float_elements_are_exact() -> None:
    a = vector("f32", 10007)
    (got,) = outputs(SQRT, a, np.float32(3))
    expected = a * a / np.float32(3) + a
    assert got.dtype == np.float32
    assert (got.view(np.int32) == expected.view(np.int32)).all()


def test_float_sums_are_within_the_bound() -> None:
    a = vector("f32", 10007)
    result = run_checked(NORM, a)
    assert result.check is not None
    assert all("bit-exact" not in check.rule for check in result.check.results)
    total, sums = result.outputs
    assert np.isclose(total, 0.5 + a.sum(dtype=np.float64), atol=1e-2)
    assert np.allclose(sums, 0.5 + np.cumsum(a, dtype=np.float64), atol=1e-2)


# -- whole programs --------------------------------------------------------------------------------

DOUBLE = """
  %{out} = pattern.map(%x in %{source} : tensor<?xi32>) -> tensor<?xi32> {{
    %next = arith.addi %x, %x : i32
    pattern.yield %next : i32
  }}
"""
SUM = """
  %{out} = pattern.reduce(%x in %{source} : tensor<?xi32>) init(%acc = %{init} : i32) {{
    %next = arith.addi %acc, %x : i32
    pattern.yield %next : i32
  }}
"""
SCAN = SUM.replace("pattern.reduce", "pattern.scan")
KEEP = """
  %{out}, %n{out} = pattern.filter(%x in %{source} : tensor<?xi32>) -> (tensor<?xi32>, index) {{
    %least = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %least : i32
    pattern.yield %keep, %x : i1, i32
  }}
"""


def main(results: str, types: str, *steps: str, arguments: str = "%a: tensor<?xi32>") -> str:
    return "\n".join(
        [
            f"func.func @main({arguments}) -> ({types}) {{",
            "%zero = arith.constant 0 : i32",
            *steps,
            f"func.return {results} : {types}",
            "}",
        ]
    )


V = "tensor<?xi32>"


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("length", [0, 1, 1000, 20011])
def test_a_result_used_and_returned_twice(length: int, fuse: bool) -> None:
    text = main(
        "%d, %d, %r, %a",
        f"{V}, {V}, i32, {V}",
        DOUBLE.format(out="d", source="a"),
        SUM.format(out="r", source="d", init="zero"),
        SCAN.format(out="u", source="d", init="r"),
        SUM.format(out="unused", source="u", init="zero"),
    )
    a = vector("i32", length)
    got = outputs(text, a, fuse=fuse)
    assert (got[0] == a + a).all()
    assert (got[1] == a + a).all()
    assert got[2] == (a + a).sum(dtype=np.int32)
    assert (got[3] == a).all()


@pytest.mark.parametrize("length", [0, 1, 1000, 20011])
def test_a_filter_feeds_everything(length: int) -> None:
    text = main(
        "%d, %r, %s, %g, %nk",
        f"{V}, i32, {V}, {V}, index",
        KEEP.format(out="k", source="a"),
        DOUBLE.format(out="d", source="k"),
        SUM.format(out="r", source="k", init="zero"),
        SCAN.format(out="s", source="k", init="zero"),
        KEEP.format(out="g", source="d"),
    )
    a = vector("i32", length)
    kept = a[a > 0]
    double, total, sums, again, count = outputs(text, a)
    assert (double == kept + kept).all()
    assert total == kept.sum(dtype=np.int32)
    assert (sums == np.cumsum(kept, dtype=np.int32)).all()
    assert (again == (kept + kept)[kept + kept > 0]).all()
    assert count == len(kept)


@pytest.mark.parametrize("merge", ["machine", "host"])
@pytest.mark.parametrize("flag", ["", "exclusive "])
@pytest.mark.parametrize("element", ["i8", "i32", "i64"])
def test_scans_of_either_kind(element: str, flag: str, merge: str, tmp_path: Path) -> None:
    """In one round and in several, of fewer and more elements than tasklets."""
    scanned = SCAN.format(out="y", source="a", init="zero").replace("scan(", f"scan {flag}(")
    text = main("%y", V, scanned).replace("i32", element)
    machine = write_machines(tmp_path)["narrow"]
    for length in (0, 1, 7, 1000, 40001):
        a = vector(element, length)
        (got,) = outputs(text, a, machine=machine, merge=merge)
        sums = np.cumsum(a, dtype=a.dtype)
        assert (got == (sums - a if flag else sums)).all()


@pytest.mark.parametrize("exclusive", ["", "exclusive "])
@pytest.mark.parametrize("length", [0, 1, 2, 1000, 5001])
def test_a_scan_whose_function_takes_shared_operands(length: int, exclusive: str) -> None:
    scan = f"""%y = pattern.scan {exclusive}(%x in %a : tensor<?xi32>) init(%acc = %zero : i32)
        shared(%m = %n : i32, %t = %u : tensor<2xi32>) {{
      %s = arith.addi %acc, %x : i32
      %r = arith.remui %s, %m : i32
      %c = arith.constant 1 : index
      %o = tensor.extract %t[%c] : tensor<2xi32>
      %p = arith.remui %r, %o : i32
      pattern.yield %p : i32
    }}"""
    arguments = "%a: tensor<?xi32>, %n: i32, %u: tensor<2xi32>"
    a = vector("i32", length) & 511
    modulus = np.array([3, 997], np.int32)
    (got,) = outputs(main("%y", V, scan, arguments=arguments), a, np.int32(997), modulus)
    expected = np.cumsum(a, dtype=np.int64) % 997
    if exclusive:
        expected = np.append(0, expected)[:length]
    assert (got == expected).all()


def test_a_reduction_shared_with_a_later_map() -> None:
    text = main(
        "%y, %z",
        f"{V}, {V}",
        SUM.format(out="r", source="a", init="zero"),
        """%y = pattern.map(%x in %a : tensor<?xi32>) shared(%m = %r : i32) -> tensor<?xi32> {
          %d = arith.subi %x, %m : i32
          pattern.yield %d : i32
        }
        %two = arith.constant 2 : i32
        %h = arith.divsi %r, %two : i32
        %z = pattern.map(%x in %y : tensor<?xi32>) shared(%m = %h : i32) -> tensor<?xi32> {
          %d = arith.muli %x, %m : i32
          pattern.yield %d : i32
        }""",
    )
    a = vector("i32", 5003)
    y, _ = outputs(text, a)
    assert (y == a - a.sum(dtype=np.int32)).all()


def test_a_histogram_shared_with_a_later_map() -> None:
    bins = """
  %t = arith.constant dense<0> : tensor<16xi32>
  %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %t : tensor<16xi32>) {
    %m = arith.constant 15 : i32
    %q = arith.andi %x, %m : i32
    %i = arith.index_cast %q : i32 to index
    %v = tensor.extract %acc[%i] : tensor<16xi32>
    %one = arith.constant 1 : i32
    %w = arith.addi %v, %one : i32
    %u = tensor.insert %w into %acc[%i] : tensor<16xi32>
    pattern.yield %u : tensor<16xi32>
  } combine(%l, %r) {
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }
  %y = pattern.map(%x in %a : tensor<?xi32>) shared(%g = %h : tensor<16xi32>) -> tensor<?xi32> {
    %m = arith.constant 15 : i32
    %q = arith.andi %x, %m : i32
    %i = arith.index_cast %q : i32 to index
    %v = tensor.extract %g[%i] : tensor<16xi32>
    pattern.yield %v : i32
  }"""
    a = vector("i32", 5003)
    (y,) = outputs(main("%y", V, bins), a)
    assert (y == np.bincount(a & 15, minlength=16)[a & 15]).all()


@pytest.mark.parametrize("length", [0, 3, 1000, 5003])
def test_host_control_flow_around_patterns(length: int) -> None:
    text = main(
        "%v, %t, %w",
        f"{V}, i32, {V}",
        """%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %v, %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%b = %a, %s = %zero)
            -> (tensor<?xi32>, i32) {""",
        DOUBLE.format(out="d", source="b"),
        SUM.format(out="r", source="d", init="s"),
        """scf.yield %d, %r : tensor<?xi32>, i32
        }
        %k = arith.cmpi slt, %t, %zero : i32
        %w = scf.if %k -> (tensor<?xi32>) {""",
        DOUBLE.format(out="e", source="v"),
        """scf.yield %e : tensor<?xi32>
        } else {""",
        SCAN.format(out="f", source="v", init="t"),
        """scf.yield %f : tensor<?xi32>
        }""",
    )
    a = vector("i32", length)
    v, t, _ = outputs(text, a)
    assert (v == a * 8).all()
    assert t == (a * 14).sum(dtype=np.int32)


def test_patterns_of_one_launch_with_windows_and_groups() -> None:
    text = main(
        "%w, %g, %r",
        "tensor<?xi32>, tensor<?xi8>, i8",
        DOUBLE.format(out="d", source="a"),
        """%w = pattern.window<4>(%s in %d : tensor<?xi32>) -> tensor<?xi32> {
          %c0 = arith.constant 0 : index
          %c3 = arith.constant 3 : index
          %p = tensor.extract %s[%c0] : tensor<4xi32>
          %q = tensor.extract %s[%c3] : tensor<4xi32>
          %z = arith.subi %p, %q : i32
          pattern.yield %z : i32
        }
        %g = pattern.group<3>(%s in %w : tensor<?xi32>) -> tensor<?xi8> {
          %c0 = arith.constant 2 : index
          %p = tensor.extract %s[%c0] : tensor<3xi32>
          %z = arith.trunci %p : i32 to i8
          pattern.yield %z : i8
        }
        %first = arith.constant 1 : i8
        %r = pattern.reduce(%x in %g : tensor<?xi8>) init(%acc = %first : i8) {
          pattern.yield %x : i8
        }""",
    )
    for length in (6, 9, 1008, 30_003):
        a = vector("i32", length)
        w, g, r = outputs(text, a, fuse=False)
        d = a + a
        assert (w == d[:-3] - d[3:]).all()
        assert (g == w[2::3].astype(np.int8)).all()
        assert r == g[-1]


FIRST = """
func.func @main(%a: tensor<?xi32>) -> (i8, i8) {
  %z = arith.constant 0 : i8
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi8> {
    %y = arith.trunci %x : i32 to i8
    pattern.yield %y : i8
  }
  %r = pattern.reduce(%x in %m : tensor<?xi8>) init(%acc = %z : i8) {
    pattern.yield %x : i8
  }
  %s = pattern.reduce(%x in %m : tensor<?xi8>) init(%acc = %z : i8) {
    %q = arith.addi %acc, %x : i8
    pattern.yield %q : i8
  }
  func.return %r, %s : i8, i8
}
"""


@pytest.mark.parametrize("length", [2, 6, 10, 30, 102])
def test_first_elements_of_idle_tasklets(length: int) -> None:
    a = vector("i32", length)
    last, total = outputs(FIRST, a, machine="upmem-1", tasklets=16)
    assert last == a.astype(np.int8)[-1]
    assert total == a.astype(np.int8).sum(dtype=np.int8)


def test_tables_that_fit_one_at_a_time() -> None:
    one = """
  %h{k} = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : tensor<9000xi32>) {{
    %n = arith.constant {n} : i32
    %q = arith.remui %x, %n : i32
    %i = arith.index_cast %q : i32 to index
    %v = tensor.extract %acc[%i] : tensor<9000xi32>
    %w = arith.addi %v, %x : i32
    %u = tensor.insert %w into %acc[%i] : tensor<9000xi32>
    pattern.yield %u : tensor<9000xi32>
  }} combine(%l, %r) {{
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }}"""
    text = main(
        "%h1, %h2",
        "tensor<9000xi32>, tensor<9000xi32>",
        "%z = arith.constant dense<0> : tensor<9000xi32>",
        one.format(k=1, n=9000),
        one.format(k=2, n=77),
    )
    result = run_checked(text, vector("i32", 3001), machine="upmem-1")
    assert isinstance(result.report, Report)
    assert len(result.report.kernels) == 2


# -- the machine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny", "narrow", "odd"])
def test_many_rounds_of_everything(name: str, tmp_path: Any) -> None:
    text = main(
        "%d, %r, %s, %k, %nk",
        f"{V}, i32, {V}, {V}, index",
        DOUBLE.format(out="d", source="a"),
        SUM.format(out="r", source="d", init="zero"),
        SCAN.format(out="s", source="d", init="zero"),
        KEEP.format(out="k", source="d"),
    )
    a = vector("i32", 30_011)
    d, r, s, k, n = outputs(text, a, machine=write_machines(tmp_path)[name])
    assert (d == a + a).all()
    assert r == d.sum(dtype=np.int32)
    assert (s == np.cumsum(d, dtype=np.int32)).all()
    assert (k == d[d > 0]).all()
    assert n == len(k)


@pytest.mark.parametrize("transfer", ["measured", "linear"])
def test_transfer_models_change_only_the_time(transfer: str) -> None:
    text = main("%r", "i32", SUM.format(out="r", source="a", init="zero"))
    a = vector("i32", 20_011)
    result = run_checked(text, a, transfer=transfer)
    assert result.outputs[0] == a.sum(dtype=np.int32)
    assert isinstance(result.report, Report)
    assert result.report.transfer_model == transfer
    assert result.report.host_to_dpu.seconds > 0


@pytest.mark.parametrize("dpus", [1, 3, 64])
def test_a_chosen_number_of_dpus(dpus: int) -> None:
    text = main("%r", "i32", SUM.format(out="r", source="a", init="zero"))
    result = run_checked(text, vector("i32", 20_011), dpus=dpus)
    assert isinstance(result.report, Report)
    assert result.report.kernels[0].dpus == dpus


def test_the_worked_split() -> None:
    """1,000,003 i32 on 2,560 DPUs of 11 tasklets: 390 elements a DPU and 1,603 on the host.

    390 elements are 195 granules of 8 bytes: 18 for each of 10 tasklets, 15 for the last.
    """
    text = main("%r", "i32", SUM.format(out="r", source="a", init="zero"))
    text = text.replace("tensor<?xi32>", "tensor<1000003xi32>")
    a = vector("i32", 1_000_003)
    result = run_checked(text, a, tasklets=11)
    assert result.outputs[0] == a.sum(dtype=np.int32)
    lowered = str(result.lowered)
    assert "[998400] [1603] [1]" in lowered
    assert "arith.constant 390 : index" in lowered
    assert "arith.constant 36 : index" in lowered
    assert isinstance(result.report, Report)
    assert result.report.host_to_dpu.bytes == 998_400 * 4
    assert result.report.kernels[0].dpus == 2560
