"""Row programs on packed rows: 64 lanes a word, every command over all lanes at once.

A program is compiled once and bound to rows once; then each run is a flat list of NumPy calls.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim_opt.microprograms.compiled import CompiledProgram, Operation, compile_program
from cim_opt.microprograms.model import RowProgram

Words = NDArray[np.uint64]
LANES = 64  # a word

_CALLS: dict[str, Callable[..., Any]] = {"and": np.bitwise_and, "or": np.bitwise_or}
_FILLS = (np.uint64(0), np.uint64(np.iinfo(np.uint64).max))


class BoundProgram:
    """A row program on certain rows of memory; `run` executes it, again and again."""

    def __init__(
        self,
        compiled: CompiledProgram,
        rows: Sequence[Words],
        words: int,
        temporaries: Sequence[Words] | None = None,
    ) -> None:
        """Rows of `words` words; `temporaries` are rows that hold nothing between runs."""
        if temporaries is None:
            temporaries = list(np.empty((compiled.temporaries, words), np.uint64))
        # Places count from 0, and temporary ones from -1 down, as those of a list do.
        places = [*rows, *reversed(temporaries[: compiled.temporaries])]
        self._calls = [_call(operation, places) for operation in compiled.operations]

    def run(self) -> None:
        """Read the rows of the inputs and write those of the outputs."""
        for call, arguments in self._calls:
            call(*arguments)


def _call(
    operation: Operation, places: Sequence[Words]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    kind, target, sources = operation
    if kind == "fill":
        return np.copyto, (places[target], _FILLS[sources[0]])
    if kind == "copy":
        return np.copyto, (places[target], places[sources[0]])
    if kind == "not":
        return np.invert, (places[sources[0]], places[target])
    return _CALLS[kind], (places[sources[0]], places[sources[1]], places[target])


def bind(program: RowProgram, rows: Mapping[str, Sequence[Words] | Words]) -> BoundProgram:
    """Bind the operands of `program` to rows: a list, lowest bit first, of uint64 arrays.

    All rows have one length, 64 lanes a word. An output may share rows with an input where
    `program.aliases` has the pair, bit by bit; rows must not overlap in part.
    Scratch rows are not needed.
    Raises ValueError for operands or rows that are not those of the program.
    """
    operands = {x.name: x for x in (*program.inputs, *program.outputs)}
    if set(rows) != set(operands):
        raise ValueError(f"{program.name} has operands {sorted(operands)}, not {sorted(rows)}")
    for name, operand in operands.items():
        if len(rows[name]) != operand.width:
            raise ValueError(f"operand {name} has {operand.width} rows, not {len(rows[name])}")
    given = [row for name in operands for row in rows[name]]
    words = _common_length(given)
    _check_sharing(program, rows)
    places: dict[int, int] = {}
    unique: list[Words] = []
    for row in given:
        if _address(row) not in places:
            places[_address(row)] = len(unique)
            unique.append(row)
    indexes = tuple(places[_address(row)] for row in given)
    return BoundProgram(compile_program(program, indexes), unique, words)


def _address(row: Words) -> int:
    return int(row.__array_interface__["data"][0])


def _check_sharing(program: RowProgram, rows: Mapping[str, Sequence[Words] | Words]) -> None:
    """Outputs share rows only with inputs that the program has read by then, bit by bit."""
    written = {
        _address(row): (x.name, i) for x in program.outputs for i, row in enumerate(rows[x.name])
    }
    for operand in program.inputs:
        for i, row in enumerate(rows[operand.name]):
            name, j = written.get(_address(row), (operand.name, i))
            if (name, j) != (operand.name, i) and (
                i != j or (operand.name, name) not in program.aliases
            ):
                raise ValueError(
                    f"{program.name} cannot have {operand.name}[{i}] and {name}[{j}] in one row"
                )


def _common_length(rows: Sequence[Words]) -> int:
    shapes = {row.shape for row in rows}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"rows of one length, not of shapes {sorted(shapes)}")
    if any(row.dtype != np.uint64 for row in rows):
        raise ValueError("rows of uint64 words")
    return shapes.pop()[0] if shapes else 0
