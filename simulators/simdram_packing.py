"""Words to packed rows and back: the transposition unit, in NumPy.

Row i holds bit i of all lanes, 64 lanes a word, lane 0 in the lowest bit. Lanes that fill up the
last word are zeros.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cim_opt.simulators.simdram_words import Words, word_dtype

Rows = npt.NDArray[np.uint64]


def words_of_row(lanes: int) -> int:
    """How many 64-bit words one row of so many lanes takes."""
    return -(-lanes // 64)


def to_rows(words: Words, width: int) -> Rows:
    """The `width` rows of elements; row by row, from the bytes that hold each bit."""
    rows = np.zeros((width, words_of_row(len(words))), np.uint64)
    packed = rows.view(np.uint8)
    used = -(-len(words) // 8)
    elements = words.view(np.uint8).reshape(len(words), words.itemsize)
    for first in range(0, width, 8):
        plane = np.ascontiguousarray(elements[:, first // 8])
        for bit in range(min(8, width - first)):
            # Any number but 0 packs as a 1.
            packed[first + bit, :used] = np.packbits(plane & (1 << bit), bitorder="little")
    return rows


def from_rows(rows: Rows, lanes: int) -> Words:
    """The elements of `lanes` lanes, in the smallest unsigned dtype that holds the rows."""
    width = len(rows)
    words = np.zeros(lanes, word_dtype(width))
    packed = rows.view(np.uint8)
    elements = words.view(np.uint8).reshape(lanes, words.itemsize)
    for first in range(0, width, 8):
        plane = np.zeros(lanes, np.uint8)
        for bit in range(min(8, width - first)):
            plane |= np.unpackbits(packed[first + bit], count=lanes, bitorder="little") << bit
        elements[:, first // 8] = plane
    return words
