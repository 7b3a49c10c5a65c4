"""Numbers to rows of bits and back: row i holds bit i of every number, 64 lanes a word."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim_opt.microprograms.packed import LANES, Words

Numbers = NDArray[Any]


def words_for(lanes: int) -> int:
    """How many 64-bit words hold so many lanes."""
    return -(-lanes // LANES)


def _stored_bytes(width: int) -> int:
    """The bytes of the smallest integer type of at least `width` bits."""
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def to_vertical(numbers: Numbers, width: int, words: int | None = None) -> Words:
    """The low `width` bits of a one-dimensional integer or bool array, as rows (width, words).

    `words` is at least what the numbers need (the default); lanes without a number are 0.
    Bits that the type of the numbers does not have repeat the sign of signed types, else are 0.
    """
    needed = words_for(numbers.size)
    words = needed if words is None else words
    if words < needed:
        raise ValueError(f"{numbers.size} lanes do not fit {words} words")
    size = numbers.dtype.itemsize
    columns = np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, size)
    rows = np.zeros((width, words), np.uint64)
    octets = rows.view(np.uint8)
    used = -(-numbers.size // 8)
    lanes = np.zeros(8 * used, np.uint8)
    for octet in range(min(size, -(-width // 8))):
        lanes[: numbers.size] = columns[:, octet]
        part = _transposed(lanes.view(np.uint64).copy()).reshape(-1, 8)
        start, stop = 8 * octet, min(8 * octet + 8, width)
        octets[start:stop, :used] = part[:, : stop - start].T
    if numbers.dtype.kind == "i" and width > 8 * size:
        rows[8 * size :] = rows[8 * size - 1]
    return rows


def from_vertical(rows: Words, count: int, signed: bool = False) -> Numbers:
    """The first `count` numbers of rows (width, words), in the smallest type of that width.

    With `signed`, the highest row is the sign.
    """
    width = rows.shape[0]
    size = _stored_bytes(width)
    result = np.zeros((count, size), np.uint8)
    octets = np.ascontiguousarray(rows).view(np.uint8)[:, : -(-count // 8)]
    for octet in range(size):
        part = octets[8 * octet : 8 * octet + 8]
        if signed and part.shape[0] < 8:
            missing = np.broadcast_to(octets[-1], (8 - part.shape[0], octets.shape[1]))
            part = np.concatenate([part, missing])
        if part.shape[0]:
            result[:, octet] = _lanes(part)[:count]
    kind = "i" if signed else "u"
    return result.view(np.dtype(f"{kind}{size}")).reshape(count)


def _lanes(part: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Up to eight rows of packed lanes (bits, bytes) as one byte a lane, row 0 its lowest bit."""
    matrices = np.zeros((part.shape[1], 8), np.uint8)
    matrices[:, : part.shape[0]] = part.T
    return _transposed(matrices.view(np.uint64).reshape(-1))


def _transposed(x: Words) -> NDArray[np.uint8]:
    """Each word as a matrix of eight by eight bits, transposed in place; as bytes.

    Swaps single bits, then pairs, then fours across the diagonal.
    """
    for shift, mask in (
        (7, 0x00AA00AA00AA00AA),
        (14, 0x0000CCCC0000CCCC),
        (28, 0x00000000F0F0F0F0),
    ):
        swapped = (x ^ (x >> np.uint64(shift))) & np.uint64(mask)
        x ^= swapped
        swapped <<= np.uint64(shift)
        x ^= swapped
    return x.view(np.uint8)
