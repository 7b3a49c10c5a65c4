"""cim-run: what it prints, what it refuses, and its exit codes."""

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from process_time import cpu_seconds
from run_lines import run_command
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from cim_opt.simulators import run as run_module

PROGRAM = """
func.func @doubled(%a: tensor<?xi32>) -> tensor<?xi32> {
  %b = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %y = arith.addi %x, %x : i32
    pattern.yield %y : i32
  }
  func.return %b : tensor<?xi32>
}
"""
TOOL = Path(sys.executable).parent / "cim-run"
UPMEM = ("--target", "upmem")
REFERENCE = ("--target", "reference")


class Outcome(NamedTuple):
    """What a run of cim-run returned and printed."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def in_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cim_run(*arguments: str, stdin: str = "") -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    code = run_command(["cim-run", *arguments], stdin, out, err)
    return Outcome(code, out.getvalue(), err.getvalue())


def on_text(text: str, *arguments: str) -> Outcome:
    Path("t.mlir").write_text(text)
    return cim_run("t.mlir", *arguments)


def refused(outcome: Outcome) -> str:
    """The one line of a user error."""
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    return outcome.err.rstrip("\n")


def with_result(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Makes the simulator return something else than it computed."""
    simulate = run_module._simulate  # pyright: ignore[reportPrivateUsage]

    def changed(*arguments: Any) -> Any:
        outputs, report = simulate(*arguments)
        return [change(value) for value in outputs], report

    monkeypatch.setattr(run_module, "_simulate", changed)


# What works.


@pytest.mark.parametrize("target", ["reference", "upmem"])
def test_text(target: str) -> None:
    outcome = on_text(PROGRAM, "--target", target, "--size", "9")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"@doubled on {target}")
    assert lines[1].startswith("  input  %a: 9 int32 [")
    assert lines[2].startswith("  result 0: 9 int32 [")
    assert lines[-1].startswith("check: ")


def test_a_run_that_agrees_says_so_and_by_which_rule() -> None:
    outcome = on_text(PROGRAM, *UPMEM, "--size", "9")
    last = outcome.out.splitlines()[-1]
    assert last == "check: result 0 (tensor<?xi32>) equals the reference (bit-exact)"


def test_json() -> None:
    outcome = on_text(PROGRAM, *UPMEM, "--size", "5000", "--report", "json", "--seed", "3")
    assert (outcome.code, outcome.err) == (0, "")
    run = json.loads(outcome.out)
    assert run["target"] == "upmem"
    assert run["machine"] == "upmem-2560"
    assert run["entry"] == "doubled"
    assert run["seed"] == 3
    assert run["inputs"] == [{"name": "a", "type": "tensor<?xi32>", "shape": [5000], "file": None}]
    assert run["results"] == [{"type": "tensor<?xi32>", "shape": [5000]}]
    assert run["check"]["ok"] is True
    assert run["check"]["mismatch"] is None
    assert run["seconds"] > 0
    assert run["cycles"] > 0
    assert run["report"]


def test_json_of_the_reference_claims_no_machine() -> None:
    run = json.loads(on_text(PROGRAM, *REFERENCE, "--size", "5", "--report", "json").out)
    assert run["target"] == "reference"
    assert [run[key] for key in ("machine", "seconds", "cycles", "report", "check")] == [None] * 5


def test_the_machine_decides_the_time() -> None:
    def seconds(*arguments: str) -> float:
        outcome = on_text(PROGRAM, *UPMEM, "--size", "3000000", "--report", "json", *arguments)
        return json.loads(outcome.out)["seconds"]

    assert seconds("--machine", "upmem-1") > seconds("--machine", "upmem-640") * 2
    assert seconds("--transfer", "linear") != seconds("--transfer", "measured") == seconds()


def test_a_machine_from_a_file() -> None:
    Path("small.toml").write_text('base = "upmem-2560"\nname = "small"\ndpus = 64\n')
    outcome = on_text(PROGRAM, *UPMEM, "--size", "99", "--machine", "small.toml")
    assert outcome.code == 0, outcome.err
    assert "check: result 0 (tensor<?xi32>) equals the reference" in outcome.out
    assert outcome.out.startswith("@doubled on upmem, small\n")


def test_stdin() -> None:
    outcome = cim_run("-", *REFERENCE, "--size", "3", stdin=PROGRAM)
    assert (outcome.code, outcome.err) == (0, "")
    assert "%a: 3 int32" in outcome.out


def test_entry() -> None:
    two = PROGRAM + PROGRAM.replace("@doubled", "@other")
    assert on_text(two, *REFERENCE, "--size", "3", "--entry", "other").out.startswith("@other on")
    private = two.replace("func.func @other", "func.func private @other")
    assert on_text(private, *REFERENCE, "--size", "3").out.startswith("@doubled on")


def test_input_and_save() -> None:
    np.save("x.npy", np.array([1, -2, 2**31 - 1], np.int32))
    outcome = on_text(PROGRAM, *UPMEM, "--input", "a=x.npy", "--save", "out.npz")
    assert outcome.code == 0, outcome.err
    with np.load("out.npz") as saved:
        assert list(saved) == ["result0"]
        assert saved["result0"].tolist() == [2, -4, -2]


def test_saved_where_it_says_without_an_ending_added() -> None:
    assert on_text(PROGRAM, *REFERENCE, "--size", "2", "--save", "out").code == 0
    assert Path("out").is_file()


def test_the_seed_decides_the_input() -> None:
    same = [on_text(PROGRAM, *REFERENCE, "--size", "9").out for _ in range(2)]
    other = on_text(PROGRAM, *REFERENCE, "--size", "9", "--seed", "1").out
    assert same[0] == same[1] != other


def test_pipeline_options_reach_the_lowering() -> None:
    def report(options: str) -> Any:
        outcome = on_text(
            PROGRAM, *UPMEM, "--size", "999999", "--report", "json", "--pipeline-options", options
        )
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    assert report("tasklets=1")["cycles"] > report("tasklets=16")["cycles"]


def test_a_lowered_program_runs_as_it_is_and_says_that_nothing_is_checked() -> None:
    Path("t.mlir").write_text(PROGRAM)
    out = io.StringIO()
    lower = ["cim-opt", "t.mlir", "-p", "pattern-to-upmem{machine=upmem-640 tasklets=4}"]
    assert run_command(lower, "", out, io.StringIO()) == 0
    before = json.loads(
        on_text(
            PROGRAM,
            *(*UPMEM, "--machine", "upmem-640", "--pipeline-options", "tasklets=4"),
            *("--size", "9999", "--save", "before.npz", "--report", "json"),
        ).out
    )
    lowered = on_text(out.getvalue(), *UPMEM, "--size", "9999", "--save", "after.npz")
    assert lowered.code == 0, lowered.err
    assert lowered.out.splitlines()[-1].startswith("check: none, the program was lowered already")
    after = json.loads(cim_run("t.mlir", *UPMEM, "--size", "9999", "--report", "json").out)
    assert after["check"] is None
    assert after["machine"] == "upmem-640"
    assert after["cycles"] == before["cycles"]
    with np.load("before.npz") as one, np.load("after.npz") as other:
        assert np.array_equal(one["result0"], other["result0"])
    assert "target reference for a program that is lowered" in refused(
        cim_run("t.mlir", *REFERENCE, "--size", "9")
    )
    assert "a machine for a lowered program" in refused(
        cim_run("t.mlir", *UPMEM, "--size", "9", "--machine", "upmem-1")
    )
    assert "options of the pipeline for a lowered program" in refused(
        cim_run("t.mlir", *UPMEM, "--size", "9", "--pipeline-options", "tasklets=2")
    )


def test_float_folds_are_compared_within_a_bound_that_is_said() -> None:
    text = PROGRAM.replace("xi32", "xf32").replace(": i32", ": f32").replace("addi", "addf")
    assert "equals the reference (bit-exact)" in on_text(text, *UPMEM, "--size", "5000").out
    total = """
func.func @total(%a: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %sum = pattern.reduce(%x in %a : tensor<?xf32>) init(%acc = %zero : f32) {
    %s = arith.addf %acc, %x : f32
    pattern.yield %s : f32
  }
  func.return %sum : f32
}
"""
    outcome = on_text(total, *UPMEM, "--size", "5000")
    assert outcome.code == 0
    assert "equals the reference (float fold in another order, within " in outcome.out


def test_json_has_text_for_numbers_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(value: Any) -> Any:
        return np.full_like(value, np.inf)

    text = PROGRAM.replace("xi32", "xf32").replace(": i32", ": f32").replace("addi", "addf")
    np.save("x.npy", np.array([np.nan, 1], np.float32))
    with_result(monkeypatch, broken)
    outcome = on_text(text, *UPMEM, "--input", "a=x.npy", "--report", "json")

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    mismatch = json.loads(outcome.out, parse_constant=refuse)["check"]["mismatch"]
    assert (mismatch["index"], mismatch["expected"], mismatch["got"]) == (0, "nan", "inf")


def test_nothing_returned() -> None:
    outcome = on_text("func.func @f() {\n  func.return\n}\n", *UPMEM)
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "check: nothing was returned"


def test_a_lowering_that_leaves_nonsense_is_not_the_users_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nonsense(self: object, ctx: object, module: ModuleOp) -> None:
        function = module.body.block.first_op
        assert isinstance(function, FuncOp)
        last = function.body.block.last_op
        assert last is not None
        last.operands = []

    monkeypatch.setattr("cim_opt.passes.pipelines.PatternToUpmemPipeline.apply", nonsense)
    outcome = on_text(PROGRAM, *UPMEM, "--size", "4")
    assert outcome.code == 70
    assert "pattern-to-upmem left a module that does not verify" in outcome.err


# A result that differs.


def test_a_wrong_result_is_shown_and_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(value: Any) -> Any:
        changed = value.copy()
        changed[[4, 7]] = 123
        return changed

    np.save("x.npy", np.arange(9, dtype=np.int32))
    with_result(monkeypatch, broken)
    outcome = on_text(PROGRAM, *UPMEM, "--input", "a=x.npy")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.splitlines()[-1] == (
        "check: result 0 (tensor<?xi32>) FAILED: value differs at index 4: "
        "expected 8, got 123 (bit-exact)"
    )
    outcome = on_text(PROGRAM, *UPMEM, "--input", "a=x.npy", "--report", "json")
    assert outcome.code == 1
    assert json.loads(outcome.out)["check"] == {
        "ok": False,
        "rules": ["bit-exact"],
        "mismatch": {"result": 0, "what": "value", "index": 4, "expected": 8, "got": 123},
    }


def test_a_result_of_another_length_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def shorter(value: Any) -> Any:
        return value[:-1]

    with_result(monkeypatch, shorter)
    outcome = on_text(PROGRAM, *UPMEM, "--size", "9")
    assert outcome.code == 1
    assert "FAILED: length differs: expected 9, got 8" in outcome.out.splitlines()[-1]


# Target simdram.


SIMDRAM = ("--target", "simdram")


def simdram_report(*arguments: str) -> dict[str, Any]:
    outcome = on_text(PROGRAM, *SIMDRAM, "--size", "70000", "--report", "json", *arguments)
    assert outcome.code == 0, outcome.err
    run = json.loads(outcome.out)
    assert run["check"]["ok"]
    assert run["cycles"] is None
    assert run["seconds"] == run["report"]["seconds"] > 0
    return run["report"]


def test_simdram() -> None:
    outcome = on_text(PROGRAM, *SIMDRAM, "--size", "70000")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("@doubled on simdram, simdram-1\n")
    assert "\nsimdram on simdram-1, library cim-opt, timing proteus49\n" in outcome.out
    assert outcome.out.endswith(
        "check: result 0 (tensor<?xi32>) equals the reference (bit-exact)\n"
    )


def test_simdram_options() -> None:
    words = simdram_report()
    rows = simdram_report("--level", "rows")
    assert rows == words | {"level": "rows"}
    published = simdram_report("--library", "simdram")
    assert published["library"] == "simdram"
    assert published["commands"] > words["commands"]
    gem5, strict = (simdram_report("--timing", name) for name in ("gem5", "strict"))
    assert words["compute_seconds"] < gem5["compute_seconds"] < strict["compute_seconds"]
    Path("m.toml").write_text('base = "simdram-1"\nname = "m"\nsubarrays = 1024\n')
    limit = "--activation-limit"
    free, limited = (simdram_report("--machine", "m.toml", limit, on) for on in ("off", "on"))
    assert free["compute_seconds"] == free["unlimited_seconds"]
    assert limited["compute_seconds"] == limited["limited_seconds"] == free["limited_seconds"]


def test_a_program_that_is_lowered_for_simdram() -> None:
    Path("t.mlir").write_text(PROGRAM)
    lowered = io.StringIO()
    command = ["cim-opt", "t.mlir", "-p", "pattern-to-simdram{machine=simdram-64}"]
    assert run_command(command, "", lowered, io.StringIO()) == 0
    outcome = on_text(lowered.getvalue(), *SIMDRAM, "--size", "100000")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("@doubled on simdram, simdram-64\n")
    assert "check: none, the program was lowered already" in outcome.out
    other = on_text(lowered.getvalue(), *SIMDRAM, "--size", "9", "--library", "simdram")
    assert refused(other).startswith(
        "cim-run: error: library simdram for a program whose rows were allocated for cim-opt; "
    )
    assert refused(on_text(lowered.getvalue(), *UPMEM, "--size", "9")) == (
        "cim-run: error: target upmem for a program that is lowered for simdram; what it meant "
        "before is not in the file; choose --target simdram, or run the program as it was before "
        "lowering"
    )


# Refusals.


@pytest.mark.parametrize(
    ("option", "value", "only"),
    [
        ("transfer", "linear", "upmem"),
        ("cycles", "event", "upmem"),
        ("level", "rows", "simdram"),
        ("library", "simdram", "simdram"),
        ("timing", "gem5", "simdram"),
        ("activation-limit", "on", "simdram"),
    ],
)
def test_options_of_another_target(option: str, value: str, only: str) -> None:
    other = {"upmem": "simdram", "simdram": "upmem"}[only]
    for target, why in (
        (other, f"only {only} has it"),
        ("reference", "the reference is no machine"),
    ):
        outcome = on_text(PROGRAM, "--target", target, "--size", "9", f"--{option}", value)
        assert refused(outcome) == (
            f"cim-run: error: --{option} with --target {target}; {why}; "
            f"leave it out, or choose --target {only}"
        )


@pytest.mark.parametrize("option", ["machine=simdram-64", "library=simdram"])
def test_pipeline_options_that_have_an_option_of_their_own(option: str) -> None:
    name = option.partition("=")[0]
    outcome = on_text(PROGRAM, *SIMDRAM, "--size", "9", "--pipeline-options", option)
    assert refused(outcome) == (
        f"cim-run: error: --pipeline-options names a {name}; the run and the lowering have one "
        f"{name}; use --{name}"
    )


@pytest.mark.parametrize("target", ["auto"])
def test_targets_to_come(target: str) -> None:
    assert refused(on_text(PROGRAM, "--target", target, "--size", "3")) == (
        f"cim-run: error: target {target} is not available yet; "
        "the targets are reference, upmem, simdram, cim; choose one of these"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("t.mlir",),
        ("t.mlir", "--target", "gpu"),
        ("t.mlir", *UPMEM, "--size", "x"),
        ("t.mlir", *UPMEM, "--size", "a=1.5"),
        ("t.mlir", *UPMEM, "--input", "x.npy"),
        ("t.mlir", *UPMEM, "--seed", "one"),
        ("t.mlir", *UPMEM, "--transfer", "slow"),
        ("t.mlir", *UPMEM, "--report", "xml"),
        ("t.mlir", *UPMEM, "--nonsense"),
        ("t.mlir", *UPMEM, "--siz", "4"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    Path("t.mlir").write_text(PROGRAM)
    outcome = cim_run(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "cim-run: error: " in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (UPMEM, "t.mlir:2:1: error: %a is tensor<?xi32> and has no length; every `?` needs one"),
        ((*UPMEM, "--size", "-4"), "cim-run: error: --size -4; a length is 0 or more"),
        ((*UPMEM, "--size", "z=4"), "cim-run: error: --size: no argument %z; the entry takes %a"),
        ((*UPMEM, "--size", "4", "--seed", "-1"), "cim-run: error: --seed -1; a seed is 0 or"),
        ((*UPMEM, "--input", "a=no.npy"), "cim-run: error: --input a: cannot read no.npy"),
        ((*UPMEM, "--size", "4", "--machine", "upmem-7"), "cim-run: error: unknown machine"),
        ((*UPMEM, "--size", "4", "--machine", "no.toml"), "cim-run: error: no machine file"),
        ((*UPMEM, "--entry", "g"), "cim-run: error: no function @g; the file has @doubled"),
        ((*UPMEM, "--save", "no/out.npz"), "cim-run: error: cannot write no/out.npz; its folder"),
        (
            (*REFERENCE, "--size", "4", "--machine", "upmem-1"),
            "cim-run: error: --machine with --target reference; the reference is no machine",
        ),
        (
            (*REFERENCE, "--size", "4", "--transfer", "linear"),
            "cim-run: error: --transfer with --target reference; the reference is no machine",
        ),
        (
            (*UPMEM, "--size", "4", "--pipeline-options", "taskets=4"),
            "cim-run: error: pipeline 'pattern-to-upmem' has no option 'taskets'",
        ),
        (
            (*UPMEM, "--size", "4", "--pipeline-options", "machine=upmem-1"),
            "cim-run: error: --pipeline-options names a machine",
        ),
        ((*UPMEM, "--size", "4", "--pipeline-options", "a={"), "cim-run: error: "),
    ],
)
def test_refusals(arguments: tuple[str, ...], line: str) -> None:
    assert refused(on_text(PROGRAM, *arguments)).startswith(line)


def test_a_folder_to_save_to() -> None:
    line = refused(on_text(PROGRAM, *REFERENCE, "--size", "2", "--save", "."))
    assert line.startswith("cim-run: error: cannot write .; Is a directory")


def test_a_file_that_is_not_there() -> None:
    expected = "cim-run: error: cannot read no.mlir; No such file or directory; check the path"
    assert refused(cim_run("no.mlir", *UPMEM)) == expected


def test_a_file_that_is_not_text() -> None:
    Path("t.mlir").write_bytes(b"\xff\xfe\x00")
    assert "t.mlir is not MLIR text; byte 0 is not UTF-8" in refused(cim_run("t.mlir", *UPMEM))


def test_text_that_does_not_parse_is_shown_with_its_place() -> None:
    wrong = PROGRAM.replace("arith.addi %x, %x", "arith.addi %x, %z")
    assert refused(on_text(wrong, *UPMEM)) == (
        "t.mlir:4:25: error: value %z is used but not defined"
    )
    assert refused(cim_run("-", *UPMEM, stdin=wrong)).startswith("<stdin>:4:25: error: ")


def test_text_that_does_not_verify_is_shown_with_its_place() -> None:
    wrong = PROGRAM.replace("func.return %b : tensor<?xi32>", "func.return")
    assert refused(on_text(wrong, *UPMEM)).startswith("t.mlir:7:3: error: ")


def test_no_function_and_several() -> None:
    assert refused(on_text("", *UPMEM)).startswith("t.mlir:")
    private = PROGRAM.replace("func.func @", "func.func private @")
    assert refused(on_text(private, *UPMEM)) == (
        "cim-run: error: no function to run; the entry is a public func.func with a body; "
        "add one, or name a private one with --entry"
    )
    two = PROGRAM + PROGRAM.replace("@doubled", "@other")
    assert refused(on_text(two, *UPMEM)) == (
        "cim-run: error: 2 functions could be the entry; the file has @doubled, @other; "
        "choose one with --entry"
    )


def test_an_operation_that_nobody_can_run() -> None:
    text = "func.func @f(%a: i32) -> i32 {\n  %b = llvm.add %a, %a : i32\n  func.return %b : i32\n}"
    assert refused(on_text(text, *REFERENCE)).startswith("t.mlir:2:")


# The process.


def test_help_is_quick_and_lists_every_option() -> None:
    assert cpu_seconds([TOOL, "--help"]) < 0.5
    printed = cim_run("--help").out
    options = "target entry machine transfer cycles input size seed report save pipeline-options "
    options += "level library timing activation-limit"
    for option in options.split():
        assert f"--{option}" in printed


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_text(PROGRAM, *REFERENCE, "--size", "4").err == ""
    monkeypatch.setattr("cim_opt.tools.progress.FIRST_SHOWN_AFTER", 0.0)
    monkeypatch.setattr("cim_opt.tools.progress.INTERVAL", 0.0001)
    out, err = io.StringIO(), Terminal()
    argv = ["cim-run", "t.mlir", *REFERENCE, "--size", "3000000"]
    assert run_command(argv, "", out, err) == 0
    assert "\rcim-run: computing the reference ... 0 s" in err.getvalue()
    assert err.getvalue().endswith(f"\r{'':78}\r")
