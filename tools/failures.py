"""What the tools print and return when something goes wrong.

One line on stderr and exit code 1 for what a user can put right; argparse itself returns 2 for
bad usage; a mistake of ours is one line as well and `INTERNAL_ERROR`, so that a test that
expects a user error does not take a crash for one.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace

from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    MultipleSpansParseError,
    ParseError,
)

from cim_opt.errors import UserError
from cim_opt.tools.located_parser import LocatedVerifyException

USER_ERROR = 1
INTERNAL_ERROR = 70
INTERRUPTED = 130


class Crash(Exception):
    """An exception that is not meant for the user, with what was being done: a mistake of ours."""

    def __init__(self, error: Exception, doing: str) -> None:
        super().__init__(f"{type(error).__name__}: {error} ({doing})")


def one_line(text: str) -> str:
    """`text` with line breaks and the spaces around them made into single spaces."""
    return " ".join(text.split())


def describe(error: BaseException, source: str) -> str | None:
    """The line for an error that a user can put right, or None when it is not one.

    `source` stands before the message when the error itself has no place: the input file's
    name, or the tool's.
    """
    match error:
        case UserError(location=None):
            return f"{source}: error: {one_line(error.message())}"
        case UserError():
            return one_line(str(error))
        case ParseError():
            return f"{error.span.get_location()}: error: {_parse_message(error)}"
        case LocatedVerifyException(location=(file, line, column)):
            return f"{file}:{line}:{column}: error: {one_line(str(error))}"
        case ArgSpecParseError():
            return f"{source}: error: {_spec_message(error)}"
        case DiagnosticException():
            return f"{source}: error: {one_line(str(error))}"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{source}: error: cannot open '{name}': {reason}"
        case _:
            return None


def _parse_message(error: ParseError) -> str:
    """The message of a parse error, with the places it refers to."""
    if not isinstance(error, MultipleSpansParseError) or not error.refs:
        return one_line(error.msg)
    # The driver moves only the first span down by the lines before this part of the file.
    offset = error.span.line_offset
    spans = (replace(span, line_offset=offset) for span, _ in error.refs)
    places = ", ".join(str(span.get_location()) for span in spans)
    return one_line(f"{error.msg}; {error.ref_text or 'see'} {places}")


def _spec_message(error: ArgSpecParseError) -> str:
    """`pass pipeline, column 5: what was expected`.

    The exception keeps neither its place nor its message, only the text: a heading, the place
    as `pass-pipeline:line:column`, the pipeline, a line of carets, the message.
    """
    lines = str(error).strip().splitlines()
    column = lines[1].rpartition(":")[2]
    return f"pass pipeline '{lines[2]}', column {column}: {lines[-1].strip()}"


def run_tool(tool: str, body: Callable[[], int]) -> int:
    """Runs `body` and returns its exit code, or that of the failure it ended with.

    With CIM_OPT_DEBUG=1 in the environment every failure keeps its Python traceback.
    """
    if os.environ.get("CIM_OPT_DEBUG") == "1":
        return body()
    try:
        return body()
    except BrokenPipeError:
        # The reader of our output has gone; Python must not fail again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USER_ERROR
    except KeyboardInterrupt:
        print(f"{tool}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (Exception, ArgSpecParseError) as error:
        return _report(tool, error)


def _report(tool: str, error: BaseException) -> int:
    line = describe(error, tool)
    if line is not None:
        print(line, file=sys.stderr)
        return USER_ERROR
    what = str(error) if isinstance(error, Crash) else f"{type(error).__name__}: {error}"
    print(
        f"{tool}: internal error: {one_line(what)}; the input is not known to be wrong; "
        "CIM_OPT_DEBUG=1 shows where this comes from",
        file=sys.stderr,
    )
    return INTERNAL_ERROR
