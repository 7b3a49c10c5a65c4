"""Groups that only reduce become loops of reduces, also where narrowing widened their results."""

import numpy as np
import pytest
from simdram_programs import module_of

from cim_opt.passes.pattern_group_to_reduce import PatternGroupToReducePass
from cim_opt.passes.pattern_narrow import PatternNarrowPass
from cim_opt.simulators.run import run_program
from cim_opt.tools.load_module import full_context

ROWS, LENGTH = 5, 70


def program(least: int, greatest: int) -> str:
    """The sums of rows of numbers in a range."""
    size = ROWS * LENGTH
    return f"""
func.func @main(%a: tensor<{size}xi32> {{pattern.range = [{least}, {greatest}]}})
    -> tensor<{ROWS}xi32> {{
  %y = pattern.group<{LENGTH}>(%r in %a : tensor<{size}xi32>) -> tensor<{ROWS}xi32> {{
    %zero = arith.constant 0 : i32
    %t = pattern.reduce(%x in %r : tensor<{LENGTH}xi32>) init(%acc = %zero : i32) {{
      %n = arith.addi %acc, %x : i32
      pattern.yield %n : i32
    }}
    pattern.yield %t : i32
  }}
  func.return %y : tensor<{ROWS}xi32>
}}"""


@pytest.mark.parametrize("limits", [(0, 255), (-128, 127)])
def test_a_narrowed_group_is_taken_apart(limits: tuple[int, int]) -> None:
    module = module_of(program(*limits))
    PatternNarrowPass(widths="any").apply(full_context(), module)
    assert "arith.ext" in str(module)
    PatternGroupToReducePass(mapping="reduction-in-lane").apply(full_context(), module)
    module.verify()
    assert "pattern.group" not in str(module)
    assert "pattern.reduce" in str(module)


@pytest.mark.parametrize("limits", [(0, 255), (-128, 127)])
def test_its_sums_are_those_of_the_group(limits: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(*limits, ROWS * LENGTH, np.int32, endpoint=True)
    module = module_of(program(*limits))
    options = {"mapping": "reduction-in-lane"}
    run = run_program(module, "main", {"a": numbers}, target="simdram", pipeline_options=options)
    assert np.array_equal(run.outputs[0], numbers.reshape(ROWS, LENGTH).sum(axis=1))
