"""How many row commands the libraries issue: against the published counts, and worked examples."""

from collections.abc import Callable
from random import Random

import pytest
from microprogram_checks import run_lanes

from cim_opt.hardware.simdram import load_machine
from cim_opt.microprograms.library import LIBRARY_NAMES, OPERATIONS, library
from cim_opt.microprograms.model import Counts, bit, count
from cim_opt.microprograms.published import CORRECTED, PUBLISHED
from cim_opt.microprograms.steps import Steps
from cim_opt.microprograms.subarray import Subarray, integers

WIDTHS = (8, 16, 32, 64)


def counts(name: str, operation: str, n: int) -> Counts:
    """The full product for `mul`, as published."""
    if operation == "mul":
        return library(name).counts("mul", 2 * n, a_width=n, b_width=n)
    return library(name).counts(operation, n)


def full_widths(operation: str) -> tuple[int, ...]:
    return WIDTHS[:3] if operation == "mul" else WIDTHS


@pytest.mark.parametrize("operation", sorted(set(PUBLISHED) - set(CORRECTED)))
def test_simdram_issues_the_published_commands(operation: str) -> None:
    for n in full_widths(operation):
        ours, published = counts("simdram", operation, n), PUBLISHED[operation](n)
        assert (ours.aap, ours.ap) == (published.aap, published.ap), n


# Commands of the corrected programs beside the published counts, for 8, 16, 32 and 64 bits.
CORRECTED_TOTALS = {
    "select": ((56, 112, 224, 448), (56, 112, 224, 448)),
    "max_u": ((82, 162, 322, 642), (82, 162, 322, 642)),
    "min_u": ((82, 162, 322, 642), (82, 162, 322, 642)),
    "relu": ((25, 49, 97, 193), (25, 49, 97, 193)),
    "abs": ((78, 158, 318, 638), (79, 159, 319, 639)),
    "bitcount": ((56, 120, 248, 504), (56, 120, 248, 504)),
    "div_u": ((570, 2098, 8034, 31426), (624, 2304, 8832, 34560)),
}


@pytest.mark.parametrize("operation", sorted(CORRECTED))
def test_corrected_programs_beside_the_published_counts(operation: str) -> None:
    ours, published = CORRECTED_TOTALS[operation]
    assert tuple(counts("simdram", operation, n).total for n in WIDTHS) == ours
    assert tuple(PUBLISHED[operation](n).total for n in WIDTHS) == published


# The formulas that cim-opt reaches.
SHORTER: dict[str, Callable[[int], int]] = {
    "add": lambda n: 7 * n,
    "sub": lambda n: 6 * n + 1,
    "neg": lambda n: 6 * n + 1,
    "and": lambda n: 7 * n // 2,
    "or": lambda n: 7 * n // 2,
    "xor": lambda n: 7 * n,
    "not": lambda n: 2 * n,
    "copy": lambda n: n,
    "mask": lambda n: 3 * n,
    "select": lambda n: 7 * n,
    "eq": lambda n: 4 * n + 3,
    "ne": lambda n: 4 * n + 3,
    "gt_u": lambda n: 3 * n + 1,
    "le_s": lambda n: 3 * n + 1,
    "max_u": lambda n: 10 * n - 2,
    "min_s": lambda n: 10 * n - 2,
    "relu": lambda n: 3 * n,
    "abs": lambda n: 8 * n - 7,
    "negate_if": lambda n: 8 * n - 5,
    "reduce_and": lambda n: 5 * n // 2 - 1,
    "reduce_or": lambda n: 5 * n // 2 - 1,
    "reduce_xor": lambda n: 3 * n + 1,
    "bitcount": lambda n: 7 * (n - 1) + n.bit_length() - 1,
    "mul": lambda n: 9 * n * n - 2 * n,
}


@pytest.mark.parametrize("operation", sorted(SHORTER))
def test_own_programs_are_short(operation: str) -> None:
    for n in full_widths(operation):
        own = counts("cim-opt", operation, n).total
        assert own == SHORTER[operation](n), n
        assert own <= counts("simdram", operation, n).total


@pytest.mark.parametrize("operation", OPERATIONS)
def test_own_programs_are_never_longer(operation: str) -> None:
    options = {"fill": {"value": 5}, "shl_const": {"amount": 3}, "shr_const": {"amount": 3}}
    constant = {"value": 0xB5A7}
    given = constant if operation.endswith("l_const") and operation[0] == "m" else {}
    given = options.get(operation, given)
    if operation == "mac_const":
        given = constant
    for n in (1, 2, 3, 7, 8, 16, 32):
        own = library("cim-opt").counts(operation, n, **given).total
        assert own <= library("simdram").counts(operation, n, **given).total, n


def test_quadratic_operations_of_32_bits() -> None:
    own = library("cim-opt")
    assert own.counts("mul", 32).total == 4626
    assert own.counts("mac", 32).total == 5280
    assert own.counts("mac", 32, complemented=True).total == 9 * 32 * 33 // 2
    assert own.counts("msub", 32).total == 9 * 32 * 33 // 2
    assert own.counts("div_u", 32).total == 6351
    assert own.counts("rem_u", 32).total == 6552
    assert own.counts("div_s", 32).total == 7106
    assert own.counts("rem_s", 32).total == 7300
    # 8 by 8 bits into 31: a product and a sum, not rows as long as the accumulator.
    assert own.counts("mac", 31, a_width=8, b_width=8).total < 800


def test_signed_digits_are_cheap() -> None:
    own = library("cim-opt")
    # 32,412 = 2^15 - 2^8 - 2^6 - 2^2: four digits of which three are subtracted.
    assert own.counts("mul_const", 32, value=32_412).total == 645
    assert own.counts("mul_const", 32, value=0).total == 32
    assert own.counts("mul_const", 32, value=1).total == 32
    assert own.counts("mul_const", 32, value=2**32 - 1).total == 6 * 32 + 1
    assert own.counts("mac_const", 32, value=0).total == 0


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_products_with_a_number_are_counted_without_their_program(name: str) -> None:
    """The counts that simulators charge for every new number are those of the commands."""
    random, own = Random(5), library(name)
    for n in range(1, 65):
        edges = (0, 1, 3, 1 << (n - 1), (1 << n) - 1, -1, 1 << n)
        for value in (*edges, *(random.getrandbits(n) for _ in range(4))):
            wanted = count(own.program("mul_const", n, value=value).commands)
            assert own.counts("mul_const", n, value=value) == wanted, (n, value)
            if name == "cim-opt":
                flag = {"value": value, "out_complemented": True}
                wanted = count(own.program("mul_const", n, **flag).commands)
                assert own.counts("mul_const", n, **flag) == wanted, (n, value)


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_counts_are_those_of_the_commands(name: str) -> None:
    program = library(name).program("div_s", 8)
    assert count(program.commands) == program.counts == library(name).counts("div_s", 8)
    assert program.counts.total == len(program.commands)
    assert library(name).program("div_s", 8) is program


def ns(total: Counts, timing: str) -> float:
    return round(load_machine("simdram-1").program_seconds(total, timing) * 1e9, 2)


def test_one_bit_adder() -> None:
    steps = Steps()
    steps.start_carry(bit("c", 0))
    steps.add_bit(bit("sum", 0), bit("a", 0), bit("b", 0))
    steps.store_carry(bit("carry", 0))
    subarray = Subarray(integers(8), dict.fromkeys(("a", "b", "c", "sum", "carry"), 1))
    for name, row in (("a", 0xAA), ("b", 0xCC), ("c", 0xF0)):
        subarray.data[bit(name, 0)] = row
    subarray.execute(steps.commands)
    assert subarray.data[bit("sum", 0)] == 0x96
    assert subarray.data[bit("carry", 0)] == 0xE8


def test_sums_of_four_bits_and_their_time() -> None:
    published, own = library("simdram"), library("cim-opt")
    add = published.counts("add", 4)
    assert (add.total, add.aap, add.ap) == (33, 25, 8)
    assert (ns(add, "proteus49"), ns(add, "gem5")) == (1617, 1623.28)
    assert own.counts("add", 4).total == 28
    sub = own.counts("sub", 4)
    assert (sub.total, sub.aap, sub.ap) == (25, 21, 4)
    assert (ns(sub, "proteus49"), ns(sub, "gem5")) == (1225, 1238)
    assert own.counts("add", 4, b_complemented=True).total == 25
    wide = own.counts("add", 32, a_complemented=True, out_complemented=True)
    assert (wide.total, ns(wide, "proteus49")) == (193, 9457)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("simdram", {}, 449.28),
        ("cim-opt", {}, 403.12),
        ("cim-opt", {"a_complemented": True}, 352.96),
    ],
)
def test_a_bit_of_a_sum_when_one_decoder_cannot_overlap(
    name: str, options: dict[str, bool], expected: float
) -> None:
    one, two = (library(name).counts("add", n, **options) for n in (8, 9))
    assert round(ns(two, "strict") - ns(one, "strict"), 2) == expected


def test_products_of_eight_bits() -> None:
    full = counts("simdram", "mul", 8)
    assert (full.total, full.aap, full.ap) == (663, 495, 168)
    assert (ns(full, "proteus49"), ns(full, "gem5")) == (32_487, 32_584.08)
    assert counts("cim-opt", "mul", 8).total == 560 < 603
    assert library("cim-opt").counts("mul", 8).total == 294 < 315
    lanes = [{"a": 0xB5, "b": 0x4D}]
    for name in LIBRARY_NAMES:
        assert run_lanes(library(name).program("mul", 16, a_width=8, b_width=8), lanes) == [13_937]
        assert run_lanes(library(name).program("mul", 8), lanes) == [0x71]


def test_published_times_of_32_bits() -> None:
    times = {"add": 12_593, "mul": 544_047, "div_u": 432_768, "relu": 4_753, "eq": 6_419}
    for operation, expected in (times | {"max_u": 15_778}).items():
        assert ns(PUBLISHED[operation](32), "proteus49") == expected
    assert PUBLISHED["div_u"](7).total == 489


# Nanoseconds at the gem5 timing, 8, 16, 32 and 64 bits.
GEM5 = {
    "add": (3_196.40, 6_342.64, 12_635.12, 25_220.08),
    "sub": (3_228.40, 6_406.64, 12_763.12, 25_476.08),
    "mul": (32_584.08, 134_307.60, 545_022.48, 2_195_523.60),
    "eq": (1_691.60, 3_232.72, 6_314.96, 12_479.44),
    "gt_u": (1_272.16, 2_444.00, 4_787.68, 9_475.04),
    "select": (2_776.96, 5_553.92, 11_107.84, 22_215.68),
    "max_u": (4_049.12, 7_997.92, 15_895.52, 31_690.72),
    "relu": (1_254.00, 2_457.84, 4_865.52, 9_680.88),
    "reduce_and": (1_103.52, 2_106.72, 4_113.12, 8_125.92),
    "reduce_xor": (1_304.16, 2_508.00, 4_915.68, 9_731.04),
}


@pytest.mark.parametrize("operation", sorted(GEM5))
def test_times_of_the_library_simdram(operation: str) -> None:
    for n, expected in zip(full_widths(operation), GEM5[operation], strict=False):
        assert ns(counts("simdram", operation, n), "gem5") == expected


def test_words_with_shared_constants() -> None:
    assert library("cim-opt").counts("and", 8).total == 28
    assert library("simdram").counts("and", 8).total == 32
    assert {library(name).counts("xor", 8).total for name in LIBRARY_NAMES} == {56}
