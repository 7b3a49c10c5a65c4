"""How a kernel is laid on macros and memories: tiles, what each macro does, where data lie.

A plan repeats a cover's images over tiles of the kernel: `groups` (depthwise channels and the
like), output channels, input channels. The macros are split four ways, in the order in which
PolyCIM prefers them (section 3.4): over rounds of the same sums (output reuse), over output
channels (input reuse), over groups (none), and over positions (weight reuse).

    for each tile of groups, for each tile of output channels, for each chunk of positions:
      for each round (input channels x images, split over macros):
        load weights
        for each pass, for each set of positions: load inputs, multiply, add or store the sums

Inputs, weights and outputs lie in global memory in the order in which this loop nest meets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cim_opt.hardware.cim import CimMachine
from cim_opt.mapping.cim_placement import Placement, section
from cim_opt.polyhedral.cover import Cover
from cim_opt.polyhedral.kernel import MacKernel

SUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class Split:
    """Macros along each dimension; their product is what works at once."""

    rounds: int = 1
    groups: int = 1
    outputs: int = 1
    positions: int = 1

    @property
    def macros(self) -> int:
        """Macros that work."""
        return self.rounds * self.groups * self.outputs * self.positions

    @property
    def sums(self) -> int:
        """Macros whose sums are different outputs."""
        return self.groups * self.outputs * self.positions


@dataclass(frozen=True, slots=True)
class Parts:
    """Launches that share the work: parts of the groups, output channels and positions."""

    groups: int = 1
    outputs: int = 1
    positions: int = 1

    @property
    def count(self) -> int:
        """Launches."""
        return self.groups * self.outputs * self.positions

    def at(self, number: int) -> tuple[int, int, int]:
        """Which part of groups, output channels and positions a launch has."""
        rest, position = divmod(number, self.positions)
        return *divmod(rest, self.outputs), position


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to run a kernel on a machine.

    `channels` are how many (output, input) channels of a group one image takes. `chunks` are parts
    of the positions whose sums fit the output memory. `order` is that of the instructions for one
    set, of `mapping.cim_code.ORDERS`. What does not fit the global memory at once is `cut` into
    parts, one launch each. Counts of tiles, chunks, sets and bytes are those of one part.

    With `window` the macros of a step work at neighbouring positions along that axis, and their
    inputs lie in memory as one window in which they overlap; otherwise each macro has its own copy.
    The placement is windowed along the axis then.
    """

    kernel: MacKernel
    machine: CimMachine
    cover: Cover
    placement: Placement
    channels: tuple[int, int]
    split: Split
    bits: int = 8
    chunks: int = 1
    order: str = "MGLDF"
    cut: Parts = Parts()
    window: int | None = None

    @property
    def layout(self) -> str:
        """How inputs lie in memory: `steps`, or `window0` for windows along axis 0, and so on."""
        return "steps" if self.window is None else f"window{self.window}"

    # -- tiles ---------------------------------------------------------------------------------

    @property
    def parts(self) -> int:
        """Launches."""
        return self.cut.count

    @property
    def group_tiles(self) -> int:
        """Tiles of groups, each of `split.groups` times the groups that share an image."""
        tiles = _ceil(self.kernel.groups, self.cover.packed * self.split.groups)
        return _ceil(tiles, self.cut.groups)

    @property
    def output_tiles(self) -> int:
        """Tiles of output channels."""
        tiles = _ceil(self.kernel.out_channels, self.channels[0] * self.split.outputs)
        return _ceil(tiles, self.cut.outputs)

    @property
    def rounds(self) -> int:
        """Rounds that add to the same sums, after the split over macros."""
        tiles = _ceil(self.kernel.in_channels, self.channels[1]) * len(self.placement.images)
        return _ceil(tiles, self.split.rounds)

    @property
    def passes(self) -> int:
        """Passes over the positions: more than one when neighbouring steps share outputs."""
        return self.placement.overlap

    @property
    def sets(self) -> int:
        """Sets of positions in a chunk; one macro step each."""
        sets = _ceil(self.placement.units, self.split.positions)
        return _ceil(sets, self.chunks * self.cut.positions)

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Rows that the largest image takes."""
        return max(len(image.rows) for image in self.placement.images)

    @property
    def columns(self) -> int:
        """Columns of a macro."""
        return self.machine.columns_of(self.bits)

    @property
    def input_bytes(self) -> int:
        """Bytes of one input."""
        return _ceil(self.bits, 8)

    @property
    def shared_input(self) -> bool:
        """All macros read the same inputs: they differ in output channels only."""
        return self.split.macros == self.split.outputs

    @property
    def step_bytes(self) -> int:
        """Bytes from the inputs of one macro to those of the next."""
        if self.shared_input:
            return 0
        if self.window is None:
            return self.rows * self.input_bytes
        stride = self.kernel.strides[self.window] * self.placement.periods[self.window]
        return stride * section(self.placement, self.window) * self.input_bytes

    @property
    def set_bytes(self) -> int:
        """Bytes of input that one macro step reads."""
        apart = (self.split.macros - 1) * self.step_bytes
        return apart + self.rows * self.input_bytes

    @property
    def set_sums(self) -> int:
        """Sums that one macro step leaves, after those of several rounds are added."""
        return self.split.sums * self.columns

    @property
    def run_sums(self) -> int:
        """Sums of one pass and chunk, those at the end that only later passes meet included."""
        block = self.columns // self.passes
        return self.sets * self.set_sums + (self.passes - 1) * block

    @property
    def weight_bytes(self) -> int:
        """Bytes of one load of weights."""
        return self.rows * self.split.macros * self.machine.bit_columns // 8

    @property
    def accumulates(self) -> bool:
        """Whether sums wait in the output memory for further rounds or passes."""
        return self.rounds * self.passes > 1

    @property
    def macro_steps(self) -> int:
        """Macro steps of the whole kernel, times macros."""
        tiles = self.parts * self.group_tiles * self.output_tiles * self.chunks * self.rounds
        return tiles * self.passes * self.sets * self.split.macros

    # -- packed tensors ------------------------------------------------------------------------

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Group tile, chunk, round, pass, set; then macros by rounds, groups, outputs, positions
        (one when they share the input), and rows; or then a window."""
        if self.window is not None:
            sets = (self.group_tiles, self.chunks, self.rounds, self.passes, self.sets)
            return (*sets, self.set_bytes // self.input_bytes)
        split = self.split
        macros = (split.rounds, split.groups, split.outputs, split.positions)
        if self.shared_input:
            macros = (1, 1, 1, 1)
        return (
            self.group_tiles,
            self.chunks,
            self.rounds,
            self.passes,
            self.sets,
            *macros,
            self.rows,
        )

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Group tile, output tile, round, row; macros as for the input; columns."""
        split = self.split
        macros = (split.rounds, split.groups, split.outputs, split.positions)
        tiles = (self.group_tiles, self.output_tiles, self.rounds)
        return (*tiles, self.rows, *macros, self.columns)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Group tile, output tile, then the sums: chunk, set, groups, outputs, positions, column
        for a partition; blocks in their order, then their columns for overlapping runs."""
        tiles = (self.group_tiles, self.output_tiles)
        if self.passes > 1:
            block = self.columns // self.passes
            return (*tiles, self.run_sums // block, block)
        split = self.split
        sums = (split.groups, split.outputs, split.positions, self.columns)
        return (*tiles, self.chunks, self.sets, *sums)

    @property
    def packed_bytes(self) -> tuple[int, int, int]:
        """Bytes of the packed inputs, weights and outputs of one part."""
        inputs = prod(self.input_shape) * self.input_bytes
        weights = self.weight_bytes * prod(self.weight_shape[:3])
        return inputs, weights, prod(self.output_shape) * SUM_BYTES

    @property
    def global_bytes(self) -> int:
        """Bytes that the packed tensors of one part take in global memory, each from a multiple of
        what it delivers in a cycle."""
        width = self.machine.global_width_bytes
        return sum(_ceil(bytes, width) * width for bytes in self.packed_bytes)

    @property
    def layout_cycles(self) -> int:
        """Cycles to bring the tensors into their packed order and back, for every part: each byte
        is read once and written once, at the width of the global memory.

        Elements take whole bytes, as many as a multiplication has; only packed weights of 4 bits
        take half of one. Outputs start as a constant, which need not be read; that of the part
        before does.
        """
        kernel = self.kernel
        channels = kernel.groups * kernel.in_channels
        inputs = channels * prod(axis.length for axis in kernel.axes) * self.input_bytes
        weights = kernel.groups * kernel.out_channels * kernel.depth * self.input_bytes
        outputs = kernel.outputs * SUM_BYTES
        read, loaded, sums = self.packed_bytes
        moved = (inputs, read, weights, loaded, sums, outputs)
        first = sum(_ceil(bytes, self.machine.global_width_bytes) for bytes in moved)
        more = (inputs, read, weights, loaded, sums + outputs, outputs)
        later = sum(_ceil(bytes, self.machine.global_width_bytes) for bytes in more)
        return first + (self.parts - 1) * later


def steps_text(number: int) -> str:
    """So many macro steps, in words."""
    return f"{number:,} macro step{'s' * (number != 1)}"


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)
