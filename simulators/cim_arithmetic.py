"""Products of macros, exact, and numbers of 4, 8 and 16 bits in bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def product_dtype(rows: int, bits: int) -> np.dtype[Any]:
    """A type in which a sum of `rows` products of signed `bits`-bit numbers is exact.

    Floats, for their fast products, where every partial sum is an integer that they hold.
    """
    largest = rows << (2 * (bits - 1))
    if largest < 1 << 24:
        return np.dtype(np.float32)
    if largest < 1 << 53:
        return np.dtype(np.float64)
    return np.dtype(np.int64)


def wrapped(sums: Array) -> Array:
    """Exact sums as 32-bit integers, wrapped around."""
    if sums.dtype == np.float32:
        return sums.astype(np.int32)
    return sums.astype(np.int64).astype(np.int32)


def unpacked(data: Array, bits: int) -> Array:
    """Signed numbers from bytes (uint8, last axis): low half first, or low byte first."""
    if bits == 8:
        return data.view(np.int8)
    if bits == 16:
        return np.ascontiguousarray(data).view("<i2")
    halves = np.stack([data << 4, data & 0xF0], axis=-1).view(np.int8) >> 4
    return halves.reshape(*data.shape[:-1], -1)


def input_bytes(bits: int) -> int:
    """Bytes of an element of the input register; one of 4 bits takes the low half of one."""
    return max(1, bits // 8)


def input_numbers(data: Array, bits: int) -> Array:
    """Signed numbers from elements of the input register (uint8, last axis)."""
    if bits == 4:
        return (data << 4).view(np.int8) >> 4
    return unpacked(data, bits)


def packed_bytes(values: Array, halves: bool) -> bytes:
    """The bytes of numbers in order; with `halves` two share a byte, the first in its low half."""
    if not halves:
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    flat = values.reshape(-1).astype(np.uint8) & 0xF
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return (flat[::2] | flat[1::2] << 4).tobytes()
