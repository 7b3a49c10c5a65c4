"""Vertical objects while a program runs, and the D rows that they take.

Every object has `width` consecutive D rows, the same in all subarrays that its lanes span. Where
an operation names its rows, they are checked against all objects that are still needed; where it
does not, the first gap that is large enough is taken. Which objects are needed is read off the
program: a value is, from where it is made to the last operation of its block that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from cim_opt.dialects.simdram import VecType
from cim_opt.errors import UserError
from cim_opt.locations import location_of

NO_ROWS = -1
"""First row of a constant, whose bits are the constant rows C0 and C1."""


@dataclass(eq=False)
class VerticalObject:
    """Elements of `width` bits in `lanes` columns, from D row `row` on.

    `complemented`: the rows hold the complement of every bit of the elements. `data` is what the
    level of simulation keeps: words, which are elements either way, or the packed rows.
    """

    width: int
    lanes: int
    row: int
    complemented: bool = False
    data: Any = None

    @property
    def end(self) -> int:
        """The row after its last."""
        return self.row + self.width


Reusable = Callable[[VerticalObject], bool]
"""Whether the result may lie in the rows of an operand that is needed no more."""


class Lifetimes:
    """Which vertical values end at which operation."""

    def __init__(self, module: ModuleOp):
        self.ending: dict[Operation, list[SSAValue]] = {}
        self.unused: set[SSAValue] = set()
        """What a loop carries and its body does not use: dead as soon as a round begins."""
        self.made: dict[Block, list[SSAValue]] = {}
        """The vertical values of every block."""
        self.handed_on: set[tuple[SSAValue, Operation]] = set()
        """Values whose last use is to start a loop, and that the loop's body does not use."""
        for op in module.walk():
            for region in op.regions:
                for block in region.blocks:
                    self._add_block(block)

    def _add_block(self, block: Block) -> None:
        order = {op: number for number, op in enumerate(block.ops)}
        values = [*block.args, *(result for op in order for result in op.results)]
        self.made[block] = [value for value in values if isinstance(value.type, VecType)]
        for value in self.made[block]:
            self._add(value, order)

    def _add(self, value: SSAValue, order: dict[Operation, int]) -> None:
        users = {_ancestor(use.operation, order) for use in value.uses}
        if not users:
            if isinstance(value.owner, Operation):
                self.ending.setdefault(value.owner, []).append(value)
            else:
                self.unused.add(value)
            return
        last = max(users, key=order.__getitem__)
        if last.has_trait(IsTerminator):
            return
        self.ending.setdefault(last, []).append(value)
        if last.regions and all(
            use.operation is last for use in value.uses if _ancestor(use.operation, order) is last
        ):
            self.handed_on.add((value, last))


def _ancestor(op: Operation, block: dict[Operation, int]) -> Operation:
    """The operation of a block that is, or holds, `op`."""
    current: Operation | None = op
    while current is not None and current not in block:
        current = current.parent_op()
    assert current is not None
    return current


class RowMap:
    """The D rows of one subarray; all that are in use have the same layout."""

    def __init__(self, machine: str, rows: int):
        self.machine = machine
        self.rows = rows
        self.live: dict[SSAValue, VerticalObject] = {}
        self.peak = 0

    def bind(self, value: SSAValue, made: VerticalObject) -> None:
        """From now on `value` is this object."""
        if made.row != NO_ROWS:
            self.live[value] = made

    def drop(self, values: Iterable[SSAValue]) -> None:
        """These values are needed no more."""
        for value in values:
            self.live.pop(value, None)

    def result(self, op: Operation, width: int, row: int | None, reusable: Reusable) -> int:
        """The first row for a result of `width` bits; `row` when the operation names one.

        UserError when there is no room, or when the named rows hold what is still needed.
        """
        if row is None:
            return self._free(op, width, "its result", ())
        for other in self._overlapping(op, row, width):
            if not (other.row == row and reusable(other)):
                raise self._taken(op, row, width, other)
        return row

    def scratch(self, op: Operation, width: int, row: int | None, result: VerticalObject) -> None:
        """Finds or checks `width` rows that the operation uses meanwhile."""
        if not width:
            return
        if row is None:
            self._free(op, width, "its scratch rows", (result,))
            return
        taken = self._overlapping(op, row, width)
        taken += [result] if _overlap(result, row, row + width) else []
        if taken:
            raise self._taken(op, row, width, taken[0])

    def _overlapping(self, op: Operation, row: int, width: int) -> list[VerticalObject]:
        if not 0 <= row <= self.rows - width:
            raise UserError(
                f"'{op.name}' in D rows {row} to {row + width - 1}",
                f"{self.machine} has D rows 0 to {self.rows - 1}",
                "allocate rows for this machine",
                location_of(op),
            )
        self.peak = max(self.peak, row + width)
        return [x for x in set(self.live.values()) if _overlap(x, row, row + width)]

    def _taken(self, op: Operation, row: int, width: int, other: VerticalObject) -> UserError:
        return UserError(
            f"'{op.name}' writes D rows {row} to {row + width - 1}",
            f"rows {other.row} to {other.end - 1} hold an object that is still needed",
            "give the result rows of its own",
            location_of(op),
        )

    def _free(self, op: Operation, width: int, what: str, more: tuple[VerticalObject, ...]) -> int:
        """The first row of the first gap of `width` rows."""
        row = 0
        taken = sorted({*self.live.values(), *more}, key=lambda x: x.row)
        for other in taken:
            if other.row - row >= width:
                break
            row = max(row, other.end)
        if row + width > self.rows:
            raise UserError(
                f"'{op.name}' needs {width} rows for {what}",
                f"{sum(x.width for x in taken)} of the {self.rows} D rows of {self.machine} "
                "hold objects that are still needed",
                "read some back first, or use narrower ones",
                location_of(op),
            )
        self.peak = max(self.peak, row + width)
        return row


def _overlap(other: VerticalObject, start: int, stop: int) -> bool:
    return other.row < stop and start < other.end
