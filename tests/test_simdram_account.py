"""What programs in DRAM cost: the worked examples, timings, limits, traffic, stages."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from simdram_programs import function, machine, module_of, run, run_both

from cim_opt.errors import UserError
from cim_opt.hardware.simdram import TIMINGS, load_machine
from cim_opt.microprograms.library import library
from cim_opt.simulators.report import MachineReport
from cim_opt.simulators.run import lower
from cim_opt.simulators.simdram_report import SimdramReport

COMMAND_NS = {"proteus49": (49.0, 49.0), "gem5": (50.16, 46.16)}


def binary(opcode: str, width: int, out: int | None = None) -> str:
    """Two objects brought in, one bbop, nothing read back."""
    out = width if out is None else out
    return function(
        f"""
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi64> -> !simdram.vec<{width}>
        %y = simdram.transpose %a[%c1] stride %c1 count %n : tensor<?xi64> -> !simdram.vec<{width}>
        %z = simdram.bbop {opcode}(%x, %y) :
          (!simdram.vec<{width}>, !simdram.vec<{width}>) -> !simdram.vec<{out}>
        func.return
        """,
        "%a: tensor<?xi64>, %n: index",
    )


def cost(opcode: str, width: int, lanes: int, out: int | None = None, **options: Any) -> Any:
    """The report of one bbop over so many lanes."""
    options.setdefault("machine", load_machine("simdram-64"))
    _, report = run(binary(opcode, width, out), [np.arange(9, dtype=np.int64), lanes], **options)
    return report


@pytest.mark.parametrize(
    ("name", "opcode", "width", "commands", "flat", "gem5"),
    [
        ("simdram", "add", 4, 33, 1617, 1623.28),
        ("simdram", "add", 32, 257, 12593, 12635.12),
        ("simdram", "sub", 32, 257, 12593, 12763.12),
        ("simdram", "gtu", 8, 26, 1274, 1272.16),
        ("simdram", "eq", 32, 131, 6419, 6314.96),
        ("simdram", "maxu", 32, 322, 15778, 15895.52),
        ("cim-opt", "sub", 4, 25, 1225, 1238.00),
        ("cim-opt", "sub", 32, 193, 9457, None),
        ("cim-opt", "xor", 8, 56, 2744, None),
        ("cim-opt", "and", 8, 28, 1372, None),
    ],
)
def test_published_and_own_costs(
    name: str, opcode: str, width: int, commands: int, flat: float, gem5: float | None
) -> None:
    out = 1 if opcode in ("gtu", "eq") else width
    report = cost(opcode, width, 65536, out, library=name, timing="proteus49")
    assert report.commands == report.aap + report.ap == commands
    assert report.compute_seconds == pytest.approx(flat * 1e-9)
    if gem5 is not None:
        report = cost(opcode, width, 65536, out, library=name, timing="gem5")
        assert report.compute_seconds == pytest.approx(gem5 * 1e-9)


@pytest.mark.parametrize("timing", TIMINGS)
def test_timings(timing: str) -> None:
    report = cost("add", 32, 1, library="simdram", timing=timing)
    counts = library("simdram").counts("add", 32)
    aap, ap = COMMAND_NS.get(timing, COMMAND_NS["gem5"])
    want = counts.aap * aap + counts.ap * ap
    if timing == "strict":
        # Both addresses in the B-group: the activations do not overlap.
        want += counts.within_b * (78.16 - 50.16)
    assert report.timing == timing
    assert report.compute_seconds == pytest.approx(want * 1e-9)


def test_an_unknown_timing_is_refused() -> None:
    with pytest.raises(UserError, match="unknown timing 'fast'"):
        cost("add", 8, 1, timing="fast")


def test_the_machine_says_the_timing() -> None:
    assert cost("add", 8, 1).timing == load_machine("simdram-64").timing
    assert cost("add", 8, 1, machine=machine(timing="gem5")).timing == "gem5"


def test_two_tiles_at_the_same_time_take_as_long_as_one() -> None:
    one = cost("add", 32, 65536, library="simdram")
    two = cost("add", 32, 100_000, library="simdram")
    assert one.compute_seconds == two.compute_seconds == pytest.approx(12593e-9)
    assert two.commands == 2 * one.commands
    assert two.energy_nj == pytest.approx(2 * one.energy_nj)
    assert two.utilisation == pytest.approx(100_000 / 131_072)


def test_energy_grows_with_the_rows_that_are_raised() -> None:
    report = cost("add", 32, 1, library="simdram")
    counts, figures = library("simdram").counts("add", 32), load_machine("simdram-64")
    activations = 2 * counts.aap + counts.ap
    want = activations + 0.22 * (counts.rows_raised - activations)
    assert report.energy_nj == pytest.approx(want * figures.activation_energy_nj)


def test_the_limit_on_activations() -> None:
    """Four row commands in 50 ns: 64 subarrays that issue one in 49 ns are too many."""
    free = cost("add", 32, 64 * 65536, activation_limit=False, library="simdram")
    limited = cost("add", 32, 64 * 65536, activation_limit=True, library="simdram")
    assert free.compute_seconds == free.unlimited_seconds == pytest.approx(12593e-9)
    assert limited.compute_seconds == limited.limited_seconds == free.limited_seconds
    assert limited.limited_seconds == pytest.approx(257 * 64 * 50e-9 / 4)
    assert limited.unlimited_seconds == free.unlimited_seconds
    assert limited.seconds - free.seconds == pytest.approx(
        limited.limited_seconds - limited.unlimited_seconds
    )
    for tiles in (1, 3):
        report = cost("add", 32, tiles * 65536, activation_limit=True)
        assert report.limited_seconds == pytest.approx(report.unlimited_seconds)
    assert not load_machine("simdram-64").activation_limit
    assert cost("add", 8, 1, machine=machine(activation_limit=True)).activation_limit


def test_transposition_moves_whole_rows() -> None:
    report = cost("add", 32, 100_000)
    assert report.transposed.count == 2
    assert report.transposed.bytes == 2 * 2 * 262_144
    assert report.transposed.seconds == pytest.approx(2 * 27306.7e-9, rel=1e-5)
    assert report.read_back.count == 0
    report = cost("add", 32, 65536)
    assert report.transposed.seconds == pytest.approx(2 * 13653.3e-9, rel=1e-5)


def test_nothing_costs_nothing() -> None:
    report = cost("add", 32, 0)
    assert report.bbops == 1
    assert report.commands == report.transposed.bytes == 0
    assert report.compute_seconds == report.limited_seconds == report.energy_nj == 0
    assert report.utilisation == 1


def test_a_fill_costs_one_copy_a_row() -> None:
    text = function(
        "%x = simdram.fill %k count %n : i32 -> !simdram.vec<32>\nfunc.return", "%k: i32, %n: index"
    )
    _, report = run_both(text, [12345, 5])
    assert (report.aap, report.ap, report.transposed.count) == (32, 0, 0)
    assert report.compute_seconds == pytest.approx(32 * 49e-9)


def test_a_constant_costs_nothing_and_takes_no_rows() -> None:
    text = function(
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = arith.constant 9 : index
        %k = simdram.fill %s count %n constant : i8 -> !simdram.vec<8>
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<9xi8> -> !simdram.vec<8>
        %y = simdram.bbop add(%x, %k) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
        %z = simdram.bbop sub(%k, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
        %r = simdram.read %z into %a[%c0] stride %c1 : !simdram.vec<8>, tensor<9xi8>
        func.return %r : tensor<9xi8>
        """,
        "%a: tensor<9xi8>, %s: i8",
        "tensor<9xi8>",
    )
    a = np.arange(9, dtype=np.int8)
    for scalar in (0, -1, 77):
        (got,), report = run_both(text, [a, scalar])
        assert (got == -a).all()
        own = library("cim-opt")
        assert report.commands == own.counts("add", 8).total + own.counts("sub", 8).total
        assert (report.bbops, report.rows_peak) == (2, 16)


def test_a_scalar_of_zero_costs_a_fill() -> None:
    text = function(
        """
        %x = simdram.fill %k count %n : i32 -> !simdram.vec<32>
        %y = simdram.mul_scalar %x, %k : !simdram.vec<32>, i32 -> !simdram.vec<32>
        func.return
        """,
        "%k: i32, %n: index",
    )
    _, report = run_both(text, [0, 5])
    assert (report.aap, report.ap) == (64, 0)


def test_utilisation_is_weighted_by_commands() -> None:
    text = function(
        """
        %x = simdram.fill %k count %n : i32 -> !simdram.vec<32>
        %y = simdram.bbop not(%x) : (!simdram.vec<32>) -> !simdram.vec<32>
        %z = simdram.fill %k count %m : i32 -> !simdram.vec<32>
        func.return
        """,
        "%k: i32, %n: index, %m: index",
    )
    _, report = run_both(text, [0, 65536, 32768])
    assert report.utilisation == pytest.approx((32 + 64 + 32 / 2) / 128)


def test_host_work_is_counted() -> None:
    text = function(
        """
        %zero = arith.constant 0 : i32
        %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
          %t = arith.addi %acc, %x : i32
          pattern.yield %t : i32
        }
        %d = arith.addi %s, %s : i32
        func.return %d : i32
        """,
        "%a: tensor<?xi32>",
        "i32",
    )
    a = np.arange(1000, dtype=np.int32)
    (got,), report = run_both(text, [a])
    assert got == a.sum() * 2
    # 4,000 bytes at 10 GB/s, 1,000 additions and one more at 1 a nanosecond.
    assert report.host_seconds == pytest.approx(400e-9 + 1001e-9)
    assert report.seconds == report.host_seconds


LOOP = """func.func @main(%a: tensor<?xi8>, %n: index, %dest: tensor<?xi8>) -> tensor<?xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi8> -> !simdram.vec<8>
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %x) -> (!simdram.vec<8>) {
    %t = simdram.bbop add(%s, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
    scf.yield %t : !simdram.vec<8>
  }
  %r = simdram.read %y into %dest[%c0] stride %c1 : !simdram.vec<8>, tensor<?xi8>
  func.return %r : tensor<?xi8>
}
"""


def loop_report() -> SimdramReport:
    a = np.arange(9, dtype=np.int8)
    (got,), report = run_both(LOOP, [a, 9, np.zeros(9, np.int8)])
    assert (got == a * np.int8(6)).all()
    return report


def test_stages_are_the_places_in_the_text_and_add_up() -> None:
    report = loop_report()
    stages = {stage.name: stage for stage in report.stages}
    assert list(stages) == ["test.mlir:5:3", "test.mlir:7:5", "test.mlir:10:3"]
    assert stages["test.mlir:5:3"].transpose_seconds == report.transposed.seconds > 0
    assert stages["test.mlir:7:5"].bbops == report.bbops == 5
    assert stages["test.mlir:7:5"].commands == report.commands
    assert stages["test.mlir:7:5"].compute_seconds == pytest.approx(report.compute_seconds)
    assert stages["test.mlir:10:3"].read_seconds == report.read_back.seconds > 0
    assert sum(stage.seconds for stage in report.stages) == pytest.approx(report.seconds)


def test_stages_of_a_lowered_program_are_its_patterns() -> None:
    module = module_of(
        """func.func @main(%a: tensor<?xi32>) -> (tensor<?xi32>, i32) {
  %zero = arith.constant 0 : i32
  %s = pattern.scan(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
    %t = arith.addi %acc, %x : i32
    pattern.yield %t : i32
  }
  %m = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
    %t = arith.xori %acc, %x : i32
    pattern.yield %t : i32
  }
  func.return %s, %m : tensor<?xi32>, i32
}"""
    )
    lowered = lower(module, "pattern-to-simdram", {})
    _, report = run(lowered, [np.arange(200_000, dtype=np.int32)])
    names = [stage.name for stage in report.stages if stage.commands]
    assert names == ["test.mlir:3:3", "test.mlir:7:3"]


def test_json_has_what_all_machines_have() -> None:
    report: MachineReport = loop_report()
    values = json.loads(json.dumps(report.to_json_dict()))
    assert values["target"] == "simdram"
    assert values["machine"] == "simdram-1"
    assert values["seconds"] == report.seconds
    assert values["cycles"] is None
    assert {"commands", "aap", "ap", "energy_nj", "utilisation", "rows_peak"} <= values.keys()
    assert values["stages"][0]["name"] == "test.mlir:5:3"


def test_text() -> None:
    text = loop_report().to_text()
    lines = text.splitlines()
    assert lines[0] == "simdram on simdram-1, library cim-opt, timing proteus49"
    assert re.search(r"^  transposed in +3\.413 us  64\.0 KiB in 1$", text, re.MULTILINE)
    assert re.search(r"^  commands +280  .* AAP, .* AP$", text, re.MULTILINE)
    assert re.search(r"^  rows used +24  of 1006 D rows$", text, re.MULTILINE)
    assert lines[-4].split() == ["stage", "bbops", "commands", "in", "computing", "back", "host"]
    assert len(lines[-4:]) == 4
    assert not text.endswith("\n")
