"""cim-bench: tables by name, rows by name, text and JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cim_opt.errors import UserError
from cim_opt.tools import bench_start, cim_bench
from cim_opt.tools.bench_table import Cells, Row, Table, as_json, as_text, chosen

SQUARES = Table(
    "squares",
    "Squares of small numbers.",
    lambda: [Row(f"row {n}", lambda n=n: {"n": n, "square": n * n}) for n in range(4)],
    lambda rows: {"sum": sum(row["square"] for row in rows)},
)
"""A table that takes no time."""


class Outcome(NamedTuple):
    """What a run of cim-bench returned and printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def cim_bench_run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> Outcome:
        code = cim_bench.main(arguments)
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run


def test_json_has_name_rows_and_summary() -> None:
    rows = [row.cells() for row in chosen(SQUARES, None)]
    assert as_json(SQUARES, rows) == {
        "name": "squares",
        "rows": [{"row": f"row {n}", "n": n, "square": n * n} for n in range(4)],
        "summary": {"sum": 14},
    }


def test_text_lines_columns_up() -> None:
    rows = [{"row": "a", "square": 1e-3}, {"row": "bb", "square": 7}]
    assert as_text(SQUARES, rows) == (
        "Squares of small numbers.\n\nrow  square\na     0.001\nbb        7\n\nsum: 7.001"
    )


def test_one_row_alone() -> None:
    rows = [row.cells() for row in chosen(SQUARES, "row 3")]
    assert as_json(SQUARES, rows)["summary"] == {"sum": 9}


def test_an_unknown_row_lists_the_rows() -> None:
    with pytest.raises(UserError) as caught:
        chosen(SQUARES, "row 9")
    assert caught.value.message() == (
        "table squares has no row 'row 9'; "
        "its rows are 'row 0', 'row 1', 'row 2', 'row 3'; "
        "name one of these, or words of their names"
    )


def _no_summary(rows: Sequence[Cells]) -> Cells:
    return {}


def test_rows_by_words_of_their_names() -> None:
    table = Table(
        "t", "T.", lambda: [Row(f"{a} {b}", dict) for a in "xy" for b in "12"], _no_summary
    )
    assert [row.name for row in chosen(table, "2")] == ["x 2", "y 2"]
    assert [row.name for row in chosen(table, "2 x")] == ["x 2"]
    # A row's whole name is that row alone.
    table = Table("t", "T.", lambda: [Row("x", dict), Row("x 2", dict)], _no_summary)
    assert [row.name for row in chosen(table, "x")] == ["x"]
    for words in ("x 3", ""):
        with pytest.raises(UserError):
            chosen(table, words)


def test_optional_rows_are_asked_for() -> None:
    table = Table(
        "t", "T.", lambda: [Row("a 1", dict), Row("a 2", dict, optional=True)], _no_summary
    )
    assert [row.name for row in chosen(table, None)] == ["a 1"]
    assert [row.name for row in chosen(table, "a")] == ["a 1", "a 2"]


def test_many_rows_are_counted() -> None:
    table = Table("t", "T.", lambda: [Row(f"r{n}", dict) for n in range(20)], _no_summary)
    with pytest.raises(UserError, match="'r7' and 12 more; name one of these"):
        chosen(table, "x")


def test_text_may_show_other_rows() -> None:
    table = Table("t", "T.", list, lambda rows: {"n": len(rows)}, shown=lambda rows: rows[1:])
    assert as_text(table, [{"row": "a"}, {"row": "b"}]) == "T.\n\nrow\nb\n\nn: 2"


def test_rows_side_by_side_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    table = bench_start.TABLE
    names = list(bench_start.STARTS)

    def listed(*_: object) -> list[Row]:
        return [Row(name, dict) for name in names]

    monkeypatch.setattr(cim_bench, "chosen", listed)
    rows = cim_bench.measure_all(table, None, jobs=2)
    assert [row["row"] for row in rows] == names
    assert all(0 < row["seconds"] < 10 for row in rows)


# The tool.


def test_start_in_json(cim_bench_run: Any) -> None:
    outcome = cim_bench_run("start", "--report", "json", "--only", "cim-run --help")
    assert (outcome.code, outcome.err) == (0, "")
    table = json.loads(outcome.out)
    assert set(table) == {"name", "rows", "summary"}
    assert table["name"] == "start"
    assert [row["row"] for row in table["rows"]] == ["cim-run --help"]
    assert table["summary"]["slowest_start_seconds"] == table["rows"][0]["seconds"] < 2
    assert table["summary"]["element_operations_per_second"] is None


def test_start_reads_and_lowers_an_example(cim_bench_run: Any) -> None:
    row = "parse and lower dot_product.mlir"
    table = json.loads(cim_bench_run("start", "--report", "json", "--only", row).out)
    (cells,) = table["rows"]
    assert cells["seconds"] == cells["parse_seconds"] + cells["lower_seconds"]
    assert table["summary"]["slowest_parse_and_lower_seconds"] == cells["seconds"]


def test_start_simulates(cim_bench_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_start, "SIMULATED_ELEMENTS", 100_000)
    outcome = cim_bench_run("start", "--report", "json", "--only", "simulate dot_product.mlir")
    assert outcome.code == 0, outcome.err
    (cells,) = json.loads(outcome.out)["rows"]
    # A multiplication and an addition an element.
    rate = 2 * 100_000 / cells["seconds"]
    assert cells["element_operations_per_second"] == pytest.approx(rate)


def test_start_has_a_row_for_every_example() -> None:
    names = {row.name for row in bench_start.rows()}
    examples = Path(__file__).parent.parent / "examples"
    assert {f"parse and lower {path.name}" for path in examples.glob("*.mlir")} < names
    assert set(bench_start.STARTS) < names


def test_text(cim_bench_run: Any) -> None:
    outcome = cim_bench_run("start", "--only", "import universe")
    assert outcome.code == 0
    assert outcome.out.startswith("Seconds to start, ")
    assert "\nimport universe" in outcome.out
    assert "\nslowest_start_seconds: " in outcome.out


# Refusals.

TABLES = "cim-operators, cim-networks, cim-ablation, pnm, pum, start, upmem-accuracy"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("starts",), f"no table 'starts'; the tables are {TABLES}; did you mean 'start'?"),
        (("xyz",), f"no table 'xyz'; the tables are {TABLES}; name one of these"),
        (("start", "--only", "x"), "table start has no row 'x'; its rows are 'cim-opt --help', "),
        (("start", "--jobs", "0"), "--jobs 0; it is at least 1; give such a number"),
        (("start", "--jobs", "2"), "--jobs 2 with table start; it measures time, and rows side"),
    ],
)
def test_refusals(cim_bench_run: Any, arguments: tuple[str, ...], line: str) -> None:
    outcome = cim_bench_run(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"cim-bench: error: {line}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), ("start", "--jobs", "x"), ("start", "--report", "x")])
def test_bad_usage(cim_bench_run: Any, arguments: tuple[str, ...]) -> None:
    outcome = cim_bench_run(*arguments)
    assert outcome.code == 2
    assert "cim-bench: error: " in outcome.err


def test_without_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_start, "__file__", "/usr/lib/cim_opt/tools/bench_start.py")
    with pytest.raises(UserError, match="the examples are not installed"):
        bench_start.rows()
