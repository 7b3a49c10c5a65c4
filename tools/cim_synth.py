"""`cim-synth`: finds the shortest row program of one bit step."""

# Nothing heavy up here: `cim-synth --help` answers at once.
import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cim_opt.errors import UserError
from cim_opt.tools.failures import run_tool
from cim_opt.tools.progress import progress

if TYPE_CHECKING:
    from cim_opt.microprograms.synthesis_step import Step

EPILOG = """\
a formula has &, |, ^, ~, maj(x, y, z), 0, 1 and the names of inputs and state variables, or is a
truth table 0x... in which bit i is the value where variable k is bit k of i, inputs first.
Exit code 0 when a program was found, 1 when there is none or the input is wrong, 2 for bad usage.
"""
CACHE = Path(__file__).parents[1] / "microprograms" / "data" / "bit_steps.json"


def argument_parser() -> argparse.ArgumentParser:
    """The command line of cim-synth."""
    parser = argparse.ArgumentParser(
        prog="cim-synth",
        description="Finds the shortest row program of one bit step, and tells that no shorter "
        "one exists.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a step by name; see --list")
    parser.add_argument("--list", action="store_true", help="lists the steps that have a name")
    parser.add_argument(
        "--regenerate", action="store_true", help="finds all steps by name anew and keeps them"
    )
    _add_step(parser)
    parser.add_argument("--most", metavar="N", type=int, default=16, help="at most N commands")
    parser.add_argument("--report", choices=("text", "json"), default="text")
    return parser


def _add_step(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a step of your own")
    group.add_argument(
        "--input", metavar="NAME", help="a D row that is read", action="append", default=[]
    )
    group.add_argument(
        "--result",
        metavar="NAME=FORMULA",
        help="a D row that is written",
        action="append",
        default=[],
    )
    group.add_argument(
        "--state",
        metavar="NAME=ROW,ROW",
        help="a value that waits in these B rows; ~ROW has its complement",
        action="append",
        default=[],
    )
    group.add_argument(
        "--next",
        metavar="NAME=FORMULA",
        help="what it is after the step",
        action="append",
        default=[],
    )
    group.add_argument(
        "--assume", metavar="FORMULA", default="1", help="what the values always satisfy"
    )
    group.add_argument(
        "--scratch", metavar="N", type=int, default=0, help="D rows to use in between"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `cim-synth` on `argv` (the process's own when None) and returns its exit code."""
    try:
        args = argument_parser().parse_args(argv)
        return run_tool("cim-synth", lambda: _run(args))
    except SystemExit as stop:  # argparse after --help or bad usage
        return stop.code if isinstance(stop.code, int) else 0


def _run(args: argparse.Namespace) -> int:
    if args.list:
        _list()
    elif args.regenerate:
        _regenerate()
    else:
        _show(_step(args), args.most, args.report)
    return 0


def _list() -> None:
    from cim_opt.microprograms.synthesis_steps import STEPS, cached

    kept = cached()
    for name in STEPS:
        print(f"{name:16} {len(kept[name]['commands']):2} commands")


def _regenerate() -> None:
    from cim_opt.microprograms.synthesis import synthesise
    from cim_opt.microprograms.synthesis_steps import STEPS, as_json

    with progress("cim-synth") as say:
        steps = {name: as_json(synthesise(step, say=say)) for name, step in STEPS.items()}
    content = {"made_by": "cim-synth --regenerate", "steps": steps}
    CACHE.write_text(json.dumps(content, indent=2) + "\n")
    print(f"{CACHE.name}: {len(steps)} steps")


def _step(args: argparse.Namespace) -> "Step":
    from cim_opt.microprograms.synthesis_step import Step
    from cim_opt.microprograms.synthesis_steps import named_step

    own = args.input or args.result or args.state or args.next
    if args.name is not None and own:
        raise UserError(f"step '{args.name}' and a step of your own", None, "give one of them")
    if args.name is not None:
        return named_step(args.name)
    if not own:
        raise UserError("no step", None, "name one (see --list) or give --input and --result")
    return Step(
        "given",
        inputs=tuple(args.input),
        results=tuple(_pair("--result", text) for text in args.result),
        state=tuple((name, tuple(rows.split(","))) for name, rows in _pairs("--state", args.state)),
        following=tuple(_pairs("--next", args.next)),
        assume=args.assume,
        scratch=args.scratch,
    )


def _pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [_pair(option, text) for text in texts]


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise UserError(f"{option} {text}", "it has the form NAME=VALUE", "write it so")
    return name, value


def _show(step: "Step", most: int, report: str) -> None:
    from cim_opt.microprograms.synthesis import synthesise
    from cim_opt.microprograms.synthesis_steps import as_json

    with progress("cim-synth") as say:
        found = synthesise(step, most, say)
    if report == "json":
        print(json.dumps({"step": step.name, **as_json(found)}, indent=2))
        return
    for command in found.commands:
        print(command)
    print(f"{len(found.commands)} commands, none shorter; {found.majorities} majorities needed")


if __name__ == "__main__":
    sys.exit(main())
