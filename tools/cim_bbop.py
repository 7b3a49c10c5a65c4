"""`cim-bbop`: checks streams of bbops, and shows the row commands of one."""

# Nothing heavy up here: `cim-bbop --help` answers at once.
import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cim_opt.errors import UserError
from cim_opt.tools.failures import USER_ERROR, run_tool

if TYPE_CHECKING:
    from cim_opt.microprograms.model import Operand, RowProgram
    from cim_opt.tools.bbop_machine import BbopMachine
    from cim_opt.tools.bbop_statements import Stream

EPILOG = """\
a stream comes from
  cim-opt F.mlir -p pattern-to-simdram -t 'simdram-bbop{lengths=100,100}'
and names objects by their first D row:
  trsp_init D0 a[i] stride 1 N 64 n 32    64 elements of 32 bits into D rows 0 to 31
  add D64 D0 D32 N 64 n 32                a bbop: result, operands, lanes, bits
  read v[i] stride 1 D64 N 64 n 32        an object back into a vector of the host
tools/bbop_stream.py has the whole grammar. Exit code 0 when all is well, 1 when the stream is wrong
or computes something else, 2 for bad usage.
"""


def argument_parser() -> argparse.ArgumentParser:
    """The command line of cim-bbop."""
    parser = argparse.ArgumentParser(
        prog="cim-bbop",
        description="Checks streams of bbops, and shows the row commands of one.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check",
        allow_abbrev=False,
        help="executes a stream by meaning and by row commands, and compares",
    )
    check.add_argument("file", metavar="FILE", help="the stream; - for stdin")
    check.add_argument(
        "--against", metavar="FILE.mlir", help="the program before lowering: compares the results"
    )
    check.add_argument(
        "--input",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="an input; others are random",
    )
    check.add_argument("--seed", metavar="S", type=int, default=0, help="of random inputs")
    check.add_argument("--report", choices=("text", "json"), default="text")
    expand = commands.add_parser(
        "expand", allow_abbrev=False, help="shows the AAP and AP commands of one bbop"
    )
    expand.add_argument("operation", metavar="OP", help="add, if_else, fill, mul_scalar, ...")
    expand.add_argument("bits", metavar="BITS", type=int, help="of the operands")
    expand.add_argument("--library", default="cim-opt", help="cim-opt or simdram")
    expand.add_argument("--to", metavar="BITS", type=int, help="of the result of zext, sext, trunc")
    expand.add_argument("--by", metavar="N", type=int, help="of a shift by a constant")
    expand.add_argument("--value", metavar="N", type=int, help="of fill and mul_scalar")
    expand.add_argument(
        "--complemented",
        metavar="NAME,...",
        help="operands that are stored complemented: out, a, b, choice",
    )
    expand.add_argument(
        "--rows",
        metavar="R,R,...",
        help="first D rows of result, operands, and scratch rows if any (default: names)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `cim-bbop` on `argv` (the process's own when None) and returns its exit code."""
    try:
        args = argument_parser().parse_args(argv)
        run = _check if args.command == "check" else _expand
        return run_tool("cim-bbop", lambda: run(args))
    except SystemExit as stop:  # argparse after --help or bad usage
        return stop.code if isinstance(stop.code, int) else 0


# -- check ---------------------------------------------------------------------------------------


def _check(args: argparse.Namespace) -> int:
    from cim_opt.tools.bbop_host import random_inputs
    from cim_opt.tools.bbop_machine import BbopMachine
    from cim_opt.tools.bbop_stream import read_stream

    if args.seed < 0:
        raise UserError(f"--seed {args.seed}", "a seed is 0 or more", "give such a number")
    name = "<stdin>" if args.file == "-" else args.file
    stream = read_stream(_text(args.file), name)
    inputs = random_inputs(stream, args.seed)
    _load_inputs(args.input, inputs)
    machine = BbopMachine(stream, inputs)
    machine.run()
    mismatches = _against(args.against, machine) if args.against else None
    _report(machine, mismatches, args)
    return USER_ERROR if mismatches else 0


def _text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode()
    except OSError as error:
        raise UserError(f"cannot read {path}", error.strerror, "check the path") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no stream", "it is not text", "check the file") from error


def _load_inputs(texts: Sequence[str], inputs: dict[str, Any]) -> None:
    """Puts the arrays of `--input` in the place of random ones."""
    import numpy as np

    for text in texts:
        name, _, path = text.partition("=")
        if name not in inputs or not path:
            raise UserError(
                f"--input {text}",
                f"it is NAME=FILE.npy, and the inputs are {', '.join(inputs) or 'none'}",
                "name one of them",
            )
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {path}", "it is no .npy file", "check it") from error
        wanted = inputs[name]
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise UserError(
                f"{path} has {array.dtype} of shape {array.shape}",
                f"'{name}' takes {wanted.dtype} of shape {wanted.shape}",
                "convert it",
            )
        inputs[name] = array


def _against(path: str, machine: "BbopMachine") -> list[str]:
    """Compares the stream's results with the reference's; one line a difference."""
    import numpy as np

    from cim_opt.simulators.reference import run_function
    from cim_opt.tools.load_module import find_entry, load_module

    module = load_module(path)
    function = machine.stream.function
    find_entry(module, function)
    expected = run_function(module, function, list(machine.inputs.values()))
    lines: list[str] = []
    for number, got in machine.outputs.items():
        if number >= len(expected):
            lines.append(f"output {number}: @{function} has {len(expected)} results")
            continue
        wanted = np.asarray(expected[number])
        values = np.asarray(got).astype(wanted.dtype)
        if values.shape != wanted.shape:
            lines.append(f"output {number}: shape {values.shape}, expected {wanted.shape}")
        elif (values != wanted).any():
            at = int(np.flatnonzero(values != wanted)[0])
            pair = f"{values.flat[at]}, expected {wanted.flat[at]}"
            lines.append(f"output {number}: element {at} is {pair}")
    return lines


def _report(machine: "BbopMachine", mismatches: list[str] | None, args: argparse.Namespace) -> None:
    if args.report == "json":
        content: Mapping[str, Any] = {
            "function": machine.stream.function,
            "counts": asdict(machine.counts),
            "outputs": sorted(machine.outputs),
            "finished_by_host": {str(k): v for k, v in machine.unfinished.items()},
            "mismatches": mismatches,
        }
        print(json.dumps(content, indent=2))
        return
    for line in _lines(machine, machine.stream, mismatches):
        print(line)


def _lines(machine: "BbopMachine", stream: "Stream", mismatches: list[str] | None) -> list[str]:
    counts = machine.counts
    commands = f"{counts.aap + counts.ap} commands in a subarray"
    lines = [
        f"{stream.function}: {counts.bbops} bbops, {commands} ({counts.aap} AAP, {counts.ap} AP), "
        f"{counts.transposed_rows} rows transposed, {counts.read_rows} rows read",
        f"row commands of library {stream.library} compute what every bbop means",
    ]
    lines += [
        f"output {number} is finished by the host ({what}), not checked"
        for number, what in machine.unfinished.items()
    ]
    if mismatches is not None:
        lines += mismatches or [_compared(machine)]
    return lines


def _compared(machine: "BbopMachine") -> str:
    if not machine.outputs:
        return "no output was compared with the reference"
    return f"equal to the reference: outputs {', '.join(map(str, machine.outputs))}"


# -- expand --------------------------------------------------------------------------------------


def _expand(args: argparse.Namespace) -> int:
    program = _program(args)
    rows = _row_names(program, args.rows)
    counts = program.counts
    operands = [*program.outputs, *program.inputs, *program.scratch]
    print(f"# {args.operation} of {args.bits} bits, library {args.library}")
    print(f"# operands: {', '.join(map(_operand, operands))}")
    for command in program.commands:
        print(_command(command, rows))
    print(f"# {counts.total} commands: {counts.aap} AAP, {counts.ap} AP")
    return 0


def _program(args: argparse.Namespace) -> "RowProgram":
    from cim_opt.dialects.simdram_programs import bbop_program, fill_program, mul_scalar_program
    from cim_opt.microprograms.library import library
    from cim_opt.tools.bbop_machine import opcode_of
    from cim_opt.tools.bbop_stream import CONSTANT_SHIFTS, OPERANDS, RESIZING
    from cim_opt.tools.nearest import nearest

    operation, chosen = args.operation, library(args.library)
    if operation not in OPERANDS:
        near = nearest(operation, OPERANDS)
        raise UserError(f"unknown bbop '{operation}'", near, "choose one that a stream has")
    wanted = {
        "value": operation in ("fill", "mul_scalar"),
        "by": operation in CONSTANT_SHIFTS,
        "to": operation in RESIZING,
    }
    for option, needed in wanted.items():
        given = getattr(args, option) is not None
        if needed != given:
            what = "without" if needed else "with"
            remedy = "give it" if needed else "leave it out"
            raise UserError(f"'{operation}' {what} --{option}", None, remedy)
    if args.to is not None and (args.to > args.bits) != (operation != "trunc"):
        raise UserError(
            f"{operation} from {args.bits} to {args.to} bits",
            "extensions are to more bits, truncations to fewer",
            "give another --to",
        )
    names = ["a", "b"][: OPERANDS[operation]]
    if operation == "if_else":
        names = ["choice", *names]
    if operation in ("fill", "mul_scalar"):
        make = fill_program if operation == "fill" else mul_scalar_program
        (complemented,) = _polarity(args, [])
        return make(chosen, args.bits, args.value, complemented)
    polarity, out = _polarity(args, names), args.to or args.bits
    return bbop_program(chosen, opcode_of(operation), args.bits, out, args.by, polarity)


def _polarity(args: argparse.Namespace, names: list[str]) -> tuple[bool, ...]:
    """Whether each of the operands `names`, and then the result, is stored complemented."""
    text: str = args.complemented or ""
    given = text.split(",") if text else []
    known = [*names, "out"]
    for name in given:
        if name not in known:
            raise UserError(
                f"--complemented {args.complemented}",
                f"'{args.operation}' may have {', '.join(known)} complemented",
                "name some of these, separated by commas",
            )
    return tuple(name in given for name in known)


def _operand(operand: "Operand") -> str:
    stored = ", complemented" if operand.complemented else ""
    return f"{operand.name} ({operand.width} rows{stored})"


def _row_names(program: "RowProgram", text: str | None) -> dict[str, int] | None:
    """The first row of each operand, result first, the way a stream has them."""
    if text is None:
        return None
    scratch = [x.name for x in program.scratch]
    names = [*(x.name for x in (*program.outputs, *program.inputs)), *scratch[:1]]
    numbers = text.split(",")
    if len(numbers) != len(names) or not all(number.isdigit() for number in numbers):
        raise UserError(
            f"--rows {text}",
            f"'{program.name}' takes {len(names)} row numbers: {', '.join(names)}",
            "give them, separated by commas",
        )
    rows = dict(zip(names, map(int, numbers), strict=True))
    # Scratch operands lie one behind another.
    for before, operand in zip(program.scratch, program.scratch[1:], strict=False):
        rows[operand.name] = rows[before.name] + before.width
    return rows


def _command(command: Any, rows: dict[str, int] | None) -> str:
    from cim_opt.microprograms.model import AP, Bit

    def shown(address: Any) -> str:
        if rows is None or not isinstance(address, Bit):
            return str(address)
        return f"D{rows[address.operand] + address.index}"

    if isinstance(command, AP):
        return str(command)
    return f"AAP {shown(command.destination)} <- {shown(command.source)}"


if __name__ == "__main__":
    sys.exit(main())
