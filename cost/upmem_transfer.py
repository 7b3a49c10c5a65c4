"""Seconds that the host takes to move data to and from DPUs, and to launch them.

Two models, by name:

- `measured`: what real systems do. A transfer takes a latency that grows with the ranks, and then
  all bytes at a bandwidth that saturates; both are tables over the number of DPUs in the machine
  file. Pushing large pieces is slower than small ones, because they leave the host's caches.
- `linear`: what the published simulation assumes. Each DPU has a link of its own, so that
  bandwidth grows with the DPUs without end, and a launch is free.

Bandwidth is interpolated on logarithmic axes and stays as it is beyond the last row; latency is
interpolated linearly and grows on beyond the last row. Nothing moves in no time: 0 DPUs or
0 bytes take 0 seconds.
"""

import math
from collections.abc import Sequence

import numpy as np

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import TRANSFER_MODELS, UpmemMachine


def push_seconds(
    machine: UpmemMachine, model: str, dpus: int, bytes_per_dpu: int, source_per_dpu: int = 0
) -> float:
    """Host to DPUs in parallel, the same number of bytes to each.

    `source_per_dpu` are the bytes for each DPU of the array that this is a part of: pieces of an
    array that is too large for the host's caches come out of memory as the whole does.
    Raises UserError for an unknown model or for more DPUs than the machine has.
    """
    if _nothing(machine, model, dpus, bytes_per_dpu):
        return 0.0
    if model == "linear":
        return bytes_per_dpu / machine.linear_push_bytes_per_second_per_dpu
    latency = _latency(dpus, machine.push_dpus, machine.push_latency_s)
    bandwidth = _push_bandwidth(machine, dpus, max(bytes_per_dpu, source_per_dpu))
    return latency + dpus * bytes_per_dpu / bandwidth


def pull_seconds(machine: UpmemMachine, model: str, dpus: int, bytes_per_dpu: int) -> float:
    """DPUs to host in parallel, the same number of bytes from each. Raises as `push_seconds`."""
    if _nothing(machine, model, dpus, bytes_per_dpu):
        return 0.0
    if model == "linear":
        return bytes_per_dpu / machine.linear_pull_bytes_per_second_per_dpu
    latency = _latency(dpus, machine.pull_dpus, machine.pull_latency_s)
    bandwidth = _bandwidth(dpus, machine.pull_dpus, machine.pull_bytes_per_second)
    return latency + dpus * bytes_per_dpu / bandwidth


def broadcast_seconds(machine: UpmemMachine, model: str, dpus: int, bytes_per_dpu: int) -> float:
    """The same `bytes_per_dpu` bytes from the host to every DPU. Raises as `push_seconds`."""
    if _nothing(machine, model, dpus, bytes_per_dpu):
        return 0.0
    if model == "linear":
        return bytes_per_dpu / machine.linear_push_bytes_per_second_per_dpu
    latency = _latency(dpus, machine.broadcast_dpus, machine.broadcast_latency_s)
    bandwidth = _bandwidth(dpus, machine.broadcast_dpus, machine.broadcast_bytes_per_second)
    return latency + dpus * bytes_per_dpu / bandwidth


def serial_push_seconds(machine: UpmemMachine, model: str, dpus: int, bytes_per_dpu: int) -> float:
    """Host to one DPU after another, `bytes_per_dpu` each. Raises as `push_seconds`."""
    if _nothing(machine, model, dpus, bytes_per_dpu):
        return 0.0
    if model == "linear":
        return dpus * bytes_per_dpu / machine.linear_push_bytes_per_second_per_dpu
    latency = _latency(dpus, machine.serial_dpus, machine.serial_push_latency_s)
    return dpus * (latency + bytes_per_dpu / machine.serial_push_bytes_per_second)


def serial_pull_seconds(machine: UpmemMachine, model: str, dpus: int, bytes_per_dpu: int) -> float:
    """One DPU after another to the host, `bytes_per_dpu` each. Raises as `push_seconds`."""
    if _nothing(machine, model, dpus, bytes_per_dpu):
        return 0.0
    if model == "linear":
        return dpus * bytes_per_dpu / machine.linear_pull_bytes_per_second_per_dpu
    latency = _latency(dpus, machine.serial_dpus, machine.serial_pull_latency_s)
    return dpus * (latency + bytes_per_dpu / machine.serial_pull_bytes_per_second)


def launch_seconds(machine: UpmemMachine, model: str, dpus: int) -> float:
    """Fixed part of one synchronous launch, on top of the kernel. Raises as `push_seconds`."""
    if _nothing(machine, model, dpus, 1):
        return 0.0
    if model == "linear":
        return machine.linear_launch_s
    return _latency(dpus, machine.launch_dpus, machine.launch_latency_s)


def _nothing(machine: UpmemMachine, model: str, dpus: int, bytes_per_dpu: int) -> bool:
    """Whether there is nothing to do; checks what all models share."""
    if model not in TRANSFER_MODELS:
        raise UserError(
            f"unknown transfer model {model!r}", None, f"use one of {', '.join(TRANSFER_MODELS)}"
        )
    if dpus > machine.dpus:
        raise UserError(
            f"a transfer to {dpus} DPUs",
            f"{machine.name} has {machine.dpus}",
            "use fewer DPUs or a larger machine",
        )
    if dpus < 0 or bytes_per_dpu < 0:
        raise ValueError(f"{dpus} DPUs and {bytes_per_dpu} bytes: neither can be negative")
    return dpus == 0 or bytes_per_dpu == 0


def _push_bandwidth(machine: UpmemMachine, dpus: int, bytes_per_dpu: int) -> float:
    """Bytes per second of a push, between those of small and of large pieces."""
    small = _bandwidth(dpus, machine.push_dpus, machine.push_bytes_per_second)
    large = _bandwidth(dpus, machine.push_dpus, machine.push_large_bytes_per_second)
    sizes = (machine.push_full_speed_bytes, machine.push_large_bytes)
    return _bandwidth(bytes_per_dpu, sizes, (small, large))


def _bandwidth(at: int, axis: Sequence[int], values: Sequence[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(float(np.interp(math.log(at), [math.log(step) for step in axis], logs)))


def _latency(at: int, axis: Sequence[int], values: Sequence[float]) -> float:
    if at <= axis[-1] or len(axis) == 1:
        return float(np.interp(at, axis, values))
    slope = (values[-1] - values[-2]) / (axis[-1] - axis[-2])
    return values[-1] + max(slope, 0.0) * (at - axis[-1])
