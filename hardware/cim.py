"""The CIM machine: digital SRAM macros that multiply and accumulate, fed by one in-order core.

Every figure of a machine lives in its TOML file with a comment that names its source. Units:
names that end in `_bytes` are bytes, in `_cycles` cycles of the one clock, in `_mw` milliwatts;
a `_width_bytes` is what a memory delivers or takes in one cycle.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cim_opt.errors import UserError
from cim_opt.hardware.machine_file import Figures, MachineFiles, figures_of

MACHINE_NAMES = ("cim-32x64-8", "cim-64x64-8", "cim-32x64-1", "cim-64x64-1")
MEMORIES = ("global", "input", "output", "input_register", "output_register", "macro")
"""Where data can lie; `macro` is the weights of all macros."""
WEIGHT_BITS = (4, 8, 16)
"""Widths of a weight that bit columns can be joined to."""

FRONT_ENDS = ("queue", "stall")
"""`queue`: its unit holds it, and the core goes on. `stall`: the core waits with it."""

_MAY_BE_ZERO = frozenset(
    {
        "name",
        "mvm_drain_cycles",
        "mvm_input_hold_cycles",
        "transfer_fill_cycles",
        "strided_transfers",
        "front_end",
        "results_interlocked",
        "sram_static_mw",
        "memory_static_mw",
        "memory_access_mw",
        "macro_tops_per_watt",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CimMachine:
    """One CIM core: its macros, its memories, and what instructions take."""

    name: str

    # Macros.
    macros: int
    rows: int
    """Inputs that a macro multiplies at once; one is broadcast over all columns."""
    bit_columns: int
    weight_bits: int
    """Width of a weight when a program does not say."""
    weight_rows: int
    """Weights that a cell holds, of which one takes part in a step."""
    weight_write_bytes: int
    """Bytes of weights that a macro takes in a cycle; all macros are written at the same time."""

    # Memories.
    global_bytes: int
    global_width_bytes: int
    input_bytes: int
    input_width_bytes: int
    output_bytes: int
    output_width_bytes: int
    input_register_bytes: int
    input_register_width_bytes: int
    output_register_bytes: int
    output_register_width_bytes: int

    # Vector unit, clock, and what instructions can say.
    simd_lanes: int
    clock_ns: float
    general_registers: int
    immediate_bits: int
    offset_bits: int
    strided_transfers: bool
    """Whether one instruction copies several runs; otherwise each run is an instruction."""

    # Timing beyond widths.
    front_end: str
    """One of `FRONT_ENDS`: what an instruction that cannot start yet does; see cim_timing."""
    results_interlocked: bool
    """Whether reading the output register waits for the macro step that fills it."""
    mvm_drain_cycles: int
    """Cycles from the last input bit of a macro step until its sums can be read."""
    mvm_input_hold_cycles: int
    """Cycles after the last input bit in which the input register may not be written yet."""
    transfer_fill_cycles: int
    """Cycles of a transfer beyond those of its wider side: the read before the first write."""
    vector_add_cycles: int
    vector_clear_cycles: int
    """Cycles for one operation on all lanes."""

    # Energy.
    sram_static_mw: float
    """All macros together."""
    memory_static_mw: float
    memory_access_mw: float
    """Of the input and of the output memory, each."""
    macro_tops_per_watt: float
    """Operations (2 a product) of a macro for one joule, in 1e12; 0 leaves them out."""

    # Host.
    host_memory_bytes_per_second: float
    host_scalar_ops_per_second: float

    @property
    def columns(self) -> int:
        """Weights of the usual width in a row of a macro."""
        return self.columns_of(self.weight_bits)

    def columns_of(self, bits: int) -> int:
        """Weights of `bits` bits in a row of a macro. Raises UserError for other widths."""
        if bits not in WEIGHT_BITS:
            raise UserError(
                f"weights of {bits} bits",
                f"{self.name} joins bit columns to {', '.join(map(str, WEIGHT_BITS))} bits",
                "widen the weights to one of these",
            )
        return self.bit_columns // bits

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights in one macro."""
        return self.rows * self.bit_columns * self.weight_rows // 8

    def capacity(self, memory: str) -> int:
        """Bytes of one of `MEMORIES`."""
        match memory:
            case "global":
                return self.global_bytes
            case "input":
                return self.input_bytes
            case "output":
                return self.output_bytes
            case "input_register":
                return self.input_register_bytes
            case "output_register":
                return self.output_register_bytes
            case "macro":
                return self.weight_bytes * self.macros
            case _:
                raise unknown_memory(memory)

    def width(self, memory: str) -> int:
        """Bytes that one of `MEMORIES` delivers or takes in a cycle; `macro` means one macro."""
        match memory:
            case "global":
                return self.global_width_bytes
            case "input":
                return self.input_width_bytes
            case "output":
                return self.output_width_bytes
            case "input_register":
                return self.input_register_width_bytes
            case "output_register":
                return self.output_register_width_bytes
            case "macro":
                return self.weight_write_bytes
            case _:
                raise unknown_memory(memory)

    def seconds(self, cycles: int) -> float:
        """Seconds that cycles take."""
        return cycles * self.clock_ns * 1e-9

    def to_dict(self) -> Figures:
        """The machine as a flat dictionary, for an attribute or a file."""
        return figures_of(self)

    @staticmethod
    def from_dict(values: Mapping[str, object], where: str = "machine") -> "CimMachine":
        """The machine that `to_dict` wrote, every value checked. Raises UserError."""
        return _FILES.from_dict(values, where)


def unknown_memory(memory: str) -> UserError:
    """The error for a name that is none of `MEMORIES`."""
    return UserError(
        f"unknown memory {memory!r}", f"the memories are {', '.join(MEMORIES)}", "use one of these"
    )


def load_machine(name_or_path: str) -> CimMachine:
    """A shipped machine by name, or one from a TOML file of the user (a path ending in .toml).

    A file may say `base = "cim-32x64-8"` (or another path) and override any value. Raises
    UserError.
    """
    return _FILES.load(name_or_path)


def _check_together(machine: CimMachine, where: str) -> None:
    """Checks that need more than one value."""
    if machine.front_end not in FRONT_ENDS:
        raise UserError(
            f"{where}: front_end is {machine.front_end!r}",
            f"the front ends are {', '.join(FRONT_ENDS)}",
            "choose one of these",
        )
    if machine.weight_bits not in WEIGHT_BITS:
        raise UserError(
            f"{where}: weight_bits is {machine.weight_bits}",
            f"bit columns are joined to {', '.join(map(str, WEIGHT_BITS))} bits",
            "use one of these",
        )
    if machine.bit_columns % max(WEIGHT_BITS):
        raise UserError(
            f"{where}: bit_columns is {machine.bit_columns}",
            f"weights take up to {max(WEIGHT_BITS)} bit columns each",
            f"make it a multiple of {max(WEIGHT_BITS)}",
        )
    _check_register(machine.input_register_bytes, machine.rows * machine.macros, "input", where)
    sums = 4 * machine.columns_of(min(WEIGHT_BITS)) * machine.macros
    _check_register(machine.output_register_bytes, sums, "output", where)


def _check_register(size: int, needed: int, which: str, where: str) -> None:
    if size < needed:
        raise UserError(
            f"{where}: {which}_register_bytes is {size}",
            f"one step of all macros needs {needed}",
            "enlarge the register or use fewer macros",
        )


_FILES = MachineFiles(
    CimMachine,
    MACHINE_NAMES,
    frozenset(CimMachine.__dataclass_fields__) - _MAY_BE_ZERO,
    _check_together,
)
