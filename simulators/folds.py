"""Reduce and scan over whole vectors with NumPy, the order of the elements kept.

A short vector is folded one element after the other, as the operation is written. A long one is cut
into contiguous ranges, one a lane, that are folded in lockstep; the partial results are then
combined pairwise, neighbours first. So integers give what the sequential fold gives, whenever the
function is associative. Floats are computed in their own type in this fixed order, which depends on
the length only: the same every time, but rounded differently than one after the other. A float fold
inside an element function is always computed one element after the other. A reduce or scan of
integers that is one NumPy ufunc (sum, product, minimum, maximum, and, or, xor) is left to that.

Partial folds start from the neutral element where it can be told; else, without a combine region,
from their first element; else from `init`, which is then neutral by contract, and that is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from cim_opt.dialects.pattern import FoldOp, vector_length
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators import batch as lanes
from cim_opt.simulators.batch import Batch
from cim_opt.simulators.elementwise import dtype_of, function_of
from cim_opt.simulators.in_place import overwritten, yields_fresh
from cim_opt.simulators.integer_functions import BINARY_UNSIGNED, Values, unsigned_of
from cim_opt.simulators.reassociation import reassociates
from cim_opt.simulators.region import Regions

SEQUENTIAL = 512
"""Vectors up to this length are folded one element after the other."""
LANES = 16384
"""At most this many ranges of a long vector are folded in lockstep."""
SPACE = 4 << 20
"""Bytes that the accumulators of all lanes may take, so that they stay in the cache."""
BLOCK = 32
"""Elements of each lane that are put in lane order at once."""

State = list[Values]


@dataclass(frozen=True)
class Fold:
    """A reduce or scan with its shared operands, at work in some lanes."""

    regions: Regions
    op: FoldOp
    shared: Sequence[Values]
    batch: Batch
    copied: Sequence[bool]
    """Accumulators that the body writes into, but may yield a buffer that others see, too."""
    inner: bool
    """True in an element function: there a float fold is computed exactly as it is written."""
    neutral: Sequence[Values] | None
    """Where partial folds start; None when they start from their first element."""

    @staticmethod
    def of(
        regions: Regions,
        op: FoldOp,
        shared: Sequence[Values],
        inits: Sequence[Values],
        batch: Batch,
    ) -> Fold:
        written = {arg.index for arg in overwritten(op.body.block)}
        copied = [
            number in written and not yields_fresh(value)
            for number, value in enumerate(op.yielded())
        ]
        return Fold(regions, op, shared, batch, copied, batch.rank > 0, _starts(op, inits, batch))

    def nested(self, lane_count: int) -> Fold:
        """The same fold in lanes that each have a range of their own."""
        pairs = zip(self.shared, self.op.shared, strict=True)
        shared = [lanes.in_nested(value, operand.type) for value, operand in pairs]
        neutral = self.neutral
        if neutral is not None:
            accumulators = zip(neutral, self.op.inits, strict=True)
            neutral = [lanes.in_nested(value, init.type) for value, init in accumulators]
        batch = self.batch.nested(lane_count)
        return Fold(self.regions, self.op, shared, batch, self.copied, self.inner, neutral)

    def owned(self, state: State) -> State:
        """The accumulators in buffers of their own when they are tensors."""
        return [lanes.owned(value) for value in state] if self.op.tensor_accumulators else state

    def step(self, state: State, elements: Sequence[Values]) -> State:
        """The body: accumulators after one more element."""
        program = self.regions.program(self.op.body.block)
        after = program.run([*state, *elements, *self.shared], self.batch)
        if not any(self.copied):
            return after
        pairs = zip(after, self.copied, strict=True)
        return [lanes.owned(value) if copied else value for value, copied in pairs]

    def join(self, left: State, right: State) -> State:
        """The combining function of two neighbouring partial results."""
        program = self.regions.program(self.op.combine_block())
        if self.op.combine is None:
            return program.run([*left, *right, *self.shared], self.batch)
        if not self.op.tensor_accumulators:
            return program.run([*left, *right], self.batch)
        # The combine region works on elements: those of the accumulators are lanes of their own.
        length = right[0].shape[0]
        joined = program.run([*left, *right], self.batch.nested(length))
        return [lanes.as_tensor(value, length, self.batch) for value in joined]

    def sequential(self, state: State, inputs: Sequence[Values]) -> State:
        """`state` after all elements of `inputs`, one after the other."""
        for number in range(inputs[0].shape[0]):
            state = self.step(state, [value[number] for value in inputs])
        return state

    def start(self, inputs: Sequence[Values]) -> tuple[State, Sequence[Values]]:
        """Accumulators of a partial fold of `inputs`, and the elements that are left to fold."""
        if self.neutral is not None:
            return self.owned([*self.neutral]), inputs
        return [value[0] for value in inputs], [value[1:] for value in inputs]

    def lane_count(self, length: int) -> int:
        """How many ranges to cut `length` elements into: a power of two, 1 for a short vector."""
        if length <= SEQUENTIAL or (self.inner and reassociates(self.op)):
            return 1
        most = min(LANES // max(1, self.batch.size), length // BLOCK)
        if self.op.tensor_accumulators:
            most = min(most, self._lanes_that_fit())
        return 1 << (max(1, most).bit_length() - 1)

    def _lanes_that_fit(self) -> int:
        """Few enough for the cache, but enough to be worth while, if memory has room for them."""
        sizes = [vector_length(init) * dtype_of(init.type).itemsize for init in self.op.inits]
        lane = sum(sizes) * max(1, self.batch.size)
        return max(SPACE // lane, min(256, 64 * SPACE // lane))

    def blocks(self, inputs: Sequence[Values], lane_count: int) -> Iterator[tuple[slice, State]]:
        """The elements of all lanes in lockstep: (elements, lanes) arrays, some elements a time."""
        cut = [ranges(value, lane_count) for value in inputs]
        for first in range(0, cut[0].shape[1], BLOCK):
            part = slice(first, first + BLOCK)
            rows = [value[:, part].swapaxes(0, 1) for value in cut]
            yield part, [np.ascontiguousarray(row) for row in rows]


def _starts(op: FoldOp, inits: Sequence[Values], batch: Batch) -> Sequence[Values] | None:
    # Imported late: only a fold needs it.
    from cim_opt.passes.pattern_neutral import neutral_elements

    neutrals = neutral_elements(op)
    if neutrals is None:
        return None if op.combine is None else inits
    return [
        _filled(dtype_of(init.type).type(value), lanes.rank_of(init.type), start)
        for value, init, start in zip(neutrals, op.inits, inits, strict=True)
    ]


def _filled(value: Values, rank: int, like: Values) -> Values:
    """A scalar neutral element, or a tensor accumulator full of it."""
    if rank == 0:
        return value
    return np.full(like.shape[:rank] + (1,) * (like.ndim - rank), value)


def init_is_neutral(op: FoldOp) -> bool:
    """True when `init` is where partial folds start, because nothing else is known."""
    from cim_opt.passes.pattern_neutral import neutral_elements

    return op.combine is not None and neutral_elements(op) is None


def reduce(
    regions: Regions,
    op: FoldOp,
    inputs: Sequence[Values],
    shared: Sequence[Values],
    inits: Sequence[Values],
    batch: Batch,
) -> list[Values]:
    """Accumulators of a `pattern.reduce` after all elements of `inputs`, of shape (N,) + lanes.

    UserError when `init` has to be neutral and is not.
    """
    fold = Fold.of(regions, op, shared, inits, batch)
    length = inputs[0].shape[0]
    ufuncs = ufuncs_of(op)
    if length == 0:
        return [lanes.owned(value)[()] for value in inits]
    if ufuncs is not None:
        parts = [f.over(f.ufunc.reduce, x) for f, x in zip(ufuncs, inputs, strict=True)]
        return fold.join([*inits], parts)
    if fold.lane_count(length) == 1:
        result = fold.sequential(fold.owned([*inits]), inputs)
    elif init_is_neutral(op):
        result = _total(fold, inputs)
    else:
        return fold.join([*inits], _total(fold, inputs))
    check_neutral(fold, inits, result)
    return result


def _total(fold: Fold, inputs: Sequence[Values]) -> State:
    """Partial fold of at least one element."""
    length = inputs[0].shape[0]
    count = fold.lane_count(length)
    if count == 1:
        state, rest = fold.start(inputs)
        return fold.sequential(state, rest)
    lockstep = fold.nested(count)
    state = State()
    for part, elements in fold.blocks(inputs, count):
        rest = elements
        if part.start == 0:
            state, rest = lockstep.start(elements)
        state = lockstep.sequential(state, rest)
    total = _combined(fold, state, count)
    done = length // count * count
    if done == length:
        return total
    return fold.join(total, _total(fold, [value[done:] for value in inputs]))


def _combined(fold: Fold, state: State, count: int) -> State:
    """The partial results of `count` (a power of two) lanes, combined in order."""
    axis = 1 if fold.op.tensor_accumulators else 0
    state = [_in_full(value, axis, count, fold.batch) for value in state]
    while count > 1:
        count //= 2
        left = [value[(slice(None),) * axis + (slice(0, None, 2),)] for value in state]
        right = [value[(slice(None),) * axis + (slice(1, None, 2),)] for value in state]
        joined = fold.nested(count).join(left, right)
        state = [_in_full(value, axis, count, fold.batch) for value in joined]
    return [value[(slice(None),) * axis + (0,)] for value in state]


def _in_full(value: Values, axis: int, count: int, batch: Batch) -> Values:
    """`value` with all `count` lanes along `axis`, also when they are all the same."""
    padded = lanes.aligned(value, axis + 1 + batch.rank)
    shape = (*padded.shape[:axis], count, *padded.shape[axis + 1 :])
    return np.broadcast_to(padded, shape)


def ranges(vector: Values, count: int) -> Values:
    """(count, elements) + lanes: the vector cut into `count` contiguous ranges, less the rest."""
    size = vector.shape[0] // count
    return vector[: size * count].reshape((count, size, *vector.shape[1:]))


def check_neutral(fold: Fold, inits: Sequence[Values], total: State) -> None:
    """UserError when combining with `init` changes the result though it must not."""
    if not init_is_neutral(fold.op):
        return
    joined = fold.join([*inits], total)
    for number, (value, same) in enumerate(zip(total, joined, strict=True)):
        differs = (value != same) & ((value == value) | (same == same))
        if fold.batch.mask is not None:
            differs = differs & fold.batch.mask
        if np.any(differs):
            raise UserError(
                f"init {number} of '{fold.op.name}' is not neutral for its combine region",
                "combining with init must change nothing, because partial results start from it",
                "start from the neutral value and add the rest afterwards",
                location=location_of(fold.op),
            )


@dataclass(frozen=True)
class Ufunc:
    """A ufunc that is one accumulator's whole element function, on operands seen as `dtype`."""

    ufunc: np.ufunc
    dtype: np.dtype[Any]

    def over(self, method: Callable[..., Values], vector: Values) -> Values:
        """`ufunc.reduce` or `ufunc.accumulate` over the first dimension."""
        return method(vector.view(self.dtype), axis=0, dtype=self.dtype).view(vector.dtype)


def ufuncs_of(op: FoldOp) -> Sequence[Ufunc] | None:
    """The ufunc of each accumulator, when the body is just that, on integers; else None."""
    from cim_opt.passes.pattern_neutral import neutral_elements

    if op.combine is not None or neutral_elements(op) is None:
        return None
    found = [_ufunc(value) for value in op.yielded()]
    return None if None in found else [ufunc for ufunc in found if ufunc is not None]


def _ufunc(value: SSAValue) -> Ufunc | None:
    owner, dtype = value.owner, dtype_of(value.type)
    assert isinstance(owner, Operation)
    if dtype.kind == "f":
        return None
    function = function_of(owner)
    if owner.name in BINARY_UNSIGNED and dtype.kind == "i":
        function, dtype = BINARY_UNSIGNED[owner.name], unsigned_of(dtype)
    return Ufunc(function, dtype) if isinstance(function, np.ufunc) else None
