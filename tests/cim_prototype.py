"""Programs as the public PolyCIM prototype generates them, as event trees for the cycle model.

The prototype's schedule gives the loops; how its code around the macro steps looks is one set of
constants, `CodeShape`, for all operators. The shape of every program: all inputs into the input
memory, weights once if one image is enough, loops over positions, row tiles and column tiles; in
the innermost one weights if there are several images, inputs into the register, step, store, and,
with several row tiles, the vector addition of partial sums.

The copy of the outputs to the global memory is left out: the measured times do not have it. C1 on
one macro took 45,444 cycles for 44,711 instructions; its input copy alone is the difference, 735.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from cim_opt.cost.cim_timing import (
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Scalar,
    Transfer,
    VectorAdd,
)
from cim_opt.hardware.cim import CimMachine
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.tools.cim_workloads import Published, operators, published

OPERATORS = {"dw3-8": MacKernel(1, 1, 1, (Axis(8, 3), Axis(8, 3)))} | {
    name: operator.kernel for name, operator in operators().items()
}


def rows() -> list[Published]:
    """All measured programs."""
    return list(published().values())


@dataclass(frozen=True)
class CodeShape:
    """Scalar instructions of the generated code; the same for every operator and machine."""

    prologue: int = 30
    level: int = 17
    """A loop that is not the innermost, each round, beyond addition and branch."""
    before: int = 10
    """In a step, before the inputs are loaded."""
    after: int = 10
    """In a step, after the macros have started."""
    weights: int = 17
    """Around each load of weights in a loop."""
    partial: int = 13
    """Around the addition of partial sums."""


def program(row: Published, machine: CimMachine, shape: CodeShape) -> list[Node]:
    """The event tree of one measured program."""
    row_tiles, column_tiles = row.loops[-3], row.loops[-2]
    positions = [size for size in row.loops[:-3] if size > 1]
    inputs = _rows_used(row, machine)
    macros = machine.macros
    step = _step(row, machine, shape, inputs)
    tiles = [size for size in (row_tiles, column_tiles) if size > 1]
    nest = _nest(positions + tiles, step, shape)
    in_all = prod(row.loops) // column_tiles * inputs * macros
    weights = [] if row.images > 1 else [LoadWeights(inputs * machine.columns * macros, macros)]
    return [
        Scalar(shape.prologue),
        Transfer(in_all, "global", "input"),
        *weights,
        *nest,
    ]


def _step(row: Published, machine: CimMachine, shape: CodeShape, inputs: int) -> list[Node]:
    macros, columns = machine.macros, machine.columns
    step: list[Node] = []
    if row.images > 1:
        step += [Scalar(shape.weights), LoadWeights(inputs * columns * macros, macros)]
    step += [
        Scalar(shape.before),
        Transfer(inputs * macros, "input", "input_register"),
        Mvm(macros),
        Scalar(shape.after),
        Transfer(4 * columns * macros, "output_register", "output"),
    ]
    if row.loops[-3] > 1:
        step += [Scalar(shape.partial), VectorAdd(columns * macros)]
    return step


def _nest(sizes: list[int], step: list[Node], shape: CodeShape) -> list[Node]:
    nest: list[Node] = step
    for level, size in enumerate(reversed(sizes)):
        body = nest if level == 0 else [Scalar(shape.level), *nest]
        nest = [Loop(size, body)]
    return nest


def _rows_used(row: Published, machine: CimMachine) -> int:
    """Inputs of a step: the footprint of the block of outputs that explains the tiles."""
    operator = OPERATORS[row.op]
    if row.loops[-3] > 1:
        return machine.rows
    if row.mode == "im2col":
        return operator.depth
    return min(_footprints(row, operator, machine))


def _footprints(row: Published, operator: MacKernel, machine: CimMachine) -> Iterator[int]:
    """The inputs of each block of outputs that needs the tiles and steps of the schedule.

    A block takes one factor of each axis; `factor` outputs that are `apart`, or one output.
    """
    row_tiles, column_tiles = row.loops[-3], row.loops[-2]
    for block in product(*[[(1, 1), *_factors(sizes)] for sizes in row.tiles]):
        spans = [
            _span(*b, axis.taps, axis.dilation)
            for b, axis in zip(block, operator.axes, strict=True)
        ]
        footprint = prod(spans) * operator.in_channels
        outputs = prod(factor for factor, _ in block)
        columns = outputs * operator.out_channels
        tiles = -(-footprint // machine.rows), -(-columns // machine.columns)
        steps = operator.positions // outputs * row_tiles * column_tiles
        if tiles == (row_tiles, column_tiles) and steps == row.steps:
            yield footprint


def _factors(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(size, prod(sizes[at + 1 :])) for at, size in enumerate(sizes)]


def _span(factor: int, apart: int, taps: int, dilation: int) -> int:
    """Inputs of `factor` outputs that are `apart` along an axis."""
    if factor == 1 or taps == 1:
        return factor * taps
    step = gcd(apart, dilation)
    return (factor - 1) * apart // step + (taps - 1) * dilation // step + 1
