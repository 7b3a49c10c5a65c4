"""Worked examples of SIMDRAM: programs that run, against commands and times worked out by hand."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from microprogram_checks import from_rows, run_lanes, to_rows
from simdram_programs import function, run, run_both

from cim_opt.hardware.simdram import load_machine
from cim_opt.mapping.simdram_lanes import choose_mapping, operations
from cim_opt.microprograms.library import LIBRARY_NAMES, library
from cim_opt.microprograms.model import bit
from cim_opt.microprograms.published import PUBLISHED
from cim_opt.microprograms.subarray import Subarray, integers
from cim_opt.simulators.run import SimdramOptions, run_program
from cim_opt.simulators.simdram_report import SimdramReport
from cim_opt.tools.load_module import parse_text

W = 65536
COMMAND_NS = 49

MAP_ADD = """
func.func @main(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %c = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %s = arith.addi %x, %y : i32
    pattern.yield %s : i32
  }
  func.return %c : tensor<?xi32>
}
"""

REDUCE_ADD = """
func.func @main(%a: tensor<?xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
    %t = arith.addi %acc, %x : i32
    pattern.yield %t : i32
  }
  func.return %s : i32
}
"""


def lowered(text: str, inputs: dict[str, Any], machine: str = "simdram-1") -> SimdramReport:
    """The report of a program of patterns by the published row programs, after its check."""
    module = parse_text(text, "test.mlir")
    result = run_program(
        module,
        "main",
        inputs,
        target="simdram",
        machine=machine,
        simdram_options=SimdramOptions(library="simdram"),
        pipeline_options={"narrow": False},
    )
    assert result.check is not None and result.check.ok
    assert isinstance(result.report, SimdramReport)
    return result.report


def bbop(
    opcode: str, width: int, *words: Any, out: int | None = None, name: str = "cim-opt"
) -> tuple[Any, SimdramReport]:
    """One bbop on words of 8 or 32 bits at both levels, its result, and the report."""
    out = width if out is None else out
    host = f"tensor<?xi{width}>"
    names = [f"x{n}" for n in range(len(words))]
    brought = "\n".join(
        f"%{x} = simdram.transpose %a{n}[%c0] stride %c1 count %n : {host} -> !simdram.vec<{width}>"
        for n, x in enumerate(names)
    )
    operands = ", ".join(f"%{x}" for x in names)
    types = ", ".join(f"!simdram.vec<{width}>" for _ in names)
    text = function(
        f"""
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = tensor.dim %a0, %c0 : {host}
        {brought}
        %z = simdram.bbop {opcode}({operands}) : ({types}) -> !simdram.vec<{out}>
        %d = tensor.empty(%n) : tensor<?xi{out}>
        %r = simdram.read %z into %d[%c0] stride %c1 : !simdram.vec<{out}>, tensor<?xi{out}>
        func.return %r : tensor<?xi{out}>
        """,
        ", ".join(f"%a{n}: {host}" for n in range(len(words))),
        f"tensor<?xi{out}>",
    )
    dtype = np.dtype(f"int{width}")
    args = [np.array(word).astype(np.uint64).astype(dtype) for word in words]
    (got,), report = run_both(text, args, library=name)
    return got, report


# -- lengths, tiles, transposition -----------------------------------------------------------------


def test_100_000_sums_take_two_tiles() -> None:
    """31,072 lanes of padding; one after the other on one subarray, together on more."""
    a = np.arange(100_000, dtype=np.int32)
    assert 2 * W - len(a) == 31_072
    one = lowered(MAP_ADD, {"a": a, "b": a[::-1].copy()})
    assert one.commands == 2 * 257
    assert one.compute_seconds == pytest.approx(25_186e-9)
    assert one.utilisation == pytest.approx(100_000 / (2 * W))
    more = lowered(MAP_ADD, {"a": a, "b": a[::-1].copy()}, "simdram-64")
    assert more.commands == 2 * 257
    assert more.compute_seconds == pytest.approx(12_593e-9)
    # Whole rows cross the channel: two tiles of 262,144 bytes a vector.
    for report in (one, more):
        assert report.transposed.bytes == 2 * 2 * 262_144
        assert report.transposed.seconds == pytest.approx(2 * 27_306.7e-9, rel=1e-5)
        assert report.read_back.seconds == pytest.approx(27_306.7e-9, rel=1e-5)


def test_a_tile_of_32_bits_crosses_the_channel() -> None:
    a = np.zeros(W, np.int32)
    report = lowered(MAP_ADD, {"a": a, "b": a})
    assert report.transposed.bytes == 2 * W * 32 // 8 == 2 * 262_144
    assert report.transposed.seconds == pytest.approx(2 * 13_653.3e-9, rel=1e-5)
    assert report.read_back.seconds == pytest.approx(13_653.3e-9, rel=1e-5)


def test_a_sum_of_a_million() -> None:
    """16 elements a lane, stacked: 15 additions, one vector read back, the host adds the lanes.

    1,000,000 is 16 times 62,500, so 62,500 lanes are full and no lane is padded: the host adds
    62,500 partial sums onto the first value. Of 16 tiles of 65,536 it would be all lanes.
    """
    a = np.random.default_rng(3).integers(-(2**31), 2**31, 1_000_000, np.int32)
    report = lowered(REDUCE_ADD, {"a": a})
    assert report.commands == 15 * 257
    assert report.compute_seconds == pytest.approx(188_895e-9)
    assert report.read_back.bytes == 262_144
    assert report.read_back.seconds == pytest.approx(13_653.3e-9, rel=1e-5)
    assert report.transposed.bytes == 16 * 262_144
    assert report.host_seconds == pytest.approx((62_500 + 4 * 62_500 / 10) * 1e-9, rel=1e-3)
    full = lowered(REDUCE_ADD, {"a": np.ones(16 * W, np.int32)})
    assert full.commands == 15 * 257
    # 65,536 additions at 1 ns, the first of them onto the initial value; 4 bytes each at 10 GB/s.
    assert full.host_seconds == pytest.approx((W + 4 * W / 10) * 1e-9, rel=1e-3)


# -- one bit, and operations -----------------------------------------------------------------------


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_one_bit_adder_on_eight_lanes(name: str) -> None:
    """Rows 0xAA and 0xCC and a carry of 0xF0: sum 0x96, carry 0xE8.

    The carry comes in as the sum of two bits below, c and c.
    """
    program = library(name).program("add", 3)
    lanes = [
        {"a": (0xAA >> i & 1) << 1 | (0xF0 >> i & 1), "b": (0xCC >> i & 1) << 1 | (0xF0 >> i & 1)}
        for i in range(8)
    ]
    sums = run_lanes(program, lanes)
    assert sum((s >> 1 & 1) << i for i, s in enumerate(sums)) == 0x96
    assert sum((s >> 2 & 1) << i for i, s in enumerate(sums)) == 0xE8


@pytest.mark.parametrize(
    ("operation", "commands", "nanoseconds"),
    [
        ("add", 257, 12_593),
        ("mul", 11_103, 544_047),
        ("div_u", 8_832, 432_768),
        ("relu", 97, 4_753),
        ("eq", 131, 6_419),
        ("max_u", 322, 15_778),
    ],
)
def test_published_counts_of_32_bits(operation: str, commands: int, nanoseconds: int) -> None:
    assert PUBLISHED[operation](32).total == commands
    assert commands * COMMAND_NS == nanoseconds


def test_the_published_division_of_seven_bits() -> None:
    assert PUBLISHED["div_u"](7).total == 405 + 84 == 489


@pytest.mark.parametrize(("name", "commands"), [("simdram", 663), ("cim-opt", 560)])
def test_a_full_product_of_eight_bits(name: str, commands: int) -> None:
    program = library(name).program("mul", 16, a_width=8, b_width=8)
    assert program.counts.total == commands
    assert run_lanes(program, [{"a": 0xB5, "b": 0x4D}]) == [0x3671]


def test_a_product_modulo_256() -> None:
    got, report = bbop("mul", 8, [0xB5], [0x4D])
    assert got.view(np.uint8).tolist() == [0x71]
    # 294 commands of our own, where 315 are enough for the known steps.
    assert report.commands == 294 < 315


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_comparison_of_eight_bits(name: str) -> None:
    a, b = [200, 100, 77], [100, 200, 77]
    greater, report = bbop("gtu", 8, a, b, out=1, name=name)
    assert greater.tolist() == [True, False, False]
    assert report.commands == {"simdram": 26, "cim-opt": 25}[name]
    at_least, _ = bbop("geu", 8, a, b, out=1, name=name)
    assert at_least.tolist() == [True, False, True]


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_a_choice_of_one_takes_the_first(name: str) -> None:
    program = library(name).program("select", 8)
    values = {"a": 0x5A, "b": 0xC3}
    lanes = [{**values, "choice": 1}, {**values, "choice": 0}]
    assert run_lanes(program, lanes) == [0x5A, 0xC3]
    assert program.counts.total == 56


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_relu_of_eight_bits(name: str) -> None:
    """Its sign row is zero, and its input stays as it was; the released program changes it."""
    program = library(name).program("relu", 8)
    assert program.counts.total == {"simdram": 25, "cim-opt": 24}[name]
    (a,), (out,) = program.inputs, program.outputs
    rows = to_rows(a, [0x85, 0x7F])
    subarray = Subarray(integers(2), {"a": 8, "out": 8, "scratch": program.scratch_rows})
    for number, row in enumerate(rows):
        subarray.data[bit("a", number)] = row
    subarray.execute(program.commands)
    got = [subarray.data[bit("out", number)] for number in range(8)]
    assert from_rows(out, got, 2) == [0x00, 0x7F]
    assert got[7] == 0
    assert tuple(subarray.data[bit("a", number)] for number in range(8)) == rows


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_bitcount_of_five_bits(name: str) -> None:
    """The released program gives 0 and 2."""
    lanes = [{"a": 0b10000}, {"a": 0b01000}]
    assert run_lanes(library(name).program("bitcount", 5), lanes) == [1, 1]


def test_absolute_values_of_eight_bits() -> None:
    got, report = bbop("abs", 8, [-128, -1, 1, 127, 0])
    assert got.tolist() == [-128, 1, 1, 127, 0]
    assert report.commands <= 9 * 8 + 1
    assert library("cim-opt").counts("abs", 8).total == report.commands
    plain, _ = bbop("abs", 8, [-128, -1], name="simdram")
    assert plain.tolist() == [-128, 1]


@pytest.mark.parametrize(
    ("opcode", "name", "commands"),
    [("and", "cim-opt", 28), ("and", "simdram", 32), ("xor", "cim-opt", 56)],
)
def test_logic_of_eight_bits(opcode: str, name: str, commands: int) -> None:
    a, b = [0b1100, 0xF0], [0b1010, 0x3C]
    got, report = bbop(opcode, 8, a, b, name=name)
    meant = np.bitwise_and if opcode == "and" else np.bitwise_xor
    assert got.view(np.uint8).tolist() == meant(a, b).tolist()
    assert report.commands == commands


# -- mapping ---------------------------------------------------------------------------------------


def test_doitgen() -> None:
    in_lane = operations("reduction-in-lane", 10**10, 10_000, W)
    stationary = operations("output-stationary", 10**10, 10_000, W)
    assert (in_lane, stationary) == (10**10, 1_525_880_000)
    assert in_lane / stationary == pytest.approx(6.5536, abs=5e-5)
    mul, add = (PUBLISHED[x](32).total for x in ("mul", "add"))
    assert in_lane * mul / (stationary * (mul + add)) == pytest.approx(6.405, abs=5e-4)


def test_three_products_of_matrices() -> None:
    """16,000 x 16,000 outputs; groups of 32,000, 32,000 and 16,000."""
    groups = (32_000, 32_000, 16_000)
    in_lane = sum(operations("reduction-in-lane", 256_000_000, g, W) for g in groups)
    steps = [operations("output-stationary", 256_000_000, g, W) for g in groups]
    assert in_lane == 768_000_000
    assert steps == [125_024_000, 125_024_000, 62_512_000]
    assert sum(steps) == 312_560_000
    assert in_lane / sum(steps) == pytest.approx(2.457, abs=5e-4)
    assert all(choose_mapping(256_000_000, g, W) == "output-stationary" for g in groups)


def test_geometric_means_of_the_mapping() -> None:
    ratios = [2.048, 2.048, 2.457, 4.094, 4.094, 4.0, 6.5536]
    assert prod(ratios) ** (1 / 7) == pytest.approx(3.33, abs=0.005)
    assert prod(ratios) ** (1 / 12) == pytest.approx(2.02, abs=0.005)


def test_timings_of_the_machine() -> None:
    """A four-bit sum: 33 commands, 25 AAP and 8 AP; and 32-bit differences at 6 commands a bit."""
    machine = load_machine("simdram-1")
    add = library("simdram").counts("add", 4)
    assert machine.program_seconds(add, "proteus49") == pytest.approx(1_617e-9)
    assert machine.program_seconds(add, "gem5") == pytest.approx(1_623.28e-9)
    sub, report = run(
        function(
            """
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %n = arith.constant 3 : index
            %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<3xi32> -> !simdram.vec<32>
            %y = simdram.transpose %b[%c0] stride %c1 count %n : tensor<3xi32> -> !simdram.vec<32>
            %z = simdram.bbop sub(%x, %y) :
              (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
            %r = simdram.read %z into %a[%c0] stride %c1 : !simdram.vec<32>, tensor<3xi32>
            func.return %r : tensor<3xi32>
            """,
            "%a: tensor<3xi32>, %b: tensor<3xi32>",
            "tensor<3xi32>",
        ),
        [np.array([5, -7, 2**31 - 1], np.int32), np.array([9, 7, -1], np.int32)],
    )
    assert sub[0].tolist() == [-4, -14, -(2**31)]
    assert report.commands == 193
    assert report.compute_seconds == pytest.approx(9_457e-9)
