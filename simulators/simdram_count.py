"""What a lowered program costs, counted from the lengths of its arguments alone.

    report = count(module, "main", [(4096,), (4096,)])
    print(report.commands, report.compute_seconds)

The program is interpreted as the simulator does, with numbers of the host where they follow from
lengths and constants, and vertical objects that have a width, lanes and rows but no data. Rounds
of a loop that cost the same are counted once and multiplied: numbers that differ between them are
kept as limits, and where one of them matters (lanes, bounds, a known scalar) the rounds are taken
apart. So the counts are those of the simulator, whatever the lengths.

One thing depends on data: a product with a scalar that the host reads from a vector takes as many
commands as the scalar's digits. It is counted as the mean over the scalars that the vector may
hold: over all where those are 256 or fewer, else over 256 drawn evenly from their range with a
fixed seed. Programs whose lengths, bounds or conditions depend on data, such as what a filter
keeps, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import BlockArgument, Operation
from xdsl.utils.hints import isa

from cim_opt.dialects import simdram
from cim_opt.dialects.pattern import PatternOp
from cim_opt.dialects.simdram import Opcode, is_complemented, width_of
from cim_opt.dialects.simdram_machine import machine_of
from cim_opt.errors import UserError
from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.locations import location_of
from cim_opt.microprograms.library import MAX_WIDTH
from cim_opt.microprograms.library import library as load_library
from cim_opt.microprograms.model import Counts
from cim_opt.microprograms.published import PUBLISHED
from cim_opt.simulators.declared_ranges import range_of
from cim_opt.simulators.elementwise import dtype_of, is_elementwise
from cim_opt.simulators.reference import Handler
from cim_opt.simulators.simdram import SimdramEvaluator, SimdramSimulator
from cim_opt.simulators.simdram_abstract import (
    Interval,
    Varies,
    Vector,
    candidates,
    is_abstract,
    limits,
    vector,
)
from cim_opt.simulators.simdram_account import Account
from cim_opt.simulators.simdram_count_host import elementwise, extremes, host_pattern, refused
from cim_opt.simulators.simdram_count_report import CountReport
from cim_opt.simulators.simdram_levels import Level
from cim_opt.simulators.simdram_objects import NO_ROWS, VerticalObject
from cim_opt.simulators.simdram_programs import NO_PROGRAM, Recipe

Values = Any
Lengths = Sequence[tuple[int, ...] | int]
Products = Literal["issued", "objects", "full"]
Divisions = Literal["issued", "published"]
Carried = list[tuple[Values, bool]]

_SUMS = (
    "bbops",
    "aap",
    "ap",
    "limited_seconds",
    "unlimited_seconds",
    "energy_nj",
    "host_seconds",
    "useful",
    "offered",
)


def count(
    module: ModuleOp,
    entry: str,
    lengths: Lengths,
    *,
    machine: SimdramMachine | None = None,
    library: str | None = None,
    timing: str | None = None,
    products: Products = "issued",
    divisions: Divisions = "issued",
) -> CountReport:
    """Counts function `entry` of a lowered module.

    `lengths` has one entry an argument: the shape of a tensor (a number for a vector), `()` for a
    scalar. `library` None is the one that the module's rows were allocated for. `products` says
    what multiplications are charged: as they are `issued`; those with a scalar of the host as
    products of two `objects`; or all as `full` products of two objects in 2n bits, which is what
    SIMDRAM issues. `divisions` of unsigned numbers are charged as issued, or what was
    `published`. Raises UserError where the cost depends on data.
    """
    chosen = machine or machine_of(module)
    options = SimdramSimulator(chosen, library, timing=timing)
    evaluator = CountEvaluator(module, chosen, options, products, divisions)
    function = evaluator.function(entry)
    evaluator.call(entry, _arguments(function, lengths))
    return evaluator.counts()


def _arguments(function: func.FuncOp, lengths: Lengths) -> list[Values]:
    formal = function.body.block.args
    if len(lengths) != len(formal):
        raise UserError(
            f"{len(lengths)} lengths for function '{function.sym_name.data}'",
            f"it takes {len(formal)} arguments",
            "give one for each",
        )
    return [_argument(arg, length) for arg, length in zip(formal, lengths, strict=True)]


def _argument(arg: BlockArgument, length: tuple[int, ...] | int) -> Values:
    shape = (length,) if isinstance(length, int) else tuple(length)
    type = arg.type
    static = type.get_shape() if isa(type, TensorType) else ()
    if len(static) != len(shape) or any(
        want not in (DYNAMIC_INDEX, got) for want, got in zip(static, shape, strict=True)
    ):
        raise UserError(
            f"length {length} for an argument of type {type}",
            "the type says another shape",
            "give the shape of its type, and () for a scalar",
        )
    dtype = dtype_of(type)
    known = range_of(arg)
    low, high = (known.low, known.high) if known is not None else limits(dtype)
    if isa(type, TensorType):
        return Vector(shape, dtype, low, high)
    return Interval(low, high, dtype, True)


class NoData(Level):
    """Objects hold nothing."""

    def load(self, words: Any, made: VerticalObject) -> None:
        return None

    def store(self, made: VerticalObject) -> Any:
        return None

    def run(self, recipe: Recipe, args: Sequence[VerticalObject], made: VerticalObject) -> None:
        return None


class CountEvaluator(SimdramEvaluator):
    """The host and its subarrays, without data."""

    def __init__(
        self,
        module: ModuleOp,
        machine: SimdramMachine,
        options: SimdramSimulator,
        products: Products,
        divisions: Divisions,
    ):
        super().__init__(module, machine, options)
        self.level = NoData()
        self.products = products
        self.divisions = divisions
        self.unknown_scalars = False
        self._means: dict[object, Account] = {}

    def counts(self) -> CountReport:
        """The counts so far."""
        book = self.book
        sums = {name: _plain(getattr(book, name)) for name in _SUMS}
        useful, offered = sums.pop("useful"), sums.pop("offered")
        return CountReport(
            **sums,
            transposed_bytes=_plain(book.transposed.bytes),
            read_bytes=_plain(book.read_back.bytes),
            transposed_seconds=float(book.transposed.seconds),
            read_seconds=float(book.read_back.seconds),
            utilisation=useful / offered if offered else 1.0,
            rows_peak=self.rows.peak,
            unknown_scalars=self.unknown_scalars,
        )

    def _tell(self, op: Operation) -> None:
        """Nothing: rounds are not gone through one by one."""

    # -- the host --------------------------------------------------------------------------------

    def evaluate(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        if op.name in self.handlers:
            return super().evaluate(op, args)
        if isinstance(op, PatternOp):
            return host_pattern(op, args)
        if not is_elementwise(op) or not any(is_abstract(value) for value in args):
            return super().evaluate(op, args)
        return [elementwise(op, args, dtype_of(result.type)) for result in op.results]

    def dim(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A length, which may be an interval itself."""
        length = args[0].shape[int(args[1])]
        return [length if is_abstract(length) else np.int64(length)]

    def empty(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Any operation that makes a tensor of its type; its lengths are its last operands."""
        type = op.results[0].type
        assert isa(type, TensorType)
        given = iter(args[len(args) - type.get_shape().count(DYNAMIC_INDEX) :])
        shape = tuple(int(next(given)) if n == DYNAMIC_INDEX else n for n in type.get_shape())
        return [vector(shape, dtype_of(type))]

    def from_elements(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A small tensor, whose elements may all be known."""
        if any(is_abstract(value) for value in args):
            return self.empty(op, ())
        return SimdramEvaluator.handlers[op.name](self, op, args)

    def extract(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """An element: known if the tensor and the place are."""
        source, dtype = args[0], dtype_of(op.results[0].type)
        if isinstance(source, Vector):
            return [Interval(source.low, source.high, dtype, True)]
        places = args[1:]
        if not any(is_abstract(place) for place in places):
            return SimdramEvaluator.handlers[op.name](self, op, args)
        of_data = any(isinstance(x, Interval) and x.of_data for x in places)
        return [Interval(int(source.min()), int(source.max()), dtype, of_data)]

    def changed(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A tensor with other elements, in the same place where nobody else sees it."""
        dest = args[1]
        if isinstance(dest, Vector) and self.may_overwrite(op, 1):
            return [dest]
        return [vector(tuple(dest.shape), dest.dtype)]

    def concat(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Tensors one after the other."""
        assert isinstance(op, tensor.ConcatOp)
        axis = op.dim.value.data
        shape = list(args[0].shape)
        shape[axis] = sum(int(part.shape[axis]) for part in args)
        return [vector(tuple(shape), args[0].dtype)]

    def cast(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """The same tensor."""
        return [args[0]]

    def extract_slice(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """A part of a tensor, of elements that may be what the tensor's may."""
        assert isinstance(op, tensor.ExtractSliceOp)
        source, places = args[0], args[1 + len(op.offsets) :]
        given = iter(places[: len(op.sizes)])
        sizes = op.static_sizes.get_values()
        shape = [int(next(given)) if n == DYNAMIC_INDEX else n for n in sizes]
        type = op.result.type
        while len(shape) > type.get_num_dims() and 1 in shape:
            shape.remove(1)
        if isinstance(source, Vector):
            return [Vector(tuple(shape), source.dtype, source.low, source.high)]
        return [Vector(tuple(shape), source.dtype, *extremes(source))]

    # -- loops -----------------------------------------------------------------------------------

    def run_for(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        assert isinstance(op, scf.ForOp)
        low, high, step = (int(value) for value in args[:3])
        if step < 1:
            return super().run_for(op, args)
        rounds = max(0, -(-(high - low) // step))
        carried: Carried = [self._passed(value, op) for value in op.iter_args]
        # The first round starts from what comes in, the last one may be shorter.
        parts = [(rounds - 1, 1), (1, rounds - 2), (0, 1)] if rounds > 2 else []
        parts = parts or [(n, 1) for n in reversed(range(rounds))]
        while parts:
            first, many = parts.pop()
            after = self._attempt(op, low + first * step, step, many, carried)
            if after is not None:
                carried = after
                continue
            half = many // 2
            parts += [(first + half, many - half), (first, half)]
        return self._pass_to(op, carried)

    def _attempt(
        self, op: scf.ForOp, start: int, step: int, many: int, carried: Carried
    ) -> Carried | None:
        """Counts rounds that cost the same; None, and nothing is counted, when they may not."""
        block = op.body.block
        book, live, owned = self.book, dict(self.rows.live), set(self._frame.owned)
        self.book = self._new_book()
        position = np.int64(start)
        if many > 1:
            position = Interval(start, start + (many - 1) * step)
        try:
            self._set(block.args, [(position, False), *carried])
            after = self._run(block)
            fits = many == 1 or _same(carried, after)
        except Varies:
            if many == 1:
                raise
            fits = False
            after = carried
        finally:
            part, self.book = self.book, book
        if fits:
            _merge(book, part, many)
            return after
        self.rows.live, self._frame.owned = live, owned
        return None

    def _new_book(self) -> Account:
        book = self.book
        return Account(book.machine, book.timing, book.limited, _charges=book._charges)  # pyright: ignore[reportPrivateUsage]

    # -- objects ---------------------------------------------------------------------------------

    def transpose(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        assert isinstance(op, simdram.TransposeOp)
        made = self._make(op, self._lanes(op, args[3]), (), NO_PROGRAM)
        self.book.transpose(op, made.width, made.lanes)
        return [made]

    def fill(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Every number takes one copy a bit."""
        assert isinstance(op, simdram.FillOp)
        width, lanes = width_of(op.result), self._lanes(op, args[1])
        if op.constant is not None:
            return [VerticalObject(width, lanes, NO_ROWS, is_complemented(op.result))]
        recipe = self.programs.fill(width, 0)
        made = self._make(op, lanes, (), recipe)
        self.book.bbop(op, recipe.counts, lanes)
        return [made]

    def bbop(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        assert isinstance(op, simdram.BbopOp)
        opcode = op.opcode.data
        if self.products == "full" and opcode is Opcode.MUL:
            return [self._product(op, args, self._common_lanes(op, args))]
        if self.divisions == "published" and opcode is Opcode.DIVU:
            return [self._published_quotient(op, args, self._common_lanes(op, args))]
        return super().bbop(op, args)

    def _published_quotient(
        self, op: simdram.BbopOp, args: Sequence[Values], lanes: int
    ) -> VerticalObject:
        """A quotient, made by the library's program and charged the published commands."""
        width = width_of(op.result)
        made = self._make(op, lanes, args, self.programs.bbop(Opcode.DIVU, width, width, None))
        self.book.bbop(op, PUBLISHED["div_u"](width), lanes)
        return made

    def _product(
        self, op: simdram.BbopOp | simdram.MulScalarOp, args: Sequence[Values], lanes: int
    ) -> VerticalObject:
        """A product, charged as one of two objects."""
        width = width_of(op.result)
        scalar = isinstance(op, simdram.MulScalarOp)
        polarity = (False, False, is_complemented(op.result))
        recipe = self.programs.bbop(Opcode.MUL, width, width, None, polarity)
        rows = self.programs.mul_scalar(width, 1, polarity[-1]) if scalar else recipe
        made = self._make(op, lanes, args, rows)
        counts = self._full_product(op, width) if self.products == "full" else recipe.counts
        self.book.bbop(op, counts, lanes)
        return made

    def _full_product(self, op: Operation, width: int) -> Counts:
        """Commands of the product of two numbers of `width` bits in twice as many."""
        library = load_library(self.programs.library)
        if 2 * width > MAX_WIDTH:
            raise UserError(
                f"a full product of {width} bits",
                f"microprograms have up to {MAX_WIDTH} bits",
                "count products as they are issued",
                location_of(op),
            )
        options = {"out_complemented": True} if is_complemented(op.results[0]) else {}
        return library.counts("mul", 2 * width, a_width=width, b_width=width, **options)

    def mul_scalar(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        assert isinstance(op, simdram.MulScalarOp)
        scalar = args[1]
        if self.products != "issued":
            return [self._product(op, args[:1], args[0].lanes)]
        if not isinstance(scalar, Interval) or not scalar.of_data:
            return super().mul_scalar(op, (args[0], int(scalar)))
        width, lanes = width_of(op.result), args[0].lanes
        complemented = is_complemented(op.result)
        made = self._make(op, lanes, args[:1], self.programs.mul_scalar(width, 1, complemented))
        _merge(self.book, self._mean(op, scalar, width, lanes), 1)
        self.unknown_scalars = True
        return [made]

    def _mean(self, op: simdram.MulScalarOp, scalar: Interval, width: int, lanes: int) -> Account:
        """A product with an unknown scalar: the mean over what it may be."""
        complemented = is_complemented(op.result)
        key = (scalar.low, scalar.high, width, lanes, complemented)
        mean = self._means.get(key)
        if mean is None:
            scalars = candidates(scalar)
            mean = self._means[key] = self._new_book()
            total = self._new_book()
            for value in scalars:
                bits = value & ((1 << width) - 1)
                counts = self.programs.mul_scalar(width, bits, complemented).counts
                total.bbop(op, counts, lanes)
            _merge(mean, total, Fraction(1, len(scalars)))
        return mean

    def read(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        assert isinstance(op, simdram.ReadOp)
        self.book.read(op, args[0].width, args[0].lanes)
        return self.changed(op, args)

    def compact(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        raise refused(op)

    handlers: ClassVar[dict[str, Handler]] = {
        **SimdramEvaluator.handlers,
        "tensor.dim": dim,
        "tensor.empty": empty,
        "tensor.splat": empty,
        "tensor.from_elements": from_elements,
        "tensor.extract": extract,
        "tensor.insert": changed,
        "tensor.insert_slice": changed,
        "tensor.concat": concat,
        "tensor.cast": cast,
        "tensor.extract_slice": extract_slice,
        "simdram.transpose": transpose,
        "simdram.fill": fill,
        "simdram.bbop": bbop,
        "simdram.mul_scalar": mul_scalar,
        "simdram.read": read,
        "simdram.compact": compact,
    }


def _plain(value: Any) -> Any:
    """A number without fractions of integers."""
    if not isinstance(value, Fraction):
        return value
    return value.numerator if value.denominator == 1 else float(value)


def _merge(book: Account, part: Account, times: int | Fraction) -> None:
    for name in _SUMS:
        setattr(book, name, getattr(book, name) + getattr(part, name) * times)
    for into, back in ((book.transposed, part.transposed), (book.read_back, part.read_back)):
        into.count += int(back.count * times)
        into.bytes += int(back.bytes * times)
        into.seconds += back.seconds * times


def _same(before: Carried, after: Carried) -> bool:
    """Whether the next round starts as this one did."""
    return all(
        owned == owned_after and _alike(value, value_after)
        for (value, owned), (value_after, owned_after) in zip(before, after, strict=True)
    )


def _alike(left: Values, right: Values) -> bool:
    if isinstance(left, VerticalObject) and isinstance(right, VerticalObject):
        return (left.width, left.lanes, left.row) == (right.width, right.lanes, right.row)
    if is_abstract(left) or is_abstract(right):
        return type(left) is type(right) and left == right
    if isinstance(left, VerticalObject) or isinstance(right, VerticalObject):
        return False
    return left is right or (np.ndim(left) == 0 and np.ndim(right) == 0 and left == right)
