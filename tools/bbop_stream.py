"""Reads bbop streams: text as target `simdram-bbop` prints it, one statement a line.

    bbop 1                                  the version of the format
    machine columns C subarrays S rows R    D rows 0 to R-1, C*S lanes
    library NAME                            the microprograms that rows are allocated for
    function NAME                           what the stream was made from
    input NAME LENGTH iB                    a vector of the caller
    input NAME iB                           a scalar of the caller; `index` is a type as well
    constant NAME iB NUMBER...              a vector that is known
    vector NAME LENGTH iB [of VECTOR]       room on the host: zeros, or a copy
    scalar NAME iB = VECTOR[AT]             one element of a vector, read now
    scalar NAME iB = VALUE                  what the host computes, wrapped to B bits
    loop NAME LOW HIGH STEP { ... }         NAME goes from LOW to before HIGH
    trsp_init OBJ VECTOR[AT] stride S N LANES n BITS
    fill OBJ SCALAR N LANES n BITS
    OP OBJ OBJ... N LANES n BITS [to BITS] [by AMOUNT] [scratch ROW]
    if_else OBJ OBJ OBJ BIT N LANES n BITS  the first where the bit is set, else the second
    mul_scalar OBJ OBJ SCALAR N LANES n BITS [scratch ROW]
    read VECTOR[AT] stride S OBJ N LANES n BITS
    host NAME TYPE = ...                    a step of the host, by the name of what it does
    output NUMBER VALUE                     a result of the function

OBJ is `D` and the first row of an object; what an OP reads may be `C(SCALAR)`, whose bits are the
rows C0 and C1. `~` before either: the rows hold the complement of its elements. SCALAR, LANES, AT
and so on are numbers, names, `min(a, b)`, `max(a, b)` and `(a + b)` with + - * / %. `#` starts a
comment. Everything wrong is a UserError with its file, line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cim_opt.errors import Location, UserError
from cim_opt.tools.bbop_statements import (
    Bits,
    Compute,
    Constant,
    Element,
    Expression,
    HostStep,
    Input,
    Loop,
    Output,
    Placed,
    Read,
    ScalarOf,
    Statement,
    Stream,
    Transpose,
    Vector,
)

_TOKEN = re.compile(r"\s*(#.*|-?\d+|[A-Za-z_][A-Za-z_0-9.]*|[-+*/%(),\[\]{}=]|\S)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*$")
_OBJECT = re.compile(r"D(\d+)$")


UNARY = ("not", "abs", "relu", "bitcount", "copy", "zext", "sext", "trunc")
CONSTANT_SHIFTS = ("shl_const", "shru_const", "shrs_const")
RESIZING = ("zext", "sext", "trunc")
BINARY = (
    *("add", "sub", "mul", "divu", "divs", "remu", "rems", "minu", "mins", "maxu", "maxs"),
    *("and", "or", "xor", "shl", "shru", "shrs"),
    *("eq", "ne", "ltu", "lts", "leu", "les", "gtu", "gts", "geu", "ges"),
)
OPERANDS = {
    "if_else": 3,
    "fill": 0,
    "mul_scalar": 1,
    **dict.fromkeys((*UNARY, *CONSTANT_SHIFTS), 1),
    **dict.fromkeys(BINARY, 2),
}
"""How many objects every mnemonic reads."""


def read_stream(text: str, file: str) -> Stream:
    """The stream in `text`; `file` is its name in errors."""
    stream = Stream(file)
    bodies: list[list[Statement]] = [stream.body]
    opened: list[Location] = []
    lines = [_Line(line, file, number) for number, line in enumerate(text.splitlines(), 1)]
    lines = [line for line in lines if line.tokens]
    _head(stream, lines)
    for line in lines[4:]:
        if line.tokens[0][0] == "}":
            if not opened:
                raise line.error("'}' without a loop", None, "remove it")
            opened.pop()
            bodies.pop()
            line.take()
        else:
            statement = _statement(line)
            bodies[-1].append(statement)
            if isinstance(statement, Loop):
                opened.append(statement.at)
                bodies.append(statement.body)
        line.end()
    if opened:
        raise UserError("the loop has no end", None, "close it with '}'", opened[-1])
    return stream


class _Line:
    """The tokens of a line, taken one by one."""

    def __init__(self, text: str, file: str, number: int):
        self.file, self.number = file, number
        self.width = len(text)
        self.tokens = [
            (match.group(1), match.start(1) + 1)
            for match in _TOKEN.finditer(text.rstrip())
            if not match.group(1).startswith("#")
        ]
        self.position = 0

    @property
    def place(self) -> Location:
        """Where the next token is."""
        if self.position < len(self.tokens):
            return self.file, self.number, self.tokens[self.position][1]
        return self.file, self.number, self.width + 1

    def error(self, what: str, limit: str | None, remedy: str | None) -> UserError:
        return UserError(what, limit, remedy, self.place)

    def peek(self, ahead: int = 0) -> str:
        """The next token, or one further on; empty at the end."""
        at = self.position + ahead
        return self.tokens[at][0] if at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            what = f"got '{token}'" if token else "the line ends too early"
            raise self.error(what, f"here comes {_shown(wanted)}", "see `cim-bbop --help`")
        self.position += 1
        return token

    def optional(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self.position += 1
        return True

    def end(self) -> None:
        if self.position < len(self.tokens):
            raise self.error(f"got '{self.peek()}'", "the statement ends before", "remove it")

    def matching(self, what: str, pattern: re.Pattern[str]) -> str:
        if not pattern.match(self.peek()):
            shown = f"got '{self.peek()}'" if self.peek() else "the line ends too early"
            raise self.error(shown, f"here comes {what}", "see `cim-bbop --help`")
        return self.take()

    def name(self) -> str:
        return self.matching("a name", _NAME)

    def number_(self) -> int:
        return int(self.matching("a number", re.compile(r"-?\d+$")))

    def element(self) -> str:
        return self.matching("i1 to i64, or index", re.compile(r"(i([1-9]|[1-5]\d|6[0-4])|index)$"))

    def object(self) -> Placed:
        complemented = self.optional("~")
        row = int(self.matching("an object, D and its first row", _OBJECT)[1:])
        return Placed(row, complemented)

    def operand(self) -> Placed | Bits:
        """An object, or a constant."""
        if self.peek(1 if self.peek() == "~" else 0) != "C":
            return self.object()
        complemented = self.optional("~")
        self.take("C")
        self.take("(")
        scalar = self.expression()
        self.take(")")
        return Bits(scalar, complemented)

    def width_(self) -> int:
        place = self.place
        width = self.number_()
        if not 1 <= width <= 64:
            raise UserError(f"{width} bits", "objects have 1 to 64", "narrow or split it", place)
        return width

    def expression(self) -> Expression:
        at = self.place
        token = self.peek()
        if re.match(r"-?\d+$", token):
            return Expression(at, number=int(self.take()))
        if self.optional("("):
            left = self.expression()
            symbol = self.matching("one of + - * / %", re.compile(r"[-+*/%]$"))
            right = self.expression()
            self.take(")")
            return Expression(at, symbol=symbol, operands=(left, right))
        name = self.matching("a number, a name or an expression in parentheses", _NAME)
        if name not in ("min", "max"):
            return Expression(at, name=name)
        self.take("(")
        left = self.expression()
        self.take(",")
        right = self.expression()
        self.take(")")
        return Expression(at, symbol=name, operands=(left, right))

    def vector_element(self) -> Element:
        at = self.place
        vector = self.name()
        self.take("[")
        index = self.expression()
        self.take("]")
        return Element(at, vector, index)


def _shown(wanted: str | None) -> str:
    return "more" if wanted is None else f"'{wanted}'"


def _head(stream: Stream, lines: list[_Line]) -> None:
    """The four lines at the top."""
    readers: list[tuple[str, Callable[[_Line], None]]] = [
        ("bbop", _version),
        ("machine", lambda line: _machine(stream, line)),
        ("library", lambda line: setattr(stream, "library", _library(line))),
        ("function", lambda line: setattr(stream, "function", line.name())),
    ]
    for number, (word, reader) in enumerate(readers):
        if number >= len(lines):
            raise UserError(
                "the stream ends too early",
                "it starts with bbop, machine, library and function",
                "print it with cim-opt -t simdram-bbop",
                (stream.file, lines[-1].number + 1 if lines else 1, 1),
            )
        lines[number].take(word)
        reader(lines[number])
        lines[number].end()


def _version(line: _Line) -> None:
    if line.number_() != 1:
        line.position -= 1
        raise line.error(f"version {line.peek()}", "the version is 1", "print the stream again")


def _machine(stream: Stream, line: _Line) -> None:
    for word in ("columns", "subarrays", "rows"):
        line.take(word)
        place = line.place
        number = line.number_()
        if number < 1:
            raise UserError(f"{number} {word}", "a machine has 1 or more", None, place)
        setattr(stream, word, number)


def _library(line: _Line) -> str:
    name = line.name()
    while line.optional("-"):
        name += f"-{line.name()}"
    return name


def _statement(line: _Line) -> Statement:
    at = line.place
    word = line.matching("a statement", _NAME)
    if word in _STATEMENTS:
        return _STATEMENTS[word](line, at)
    if word in OPERANDS:
        return _compute(line, at, word)
    raise UserError(f"unknown statement '{word}'", None, "see `cim-bbop --help`", at)


def _input(line: _Line, at: Location) -> Input:
    name = line.name()
    length = int(line.take()) if line.peek().isdigit() else None
    return Input(at, name, line.element(), length)


def _constant(line: _Line, at: Location) -> Constant:
    name, element = line.name(), line.element()
    numbers: list[int] = []
    while line.peek():
        numbers.append(line.number_())
    return Constant(at, name, element, tuple(numbers))


def _vector(line: _Line, at: Location) -> Vector:
    name, length, element = line.name(), line.expression(), line.element()
    return Vector(at, name, element, length, line.name() if line.optional("of") else None)


def _scalar(line: _Line, at: Location) -> ScalarOf:
    name, element = line.name(), line.element()
    line.take("=")
    source = line.vector_element() if line.peek(1) == "[" else line.expression()
    return ScalarOf(at, name, element, source)


def _loop(line: _Line, at: Location) -> Loop:
    name = line.name()
    low, high, step = line.expression(), line.expression(), line.expression()
    line.take("{")
    return Loop(at, name, low, high, step, [])


def _size(line: _Line) -> tuple[Expression, int]:
    """N LANES n BITS"""
    line.take("N")
    lanes = line.expression()
    line.take("n")
    return lanes, line.width_()


def _transpose(line: _Line, at: Location) -> Transpose:
    result, source = line.object(), line.vector_element()
    line.take("stride")
    stride = line.expression()
    return Transpose(at, result, source, stride, *_size(line))


def _read(line: _Line, at: Location) -> Read:
    dest = line.vector_element()
    line.take("stride")
    stride = line.expression()
    return Read(at, dest, stride, line.object(), *_size(line))


def _compute(line: _Line, at: Location, word: str) -> Compute:
    result = line.object()
    operands = tuple(line.operand() for _ in range(OPERANDS[word]))
    scalar = line.expression() if word in ("fill", "mul_scalar") else None
    lanes, width = _size(line)
    out = _after(line, "to", word in RESIZING, line.width_)
    amount = _after(line, "by", word in CONSTANT_SHIFTS, line.number_)
    scratch = line.number_() if line.optional("scratch") else None
    return Compute(at, word, result, operands, scalar, lanes, width, out, amount, scratch)


def _after(line: _Line, word: str, wanted: bool, read: Callable[[], int]) -> int | None:
    if not wanted:
        return None
    line.take(word)
    return read()


def _host(line: _Line, at: Location) -> HostStep:
    name = line.name()
    rest: list[str] = []
    while line.peek():
        rest.append(line.take())
    what = rest[rest.index("=") + 1 :] if "=" in rest else []
    if not what:
        raise line.error("the line ends too early", "here comes '= ' and the step", None)
    return HostStep(at, name, " ".join(what))


def _output(line: _Line, at: Location) -> Output:
    return Output(at, line.number_(), line.expression())


_STATEMENTS: dict[str, Callable[[_Line, Location], Statement]] = {
    "input": _input,
    "constant": _constant,
    "vector": _vector,
    "scalar": _scalar,
    "loop": _loop,
    "trsp_init": _transpose,
    "read": _read,
    "host": _host,
    "output": _output,
}
