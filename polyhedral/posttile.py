"""Post-tiling: virtual rows and columns onto the rows and columns that a macro has.

row = virtual row mod R, column = virtual column mod C; the quotients are loops outside, each of
whose steps is a use of the macro with weights of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def tiles(virtual: int, physical: int) -> int:
    """Uses of a macro that `virtual` rows or columns take when it has `physical`."""
    return -(-virtual // physical)


def used_tiles(cells: NDArray[np.bool_], rows: int, columns: int, repeat: tuple[int, int]) -> int:
    """Macro tiles that hold at least one used cell.

    The virtual array consists of `repeat` copies of `cells` [row, column], one below the other
    and side by side: one an input channel and one an output channel. `rows` and `columns` are
    those of a macro.
    """
    wide = np.tile(cells, (1, repeat[1]))
    by_column = _any_in_tiles(wide.T, columns)
    high = np.tile(by_column.T, (repeat[0], 1))
    return int(_any_in_tiles(high, rows).sum())


def _any_in_tiles(cells: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """[tile, other]: whether any of `size` neighbours along the first axis is set."""
    return np.logical_or.reduceat(cells, np.arange(0, len(cells), size), axis=0)


def text(virtual: str, size: int, physical: int) -> tuple[str, str]:
    """isl expressions of the tile and of the row (or column) inside it.

    Of a virtual row (or column) of `size`, given as an expression, on `physical` ones.
    """
    if size <= physical:
        return "0", virtual
    return f"floor(({virtual})/{physical})", f"({virtual}) mod {physical}"


def map_text(sizes: tuple[int, int], rows: int, columns: int) -> str:
    """The isl map [virtual row, virtual column] -> [row tile, column tile, row, column].

    `sizes` counts virtual rows and columns.
    """
    row_tile, row = text("vr", sizes[0], rows)
    column_tile, column = text("vc", sizes[1], columns)
    return f"{{ [vr, vc] -> [{row_tile}, {column_tile}, {row}, {column}] }}"
