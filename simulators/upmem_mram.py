"""The MRAM of a set of DPUs, and what the host copies into and out of it.

Nobody allocates 64 MiB for each DPU: memory is held for the ranges that were touched, as regions
of bytes of shape (DPUs, bytes), which grow and join. What was never written holds a fixed pattern,
so that a result which depends on it is wrong each time and not only now and then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

UNWRITTEN = 0xA5
"""Every byte of memory that was never written."""

ALIGN = 8

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]


def fill_unwritten(array: Array) -> None:
    """Gives memory the pattern of what was never written (for i1: true)."""
    array.view(np.uint8).fill(1 if array.dtype == np.bool_ else UNWRITTEN)


class Region:
    """Bytes `start` ... of the MRAM of every DPU."""

    __slots__ = ("data", "start")

    def __init__(self, start: int, data: Bytes):
        self.start = start
        self.data = data

    @property
    def stop(self) -> int:
        return self.start + self.data.shape[1]

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The region as elements, (DPUs, elements)."""
        if dtype == np.bool_:
            return self.data.view(np.bool_)
        return self.data.view(dtype)


class Mram:
    """The MRAM of `dpus` DPUs of `size` bytes each."""

    def __init__(self, dpus: int, size: int):
        self.dpus = dpus
        self.size = size
        self.regions: list[Region] = []
        self.written: list[tuple[int, int]] = []

    def cover(self, start: int, stop: int, room: int | None = None) -> Region:
        """The region that holds bytes start ... stop-1, made, grown or joined when there is none.

        `room` is the end of the array that grows: memory may be held up to there, so that a
        region that grows block by block is not copied for each.
        """
        for region in self.regions:
            if region.start <= start and stop <= region.stop:
                return region
        start -= start % ALIGN
        stop += -stop % ALIGN
        near = [r for r in self.regions if r.start < stop and start < r.stop]
        first = min([start, *(r.start for r in near)])
        last = max([stop, *(r.stop for r in near)])
        if room is not None and near:
            last = max(last, min(self._free_until(last), room + -room % ALIGN, 2 * last - first))
        return self._join(first, last, near)

    def _free_until(self, start: int) -> int:
        return min([self.size, *(r.start for r in self.regions if r.start >= start)])

    def _join(self, first: int, last: int, near: list[Region]) -> Region:
        data = np.empty((self.dpus, last - first), np.uint8)
        position = first
        for old in sorted(near, key=lambda r: r.start):
            data[:, position - first : old.start - first] = UNWRITTEN
            data[:, old.start - first : old.stop - first] = old.data
            position = old.stop
        data[:, position - first :] = UNWRITTEN
        self.regions = [r for r in self.regions if r not in near]
        region = Region(first, data)
        self.regions.append(region)
        return region

    def note_written(self, start: int, stop: int) -> None:
        """Remembers that something in start ... stop-1 was written."""
        joined = (start, stop)
        rest: list[tuple[int, int]] = []
        for old in self.written:
            if old[0] <= joined[1] and joined[0] <= old[1]:
                joined = (min(old[0], joined[0]), max(old[1], joined[1]))
            else:
                rest.append(old)
        self.written = [*rest, joined]

    def was_written(self, start: int, stop: int) -> bool:
        """Whether anything in start ... stop-1 was ever written."""
        return any(first < stop and start < last for first, last in self.written)

    # -- what the host does --------------------------------------------------------------------

    def push(self, source: Array, start: int, count: int, stride: int, offset: int) -> None:
        """DPU d gets source[start + d*stride ... + count], zeros past the end, at byte `offset`."""
        size = source.dtype.itemsize
        target = self._elements(offset, count, source.dtype)
        length = len(source)
        inside = self.dpus
        if start + (self.dpus - 1) * stride + count > length:
            inside = 0 if start + count > length else (length - count - start) // stride + 1
        if inside:
            whole = as_strided(source[start:], (inside, count), (stride * size, size))
            np.copyto(target[:inside], whole)
        if inside < self.dpus:
            # What is left of the source, with zeros behind it for all other DPUs.
            first = min(start + inside * stride, length)
            others = self.dpus - inside
            used = (others - 1) * stride + count
            tail = np.zeros(used, source.dtype)
            given = source[first : first + used]
            tail[: len(given)] = given
            np.copyto(target[inside:], as_strided(tail, (others, count), (stride * size, size)))
        self.note_written(offset, offset + count * size)

    def broadcast(self, source: Array, offset: int) -> int:
        """Every DPU gets the source and zeros up to a multiple of 8 bytes; gives their number."""
        size = len(source) * source.dtype.itemsize
        padded = size + -size % ALIGN
        if not padded:
            return 0
        region = self.cover(offset, offset + padded)
        target = region.data[:, offset - region.start : offset - region.start + padded]
        target[:, size:] = 0
        target[:, :size] = np.ascontiguousarray(source).view(np.uint8)
        self.note_written(offset, offset + padded)
        return padded

    def pull(self, offset: int, count: int, dest: Array, position: int) -> None:
        """dest[position + d*count ... + count] becomes what DPU d has; the overhang is dropped."""
        source = self._elements(offset, count, dest.dtype)
        whole = min(self.dpus, max(0, (len(dest) - position) // count))
        end = position + whole * count
        np.copyto(dest[position:end].reshape(whole, count), source[:whole])
        if whole < self.dpus:
            rest = dest[end:]
            rest[...] = source[whole, : len(rest)]

    def _elements(self, offset: int, count: int, dtype: np.dtype[Any]) -> Array:
        """`count` elements at byte `offset` of each DPU, as a view (DPUs, count)."""
        size = dtype.itemsize
        region = self.cover(offset, offset + count * size)
        first = (offset - region.start) // size
        return region.view(dtype)[:, first : first + count]
