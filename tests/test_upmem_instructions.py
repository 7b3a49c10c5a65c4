"""Instructions of single operations, against measurements on a real DPU and by exact meaning.

The measured rows are in tests/data, with their source.
"""

# pyright: reportUnknownMemberType=false
# (pytest.approx has no types.)

import json
import timeit
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim_opt.cost.upmem_instructions import (
    KINDS,
    CostRange,
    CostUnknown,
    div_instructions,
    div_range,
    instructions,
    mul_constant,
    mul_instructions,
    mul_range,
    multiply_chain,
)

DATA = Path(__file__).parent / "data"
MICRO = cast("dict[str, Any]", json.loads((DATA / "upmem_microbench.json").read_text()))


def test_multiplication_matches_the_measured_routine() -> None:
    values, cycles = np.array(MICRO["mul32"]).T
    predicted = mul_instructions(values.astype(np.int64), values.astype(np.int64), 32) * 11
    assert len(values) == 31
    assert (abs(predicted - cycles) / cycles).max() < 0.01


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(3000, 256, 16), (49, 30, 12), (0, 12345, 8), (-3, -5, 39), (-3, 5, 10), (1, 1, 8)],
)
def test_multiplication_examples(a: int, b: int, expected: int) -> None:
    assert mul_instructions(np.int32(a), np.int32(b), 32) == expected


@given(st.integers(-(2**31), 2**32 - 1), st.integers(-(2**31), 2**32 - 1))
def test_multiplication_counts_bits_exactly(a: int, b: int) -> None:
    bits = max(1, min(a % 2**32, b % 2**32).bit_length())
    assert mul_instructions(np.int64(a), np.int64(b), 32) == 7 + bits


def test_multiplication_by_width_and_shape() -> None:
    a = np.arange(12, dtype=np.int8).reshape(3, 4)
    assert mul_instructions(a, np.int8(3), 8).tolist() == [[1] * 4] * 3
    assert mul_instructions(a, a[0], 16).shape == (3, 4)
    assert mul_instructions(a, 7, 64).max() == 129
    with pytest.raises(CostUnknown, match="24 bits"):
        mul_instructions(a, a, 24)
    with pytest.raises(TypeError, match="float64"):
        mul_instructions(np.ones(3), np.ones(3), 32)


def test_multiplication_of_16_bits_is_short_for_two_bytes() -> None:
    """128 times 128 was measured at 11 cycles of one tasklet: an instruction."""
    a = np.array([128, 255, 0, 256, 255, -1, 1, -32768], np.int16)
    b = np.array([128, 255, -1, 1, 256, -1, 255, 32767], np.int16)
    expected = [1, 1, 7, 7, 7, 7, 1, 7]
    assert mul_instructions(a, b, 16).tolist() == expected
    assert mul_instructions(a.astype(np.int32), b.astype(np.int32), 16).tolist() == expected
    assert mul_range(16, (0, 49), (0, 255)) == CostRange(1, 1)
    assert mul_range(16, (0, 511), (0, 255)) == CostRange(4, 7)
    assert mul_range(16, (-5, -1), (-5, -1)) == CostRange(7, 7)


def test_multiplication_leaves_its_operands_alone() -> None:
    a = np.array([4, 6], np.uint32)
    b = np.array([8, 2], np.int32)
    mul_instructions(a, b, 32)
    assert a.tolist() == [4, 6] and b.tolist() == [8, 2]


def test_multiplication_costs_are_found_fast() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2**32, 40_960, dtype=np.uint32)
    b = rng.integers(-(2**31), 2**31, 40_960).astype(np.int32)
    run = timeit.repeat(lambda: mul_instructions(a, b, 32), number=10, repeat=10)
    assert min(run) / 10 < 250e-6


def test_multiplication_by_range() -> None:
    rng = np.random.default_rng(2)
    for a, b in (((0, 4095), (0, 255)), ((-5, 5), (0, 1000)), ((-9, -2), (-7, 3))):
        values_a = np.arange(a[0], a[1] + 1)[:, None]
        values_b = np.arange(b[0], b[1] + 1)[None, :]
        cost = mul_instructions(values_a, values_b, 32)
        found = mul_range(32, a, b)
        assert found.expected == pytest.approx(cost.mean())
        assert found.worst == cost.max()
    full = rng.integers(-(2**31), 2**31, (2, 200_000))
    found = mul_range(32, (-(2**31), 2**31 - 1), (-(2**31), 2**31 - 1))
    assert found.expected == pytest.approx(mul_instructions(full[0], full[1], 32).mean(), rel=1e-3)
    assert found.worst == 39
    assert mul_range(8, (0, 3), (0, 3)).worst == 1
    with pytest.raises(ValueError, match="empty"):
        mul_range(32, (3, 2), (0, 1))


def run_chain(constant: int, x: int) -> int:
    """The chain on a number, with the meaning of each instruction as the machine has it."""
    acc = x
    for step in multiply_chain(constant):
        shifted = acc << step.shift
        acc = {
            "lsl_add": x + shifted,
            "lsl_sub": x - shifted,
            "lsl": shifted,
            "neg_lsl": -shifted,
        }[step.operation]
    return acc


def non_adjacent_digits(value: int) -> int:
    """How many digits of the non-adjacent form are not 0."""
    return ((3 * value) ^ value).bit_count()


def test_chains_multiply_for_all_constants_up_to_4096() -> None:
    for constant in [*range(1, 4097), *range(-4096, 0)]:
        for x in (1, 3, -7, 2**20 + 5):
            assert run_chain(constant, x) == constant * x
        # One instruction for each further digit, and at most one to shift or negate.
        steps = len(multiply_chain(constant))
        assert steps <= non_adjacent_digits(abs(constant))
        assert mul_constant(32, constant) == steps


@given(st.integers(-(2**63), 2**63 - 1).filter(bool), st.integers(-(2**40), 2**40))
def test_chains_multiply_for_wide_constants(constant: int, x: int) -> None:
    assert run_chain(constant, x) == constant * x


def test_multiplication_by_constants() -> None:
    assert [mul_constant(32, c) for c in (0, 1, -1, 2, 256)] == [1, 0, 1, 1, 1]
    assert [mul_constant(32, c) for c in (3, 5, 10, 7, -7)] == [1, 1, 2, 2, 1]
    assert mul_constant(32, 2**32 - 1) == mul_constant(32, -1)
    assert mul_constant(8, 91) == 1
    assert mul_constant(64, 256) == 4
    assert mul_constant(64, 0x5555_5555_5555_5555) <= 129
    with pytest.raises(CostUnknown):
        multiply_chain(0)


def test_division_examples() -> None:
    assert div_instructions(1000, 7, 32, False) == 16  # eight steps
    assert div_instructions(7, 1000, 32, False) == 8
    assert div_instructions(-1000, 7, 32, True) == 25
    # The least number has a magnitude that its own type cannot hold.
    assert div_instructions(np.int32(-(2**31)), np.int32(1), 32, True) == 17 + 32
    assert div_instructions(np.int64(-(2**63)), np.int64(1), 64, True) == 41 + 9 + 64 * 6
    assert div_instructions(np.uint64(2**64 - 1), np.uint64(1), 64, False) == 41 + 64 * 6
    with pytest.raises(CostUnknown):
        div_instructions(1, 1, 1, False)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**32 - 1))
def test_division_steps_are_exact(a: int, b: int) -> None:
    steps = max(0, a.bit_length() - b.bit_length() + 1)
    assert div_instructions(np.uint32(a), np.uint32(b), 32, False) == 8 + steps


def test_division_by_range() -> None:
    for signed, a, b in ((False, (0, 999), (1, 50)), (True, (-300, 200), (-9, 30))):
        values_a = np.arange(a[0], a[1] + 1)[:, None]
        values_b = np.arange(b[0], b[1] + 1)[None, :]
        cost = div_instructions(values_a, values_b, 32, signed)
        found = div_range(32, signed, a, b)
        assert found.expected == pytest.approx(cost.mean())
        assert found.worst == cost.max()


def test_division_by_constants() -> None:
    assert instructions("div", 32, signed=False, constant=8) == 1
    assert instructions("rem", 32, signed=False, constant=8) == 1
    assert instructions("div", 32, signed=True, constant=8) == 3
    assert instructions("div", 32, signed=True, constant=-8) == 4
    assert instructions("rem", 32, signed=True, constant=8) == 4
    assert instructions("div", 32, signed=True, constant=1) == 0
    assert instructions("div", 32, signed=True, constant=-1) == 1
    assert instructions("div", 64, signed=False, constant=8) == 4
    by_ten = instructions("div", 32, signed=False, constant=10)
    assert by_ten == div_range(32, False, (0, 2**32 - 1), (10, 10)).expected


# The measured operand is 128 in both places. `add` and `sub` of 16 and 64 bits, and `mul` of 16,
# are left out: their baselines remove more or less than the operation (two address instructions,
# half of a register pair, a product known to fit a byte); so is `fsub`, whose result is 0.
OPERATIONS = [
    ("add", "uint32_t", "add", 32, 0.02),
    ("sub", "uint32_t", "sub", 32, 0.02),
    ("mul", "uint64_t", "mul", 64, 0.01),
    ("add", "float", "fadd", 32, 0.07),
    ("add", "double", "fadd", 64, 0.07),
    ("mul", "float", "fmul", 32, 0.01),
    ("mul", "double", "fmul", 64, 0.01),
    ("div", "float", "fdiv", 32, 0.01),
    ("div", "double", "fdiv", 64, 0.02),
    ("load", "uint16_t", "load", 16, 0.03),
    ("load", "uint64_t", "load", 64, 0.03),
    ("store", "uint32_t", "store", 32, 0.03),
    ("store", "double", "store", 64, 0.03),
]


@pytest.mark.parametrize(("op", "kind_c", "kind", "bits", "within"), OPERATIONS)
def test_measured_operations(op: str, kind_c: str, kind: str, bits: int, within: float) -> None:
    measured = next(row[2] for row in MICRO["operations"] if row[:2] == [op, kind_c])
    assert instructions(kind, bits) * 11 == pytest.approx(measured, rel=within)


def test_measured_divisions() -> None:
    for width, kind_c in ((16, "uint16_t"), (32, "uint32_t"), (64, "uint64_t")):
        measured = next(row[2] for row in MICRO["operations"] if row[:2] == ["div", kind_c])
        assert div_instructions(128, 128, width, False) * 11 == pytest.approx(measured, rel=0.01)


def test_every_kind_has_a_cost_or_is_refused() -> None:
    for kind in KINDS:
        for bits in (1, 8, 16, 32, 64):
            try:
                cost = instructions(kind, bits, signed=True)
            except CostUnknown:
                narrow_float = kind not in ("div", "rem") and bits < 32
                assert narrow_float or bits == 1, (kind, bits)
                continue
            assert cost > 0 or (kind, bits) == ("truncate", 32)


@pytest.mark.parametrize(
    ("kind", "bits", "signed"),
    [("tan", 32, None), ("add", 24, None), ("fadd", 16, None), ("div", 1, True)],
)
def test_unknown_costs_are_refused(kind: str, bits: int, signed: bool | None) -> None:
    with pytest.raises(CostUnknown, match=f"{bits} bits"):
        instructions(kind, bits, signed=signed)


def test_sign_is_needed_where_it_matters() -> None:
    for kind in ("div", "rem", "extend"):
        with pytest.raises(CostUnknown, match="signed"):
            instructions(kind, 64)


def test_shifts_and_casts() -> None:
    assert [instructions("shl", 64, constant=c) for c in (0, 5, 40)] == [0, 4, 2]
    assert instructions("shr", 64) == 7
    assert instructions("shr", 32, constant=3) == 1
    assert instructions("extend", 64, signed=True) == 2
    assert instructions("extend", 64, signed=False) == 1
    assert instructions("truncate", 8) == 1
    assert instructions("truncate", 32) == 0
