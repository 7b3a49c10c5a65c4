"""What bbops do to words, against Python integers, for every opcode and many widths."""

from __future__ import annotations

import numpy as np
import pytest
from bbop_oracle import bbop_value, operand_widths

from cim_opt.dialects.simdram import CONSTANT_SHIFTS, EXTENSIONS, Opcode
from cim_opt.simulators.simdram_words import compute, filled, multiply_by, resized, word_dtype

WIDTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64)


def corners(width: int) -> list[int]:
    """Values at which operations change their mind."""
    top = 1 << (width - 1)
    numbers = [0, 1, 2, 3, width - 1, width, width + 1, top - 1, top, top + 1, 2 * top - 1]
    return sorted({x & (2 * top - 1) for x in numbers})


def all_pairs(width: int) -> tuple[list[int], list[int]]:
    """All pairs of corners, and a few hundred random ones."""
    values = corners(width)
    pairs = [(a, b) for a in values for b in values]
    rng = np.random.default_rng(width)
    top = (1 << width) - 1
    for _ in range(300):
        a, b = (int(x) & top for x in rng.integers(0, 2**63, 2))
        pairs.append((a, b if rng.integers(2) else b >> int(rng.integers(width))))
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("opcode", Opcode)
def test_every_opcode_against_python(opcode: Opcode, width: int) -> None:
    if (opcode is Opcode.TRUNC and width == 1) or (opcode in EXTENSIONS and width == 64):
        return
    first, second = all_pairs(width)
    for chosen in (64, width + 1) if opcode in EXTENSIONS else (1, width - 1):
        widths, out = operand_widths(opcode, width, chosen)
        lists = [first, second][: len(widths)]
        if opcode is Opcode.SELECT:
            lists = [[x & 1 for x in second], first, second]
        amounts = (0, 1, width - 1, width, 200) if opcode in CONSTANT_SHIFTS else (None,)
        for amount in amounts:
            args = [np.array(x, word_dtype(w)) for x, w in zip(lists, widths, strict=True)]
            before = [x.copy() for x in args]
            got = compute(opcode, args, width, out, amount)
            want = [
                bbop_value(opcode, lane, width, out, amount) for lane in zip(*lists, strict=True)
            ]
            assert got.dtype == word_dtype(out)
            assert got.tolist() == want
            for x, old in zip(args, before, strict=True):
                assert (x == old).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_multiplication_by_a_number(width: int) -> None:
    first, _ = all_pairs(width)
    for scalar in (*corners(width), -1, -7):
        got = multiply_by(np.array(first, word_dtype(width)), scalar, width)
        assert got.tolist() == [x * scalar % (1 << width) for x in first]


def test_filling_takes_the_low_bits() -> None:
    assert filled(-1, 3, 5).tolist() == [31, 31, 31]
    assert filled(256 + 7, 2, 8).tolist() == [7, 7]


def test_resizing() -> None:
    assert resized(np.array([-1, 5], np.int32), 5).tolist() == [31, 5]
    assert resized(np.array([-1, 5], np.int8), 16).tolist() == [255, 5]
    assert resized(np.array([True, False]), 1).tolist() == [1, 0]


def test_unknown_widths_and_opcodes_are_refused() -> None:
    with pytest.raises(ValueError, match="no word has 65 bits"):
        word_dtype(65)
    one = np.ones(3, np.uint8)
    with pytest.raises(ValueError, match="no words for shl_const"):
        compute(Opcode.SHL_CONST, [one], 8, 8)
    with pytest.raises(ValueError, match="no words for median"):
        compute("median", [one], 8, 8, 3)  # pyright: ignore[reportArgumentType]
