"""Integers of widths that NumPy does not have: every operation on all words of i5 and i1."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_ranges import BINARY, UNARY, s
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from cim_opt.errors import UserError
from cim_opt.simulators.reference import run_function

Array = np.ndarray[Any, np.dtype[Any]]
BITS = 5
NAMES = {
    "add": "arith.addi",
    "subtract": "arith.subi",
    "multiply": "arith.muli",
    "bit_and": "arith.andi",
    "bit_or": "arith.ori",
    "bit_xor": "arith.xori",
    "shift_left": "arith.shli",
    "shift_right_s": "arith.shrsi",
    "shift_right_u": "arith.shrui",
    "divide_s": "arith.divsi",
    "divide_floor_s": "arith.floordivsi",
    "divide_ceiling_s": "arith.ceildivsi",
    "divide_u": "arith.divui",
    "divide_ceiling_u": "arith.ceildivui",
    "remainder_s": "arith.remsi",
    "remainder_u": "arith.remui",
    "minimum_s": "arith.minsi",
    "maximum_s": "arith.maxsi",
    "minimum_u": "arith.minui",
    "maximum_u": "arith.maxui",
}
SINGLE = {
    "absolute": "math.absi",
    "count_ones": "math.ctpop",
    "count_leading_zeros": "math.ctlz",
    "count_trailing_zeros": "math.cttz",
}
WORDS = np.arange(32)
FIRST, SECOND = np.repeat(WORDS, 32), np.tile(WORDS, 32)


def parsed(text: str) -> ModuleOp:
    context = Context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, dialect)
    return Parser(context, text).parse_module()


def run_map(body: str, inputs: list[Array], types: list[str], result: str) -> Array:
    """What a map with this element function of %x0, %x1... gives."""
    args = ", ".join(f"%a{n}: tensor<?x{type}>" for n, type in enumerate(types))
    bound = ", ".join(f"%x{n} in %a{n} : tensor<?x{type}>" for n, type in enumerate(types))
    text = f"""
      func.func @main({args}) -> tensor<?x{result}> {{
        %m = pattern.map({bound}) -> tensor<?x{result}> {{
          {body}
          pattern.yield %r : {result}
        }}
        func.return %m : tensor<?x{result}>
      }}"""
    (got,) = run_function(parsed(text), "main", inputs)
    return np.asarray(got)


def held(words: Array) -> Array:
    """Words of i5 as the reference holds them."""
    return np.where(words >= 16, words - 32, words).astype(np.int8)


def expect(function: Callable[[int, int], int]) -> list[int]:
    pairs = zip(FIRST.tolist(), SECOND.tolist(), strict=True)
    return [s(BITS, function(a, b)) for a, b in pairs]


@pytest.mark.parametrize("name", NAMES)
def test_two_operands(name: str) -> None:
    body = f"%r = {NAMES[name]} %x0, %x1 : i5"
    got = run_map(body, [held(FIRST), held(SECOND)], ["i5", "i5"], "i5")
    assert got.dtype == np.int8
    assert got.tolist() == expect(lambda a, b: BINARY[name](BITS, a, b))


@pytest.mark.parametrize("name", SINGLE)
def test_one_operand(name: str) -> None:
    got = run_map(f"%r = {SINGLE[name]} %x0 : i5", [held(WORDS)], ["i5"], "i5")
    assert got.tolist() == [s(BITS, UNARY[name](BITS, word)) for word in range(32)]


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "slt": lambda a, b: s(BITS, a) < s(BITS, b),
    "sge": lambda a, b: s(BITS, a) >= s(BITS, b),
    "ult": lambda a, b: a < b,
    "uge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparisons(predicate: str) -> None:
    body = f"%r = arith.cmpi {predicate}, %x0, %x1 : i5"
    got = run_map(body, [held(FIRST), held(SECOND)], ["i5", "i5"], "i1")
    pairs = zip(FIRST.tolist(), SECOND.tolist(), strict=True)
    assert got.tolist() == [COMPARISONS[predicate](a, b) for a, b in pairs]


CASTS: dict[tuple[str, str], Callable[[int], int]] = {
    ("extsi", "i7"): lambda word: s(5, word),
    ("extui", "i7"): lambda word: word,
    ("extsi", "i32"): lambda word: s(5, word),
    ("extui", "i40"): lambda word: word,
    ("trunci", "i3"): lambda word: s(3, word & 7),
    ("trunci", "i1"): lambda word: word & 1,
}


@pytest.mark.parametrize(("cast", "target"), CASTS)
def test_casts(cast: str, target: str) -> None:
    body = f"%r = arith.{cast} %x0 : i5 to {target}"
    got = run_map(body, [held(WORDS)], ["i5"], target)
    assert got.tolist() == [CASTS[cast, target](word) for word in range(32)]


def test_casts_of_truth_values_and_long_words() -> None:
    truth = np.array([False, True])
    assert run_map("%r = arith.extsi %x0 : i1 to i5", [truth], ["i1"], "i5").tolist() == [0, -1]
    assert run_map("%r = arith.extui %x0 : i1 to i5", [truth], ["i1"], "i5").tolist() == [0, 1]
    long = np.array([15, 16, 31, -1, 32], np.int64)
    got = run_map("%r = arith.trunci %x0 : i64 to i5", [long], ["i64"], "i5")
    assert got.tolist() == [15, -16, -1, -1, 0]


def test_constants_wrap_to_their_width() -> None:
    body = "%k = arith.constant 15 : i5\n%r = arith.addi %x0, %k : i5"
    assert run_map(body, [held(WORDS)], ["i5"], "i5").tolist() == [
        s(BITS, word + 15) for word in range(32)
    ]
    text = """
      func.func @main() -> tensor<3xi5> {
        %k = arith.constant dense<[15, -16, -1]> : tensor<3xi5>
        func.return %k : tensor<3xi5>
      }"""
    (got,) = run_function(parsed(text), "main", [])
    assert np.asarray(got).tolist() == [15, -16, -1]


def test_folds_start_from_the_neutral_element_of_the_width() -> None:
    for kind, expected in (("addi", sum(range(-16, 16))), ("maxsi", 15), ("minui", 0)):
        text = f"""
          func.func @main(%a: tensor<?xi5>) -> i5 {{
            %z = arith.constant {0 if kind != "minui" else -1} : i5
            %r = pattern.reduce(%x in %a : tensor<?xi5>) init(%acc = %z : i5) {{
              %s = arith.{kind} %acc, %x : i5
              pattern.yield %s : i5
            }}
            func.return %r : i5
          }}"""
        values = np.tile(held(WORDS), 1001)  # long enough to be folded in parts
        (got,) = run_function(parsed(text), "main", [values])
        assert got == s(BITS, expected * 1001 if kind == "addi" else expected)


def test_what_is_for_numpys_widths_only_is_refused() -> None:
    body = "%r, %h = arith.mului_extended %x0, %x0 : i5"
    with pytest.raises(UserError, match="takes integers of 1, 8, 16, 32 and 64 bits"):
        run_map(body, [held(WORDS)], ["i5"], "i5")


def test_inputs_that_a_width_does_not_hold_are_refused() -> None:
    with pytest.raises(UserError, match=r"argument %a0\[1\] is 16; its range is \[-16, 15\]"):
        run_map("%r = arith.addi %x0, %x0 : i5", [np.array([15, 16], np.int8)], ["i5"], "i5")
