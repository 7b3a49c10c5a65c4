"""Affine schedules as isl maps: the whole one, and its three stages for themselves."""

from __future__ import annotations

from dataclasses import dataclass

from cim_opt.polyhedral import coalesce, posttile
from cim_opt.polyhedral.affine_basis import coordinates
from cim_opt.polyhedral.affine_part import measure
from cim_opt.polyhedral.affine_schedule import AffineSchedule
from cim_opt.polyhedral.isl_text import level_texts, linear_text, statement


@dataclass(frozen=True, slots=True)
class Stages:
    """isl maps of a schedule, each from what the one before gives.

    `affine`: S to all coordinates, times first, then those of rows, then those of columns.
    `row` and `column`: coordinates to the virtual row and column. `tile`: virtual row and column
    to tiles, row and column of the macro.
    """

    affine: str
    row: str
    column: str
    tile: str


def schedule_text(schedule: AffineSchedule) -> str:
    """{ S[..] -> [g, times .., row tile, column tile, macro, row, column] }, all on macro 0."""
    found = _Coordinates.of(schedule)
    row = coalesce.text([f"({text})" for text in found.rows], found.row_sizes)
    column = coalesce.text([f"({text})" for text in found.columns], found.column_sizes)
    row_tile, row = posttile.text(row, schedule.virtual_rows, schedule.rows)
    column_tile, column = posttile.text(column, schedule.virtual_columns, schedule.columns)
    there = ", ".join(("g", *found.times, row_tile, column_tile, "0", row, column))
    return f"{{ {statement(schedule.kernel)} -> [{there}] }}"


def stages(schedule: AffineSchedule) -> Stages:
    """The maps that `schedule_text` is composed of."""
    found = _Coordinates.of(schedule)
    there = ", ".join(("g", *found.times, *found.rows, *found.columns))
    rows = [f"r{i}" for i in range(len(found.rows))]
    columns = [f"c{i}" for i in range(len(found.columns))]
    return Stages(
        f"{{ {statement(schedule.kernel)} -> [{there}] }}",
        coalesce.map_text(rows, found.row_sizes),
        coalesce.map_text(columns, found.column_sizes),
        posttile.map_text(
            (schedule.virtual_rows, schedule.virtual_columns), schedule.rows, schedule.columns
        ),
    )


@dataclass(frozen=True, slots=True)
class _Coordinates:
    """Expressions over the loops of S, and the sizes of their boxes."""

    times: list[str]
    rows: list[str]
    columns: list[str]
    row_sizes: list[int]
    column_sizes: list[int]

    @classmethod
    def of(cls, schedule: AffineSchedule) -> _Coordinates:
        kernel = schedule.kernel
        found = cls([], ["ic"], ["oc"], [kernel.in_channels], [kernel.out_channels])
        for axis, part in enumerate(schedule.parts):
            levels = level_texts(f"o{axis}", part.factors[0])
            levels += level_texts(f"k{axis}", part.factors[1])
            matrix = coordinates(tuple(vector.entries for vector in part.basis))
            sizes, lows = measure(part).sizes, measure(part).lows
            for vector, row, size, low in zip(part.basis, matrix, sizes, lows, strict=True):
                text = linear_text(row, levels, -low)
                if vector.role == "time":
                    found.times.append(text)
                elif vector.role == "row":
                    found.rows.append(text)
                    found.row_sizes.append(size)
                else:
                    found.columns.append(text)
                    found.column_sizes.append(size)
        return found
