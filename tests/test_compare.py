"""Comparison rules: bit by bit, and the bound for reordered float folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference_checks import parse

from cim_opt.simulators.compare import EXACT, Mismatch, Rule, compare, rules_for
from cim_opt.simulators.reference import run_function


def array(*values: float) -> Any:
    return np.array(values, np.float32)


def test_equal_values() -> None:
    assert compare(np.array([1, 2], np.int8), np.array([1, 2], np.int8)) is None
    assert compare(np.int32(3), np.int32(3)) is None
    assert compare(np.zeros(0, np.int32), np.zeros(0, np.int32)) is None


def test_first_difference() -> None:
    found = compare(np.array([1, 2, 3, 4], np.int32), np.array([1, 2, 7, 8], np.int32))
    assert found == Mismatch(2, np.int32(3), np.int32(7))
    assert str(found) == "value differs at index 2: expected 3, got 7"
    assert str(compare(np.int64(1), np.int64(2))) == "value differs: expected 1, got 2"


def test_lengths_and_types() -> None:
    found = compare(np.zeros(3, np.int32), np.zeros(4, np.int32))
    assert str(found) == "length differs: expected 3, got 4"
    found = compare(np.zeros(3, np.int32), np.zeros(3, np.int64))
    assert str(found) == "type differs: expected int32, got int64"
    for rule in (EXACT, Rule(1.0)):
        assert compare(np.zeros(3, np.float32), np.zeros(0, np.float32), rule) is not None


def test_floats_are_compared_by_their_bits() -> None:
    nan = np.array([0x7FC00000, 0x7F800001], np.uint32).view(np.float32)
    assert compare(nan, nan[::-1]) is None
    assert compare(array(0.0), array(-0.0)) == Mismatch(0, np.float32(0.0), np.float32(-0.0))
    assert compare(array(1.0), np.nextafter(array(1.0), array(2.0))) is not None
    assert compare(array(np.inf), array(-np.inf)) is not None
    assert compare(array(np.nan), array(1.0)) is not None


def test_tolerance() -> None:
    rule = Rule(np.array([0.5, 0.0]), 10, 3.0)
    assert compare(array(1.0, 2.0), array(1.5, 2.0), rule) is None
    assert compare(array(1.0, 2.0), array(1.0, 2.25), rule) == Mismatch(
        1, np.float32(2.0), np.float32(2.25)
    )
    assert compare(array(np.nan, np.inf), array(np.nan, np.inf), rule) is None
    assert compare(array(np.inf, 0), array(1.0, 0), rule) is not None
    assert compare(array(np.nan, 0), array(1.0, 0), rule) is not None
    assert str(rule) == "float fold in another order, within 0.5 (n = 10, M = 3)"
    assert str(EXACT) == "bit-exact"


SUM = """
    func.func @f(%a: tensor<?xf32>) -> (f32, tensor<?xf32>, tensor<?xf32>, f32, tensor<?xi32>) {
      %z = arith.constant 0.0 : f32
      %big = arith.constant 3.0e38 : f32
      %s = pattern.reduce(%x in %a : tensor<?xf32>) init(%acc = %z : f32) {
        %t = arith.addf %acc, %x : f32
        pattern.yield %t : f32
      }
      %m = pattern.reduce(%x in %a : tensor<?xf32>) init(%acc = %big : f32) {
        %t = arith.minimumf %acc, %x : f32
        pattern.yield %t : f32
      }
      %d, %i = pattern.map(%x in %a : tensor<?xf32>) shared(%k = %s : f32)
          -> (tensor<?xf32>, tensor<?xi32>) {
        %t = arith.mulf %x, %k : f32
        %u = arith.fptosi %t : f32 to i32
        pattern.yield %t, %u : f32, i32
      }
      %e = pattern.map(%x in %a : tensor<?xf32>) -> tensor<?xf32> {
        %t = arith.mulf %x, %x : f32
        pattern.yield %t : f32
      }
      func.return %s, %d, %e, %m, %i : f32, tensor<?xf32>, tensor<?xf32>, f32, tensor<?xi32>
    }"""


def test_rules_follow_the_data() -> None:
    """The sum, and what is computed from it, get a bound; the rest stays bit-exact."""
    a = np.random.default_rng(0).standard_normal(5000, np.float32)
    rules = rules_for(parse(SUM), "f", [a])
    assert [rule.exact for rule in rules] == [False, False, True, True, False]
    assert rules[0].terms == 5000
    largest = np.max(np.abs(np.cumsum(a, dtype=np.float64)))
    assert rules[0].magnitude == pytest.approx(largest, rel=1e-3)
    factor = 8 * np.sqrt(5001) * np.finfo(np.float32).eps
    assert rules[0].bound == pytest.approx(largest * factor, rel=1e-2)
    # The scaled vector moves with the sum, element by element.
    wanted = rules[0].bound * np.abs(a)
    close = np.abs(rules[1].tolerance - wanted) <= 0.1 * wanted + 1e-5
    assert np.all(close)


@pytest.mark.parametrize("length", [1, 2, 1000, 200_000])
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["reduce", "scan"])
def test_another_order_is_within_the_bound(length: int, shift: float, kind: str) -> None:
    """One after the other, and in blocks as many tasklets would do it."""
    result = "f32" if kind == "reduce" else "tensor<?xf32>"
    module = parse(f"""
        func.func @f(%a: tensor<?xf32>) -> {result} {{
          %z = arith.constant 0.25 : f32
          %s = pattern.{kind} (%x in %a : tensor<?xf32>) init(%acc = %z : f32) {{
            %t = arith.addf %acc, %x : f32
            pattern.yield %t : f32
          }}
          func.return %s : {result}
        }}""")
    a = np.random.default_rng(length).standard_normal(length, np.float32) + np.float32(shift)
    (rule,) = rules_for(module, "f", [a])
    (expected,) = run_function(module, "f", [a])
    start = np.float32(0.25)
    sequential = np.add.accumulate(np.concatenate([[start], a]), dtype=np.float32)[1:]
    blocks = [np.add.accumulate(part, dtype=np.float32) for part in np.array_split(a, 37)]
    joined = list[Any]()
    for block in blocks:
        joined.append(start + block)
        start = joined[-1][-1] if block.size else start
    for totals in (sequential, np.concatenate(joined)):
        got = totals if kind == "scan" else totals[-1]
        assert compare(expected, got, rule) is None
        # An element that is left out, or taken twice, does not pass.
        wrong = got + np.float32(max(abs(float(a[0])), 4 * rule.bound))
        assert compare(expected, wrong, rule) is not None


def test_bounds_are_small_beside_the_result() -> None:
    module = parse(SUM)
    a = np.random.default_rng(1).random(1_000_000, np.float32)
    rule = rules_for(module, "f", [a])[0]
    (total, *_) = run_function(module, "f", [a])
    assert rule.bound < total / 500


@pytest.mark.parametrize(
    "body",
    [
        "%t = arith.addi %acc, %x : i32",
        "%t = arith.maxsi %acc, %x : i32",
    ],
)
def test_integer_programs_are_exact(body: str) -> None:
    module = parse(f"""
        func.func @f(%a: tensor<?xi32>) -> i32 {{
          %z = arith.constant 0 : i32
          %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : i32) {{
            {body}
            pattern.yield %t : i32
          }}
          func.return %s : i32
        }}""")
    assert rules_for(module, "f", [np.arange(9, dtype=np.int32)]) == [EXACT]


def test_nested_float_folds_are_exact() -> None:
    """Inside an element function a fold is computed as it is written, here and on a machine."""
    module = parse("""
        func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> {
          %r = pattern.group<4>(%g in %a : tensor<?xf32>) -> tensor<?xf32> {
            %z = arith.constant 0.0 : f32
            %s = pattern.reduce(%x in %g : tensor<4xf32>) init(%acc = %z : f32) {
              %t = arith.addf %acc, %x : f32
              pattern.yield %t : f32
            }
            pattern.yield %s : f32
          }
          func.return %r : tensor<?xf32>
        }""")
    assert rules_for(module, "f", [np.ones(8, np.float32)]) == [EXACT]


def test_folds_in_called_functions_and_loops_count() -> None:
    module = parse("""
        func.func @sum(%a: tensor<?xf32>, %z: f32) -> f32 {
          %s = pattern.reduce(%x in %a : tensor<?xf32>) init(%acc = %z : f32) {
            %t = arith.addf %acc, %x : f32
            pattern.yield %t : f32
          }
          func.return %s : f32
        }
        func.func @f(%a: tensor<?xf32>) -> f32 {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %two = arith.constant 2 : index
          %z = arith.constant 0.0 : f32
          %s = scf.for %i = %zero to %two step %one iter_args(%acc = %z) -> (f32) {
            %t = func.call @sum(%a, %acc) : (tensor<?xf32>, f32) -> f32
            scf.yield %t : f32
          }
          func.return %s : f32
        }""")
    a = np.random.default_rng(2).random(3000, np.float32)
    (rule,) = rules_for(module, "f", [a])
    assert not rule.exact
    assert rule.terms == 3000
