"""The UPMEM machine: one frozen dataclass, read from a TOML file.

Every figure of a machine lives in its TOML file with a comment that names its source; this
module only says which figures there are, in which units, and what values make sense.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from cim_opt.errors import UserError
from cim_opt.hardware.machine_file import Figures, MachineFiles, figures_of

MACHINE_NAMES = ("upmem-2560", "upmem-640", "upmem-1", "upmem-upimulator")
TRANSFER_MODELS = ("measured", "linear")

# Counts and rates that make no machine at all when they are zero.
_POSITIVE = frozenset(
    {
        "dpus",
        "dpus_per_rank",
        "tasklets_max",
        "clock_hz",
        "mram_bytes",
        "wram_bytes",
        "iram_instructions",
        "dma_min_bytes",
        "dma_max_bytes",
        "dma_align_bytes",
        "issue_distance",
        "combine_exponent",
        "host_memory_bytes_per_second",
        "host_scalar_ops_per_second",
        "linear_push_bytes_per_second_per_dpu",
        "linear_pull_bytes_per_second_per_dpu",
    }
)

# Tables over a number of DPUs (or tasklets): the axis, then the columns of the same length.
_TABLES = {
    "barrier_tasklets": ("barrier_cycles",),
    "push_dpus": ("push_latency_s", "push_bytes_per_second", "push_large_bytes_per_second"),
    "broadcast_dpus": ("broadcast_latency_s", "broadcast_bytes_per_second"),
    "pull_dpus": ("pull_latency_s", "pull_bytes_per_second"),
    "serial_dpus": ("serial_push_latency_s", "serial_pull_latency_s"),
    "launch_dpus": ("launch_latency_s",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpmemMachine:
    """One UPMEM system: its size, the timing of a DPU, and the timing of its host link.

    Units: cycles are DPU cycles at `clock_hz`; names that end in `_s` are seconds; names that
    end in `_bytes` are bytes. Tables are tuples over a rising axis (`push_dpus`, ...).
    """

    name: str

    # Size.
    dpus: int
    dpus_per_rank: int
    tasklets_max: int
    clock_hz: float
    mram_bytes: int
    wram_bytes: int
    stack_bytes: int
    wram_reserved_bytes: int
    wram_reserved_bytes_per_tasklet: int
    iram_instructions: int
    mutexes: int
    atomic_bits: int

    # DMA between MRAM and WRAM: legal sizes.
    dma_min_bytes: int
    dma_max_bytes: int
    dma_align_bytes: int

    # Issue.
    issue_distance: int
    pipeline_drain_cycles: float
    tasklet_start_cycles: float

    # DMA timing: what a tasklet waits, and how long the one engine of a DPU is busy.
    dma_read_latency_cycles: float
    dma_write_latency_cycles: float
    dma_latency_cycles_per_byte: float
    dma_read_engine_cycles: float
    dma_read_engine_cycles_per_byte: float
    dma_write_engine_cycles: float
    dma_write_engine_cycles_per_byte: float
    combine_exponent: float
    dma_queue_weight: float
    dma_burst_weight: float
    dma_resume_cycles: float

    # Synchronisation.
    mutex_lock_instructions: int
    mutex_unlock_instructions: int
    barrier_tasklets: tuple[int, ...]
    barrier_cycles: tuple[float, ...]

    # Host.
    host_memory_bytes_per_second: float
    host_scalar_ops_per_second: float

    # Host transfers and launches, model `measured`.
    push_dpus: tuple[int, ...]
    push_latency_s: tuple[float, ...]
    push_bytes_per_second: tuple[float, ...]
    push_large_bytes_per_second: tuple[float, ...]
    push_full_speed_bytes: int
    push_large_bytes: int
    broadcast_dpus: tuple[int, ...]
    broadcast_latency_s: tuple[float, ...]
    broadcast_bytes_per_second: tuple[float, ...]
    pull_dpus: tuple[int, ...]
    pull_latency_s: tuple[float, ...]
    pull_bytes_per_second: tuple[float, ...]
    serial_dpus: tuple[int, ...]
    serial_push_latency_s: tuple[float, ...]
    serial_pull_latency_s: tuple[float, ...]
    serial_push_bytes_per_second: float
    serial_pull_bytes_per_second: float
    launch_dpus: tuple[int, ...]
    launch_latency_s: tuple[float, ...]

    # Host transfers and launches, model `linear`.
    linear_push_bytes_per_second_per_dpu: float
    linear_pull_bytes_per_second_per_dpu: float
    linear_launch_s: float

    def wram_heap(self, tasklets: int) -> int:
        """Bytes of WRAM left for buffers when `tasklets` stacks are set aside.

        Raises UserError when the machine has not that many tasklets.
        """
        if not 1 <= tasklets <= self.tasklets_max:
            raise UserError(
                f"{tasklets} tasklets on {self.name}",
                f"a DPU runs 1 to {self.tasklets_max} tasklets",
                "choose a number in that range",
            )
        per_tasklet = self.stack_bytes + self.wram_reserved_bytes_per_tasklet
        return self.wram_bytes - self.wram_reserved_bytes - tasklets * per_tasklet

    def ranks(self, dpus: int) -> int:
        """How many ranks `dpus` DPUs fill, the last one perhaps in part."""
        return -(-dpus // self.dpus_per_rank)

    def to_dict(self) -> Figures:
        """The machine as a flat dictionary of scalars and lists, for an attribute or a file."""
        return figures_of(self)

    @staticmethod
    def from_dict(values: Mapping[str, object], where: str = "machine") -> "UpmemMachine":
        """The machine that `to_dict` wrote, every value checked.

        `where` names the source in errors. Raises UserError on a missing or unknown key, a
        wrong type, a negative value, or tables that do not fit together.
        """
        return _FILES.from_dict(values, where)


def load_machine(name_or_path: str) -> UpmemMachine:
    """A shipped machine by name, or one from a TOML file of the user (a path ending in .toml).

    A file may say `base = "upmem-2560"` (or another path) and override any value.
    Raises UserError when there is no such machine or file, or when a value makes no sense.
    """
    return _FILES.load(name_or_path)


def _check_together(machine: UpmemMachine, where: str) -> None:
    """Checks that need more than one value."""
    if machine.dma_min_bytes > machine.dma_max_bytes:
        raise UserError(
            f"{where}: dma_min_bytes is {machine.dma_min_bytes}",
            f"dma_max_bytes is {machine.dma_max_bytes}",
            "make the least DMA size no larger than the greatest",
        )
    if machine.wram_heap(machine.tasklets_max) < 0:
        raise UserError(
            f"{where}: stacks of {machine.tasklets_max} tasklets do not fit",
            f"WRAM has {machine.wram_bytes} bytes",
            "lower stack_bytes or tasklets_max",
        )
    if not 0 < machine.push_full_speed_bytes < machine.push_large_bytes:
        raise UserError(
            f"{where}: push_full_speed_bytes is {machine.push_full_speed_bytes}",
            f"push_large_bytes is {machine.push_large_bytes}",
            "make it more than 0 and less than that",
        )
    for axis, columns in _TABLES.items():
        _check_table(machine, axis, columns, where)


def _check_table(machine: UpmemMachine, axis: str, columns: tuple[str, ...], where: str) -> None:
    steps = cast("tuple[int, ...]", getattr(machine, axis))
    if not steps or steps[0] < 1 or any(b <= a for a, b in pairwise(steps)):
        raise UserError(
            f"{where}: {axis} is {list(steps)}", "it must rise from 1 or more", "sort the table"
        )
    for column in columns:
        values = cast("tuple[float, ...]", getattr(machine, column))
        if len(values) != len(steps):
            raise UserError(
                f"{where}: {column} has {len(values)} entries",
                f"{axis} has {len(steps)}",
                "give one value for each",
            )
        if column.endswith("per_second") and min(values) <= 0:
            raise UserError(
                f"{where}: {column} holds {min(values)}",
                "a bandwidth must be more than 0",
                "change the value",
            )


_FILES = MachineFiles(UpmemMachine, MACHINE_NAMES, _POSITIVE, _check_together)
