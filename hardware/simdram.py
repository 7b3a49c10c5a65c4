"""The SIMDRAM machine: DRAM that computes bit by bit in the columns of its subarrays.

Every figure of a machine lives in its TOML file with a comment that names its source. Units:
names that end in `_ns` are nanoseconds, in `_nj` nanojoules, in `_bytes` bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cim_opt.errors import UserError
from cim_opt.hardware.machine_file import Figures, MachineFiles, figures_of

MACHINE_NAMES = ("simdram-1", "simdram-64")
TIMINGS = ("proteus49", "gem5", "strict")
"""Presets for the time of a row command, by name; see `SimdramMachine.command_ns`."""

_POSITIVE = frozenset(
    {
        "columns",
        "data_rows",
        "subarrays",
        "banks",
        "ranks",
        "row_bytes",
        "bandwidth",
        "proteus_command_ns",
        "gem5_aap_ns",
        "gem5_ap_ns",
        "strict_aap_ns",
        "activations_per_window",
        "activation_window_ns",
        "host_memory_bytes_per_second",
        "host_scalar_ops_per_second",
    }
)


class CommandCounts(Protocol):
    """What a machine asks of a program's counts."""

    @property
    def aap(self) -> int:
        """AAP commands."""
        ...

    @property
    def ap(self) -> int:
        """AP commands."""
        ...

    @property
    def within_b(self) -> int:
        """AAP commands whose two addresses both lie in the B-group."""
        ...

    @property
    def rows_raised(self) -> int:
        """Rows that all commands activate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SimdramMachine:
    """One SIMDRAM system: the subarrays that compute, and what commands and transfers take."""

    name: str

    # Size.
    columns: int
    data_rows: int
    row_bytes: int
    subarrays: int
    """Subarrays that compute, over all banks."""
    banks: int
    ranks: int

    # Row commands.
    timing: str
    proteus_command_ns: float
    gem5_aap_ns: float
    gem5_ap_ns: float
    strict_aap_ns: float
    activation_limit: bool
    activations_per_window: int
    activation_window_ns: float
    activation_energy_nj: float
    further_row_energy: float

    # Transposition and the host.
    bandwidth: float
    host_memory_bytes_per_second: float
    host_scalar_ops_per_second: float

    @property
    def lanes(self) -> int:
        """Columns of all subarrays that compute."""
        return self.columns * self.subarrays

    def command_ns(self, timing: str) -> tuple[float, float, float]:
        """Time of an AAP, of an AP, and what an AAP within the B-group takes more.

        `proteus49` charges every command the same; `gem5` lets the two activations of an AAP
        overlap; `strict` does so only where they use different decoders.
        """
        match timing:
            case "proteus49":
                return self.proteus_command_ns, self.proteus_command_ns, 0.0
            case "gem5":
                return self.gem5_aap_ns, self.gem5_ap_ns, 0.0
            case "strict":
                return self.gem5_aap_ns, self.gem5_ap_ns, self.strict_aap_ns - self.gem5_aap_ns
            case _:
                raise UserError(
                    f"unknown timing {timing!r}",
                    f"the timings are {', '.join(TIMINGS)}",
                    "choose one of these",
                )

    def program_seconds(self, counts: CommandCounts, timing: str) -> float:
        """Seconds of a program in one subarray, or in several at the same time."""
        aap, ap, more = self.command_ns(timing)
        return (counts.aap * aap + counts.ap * ap + counts.within_b * more) * 1e-9

    def limited_seconds(
        self, seconds: float, counts: CommandCounts, tiles: int, timing: str
    ) -> float:
        """Seconds of a program on `tiles` subarrays under the limit on activations.

        A rank makes at most `activations_per_window` row commands in each window, in all its banks
        together (tXAW); `seconds` is what one subarray takes.
        """
        commands = counts.aap + counts.ap
        rate = self.ranks * self.activations_per_window / (self.activation_window_ns * 1e-9)
        return max(seconds, commands * tiles / rate)

    def program_energy_nj(self, counts: CommandCounts) -> float:
        """Nanojoules of a program in one subarray.

        Each activation takes `activation_energy_nj`, and `further_row_energy` of it more for each
        row that it raises beside the first.
        """
        activations = 2 * counts.aap + counts.ap
        further = counts.rows_raised - activations
        return self.activation_energy_nj * (activations + self.further_row_energy * further)

    def to_dict(self) -> Figures:
        """The machine as a flat dictionary, for an attribute or a file."""
        return figures_of(self)

    @staticmethod
    def from_dict(values: Mapping[str, object], where: str = "machine") -> "SimdramMachine":
        """The machine that `to_dict` wrote, every value checked. Raises UserError."""
        return _FILES.from_dict(values, where)


def load_machine(name_or_path: str) -> SimdramMachine:
    """A shipped machine by name, or one from a TOML file of the user (a path ending in .toml).

    A file may say `base = "simdram-1"` (or another path) and override any value. Raises UserError.
    """
    return _FILES.load(name_or_path)


def _check_together(machine: SimdramMachine, where: str) -> None:
    """Checks that need more than one value."""
    if machine.timing not in TIMINGS:
        raise UserError(
            f"{where}: timing is {machine.timing!r}",
            f"the timings are {', '.join(TIMINGS)}",
            "choose one of these",
        )
    if machine.columns != machine.row_bytes * 8:
        raise UserError(
            f"{where}: columns is {machine.columns}",
            f"a row of {machine.row_bytes} bytes has {machine.row_bytes * 8} bits",
            "make columns eight times row_bytes",
        )
    if machine.strict_aap_ns < machine.gem5_aap_ns:
        raise UserError(
            f"{where}: strict_aap_ns is {machine.strict_aap_ns}",
            f"gem5_aap_ns, overlapped, is {machine.gem5_aap_ns}",
            "make it no smaller",
        )


_FILES = MachineFiles(SimdramMachine, MACHINE_NAMES, _POSITIVE, _check_together)
