"""Packed tensors against the description of a layout, one element at a time in plain Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.mapping import cim_layout
from cim_opt.mapping.cim_layout import (
    Array,
    Expression,
    Layout,
    LayoutError,
    layout_cycles,
    pack,
    unpack,
)

Terms = Sequence[int]


def affine(terms: Terms, constant: int = 0) -> Expression:
    """The sum of terms[n] * d[n], and a constant."""

    def function(axes: Sequence[Array]) -> Array:
        products = (t * d for t, d in zip(terms, axes, strict=True) if t)
        return np.asarray(sum(products, start=np.array(constant)))

    return Expression(function, frozenset(n for n, t in enumerate(terms) if t))


def place(layout: Layout, d: Sequence[int]) -> tuple[int, ...] | None:
    """The index of a packed element in the tensor, None for nowhere: as the docs say it."""
    axes = [np.array(x) for x in d]
    rows = [int(r.function(axes)) for r in layout.rows]
    if layout.dropped is not None and rows in layout.dropped.tolist():
        return None
    coordinates: list[int] = []
    for n, expression in enumerate(layout.coordinates):
        value = int(expression.function(axes))
        value += sum(int(t[row, n]) for t, row in zip(layout.tables, rows, strict=True))
        divisor = 1 if layout.divisors is None else layout.divisors[n]
        if value % divisor or not 0 <= value // divisor < layout.bounds[n]:
            return None
        coordinates.append(value // divisor)
    index = [int(e.function([np.array(c) for c in coordinates])) for e in layout.index]
    inside = all(0 <= i < extent for i, extent in zip(index, layout.tensor_shape, strict=True))
    return tuple(index) if inside else None


def packed_slowly(layout: Layout, tensor: Array) -> list[int]:
    places = [place(layout, d) for d in np.ndindex(*layout.shape)]
    return [0 if p is None else int(tensor[p]) for p in places]


def unpacked_slowly(layout: Layout, packed: Array) -> Array | None:
    """None unless every element of the tensor has one packed element."""
    tensor = np.zeros(layout.tensor_shape, packed.dtype)
    seen = np.zeros(layout.tensor_shape, np.int64)
    for value, d in zip(packed, np.ndindex(*layout.shape), strict=True):
        index = place(layout, d)
        if index is not None:
            tensor[index] = value
            seen[index] += 1
    return tensor if (seen == 1).all() else None


SMALL = st.integers(-2, 3)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    coordinates = draw(st.integers(0, 3))
    rank, tables = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    lengths = [draw(st.integers(1, 4)) for _ in range(tables)]

    def terms(count: int, numbers: Any = SMALL) -> list[int]:
        return [draw(numbers) for _ in range(count)]

    # Rows stay in their tables: one axis at most, and shorter ones.
    rows: list[Expression] = []
    for length in lengths:
        usable = [a for a, n in enumerate(shape) if n <= length]
        axis = draw(st.sampled_from([None, *usable]))
        rows.append(affine([int(a == axis) for a in range(len(shape))]))
    numbers = st.integers(-3, 5) | st.just(-(1 << 30))
    combinations = st.lists(st.tuples(*(st.integers(0, 4) for _ in lengths)))
    dropped = draw(st.none() | combinations) if tables else None
    some = st.none() | st.tuples(*(st.integers(1, 3) for _ in range(coordinates)))
    return Layout(
        shape=shape,
        rows=tuple(rows),
        coordinates=tuple(affine(terms(len(shape)), draw(SMALL)) for _ in range(coordinates)),
        bounds=tuple(draw(st.integers(1, 6)) for _ in range(coordinates)),
        index=tuple(affine(terms(coordinates), draw(SMALL)) for _ in range(rank)),
        tables=tuple(
            np.array([terms(coordinates, numbers) for _ in range(n)], np.int64).reshape(
                n, coordinates
            )
            for n in lengths
        ),
        tensor_shape=tuple(draw(st.integers(0, 4)) for _ in range(rank)),
        divisors=draw(some),
        dropped=None
        if dropped is None
        else np.array(dropped, np.int64).reshape(len(dropped), tables),
    )


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
@settings(max_examples=150, deadline=None)
@given(layout=layouts(), data=st.data())
def test_packing_is_what_the_description_says(layout: Layout, data: st.DataObject, chunk: int):
    tensor = np.arange(1, prod(layout.tensor_shape) + 1).reshape(layout.tensor_shape)
    packed = np.arange(1, layout.count + 1)
    largest = data.draw(st.sampled_from([0, cim_layout.LARGEST_MASK]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cim_layout, "CHUNK", chunk)
        patch.setattr(cim_layout, "LARGEST_MASK", largest)
        assert pack(layout, tensor).tolist() == packed_slowly(layout, tensor)
        expected = unpacked_slowly(layout, packed)
        if expected is not None:
            assert np.array_equal(unpack(layout, packed), expected)
            return
        with pytest.raises(LayoutError, match="packed elements; each has exactly one"):
            unpack(layout, packed)


def windows(width: int = 5, pad: int = 0) -> Layout:
    """Packed element (g, r) is element g + r - pad of a vector."""
    return Layout(
        shape=(4, 2),
        rows=(),
        coordinates=(affine((1, 1)),),
        bounds=(width,),
        index=(affine((1,), -pad),),
        tables=(),
        tensor_shape=(width - 2 * pad,),
    )


def test_windows_of_a_vector() -> None:
    assert pack(windows(), np.array([1, 2, 3, 4, 5])).tolist() == [1, 2, 2, 3, 3, 4, 4, 5]
    assert pack(windows(pad=1), np.array([2, 3, 4])).tolist() == [0, 2, 2, 3, 3, 4, 4, 0]


def test_unpacking_needs_one_packed_element_for_each() -> None:
    with pytest.raises(LayoutError) as error:
        unpack(windows(), np.zeros(8, np.int32))
    assert str(error.value) == (
        "element [1] of the tensor has 2 packed elements; each has exactly one"
    )
    none = Layout((0,), (), (affine((1,)),), (5,), (affine((1,)),), (), (2,))
    with pytest.raises(LayoutError, match=r"element \[0\] of the tensor has 0 packed elements"):
        unpack(none, np.zeros(0, np.int32))


def plain(count: int, extent: int) -> Layout:
    return Layout((count,), (), (affine((1,)),), (count,), (affine((1,)),), (), (extent,))


def test_junk_may_lie_outside_only() -> None:
    junk = np.array([False, False, True])
    assert unpack(plain(3, 2), np.array([7, 8, 9]), junk).tolist() == [7, 8]
    with pytest.raises(LayoutError, match="packed element 2 holds nothing that was computed"):
        unpack(plain(3, 3), np.array([7, 8, 9]), junk)


@pytest.mark.parametrize(("start", "row"), [(-1, -1), (2, 4)])
def test_rows_lie_in_their_table(start: int, row: int) -> None:
    rows = (affine((1,), start),)
    table = np.zeros((3, 1), np.int64)
    layout = Layout((3,), rows, (affine((1,)),), (3,), (affine((1,)),), (table,), (3,))
    with pytest.raises(LayoutError, match=f"row {row} of table 0; the table has 3 rows"):
        pack(layout, np.arange(3))


def test_ten_million_elements_take_less_than_a_second() -> None:
    """Inputs of a convolution of 7 x 7 over 96 channels, a window of rows for every step."""
    table = np.array([[0, r // 8, r % 8] for r in range(64)])
    layout = Layout(
        shape=(96, 32, 56, 64),
        rows=(affine((0, 0, 0, 1)),),
        coordinates=(affine((1, 0, 0, 0)), affine((0, 1, 0, 0)), affine((0, 0, 1, 0))),
        bounds=(96, 62, 62),
        index=(affine((1, 0, 0)), affine((0, 1, 0), -3), affine((0, 0, 1), -3)),
        tables=(table,),
        tensor_shape=(96, 56, 56),
    )
    tensor = np.random.default_rng(1).integers(-128, 128, (96, 56, 56)).astype(np.int8)
    begun = time.process_time()
    packed = pack(layout, tensor)
    assert time.process_time() - begun < 1.0
    assert packed.size == 96 * 32 * 56 * 64 > 10_000_000
    for d in ((0, 0, 0, 0), (5, 20, 30, 63), (95, 31, 55, 17), (40, 0, 3, 2)):
        index = place(layout, d)
        got = packed.reshape(layout.shape)[d]
        assert got == (0 if index is None else tensor[index])


def test_offsets_beyond_32_bits() -> None:
    """Places of a large tensor are found although none of it is stored."""
    layout = Layout(
        shape=(3,),
        rows=(),
        coordinates=(affine((1,)),),
        bounds=(3,),
        index=(affine((1 << 30,)), affine((0,), 5)),
        tables=(),
        tensor_shape=((1 << 31) + 1, 7),
    )
    ((_, places),) = layout.offsets()
    assert places.tolist() == [5, (1 << 30) * 7 + 5, (1 << 31) * 7 + 5]


def test_cycles_of_a_conversion() -> None:
    assert layout_cycles(64, 65, 64) == 3
    assert layout_cycles(0, 0, 64) == 0
    assert layout_cycles(1, 128, 32) == 5


@settings(max_examples=50, deadline=None)
@given(shape=st.tuples(*(st.integers(1, 6) for _ in range(3))), data=st.data())
def test_unpacking_undoes_packing(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Axes in any order, with more packed elements along each than the tensor has."""
    order = data.draw(st.permutations(range(3)))
    more = data.draw(st.tuples(*(st.integers(0, 2) for _ in range(3))))
    layout = Layout(
        shape=tuple(shape[axis] + more[axis] for axis in order),
        rows=(),
        coordinates=tuple(affine([int(axis == a) for axis in order]) for a in range(3)),
        bounds=tuple(n + 1 for n in shape),
        index=tuple(affine([int(a == n) for n in range(3)]) for a in range(3)),
        tables=(),
        tensor_shape=shape,
    )
    tensor = np.arange(1, prod(shape) + 1, dtype=np.int16).reshape(shape)
    packed = pack(layout, tensor)
    assert np.count_nonzero(packed) == tensor.size
    assert np.array_equal(unpack(layout, packed), tensor)
