"""Neutral elements are neutral: combine(neutral, x) == x == combine(x, neutral), bit by bit."""

from __future__ import annotations

import math

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.test import Test
from xdsl.parser import Parser

from cim_opt.dialects.pattern import FoldOp, Pattern
from cim_opt.passes.pattern_neutral import neutral_elements


def fold_in(text: str) -> FoldOp:
    """The only reduce or scan in `text`, verified."""
    context = Context()
    for dialect in (Arith, Builtin, Pattern, Test):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return next(op for op in module.walk() if isinstance(op, FoldOp))


def fold_with(operation: str, element: str, operands: str = "%acc, %x") -> FoldOp:
    return fold_in(f"""
    %a, %i = "test.op"() : () -> (tensor<?x{element}>, {element})
    %r = pattern.reduce(%x in %a : tensor<?x{element}>) init(%acc = %i : {element}) {{
      %s = arith.{operation} {operands} : {element}
      pattern.yield %s : {element}
    }}
    """)


NEUTRALS = [
    ("addi", "i32", 0),
    ("addi", "i1", 0),
    ("muli", "i8", 1),
    ("andi", "i1", 1),
    ("andi", "i64", -1),
    ("ori", "i16", 0),
    ("xori", "i32", 0),
    ("minsi", "i8", 127),
    ("minsi", "i32", 2**31 - 1),
    ("minsi", "i1", 0),
    ("maxsi", "i16", -(2**15)),
    ("maxsi", "i64", -(2**63)),
    ("maxsi", "i1", 1),
    ("minui", "i8", -1),
    ("minui", "i1", 1),
    ("maxui", "i32", 0),
    ("mulf", "f32", 1.0),
    ("minimumf", "f32", math.inf),
    ("maximumf", "f32", -math.inf),
]


@pytest.mark.parametrize(("operation", "element", "neutral"), NEUTRALS)
@pytest.mark.parametrize("operands", ["%acc, %x", "%x, %acc"])
def test_of_one_operation(
    operation: str, element: str, neutral: int | float, operands: str
) -> None:
    assert neutral_elements(fold_with(operation, element, operands)) == (neutral,)


def test_of_a_float_sum_is_minus_zero() -> None:
    neutrals = neutral_elements(fold_with("addf", "f32"))
    assert neutrals is not None
    (neutral,) = neutrals
    assert neutral == 0 and math.copysign(1, neutral) == -1


@pytest.mark.parametrize("operation", ["minnumf", "maxnumf"])
def test_of_a_minimum_that_drops_nan_is_nan(operation: str) -> None:
    neutrals = neutral_elements(fold_with(operation, "f32"))
    assert neutrals is not None
    (neutral,) = neutrals
    assert math.isnan(neutral)


@pytest.mark.parametrize("operands", ["%acc, %acc", "%x, %x"])
def test_unknown_when_an_operand_is_used_twice(operands: str) -> None:
    assert neutral_elements(fold_with("addi", "i32", operands)) is None


def test_unknown_for_a_subtraction() -> None:
    assert neutral_elements(fold_with("subi", "i32")) is None


def test_unknown_when_the_last_element_is_kept() -> None:
    fold = fold_in("""
    %a, %i = "test.op"() : () -> (tensor<?xi32>, i32)
    %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %i : i32) {
      pattern.yield %x : i32
    }
    """)
    assert neutral_elements(fold) is None


def test_one_for_each_accumulator() -> None:
    fold = fold_in("""
    %a, %b, %i, %j = "test.op"() : () -> (tensor<?xi8>, tensor<?xi32>, i8, i32)
    %r, %s = pattern.scan(%x in %a : tensor<?xi8>, %y in %b : tensor<?xi32>)
        init(%acc = %i : i8, %bcc = %j : i32) {
      %p = arith.minsi %acc, %x : i8
      %q = arith.addi %y, %bcc : i32
      pattern.yield %p, %q : i8, i32
    }
    """)
    assert neutral_elements(fold) == (127, 0)


def test_unknown_when_accumulators_depend_on_each_other() -> None:
    fold = fold_in("""
    %a, %i = "test.op"() : () -> (tensor<?xi32>, i32)
    %r, %s = pattern.reduce(%x in %a : tensor<?xi32>, %y in %a : tensor<?xi32>)
        init(%acc = %i : i32, %bcc = %i : i32) {
      %p = arith.muli %acc, %x : i32
      %q = arith.addi %acc, %y : i32
      pattern.yield %p, %q : i32, i32
    }
    """)
    assert neutral_elements(fold) is None


def test_the_combine_region_decides() -> None:
    fold = fold_in("""
    %a, %i = "test.op"() : () -> (tensor<?xi8>, tensor<4xi32>)
    %r = pattern.reduce(%x in %a : tensor<?xi8>) init(%acc = %i : tensor<4xi32>) {
      pattern.yield %acc : tensor<4xi32>
    } combine(%l, %r) {
      %m = arith.maxsi %r, %l : i32
      pattern.yield %m : i32
    }
    """)
    assert neutral_elements(fold) == (-(2**31),)
