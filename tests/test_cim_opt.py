"""cim-opt: every mode, every message, every exit code."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from run_lines import run_command
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, i32
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException

from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.tools.cim_opt import main

GOOD = "func.func @f(%a: i32) -> i32 {\n  func.return %a : i32\n}\n"
BAD = "func.func @f() -> i32 {\n  func.return\n}\n"
TOOL = Path(sys.executable).parent / "cim-opt"


class Outcome(NamedTuple):
    """What a run of cim-opt returned and printed."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def in_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cim_opt(*arguments: str, stdin: str = "") -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    code = run_command(["cim-opt", *arguments], stdin, out, err)
    return Outcome(code, out.getvalue(), err.getvalue())


def on_text(text: str, *arguments: str) -> Outcome:
    Path("t.mlir").write_text(text)
    return cim_opt("t.mlir", *arguments)


def with_dce_as(
    monkeypatch: pytest.MonkeyPatch, apply: Callable[[object, Context, ModuleOp], None]
) -> None:
    """Makes the pass `dce` do something else."""
    monkeypatch.setattr("xdsl.transforms.dead_code_elimination.DeadCodeElimination.apply", apply)


def only_function(module: ModuleOp) -> func.FuncOp:
    op = module.body.block.first_op
    assert isinstance(op, func.FuncOp)
    return op


# What works.


def test_text_goes_through_unchanged_in_meaning() -> None:
    outcome = on_text(GOOD)
    assert outcome.code == 0
    assert outcome.err == ""
    assert "func.return %a : i32" in outcome.out


ORDER_OF_BLOCKS = """\
func.func @f(%c: i1) -> i1 {
  cf.br ^b
^a:
  %d = arith.andi %e, %e : i1
  func.return %d : i1
^b:
  %e = arith.andi %c, %c : i1
  cf.br ^a
^nobody_comes_here:
  func.return %e : i1
}
"""


def test_blocks_may_stand_in_any_order() -> None:
    assert on_text(ORDER_OF_BLOCKS).code == 0


def test_order_has_no_meaning_outside_functions() -> None:
    text = '"test.op"(%a) : (i32) -> ()\n%a = "test.op"() : () -> i32\n'
    assert on_text(text).code == 0


def test_disable_verify_leaves_the_order_alone() -> None:
    text, _ = TEXT_ERRORS["used before it is defined"]
    assert on_text(text, "--disable-verify").code == 0


def test_output_is_accepted_as_input() -> None:
    first = on_text(GOOD)
    assert cim_opt(stdin=first.out) == first


@pytest.mark.parametrize("arguments", [(), ("-",), ("-", "-o", "-")])
def test_stdin_and_stdout(arguments: tuple[str, ...]) -> None:
    assert cim_opt(*arguments, stdin=GOOD) == on_text(GOOD)


def test_output_file() -> None:
    outcome = on_text(GOOD, "-o", "out.mlir")
    assert (outcome.code, outcome.out) == (0, "")
    assert Path("out.mlir").read_text() == on_text(GOOD).out


def test_failure_leaves_an_output_file_alone() -> None:
    Path("out.mlir").write_text("as it was")
    assert on_text(GOOD + "// -----\n" + BAD, "--split-input-file", "-o", "out.mlir").code == 1
    assert Path("out.mlir").read_text() == "as it was"


def test_failure_makes_no_output_file() -> None:
    assert on_text(BAD, "-o", "out.mlir").code == 1
    assert not Path("out.mlir").exists()


def test_pipeline_with_options() -> None:
    loop = (
        "func.func @f(%n: index, %o: index) {\n"
        '  "scf.parallel"(%o, %n, %o) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({\n'
        "  ^bb0(%i: index):\n    scf.reduce\n  }) : (index, index, index) -> ()\n"
        "  func.return\n}\n"
    )
    outcome = on_text(loop, "-p", "scf-parallel-loop-tiling{parallel-loop-tile-sizes=4},dce")
    assert outcome.code == 0, outcome.err
    assert "arith.constant 4 : index" in outcome.out


def test_generic_output() -> None:
    assert '"func.return"(%a) : (i32) -> ()' in on_text(GOOD, "--print-op-generic").out


def test_time_passes() -> None:
    assert "Pass dce took" in on_text(GOOD, "-p", "dce", "--time-passes").out


def test_other_targets() -> None:
    outcome = on_text("builtin.module {\n}\n", "-t", "riscv-asm")
    assert outcome.code == 0, outcome.err
    assert "module" not in outcome.out


def test_front_end_by_name_for_any_extension() -> None:
    Path("t.txt").write_text(GOOD)
    assert cim_opt("t.txt", "-f", "mlir") == on_text(GOOD)


def test_unregistered_dialects_on_demand() -> None:
    text = '"no.such"() : () -> ()\n'
    assert on_text(text).code == 1
    assert on_text(text, "--allow-unregistered-dialect").code == 0


def test_disable_verify_ends_with_the_run() -> None:
    before = Attribute.__post_init__
    assert on_text(BAD, "--disable-verify").code == 0
    assert Attribute.__post_init__ is before
    assert on_text(BAD).code == 1


def test_no_implicit_module() -> None:
    outcome = on_text(GOOD, "--no-implicit-module")
    assert outcome.code == 1
    assert outcome.err == "t.mlir:1:1: error: builtin.module operation expected\n"


def test_version() -> None:
    outcome = cim_opt("--version")
    assert (outcome.code, outcome.out) == (0, "cim-opt 0.1.0 (xdsl 0.75.0)\n")


def test_help_lists_our_passes_and_what_pipelines_stand_for() -> None:
    outcome = cim_opt("--help")
    assert outcome.code == 0
    assert "pattern-fuse " in outcome.out
    assert "pattern-to-upmem " in outcome.out
    assert "named pipeline: " in outcome.out


def test_main_is_the_console_script() -> None:
    Path("t.mlir").write_text(GOOD)
    result = subprocess.run([TOOL, "t.mlir"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == on_text(GOOD).out


def test_a_reader_that_leaves_is_no_error_message() -> None:
    Path("t.mlir").write_text("".join(f"func.func private @f{i}()\n" for i in range(9000)))
    result = subprocess.run(
        f"{TOOL} t.mlir | head -n 1", shell=True, capture_output=True, text=True
    )
    assert (result.stdout, result.stderr) == ("builtin.module {\n", "")


# What the user got wrong in the text: one line with its place, exit code 1.

TEXT_ERRORS = {
    "undefined value": (
        "func.func @f() -> i32 {\n  func.return %b : i32\n}\n",
        "t.mlir:2:15: error: value %b is used but not defined",
    ),
    "undefined value, same name defined before it elsewhere": (
        "func.func @f(%c: i1) {\n  cf.br ^b\n^b:\n  func.return\n}\n"
        "func.func @g() {\n  func.call @h(%c) : (i1) -> ()\n  func.return\n}\n",
        "t.mlir:7:16: error: value %c is used but not defined",
    ),
    "first of several undefined values": (
        "func.func @f() -> i32 {\n  %z = arith.addi %y, %x : i32\n  func.return %z : i32\n}\n",
        "t.mlir:2:19: error: value %y is used but not defined",
    ),
    "used before it is defined": (
        "func.func @f() -> i32 {\n  %b = arith.addi %a, %a : i32\n"
        "  %a = arith.constant 1 : i32\n  func.return %b : i32\n}\n",
        "t.mlir:2:3: error: 'arith.addi': value %a is used before it is defined",
    ),
    "used in the region that defines it": (
        "func.func @f(%c: i1) {\n  %a = scf.if %c -> (i1) {\n    scf.yield %a : i1\n  } else {\n"
        "    scf.yield %c : i1\n  }\n  func.return\n}\n",
        "t.mlir:3:5: error: 'scf.yield': value %a is used before it is defined",
    ),
    "defined in a region, used before it outside": (
        "func.func @f(%c: i1) {\n  func.call @g(%a) : (i1) -> ()\n  scf.if %c {\n"
        "    %a = arith.constant true\n  }\n  func.return\n}\n"
        "func.func private @g(i1)\n",
        "t.mlir:2:3: error: 'func.call': value %a is used before it is defined",
    ),
    "defined on one of two ways": (
        "func.func @f(%c: i1) -> i1 {\n  cf.cond_br %c, ^a, ^b\n^a:\n"
        "  %a = arith.constant true\n  cf.br ^b\n^b:\n  func.return %a : i1\n}\n",
        "t.mlir:7:3: error: 'func.return': value %a is used before it is defined",
    ),
    "type mismatch": (
        "func.func @f(%a: i32) -> i64 {\n  func.return %a : i64\n}\n",
        "t.mlir:2:15: error: operand is used with type i64, but has been previously used or "
        "defined with type i32",
    ),
    "unknown operation": (
        "func.func @f() {\n  arith.nothing\n}\n",
        "t.mlir:2:3: error: Operation arith.nothing is not registered",
    ),
    "misspelt operation": (
        "func.func @f(%a: i32) {\n  %b = arith.mulli %a, %a : i32\n  func.return\n}\n",
        "t.mlir:2:8: error: Operation arith.mulli is not registered; did you mean 'muli'?",
    ),
    "misspelt dialect": (
        "func.func @f() {\n  patern.map\n}\n",
        "t.mlir:2:3: error: Operation patern.map is not registered; "
        "there is no dialect 'patern', did you mean 'pattern'?",
    ),
    "unknown dialect": (
        "func.func @f() {\n  xyzzy.map\n}\n",
        "t.mlir:2:3: error: Operation xyzzy.map is not registered; there is no dialect 'xyzzy'",
    ),
    "unknown type": (
        "func.func @f(%a: !llvm.nothing) {\n  func.return\n}\n",
        "t.mlir:1:19: error: 'llvm.nothing' is not registered",
    ),
    "unknown alias": (
        "func.func @f(%a: !none) {\n  func.return\n}\n",
        "t.mlir:1:18: error: undefined symbol alias '!none'",
    ),
    "constant out of range": (
        "func.func @f() {\n  %a = arith.constant 300 : i8\n  func.return\n}\n",
        "t.mlir:3:3: error: Integer value 300 is out of range for type i8 which supports values "
        "in the range [-128, 256)",
    ),
    "missing brace": (
        "func.func @f() {\n  func.return\n",
        "t.mlir:3:1: error: the input ends too early: in block definition",
    ),
    "missing block": (
        "func.func @f() {\n  cf.br ^b\n}\n",
        "t.mlir:4:1: error: region ends with missing block declarations for block(s) b; "
        "dangling block references: t.mlir:2:9",
    ),
    "empty file": ("", "t.mlir:1:1: error: no operation in the input"),
    "only a comment": ("// nothing\n", "t.mlir:2:1: error: no operation in the input"),
    "verification": (
        BAD,
        "t.mlir:2:3: error: 'func.return': Expected arguments to have the same types as the "
        "function output types: expected [i32], got []",
    ),
    "verification, by the file's own location": (
        'func.func @f() -> i32 {\n  func.return loc("model.py":7:1)\n}\n',
        "model.py:7:1: error: 'func.return': Expected arguments to have the same types as the "
        "function output types: expected [i32], got []",
    ),
}


@pytest.mark.parametrize(("text", "line"), TEXT_ERRORS.values(), ids=TEXT_ERRORS.keys())
def test_text_error(text: str, line: str) -> None:
    outcome = on_text(text)
    assert outcome.code == 1
    assert outcome.err == line + "\n"
    assert outcome.out == ""


def test_error_in_stdin_says_so() -> None:
    assert cim_opt(stdin=BAD).err.startswith("<stdin>:2:3: error: ")


def test_split_input_counts_lines_of_the_whole_file() -> None:
    outcome = on_text(GOOD + "// -----\n" + BAD, "--split-input-file")
    assert outcome.code == 1
    assert outcome.err.startswith("t.mlir:6:3: error: 'func.return': ")
    outcome = on_text(GOOD + "// -----\n" + "func.func @f( {\n", "--split-input-file")
    assert outcome.err.startswith("t.mlir:5:15: error: ")
    text, line = TEXT_ERRORS["missing block"]
    outcome = on_text(GOOD + "// -----\n" + text, "--split-input-file")
    assert outcome.err == line.replace(":4:1:", ":8:1:").replace(":2:9", ":6:9") + "\n"


def test_not_text() -> None:
    Path("t.mlir").write_bytes(b"func\xff")
    outcome = cim_opt("t.mlir")
    assert outcome == (1, "", "t.mlir: error: not text in UTF-8: byte 4 of the input\n")


# What the user got wrong on the command line but argparse cannot see: exit code 1.

COMMAND_ERRORS = {
    "missing file": (
        ["nowhere.mlir"],
        "cim-opt: error: cannot open 'nowhere.mlir': No such file or directory",
    ),
    "folder": (["."], "cim-opt: error: cannot open '.': Is a directory"),
    "output folder missing": (
        ["t.mlir", "-o", "no/out.mlir"],
        "cim-opt: error: cannot open 'no/out.mlir': No such file or directory",
    ),
    "extension": (
        ["t.txt"],
        "t.txt: error: no front end for 't.txt'; its name must end in .mlir; "
        "name the front end with -f",
    ),
    "unknown pass": (
        ["t.mlir", "-p", "patern-fuse"],
        "cim-opt: error: no pass 'patern-fuse'; did you mean 'pattern-fuse'?",
    ),
    "unknown pass like no other": (
        ["t.mlir", "-p", "xyzzy"],
        "cim-opt: error: no pass 'xyzzy'; cim-opt --help lists the passes",
    ),
    "unknown option": (
        ["t.mlir", "-p", "dce{fast=1}"],
        "cim-opt: error: pass 'dce' has no option 'fast'; it takes none",
    ),
    "misspelt option": (
        ["t.mlir", "-p", "scf-parallel-loop-tiling{parallel-loop-tile-size=4}"],
        "cim-opt: error: pass 'scf-parallel-loop-tiling' has no option "
        "'parallel-loop-tile-size'; it takes parallel-loop-tile-sizes: tuple[int, ...]; "
        "did you mean 'parallel-loop-tile-sizes'?",
    ),
    "option of the wrong type": (
        ["t.mlir", "-p", "scf-parallel-loop-tiling{parallel-loop-tile-sizes=four}"],
        "cim-opt: error: pass 'scf-parallel-loop-tiling': option 'parallel-loop-tile-sizes' "
        "cannot be 'four'; it takes tuple[int, ...]",
    ),
    "option without a value": (
        ["t.mlir", "-p", "scf-parallel-loop-tiling{parallel-loop-tile-sizes}"],
        "cim-opt: error: pass 'scf-parallel-loop-tiling': option 'parallel-loop-tile-sizes' "
        "cannot be left without a value; it takes tuple[int, ...]",
    ),
    "missing option": (
        ["t.mlir", "-p", "scf-parallel-loop-tiling"],
        "cim-opt: error: pass 'scf-parallel-loop-tiling': scf-parallel-loop-tiling requires "
        'argument "parallel_loop_tile_sizes"',
    ),
    "broken pipeline": (
        ["t.mlir", "-p", "dce{"],
        "cim-opt: error: pass pipeline 'dce{', column 5: Expected argument name here",
    ),
    "option of the target": (
        ["t.mlir", "-t", "riscv-asm{x=1}"],
        "cim-opt: error: target 'riscv-asm' has no option 'x'; it takes none",
    ),
    "option of the front end": (
        ["t.mlir", "-f", "mlir{x=1}"],
        "t.mlir: error: front end 'mlir' has no option 'x'; it takes no-implicit-module: bool",
    ),
}


@pytest.mark.parametrize(("arguments", "line"), COMMAND_ERRORS.values(), ids=COMMAND_ERRORS.keys())
def test_command_error(arguments: list[str], line: str) -> None:
    Path("t.mlir").write_text(GOOD)
    Path("t.txt").write_text(GOOD)
    outcome = cim_opt(*arguments)
    assert outcome.code == 1
    assert outcome.err == line + "\n"


# Bad usage, which argparse sees: exit code 2.


@pytest.mark.parametrize(
    "arguments",
    [["--nonsense"], ["a.mlir", "b.mlir"], ["-t", "nowhere"], ["-f", "nowhere"], ["-o"]],
)
def test_bad_usage(arguments: list[str]) -> None:
    outcome = cim_opt(*arguments)
    assert outcome.code == 2
    assert outcome.err.startswith("usage: cim-opt ")
    assert "\ncim-opt: error: " in outcome.err


# What a pass can end with.


def test_broken_ir_after_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty_result(_: object, ctx: Context, module: ModuleOp) -> None:
        only_function(module).function_type = FunctionType.from_lists([i32], [])

    with_dce_as(monkeypatch, empty_result)
    outcome = on_text(GOOD, "-p", "cse,dce,canonicalize")
    assert outcome.code == 1
    assert outcome.err == (
        "t.mlir:2:3: error: 'func.return': Expected arguments to have the same types as the "
        "function output types: expected [], got [i32] (after pass 'dce')\n"
    )


def test_a_failed_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, ctx: Context, module: ModuleOp) -> None:
        raise PassFailedException("no room\nat all")

    with_dce_as(monkeypatch, fail)
    outcome = on_text(GOOD, "-p", "cse,dce,canonicalize")
    assert outcome == (1, "", "t.mlir: error: no room at all (in pass 'dce')\n")


def refuse_at_function(_: object, ctx: Context, module: ModuleOp) -> None:
    place = location_of(only_function(module))
    raise UserError("window 9 is too wide", "at most 8", "use a smaller window", place)


def refuse_nowhere(_: object, ctx: Context, module: ModuleOp) -> None:
    raise UserError("the program is too large", remedy="split it")


def test_a_located_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with_dce_as(monkeypatch, refuse_at_function)
    outcome = on_text("\n" + GOOD, "-p", "dce")
    assert outcome.code == 1
    assert outcome.err == (
        "t.mlir:2:1: error: window 9 is too wide; at most 8; use a smaller window\n"
    )


def test_a_refusal_without_place_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with_dce_as(monkeypatch, refuse_nowhere)
    outcome = on_text(GOOD, "-p", "dce")
    assert outcome == (1, "", "t.mlir: error: the program is too large; split it\n")


def test_verify_diagnostics_prints_refusals_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with_dce_as(monkeypatch, refuse_at_function)
    text = GOOD + "// -----\n" + GOOD
    outcome = on_text(text, "-p", "dce", "--verify-diagnostics", "--split-input-file")
    assert (outcome.code, outcome.err) == (0, "")
    assert "t.mlir:1:1: error: window 9 is too wide" in outcome.out
    assert "t.mlir:5:1: error: window 9 is too wide" in outcome.out


def test_verify_diagnostics_prints_the_ir_too() -> None:
    outcome = on_text(BAD, "--verify-diagnostics")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Operation does not verify: Expected arguments" in outcome.out


def test_parsing_diagnostics_goes_on() -> None:
    text = "func.func @f( {\n// -----\n" + GOOD
    outcome = on_text(text, "--parsing-diagnostics", "--split-input-file")
    assert (outcome.code, outcome.err) == (0, "")
    assert "t.mlir:1:15" in outcome.out
    assert "func.return %a : i32" in outcome.out


def crash(_: object, ctx: Context, module: ModuleOp) -> None:
    raise KeyError("lost")


def test_a_crash_is_one_line_and_not_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with_dce_as(monkeypatch, crash)
    outcome = on_text(GOOD, "-p", "dce")
    assert outcome.code == 70
    assert outcome.err == (
        "cim-opt: internal error: KeyError: 'lost' (in pass 'dce'); the input is not known to "
        "be wrong; CIM_OPT_DEBUG=1 shows where this comes from\n"
    )


def test_a_crash_of_the_parser_says_where() -> None:
    text = "func.func @f() {\n  cf.br ^a\n^a:\n  func.return\n^a:\n  func.return\n}\n"
    outcome = on_text(text)
    assert outcome.code == 70
    assert "(parsing t.mlir:5:3)" in outcome.err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with_dce_as(monkeypatch, refuse_nowhere)
    monkeypatch.setenv("CIM_OPT_DEBUG", "1")
    Path("t.mlir").write_text(GOOD)
    with pytest.raises(UserError, match="the program is too large"):
        main(["t.mlir", "-p", "dce"])


def test_no_traceback_and_debug_traceback_as_a_process() -> None:
    Path("t.mlir").write_text(BAD)
    plain = subprocess.run([TOOL, "t.mlir"], capture_output=True, text=True)
    assert (plain.returncode, plain.stderr.count("\n")) == (1, 1)
    environment = os.environ | {"CIM_OPT_DEBUG": "1"}
    debug = subprocess.run([TOOL, "t.mlir"], capture_output=True, text=True, env=environment)
    assert debug.returncode == 1
    assert "Traceback (most recent call last)" in debug.stderr
