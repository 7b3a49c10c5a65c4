"""A subarray, its addresses, and programs of row commands over it.

A subarray has D rows (data), two constant rows C0 (all zeros) and C1 (all ones), and a B-group of
sixteen addresses over six physical rows: T0 to T3, and two rows of dual-contact cells, DCC0 and
DCC1, each with a second wordline that writes and reads the complement (`~DCC0`, `~DCC1`).

Two commands exist. `AAP destination <- source` senses the source and writes it to every row that
the destination raises. Where the source raises three rows, it senses their majority and all three
take it. `AP address` takes the majority of three rows in place.

D rows are symbolic: `Bit("a", 3)` is bit 3 of operand `a`, whatever row holds it. So one program
serves every placement of its operands.

Source of the address set and the semantics: Ambit and SIMDRAM.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property

B_ROWS = ("T0", "T1", "T2", "T3", "DCC0", "DCC1")


@dataclass(frozen=True, slots=True)
class Bit:
    """The D row that holds one bit of an operand, for all lanes; `index` 0 is the lowest bit."""

    operand: str
    index: int

    def __str__(self) -> str:
        return f"{self.operand}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Constant:
    """C0 or C1: the row of zeros or of ones. It can be read and never written."""

    value: int

    def __str__(self) -> str:
        return f"C{self.value}"


@dataclass(frozen=True, slots=True)
class Wordlines:
    """One address of the B-group: the rows that it raises, each direct or complementing."""

    cells: tuple[tuple[str, bool], ...]

    @property
    def is_majority(self) -> bool:
        """Whether three rows are raised at once: the only way to compute."""
        return len(self.cells) == 3

    def __str__(self) -> str:
        names = [("~" if complemented else "") + row for row, complemented in self.cells]
        return names[0] if len(names) == 1 else "{" + ",".join(names) + "}"


def _wordlines(*names: str) -> Wordlines:
    return Wordlines(tuple((name.removeprefix("~"), name.startswith("~")) for name in names))


T0, T1, T2, T3 = (_wordlines(name) for name in ("T0", "T1", "T2", "T3"))
DCC0, NOT_DCC0 = _wordlines("DCC0"), _wordlines("~DCC0")
DCC1, NOT_DCC1 = _wordlines("DCC1"), _wordlines("~DCC1")
NOT_DCC0_T0, NOT_DCC1_T1 = _wordlines("~DCC0", "T0"), _wordlines("~DCC1", "T1")
T2_T3, T0_T3 = _wordlines("T2", "T3"), _wordlines("T0", "T3")
T0_T1_T2, T1_T2_T3 = _wordlines("T0", "T1", "T2"), _wordlines("T1", "T2", "T3")
DCC0_T1_T2, DCC1_T0_T3 = _wordlines("DCC0", "T1", "T2"), _wordlines("DCC1", "T0", "T3")

# The sixteen addresses in the order of their numbers.
B_GROUP = (
    *(T0, T1, T2, T3, DCC0, NOT_DCC0, DCC1, NOT_DCC1),
    *(NOT_DCC0_T0, NOT_DCC1_T1, T2_T3, T0_T3),
    *(T0_T1_T2, T1_T2_T3, DCC0_T1_T2, DCC1_T0_T3),
)
# The two majorities that share no row.
MAJORITIES = B_GROUP[12:]

C0, C1 = Constant(0), Constant(1)

Address = Bit | Constant | Wordlines


@cache
def bit(operand: str, index: int) -> Bit:
    """Bit `index` of `operand`; one object for each, so that long programs stay small."""
    return Bit(operand, index)


@dataclass(frozen=True, slots=True)
class AAP:
    """Sense `source`, then write it to every row of `destination`."""

    destination: Address
    source: Address

    def __str__(self) -> str:
        return f"AAP {self.destination} <- {self.source}"


@dataclass(frozen=True, slots=True)
class AP:
    """Three rows take their majority."""

    address: Address

    def __str__(self) -> str:
        return f"AP {self.address}"


Command = AAP | AP


@dataclass(frozen=True, slots=True)
class Counts:
    """How many commands a program issues.

    `within_b` counts the AAPs whose two addresses both lie in the B-group: they use one decoder
    twice, so that a strict timing model cannot overlap them. `rows_raised` sums the rows that
    the commands activate, for energy.
    """

    aap: int
    ap: int
    within_b: int = 0
    rows_raised: int = 0

    @property
    def total(self) -> int:
        return self.aap + self.ap

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.aap + other.aap,
            self.ap + other.ap,
            self.within_b + other.within_b,
            self.rows_raised + other.rows_raised,
        )

    def times(self, factor: int) -> "Counts":
        """The counts of `factor` such programs one after the other."""
        return Counts(
            self.aap * factor,
            self.ap * factor,
            self.within_b * factor,
            self.rows_raised * factor,
        )


def _rows(address: Address) -> int:
    return len(address.cells) if isinstance(address, Wordlines) else 1


def count(commands: Iterable[Command]) -> Counts:
    """The counts of a sequence of commands."""
    aap = ap = within_b = rows = 0
    for command in commands:
        if isinstance(command, AP):
            ap += 1
            rows += _rows(command.address)
            continue
        destination, source = command.destination, command.source
        aap += 1
        within_b += isinstance(destination, Wordlines) and isinstance(source, Wordlines)
        rows += _rows(destination) + _rows(source)
    return Counts(aap, ap, within_b, rows)


@dataclass(frozen=True, slots=True)
class Operand:
    """A value that a program reads or writes: `width` D rows, one a bit.

    `complemented`: the rows hold the complement of every bit of the value.
    """

    name: str
    width: int
    complemented: bool = False


@dataclass(frozen=True, eq=False)
class RowProgram:
    """A straight line of row commands that computes one operation in all lanes.

    Compared by identity: a library makes each of its programs once.

    An operand that is both in `inputs` and in `outputs` (an accumulator) is read and written in
    the same rows. Rows of other inputs are never written. `scratch` operands hold nothing before
    and nothing of use after; their rows must be no others' while the program runs.
    """

    library: str
    name: str
    width: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    scratch: tuple[Operand, ...]
    commands: tuple[Command, ...] = field(repr=False)

    @cached_property
    def counts(self) -> Counts:
        return count(self.commands)

    @property
    def scratch_rows(self) -> int:
        """How many D rows the program needs besides those of its inputs and outputs."""
        return sum(operand.width for operand in self.scratch)

    @cached_property
    def operands(self) -> dict[str, Operand]:
        """All operands by name."""
        return {x.name: x for x in (*self.inputs, *self.outputs, *self.scratch)}

    @cached_property
    def aliases(self) -> frozenset[tuple[str, str]]:
        """The pairs (input, output) that may share their rows, bit by bit.

        That is so when no command reads a bit of the input after one wrote that bit of the output.
        Each pair holds by itself: one output shares the rows of one input at most. An output that
        is an input itself shares with no other.
        """
        first_write: dict[Bit, int] = {}
        last_read: dict[Bit, int] = {}
        for number, command in enumerate(self.commands):
            if isinstance(command, AP):
                continue
            if isinstance(command.source, Bit):
                last_read[command.source] = number
            if isinstance(command.destination, Bit):
                first_write.setdefault(command.destination, number)
        never = len(self.commands)

        def may_share(source: Operand, target: Operand) -> bool:
            return all(
                last_read.get(bit(source.name, i), -1)
                <= first_write.get(bit(target.name, i), never)
                for i in range(min(source.width, target.width))
            )

        return frozenset(
            (source.name, target.name)
            for target in self.outputs
            for source in self.inputs
            if target not in self.inputs and may_share(source, target)
        )
