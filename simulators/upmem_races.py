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

from cim_opt.simulators.upmem_site import Site

NOBODY = -1
SEVERAL = -2
UNLOCKED = -2

MRAM_GRANULE = 8
WATCHED_DPUS = 16

Indices = npt.NDArray[Any]


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
        self.tasklet = np.full(size, NOBODY, np.int16)
        self.mutex = np.full(size, NOBODY, np.int32)
        self.written = np.zeros(size, np.bool_)

    def reset(self) -> None:
        """Starts a phase: what was done before the barrier is over."""
        self.tasklet.fill(NOBODY)
        self.mutex.fill(NOBODY)
        self.written.fill(False)

    def grow(self, size: int) -> None:
        """Makes room for more places, and some to spare."""
        more = size - len(self.tasklet)
        if more > 0:
            more += size // 2
            self.tasklet = np.append(self.tasklet, np.full(more, NOBODY, np.int16))
            self.mutex = np.append(self.mutex, np.full(more, NOBODY, np.int32))
            self.written = np.append(self.written, np.zeros(more, np.bool_))

    def use(
        self, places: Indices, tasklets: Indices, mutexes: Indices | int, write: bool, site: Site
    ) -> None:
        """Notes that `tasklets[i]` used `places[i]`, holding `mutexes[i]` (UNLOCKED: none).

        Raises UserError when that makes a race.
        """
        before = self.tasklet[places]
        self.tasklet[places] = np.where(
            (before == NOBODY) | (before == tasklets), tasklets, SEVERAL
        )
        # Two tasklets that use a place in the same step: the last one stands there now.
        other = self.tasklet[places] != tasklets
        self.tasklet[places[other]] = SEVERAL
        held = self.mutex[places]
        self.mutex[places] = np.where((held == NOBODY) | (held == mutexes), mutexes, UNLOCKED)
        if write:
            self.written[places] = True
        race = (self.tasklet[places] == SEVERAL) & (self.mutex[places] == UNLOCKED)
        race &= self.written[places]
        if race.any():
            self._report(int(np.argmax(race)), places, tasklets, before, write, site)

    def _report(
        self,
        index: int,
        places: Indices,
        tasklets: Indices,
        before: Indices,
        write: bool,
        site: Site,
    ) -> None:
        place, dpu = divmod(int(places[index]), self.dpus)
        tasklet = int(tasklets[index])
        same = tasklets[places == places[index]]
        others = same[same != tasklet]
        who = "another tasklet"
        if len(others):
            who = f"tasklet {int(others[0])}"
        elif before[index] >= 0 and before[index] != tasklet:
            who = f"tasklet {int(before[index])}"
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
