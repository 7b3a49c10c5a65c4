"""Where the elements of a plan's packed tensors come from, as affine maps in MLIR's own text.

A packed element has an index in a shape. Its coordinates are an affine function of that index, plus
one row of each table, divided by divisors; a coordinate outside of its bounds means zero.
Coordinates are (group, input channel, x...) of the input, (group, output channel, input channel,
tap...) of the weights, (group, output channel, position...) of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from cim_opt.mapping.cim_placement import Placement, section
from cim_opt.mapping.cim_plan import Plan
from cim_opt.polyhedral.kernel import MacKernel, Point

NOWHERE = -(1 << 30)
"""A coordinate that is outside of all bounds."""

Expression = str


@dataclass(frozen=True, slots=True)
class Packing:
    """`map` gives the row of each table, then the coordinates; `dropped` are pairs of rows."""

    shape: tuple[int, ...]
    map: tuple[Expression, ...]
    bounds: Point
    tables: tuple[tuple[Point, ...], ...]
    divisors: Point | None = None
    dropped: tuple[tuple[int, int], ...] = ()

    @property
    def map_text(self) -> str:
        """The map as MLIR writes it."""
        names = ", ".join(f"d{index}" for index in range(len(self.shape)))
        return f"affine_map<({names}) -> ({', '.join(self.map)})>"


def input_packing(plan: Plan, part: int = 0) -> Packing:
    """Inputs in the order in which sets are multiplied: one row after another."""
    if plan.window is not None:
        return _windows(plan, part, plan.window)
    kernel, placement = plan.kernel, plan.placement
    tile, chunk, turn, number, which, by_round, by_group, _, by_position, row = _dims(10)
    tile, _, chunk = _in_part(plan, part, tile, "0", chunk)
    unit = _unit(plan, chunk, which, by_position)
    move, counters = _counters(plan, unit, number)
    round_ = _add(_times(turn, plan.split.rounds), by_round)
    image, channel_tile = _mod(round_, len(placement.images)), _div(round_, len(placement.images))
    group = _add(_times(tile, plan.split.groups), by_group)
    where = [
        _times(counter, stride * period)
        for counter, stride, period in zip(counters, kernel.strides, placement.periods, strict=True)
    ]
    map = (
        _add(_times(image, plan.rows), row),
        move,
        _times(group, plan.cover.packed),
        _times(channel_tile, plan.channels[1]),
        *where,
    )
    reach = tuple(axis.pad + axis.length for axis in kernel.axes)
    moves = _moves_table(plan, kernel.strides, 2)
    return Packing(
        plan.input_shape,
        map,
        (kernel.groups, kernel.in_channels, *reach),
        (_rows_table(plan, 0), moves),
    )


def _windows(plan: Plan, part: int, axis: int) -> Packing:
    """Inputs as windows along an axis, in which the macros of a step overlap."""
    kernel, placement = plan.kernel, plan.placement
    tile, chunk, turn, _, which, place = _dims(6)
    tile, _, chunk = _in_part(plan, part, tile, "0", chunk)
    unit = _unit(plan, chunk, which, "0")
    _, counters = _counters(plan, unit, "0")
    size = section(placement, axis)
    image, channel_tile = _mod(turn, len(placement.images)), _div(turn, len(placement.images))
    where = [
        _add(_times(counter, stride * period), _div(place, size) if a == axis else "0")
        for a, (counter, stride, period) in enumerate(
            zip(counters, kernel.strides, placement.periods, strict=True)
        )
    ]
    map = (
        _add(_times(image, plan.rows), _mod(place, size)),
        _times(tile, plan.cover.packed),
        _times(channel_tile, plan.channels[1]),
        *where,
    )
    reach = tuple(a.pad + a.length for a in kernel.axes)
    bounds = (kernel.groups, kernel.in_channels, *reach)
    return Packing(plan.input_shape, map, bounds, (_rows_table(plan, 0),))


def weight_packing(plan: Plan, part: int = 0) -> Packing:
    """Weights in the order in which they are loaded: a row of all macros after another."""
    kernel, placement = plan.kernel, plan.placement
    tile, output_tile, turn, row, by_round, by_group, by_output, _, column = _dims(9)
    tile, output_tile, _ = _in_part(plan, part, tile, output_tile, "0")
    round_ = _add(_times(turn, plan.split.rounds), by_round)
    image, channel_tile = _mod(round_, len(placement.images)), _div(round_, len(placement.images))
    group = _add(_times(tile, plan.split.groups), by_group)
    outputs = _add(_times(output_tile, plan.split.outputs), by_output)
    map = (
        _add(_times(image, plan.rows), row),
        column,
        _times(group, plan.cover.packed),
        _times(outputs, plan.channels[0]),
        _times(channel_tile, plan.channels[1]),
        *("0" for _ in kernel.axes),
    )
    return Packing(
        plan.weight_shape,
        map,
        (kernel.groups, kernel.out_channels, kernel.in_channels, *kernel.tap_shape),
        (_rows_table(plan, 1), _taps_table(plan)),
        (1, 1, 1, *kernel.dilations),
        tuple(_dropped(plan)),
    )


def output_packing(plan: Plan, part: int = 0) -> Packing:
    """Sums in the order in which they leave."""
    kernel, placement = plan.kernel, plan.placement
    bounds = (kernel.groups, kernel.out_channels, *kernel.output_shape)
    columns = _columns_table(plan)
    moves = _moves_table(plan, (1,) * kernel.rank, 2)
    if placement.line is not None:
        tile, output_tile, block, column = _dims(4)
        tile, output_tile, _ = _in_part(plan, part, tile, output_tile, "0")
        move, counters = _blocks(placement, block)
        group, outputs = tile, output_tile
        columns = columns[: plan.columns // plan.passes]
    else:
        tile, output_tile, chunk, which, by_group, by_output, by_position, column = _dims(8)
        tile, output_tile, chunk = _in_part(plan, part, tile, output_tile, chunk)
        move, counters = _counters(plan, _unit(plan, chunk, which, by_position), "0")
        group = _add(_times(tile, plan.split.groups), by_group)
        outputs = _add(_times(output_tile, plan.split.outputs), by_output)
    map = (
        column,
        move,
        _times(group, plan.cover.packed),
        _times(outputs, plan.channels[0]),
        *(_times(c, period) for c, period in zip(counters, placement.periods, strict=True)),
    )
    return Packing(plan.output_shape, map, bounds, (columns, moves))


def _in_part(plan: Plan, part: int, tile: str, output_tile: str, chunk: str) -> tuple[str, ...]:
    """Numbers of a tile of groups, of output channels, and of a chunk, among those of all parts."""
    group, output, position = plan.cut.at(part)
    return (
        _add(tile, str(group * plan.group_tiles)),
        _add(output_tile, str(output * plan.output_tiles)),
        _add(chunk, str(position * plan.chunks)),
    )


# -- positions ------------------------------------------------------------------------------------


def _unit(plan: Plan, chunk: str, which: str, by_position: str) -> str:
    """The number of a step among the units of a placement."""
    sets = _add(_times(chunk, plan.sets), which)
    return _add(_times(sets, plan.split.positions), by_position)


def _counters(plan: Plan, unit: str, number: str) -> tuple[str, list[str]]:
    """Move and counters of a unit in pass `number`."""
    placement = plan.placement
    if plan.window is not None:
        count = placement.counts[plan.window]
        if len(placement.counts) == 1:
            return "0", [unit]
        others = [count for axis, count in enumerate(placement.counts) if axis != plan.window]
        digits = iter(_digits(_div(unit, count), others))
        along = _mod(unit, count)
        axes = range(len(placement.counts))
        return "0", [along if axis == plan.window else next(digits) for axis in axes]
    if placement.line is None:
        move = _mod(unit, len(placement.moves))
        rest = _div(unit, len(placement.moves))
        return move, _digits(rest, placement.counts)
    line = placement.counts[placement.line]
    if len(placement.counts) * len(placement.moves) == 1:
        along, rest = unit, "0"
    else:
        along, rest = _mod(unit, line), _div(unit, line)
    along = _add(_times(along, placement.overlap), number)
    return _off_line(placement, rest, along)


def _blocks(placement: Placement, block: str) -> tuple[str, list[str]]:
    """Move and counters of a block of outputs in overlapping runs."""
    assert placement.line is not None
    pitch = placement.counts[placement.line] * placement.overlap
    if len(placement.counts) * len(placement.moves) == 1:
        return _off_line(placement, "0", block)
    return _off_line(placement, _div(block, pitch), _mod(block, pitch))


def _off_line(placement: Placement, rest: str, along: str) -> tuple[str, list[str]]:
    """Move and counters from the number of a line and the place along it."""
    others = [count for axis, count in enumerate(placement.counts) if axis != placement.line]
    move = _mod(rest, len(placement.moves)) if others else rest
    digits = iter(_digits(_div(rest, len(placement.moves)), others))
    return move, [
        along if axis == placement.line else next(digits) for axis in range(len(placement.counts))
    ]


def _digits(number: str, counts: Sequence[int]) -> list[str]:
    """A number in mixed radix, the first digit unbounded: what is too much lies outside."""
    digits: list[str] = []
    for position, count in enumerate(counts):
        shifted = _div(number, prod(counts[position + 1 :]))
        digits.append(shifted if position == 0 else _mod(shifted, count))
    return digits


# -- tables ---------------------------------------------------------------------------------------


def _rows_table(plan: Plan, blank: int) -> tuple[Point, ...]:
    """Rows of all images: group, `blank` zeros, input channel, coordinates."""
    nothing = (NOWHERE,) * (2 + blank + plan.kernel.rank)
    channels = plan.kernel.in_channels
    table: list[Point] = []
    for image in plan.placement.images:
        for channel, *where in image.rows:
            group = channel // channels if plan.cover.packed > 1 else 0
            table.append((group, *(0,) * blank, channel - group * channels, *where))
        table += [nothing] * (plan.rows - len(image.rows))
    return tuple(table)


def _columns_table(plan: Plan) -> tuple[Point, ...]:
    """Columns: group, output channel, position."""
    channels = plan.kernel.out_channels
    table: list[Point] = []
    for channel, *where in plan.placement.columns:
        group = channel // channels if plan.cover.packed > 1 else 0
        table.append((group, channel - group * channels, *where))
    nothing = (NOWHERE,) * (2 + plan.kernel.rank)
    return (*table, *[nothing] * (plan.columns - len(table)))


def _taps_table(plan: Plan) -> tuple[Point, ...]:
    """Columns as what is subtracted from rows to give taps."""
    strides = plan.kernel.strides
    table = [
        (0, channel, 0, *(-s * o for s, o in zip(strides, where, strict=True)))
        for _, channel, *where in _columns_table(plan)[: len(plan.placement.columns)]
    ]
    nothing = (NOWHERE,) * (3 + plan.kernel.rank)
    return (*table, *[nothing] * (plan.columns - len(table)))


def _moves_table(plan: Plan, scale: Point, blank: int) -> tuple[Point, ...]:
    """Moves, with rows that lie nowhere for steps past the last one."""
    placement = plan.placement
    table = [
        (*(0,) * blank, *(s * m for s, m in zip(scale, move, strict=True)))
        for move in placement.moves
    ]
    if placement.line is not None and len(placement.counts) == 1 and len(table) > 1:
        steps = plan.chunks * plan.sets * plan.split.positions + 1
        lines = -(-steps // placement.counts[placement.line]) + 1
        table += [(NOWHERE,) * (blank + 1)] * max(0, lines - len(table))
    return tuple(table)


def _dropped(plan: Plan) -> list[tuple[int, int]]:
    """Pairs of a row and a column that meet at a tap which another pair takes."""
    kernel = plan.kernel
    columns = plan.placement.columns
    found: list[tuple[int, int]] = []
    for number, image in enumerate(plan.placement.images):
        for row, offset in enumerate(image.rows):
            for column, output in enumerate(columns):
                if image.taps[row][column] < 0 and _meet(kernel, offset, output):
                    found.append((number * plan.rows + row, column))
    return found


def _meet(kernel: MacKernel, offset: Point, output: Point) -> bool:
    for axis, x, o in zip(kernel.axes, offset[1:], output[1:], strict=True):
        distance = x - axis.stride * o
        if distance % axis.dilation or not 0 <= distance // axis.dilation < axis.taps:
            return False
    return True


# -- expressions ----------------------------------------------------------------------------------


def _dims(count: int) -> list[str]:
    return [f"d{index}" for index in range(count)]


def _add(left: str, right: str) -> str:
    if left == "0":
        return right
    return left if right == "0" else f"({left} + {right})"


def _times(expression: str, factor: int) -> str:
    if factor == 0 or expression == "0":
        return "0"
    return expression if factor == 1 else f"({expression} * {factor})"


def _div(expression: str, divisor: int) -> str:
    if expression == "0" or divisor == 1:
        return expression
    return f"({expression} floordiv {divisor})"


def _mod(expression: str, modulus: int) -> str:
    if expression == "0" or modulus == 1:
        return "0"
    return f"({expression} mod {modulus})"
