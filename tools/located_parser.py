"""A parser that remembers where every operation and every use of a value was written."""

import re
from bisect import bisect_right
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import AttributeInvT, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.exceptions import (
    MultipleSpansParseError,
    ParseError,
    UnregisteredConstructException,
    VerifyException,
)
from xdsl.utils.lexer import Position, Span

from cim_opt.errors import Location
from cim_opt.tools.nearest import nearest

# xDSL reports these after it has read the name, so at the word that follows.
_UNKNOWN_OP = re.compile(r"Operation (\S+) is not registered")
_BAD_NAME = re.compile(r"Operation (\S+) |'(\S+)' is not registered|undefined symbol alias '(\S+)'")


class LocatedVerifyException(VerifyException):
    """A verification failure and the place in the text that it belongs to.

    `location` is (file, line, column), or None when nothing around the operation has one.
    """

    def __init__(self, message: str, location: Location | None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location


class LocatedParser(Parser):
    """xDSL's parser, with these differences:

    - each operation without a `loc(...)` of its own gets its line and column;
    - a value that is never defined is reported where it is first used, not at the end of file;
    - a type or attribute that does not verify is reported with its place.

    `line_offset` is the number of lines that stand before `text` in the file.
    """

    def __init__(
        self, ctx: Context, text: str | bytes, name: str = "<unknown>", line_offset: int = 0
    ) -> None:
        super().__init__(ctx, text, name)
        content = self.lexer.input.content
        self._line_starts = [0, *(i + 1 for i, char in enumerate(content) if char == "\n")]
        self._file = StringAttr(name)
        self._line_offset = line_offset
        self._first_uses: dict[str, Span] = {}
        self._operations = False

    def place(self, position: Position) -> Location:
        """(file, line, column) of a position in the text, both counted from 1.

        By bisection: `Span.get_location` counts the lines from the start every time.
        """
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return self._file.data, line + self._line_offset, column

    def parse_operation(self) -> Operation:
        start = self.pos
        self._operations = True
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            _, line, column = self.place(start)
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return op

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        name = operand.operand_name
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self._first_uses[name] = operand.span
        return super().resolve_operand(operand, type)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            raise self._explained(error) from error
        except VerifyException as error:
            place = self.place(self.pos)
            raise LocatedVerifyException(str(error), place) from error
        except UnregisteredConstructException as error:
            raise ParseError(Span(self.pos, self.pos, self.lexer.input), str(error)) from error

    def _explained(self, error: ParseError) -> ParseError:
        """The same error, better placed or worded where the end of the text was the trouble."""
        if error.msg.startswith("values used but not defined"):
            return self._at_first_use(error)
        if isinstance(error, MultipleSpansParseError):
            return error
        if (match := _BAD_NAME.match(error.msg)) is not None:
            return self._at_name(error, match[match.lastindex or 0])
        if error.span.start < self.lexer.input.len:
            return error
        if not self._operations:
            return replace(error, msg="no operation in the input")
        return replace(error, msg=f"the input ends too early: {error.msg.strip()}")

    def _at_first_use(self, error: ParseError) -> ParseError:
        undefined = [name for name in self.forward_ssa_references if name in self._first_uses]
        if not undefined:
            return error
        first = min(undefined, key=lambda name: self._first_uses[name].start)
        return replace(
            error, span=self._first_uses[first], msg=f"value %{first} is used but not defined"
        )

    def _at_name(self, error: ParseError, name: str) -> ParseError:
        """The same error, moved back to the name it is about, with what was perhaps meant."""
        start = self.lexer.input.content.rfind(name, 0, error.span.start)
        span = error.span if start < 0 else Span(start, start + len(name), self.lexer.input)
        advice = self._advice(name) if _UNKNOWN_OP.match(error.msg) else None
        return replace(error, span=span, msg=f"{error.msg}; {advice}" if advice else error.msg)

    def _advice(self, name: str) -> str | None:
        dialect, _, own_name = name.partition(".")
        if dialect in self.ctx.registered_dialect_names:
            names = (op.name.partition(".") for op in self.ctx.loaded_ops)
            return nearest(own_name, (known for owner, _, known in names if owner == dialect))
        advice = nearest(dialect, self.ctx.registered_dialect_names)
        return f"there is no dialect '{dialect}'{f', {advice}' if advice else ''}"
