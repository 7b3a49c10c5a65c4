"""Errors of a kernel: which operation, on which DPU and tasklet, went over which limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from cim_opt.errors import Location, UserError
from cim_opt.locations import location_of
from cim_opt.simulators.upmem_lanes import BoolArray, Mask, Values, varies


@dataclass(frozen=True)
class Site:
    """An operation of a kernel, as an error names it."""

    name: str
    location: Location | None

    @staticmethod
    def of(op: Operation) -> Site:
        return Site(op.name, location_of(op))

    def error(
        self, dpu: int, tasklet: int, what: str, limit: str | None, remedy: str | None
    ) -> UserError:
        """`what` went wrong at this operation on one lane."""
        place = f"'{self.name}' on DPU {dpu}, tasklet {tasklet}: {what}"
        return UserError(place, limit, remedy, self.location)


def first_lane(bad: BoolArray, mask: Mask, shape: tuple[int, int]) -> tuple[int, int] | None:
    """The first lane (DPU, tasklet) of the mask that is bad, None when none is."""
    found = np.broadcast_to(bad if mask is None else bad & mask, shape)
    if not found.any():
        return None
    dpu, tasklet = divmod(int(np.argmax(found)), shape[1])
    return dpu, tasklet


def any_lane(mask: Mask, shape: tuple[int, int]) -> tuple[int, int]:
    """The first lane of the mask."""
    return first_lane(np.ones((1, 1), np.bool_), mask, shape) or (0, 0)


def value_at(value: Values, dpu: int, tasklet: int) -> Any:
    """The value on one lane."""
    if not varies(value):
        return value
    return value[min(dpu, value.shape[0] - 1), min(tasklet, value.shape[1] - 1)]
