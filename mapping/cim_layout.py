"""Where each element of a packed tensor lies in the tensor that it was packed from.

    layout = Layout(shape, rows, coordinates, bounds, index, tables, (1, 56, 56))
    packed = pack(layout, tensor)
    tensor = unpack(layout, packed)

A packed element at d of `shape` has coordinates: those of d, plus one row of each table. Indices of
the tensor are computed from the coordinates. A packed element has no place in the tensor when a
coordinate lies outside its bounds or does not divide, when an index lies outside the tensor, or
when it is dropped: it is packed as 0, and left out when unpacked. Work is done in chunks that stay
in the cache, each value computed only over the axes of `shape` that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Expression:
    """A number computed from others, of which it needs those named in `uses`.

    `function` takes one array for each of the others, which broadcast against each other.
    """

    function: Callable[[Sequence[Array]], Array]
    uses: frozenset[int]


CHUNK = 1 << 18
"""Packed elements handled at once."""

LARGEST_MASK = 1 << 24
"""Largest table of dropped combinations of rows; beyond it they are searched."""


class LayoutError(ValueError):
    """A layout that makes no sense for its tensor: what; the limit."""

    def __init__(self, what: str, limit: str):
        super().__init__(f"{what}; {limit}")
        self.what = what
        self.limit = limit


@dataclass(frozen=True)
class Layout:
    """One arrangement of a tensor.

    `shape` is the shape of the packed elements, which are stored one after another; `tensor_shape`
    that of the tensor. `rows` gives, from d, the row of each of `tables`, arrays (rows,
    coordinates). `coordinates` gives from d what the rows are added to. `divisors` divide the sums,
    `bounds` limit them, and `index` makes them indices of the tensor. `dropped` (n, tables) are
    combinations of rows without an element.
    """

    shape: tuple[int, ...]
    rows: tuple[Expression, ...]
    coordinates: tuple[Expression, ...]
    bounds: tuple[int, ...]
    index: tuple[Expression, ...]
    tables: tuple[Array, ...]
    tensor_shape: tuple[int, ...]
    divisors: tuple[int, ...] | None = None
    dropped: Array | None = None

    @property
    def count(self) -> int:
        """Packed elements."""
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Elements of the tensor."""
        return prod(self.tensor_shape)

    def offsets(self) -> Iterator[tuple[int, Array]]:
        """Chunks: the number of the first packed element, and for all of them, flat, their places.

        A place is the row-major number of an element of the tensor, or `size` for none.
        """
        finder = _Finder(self)
        start = 0
        for axes in _chunks(self.shape):
            places = finder.places(axes)
            yield start, places
            start += places.size


def pack(layout: Layout, tensor: Array) -> Array:
    """The packed elements, flat, 0 where there is none in the tensor. Raises LayoutError."""
    source = np.zeros(layout.size + 1, tensor.dtype)
    source[:-1] = tensor.reshape(-1)
    packed = np.empty(layout.count, tensor.dtype)
    for start, places in layout.offsets():
        np.take(source, places, out=packed[start : start + places.size], mode="clip")
    return packed


def unpack(
    layout: Layout, packed: Array, junk: Array | None = None, partial: bool = False
) -> Array:
    """The tensor, of `tensor_shape`, from its packed elements.

    `junk` (packed elements, bool) says which of them hold nothing that may be used. Raises
    LayoutError unless each element of the tensor has exactly one packed element, which is not junk;
    with `partial` it may have none, and is 0.
    """
    # The last element takes what lies outside.
    result = np.zeros(layout.size + 1, packed.dtype)
    seen = np.zeros(layout.size + 1, np.bool_)
    inside = 0
    for start, places in layout.offsets():
        stop = start + places.size
        result[places] = packed[start:stop]
        seen[places] = True
        inside += int(np.count_nonzero(places < layout.size))
        if junk is not None:
            _check_junk(layout, junk[start:stop] & (places < layout.size), start)
    taken = int(np.count_nonzero(seen[:-1]))
    if inside != taken or (taken != layout.size and not partial):
        raise _not_one_each(layout, 1 if partial else 0)
    return result[:-1].reshape(layout.tensor_shape)


def _check_junk(layout: Layout, wrong: Array, start: int) -> None:
    if wrong.any():
        raise LayoutError(
            f"packed element {start + int(np.argmax(wrong))} holds nothing that was computed",
            "every element of the tensor comes from bytes that were written",
        )


def _not_one_each(layout: Layout, spare: int) -> LayoutError:
    """The error for an element with too many packed elements, or too few unless one is spared."""
    counts = np.zeros(layout.size + 1, np.int64)
    for _, places in layout.offsets():
        counts += np.bincount(places, minlength=layout.size + 1)
    wrong = int(np.argmax((counts[:-1] > 1) | (counts[:-1] < 1 - spare)))
    index = tuple(int(i) for i in np.unravel_index(wrong, layout.tensor_shape))
    return LayoutError(
        f"element {list(index)} of the tensor has {counts[wrong]} packed elements",
        "each has at most one" if spare else "each has exactly one",
    )


def layout_cycles(read: int, written: int, port: int) -> int:
    """Cycles of a conversion through a memory port of `port` bytes: bytes in, then bytes out."""
    return -(-read // port) - (-written // port)


def _chunks(shape: Sequence[int]) -> Iterator[list[Array]]:
    """Index arrays, one an axis, that broadcast to at most about CHUNK elements in order."""
    if not prod(shape):
        return
    split = 0
    while split < len(shape) and prod(shape[split + 1 :]) > CHUNK:
        split += 1
    if split == len(shape):
        yield []
        return
    step = max(1, CHUNK // prod(shape[split + 1 :]))
    inner = [_axis(np.arange(n), a, len(shape)) for a, n in enumerate(shape)]
    for outer in np.ndindex(*shape[:split]):
        fixed = [_axis(np.array([i]), a, len(shape)) for a, i in enumerate(outer)]
        for start in range(0, shape[split], step):
            stop = min(start + step, shape[split])
            part = _axis(np.arange(start, stop), split, len(shape))
            yield [*fixed, part, *inner[split + 1 :]]


def _axis(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if a == axis else 1 for a in range(rank)])


class _Finder:
    """Computes places, with what all chunks share."""

    def __init__(self, layout: Layout):
        self.layout = layout
        rank = len(layout.tensor_shape)
        self.strides = [prod(layout.tensor_shape[a + 1 :]) for a in range(rank)]
        # What lies outside counts as `size` or more, however many reasons there are.
        reasons = rank + len(layout.bounds) + 1
        self.dtype = np.dtype(np.int32 if layout.size * reasons < 1 << 31 else np.int64)
        self.mask = self._dropped_mask()

    def places(self, axes: Sequence[Array]) -> Array:
        """Places of a chunk, flat."""
        layout = self.layout
        rows = [expression.function(axes) for expression in layout.rows]
        self._check_rows(rows)
        found = [self._coordinate(n, axes, rows) for n in range(len(layout.bounds))]
        coordinates, fits = [c for c, _ in found], {n: ok for n, (_, ok) in enumerate(found)}
        total = np.zeros([1] * len(axes), self.dtype)
        for axis in range(len(layout.index)):
            total = total + self._contribution(axis, coordinates, fits)
        for fit in fits.values():
            total = total + self._outside(fit)
        if layout.dropped is not None and layout.dropped.size:
            total = total + self._outside(~self._is_dropped(rows))
        shape = [axis.size for axis in axes]
        return np.minimum(np.broadcast_to(total, shape), layout.size).reshape(-1)

    def _coordinate(
        self, number: int, axes: Sequence[Array], rows: Sequence[Array]
    ) -> tuple[Array, Array]:
        """A coordinate, and where it divides and lies in its bounds."""
        layout = self.layout
        value = layout.coordinates[number].function(axes)
        for table, row in zip(layout.tables, rows, strict=True):
            value = value + table[row, number]
        divisor = 1 if layout.divisors is None else layout.divisors[number]
        if divisor == 1:
            return value, (value >= 0) & (value < layout.bounds[number])
        quotient = value // divisor
        inside = (quotient >= 0) & (quotient < layout.bounds[number])
        return quotient, inside & (value == quotient * divisor)

    def _contribution(
        self, axis: int, coordinates: Sequence[Array], fits: dict[int, Array]
    ) -> Array:
        """What an index adds to the place; `size` when it or a coordinate of it lies outside.

        Takes out of `fits` what is dealt with here.
        """
        layout = self.layout
        index = layout.index[axis].function(coordinates)
        inside = (index >= 0) & (index < layout.tensor_shape[axis])
        for number in layout.index[axis].uses & fits.keys():
            inside = inside & fits.pop(number)
        return np.where(inside, index * self.strides[axis], layout.size).astype(self.dtype)

    def _outside(self, fits: Array) -> Array:
        return np.where(fits, 0, self.layout.size).astype(self.dtype)

    def _check_rows(self, rows: Sequence[Array]) -> None:
        for number, (table, row) in enumerate(zip(self.layout.tables, rows, strict=True)):
            low, high = int(row.min()), int(row.max())
            if low < 0 or high >= len(table):
                raise LayoutError(
                    f"row {low if low < 0 else high} of table {number}",
                    f"the table has {len(table)} rows",
                )

    def _dropped_mask(self) -> Array | None:
        """All combinations of rows, true for the dropped ones; None when they are too many."""
        dropped = self.layout.dropped
        lengths = [len(table) for table in self.layout.tables]
        if dropped is None or prod(lengths) > LARGEST_MASK:
            return None
        mask = np.zeros(lengths, np.bool_)
        fits = ((dropped >= 0) & (dropped < np.array(lengths))).all(axis=1)
        mask[tuple(dropped[fits].T)] = True
        return mask

    def _is_dropped(self, rows: Sequence[Array]) -> Array:
        if self.mask is not None:
            return self.mask[tuple(rows)]
        dropped = self.layout.dropped
        assert dropped is not None
        lengths = [len(table) for table in self.layout.tables]
        fits = ((dropped >= 0) & (dropped < np.array(lengths))).all(axis=1)
        return np.isin(_numbered(rows, lengths), _numbered(list(dropped[fits].T), lengths))


def _numbered(rows: Sequence[Array], lengths: Sequence[int]) -> Array:
    """One number for each combination of rows."""
    number = np.zeros((), np.int64)
    for row, length in zip(rows, lengths, strict=True):
        number = number * length + row
    return number
