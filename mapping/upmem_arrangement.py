"""How data lie on UPMEM: granules, MRAM offsets, rounds, WRAM blocks and tasklets.

A kernel runs *stages*. A stage's *owner* is one call of its element function: it owns `per_owner`
elements of every array it reads, and sees `halo` more after the last one. DPUs and tasklets get
contiguous ranges of owners, so that order is kept. A *unit* is the smallest number of owners of
all stages that belong together (one row of a grouped input, say); DPUs get whole units.

Rules (DaPPA, section 4.3.2; UPMEM SDK): MRAM addresses and transfer sizes are multiples of 8
bytes, so ranges are cut at *granules*, the fewest units or owners that fill 8 bytes of every array.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, lcm

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine

ALIGN = 8
"""Bytes: alignment of MRAM addresses and of the sizes of transfers."""

SLACK_BYTES = 2 * ALIGN
"""Behind an array: a transfer may be rounded up, and an idle tasklet may read one granule."""

ROW_RESULT_BYTES = 64
"""Results of rows that are read in pieces, written at once: one a row, so few are enough."""

BLOCK_BYTES = (2048, 1024, 512, 256, 128, 64, 32, 16, 8)
TASKLETS = (24, 22, 20, 18, 16, 14, 12, 11, 8, 4, 2, 1)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def granule(bytes_per_step: Sequence[int]) -> int:
    """The fewest steps after which every array is at a multiple of 8 bytes.

    `bytes_per_step` says, for each array, how many of its bytes one step takes.
    """
    return lcm(*(ALIGN // gcd(ALIGN, size) for size in bytes_per_step))


@dataclass(frozen=True)
class Stream:
    """An array as one stage reads or writes it."""

    element_bytes: int
    per_owner: int = 1
    halo: int = 0

    def elements(self, owners: int) -> int:
        """Elements that `owners` owners see."""
        return owners * self.per_owner + self.halo

    @property
    def transfer_granule(self) -> int:
        """Elements that fill 8 bytes."""
        return granule([self.element_bytes])

    def buffer_elements(self, owners: int) -> int:
        """Elements of a WRAM buffer for `owners` owners, whole granules."""
        return round_up(self.elements(owners), self.transfer_granule)


@dataclass(frozen=True)
class StageShape:
    """What a stage needs, without its code.

    `instructions` is an estimate per owner, `tasklet_bytes` is WRAM of each tasklet besides its
    blocks, `table_bytes` the size of a tensor accumulator (0: none), of which a tasklet has a copy
    of its own unless `shareable` and too little WRAM make several tasklets share one. Rows of `row`
    elements are read in pieces instead of whole (0: an owner's elements are read whole).
    """

    reads: tuple[Stream, ...]
    writes: tuple[Stream, ...]
    owners_per_unit: int
    instructions: float
    tasklet_bytes: int = 0
    table_bytes: int = 0
    shareable: bool = False
    row: int = 0

    @property
    def granule(self) -> int:
        """Owners at which every array of the stage is at a multiple of 8 bytes."""
        streams = (*self.reads, *self.writes)
        return granule([s.per_owner * s.element_bytes for s in streams])

    def block_owners(self, block_bytes: int) -> int:
        """Owners of a block whose arrays take at most `block_bytes` each, at least a granule."""
        step = self.granule
        if self.row:
            block_bytes = min(block_bytes, ROW_RESULT_BYTES)
        most = min(
            (block_bytes // s.element_bytes - s.halo) // s.per_owner
            for s in (*(() if self.row else self.reads), *self.writes)
        )
        return max(most // step * step, step)

    def piece(self, block_bytes: int) -> int:
        """Elements of a row that are read at once, whole granules; 0 when rows are read whole."""
        if not self.row:
            return 0
        step = granule([s.element_bytes for s in self.reads])
        most = block_bytes // max(s.element_bytes for s in self.reads)
        return min(max(most // step * step, step), self.row)

    def block_wram(self, owners: int, piece: int = 0) -> int:
        """WRAM bytes of one tasklet's buffers for blocks of `owners` owners, or pieces of rows."""
        read = [piece if self.row else s.buffer_elements(owners) for s in self.reads]
        written = [s.buffer_elements(owners) for s in self.writes]
        streams = (*self.reads, *self.writes)
        return sum(
            round_up(count * s.element_bytes, ALIGN)
            for count, s in zip((*read, *written), streams, strict=True)
        )


@dataclass(frozen=True)
class Blocking:
    """Tasklets; for each stage owners per block, copies of its tensor accumulator, and elements of
    a row that are read at once, 0 when rows are read whole.
    """

    tasklets: int
    blocks: tuple[int, ...]
    copies: tuple[int, ...]
    wram_bytes: int
    cycles: float
    pieces: tuple[int, ...]


def choose_blocking(
    machine: UpmemMachine,
    stages: Sequence[StageShape],
    shared_bytes: int,
    units_per_dpu: int,
    tasklets: int | None = None,
    block_bytes: int | None = None,
) -> Blocking:
    """The tasklets and blocks with the fewest predicted cycles that fit into WRAM.

    `shared_bytes` is WRAM that all tasklets share, `units_per_dpu` the work of one launch.
    `tasklets` and `block_bytes` fix what the user has chosen. Raises UserError when nothing fits.
    """
    choices = list(_fitting(machine, stages, shared_bytes, units_per_dpu, tasklets, block_bytes))
    if not choices:
        raise _does_not_fit(machine, stages, shared_bytes, tasklets, block_bytes)
    return min(choices, key=lambda choice: choice.cycles)


def _fitting(
    machine: UpmemMachine,
    stages: Sequence[StageShape],
    shared_bytes: int,
    units: int,
    tasklets: int | None,
    block_bytes: int | None,
) -> Iterator[Blocking]:
    if tasklets is not None:
        counts: Sequence[int] = (tasklets,)
    else:
        counts = [t for t in TASKLETS if t <= machine.tasklets_max]
    sizes = (block_bytes,) if block_bytes is not None else BLOCK_BYTES
    for count in counts:
        heap = machine.wram_heap(count) - shared_bytes
        for size in sizes:
            blocks = tuple(stage.block_owners(size) for stage in stages)
            pieces = tuple(stage.piece(size) for stage in stages)
            used = count * sum(
                stage.block_wram(block, piece) + stage.tasklet_bytes
                for stage, block, piece in zip(stages, blocks, pieces, strict=True)
            )
            copies = _table_copies(stages, heap - used, count)
            if copies is None:
                continue
            tables = sum(
                c * round_up(s.table_bytes, ALIGN) for c, s in zip(copies, stages, strict=True)
            )
            cycles = sum(
                _stage_cycles(machine, stage, block, piece, copy, count, units)
                for stage, block, piece, copy in zip(stages, blocks, pieces, copies, strict=True)
            )
            wram = used + tables + shared_bytes
            yield Blocking(count, blocks, copies, wram, cycles, pieces)


def _table_copies(stages: Sequence[StageShape], room: int, tasklets: int) -> tuple[int, ...] | None:
    """Copies of every stage's tensor accumulator that fit into `room` bytes, None if too few."""
    if room < 0:
        return None
    sizes = [round_up(stage.table_bytes, ALIGN) for stage in stages]
    copies = [tasklets if size else 0 for size in sizes]
    while sum(c * s for c, s in zip(copies, sizes, strict=True)) > room:
        halvable = [i for i, stage in enumerate(stages) if copies[i] > 1 and stage.shareable]
        if not halvable:
            return None
        index = max(halvable, key=lambda i: copies[i] * sizes[i])
        copies[index] = -(-copies[index] // 2)
    return tuple(copies)


def _stage_cycles(
    machine: UpmemMachine,
    stage: StageShape,
    block: int,
    piece: int,
    copies: int,
    tasklets: int,
    units: int,
) -> float:
    from cim_opt.cost.upmem_cycles import critical_cycles, streaming_cycles

    owners = max(units * stage.owners_per_unit, 1)
    chunk = round_up(-(-owners // tasklets), stage.granule)
    if stage.row:
        return streaming_cycles(
            machine,
            tasklets,
            stage.instructions / stage.row,
            sum(s.element_bytes for s in stage.reads),
            0,
            piece,
            len(stage.reads),
            0,
            chunk * stage.row,
        )
    cycles = streaming_cycles(
        machine,
        tasklets,
        stage.instructions,
        sum(s.per_owner * s.element_bytes for s in stage.reads),
        sum(s.per_owner * s.element_bytes for s in stage.writes),
        block,
        len(stage.reads),
        len(stage.writes),
        chunk,
    )
    if 0 < copies < tasklets:
        sections = owners / copies
        cycles += float(critical_cycles(machine, tasklets, stage.instructions, sections))
    return cycles


def _does_not_fit(
    machine: UpmemMachine,
    stages: Sequence[StageShape],
    shared_bytes: int,
    tasklets: int | None,
    block_bytes: int | None,
) -> UserError:
    count = tasklets if tasklets is not None else 1
    size = block_bytes if block_bytes is not None else BLOCK_BYTES[-1]
    buffers = sum(
        s.block_wram(s.block_owners(size), s.piece(size)) + s.tasklet_bytes for s in stages
    )
    tables = sum((1 if s.shareable else count) * round_up(s.table_bytes, ALIGN) for s in stages)
    parts = [f"{count * buffers} bytes of blocks on {count} tasklet{'s' * (count > 1)}"]
    if tables:
        parts.append(f"{tables} bytes of accumulators")
    if shared_bytes:
        parts.append(f"{shared_bytes} bytes of shared operands")
    return UserError(
        f"WRAM is too small: {', '.join(parts)}",
        f"{machine.name} has {machine.wram_heap(count)} bytes beside the stacks",
        "use smaller groups, windows, accumulators or shared operands"
        if tasklets is None and block_bytes is None
        else "choose fewer tasklets or a smaller block",
    )


@dataclass(frozen=True)
class MramArray:
    """An array that stays in MRAM during a launch: bytes for u units are per_unit*u + fixed."""

    per_unit_bytes: int
    fixed_bytes: int = 0

    def capacity(self, units: int) -> int:
        """Bytes for `units` units, a multiple of 8, with slack behind."""
        return round_up(self.per_unit_bytes * units + self.fixed_bytes, ALIGN) + SLACK_BYTES


@dataclass(frozen=True)
class Placement:
    """Byte offset and capacity of every array in MRAM, and how many units a launch takes."""

    offsets: tuple[int, ...]
    capacities: tuple[int, ...]
    units: int


def place_arrays(
    machine: UpmemMachine, arrays: Sequence[MramArray], step: int, units_wanted: int | None
) -> Placement:
    """Places arrays one behind the other, for as many units as fit or are wanted.

    `step` is the granule of units; `units_wanted` None means that the length is not known. Raises
    UserError when not even one granule fits.
    """
    fixed = sum(array.capacity(0) for array in arrays)
    # Rounding to 8 bytes may cost ALIGN more for each array than per_unit_bytes says.
    room = machine.mram_bytes - fixed - ALIGN * len(arrays)
    per_unit = sum(array.per_unit_bytes for array in arrays)
    units = room // per_unit // step * step if room > 0 else 0
    if units < step:
        need = fixed + ALIGN * len(arrays) + step * per_unit
        raise UserError(
            f"MRAM is too small: the smallest piece of work takes {need} bytes",
            f"{machine.name} has {machine.mram_bytes} bytes a DPU",
            "use smaller groups, windows or accumulators",
        )
    if units_wanted is not None:
        units = min(units, max(round_up(units_wanted, step), step))
    capacities = tuple(array.capacity(units) for array in arrays)
    offsets: list[int] = []
    position = 0
    for capacity in capacities:
        offsets.append(position)
        position += capacity
    return Placement(tuple(offsets), capacities, units)
