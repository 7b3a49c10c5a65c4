"""Solved covers: the solver, the table, looking entries up, and the tool."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cover_checks import assert_exact

from cim_opt.errors import UserError
from cim_opt.polyhedral import cover_catalogue, cover_search
from cim_opt.polyhedral.cover import Cover, check, from_pairs, steps
from cim_opt.polyhedral.cover_axis import axis_covers
from cim_opt.polyhedral.cover_cache import lookup
from cim_opt.polyhedral.cover_catalogue import Entry, Problem, read, solve, table, write
from cim_opt.polyhedral.cover_line import plain_lines
from cim_opt.polyhedral.cover_search import box, essentially_different, find
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.lattice import index, lattices
from cim_opt.tools.cim_covers import main

SEVEN = Problem((7, 7), (1, 1), 32, 8)


def built(entry: Entry) -> tuple[Cover, MacKernel]:
    """The entry as a cover of its own kernel on a small map."""
    axes = zip(entry.taps, entry.strides, strict=True)
    kernel = MacKernel(1, 1, 1, tuple(Axis(5, taps, stride) for taps, stride in axes))
    return from_pairs(kernel, entry.lattice, entry.images, 1000, 1000), kernel


# -- the table ------------------------------------------------------------------------------------


def test_every_entry_is_a_cover() -> None:
    for entry in table():
        cover, kernel = built(entry)
        check(cover, kernel, entry.inputs, entry.outputs)


def test_some_entries_on_a_map() -> None:
    for entry in table()[::8]:
        cover, kernel = built(entry)
        assert_exact(cover, kernel, steps(cover, kernel))


@pytest.mark.parametrize(
    ("taps", "rows", "stride", "rank", "outputs"),
    [
        (7, 32, 1, 2, 4), (7, 64, 1, 2, 6), (5, 32, 1, 2, 5), (9, 32, 1, 2, 2), (9, 64, 1, 2, 4),
        (3, 32, 2, 2, 6), (5, 32, 2, 2, 4), (5, 64, 2, 2, 7), (7, 64, 2, 2, 5), (13, 64, 1, 2, 2),
        (3, 32, 1, 3, 4), (3, 64, 1, 3, 8),
    ],
)  # fmt: skip
def test_the_table_has_covers_of_one_image(
    taps: int, rows: int, stride: int, rank: int, outputs: int
) -> None:
    shape = ((taps,) * rank, (stride,) * rank)
    found = [
        entry
        for entry in table()
        if (entry.taps, entry.strides) == shape
        if entry.inputs <= rows and entry.outputs <= 8 and len(entry.images) == 1
    ]
    assert max(index(entry.lattice) for entry in found) >= outputs


def test_the_table_is_written_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "covers.json"
    write(table()[:5], path)
    assert read(path) == list(table()[:5])
    assert json.loads(path.read_text())["made_by"] == "cim-covers --regenerate"


# -- looking up -----------------------------------------------------------------------------------

SKEW = Entry(
    (2, 3), (1, 2), ((1, 1), (0, 2)), (((((0, 0), (1, 0))), tuple(box((3, 3)))),)
)  # fmt: skip


@pytest.mark.parametrize(
    "axes",
    [
        (Axis(5, 2), Axis(4, 3, 2)),
        (Axis(4, 3, 2), Axis(5, 2)),
        (Axis(3), Axis(5, 2), Axis(4, 3, 2)),
        (Axis(5, 2, 1, 3), Axis(4, 3, 2)),
        (Axis(5, 2, 1, 2), Axis(6, 3, 2, 3)),
        (Axis(7, 2, 1, 3), Axis(7, 3, 4, 2)),
        (Axis(7, 2, 1, 3), Axis(7, 3, 2, 3)),
    ],
)
def test_lookup_swaps_mirrors_moves_and_dilates(axes: tuple[Axis, ...]) -> None:
    kernel = MacKernel(2, 1, 2, axes)
    found = lookup(kernel, 8, [SKEW])
    assert found
    for tiling in found:
        cover = tiling.built(kernel, 8, 8)
        check(cover, kernel, 8, 8)
        assert steps(cover, kernel) <= tiling.steps(kernel, 8, 8)
        assert_exact(cover, kernel, steps(cover, kernel))


def test_lookup_finds_nothing_for_other_taps_or_few_columns() -> None:
    assert lookup(MacKernel(1, 1, 1, (Axis(5, 2), Axis(5, 3))), 8, [SKEW]) == []
    assert lookup(MacKernel(1, 1, 1, (Axis(5, 2), Axis(4, 3, 2))), 1, [SKEW]) == []
    assert lookup(MacKernel(1, 1, 1, (Axis(5, 2),)), 8, [SKEW]) == []


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2, 5, 9, 16])
def test_lines_without_search(taps: int, stride: int) -> None:
    kernel = MacKernel(1, 1, 1, (Axis(6, taps, stride),))
    for line in plain_lines(taps, stride, 8):
        pair = ([(b,) for b in line.outputs], [(e,) for e in line.inputs])
        cover = from_pairs(kernel, ((line.period,),), [pair], 100, 8)
        check(cover, kernel, len(line.inputs), len(line.outputs))


@pytest.mark.parametrize("axis", [Axis(14, 9), Axis(28, 5, 1, 2), Axis(9, 4, 2, 3), Axis(10, 6, 2)])
def test_covers_of_an_axis_take_the_steps_they_say(axis: Axis) -> None:
    kernel = MacKernel(1, 1, 1, (axis,))
    for found in axis_covers(axis, 8):
        pair = ([(b,) for b in found.outputs], [(e,) for e in found.inputs])
        cover = from_pairs(kernel, ((found.period,),), [pair], 99, 8, residues=[found.residues])
        check(cover, kernel)
        assert_exact(cover, kernel, found.steps)


# -- the solver -----------------------------------------------------------------------------------


def test_no_solver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(UserError, match="no solver for covers") as error:
        find(SEVEN, ((2, 0), (0, 2)), box((2, 4)))
    assert error.value.remedy == "pip install 'cim-opt[covers]'"
    assert main(["7x7"]) == 1
    assert "pip install 'cim-opt[covers]'" in capsys.readouterr().err


def test_find_a_cover_and_none() -> None:
    pairs = find(SEVEN, ((2, 0), (0, 2)), box((2, 4)), fixed=True, seconds=20)
    assert pairs is not None
    kernel = MacKernel(1, 1, 1, (Axis(6, 7), Axis(6, 7)))
    cover = from_pairs(kernel, ((2, 0), (0, 2)), pairs, 32, 8)
    check(cover, kernel, 32, 8)
    assert len(cover.images) == 1
    assert_exact(cover, kernel, steps(cover, kernel))
    # Every output takes two of eight columns, so no lattice of index five has a cover.
    assert find(SEVEN, ((1, 0), (0, 5)), box((1, 10)), seconds=20) is None


def test_find_two_images() -> None:
    problem = Problem((3,), (1,), 4, 3)
    pairs = find(problem, ((3,),), box((4,)), images=2, seconds=20)
    assert pairs is not None
    kernel = MacKernel(1, 1, 1, (Axis(7, 3),))
    cover = from_pairs(kernel, ((3,),), pairs, 4, 3)
    check(cover, kernel, 4, 3)


def test_solve_prefers_large_lattices_and_boxes() -> None:
    entries = solve(SEVEN, 30)
    assert entries
    assert {index(entry.lattice) for entry in entries} == {4}
    for entry in entries:
        cover, kernel = built(entry)
        check(cover, kernel, 32, 8)


@pytest.mark.parametrize(("taps", "stride"), [(5, 1), (7, 1), (7, 2), (9, 1)])
def test_one_axis_needs_no_search(taps: int, stride: int) -> None:
    """No cover of an axis has fewer inputs than the best one that is made without a solver."""
    for outputs, period in ((4, 2), (6, 3), (8, 5)):
        lines = plain_lines(taps, stride, outputs)
        fewest = min(len(line.inputs) for line in lines if line.period >= period)
        problem = Problem((taps,), (stride,), fewest, outputs)
        candidates = box((outputs + period,))
        assert find(problem, ((period,),), candidates, seconds=20) is not None
        fewer = Problem((taps,), (stride,), fewest - 1, outputs)
        assert find(fewer, ((period,),), candidates, seconds=20) is None


def test_kinds_of_lattices() -> None:
    same = essentially_different(SEVEN, 4)
    assert len(same) == 4
    assert len(list(lattices(2, 4))) == 7
    # Axes that differ are not swapped.
    assert len(essentially_different(Problem((7, 5), (1, 1), 32, 8), 4)) > 4


# -- the tool -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 1, "cim-covers: error: no kernel; give its taps, like 7x7, or --list"),
        (["7xk"], 1, "taps '7xk'; counts above 0 with x between them, like 7x7"),
        (["7x0"], 1, "taps '7x0'; counts above 0"),
        (["7x7", "--stride", "1"], 1, "1 strides for 2 axes; give one for each axis"),
        (["7x7", "--rows", "0"], 1, "--rows 0; it is above 0"),
        (["7x7", "--nothing"], 2, "unrecognized arguments"),
    ],
)
def test_tool_refuses(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert message in capsys.readouterr().err


def test_tool_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(table())


def test_tool_searches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["3x3", "--rows", "16", "--columns", "4", "--seconds", "20"]) == 0
    assert "outputs a step  4  images 1  rows  16  columns  4" in capsys.readouterr().out
    assert main(["3", "--rows", "1", "--columns", "1", "--seconds", "5"]) == 1
    assert "no cover of one image" in capsys.readouterr().out


def test_tool_regenerates_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "covers.json"
    monkeypatch.setattr(cover_catalogue, "TABLE", path)
    monkeypatch.setattr(cover_catalogue, "problems", lambda: [SEVEN])
    assert main(["--regenerate", "--seconds", "20"]) == 0
    found = read(path)
    assert capsys.readouterr().out == f"covers.json: {len(found)} covers\n"
    assert {entry.taps for entry in found} >= {(7, 7)}


def test_help_imports_nothing_heavy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "cim_opt.tools.cim_covers", "--help"]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in log.splitlines()}
    assert not loaded & {"numpy", "ortools", "islpy"}
    assert cover_search.cp_sat.__module__ == "cim_opt.polyhedral.cover_search"
