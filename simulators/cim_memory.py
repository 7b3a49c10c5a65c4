"""The memories of a machine of compute-in-memory macros: bytes, and which of them were written.

Copies and sums carry along which bytes are known. A macro traps when it multiplies an unknown byte
by a weight that is not 0, and a result traps when an unknown byte of it is used; so a register may
be loaded in part, and results that nobody wants may be stored.
"""

from __future__ import annotations

from mmap import mmap
from typing import Any

import numpy as np
from xdsl.ir import Operation

from cim_opt.dialects.cim import Memory
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.locations import location_of

Array = np.ndarray[Any, np.dtype[Any]]

LARGE = 1 << 20
"""Bytes from which a memory is made page by page, when it is touched."""

UNKNOWN = b"\0"

WORD = 4
"""Bytes of an output of a macro, and of an element of a vector."""


def title(memory: Memory) -> str:
    """What a message calls a memory."""
    text = memory.value.replace("_", " ")
    return text if text.endswith("register") else f"{text} memory"


def _zeros(size: int) -> bytearray | mmap:
    """Zeros; of a large memory, those pages are made that are touched."""
    return bytearray(size) if size < LARGE else mmap(-1, size)


class Bytes:
    """One memory. `known[a]` is 1 when byte a was written from what is known."""

    def __init__(self, memory: Memory, size: int):
        self.name = title(memory)
        self.size = size
        self.data = _zeros(size)
        self.known = _zeros(size)
        self.words = np.frombuffer(self.data, np.int32, size // WORD)

    def place(self, address: int, data: bytes) -> None:
        """Writes bytes that are known."""
        self.data[address : address + len(data)] = data
        self.known[address : address + len(data)] = b"\1" * len(data)

    def all_known(self, start: int, stop: int) -> bool:
        """Whether all bytes from `start` up to `stop` are known."""
        return self.known.find(UNKNOWN, start, stop) < 0

    def known_words(self, start: int, count: int) -> Array:
        """Which of `count` words are known: one unknown byte leaves nothing of a sum known."""
        known = np.frombuffer(self.known, np.bool_, count * WORD, start)
        return np.asarray(known.reshape(count, WORD).all(axis=1))

    def check(self, op: Operation, address: int, count: int, word: bool = False) -> None:
        """Traps unless `count` bytes from `address` lie inside, for words on a multiple of 4."""
        if address < 0 or address + count > self.size:
            raise UserError(
                f"'{op.name}' uses bytes {address} to {address + count - 1} of the {self.name}",
                f"it has {self.size:,} bytes, from 0",
                "compute other addresses, or use a machine with more memory",
                location_of(op),
            )
        if word and address % WORD:
            raise UserError(
                f"'{op.name}' uses 32-bit elements at byte {address} of the {self.name}",
                "such an address is a multiple of 4",
                "align the data",
                location_of(op),
            )


class Weights:
    """What the macros hold: `data` (macros, rows, bytes of a row); how many rows have been loaded.

    `numbers` keeps by macros, rows and width the weights (macros, rows, columns) as floats, and
    which rows have a weight that is not 0, until weights are loaded again.
    """

    def __init__(self, machine: CimMachine):
        shape = machine.macros, machine.rows, machine.bit_columns // 8
        self.data = np.zeros(shape, np.uint8)
        self.rows = np.zeros(machine.macros, np.int64)
        self.numbers: dict[tuple[int, int, int], tuple[Array, Array]] = {}


class MachineState:
    """All that a program sees; it starts empty."""

    def __init__(self, machine: CimMachine):
        self.machine = machine
        self.memories = {memory: Bytes(memory, machine.capacity(memory.value)) for memory in Memory}
        self.weights = Weights(machine)
