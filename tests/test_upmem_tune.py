"""cim-run --tune: what it finds, its bound, when it ends, and what it refuses."""

import io
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from run_lines import run_command
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.run import lower, run_program
from cim_opt.tools import upmem_tune
from cim_opt.tools.load_module import load_module
from cim_opt.tools.upmem_tune import AXES, Tuning, chosen, tune

PROGRAM = """
func.func @sum(%a: tensor<?xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %r : i32
}
"""
LARGE = np.arange(40_000, dtype=np.int32)


@pytest.fixture(autouse=True)
def in_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.mlir").write_text(PROGRAM)


def cim_run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = run_command(["cim-run", "t.mlir", *arguments], "", out, err)
    return code, out.getvalue(), err.getvalue()


def module() -> ModuleOp:
    return load_module("t.mlir")


def search(
    values: np.ndarray, machine: str, budget: float = math.inf, **fixed: int
) -> tuple[Tuning, list[Tuning]]:
    steps = list[Tuning]()
    best = tune(
        module(),
        "sum",
        [values],
        machine=machine,
        transfer="measured",
        cycles="closed",
        fixed=fixed,
        budget=budget,
        improved=steps.append,
        say=lambda _: None,
    )
    return best, steps


def seconds(values: np.ndarray, machine: str, **options: int) -> float:
    result = run_program(
        module(), "sum", {"a": values}, target="upmem", machine=machine, pipeline_options=options
    )
    assert result.check is not None
    assert result.check.ok
    assert result.report is not None
    return result.report.seconds


@pytest.fixture
def small_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upmem_tune, "TASKLETS", (8, 16))
    monkeypatch.setattr(upmem_tune, "BLOCKS", (512, 2048))
    monkeypatch.setattr(upmem_tune, "FACTORS", (1, 8))


@pytest.mark.usefixtures("small_space")
def test_a_complete_search_finds_the_best_of_all_points() -> None:
    best, steps = search(LARGE, "upmem-1")
    points = itertools.product([None], [None, 8, 16], [None, 512, 2048], [None, 1, 8])
    every = [seconds(LARGE, "upmem-1", **chosen(point)) for point in points]  # pyright: ignore[reportArgumentType]
    assert best.complete
    assert best.seconds == min(every)
    assert best.first_seconds == every[0]
    assert 0 < best.bound_seconds <= min(every)
    assert [step.seconds for step in steps] == sorted({s.seconds for s in steps}, reverse=True)


def test_few_elements_go_to_one_rank() -> None:
    """More ranks only cost latency for them."""
    fixed = {"tasklets": 16, "block": 1024, "unroll": 1}
    best, _ = search(np.arange(1000, dtype=np.int32), "upmem-2560", **fixed)
    assert best.options == {**fixed, "dpus": load_machine("upmem-2560").dpus_per_rank}
    assert best.seconds < best.first_seconds / 1.5
    assert best.complete
    assert best.bound_seconds <= best.seconds


def test_options_that_are_given_stay() -> None:
    best, _ = search(LARGE, "upmem-1", tasklets=8, block=512, unroll=1)
    assert best.options == {"tasklets": 8, "block": 512, "unroll": 1}
    assert best.points == 1


def test_without_time_it_is_the_compilers_own_choice() -> None:
    best, steps = search(LARGE, "upmem-640", budget=1e-9)
    assert dict(best.options) == {}
    assert not best.complete
    assert best.points == 1
    assert best.bound_seconds == 0
    assert "bound not known yet" in best.to_text()
    assert steps == [best]


@pytest.mark.usefixtures("small_space")
def test_points_that_are_refused_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(m: ModuleOp, pipeline: str, options: dict[str, int]) -> ModuleOp:
        if options.get("tasklets") == 16:
            raise UserError("too large")
        return lower(m, pipeline, options)

    monkeypatch.setattr("cim_opt.simulators.run.lower", refusing)
    best, _ = search(LARGE, "upmem-1")
    assert best.complete
    assert best.options.get("tasklets") != 16


def test_a_program_that_is_refused_itself_is_refused() -> None:
    with pytest.raises(UserError, match="25 tasklets"):
        search(LARGE, "upmem-1", tasklets=25)


def test_the_tool_says_each_best_and_runs_the_last() -> None:
    arguments = ["--target", "upmem", "--machine", "upmem-1", "--size", "5000", "--tune"]
    code, out, err = cim_run(*arguments, "--budget", "1")
    assert code == 0
    assert out.startswith("tuned: ")
    assert "equals the reference" in out
    lines = err.splitlines()
    assert lines[0].startswith("cim-run: tuned: no options: ")
    assert all("above a bound of" in line for line in lines)


def test_json_has_the_tuning() -> None:
    arguments = ["--target", "upmem", "--machine", "upmem-1", "--size", "5000", "--tune"]
    fixed = ["--pipeline-options", "tasklets=16 block=1024 fuse=false"]
    code, out, err = cim_run(*arguments, *fixed, "--report", "json")
    assert code == 0
    assert "tuned: tasklets=16 block=1024 fuse=false: " in err
    values = json.loads(out)
    assert values["tuning"]["seconds"] == values["seconds"]
    assert values["tuning"]["complete"]
    assert values["tuning"]["options"]["tasklets"] == 16
    assert set(values["tuning"]["options"]) <= {*AXES, "fuse"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "upmem", "--budget", "3"), "--budget without --tune; it ends a search"),
        (("--target", "upmem", "--tune", "--budget", "0"), "--budget 0; a search takes more than"),
        (("--target", "upmem", "--tune", "--budget", "nan"), "--budget nan; a search takes more"),
        (("--target", "simdram", "--tune"), "--tune with --target simdram; only upmem has it"),
        (("--target", "reference", "--tune"), "--tune with --target reference"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str) -> None:
    code, out, err = cim_run(*arguments, "--size", "100")
    assert code == 1
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


def test_a_lowered_program_is_not_tuned() -> None:
    lowered = lower(module(), "pattern-to-upmem", {"machine": "upmem-1"})
    assert any(isinstance(op, FuncOp) for op in lowered.ops)
    Path("t.mlir").write_text(str(lowered))
    code, out, err = cim_run("--target", "upmem", "--size", "100", "--tune")
    assert code == 1
    assert out == ""
    assert "--tune for a program that is lowered already; its tasklets and blocks are" in err
