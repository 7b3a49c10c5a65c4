"""Statements of a bbop stream, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field

from cim_opt.errors import Location


@dataclass(frozen=True)
class Expression:
    """A number, a name, or `symbol` on two operands; with its place in the text."""

    at: Location
    number: int | None = None
    name: str = ""
    symbol: str = ""
    operands: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Placed:
    """The object in the D rows from `row` on, which hold its complement if `complemented`."""

    row: int
    complemented: bool


@dataclass(frozen=True)
class Bits:
    """A constant: C0 and C1 by the bits of a scalar, or of its complement."""

    scalar: Expression
    complemented: bool


@dataclass(frozen=True)
class Element:
    """VECTOR[AT]."""

    at: Location
    vector: str
    index: Expression


@dataclass(frozen=True)
class Input:
    """What the caller gives; `length` None for a scalar."""

    at: Location
    name: str
    element: str
    length: int | None


@dataclass(frozen=True)
class Constant:
    """A vector that is known."""

    at: Location
    name: str
    element: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Vector:
    """Room on the host, or a copy of the vector `of`."""

    at: Location
    name: str
    element: str
    length: Expression
    of: str | None


@dataclass(frozen=True)
class ScalarOf:
    """A scalar, wrapped to its type: one element of a vector, or what the host computes."""

    at: Location
    name: str
    element: str
    source: Element | Expression


@dataclass(frozen=True)
class Loop:
    """A loop of the host."""

    at: Location
    name: str
    low: Expression
    high: Expression
    step: Expression
    body: list[Statement]


@dataclass(frozen=True)
class Transpose:
    """Host elements into columns."""

    at: Location
    result: Placed
    source: Element
    stride: Expression
    lanes: Expression
    width: int


@dataclass(frozen=True)
class Compute:
    """A bbop, `fill` or `mul_scalar`."""

    at: Location
    mnemonic: str
    result: Placed
    operands: tuple[Placed | Bits, ...]
    scalar: Expression | None
    lanes: Expression
    width: int
    out: int | None
    amount: int | None
    scratch: int | None


@dataclass(frozen=True)
class Read:
    """An object back into a vector."""

    at: Location
    dest: Element
    stride: Expression
    source: Placed
    lanes: Expression
    width: int


@dataclass(frozen=True)
class HostStep:
    """What the host does in between; only its name is known."""

    at: Location
    name: str
    what: str


@dataclass(frozen=True)
class Output:
    """A result: a vector's name or a scalar."""

    at: Location
    number: int
    value: Expression


Statement = (
    Input | Constant | Vector | ScalarOf | Loop | Transpose | Compute | Read | HostStep | Output
)


@dataclass
class Stream:
    """A whole stream."""

    file: str
    columns: int = 0
    subarrays: int = 0
    rows: int = 0
    library: str = ""
    function: str = ""
    body: list[Statement] = field(default_factory=list["Statement"])

    @property
    def lanes(self) -> int:
        """Lanes of the machine."""
        return self.columns * self.subarrays
