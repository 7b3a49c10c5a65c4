"""The cycle model on the public prototype's own programs, against what its simulator measured.

One set of constants (`CodeShape`) describes the scalar code of all of them. It was chosen on these
rows, so the errors below say how well one rule explains all programs, not how well it predicts
others; the constants of the machine come from other measurements (test_cim_timing.py).
`python tests/test_cim_prototype.py` prints every row.
"""

from collections import defaultdict
from dataclasses import replace
from statistics import geometric_mean, mean, median
from typing import Any

import pytest
from cim_prototype import OPERATORS, CodeShape, program, rows

from cim_opt.cost.cim_timing import simulate
from cim_opt.hardware.cim import load_machine
from cim_opt.tools.cim_workloads import Published


def _distinct() -> list[Published]:
    """Each program once: operators that are the same under two names, ties that changed nothing."""
    found = {(OPERATORS[row.op], row.machine, row.loops, row.cycles): row for row in rows()}
    return list(found.values())


def _cycles(row: Published, shape: CodeShape, **changes: Any) -> int:
    machine = replace(load_machine(row.machine), **changes)
    return simulate(program(row, machine, shape), machine).cycles


def _errors(shape: CodeShape | None = None, **changes: Any) -> dict[Published, float]:
    shape = shape or CodeShape()
    return {row: _cycles(row, shape, **changes) / row.cycles - 1 for row in _distinct()}


def test_every_program_within_the_stated_error() -> None:
    errors = _errors()
    sizes = sorted(abs(error) for error in errors.values())
    assert len(sizes) == 132
    assert mean(sizes) < 0.0235
    assert median(sizes) < 0.015
    assert abs(mean(errors.values())) < 0.01  # neither too fast nor too slow in all
    assert 0.16 < sizes[-1] < 0.17
    # The rule does not explain the code of these. C1 as im2col has more outputs than the output
    # memory holds and copies them in pieces; programs of one step are mostly their prologue; why
    # C12 is faster on one macro is not known.
    far = {(row.loops, row.machine) for row, error in errors.items() if abs(error) > 0.1}
    assert far == {
        ((1, 16, 7, 7, 2, 1, 1, 1), "cim-32x64-8"),  # C1, im2col: -11.4 %
        ((1, 16, 7, 7, 2, 1, 1, 1), "cim-64x64-8"),
        ((1, 1, 1, 1), "cim-32x64-8"),  # C7: +16.7 %
        ((1, 1, 1, 1), "cim-64x64-8"),  # C6: +11.4 %, C7: +16.7 %
        ((1, 7, 7, 2, 1, 1, 1), "cim-32x64-1"),  # C12: +10.8 %
        ((1, 7, 7, 2, 1, 1, 1), "cim-64x64-1"),
    }


@pytest.mark.parametrize("macros", [1, 8])
@pytest.mark.parametrize("mode", ["prototype", "im2col", "fewest-images"])
def test_no_mode_is_favoured(mode: str, macros: int) -> None:
    """A table that compares modes or machines is not tilted by the model."""
    ratios = [
        1 + error
        for row, error in _errors().items()
        if row.mode == mode and row.machine.endswith(f"-{macros}")
    ]
    assert 0.96 < geometric_mean(ratios) < 1.03


def test_the_public_front_end_explains_them_as_well() -> None:
    """A core that stalls, with nothing that waits for results, and constants chosen for that."""
    shape = CodeShape(prologue=15, level=14, before=10, after=10, weights=8, partial=13)
    errors = _errors(shape, front_end="stall", results_interlocked=False)
    sizes = [abs(error) for error in errors.values()]
    assert mean(sizes) < 0.02
    assert 0.13 < max(sizes) < 0.14


def test_steps_are_those_of_the_loops() -> None:
    for row in rows():
        macros = load_machine(row.machine).macros
        steps = macros
        for size in row.loops:
            steps *= size
        assert steps == row.steps if macros == 1 else steps >= row.steps, row


def _print() -> None:
    by_operator: dict[str, list[float]] = defaultdict(list)
    for row in rows():
        cycles = _cycles(row, CodeShape())
        error = cycles / row.cycles - 1
        by_operator[row.op].append(error)
        print(f"{row.op:6}{row.machine:13}{row.mode:14}{row.cycles:9}{cycles:9}{error:+8.1%}")
    for op, errors in by_operator.items():
        print(f"{op:6} mean {mean(map(abs, errors)):.1%}, worst {max(errors, key=abs):+.1%}")
    sizes = [abs(error) for error in _errors().values()]
    print(f"{len(sizes)} programs: mean {mean(sizes):.1%}, largest {max(sizes):.1%}")


if __name__ == "__main__":
    _print()
