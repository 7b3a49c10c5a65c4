"""Runs the `// RUN:` lines of a test file in this process: about 15 ms each, not 400.

The same files work under lit. Understood: pipes, `2>&1`, `not`, `%s` (the file), `%S` (its
folder), `%t` (a path to write to), lines continued with `\\`, and the commands of `COMMANDS`.
As under lit, every stage of a pipe must succeed. `not` expects a user error, exit code 1 or 2:
a crash, which lit's `not` would let pass, fails here.
"""

import io
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

COMMANDS = {
    "cim-opt": "cim_opt.tools.cim_opt",
    "cim-run": "cim_opt.tools.cim_run",
    "filecheck": "filecheck.main",
}
USER_ERRORS = (1, 2)

_RUN = re.compile(r"//\s*RUN:\s*(.*)$", re.MULTILINE)


class RunLineFailure(Exception):
    """A RUN line that did not do what it says, with what was printed."""


def run_lines(text: str) -> list[str]:
    """The commands of all `// RUN:` lines of `text`, continued lines joined."""
    joined = "\n".join(_RUN.findall(text)).replace("\\\n", " ")
    return [line for line in joined.split("\n") if line.strip()]


def run_file(path: Path, scratch: Path) -> None:
    """Runs every RUN line of the file. Raises RunLineFailure at the first that fails."""
    lines = run_lines(path.read_text())
    if not lines:
        raise RunLineFailure(f"{path} has no `// RUN:` line")
    for line in lines:
        _run_line(line, {"%s": str(path), "%S": str(path.parent), "%t": str(scratch / "out")})


def _run_line(line: str, names: dict[str, str]) -> None:
    data = ""
    for words in _stages(line):
        argv = [re.sub(r"%[sSt]\b", lambda match: names[match.group()], word) for word in words]
        data = _run_stage(line, argv, data)


def _stages(line: str) -> list[list[str]]:
    """The line's commands as words, split at `|` outside quotes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    stages: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages


def _run_stage(line: str, argv: list[str], data: str) -> str:
    """What the command prints on stdout, and on stderr too under `2>&1`."""
    merged = argv[-1:] == ["2>&1"]
    negated = argv[:1] == ["not"]
    command = argv[int(negated) : len(argv) - int(merged)]
    out = io.StringIO()
    err = out if merged else io.StringIO()
    code = run_command(command, data, out, err)
    wanted = code in USER_ERRORS if negated else code == 0
    if not wanted:
        printed = out.getvalue() + ("" if merged else err.getvalue())
        raise RunLineFailure(f"RUN: {line}\n{shlex.join(argv)}\nexit code {code}\n{printed}")
    return out.getvalue()


def run_command(argv: Sequence[str], data: str, out: io.StringIO, err: io.StringIO) -> int:
    """Runs one of `COMMANDS` with `data` on stdin; returns its exit code."""
    if not argv or argv[0] not in COMMANDS:
        raise RunLineFailure(f"cannot run {argv}; the commands are {', '.join(COMMANDS)}")
    main: Callable[[Sequence[str]], int | None] = import_module(COMMANDS[argv[0]]).main
    # filecheck takes its own name as the first argument, our tools do not.
    arguments = list(argv) if argv[0] == "filecheck" else list(argv[1:])
    stdin = io.TextIOWrapper(io.BytesIO(data.encode()))
    with patch.object(sys, "stdin", stdin), redirect_stdout(out), redirect_stderr(err):
        try:
            return main(arguments) or 0
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
