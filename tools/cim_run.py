"""`cim-run`: runs an MLIR program on a simulated machine and checks it against the reference."""

# Nothing heavy up here: `cim-run --help` answers at once.
import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import DiagnosticException

from cim_opt.errors import UserError
from cim_opt.tools.failures import USER_ERROR, describe, run_tool
from cim_opt.tools.load_module import find_entry, load_module, source_name
from cim_opt.tools.progress import print_line, progress

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from cim_opt.simulators.run import Option, RunResult, SimdramOptions, Values
    from cim_opt.tools.run_inputs import Sizes
    from cim_opt.tools.upmem_tune import Tuning

TARGETS = ("reference", "upmem", "simdram", "cim", "auto")

ONLY_FOR = {
    "transfer": "upmem",
    "cycles": "upmem",
    "tune": "upmem",
    "budget": "upmem",
    "level": "simdram",
    "library": "simdram",
    "timing": "simdram",
    "activation_limit": "simdram",
}
"""Options that one target has, and which."""

EPILOG = """\
inputs that are not given are random from --seed: integers over the whole range of their type,
f32 normally distributed around 0 with deviation 1. Exit code 0 when every returned value equals
the reference's, 1 when one does not or the input is wrong, 2 for bad usage.
"""


def argument_parser() -> argparse.ArgumentParser:
    """The command line of cim-run."""
    parser = argparse.ArgumentParser(
        prog="cim-run",
        description="Lowers a program for a machine, simulates it, compares each returned value "
        "with the reference and prints a report.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE.mlir", help="the program; - for stdin")
    parser.add_argument("--target", required=True, choices=TARGETS, help="auto comes later")
    parser.add_argument("--entry", metavar="F", help="the function to run (default: the only one)")
    parser.add_argument(
        "--machine",
        metavar="NAME|FILE.toml",
        help="the machine (default: upmem-2560 for upmem, simdram-1 for simdram, "
        "cim-32x64-8 for cim)",
    )
    parser.add_argument(
        "--transfer",
        choices=("measured", "linear"),
        help="host transfers of upmem (default: measured)",
    )
    parser.add_argument(
        "--cycles",
        choices=("closed", "event"),
        help="cycles of upmem's kernels: by the closed form, or event by event for small kernels "
        "(default: closed)",
    )
    _add_tuning(parser)
    _add_simdram(parser)
    parser.add_argument(
        "--input",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="the value of argument %%NAME; may come several times",
    )
    parser.add_argument(
        "--size",
        metavar="K|ARG=K",
        action="append",
        default=[],
        help="the length of every `?`, or of argument %%ARG; may come several times",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="default: 0")
    parser.add_argument("--report", choices=("text", "json"), default="text")
    parser.add_argument("--save", metavar="OUT.npz", help="writes the returned values there")
    parser.add_argument(
        "--pipeline-options",
        metavar="'A=B C=D'",
        default="",
        help="options of the target's named pipeline, as cim-opt -p takes them in braces",
    )
    return parser


def _add_tuning(parser: argparse.ArgumentParser) -> None:
    """The search for how to lower, which only target upmem has."""
    group = parser.add_argument_group("tuning, target upmem")
    group.add_argument(
        "--tune",
        action="store_true",
        help="searches DPUs x tasklets x block x unroll by simulated time first, says each new "
        "best and a bound on stderr, and runs the best",
    )
    group.add_argument(
        "--budget",
        metavar="SECONDS",
        type=float,
        help="ends the search after so many seconds of this computer (default: 60)",
    )


def _add_simdram(parser: argparse.ArgumentParser) -> None:
    """What only target simdram has."""
    group = parser.add_argument_group("target simdram")
    group.add_argument(
        "--level",
        choices=("bbop", "rows"),
        help="simulates words, or every row command; the results are the same (default: bbop)",
    )
    group.add_argument(
        "--library",
        choices=("simdram", "cim-opt"),
        help="the microprograms (default: cim-opt, or what the program was lowered for)",
    )
    group.add_argument(
        "--timing",
        choices=("proteus49", "gem5", "strict"),
        help="how long row commands take (default: as the machine says)",
    )
    group.add_argument(
        "--activation-limit",
        choices=("on", "off"),
        help="whether the limit on activations slows many subarrays down (default: as the machine "
        "says)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `cim-run` on `argv` (the process's own when None) and returns its exit code.

    0 when the run agrees with the reference, 1 when it does not or for a mistake in the input,
    2 for bad usage.
    """
    parser = argument_parser()
    try:
        args = parser.parse_args(argv)
        return run_tool("cim-run", lambda: _run(args, parser))
    except SystemExit as stop:  # argparse after --help or bad usage
        return stop.code if isinstance(stop.code, int) else 0


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from cim_opt.simulators.run import check_target

    check_target(args.target)
    _check_options(args)
    sizes, files = _read_bindings(args, parser)
    try:
        return _run_file(args, sizes, files)
    except MemoryError as error:
        raise UserError(
            "not enough memory for this run", str(error) or None, "choose a smaller --size"
        ) from error
    except DiagnosticException as error:
        if os.environ.get("CIM_OPT_DEBUG") == "1":
            raise
        # An error without a place of its own is at least in this file.
        print(describe(error, source_name(args.file)), file=sys.stderr)
        return USER_ERROR


def _check_options(args: argparse.Namespace) -> None:
    """Refuses what can be seen to be wrong before anything is read or run."""
    if args.seed < 0:
        raise UserError(f"--seed {args.seed}", "a seed is 0 or more", "give such a number")
    if args.target == "reference":
        for option in ("machine", "pipeline_options", *ONLY_FOR):
            if getattr(args, option):
                raise UserError(
                    f"--{option.replace('_', '-')} with --target reference",
                    "the reference is no machine",
                    f"leave it out, or choose --target {ONLY_FOR.get(option, 'upmem')}",
                )
    for option, target in ONLY_FOR.items():
        if getattr(args, option) and args.target != target:
            raise UserError(
                f"--{option.replace('_', '-')} with --target {args.target}",
                f"only {target} has it",
                f"leave it out, or choose --target {target}",
            )
    if args.budget is not None and not args.tune:
        raise UserError("--budget without --tune", "it ends a search", "add --tune")
    if args.budget is not None and not args.budget > 0:
        raise UserError(
            f"--budget {args.budget:g}", "a search takes more than 0 seconds", "give such a number"
        )
    if args.save is not None and not Path(args.save).resolve().parent.is_dir():
        raise UserError(
            f"cannot write {args.save}", "its folder is not there", "make the folder first"
        )


def _read_bindings(
    args: argparse.Namespace, parser: argparse.ArgumentParser
) -> "tuple[Sizes, dict[str, str]]":
    """What --size and --input say; bad usage ends the process."""
    from cim_opt.tools.run_inputs import parse_inputs, parse_sizes

    try:
        sizes = parse_sizes(args.size)
    except ValueError as error:
        parser.error(f"argument --size: takes K or ARG=K, got {error}")
    try:
        return sizes, parse_inputs(args.input)
    except ValueError as error:
        parser.error(f"argument --input: takes NAME=FILE.npy, got {error}")


def _run_file(args: argparse.Namespace, sizes: "Sizes", files: dict[str, str]) -> int:
    from cim_opt.simulators.run import run_program
    from cim_opt.tools.run_inputs import make_inputs
    from cim_opt.tools.run_report import as_json, as_text

    with progress("cim-run") as say:
        say("reading")
        module = load_module(args.file)
        entry = find_entry(module, args.entry)
        inputs = make_inputs(entry, sizes, files, args.seed)
        options = _pipeline_options(args)
        tuning = _tune(args, module, entry.sym_name.data, inputs, options, say)
        result = run_program(
            module,
            entry.sym_name.data,
            inputs,
            target=args.target,
            machine=args.machine,
            transfer=args.transfer or "measured",
            cycles=args.cycles or "closed",
            pipeline_options=options if tuning is None else tuning.options,
            simdram_options=_simdram_options(args),
            progress=say,
        )
    if args.save:
        _save(args.save, result)
    if args.report == "json":
        values = as_json(entry, inputs, files, args.seed, result)
        if tuning is not None:
            values["tuning"] = tuning.to_json_dict()
        print(json.dumps(values, indent=2))
    else:
        if tuning is not None:
            print(tuning.to_text())
        print(as_text(entry, inputs, result))
    return 0 if result.check is None or result.check.ok else USER_ERROR


def _tune(
    args: argparse.Namespace,
    module: "ModuleOp",
    entry: str,
    inputs: "Mapping[str, Values]",
    options: "Mapping[str, Option]",
    say: Callable[[str], None],
) -> "Tuning | None":
    """The search of --tune, each new best on stderr; None without that option."""
    if not args.tune:
        return None
    from cim_opt.simulators.run import DEFAULT_MACHINES
    from cim_opt.tools.upmem_tune import DEFAULT_BUDGET, tune

    def improved(best: "Tuning") -> None:
        print_line(f"cim-run: {best.to_text()}")

    return tune(
        module,
        entry,
        list(inputs.values()),
        machine=args.machine or DEFAULT_MACHINES["upmem"],
        transfer=args.transfer or "measured",
        cycles=args.cycles or "closed",
        fixed=options,
        budget=args.budget or DEFAULT_BUDGET,
        improved=improved,
        say=say,
    )


def _simdram_options(args: argparse.Namespace) -> "SimdramOptions":
    """What the options of target simdram say; the defaults for what is left out."""
    from cim_opt.simulators.run import SimdramOptions

    limit = None if args.activation_limit is None else args.activation_limit == "on"
    return SimdramOptions(
        level=args.level or "bbop",
        library=args.library,
        timing=args.timing,
        activation_limit=limit,
    )


def _pipeline_options(args: argparse.Namespace) -> "Mapping[str, Option]":
    """The options of `--pipeline-options`, each checked against the pipeline."""
    from xdsl.universe import Universe
    from xdsl.utils.arg_spec import parse_spec

    from cim_opt.simulators.run import PIPELINES
    from cim_opt.tools.pass_options import check_options

    if not args.pipeline_options:
        return {}
    name = PIPELINES[args.target]
    spec = parse_spec(f"{name}{{{args.pipeline_options}}}")
    check_options("pipeline", Universe.get_multiverse().all_passes[name](), spec)
    for option in ("machine", "library"):
        if option in spec.parameters:
            raise UserError(
                f"--pipeline-options names a {option}",
                f"the run and the lowering have one {option}",
                f"use --{option}",
            )
    return dict(spec.normalize_parameter_names().parameters)


def _save(path: str, result: "RunResult") -> None:
    """Writes the returned values as result0, result1, ... to `path` as it is spelt."""
    import numpy as np

    named = {f"result{index}": value for index, value in enumerate(result.outputs)}
    try:
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **named)
    except OSError as error:
        raise UserError(f"cannot write {path}", error.strerror, "check the path") from error


if __name__ == "__main__":
    sys.exit(main())
