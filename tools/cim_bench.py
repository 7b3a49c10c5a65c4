"""`cim-bench`: measures the tables that the project's figures come from."""

# Nothing heavy up here: `cim-bench --help` answers at once.
import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import get_close_matches
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from cim_opt.errors import UserError
from cim_opt.tools.bench_table import Cells, Table, as_json, as_text, chosen
from cim_opt.tools.failures import run_tool
from cim_opt.tools.progress import progress

TABLES = {
    "cim-operators": "cim_opt.tools.bench_cim_operators",
    "cim-networks": "cim_opt.tools.bench_cim_networks",
    "cim-ablation": "cim_opt.tools.bench_cim_ablation",
    "pnm": "cim_opt.tools.bench_pnm",
    "pum": "cim_opt.tools.bench_pum",
    "start": "cim_opt.tools.bench_start",
    "upmem-accuracy": "cim_opt.tools.bench_upmem_accuracy",
}
"""Name of a table: the module that has it as `TABLE`."""

Options = Mapping[str, Any]
"""Options of the command line that were given, by name."""

PUM_OPTIONS = {
    "reduction": (("free", "host", "inmat"), "what the baseline's reductions cost"),
    "tail": (("ceil", "released"), "rounds that fill no row: a row of their own, or on the host"),
    "mats": (("off", "on"), "loops side by side in the mats of a row"),
}
"""Options of table pum: their values, the default first, and what they say of its baseline."""

OPTIONS = {
    **dict.fromkeys(PUM_OPTIONS, ("pum", "it says what the baseline of table pum is")),
    "points": ("upmem-accuracy", "table upmem-accuracy is what compares measured points"),
    "transfer": ("pnm", "it says how table pnm times host transfers"),
}
"""Options of tables: the table that has it, and what to say where another table is given it."""


def argument_parser() -> argparse.ArgumentParser:
    """The command line of cim-bench."""
    parser = argparse.ArgumentParser(
        prog="cim-bench",
        description="Measures a table and prints it.",
        epilog=f"tables: {', '.join(TABLES)}",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help="the table")
    parser.add_argument("--report", choices=("text", "json"), default="text")
    parser.add_argument(
        "--only",
        metavar="ROW",
        help="measures this row alone, or those whose names have these words",
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="rows measured side by side (default: 1)"
    )
    group = parser.add_argument_group("the baseline of table pum")
    for name, (values, text) in PUM_OPTIONS.items():
        group.add_argument(f"--{name}", choices=values, help=f"{text} (default: {values[0]})")
    parser.add_argument_group("the measured points of table upmem-accuracy").add_argument(
        "--points",
        metavar="FILE.json",
        action="append",
        help="compares with the points of this file instead of those that come with cim-opt; "
        "can be given several times",
    )
    parser.add_argument_group("the host transfers of table pnm").add_argument(
        "--transfer",
        choices=("measured", "linear"),
        help="as real systems do, or growing with the DPUs as in the published simulation "
        "(default: both)",
    )
    return parser


def load_table(name: str, options: Options | None = None) -> Table:
    """The table `name`, with options if it has any.

    Raises UserError, with the names that there are, when there is none.
    """
    if name not in TABLES:
        near = get_close_matches(name, TABLES, n=1)
        raise UserError(
            f"no table '{name}'",
            f"the tables are {', '.join(TABLES)}",
            f"did you mean '{near[0]}'?" if near else "name one of these",
        )
    table: object = import_module(TABLES[name]).TABLE
    assert isinstance(table, Table)
    if not options:
        return table
    for option in options:
        owner, reason = OPTIONS[option]
        if name != owner:
            raise UserError(f"--{option} with table {name}", reason, f"leave --{option} out")
    assert table.configured is not None
    return table.configured(options)


def measure(name: str, row: str, options: Options | None = None) -> Cells:
    """One measured row of a table; found by name, so that another process can do it."""
    return chosen(load_table(name, options), row)[0].cells()


def measure_all(
    table: Table, only: str | None, jobs: int, options: Options | None = None
) -> list[Cells]:
    """The measured rows in their order, up to `jobs` at a time."""
    names = [row.name for row in chosen(table, only)]
    with progress("cim-bench") as say:
        if jobs == 1:
            return [_measure_aloud(table, name, say) for name in names]
        say(f"{len(names)} rows, {jobs} at a time")
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            same = [options] * len(names)
            return list(pool.map(measure, [table.name] * len(names), names, same))


def _measure_aloud(table: Table, row: str, say: Callable[[str], None]) -> Cells:
    say(row)
    return chosen(table, row)[0].cells()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `cim-bench` on `argv` (the process's own when None) and returns its exit code.

    0 when all is well, 1 for a mistake in the input, 2 for bad usage.
    """
    try:
        args = argument_parser().parse_args(argv)
        return run_tool("cim-bench", lambda: _run(args))
    except SystemExit as stop:  # argparse after --help or bad usage
        return stop.code if isinstance(stop.code, int) else 0


def _run(args: argparse.Namespace) -> int:
    if args.jobs < 1:
        raise UserError(f"--jobs {args.jobs}", "it is at least 1", "give such a number")
    given: dict[str, Any] = {name: getattr(args, name) for name in OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    table = load_table(args.name, options)
    if table.timed and args.jobs > 1:
        raise UserError(
            f"--jobs {args.jobs} with table {table.name}",
            "it measures time, and rows side by side would disturb each other",
            "leave --jobs out",
        )
    rows = measure_all(table, args.only, args.jobs, options)
    if args.report == "json":
        print(json.dumps(as_json(table, rows), indent=2))
    else:
        print(as_text(table, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
