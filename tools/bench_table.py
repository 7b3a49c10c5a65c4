"""What a table of cim-bench is: named rows, each measured by a function, and a summary."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cim_opt.errors import UserError

Cells = dict[str, Any]
"""One measured row: column name to a number, text or None; `row` is its name."""


@dataclass(frozen=True)
class Row:
    """A row that can be measured. `measure` gives the row's cells without its name.

    `optional` rows are measured only when they are asked for.
    """

    name: str
    measure: Callable[[], Cells]
    optional: bool = False

    def cells(self) -> Cells:
        """The measured row, its name first."""
        return {"row": self.name} | self.measure()


@dataclass(frozen=True)
class Table:
    """`rows` lists the rows without measuring any; `summary` is over measured rows.

    `summary` gets only the rows that were asked for, so it says nothing of those that are not
    there. `timed` tables measure this computer's time: rows run side by side disturb each other.
    `configured` gives the table with options of the command line, by name, where it has any.
    `shown` gives the rows that the text shows instead, where that is easier to read.
    """

    name: str
    about: str
    rows: Callable[[], Sequence[Row]]
    summary: Callable[[Sequence[Cells]], Cells]
    timed: bool = False
    configured: Callable[[Mapping[str, Any]], "Table"] | None = None
    shown: Callable[[Sequence[Cells]], Sequence[Cells]] | None = None


SHOWN_NAMES = 8
"""Names that an error lists."""


def chosen(table: Table, only: str | None) -> list[Row]:
    """The rows of the table; or the one named `only`, or else those whose names have its words.

    Raises UserError when there is none.
    """
    rows = list(table.rows())
    if only is None:
        return [row for row in rows if not row.optional]
    named = [row for row in rows if row.name == only]
    words = set(only.split())
    named = named or [row for row in rows if words and words <= set(row.name.split())]
    if named:
        return named
    names = ", ".join(f"'{row.name}'" for row in rows[:SHOWN_NAMES])
    more = f" and {len(rows) - SHOWN_NAMES} more" if len(rows) > SHOWN_NAMES else ""
    raise UserError(
        f"table {table.name} has no row '{only}'",
        f"its rows are {names}{more}",
        "name one of these, or words of their names",
    )


def as_json(table: Table, rows: Sequence[Cells]) -> dict[str, Any]:
    """`{"name": ..., "rows": [{...}], "summary": {...}}`."""
    return {"name": table.name, "rows": list(rows), "summary": table.summary(rows)}


def as_text(table: Table, rows: Sequence[Cells]) -> str:
    """The table for a person: columns as wide as they need to be, then the summary."""
    lines = rows if table.shown is None else table.shown(rows)
    columns = list(dict.fromkeys(column for row in lines for column in row))
    grid = [columns, *([_shown(row.get(column)) for column in columns] for row in lines)]
    widths = [max(len(line[i]) for line in grid) for i in range(len(columns))]
    text = [table.about, ""]
    text += [_line(cells, widths) for cells in grid]
    text += ["", *(f"{key}: {_shown(value)}" for key, value in table.summary(rows).items())]
    return "\n".join(text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = [f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)]
    numbers = [f"{cell.strip():>{len(cell)}}" for cell in rest]
    return "  ".join([first, *numbers]).rstrip()


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in cast("Cells", value).items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
