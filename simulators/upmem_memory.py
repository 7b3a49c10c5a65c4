"""WRAM buffers of a kernel: element loads and stores on all lanes, with their bounds checked.

A private buffer, one for each tasklet, is an array (elements, DPUs, tasklets), so that an access at
an index which all lanes share is one contiguous slice. A shared buffer is (elements, DPUs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.simulators.upmem_lanes import IntArray, Mask, Values, varies
from cim_opt.simulators.upmem_mram import fill_unwritten
from cim_opt.simulators.upmem_races import UNLOCKED, RaceWatch, Users, users_of
from cim_opt.simulators.upmem_site import Site, any_lane, first_lane, value_at

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Lanes:
    """Which lanes run: all tasklets of all DPUs, or in a critical section one tasklet of each.

    `number` is the place of a lane among all of them, DPU * all_tasklets + tasklet; `users` are the
    tasklets with the mutexes that they hold.
    """

    dpus: int
    tasklets: int
    all_tasklets: int
    tasklet_id: IntArray
    dpu_id: IntArray
    number: IntArray
    users: Users

    @staticmethod
    def all(dpus: int, tasklets: int) -> Lanes:
        tasklet_id = np.arange(tasklets, dtype=np.int64)[None, :]
        dpu_id = np.arange(dpus, dtype=np.int64)[:, None]
        number = dpu_id * tasklets + tasklet_id
        users = users_of(tasklet_id, UNLOCKED)
        return Lanes(dpus, tasklets, tasklets, tasklet_id, dpu_id, number, users)

    def one(self, tasklet: int, mutex: Values) -> Lanes:
        """The lanes of one tasklet while they hold `mutex`."""
        tasklet_id = self.tasklet_id[:, tasklet : tasklet + 1]
        number = self.number[:, tasklet : tasklet + 1]
        users = users_of(tasklet_id, mutex)
        return Lanes(self.dpus, 1, self.all_tasklets, tasklet_id, self.dpu_id, number, users)

    @property
    def shape(self) -> tuple[int, int]:
        return self.dpus, self.tasklets

    def spread(self, value: Values) -> Array:
        """The value as a read-only array with one entry a lane."""
        return np.broadcast_to(value, self.shape)

    def active(self, mask: Mask, *values: Values) -> list[Array]:
        """The values on the lanes of the mask, as flat arrays in the order of the lanes."""
        if mask is None:
            return [self.spread(value).reshape(-1) for value in values]
        running = self.spread(mask)
        return [self.spread(value)[running] for value in values]

    def tasklet_in(self, column: int) -> int:
        """The number of the tasklet in a column of the lanes."""
        return int(self.tasklet_id[0, column])


class WramBuffer:
    """What private and shared buffers have in common: length, dtype, bounds."""

    def __init__(self, length: int, dtype: np.dtype[Any]):
        self.length = length
        self.dtype = dtype

    def check(self, lanes: Lanes, first: Values, count: Values, mask: Mask, site: Site) -> Values:
        """`first`, made 0 on lanes that do not run.

        Raises UserError when a running lane leaves the buffer between first and first+count.
        """
        if varies(first) and first.size == 1:
            first = int(first[0, 0])
        if isinstance(first, int) and isinstance(count, int):
            if first >= 0 and first + count <= self.length:
                return first
            self._out_of_range(lanes, any_lane(mask, lanes.shape), first, count, site)
        if isinstance(count, int) and count <= self.length and varies(first):
            # As unsigned numbers, negative indices are large: one comparison for both ends.
            bad = first.view(np.uint64) > np.uint64(self.length - count)
        else:
            bad = np.asarray((first < 0) | (first + count > self.length))
        if not bad.any():
            return first
        lane = first_lane(bad, mask, lanes.shape)
        if lane is not None:
            self._out_of_range(lanes, lane, first, count, site)
        return np.where(bad, 0, first)

    def _out_of_range(
        self, lanes: Lanes, lane: tuple[int, int], first: Values, count: Values, site: Site
    ) -> None:
        index, number = int(value_at(first, *lane)), int(value_at(count, *lane))
        what = f"index {index}" if number == 1 else f"elements {index} to {index + number - 1}"
        raise site.error(
            lane[0],
            lanes.tasklet_in(lane[1]),
            f"{what} of a WRAM buffer is out of range",
            f"it has {self.length} elements",
            "check the index, or allocate a larger buffer",
        )


class PrivateBuffer(WramBuffer):
    """A WRAM buffer of which each tasklet has its own."""

    def __init__(self, length: int, dtype: np.dtype[Any], dpus: int, tasklets: int):
        super().__init__(length, dtype)
        self.data = np.empty((length, dpus, tasklets), dtype)
        fill_unwritten(self.data)
        self.rows = self.data.reshape(length, dpus * tasklets)
        self.flat = self.data.reshape(-1)
        self.row = dpus * tasklets

    def load(self, lanes: Lanes, index: Values, mask: Mask, site: Site) -> Values:
        """The element at `index`, of each lane's own buffer. May be a view of the buffer."""
        index = self.check(lanes, index, 1, mask, site)
        if isinstance(index, int) and lanes.shape == self.data.shape[1:]:
            return self.data[index]
        return self.flat.take(index * self.row + lanes.number)

    def store(self, lanes: Lanes, value: Values, index: Values, mask: Mask, site: Site) -> None:
        """Puts `value` at `index` on the lanes of the mask."""
        index = self.check(lanes, index, 1, mask, site)
        if isinstance(index, int) and lanes.shape == self.data.shape[1:]:
            target = self.data[index]
            if mask is None:
                target[...] = value
            else:
                np.copyto(target, value, where=mask)
            return
        places, values = lanes.active(mask, index * self.row + lanes.number, value)
        self.flat[places] = values

    def get_runs(self, lanes: Lanes, number: Array, first: Array, count: int) -> Array:
        """Elements first[i] ... + count of lane number[i], as (lanes, count)."""
        if (first == first[0]).all():
            start = int(first[0])
            return self.rows[start : start + count, number].T
        return self.rows[first[:, None] + np.arange(count), number[:, None]]

    def put_runs(self, lanes: Lanes, number: Array, first: Array, values: Array) -> None:
        """The other way round."""
        count = values.shape[1]
        if (first == first[0]).all():
            start = int(first[0])
            self.rows[start : start + count, number] = values.T
            return
        self.rows[first[:, None] + np.arange(count), number[:, None]] = values

    def note_run(
        self, lanes: Lanes, first: Values, count: int, mask: Mask, write: bool, site: Site
    ) -> None:
        """Nobody else sees a private buffer."""


class SharedBuffer(WramBuffer):
    """A WRAM buffer of which each DPU has one.

    `watched` are the phases of the kernel, numbered from 0, in which something is stored to it.
    """

    def __init__(self, length: int, dtype: np.dtype[Any], dpus: int, watched: frozenset[int]):
        super().__init__(length, dtype)
        self.dpus = dpus
        self.rows = np.empty((length, dpus), dtype)
        fill_unwritten(self.rows)
        self.flat = self.rows.reshape(-1)
        self.watched = watched
        self.watch: RaceWatch | None = None
        self.start_phase(0)

    def start_phase(self, phase: int) -> None:
        """Forgets what was used before a barrier."""
        if phase not in self.watched:
            self.watch = None
        elif self.watch is None:
            self.watch = RaceWatch("a shared WRAM buffer", self.length * self.dpus, self.dpus)
        else:
            self.watch.reset()

    def load(self, lanes: Lanes, index: Values, mask: Mask, site: Site) -> Values:
        """The element at `index` of each DPU's buffer. May be a view of the buffer."""
        index = self.check(lanes, index, 1, mask, site)
        if self.watch is not None:
            self._note(lanes, index, mask, False, site)
        if isinstance(index, int):
            return self.rows[index][:, None]
        return self.flat.take(index * self.dpus + lanes.dpu_id)

    def store(self, lanes: Lanes, value: Values, index: Values, mask: Mask, site: Site) -> None:
        """Puts `value` at `index` on the lanes of the mask."""
        index = self.check(lanes, index, 1, mask, site)
        if self.watch is not None:
            self._note(lanes, index, mask, True, site)
        if isinstance(index, int) and lanes.tasklets == 1 and mask is None:
            self.rows[index] = np.broadcast_to(value, lanes.shape)[:, 0]
            return
        places, values = lanes.active(mask, index * self.dpus + lanes.dpu_id, value)
        self.flat[places] = values

    def _note(self, lanes: Lanes, index: Values, mask: Mask, write: bool, site: Site) -> None:
        assert self.watch is not None
        places, users = lanes.active(mask, index * self.dpus + lanes.dpu_id, lanes.users)
        self.watch.use(places, users, write, site)

    def get_runs(self, lanes: Lanes, number: Array, first: Array, count: int) -> Array:
        """Elements first[i] ... + count of the DPU of lane number[i], as (lanes, count)."""
        return self.rows[first[:, None] + np.arange(count), self._dpu(lanes, number)]

    def put_runs(self, lanes: Lanes, number: Array, first: Array, values: Array) -> None:
        """The other way round."""
        count = values.shape[1]
        self.rows[first[:, None] + np.arange(count), self._dpu(lanes, number)] = values

    def _dpu(self, lanes: Lanes, number: Array) -> Array:
        return (number // lanes.all_tasklets)[:, None]

    def note_run(
        self, lanes: Lanes, first: Values, count: int, mask: Mask, write: bool, site: Site
    ) -> None:
        """Notes that the lanes of the mask use elements first ... + count."""
        if self.watch is None:
            return
        places, users = lanes.active(mask, first * self.dpus + lanes.dpu_id, lanes.users)
        places = (places[:, None] + np.arange(count) * self.dpus).reshape(-1)
        self.watch.use(places, np.repeat(users, count), write, site)
