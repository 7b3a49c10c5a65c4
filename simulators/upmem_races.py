"""Finds data races between tasklets of a DPU.

Between two barriers, two accesses of different tasklets to the same place race when one of them is
a write and no mutex is held at both. For each place (an element of a shared WRAM buffer, 8 bytes
of MRAM) and phase (what lies between barriers) three facts are kept: which tasklet used it, or
that several did; which mutex was held each time, or that none was; whether it was written.
A place that several tasklets used, not always under one mutex, and that was written, is a race.

Not found: a race in a phase that does not happen with the data at hand, and in MRAM one on a DPU
that is not watched. Reported without being one: a place that one tasklet writes under a mutex and
also reads without, while others only read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cim_opt.simulators.integer_functions import where
from cim_opt.simulators.upmem_site import Site

MRAM_GRANULE = 8
WATCHED_DPUS = 16

Indices = npt.NDArray[Any]
Users = npt.NDArray[np.int16]

UNLOCKED = -1
"""Where a mutex is asked for: none is held."""

# What is known of a place, in 16 bits: who used it, which mutex was held (plus 2), and one bit that
# says that it was written.
_TASKLET = np.int16(31)
_SEVERAL = np.int16(31)
_MUTEX = np.int16(127 << 5)
_WRITTEN = np.int16(1 << 12)
_NO_MUTEX = np.int16((UNLOCKED + 2) << 5)
_UNUSED = np.int16(0)  # no mutex, not even "none", is noted only for a place that nobody used


def users_of(tasklets: Indices, mutexes: Any) -> Users:
    """Tasklets and the mutexes that they hold, as the watch takes them."""
    return (tasklets + ((mutexes + 2) << 5)).astype(np.int16)


def watched_dpus(dpus: int) -> npt.NDArray[np.int64]:
    """The DPUs whose MRAM is watched: all of a small set, else some from first to last."""
    return np.unique(np.linspace(0, dpus - 1, min(dpus, WATCHED_DPUS)).round().astype(np.int64))


class RaceWatch:
    """Who used which of `size` places in the current phase.

    With `dpus` DPUs, place p of DPU d has the number p * dpus + d.
    """

    def __init__(self, name: str, size: int, dpus: int):
        self.name = name
        self.dpus = dpus
        self.state = np.full(size, _UNUSED, np.int16)

    def reset(self) -> None:
        """Starts a phase: what was done before the barrier is over."""
        self.state.fill(_UNUSED)

    def grow(self, size: int) -> None:
        """Makes room for more places, and some to spare."""
        more = size - len(self.state)
        if more > 0:
            self.state = np.append(self.state, np.full(more + size // 2, _UNUSED, np.int16))

    def use(self, places: Indices, users: Users, write: bool, site: Site) -> None:
        """Notes that `users[i]` used `places[i]`.

        Raises UserError when that makes a race.
        """
        before = self.state.take(places)
        wanted = users | _WRITTEN if write else users
        new = np.flatnonzero(before != wanted if write else (before & ~_WRITTEN) != wanted)
        if not len(new):
            return
        self._note(places.take(new), users.take(new), before.take(new), write, site)

    def _note(self, places: Indices, users: Users, before: Users, write: bool, site: Site) -> None:
        """Notes uses of places of which not the same was known before."""
        tasklets = users & _TASKLET
        self.state[places] = self._with(before, users, write)
        # Of several tasklets that use a place in the same step the last one stands there now.
        after = self.state.take(places)
        other = (after & _TASKLET) != tasklets
        merged = self._with(after, users, write)
        self.state[places[other]] = merged[other]
        after = self.state.take(places)
        held = after & _MUTEX
        race = ((after & _TASKLET) == _SEVERAL) & (held == _NO_MUTEX)
        race &= (after & _WRITTEN) != 0
        if race.any():
            self._report(int(np.argmax(race)), places, tasklets, before, write, site)

    def _with(self, before: Users, users: Users, write: bool) -> Users:
        """What is known of places after one more use of each."""
        unused = before == _UNUSED
        same = ((before ^ users) & _TASKLET) == 0
        tasklet = where(unused | same, users & _TASKLET, _SEVERAL)
        mutex = where(unused | (((before ^ users) & _MUTEX) == 0), users & _MUTEX, _NO_MUTEX)
        written = _WRITTEN if write else before & _WRITTEN
        return tasklet | mutex | written

    def _report(
        self,
        index: int,
        places: Indices,
        tasklets: Indices,
        before: Users,
        write: bool,
        site: Site,
    ) -> None:
        place, dpu = divmod(int(places[index]), self.dpus)
        tasklet = int(tasklets[index])
        same = tasklets[places == places[index]]
        others = same[same != tasklet]
        earlier = int(before[index] & _TASKLET)
        who = "another tasklet"
        if len(others):
            who = f"tasklet {int(others[0])}"
        elif before[index] != _UNUSED and earlier not in (int(_SEVERAL), tasklet):
            who = f"tasklet {earlier}"
        what = "writes" if write else "reads"
        raise site.error(
            self.dpu_number(dpu),
            tasklet,
            f"data race: {what} {self.place_name(place)}, which {who} uses in the same phase",
            "no barrier is between, and no mutex is held by both",
            "put a barrier between, or both in upmem.critical under one mutex",
        )

    def dpu_number(self, dpu: int) -> int:
        """The DPU with this number in the watch."""
        return dpu

    def place_name(self, place: int) -> str:
        return f"element {place} of {self.name}"


class MramWatch(RaceWatch):
    """Watches the array at byte `offset` of the MRAM of some DPUs, in granules of 8 bytes."""

    def __init__(self, offset: int, dpus: int):
        self.offset = offset
        self.numbers = watched_dpus(dpus)
        super().__init__("MRAM", 0, len(self.numbers))

    def dpu_number(self, dpu: int) -> int:
        return int(self.numbers[dpu])

    def place_name(self, place: int) -> str:
        first = self.offset + place * MRAM_GRANULE
        return f"bytes {first} to {first + MRAM_GRANULE - 1} of MRAM"
