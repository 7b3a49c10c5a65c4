"""`cim-opt`: xDSL's optimizer driver with our passes, located one-line errors and exit codes."""

import argparse
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from io import StringIO
from typing import IO, Any, ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.frontend.mlir import MLIRFrontend
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.diagnostic import Diagnostic
from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
    PassFailedException,
    VerifyException,
)
from xdsl.xdsl_opt_main import xDSLOptMain

from cim_opt.errors import UserError
from cim_opt.tools.failures import Crash, describe, one_line, run_tool
from cim_opt.tools.located_parser import LocatedParser, LocatedVerifyException
from cim_opt.tools.located_verify import located_failure, verify_order
from cim_opt.tools.pass_options import check_options, check_pipeline
from cim_opt.tools.universe import PASS_SUMMARIES


class HeldOutput(StringIO):
    """Text for an output file, held back until the whole run has succeeded."""

    text = ""

    def close(self) -> None:
        if not self.closed:
            self.text = self.getvalue()
        super().close()


class CimOptMain(xDSLOptMain):
    """The stock driver, with places on operations and errors, and no half-written files."""

    version_format: ClassVar[str] = f"cim-opt {version('cim-opt')} (xdsl {{xdsl_version}})"

    def __init__(self, args: Sequence[str] | None = None) -> None:
        self._held: HeldOutput | None = None
        self._running: ModulePass | None = None
        super().__init__("Runs passes over MLIR text and prints the result.", args)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "cim-opt"
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        width = max(len(name) for name in PASS_SUMMARIES)
        lines = (f"  {name:{width}}  {text}" for name, text in PASS_SUMMARIES.items())
        arg_parser.epilog = "passes of cim-opt, beside xDSL's own:\n" + "\n".join(lines)

    def setup_pipeline(self) -> None:
        self._check_target()
        check_pipeline(self.available_passes, self.args.passes)
        super().setup_pipeline()
        verify_and_print = self.pipeline.callback
        assert verify_and_print is not None

        def callback(before: ModulePass | None, module: ModuleOp, after: ModulePass | None) -> None:
            self._running = after
            try:
                verify_and_print(before, module, after)
            except VerifyException as error:
                raise located_failure(error, module, before) from error
            if not self.args.disable_verify:
                verify_order(module, before)

        self.pipeline = replace(self.pipeline, callback=callback)

    def _check_target(self) -> None:
        """Refuses unknown options of `-t` before any pass has run."""
        spec = parse_spec(self.args.target)
        entry: Callable[..., Any] = self.available_targets[spec.name]
        # xDSL still knows an older form of target, a plain function, that takes no options.
        if not inspect.signature(entry).parameters:
            check_options("target", entry(), spec)

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file in (None, "-"):
            stream, extension = sys.stdin.buffer, "mlir"
        else:
            stream, extension = super().get_input_stream()
        if self.args.frontend:
            return stream, parse_spec(self.args.frontend).name
        if extension not in self.available_frontends:
            stream.close()
            raise UserError(
                f"no front end for '{self.args.input_file}'",
                f"its name must end in {' or '.join('.' + f for f in self.available_frontends)}",
                "name the front end with -f",
            )
        return stream, extension

    def get_input_name(self) -> str:
        return "<stdin>" if self.args.input_file in (None, "-") else self.args.input_file

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        spec = parse_spec(self.args.frontend or file_extension)
        if spec.name != MLIRFrontend.name:
            return super().parse_chunk(chunk, file_extension, start_offset)
        check_options("front end", MLIRFrontend, spec)
        try:
            text = chunk.read().decode()
        except UnicodeDecodeError as error:
            raise UserError(f"not text in UTF-8: byte {error.start} of the input") from error
        parser = LocatedParser(self.ctx, text, self.get_input_name(), start_offset)
        try:
            return parser.parse_module(not self.args.no_implicit_module)
        except (ParseError, DiagnosticException):
            raise
        except Exception as error:
            file, line, column = parser.place(parser.pos)
            raise Crash(error, f"parsing {file}:{line}:{column}") from error

    def apply_passes(self, prog: ModuleOp) -> None:
        self._running = None
        try:
            super().apply_passes(prog)
        except LocatedVerifyException:
            raise
        except DiagnosticException as error:
            raise self._in_pass(error) from error
        except UserError as error:
            # A pass's refusal is a diagnostic too for --verify-diagnostics.
            if self.args.verify_diagnostics:
                raise PassFailedException(describe(error, self.get_input_name())) from error
            raise
        except Exception as error:
            if self._running is None:
                raise
            raise Crash(error, f"in pass '{self._running.name}'") from error

    def _in_pass(self, error: DiagnosticException) -> DiagnosticException:
        """A pass's own failure, with the pass's name when a pass was running."""
        if self._running is None:
            return error
        return PassFailedException(f"{one_line(str(error))} (in pass '{self._running.name}')")

    def prepare_output(self) -> IO[str]:
        if self.args.output_file in (None, "-"):
            return sys.stdout
        self._held = HeldOutput()
        return self._held

    def run(self) -> None:
        super().run()
        if self._held is not None:
            with open(self.args.output_file, "w", encoding="utf-8") as file:
                file.write(self._held.text)


def _run(argv: Sequence[str] | None) -> int:
    driver = CimOptMain(argv)
    try:
        driver.run()
    except (UserError, DiagnosticException) as error:
        if os.environ.get("CIM_OPT_DEBUG") == "1":
            raise
        # An error without a place of its own is at least in this file.
        print(describe(error, driver.get_input_name()), file=sys.stderr)
        return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `cim-opt` on `argv` (the process's own when None) and returns its exit code.

    0 when all is well, 1 for a mistake in the input, 2 for bad usage.
    """
    # --disable-verify and --syntax-highlight change these for the whole process.
    post_init, colored = Attribute.__post_init__, Diagnostic.colored
    try:
        return run_tool("cim-opt", lambda: _run(argv))
    except SystemExit as stop:  # argparse after --help, --version or bad usage
        return stop.code if isinstance(stop.code, int) else 0
    finally:
        Attribute.__post_init__, Diagnostic.colored = post_init, colored


if __name__ == "__main__":
    sys.exit(main())
