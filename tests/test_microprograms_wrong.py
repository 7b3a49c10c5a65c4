"""Released programs that compute the wrong thing, rebuilt by what they do: they are refused.

Without these, a checker that finds nothing would not be noticed.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from microprogram_checks import mismatch, run_lanes

from cim_opt.microprograms.library import LIBRARY_NAMES, library
from cim_opt.microprograms.model import (
    AAP,
    C0,
    C1,
    DCC0,
    NOT_DCC0,
    T0,
    T0_T1_T2,
    T1,
    T2,
    Address,
    Operand,
    RowProgram,
    bit,
)
from cim_opt.microprograms.steps import Steps
from cim_opt.microprograms.subarray import IllegalCommand


def rows(name: str, width: int) -> list[Address]:
    return [bit(name, index) for index in range(width)]


def program(
    name: str, width: int, inputs: tuple[Operand, ...], steps: Steps, out_width: int | None = None
) -> RowProgram:
    out = Operand("out", width if out_width is None else out_width)
    scratch = Operand("scratch", width)
    return RowProgram("wrong", name, width, inputs, (out,), (scratch,), tuple(steps.commands))


def wrong_select(width: int) -> RowProgram:
    """choice or b."""
    steps = Steps()
    for i in range(width):
        steps.aap(T0, bit("choice", 0))
        steps.aap(T1, bit("b", i))
        steps.aap(T2, C1)
        steps.aap(bit("out", i), T0_T1_T2)
    inputs = (Operand("choice", 1), Operand("a", width), Operand("b", width))
    return program("select", width, inputs, steps)


def wrong_maximum(width: int) -> RowProgram:
    """The wrong select of a and b by a > b."""
    steps = Steps()
    a, b = rows("a", width), rows("b", width)
    steps.compare(bit("scratch", 0), a, b, C0)
    for command in wrong_select(width).commands:
        assert isinstance(command, AAP)
        chosen = command.source == bit("choice", 0)
        steps.aap(command.destination, bit("scratch", 0) if chosen else command.source)
    return program("max_u", width, (Operand("a", width), Operand("b", width)), steps)


def wrong_absolute(width: int) -> RowProgram:
    """a xor sign, without the carry that makes it a negation."""
    steps = Steps()
    a = rows("a", width)
    steps.xor_words(rows("out", width), a, [a[-1]] * width)
    return program("abs", width, (Operand("a", width),), steps)


def wrong_bitcount(width: int) -> RowProgram:
    """Of five bits and more, one counts twice and the last never."""
    steps = Steps()
    a = rows("a", width)
    if width >= 5:
        a[-1] = a[-2]
    digits = rows("out", width.bit_length())
    column: list[Address] = a
    for place, digit in enumerate(digits[:-1]):
        adders = len(column) // 2
        carries = rows("scratch", adders) if adders > 1 else [digits[place + 1]]
        steps.add_column(digit, carries, column)
        column = carries
    return program("bitcount", width, (Operand("a", width),), steps, len(digits))


def wrong_relu(width: int) -> RowProgram:
    """The zero of the sign goes into the input, and the top row of the result gets nothing."""
    steps = Steps()
    a, out = rows("a", width), rows("out", width)
    steps.invert([bit("scratch", 0)], [a[-1]])
    steps.mask_words(out[:-1], a[:-1], bit("scratch", 0), C0)
    steps.aap(a[-1], C0)
    return program("relu", width, (Operand("a", width),), steps)


@pytest.mark.parametrize("width", (2, 4, 8))
@pytest.mark.parametrize(
    ("wrong", "operation"), [(wrong_select, "select"), (wrong_maximum, "max_u")]
)
def test_wrong_choices_are_refused(
    wrong: Callable[[int], RowProgram], operation: str, width: int
) -> None:
    found = mismatch(wrong(width), operation, {}, 9)
    assert found is not None and found.startswith(f"{operation}(")


def test_wrong_select_is_choice_or_b() -> None:
    lanes = [{"choice": 1, "a": 0x3C, "b": 0x0F}, {"choice": 0, "a": 0x3C, "b": 0x0F}]
    assert run_lanes(wrong_select(8), lanes) == [0xFF, 0x0F]
    for name in LIBRARY_NAMES:
        assert run_lanes(library(name).program("select", 8), lanes) == [0x3C, 0x0F]


def test_wrong_absolute_is_refused() -> None:
    for width in (2, 4, 8):
        assert mismatch(wrong_absolute(width), "abs", {}) is not None
    lanes = [{"a": 0x80}, {"a": 0xFF}, {"a": 5}]
    assert run_lanes(wrong_absolute(8), lanes) == [0x7F, 0, 5]
    for name in LIBRARY_NAMES:
        assert run_lanes(library(name).program("abs", 8), lanes) == [0x80, 1, 5]


def test_wrong_bitcount_is_refused_from_five_bits() -> None:
    for width in (3, 4):
        assert mismatch(wrong_bitcount(width), "bitcount", {}) is None
    for width in (5, 7, 8):
        assert mismatch(wrong_bitcount(width), "bitcount", {}) is not None
    lanes = [{"a": 0b10000}, {"a": 0b01000}]
    assert run_lanes(wrong_bitcount(5), lanes) == [0, 2]
    for name in LIBRARY_NAMES:
        assert run_lanes(library(name).program("bitcount", 5), lanes) == [1, 1]


def test_wrong_relu_is_refused() -> None:
    with pytest.raises(IllegalCommand, match=r"a\[7\]: the program writes a row of its input"):
        mismatch(wrong_relu(8), "relu", {})
    commands = wrong_relu(8).commands[:-1]
    with pytest.raises(ValueError, match=r"the program never writes out\[7\]"):
        mismatch(replace(wrong_relu(8), commands=commands), "relu", {})
    lanes = [{"a": 0x85}, {"a": 0x7F}]
    for name in LIBRARY_NAMES:
        assert run_lanes(library(name).program("relu", 8), lanes) == [0, 0x7F]


def test_comparison_of_equal_words() -> None:
    lanes = [{"a": 200, "b": 100}, {"a": 100, "b": 200}, {"a": 7, "b": 7}]
    for name in LIBRARY_NAMES:
        assert run_lanes(library(name).program("gt_u", 8), lanes) == [1, 0, 0]
        assert run_lanes(library(name).program("ge_u", 8), lanes) == [1, 0, 1]


@pytest.mark.parametrize(
    ("operation", "unneeded"),
    # Three divisor bits too many: a bit of the quotient is 0 there whatever the lowest says.
    [("add", 0), ("sub", 0), ("select", 0), ("max_s", 0), ("abs", 0), ("mul", 0), ("div_u", 3)],
)
def test_a_program_without_one_command_is_wrong(operation: str, unneeded: int) -> None:
    whole = library("cim-opt").program(operation, 4)
    unnoticed = 0
    for i in range(len(whole.commands)):
        shorter = replace(whole, commands=whole.commands[:i] + whole.commands[i + 1 :])
        try:
            unnoticed += mismatch(shorter, operation, {}) is None
        except (IllegalCommand, ValueError):
            continue
    assert unnoticed <= unneeded


def test_a_complement_in_the_wrong_place_is_wrong() -> None:
    whole = library("cim-opt").program("add", 4)
    swapped = {NOT_DCC0: DCC0, DCC0: NOT_DCC0}
    for i, command in enumerate(whole.commands):
        if isinstance(command, AAP) and command.destination in swapped:
            other = replace(command, destination=swapped[command.destination])
            commands = (*whole.commands[:i], other, *whole.commands[i + 1 :])
            assert mismatch(replace(whole, commands=commands), "add", {}) is not None
