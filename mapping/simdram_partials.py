"""Partial results of many folds on SIMDRAM: how many of them the machine folds before the host.

Lanes hold partial results of `folds` folds, `partials` each, read back one fold after another. The
host can fold them all. Or they are transposed again, `height` neighbours into one column, folded
there lane by lane, and the host folds partials / height a fold. Nothing moves between columns but
through the host, so each neighbour costs one pass through the transposition unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from cim_opt.hardware.simdram import SimdramMachine

MOST_PARTIALS = 1 << 25
"""More than so many are not kept by the host at once; their folds stay apart."""


@dataclass(frozen=True)
class Partials:
    """`folds` folds of `partials` partial results each.

    One result takes `bits` bits, `bytes` in the host's memory. Joining two takes `operations` of
    the host, or a program of `seconds` in a subarray.
    """

    folds: int
    partials: int
    bits: int
    bytes: int
    operations: int
    seconds: float


def best_height(work: Partials, machine: SimdramMachine) -> int:
    """How many neighbours to stack into a column: a divisor of `partials`; 1 for none."""
    total = work.folds * work.partials
    if not 0 < total <= MOST_PARTIALS:
        return 1
    heights = [1]
    while work.partials % (2 * heights[-1]) == 0:
        heights.append(2 * heights[-1])
    fitting = [k for k in heights if k == 1 or total // k <= machine.lanes]
    return min(fitting, key=lambda k: (seconds(work, machine, k), k))


def seconds(work: Partials, machine: SimdramMachine, height: int) -> float:
    """Time from the partial results in the host's memory to one result a fold."""
    left = work.folds * work.partials // height
    on_host = left * work.bytes / machine.host_memory_bytes_per_second
    on_host += left * work.operations / machine.host_scalar_ops_per_second
    if height == 1:
        return on_host
    tiles = -(-left // machine.columns)
    # Each neighbour is brought in, and the last sum is read back.
    moved = (height + 1) * tiles * work.bits * machine.row_bytes
    return on_host + moved / machine.bandwidth + (height - 1) * work.seconds
