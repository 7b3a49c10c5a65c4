"""The runner of RUN lines fails when it should, and agrees with lit."""

import subprocess
import sys
from pathlib import Path

import pytest
from run_lines import RunLineFailure, run_file, run_lines

FILECHECK = Path(__file__).parent / "filecheck"
LIT = [sys.executable, "-c", "from lit.main import main; main()", "-j1", "-v"]
GOOD = "func.func @f() {\n  func.return\n}\n"


def _run(tmp_path: Path, run: str, body: str = GOOD) -> None:
    file = tmp_path / "test.mlir"
    file.write_text(f"// RUN: {run}\n{body}")
    run_file(file, tmp_path)


def test_continued_lines_are_joined() -> None:
    text = "// RUN: cim-opt %s \\\n// RUN:   | filecheck %s\n// RUN: cim-opt %s\n"
    assert run_lines(text) == ["cim-opt %s  | filecheck %s", "cim-opt %s"]


def test_a_check_that_holds_passes(tmp_path: Path) -> None:
    _run(tmp_path, "cim-opt %s | filecheck %s", GOOD + "// CHECK: func.func @f\n")


def test_a_check_that_does_not_hold_fails(tmp_path: Path) -> None:
    with pytest.raises(RunLineFailure, match="exit code 1"):
        _run(tmp_path, "cim-opt %s | filecheck %s", GOOD + "// CHECK: func.func @g\n")


def test_a_failing_first_stage_fails_the_pipe(tmp_path: Path) -> None:
    with pytest.raises(RunLineFailure, match="no pass 'nothing'"):
        _run(tmp_path, "cim-opt %s -p nothing | filecheck %s", GOOD + "// CHECK-NOT: x\n")


def test_not_fails_on_success(tmp_path: Path) -> None:
    with pytest.raises(RunLineFailure, match="exit code 0"):
        _run(tmp_path, "not cim-opt %s")


def test_not_does_not_take_a_crash_for_a_user_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("xdsl.transforms.dead_code_elimination.DeadCodeElimination.apply", crash)
    with pytest.raises(RunLineFailure, match="exit code 70"):
        _run(tmp_path, "not cim-opt %s -p dce")


def test_a_file_without_run_line_fails(tmp_path: Path) -> None:
    file = tmp_path / "test.mlir"
    file.write_text(GOOD)
    with pytest.raises(RunLineFailure, match="has no `// RUN:` line"):
        run_file(file, tmp_path)


def test_unknown_commands_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunLineFailure, match=r"cannot run \['grep', 'x'\]"):
        _run(tmp_path, "cim-opt %s | grep x")


def test_every_mlir_file_is_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", str(FILECHECK)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = list(FILECHECK.rglob("*.mlir"))
    assert files
    assert listed.count(".mlir::RUN") == len(files)


def test_lit_runs_the_same_files() -> None:
    names = ["passes.mlir", "verify_error.mlir"]
    files = [str(FILECHECK / "tools" / name) for name in names]
    result = subprocess.run([*LIT, *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in names:
        assert f"PASS: cim-opt :: tools/{name}" in result.stdout


def test_lit_fails_where_the_runner_fails(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "filecheck"  # lit writes to ../../build
    folder.mkdir(parents=True)
    (folder / "lit.cfg.py").write_text((FILECHECK / "lit.cfg.py").read_text())
    text = "// RUN: cim-opt %s | filecheck %s\n// CHECK: @nowhere\n"
    (folder / "test.mlir").write_text(text + GOOD)
    result = subprocess.run([*LIT, str(folder)], capture_output=True, text=True)
    assert result.returncode == 1
    assert "FAIL: cim-opt :: test.mlir" in result.stdout
