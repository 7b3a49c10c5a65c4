"""Transfers between MRAM and WRAM on all lanes: checks, race watch, and the move itself.

The usual case is fast: every lane moves the same number of elements, and the first elements of a
DPU's tasklets are evenly spaced and the same on all DPUs. Then a transfer of all lanes is one
strided copy, in slices of DPUs that stay in the processor's cache. Otherwise lanes are grouped by
their number of elements, and rows of elements are gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.simulators.upmem_lanes import Mask, Values, collapsed
from cim_opt.simulators.upmem_memory import Lanes, PrivateBuffer, SharedBuffer
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_races import MRAM_GRANULE, MramWatch
from cim_opt.simulators.upmem_site import Site, first_lane, value_at

Array = npt.NDArray[Any]
Buffer = PrivateBuffer | SharedBuffer
AtLane = Callable[[Values], int]
"""Gives the number that a value is on one lane."""

_LINE_BYTES = 64
_CACHE_BYTES = 1 << 19


class MramArray:
    """An array at byte `offset` of every DPU's MRAM, as a kernel sees it.

    `watched` are the phases in which something is written to it.
    """

    def __init__(
        self,
        mram: Mram,
        offset: int,
        length: int,
        dtype: np.dtype[Any],
        watched: frozenset[int],
        watch: MramWatch,
    ):
        self.mram = mram
        self.offset = offset
        self.length = length
        self.dtype = dtype
        self.size = dtype.itemsize
        self.watched = watched
        self.watch = watch
        self.watching = 0 in watched

    def start_phase(self, phase: int) -> None:
        self.watching = phase in self.watched

    def elements(self, stop: int, write: bool) -> tuple[Array, int]:
        """Memory as (DPUs, elements), and which of them is element 0; holds up to `stop`.

        What is written block by block is given room to grow.
        """
        end = self.offset + self.length * self.size if write else None
        region = self.mram.cover(self.offset, self.offset + stop * self.size, end)
        return region.view(self.dtype), (self.offset - region.start) // self.size


def move(
    machine: UpmemMachine,
    lanes: Lanes,
    array: MramArray,
    index: Values,
    buffer: Buffer,
    at: Values,
    count: Values,
    mask: Mask,
    write: bool,
    site: Site,
) -> None:
    """Moves `count` elements between array[index...] and buffer[at...] on the lanes of the mask.

    With `write` into MRAM. Raises UserError for a transfer that the machine cannot do, or that
    leaves an array.
    """
    count, at = collapsed(count), collapsed(at)
    _check(machine, lanes, array, index, at, count, mask, site)
    at = buffer.check(lanes, at, count, mask, site)
    low, stop = _extent(lanes, index, count, mask)
    memory, base = array.elements(stop, write)
    if write:
        first = array.offset + low * array.size
        array.mram.note_written(first, array.offset + stop * array.size)
    for number, group in _by_count(lanes, count, mask):
        if number == 0:
            continue
        if array.watching:
            _watch(lanes, array, index, number, group, write, site)
        buffer.note_run(lanes, at, number, group, not write, site)
        steps = _even_steps(index, group, lanes)
        if steps is not None and isinstance(buffer, PrivateBuffer) and isinstance(at, int):
            first, step = steps
            _move_evenly(memory, base + first, step, buffer, at, number, write)
        else:
            _move_rows(lanes, memory, base, index, buffer, at, number, group, write)


def _extent(lanes: Lanes, index: Values, count: Values, mask: Mask) -> tuple[int, int]:
    """The first element that any lane moves, and the one after the last."""
    if mask is not None:
        index, count = lanes.active(mask, index, count)
    return int(np.min(index)), int(np.max(index + count))


def _check(
    machine: UpmemMachine,
    lanes: Lanes,
    array: MramArray,
    index: Values,
    at: Values,
    count: Values,
    mask: Mask,
    site: Site,
) -> None:
    size = array.size
    align = machine.dma_align_bytes

    def refuse(bad: Any, what: Callable[[AtLane], str], limit: str, remedy: str) -> None:
        if not np.any(bad):
            return
        lane = first_lane(np.broadcast_to(bad, lanes.shape), mask, lanes.shape)
        if lane is not None:
            text = what(lambda value: int(value_at(value, *lane)))
            raise site.error(lane[0], lanes.tasklet_in(lane[1]), text, limit, remedy)

    amount = count * size
    refuse(
        (amount < machine.dma_min_bytes) | (amount > machine.dma_max_bytes),
        lambda at_lane: f"a transfer of {at_lane(amount)} bytes",
        f"a DMA moves {machine.dma_min_bytes} to {machine.dma_max_bytes} bytes",
        "split it, or skip what is empty",
    )
    refuse(
        amount % align != 0,
        lambda at_lane: f"a transfer of {at_lane(amount)} bytes",
        f"a DMA moves a multiple of {align} bytes",
        "round the count up, with room in both arrays",
    )
    refuse(
        (index < 0) | (index + count > array.length),
        lambda at_lane: (
            f"elements {at_lane(index)} to {at_lane(index + count) - 1} of the MRAM array at byte "
            f"{array.offset} are out of range"
        ),
        f"it has {array.length} elements",
        "check the index, or declare a longer array",
    )
    for name, first in (("MRAM", index * size), ("WRAM", at * size)):
        refuse(
            first % align != 0,
            _misaligned(name, first),
            f"DMA addresses are multiples of {align} bytes",
            f"start at a multiple of {-(-align // size)} elements",
        )


def _misaligned(name: str, first: Values) -> Callable[[AtLane], str]:
    return lambda at_lane: f"misaligned {name} address: byte {at_lane(first)} of its array"


def _by_count(lanes: Lanes, count: Values, mask: Mask) -> list[tuple[int, Mask]]:
    """The lanes of the mask, grouped by how many elements they move."""
    if not isinstance(count, np.ndarray):
        return [(int(count), mask)]
    numbers = np.unique(lanes.active(mask, count)[0])
    if len(numbers) == 1:
        return [(int(numbers[0]), mask)]
    same = [(int(number), count == number) for number in numbers]
    return [(number, group if mask is None else group & mask) for number, group in same]


def _even_steps(index: Values, mask: Mask, lanes: Lanes) -> tuple[int, int] | None:
    """First element and distance, when the tasklets' first elements are spaced evenly."""
    if mask is not None or lanes.tasklets != lanes.all_tasklets:
        return None
    if isinstance(index, int):
        return index, 0
    if index.shape[0] > 1 and not (index == index[:1]).all():
        return None
    row = index[0]
    if len(row) < 2:
        return int(row[0]), 0
    step = int(row[1] - row[0])
    if len(row) > 2 and not (np.diff(row) == step).all():
        return None
    return (int(row[0]), step) if step >= 0 else None


def _move_evenly(
    memory: Array, first: int, step: int, buffer: PrivateBuffer, at: int, count: int, write: bool
) -> None:
    """The same elements on all DPUs, `step` apart from tasklet to tasklet."""
    dpus, tasklets = buffer.data.shape[1:]
    row, size = memory.strides
    there = as_strided(memory[:, first:], (count, dpus, tasklets), (size, row, step * size))
    here = buffer.data[at : at + count]
    # Each element of a slice lies on a memory line of its own: they must stay in the cache.
    slice_dpus = max(1, _CACHE_BYTES // (tasklets * _LINE_BYTES * 2))
    for start in range(0, dpus, slice_dpus):
        part = slice(start, start + slice_dpus)
        if write:
            there[:, part] = here[:, part]
        else:
            here[:, part] = there[:, part]


def _move_rows(
    lanes: Lanes,
    memory: Array,
    base: int,
    index: Values,
    buffer: Buffer,
    at: Values,
    count: int,
    mask: Mask,
    write: bool,
) -> None:
    """Any lanes: rows of `count` elements, gathered or scattered."""
    number, first, place = lanes.active(mask, lanes.number, index, at)
    dpu = number // lanes.all_tasklets
    # Row r of `windows` is elements r ... r+count of all DPUs' memory, one after another.
    flat = memory.reshape(-1)
    windows = as_strided(flat, (len(flat) - count + 1, count), (flat.itemsize, flat.itemsize))
    rows = dpu * memory.shape[1] + base + first
    if write:
        windows[rows] = buffer.get_runs(lanes, number, place, count)
    else:
        buffer.put_runs(lanes, number, place, windows[rows])


def _watch(
    lanes: Lanes, array: MramArray, index: Values, count: int, mask: Mask, write: bool, site: Site
) -> None:
    """Notes the 8-byte granules that watched DPUs use."""
    watch = array.watch
    shown = lanes.spread(lanes.number // lanes.all_tasklets)[watch.numbers]
    if mask is not None:
        running = lanes.spread(mask)[watch.numbers]
    else:
        running = np.ones(shown.shape, np.bool_)
    position = np.nonzero(running)[0]
    first = lanes.spread(index)[watch.numbers][running] * array.size
    users = lanes.spread(lanes.users)[watch.numbers][running]
    granules = count * array.size // MRAM_GRANULE
    if not len(first):
        return
    places = (first // MRAM_GRANULE)[:, None] + np.arange(granules)
    watch.grow((int(places.max()) + 1) * watch.dpus)
    watch.use(
        (places * watch.dpus + position[:, None]).reshape(-1),
        np.repeat(users, granules),
        write,
        site,
    )
