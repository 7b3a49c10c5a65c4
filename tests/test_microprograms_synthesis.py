"""The synthesiser finds the known bit steps, refutes shorter ones, and its cache is up to date."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cim_opt.errors import UserError
from cim_opt.microprograms.library import library
from cim_opt.microprograms.model import (
    AAP,
    AP,
    DCC0,
    DCC0_T1_T2,
    DCC1,
    DCC1_T0_T3,
    NOT_DCC0,
    T0_T1_T2,
    T1,
    T2,
    T2_T3,
    Command,
    bit,
)
from cim_opt.microprograms.synthesis import Synthesis, WrongProgram, synthesise, verify
from cim_opt.microprograms.synthesis_forms import fewest_nodes, forms
from cim_opt.microprograms.synthesis_step import Step
from cim_opt.microprograms.synthesis_steps import STEPS, as_json, cached, named_step
from cim_opt.tools.cim_synth import main

A, B, OUT = bit("a", 0), bit("b", 0), bit("out", 0)
# Processor seconds; some five times what the slowest step here takes.
LIMIT_SECONDS = 60
LENGTHS = {
    "and": 4,
    "or": 4,
    "not": 2,
    "xor": 7,
    "and_pair": 7,
    "mask_pair": 6,
    "select": 7,
    "subtract": 6,
    "add": 7,
    "greater": 3,
}


def found_in_time(name: str) -> Synthesis:
    start = time.process_time()
    found = synthesise(STEPS[name])
    assert time.process_time() - start < LIMIT_SECONDS
    return found


@pytest.mark.parametrize("name", LENGTHS)
def test_finds_a_shortest_program_and_the_cache_has_it(name: str) -> None:
    found = found_in_time(name)
    assert len(found.commands) == LENGTHS[name]
    # `verify` executes the program; it is no part of the search.
    verify(STEPS[name], found.commands)
    assert as_json(found) == cached()[name]


def test_the_cache_has_every_step() -> None:
    assert list(cached()) == list(STEPS)
    assert len(cached()["deduct_product"]["commands"]) == 9


@pytest.mark.parametrize("name", LENGTHS)
def test_refuses_fewer_commands(name: str) -> None:
    most = LENGTHS[name] - 1
    with pytest.raises(UserError, match=f"has no program of {most} commands or fewer; .* needed"):
        synthesise(STEPS[name], most)


def test_a_product_is_deducted_in_no_fewer_than_nine() -> None:
    with pytest.raises(UserError, match="no program of 8 commands"):
        synthesise(STEPS["deduct_product"], 8)


@pytest.mark.parametrize(
    ("operation", "step"),
    [("add", "add"), ("sub", "subtract"), ("xor", "xor"), ("select", "select")],
)
def test_the_short_library_spends_no_more_on_a_bit(operation: str, step: str) -> None:
    short = library("cim-opt")
    for width in (3, 8, 32):
        more = short.counts(operation, width + 1).total - short.counts(operation, width).total
        assert more == LENGTHS[step]


def test_one_row_for_the_borrow_is_not_enough() -> None:
    step = replace(STEPS["subtract"], state=(("borrow", ("DCC1",)),))
    with pytest.raises(UserError, match="no program of 6 commands"):
        synthesise(step, 6)


def test_what_cannot_occur_saves_commands() -> None:
    step = Step("or", inputs=("a", "b"), results=(("out", "a | b"),), assume="a | b")
    assert [str(x) for x in synthesise(step).commands] == ["AAP out[0] <- C1"]


def test_values_swap_their_rows() -> None:
    step = Step(
        "swap",
        inputs=(),
        state=(("p", ("T0",)), ("q", ("T1",))),
        following=(("p", "q"), ("q", "p")),
    )
    assert len(synthesise(step).commands) == 3


def test_a_scratch_row_helps_where_all_rows_are_taken() -> None:
    state = (("p", ("T0",)), ("q", ("T1",)), ("r", ("T2", "T3", "DCC0", "DCC1")))
    following = (("p", "q"), ("q", "p"), ("r", "r"))
    step = Step("swap", inputs=(), state=state, following=following)
    with pytest.raises(UserError, match="allow more commands, a scratch row"):
        synthesise(step, 2)
    found = synthesise(replace(step, scratch=1)).commands
    assert len(found) == 3
    assert any("scratch0[0]" in str(command) for command in found)


def test_truth_table_and_formula_are_the_same_step() -> None:
    formula = Step("x", inputs=("a", "b"), results=(("out", "a & ~b"),))
    table = Step("x", inputs=("a", "b"), results=(("out", "0x2"),))
    assert synthesise(formula).commands == synthesise(table).commands


def test_forms_of_the_full_adder() -> None:
    a, b, c, ones = 0xAA, 0xCC, 0xF0, 0xFF
    carry, total = 0xE8, 0x96
    assert fewest_nodes([carry, total], [a, b, c, 0], ones) == 3
    # The third majority is that of two inputs and the complement of one.
    found = forms([carry, total], [a, b, c, 0], ones, 3)
    assert {form.nodes for form in found} == {
        frozenset({0xE8, 0x96, helper}) for helper in (0xD4, 0xB2, 0x8E)
    }


ADD: list[Command] = [
    AAP(NOT_DCC0, A),
    AAP(T0_T1_T2, B),
    AAP(T1, DCC1),
    AP(DCC0_T1_T2),
    AAP(T2_T3, A),
    AAP(NOT_DCC0, DCC1_T0_T3),
    AAP(OUT, DCC0_T1_T2),
]


def test_verify_accepts_a_right_program() -> None:
    verify(STEPS["add"], ADD)


@pytest.mark.parametrize("missing", range(len(ADD)))
def test_verify_catches_a_missing_command(missing: int) -> None:
    with pytest.raises(WrongProgram, match=r"is wrong for a = [01], b = [01], carry = [01]"):
        verify(STEPS["add"], ADD[:missing] + ADD[missing + 1 :])


def test_verify_catches_dependence_on_what_rows_held() -> None:
    step = Step("copy", inputs=("a",), results=(("out", "a"),))
    with pytest.raises(WrongProgram, match="out"):
        verify(step, [AAP(OUT, DCC0)])
    with pytest.raises(WrongProgram, match=r"a\[0\] is wrong"):
        verify(step, [AAP(OUT, A), AAP(T2, DCC0), AAP(A, T2)])


WRONG_STEPS = [
    (Step("s", ("a", "a"), (("o", "a"),)), "step s: a variable occurs twice; rename one"),
    (Step("s", tuple("abcdefg"), (("o", "a"),)), "step s has 7 variables; at most 6"),
    (Step("s", ("a",)), "step s computes nothing; give it a result"),
    (Step("s", ("a",), (("o", "a"),), (("c", ("T0",)),)), "state variables and their following"),
    (
        Step("s", ("a",), (), (("c", ("T9",)),), (("c", "a"),)),
        "c cannot wait in 'T9'; the rows of the B-group are T0, ",
    ),
    (Step("s", ("a",), (), (("c", ("T0", "~T0")),), (("c", "a"),)), "two values wait in T0"),
    (Step("s", ("a",), (("o", "b"),)), "unknown variable 'b' in 'b'; the variables are a"),
    (Step("s", ("a",), (("o", "a +"),)), r"not a formula: 'a \+'; a formula has &"),
    (Step("s", ("a",), (("o", "a + a"),)), r"not a formula: 'a \+ a'"),
    (Step("s", ("a",), (("o", "0xzz"),)), "not a formula: '0xzz'"),
    (Step("s", ("a",), (("o", "0xff"),)), "truth table 0xff; 1 variables give 2 bits"),
    (Step("s", ("a",), (("o", "a"),), assume="0"), "step s: no values satisfy '0'"),
]


@pytest.mark.parametrize(("step", "message"), WRONG_STEPS)
def test_wrong_steps_are_refused(step: Step, message: str) -> None:
    with pytest.raises(UserError) as caught:
        synthesise(step)
    assert re.search(message, caught.value.message())


def test_unknown_step() -> None:
    with pytest.raises(UserError) as caught:
        named_step("multiply")
    assert caught.value.message().startswith("no step 'multiply'; the steps are and, or")


def test_tool_prints_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greater"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[:-1] == cached()["greater"]["commands"]
    assert out.endswith("3 commands, none shorter; 1 majorities needed\n")


def test_tool_takes_a_step_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--input=a", "--input=b", "--state=more=T2", "--next=more=maj(a, ~b, more)"]
    assert main([*options, "--report", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["step"] == "given"
    assert len(report["commands"]) == 3


def test_tool_lists_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert dict(listed) == {k: str(len(v["commands"])) for k, v in cached().items()}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing"], 1, "cim-synth: error: no step 'nothing'"),
        ([], 1, "cim-synth: error: no step; name one"),
        (["add", "--input", "a"], 1, "'add' and a step of your own; give one of them"),
        (["--input", "a", "--result", "a"], 1, "--result a; it has the form NAME=VALUE"),
        (["select", "--most", "6"], 1, "step select has no program of 6 commands or fewer"),
        (["--nothing"], 2, "unrecognized arguments"),
    ],
)
def test_tool_refuses(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert message in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "cim_opt.tools.cim_synth", "--help"]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in log.splitlines()}
    assert not loaded & {"numpy", "z3", "islpy"}


def test_regenerate_command_is_in_the_data() -> None:
    path = Path(__file__).parents[1] / "microprograms" / "data" / "bit_steps.json"
    assert json.loads(path.read_text())["made_by"] == "cim-synth --regenerate"
