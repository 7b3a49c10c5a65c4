"""`simdram-allocate-rows`: every vertical object gets its D rows.

Before:

    %s = simdram.bbop add(%x, %y) : (...) -> !simdram.vec<32>

After, with the first of 32 rows, and rows of its own for the microprogram's temporaries if any:

    %s = simdram.bbop add(%x, %y) row 64 : (...) -> !simdram.vec<32>

A scalar that only bbops read gets none: it is `constant`, its bits are the rows of zeros and ones.
Rows are used again when an object is dead. An object that a loop carries has one place; where the
loop would have it in two, a `copy` moves it. Where live objects take more rows than a subarray has,
those needed last are made again later, or kept by the host (`simdram_spill`), and then what loops
carry. A program is refused only when one operation with its operands does not fit. The module says
for which library of microprograms the rows are (`simdram.library`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.passes import ModulePass

from cim_opt.dialects.simdram import (
    LIBRARY_ATTRIBUTE,
    BbopOp,
    FillOp,
    MulScalarOp,
    Opcode,
    TransposeOp,
    VecType,
    width_of,
)
from cim_opt.dialects.simdram_machine import machine_of
from cim_opt.dialects.simdram_programs import program_of, scratch_rows
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.mapping.row_allocation import Lifetime, RowsExceeded, allocate
from cim_opt.microprograms.library import Library
from cim_opt.microprograms.library import library as library_of
from cim_opt.passes.simdram_spill import just_made, later_uses, spill, spill_carried

Maker = TransposeOp | FillOp | BbopOp | MulScalarOp
"""Operations whose result is a vertical object."""


@dataclass(frozen=True)
class SimdramAllocateRowsPass(ModulePass):
    """Gives every vertical object its D rows; see the module's documentation."""

    name = "simdram-allocate-rows"

    library: str = "cim-opt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rows = machine_of(op).data_rows
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            if function.body.blocks:
                _Allocation(function, rows, self.library).run()
        op.attributes[LIBRARY_ATTRIBUTE] = StringAttr(self.library)


class _Allocation:
    """Rows of one function."""

    def __init__(self, function: FuncOp, capacity: int, library: str):
        self.function = function
        self.capacity = capacity
        self.library = library_of(library)
        self.times: dict[Operation, tuple[int, int]] = {}

    def run(self) -> None:
        for loop in [op for op in self.function.walk() if isinstance(op, scf.ForOp)]:
            _settle_loop(loop, self.library)
        for op in self.function.walk():
            if isinstance(op, FillOp):
                _make_constant(op)
        while True:
            self.times.clear()
            self._number(self.function.body.block, 0)
            try:
                self._allocate()
                return
            except RowsExceeded as error:
                if not self._spill_one(error.time) and not self._spill_carried(error.time):
                    raise self._refusal(error) from error

    def _allocate(self) -> None:
        places = self._places()
        scratch = {op: self._scratch(op) for op in self.times if isinstance(op, Maker)}
        lives = [self._lifetime(values) for values in places]
        keys: list[list[SSAValue] | Operation] = list(places)
        for op, needed in scratch.items():
            if needed:
                keys.append(op)
                lives.append(Lifetime(self.times[op][0], self.times[op][0], needed))
        rows = allocate(lives, self.capacity)
        for key, row in zip(keys, rows, strict=True):
            _write(key, row)

    def _spill_one(self, time: int) -> bool:
        """Makes room at `time`: the object whose next use is farthest away; False if none is."""
        place = next(op for op, times in self.times.items() if time in times)
        best: tuple[int, SSAValue, list[Use]] | None = None
        for values in self._places():
            value, life = values[0], self._lifetime(values)
            busy = any(use.operation is place for use in value.uses)
            if len(values) > 1 or busy or just_made(value) or not life.start < time < life.end:
                continue
            uses = later_uses(value, place)
            # Times of another round count as far away.
            nearest = min(
                (t if t > time else t + len(self.times) * 2)
                for t in (self.times[use.operation][0] for use in uses)
            )
            if best is None or nearest > best[0]:
                best = (nearest, value, uses)
        if best is None:
            return False
        spill(best[1], best[2])
        return True

    def _spill_carried(self, time: int) -> bool:
        """Makes room at `time`: the widest object that a loop there carries; False if none does."""
        place = next(op for op, times in self.times.items() if time in times)
        best: tuple[int, scf.ForOp, int] | None = None
        for values in self._places():
            life, width = self._lifetime(values), width_of(values[0])
            if not life.start < time < life.end or any(value in place.operands for value in values):
                continue
            for op in self.times:
                if not isinstance(op, scf.ForOp) or (best is not None and width < best[0]):
                    continue
                found = [index for index, value in enumerate(op.iter_args) if value in values]
                best = (width, op, found[0]) if found else best
        if best is None:
            return False
        spill_carried(best[1], best[2])
        return True

    # -- time ------------------------------------------------------------------------------------

    def _number(self, block: Block, time: int) -> int:
        """Gives every operation its first and last time; returns the next free one."""
        for op in block.ops:
            start = time
            time += 1
            for region in op.regions:
                for inner in region.blocks:
                    time = self._number(inner, time)
            self.times[op] = (start, time)
            time += 1
        return time

    def _lifetime(self, values: list[SSAValue]) -> Lifetime:
        starts = [self._birth(value) for value in values]
        ends = [self._death(value) for value in values]
        return Lifetime(min(starts), max(ends), width_of(values[0]))

    def _birth(self, value: SSAValue) -> int:
        if isinstance(value, OpResult):
            op = value.op
            return self.times[op][1] if isinstance(op, scf.ForOp) else self.times[op][0]
        assert isinstance(value, BlockArgument)
        parent = value.block.parent_op()
        assert parent is not None
        return self.times[parent][0]

    def _death(self, value: SSAValue) -> int:
        """The last use, or the end of a loop around it that does not make the value anew."""
        last = self._birth(value)
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        for use in value.uses:
            user: Operation | None = use.operation
            while user is not None and user.parent is not home:
                user = user.parent_op()
            if user is not None:
                inside = user is not use.operation
                last = max(last, self.times[user][1 if inside else 0])
        return last

    # -- places ----------------------------------------------------------------------------------

    def _places(self) -> list[list[SSAValue]]:
        """Values that share one place: what a loop carries, and each other object by itself."""
        places: list[list[SSAValue]] = []
        seen: set[SSAValue] = set()
        for op in self.function.walk():
            if isinstance(op, scf.ForOp):
                for values in _carried(op):
                    _join(places, values)
                    seen.update(values)
        for op in self.function.walk():
            for value in op.results:
                constant = isinstance(op, FillOp) and op.constant is not None
                if isinstance(value.type, VecType) and value not in seen and not constant:
                    places.append([value])
        return places

    def _scratch(self, op: Maker) -> int:
        if isinstance(op, BbopOp | MulScalarOp):
            return scratch_rows(self.library, op)
        return 0

    def _refusal(self, error: RowsExceeded) -> UserError:
        at = next(op for op, (start, _) in self.times.items() if start >= error.time)
        return UserError(
            f"'{at.name}' needs {error.needed} D rows with what is alive",
            f"a subarray has {self.capacity}",
            "split the element function, or narrow its types",
            location_of(at),
        )


def _carried(loop: scf.ForOp) -> list[list[SSAValue]]:
    """Values of each carried object: before, inside, yielded and after the loop."""
    last = loop.body.block.last_op
    assert isinstance(last, scf.YieldOp)
    rows = zip(loop.iter_args, loop.body.block.args[1:], last.arguments, loop.results, strict=True)
    return [list(row) for row in rows if isinstance(row[0].type, VecType)]


def _join(places: list[list[SSAValue]], values: list[SSAValue]) -> None:
    """Adds values to the places, joined with those that share one of them."""
    touching = [place for place in places if any(value in place for value in values)]
    joined = list(dict.fromkeys([*(v for place in touching for v in place), *values]))
    places[:] = [place for place in places if place not in touching]
    places.append(joined)


def _settle_loop(loop: scf.ForOp, library: Library) -> None:
    """Puts copies where a carried object could not have one place before, in and after the loop."""
    for index, value in enumerate(list(loop.iter_args)):
        if isinstance(value.type, VecType) and not _only_use(value, loop):
            copy = _copy_of(value)
            _insert_before(copy, loop)
            loop.operands[3 + index] = copy.result
    last = loop.body.block.last_op
    assert isinstance(last, scf.YieldOp)
    args = loop.body.block.args[1:]
    # All objects that move are read before any place is written.
    moved = [
        index
        for index, value in enumerate(last.arguments)
        if isinstance(value.type, VecType) and not _may_replace(value, args[index], last, library)
    ]
    for _ in range(2 if len(moved) > 1 else 1):
        for index in moved:
            value = last.arguments[index]
            copy = _copy_of(value)
            _insert_before(copy, last)
            last.operands[index] = copy.result


def _copy_of(value: SSAValue) -> BbopOp:
    assert isinstance(value.type, VecType)
    return BbopOp(Opcode.COPY, [value], value.type)


def _make_constant(op: FillOp) -> None:
    """A scalar that only bbops read needs no rows: they address the constant rows."""
    if all(isinstance(use.operation, BbopOp | MulScalarOp) for use in op.result.uses):
        op.properties["constant"] = UnitAttr()


def _only_use(value: SSAValue, user: Operation) -> bool:
    return all(use.operation is user for use in value.uses) and len(list(value.uses)) == 1


def _may_replace(value: SSAValue, old: BlockArgument, end: Operation, library: Library) -> bool:
    """True when `value`, the loop's next object, may be written where `old` lies.

    `old` must be dead before the operation that makes `value`, or be read by it only as an operand
    whose rows its microprogram may overwrite bit by bit.
    """
    if value is old:
        return True
    if not isinstance(value, OpResult) or value.op.parent is not end.parent:
        return False
    if not _only_use(value, end):
        return False
    maker = value.op
    readers = [use for use in old.uses if use.operation is maker]
    others = [use.operation for use in old.uses if use.operation is not maker]
    if any(op.parent is not maker.parent or not op.is_before_in_block(maker) for op in others):
        return False
    if not readers or _carries(maker, old, value):
        return True
    return len(readers) == 1 and _overwrites(maker, readers[0].index, library)


def _overwrites(op: Operation, operand: int, library: Library) -> bool:
    """True when the result of a bbop may lie in the rows of one of its operands."""
    if not isinstance(op, BbopOp):
        return False
    program = program_of(library, op)
    return (program.inputs[operand].name, program.outputs[0].name) in program.aliases


def _carries(op: Operation, old: SSAValue, new: SSAValue) -> bool:
    """True when `op` is a loop that carries `old` on as `new`."""
    if not isinstance(op, scf.ForOp):
        return False
    return any(a is old and r is new for a, r in zip(op.iter_args, op.results, strict=True))


def _insert_before(op: Operation, place: Operation) -> None:
    assert place.parent is not None
    op.location = place.location
    place.parent.insert_op_before(op, place)


def _write(key: list[SSAValue] | Operation, row: int) -> None:
    """Notes the rows on the operations that make the objects."""
    attr = IntegerAttr(row, i64)
    if isinstance(key, Operation):
        key.properties["scratch"] = attr
        return
    for value in key:
        if isinstance(value, OpResult) and isinstance(value.op, Maker):
            value.op.properties["row"] = attr
