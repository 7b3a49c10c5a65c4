"""The baseline of `cim-bench pum`: a compiler that vectorises the innermost loop for SIMDRAM.

A loop nest that runs its innermost loop N times, G rounds each, issues N * ceil(G / columns) times
the bbops of a round, one after the other and each at full width, at the published counts of row
commands. That is the ideal of the published comparison, which is the default; three switches take
it closer to machines and compilers that exist:

- `reduction`: what summing a loop's products takes, which the ideal has for `free`. `host`: the
  host reads the lanes, bits / 8 bytes each, and adds them one by one. `inmat`: MIMDRAM moves
  columns in DRAM: mat by mat all sums come to one mat, one hop after the other, and there half to
  half, down to 4 columns. The last 4 columns and the addition after each hop are not charged.
- `tail`: `ceil` gives the last rounds a row of their own. `released`: as the released compiler
  does, rounds that do not fill a row run on the host, one element operation at a time; so do whole
  loops that are shorter than a row.
- `mats`: `on` is MIMDRAM's hardware: a loop takes only the mats that it fills, and other runs of
  the loop use the rest at the same time, as many as there are engines.

Sources: MIMDRAM (HPCA 2024), and the passes and gem5 model released with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cim_opt.hardware.simdram import SimdramMachine
from cim_opt.microprograms.model import Counts
from cim_opt.microprograms.published import PUBLISHED
from cim_opt.tools.pum_stages import Stage

# A row of 65,536 columns is 128 mats over the chips of a rank; at most 8 programs run at once.
MATS, MAT_COLUMNS, ENGINES = 128, 512, 8
# Moves between columns carry what the helper flip-flops of a mat hold.
MOVED_BITS = 4
# Columns of a mat that its tree of halves leaves.
LEFT_COLUMNS = 4
# DDR4-2400: tRAS, tRP, tWR; tRELOC is assumed.
_RAS, _RP, _WR, _RELOC = 32.0, 14.16, 15.0, 1.0
MOVE_TO_NEXT_MAT_NS = _RAS + _RELOC + _WR + _RP
MOVE_IN_MAT_NS = 2 * (_RAS + _RP) + _RELOC + _WR


@dataclass(frozen=True)
class Switches:
    """What the baseline is charged; see the module's documentation."""

    reduction: Literal["free", "host", "inmat"] = "free"
    tail: Literal["ceil", "released"] = "ceil"
    mats: Literal["off", "on"] = "off"

    def text(self) -> str:
        """The switches, as the command line has them."""
        return f"--reduction {self.reduction} --tail {self.tail} --mats {self.mats}"


@dataclass
class Baseline:
    """What the baseline takes, over the stages of a kernel; `used` is commands by columns used."""

    commands: int = 0
    used: float = 0.0
    compute: float = 0.0
    reduction: float = 0.0
    host: float = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compute + self.reduction + self.host


def baseline(stages: Sequence[Stage], machine: SimdramMachine, switches: Switches) -> Baseline:
    """Row commands and seconds of all stages."""
    total = Baseline()
    for stage in stages:
        _add(total, stage, machine, switches)
    return total


def _add(total: Baseline, stage: Stage, machine: SimdramMachine, switches: Switches) -> None:
    columns, runs = machine.columns, stage.times * stage.loops
    in_rows, on_host = stage.trip, 0
    if switches.tail == "released":
        on_host = stage.trip % columns
        in_rows -= on_host
    rows = -(-in_rows // columns)
    together = side_by_side(in_rows) if switches.mats == "on" else 1
    issued = _issued(stage, together)
    body = [PUBLISHED[name](width) for name, width in stage.body]
    commands = sum(counts.total for counts in body)
    total.commands += issued * rows * commands
    total.used += runs * commands * in_rows / columns
    total.compute += issued * rows * sum(_seconds(counts, machine) for counts in body)
    operations = len(body) + (stage.reduces > 0)
    total.host += runs * on_host * operations / machine.host_scalar_ops_per_second
    if stage.reduces and in_rows:
        if switches.reduction == "host":
            total.reduction += runs * host_reduction(in_rows, stage.reduces, machine)
        elif switches.reduction == "inmat":
            total.reduction += issued * reduction_in_mats(in_rows, stage.reduces, machine)


def _issued(stage: Stage, together: int) -> int:
    """Runs of the innermost loop, with those that do not depend on each other `together`."""
    if stage.batches:
        return sum(-(-batch * stage.loops // together) for batch in stage.batches)
    return stage.times * -(-stage.loops // together)


def side_by_side(trip: int) -> int:
    """How many runs of a loop of `trip` rounds MIMDRAM's hardware does at the same time."""
    mats = -(-trip // MAT_COLUMNS)
    return min(ENGINES, max(1, MATS // mats)) if mats else 1


def host_reduction(lanes: int, bits: int, machine: SimdramMachine) -> float:
    """Seconds of the host to read the lanes and to add them one by one."""
    return lanes * bits / 8 / machine.bandwidth + lanes / machine.host_scalar_ops_per_second


def reduction_in_mats(lanes: int, bits: int, machine: SimdramMachine) -> float:
    """Seconds to sum lanes by moving columns, down to `LEFT_COLUMNS` of one mat.

    What lies in further rows is added lane by lane before.
    """
    adding = _seconds(PUBLISHED["add"](bits), machine)
    rows = -(-lanes // machine.columns)
    hops = -(-min(lanes, machine.columns) // MAT_COLUMNS) - 1
    halvings = (MAT_COLUMNS // LEFT_COLUMNS).bit_length() - 1
    between = hops * MAT_COLUMNS * bits // MOVED_BITS * MOVE_TO_NEXT_MAT_NS
    within = (MAT_COLUMNS - LEFT_COLUMNS) * bits // MOVED_BITS * MOVE_IN_MAT_NS
    return (between + within) * 1e-9 + (rows - 1 + halvings) * adding


def _seconds(counts: Counts, machine: SimdramMachine) -> float:
    return machine.program_seconds(counts, machine.timing)
