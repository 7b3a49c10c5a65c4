"""How long this computer takes for SIMDRAM programs, and what it says meanwhile."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from simdram_programs import VECTOR_ADD, machine, module_of, numbers, run

from cim_opt.dialects.simdram import Opcode
from cim_opt.simulators import simdram_levels, simdram_programs
from cim_opt.simulators.simdram import SimdramSimulator
from cim_opt.simulators.simdram_levels import RowLevel
from cim_opt.simulators.simdram_objects import VerticalObject
from cim_opt.simulators.simdram_programs import Programs


def best(run_once: Any, times: int) -> float:
    """The least of some measured times: other work on the computer only adds to them."""
    seconds = list[float]()
    for _ in range(times):
        start = time.perf_counter()
        run_once()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def test_a_row_level_addition_is_quick() -> None:
    """32 bits of 65,536 columns, every row command executed."""
    a, b = numbers(65536), numbers(65536)
    level, recipe = RowLevel(), Programs("cim-opt").bbop(Opcode.ADD, 32, 32, None)
    args = [VerticalObject(32, 65536, 32 * n) for n in range(2)]
    for arg, x in zip(args, (a, b), strict=True):
        arg.data = level.load(x.view(np.uint32), arg)
    made = VerticalObject(32, 65536, 64)
    made.data = level.run(recipe, args, made)
    assert (level.store(made).view(np.int32) == a + b).all()
    assert best(lambda: level.run(recipe, args, made), 50) < 0.5e-3


def test_millions_of_elements_are_quick() -> None:
    count = 16_700_000
    a, b = (np.arange(count, dtype=np.int32) * k for k in (3, 5))
    module = module_of(VECTOR_ADD)
    results = list[Any]()
    assert best(lambda: results.append(run(module, [a, b])), 2) < 5
    (got,), report = results[0]
    assert (got == a + b).all()
    assert report.bbops == -(-count // 65536)


def test_programs_are_compiled_and_bound_once() -> None:
    """For all runs, and for all lengths of about the same size."""
    text = VECTOR_ADD.replace("simdram.bbop add", "simdram.bbop divu")
    a, b = numbers(64 * 100), numbers(64 * 100)
    run(text, [a, b], level="rows")
    before = simdram_levels.bound_program.cache_info().misses
    for length in (64 * 100, 64 * 65 - 63, 64 * 128):
        x, y = np.resize(a, length), np.resize(b, length)
        (got,), _ = run(text, [x, y], level="rows")
        (want,), _ = run(text, [x, y], level="bbop")
        assert (got == want).all()
    assert simdram_levels.bound_program.cache_info().misses == before


def test_new_scalars_are_counted_without_making_their_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop over a table multiplies by thousands of numbers, most of them once."""

    def no_program(*_: Any) -> Any:
        raise AssertionError("the program is made")

    monkeypatch.setattr(simdram_programs, "mul_scalar_program", no_program)
    programs = Programs("cim-opt")
    recipes = [programs.mul_scalar(31, scalar) for scalar in range(70_000, 70_100)]
    assert all(recipe.counts.total > 31 for recipe in recipes)
    assert programs.mul_scalar(31, 70_000) is recipes[0]


def test_progress_is_told() -> None:
    told = list[tuple[float, str]]()
    a = numbers(3_000_000)
    simulator = SimdramSimulator(
        machine(), level="rows", progress=lambda fraction, text: told.append((fraction, text))
    )
    simulator.run(module_of(VECTOR_ADD), "main", [a, a])
    assert told[0] == (0.0, "bbop 0")
    assert all(0 <= fraction <= 1 for fraction, _ in told)
    assert [fraction for fraction, _ in told] == sorted(fraction for fraction, _ in told)
