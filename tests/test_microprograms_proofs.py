"""z3 proves the row programs of both libraries, and finds what is wrong with wrong ones.

With CIM_OPT_ALL_PROOFS=1 in the environment it is every width from 1 to 64: half an hour.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
from microprogram_checks import meaning as python_meaning
from microprogram_checks import mismatch
from test_microprograms_wrong import (
    wrong_absolute,
    wrong_bitcount,
    wrong_maximum,
    wrong_relu,
    wrong_select,
)

from cim_opt.errors import UserError
from cim_opt.microprograms.library import LIBRARY_NAMES, OPERATIONS, library, options
from cim_opt.microprograms.model import RowProgram
from cim_opt.microprograms.proofs import (
    INDUCTION,
    OUTRIGHT,
    OUTRIGHT_WIDTHS,
    Proof,
    prove,
    prove_program,
    sample,
)
from cim_opt.microprograms.proofs_meaning import load_z3, meaning
from cim_opt.microprograms.proofs_recurrences import lemmas
from cim_opt.microprograms.subarray import IllegalCommand

EVERY_WIDTH = os.environ.get("CIM_OPT_ALL_PROOFS") == "1"
ALL = tuple(range(1, 65))
WIDTHS = ALL if EVERY_WIDTH else (*range(1, 17), 24, 31, 32, 33, 48, 63, 64)
INDUCTION_WIDTHS = ALL if EVERY_WIDTH else (8, 13, 32)
CONSTANTS = ("mul_const", "mac_const")
LONG = ("mul", "mac", "msub", "div_u", "rem_u", "div_s", "rem_s")
PLAIN = [name for name in OPERATIONS if name not in LONG + CONSTANTS]
# Options that change the program without changing widths.
FLAGS = (
    "a_complemented",
    "b_complemented",
    "out_complemented",
    "complemented",
    "choice_complemented",
    "signed",
    "b_signed",
)


def required(operation: str, width: int) -> list[dict[str, int]]:
    """Values of the options that an operation needs."""
    if operation == "fill":
        return [{"value": 0x0123_4567_89AB_CDEF}]
    if operation in ("shl_const", "shr_const"):
        return [{"amount": amount} for amount in sorted({0, 1, width // 2, width - 1, width})]
    return [{}]


def assert_proved(proof: Proof) -> None:
    assert proof.holds, f"{proof}: {proof.counterexample}"


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", PLAIN)
def test_outright(name: str, operation: str) -> None:
    for width in WIDTHS:
        for chosen in required(operation, width):
            proof = prove(name, operation, width, **chosen)
            assert_proved(proof)
            if operation != "bitcount":
                assert proof.method == OUTRIGHT


def variants(operation: str, width: int) -> Iterator[dict[str, int | bool]]:
    """All settings of the flags of an operation, with every second operand's width."""
    known = options(operation)
    flags = [name for name in FLAGS if name in known]
    widths = [name for name in ("a_width", "b_width") if name in known]
    for settings in product((False, True), repeat=len(flags)):
        for sizes in product({1, width // 2 or 1, width}, repeat=len(widths)):
            yield dict(zip(flags, settings, strict=True)) | dict(zip(widths, sizes, strict=True))


def proved_variants(name: str, operation: str, width: int) -> int:
    count = 0
    for variant in variants(operation, width):
        for chosen in required(operation, width):
            try:
                proof = prove(name, operation, width, **variant, **chosen)
            except UserError:  # not every library has every variant
                continue
            assert_proved(proof)
            count += 1
    return count


WITH_VARIANTS = [
    name for name in OPERATIONS if any(map(options(name).count, (*FLAGS, "a_width", "b_width")))
]


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", [x for x in WITH_VARIANTS if x not in CONSTANTS])
def test_variants(name: str, operation: str) -> None:
    widths = (1, 2, 3, 5, 6) if operation in LONG else (1, 2, 3, 5, 8, 32)
    assert all(proved_variants(name, operation, width) for width in widths)


def test_every_operation_is_proved_in_some_test() -> None:
    assert {*PLAIN, *LONG, *CONSTANTS} == set(OPERATIONS)


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", LONG)
def test_narrow_products_and_quotients_outright(name: str, operation: str) -> None:
    for width in range(1, OUTRIGHT_WIDTHS[operation] + 1):
        proof = prove(name, operation, width)
        assert_proved(proof)
        assert proof.method == OUTRIGHT


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", LONG)
def test_wide_products_and_quotients_by_induction(name: str, operation: str) -> None:
    for width in INDUCTION_WIDTHS:
        if width > OUTRIGHT_WIDTHS[operation]:
            proof = prove(name, operation, width)
            assert_proved(proof)
            assert proof.method == INDUCTION
            assert proof.steps >= width


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", ["mul", "mac"])
def test_widest_products(name: str, operation: str) -> None:
    assert_proved(prove(name, operation, 64))


def test_widest_quotient() -> None:
    assert_proved(prove("cim-opt", "div_u", 64))


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", ["mul", "mac", "msub"])
def test_products_of_narrow_factors_by_induction(name: str, operation: str) -> None:
    for width, a, b in (
        (16, 8, 8),
        (32, 16, 16),
        (32, 8, 20),
        (32, 20, 8),
        (24, 1, 8),
        (24, 24, 9),
    ):
        for signed in (False, True):
            assert_proved(prove(name, operation, width, a_width=a, b_width=b, signed=signed))


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_constant_factors(name: str) -> None:
    for width in (1, 2, 3, 4):
        for value in range(1 << width):
            assert_proved(prove(name, "mul_const", width, value=value))
            assert_proved(prove(name, "mac_const", width, value=value))
    for value in (10, 255, -7):
        for width, flags in product((8, 11), ({}, {"signed": True, "a_width": 5})):
            assert_proved(prove(name, "mul_const", width, value=value, **flags))
            assert_proved(prove(name, "mac_const", width, value=value, **flags))


def test_lemmas() -> None:
    assert lemmas() == {"partial products": True, "long division": True, "full adder": True}


# The meaning in terms of z3 against the meaning in Python integers, which is written separately.


@pytest.mark.parametrize("operation", OPERATIONS)
def test_meaning_of_terms_is_that_of_integers(operation: str) -> None:
    z3 = load_z3()
    for width in (1, 4, 8):
        chosen = (required(operation, width) or [{}])[-1]
        if operation in CONSTANTS:
            chosen = {"value": 11}
        program = library("simdram").program(operation, width, **chosen)
        size = 1 << program.outputs[0].width
        for lane in sample(program.inputs)[:60]:
            words = {x.name: z3.BitVecVal(lane[x.name], x.width) for x in program.inputs}
            term = z3.simplify(meaning(operation, width, chosen, words)).as_long()
            assert term == int(python_meaning(operation, width, chosen, dict(lane))) % size


# Wrong programs.


@pytest.mark.parametrize(
    ("wrong", "operation"),
    [
        (wrong_select, "select"),
        (wrong_maximum, "max_u"),
        (partial(wrong_maximum), "min_u"),
        (wrong_absolute, "abs"),
        (wrong_bitcount, "bitcount"),
    ],
)
def test_wrong_programs_have_a_counterexample(
    wrong: Callable[[int], RowProgram], operation: str
) -> None:
    for width in (5, 8, 17):
        proof = prove_program(wrong(width), operation, {})
        assert not proof.holds
        found = proof.counterexample
        assert found is not None
        assert found.expected == int(python_meaning(operation, width, {}, dict(found.inputs))) % (
            1 << wrong(width).outputs[0].width
        )
        assert found.got != found.expected
        assert f"a = {found.inputs['a']:#x}" in str(found)


def test_a_program_that_writes_its_input_is_refused() -> None:
    with pytest.raises(IllegalCommand, match="writes a row of its input"):
        prove_program(wrong_relu(8), "relu", {})


def without(program: RowProgram, number: int) -> RowProgram:
    commands = program.commands
    return replace(program, commands=commands[:number] + commands[number + 1 :])


@pytest.mark.parametrize(
    ("name", "operation"), [("simdram", "add"), ("cim-opt", "add"), ("cim-opt", "sub")]
)
def test_every_missing_command_is_noticed(name: str, operation: str) -> None:
    program = library(name).program(operation, 8)
    for number in range(len(program.commands)):
        proof = prove_program(without(program, number), operation, {})
        assert proof.counterexample is not None, number


def is_right(program: RowProgram, operation: str) -> bool:
    """By execution on all inputs. A row that was never written makes a program wrong."""
    try:
        return mismatch(program, operation, {}, exhaustive_bits=12) is None
    except (IllegalCommand, ValueError):
        return False


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize(("operation", "width"), [("mul", 4), ("mac", 3), ("div_u", 4)])
def test_induction_judges_programs_as_execution_does(name: str, operation: str, width: int) -> None:
    program = library(name).program(operation, width)
    judged: set[bool] = set()
    for number in range(0, len(program.commands), 2):
        changed = without(program, number)
        proof = prove_program(changed, operation, {}, INDUCTION)
        if proof.holds:
            assert prove_program(changed, operation, {}, OUTRIGHT).holds
        else:
            assert not is_right(changed, operation)
        judged.add(proof.holds)
    assert False in judged


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_swapped_commands_are_noticed(name: str) -> None:
    program = library(name).program("add", 8)
    commands = list(program.commands)
    noticed = 0
    for number in range(len(commands) - 1):
        swapped = commands.copy()
        swapped[number : number + 2] = reversed(commands[number : number + 2])
        changed = replace(program, commands=tuple(swapped))
        noticed += not prove_program(changed, "add", {}).holds
    # Two loads into different rows may swap; a majority and what it needs or leaves may not.
    assert len(commands) // 2 < noticed < len(commands) - 1


@pytest.mark.parametrize(
    ("operation", "other"),
    [("add", "sub"), ("lt_u", "lt_s"), ("div_s", "div_u"), ("mac", "msub"), ("shr_s", "shr_u")],
)
def test_another_operation_is_not_proved(operation: str, other: str) -> None:
    for name in LIBRARY_NAMES:
        for width in (4, 12):
            program = library(name).program(operation, width)
            assert prove_program(program, other, {}).counterexample is not None


def test_a_result_that_depends_on_old_contents_is_not_proved() -> None:
    program = library("cim-opt").program("not", 1)
    proof = prove_program(without(program, 0), "not", {})
    assert proof.counterexample is not None


def test_induction_says_where_it_fails() -> None:
    program = library("cim-opt").program("mul", 8)
    proof = prove_program(without(program, 100), "mul", {}, INDUCTION)
    assert proof.reason is not None and proof.reason.startswith("step ")
    assert proof.counterexample is not None
    other = prove_program(library("cim-opt").program("add", 8), "add", {}, INDUCTION)
    assert not other.holds and other.reason == "no recurrence is known for add"


def test_no_such_program() -> None:
    with pytest.raises(UserError, match="no microprogram 'addd'"):
        prove("cim-opt", "addd", 8)


def test_import_needs_no_z3() -> None:
    code = "import sys, cim_opt.microprograms.proofs; assert 'z3' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
