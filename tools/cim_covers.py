"""`cim-covers`: finds covers of kernels by exact search, and makes the table of solved ones."""

# Nothing heavy up here: `cim-covers --help` answers at once.
import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cim_opt.errors import UserError
from cim_opt.tools.failures import run_tool
from cim_opt.tools.progress import progress

if TYPE_CHECKING:
    from cim_opt.polyhedral.cover_catalogue import Entry
    from cim_opt.polyhedral.cover_search import Problem

EPILOG = """\
a cover is printed as its lattice, the output offsets B and the input offsets E of each image.
Searching needs the solver: pip install 'cim-opt[covers]'.
Exit code 0 when a cover was found, 1 when there is none or the input is wrong, 2 for bad usage.
"""


def argument_parser() -> argparse.ArgumentParser:
    """The command line of cim-covers."""
    parser = argparse.ArgumentParser(
        prog="cim-covers",
        description="Finds covers of a convolution's taps: one image of weights that a macro "
        "applies at every point of a lattice of outputs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("taps", metavar="TAPS", nargs="?", help="taps along the axes, like 7x7")
    parser.add_argument("--stride", metavar="STRIDES", help="stride along the axes, like 2x2")
    parser.add_argument("--rows", metavar="N", type=int, default=32, help="inputs a step")
    parser.add_argument("--columns", metavar="N", type=int, default=8, help="outputs a step")
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=25.0, help="time to search for each problem"
    )
    parser.add_argument("--list", action="store_true", help="lists the table")
    parser.add_argument("--regenerate", action="store_true", help="finds the whole table anew")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `cim-covers` on `argv` (the process's own when None) and returns its exit code."""
    try:
        args = argument_parser().parse_args(argv)
        return run_tool("cim-covers", lambda: _run(args))
    except SystemExit as stop:  # argparse after --help or bad usage
        return stop.code if isinstance(stop.code, int) else 0


def _run(args: argparse.Namespace) -> int:
    if args.list:
        _list()
    elif args.regenerate:
        _regenerate(args.seconds)
    else:
        return _search(_problem(args), args.seconds)
    return 0


def _list() -> None:
    from cim_opt.polyhedral.cover_catalogue import table

    for entry in table():
        print(_line(entry))


def _line(entry: "Entry") -> str:
    from cim_opt.polyhedral.lattice import index

    taps, strides = ("x".join(map(str, values)) for values in (entry.taps, entry.strides))
    return (
        f"taps {taps:8} stride {strides:6} outputs a step {index(entry.lattice):2}  images "
        f"{len(entry.images)}  rows {entry.inputs:3}  columns {entry.outputs:2}  "
        f"lattice {_points(entry.lattice)}"
    )


def _points(points: Sequence[tuple[int, ...]]) -> str:
    return " ".join(",".join(map(str, point)) for point in points)


def _regenerate(seconds: float) -> None:
    from cim_opt.polyhedral.cover_catalogue import TABLE, solve_all, write

    with progress("cim-covers") as say:
        entries = solve_all(seconds, say)
    write(entries)
    print(f"{TABLE.name}: {len(entries)} covers")


def _problem(args: argparse.Namespace) -> "Problem":
    from cim_opt.polyhedral.cover_search import Problem

    if args.taps is None:
        raise UserError("no kernel", None, "give its taps, like 7x7, or --list")
    taps = _sizes("taps", args.taps)
    strides = (1,) * len(taps) if args.stride is None else _sizes("stride", args.stride)
    if len(strides) != len(taps):
        raise UserError(
            f"{len(strides)} strides for {len(taps)} axes", None, "give one for each axis"
        )
    for name in ("rows", "columns", "seconds"):
        if getattr(args, name) <= 0:
            raise UserError(f"--{name} {getattr(args, name)}", "it is above 0")
    return Problem(taps, strides, args.rows, args.columns)


def _sizes(what: str, text: str) -> tuple[int, ...]:
    values = text.split("x")
    if not all(value.isdecimal() and int(value) > 0 for value in values):
        raise UserError(f"{what} '{text}'", "counts above 0 with x between them, like 7x7")
    return tuple(map(int, values))


def _search(problem: "Problem", seconds: float) -> int:
    from cim_opt.polyhedral.cover_catalogue import solve

    with progress("cim-covers") as say:
        entries = solve(problem, seconds, say)
    for entry in entries:
        print(_line(entry))
        for outputs, inputs in entry.images:
            print(f"  B {_points(outputs)}\n  E {_points(inputs)}")
    if not entries:
        print("no cover of one image takes as few steps as blocks of outputs do")
    return 0 if entries else 1


if __name__ == "__main__":
    sys.exit(main())
