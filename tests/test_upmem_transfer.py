"""Host transfers and launches: worked examples, and a table measured on 1 to 2,048 DPUs."""

# pyright: reportUnknownMemberType=false
# (pytest.approx has no types.)

import csv
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cim_opt.cost.upmem_transfer import (
    broadcast_seconds,
    launch_seconds,
    pull_seconds,
    push_seconds,
    serial_pull_seconds,
    serial_push_seconds,
)
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine, load_machine

MACHINE = load_machine("upmem-2560")
Seconds = Callable[[UpmemMachine, str, int, int], float]
TRANSFERS: list[Seconds] = [
    push_seconds,
    pull_seconds,
    broadcast_seconds,
    serial_push_seconds,
    serial_pull_seconds,
]


def measured_rows(column: str) -> list[tuple[int, int, float]]:
    """DPUs, bytes for each, and seconds, of one column of the measured table."""
    lines = (Path(__file__).parent / "data" / "upmem_transfer.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    found: list[tuple[int, int, float]] = []
    for row in rows:
        if row[column]:
            dpus, size = int(row["dpus"]), int(row["bytes_per_dpu"])
            found.append((dpus, size, dpus * size / (float(row[column]) * 2**20)))
    return found


@pytest.mark.parametrize(
    ("column", "model", "count", "mean", "worst"),
    [
        ("push", push_seconds, 161, 0.06, 0.38),
        ("serial", serial_push_seconds, 161, 0.06, 0.30),
        ("broadcast", broadcast_seconds, 125, 0.045, 0.20),
    ],
)
def test_measured_table(column: str, model: Seconds, count: int, mean: float, worst: float) -> None:
    rows = measured_rows(column)
    error = [abs(model(MACHINE, "measured", d, size) / t - 1) for d, size, t in rows]
    assert len(rows) == count
    assert np.mean(error) < mean
    assert max(error) < worst


def test_worked_examples_of_push() -> None:
    # 2,048 DPUs x 4 KiB: 497.5 us + 8.389 MB / 11.757 GB/s; measured 1.124 ms.
    assert push_seconds(MACHINE, "measured", 2048, 4096) == pytest.approx(1.211e-3, rel=1e-3)
    assert push_seconds(MACHINE, "measured", 64, 65536) == pytest.approx(0.887e-3, rel=2e-3)
    # The bandwidth of small pieces would give 4.35 ms here; measured 4.50 ms.
    assert push_seconds(MACHINE, "measured", 1, 2**20) == pytest.approx(4.50e-3, rel=2e-3)


def test_models_tell_different_stories() -> None:
    # A histogram of 100 million pixels on all DPUs: 0.50 ms to push, or over 34 ms.
    linear = push_seconds(MACHINE, "linear", 2560, 157_286)
    measured = push_seconds(MACHINE, "measured", 2560, 157_286)
    assert linear == pytest.approx(0.50e-3, rel=0.02)
    assert 34e-3 < measured < 50e-3
    assert push_seconds(MACHINE, "linear", 1, 157_286) == linear
    assert launch_seconds(MACHINE, "linear", 2560) == 0.0


def test_linear_bandwidth_of_one_dpu() -> None:
    assert push_seconds(MACHINE, "linear", 9, 2**30) == pytest.approx(1 / 0.2957, rel=1e-4)
    assert pull_seconds(MACHINE, "linear", 9, 2**30) == pytest.approx(1 / 0.0627, rel=1e-3)
    assert serial_push_seconds(MACHINE, "linear", 9, 2**30) == pytest.approx(9 / 0.2957, rel=1e-4)


def test_pull_matches_published_programs() -> None:
    # From 480 DPUs a vector addition pulls 671 MB, a prefix sum 2,013 MB.
    assert pull_seconds(MACHINE, "measured", 480, 671_088_640 // 480) == pytest.approx(
        0.176, rel=0.15
    )
    assert pull_seconds(MACHINE, "measured", 480, 8 * 251_658_240 // 480) == pytest.approx(
        0.674, rel=0.15
    )
    # Fetching 64 small results one by one takes about 1.1 ms; 1 GB serially 9.7 s.
    assert serial_pull_seconds(MACHINE, "measured", 64, 8) == pytest.approx(1.1e-3, rel=0.05)
    assert serial_pull_seconds(MACHINE, "measured", 480, 2_200_000) == pytest.approx(9.7, rel=0.05)


def test_launch() -> None:
    # 10.448 ms measured for vector addition on 480 DPUs, of which 10.136 ms are the kernel.
    assert launch_seconds(MACHINE, "measured", 480) + 10.136e-3 == pytest.approx(
        10.448e-3, rel=0.01
    )
    assert launch_seconds(MACHINE, "measured", 1) == pytest.approx(62e-6, rel=0.05)
    assert launch_seconds(MACHINE, "measured", 2560) > launch_seconds(MACHINE, "measured", 2048)


@pytest.mark.parametrize("model", ["measured", "linear"])
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_time_grows_with_bytes(transfer: Seconds, model: str) -> None:
    for dpus in (1, 3, 64, 100, 480, 2048, 2560):
        times = [transfer(MACHINE, model, dpus, 2**k) for k in range(3, 27)]
        assert all(a < b for a, b in pairwise(times))


@pytest.mark.parametrize("model", ["measured", "linear"])
@pytest.mark.parametrize("transfer", TRANSFERS)
def test_nothing_takes_no_time(transfer: Seconds, model: str) -> None:
    assert transfer(MACHINE, model, 0, 1024) == 0.0
    assert transfer(MACHINE, model, 64, 0) == 0.0
    assert launch_seconds(MACHINE, model, 0) == 0.0


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_wrong_use_is_refused(transfer: Seconds) -> None:
    with pytest.raises(UserError, match="unknown transfer model 'fast'") as error:
        transfer(MACHINE, "fast", 0, 8)
    assert error.value.remedy == "use one of measured, linear"
    with pytest.raises(UserError, match="a transfer to 2561 DPUs") as error:
        transfer(MACHINE, "measured", 2561, 8)
    assert error.value.limit == "upmem-2560 has 2560"
    with pytest.raises(ValueError, match="negative"):
        transfer(MACHINE, "measured", 8, -8)


def test_latency_grows_and_bandwidth_holds_beyond_the_table() -> None:
    per_byte = [
        push_seconds(MACHINE, "measured", d, 65536) - push_seconds(MACHINE, "measured", d, 8)
        for d in (2048, 2560)
    ]
    assert per_byte[1] / per_byte[0] == pytest.approx(2560 / 2048, rel=1e-6)
    assert push_seconds(MACHINE, "measured", 2560, 8) > push_seconds(MACHINE, "measured", 2048, 8)


def test_pieces_of_a_large_array_are_no_faster_than_the_whole() -> None:
    machine, mib = load_machine("upmem-2560"), 1 << 20
    whole = push_seconds(machine, "measured", 2048, mib)
    pieces = [push_seconds(machine, "measured", 2048, mib // 16, mib) for _ in range(16)]
    assert sum(pieces) > whole
    assert push_seconds(machine, "measured", 2048, mib // 16) < pieces[0]
    linear = push_seconds(machine, "linear", 2048, mib)
    assert push_seconds(machine, "linear", 2048, mib, 64 * mib) == linear
