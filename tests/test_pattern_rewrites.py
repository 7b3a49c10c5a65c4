"""Canonicalised and fused programs verify, round-trip, and compute what they did before."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir_examples import full_context
from mlir_examples import parsed as parsed_in
from pattern_programs import programs
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.transforms.canonicalize import CanonicalizePass

from cim_opt.dialects.pattern import FoldOp, MapOp, PatternOp
from cim_opt.passes.pattern_bodies import yields_of
from cim_opt.passes.pattern_fuse import PatternFusePass
from cim_opt.passes.pattern_neutral import neutral_elements
from cim_opt.simulators.reference import run_function

CONTEXT = full_context()
CASES = int(os.environ.get("CIM_OPT_CASES", "100"))


def parsed(text: str) -> ModuleOp:
    return parsed_in(text, CONTEXT)


def _canonicalize(module: ModuleOp) -> None:
    CanonicalizePass().apply(CONTEXT, module)


def _fuse(module: ModuleOp) -> None:
    PatternFusePass().apply(CONTEXT, module)


PIPELINES = {
    "canonicalize": (_canonicalize,),
    "fuse": (_fuse,),
    "fuse and canonicalize": (_fuse, _canonicalize),
    "canonicalize and fuse": (_canonicalize, _fuse),
}


def check_combines(module: ModuleOp) -> None:
    """Every combine region joins by the operation that the body folds by (the programs' way)."""
    for op in module.walk():
        if not isinstance(op, FoldOp) or op.combine is None:
            continue
        assert neutral_elements(op) is not None
        joins = [type(value.owner) for value in yields_of(op.combine.block)]
        for value, join in zip(op.yielded(), joins, strict=True):
            # What adds 0 hands its accumulator on, and what multiplies by 0 is 0.
            assert isinstance(value.owner, Block | ConstantOp | join)


@settings(max_examples=CASES, deadline=None)
@given(program=programs(), seed=st.integers(0, 2**32 - 1))
def test_rewritten_programs_compute_the_same(program: tuple[str, int, int], seed: int) -> None:
    text, vectors, length = program
    random = np.random.default_rng(seed)
    inputs = [random.integers(-20, 20, length).astype(np.int32) for _ in range(vectors)]
    arguments = [*inputs, np.int32(random.integers(-20, 20))]
    expected = run_function(parsed(text), "main", arguments)
    for name, steps in PIPELINES.items():
        module = parsed(text)
        for step in steps:
            step(module)
        module.verify()
        check_combines(module)
        printed = str(module)
        assert str(parsed(printed)) == printed, name
        got = run_function(module, "main", arguments)
        for one, other in zip(expected, got, strict=True):
            assert one.dtype == other.dtype, name
            np.testing.assert_array_equal(one, other, err_msg=f"{name}:\n{printed}")


@settings(max_examples=CASES // 3, deadline=None)
@given(program=programs())
def test_rewriting_again_changes_nothing(program: tuple[str, int, int]) -> None:
    module = parsed(program[0])
    _fuse(module)
    _canonicalize(module)
    once = str(module)
    _canonicalize(module)
    assert str(module) == once


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_chain_of_maps_becomes_one_operation(length: int) -> None:
    lines = [
        f"%v{i + 1} = pattern.map(%x in %v{i} : tensor<?xi32>) -> tensor<?xi32> {{\n"
        "%y = arith.muli %x, %x : i32\npattern.yield %y : i32 }"
        for i in range(length)
    ]
    module = parsed(
        "func.func @main(%v0: tensor<?xi32>) -> tensor<?xi32> {\n"
        + "\n".join(lines)
        + f"\nfunc.return %v{length} : tensor<?xi32> }}"
    )
    _fuse(module)
    module.verify()
    patterns = [op for op in module.walk() if isinstance(op, PatternOp)]
    assert [type(op) for op in patterns] == [MapOp]
    values = np.arange(-3, 4, dtype=np.int32)
    (got,) = run_function(module, "main", [values])
    np.testing.assert_array_equal(
        got, (values.astype(object) ** 2**length).astype(np.int64).astype(np.int32)
    )


def test_a_scan_keeps_the_type_that_the_program_gives_it() -> None:
    text = """
    func.func @main(%a: tensor<2xi32>, %k: i32) -> tensor<?xi32> {
      %m = pattern.map(%x in %a : tensor<2xi32>) -> (tensor<?xi32>) {
        %y = arith.addi %x, %x : i32
        pattern.yield %y : i32
      }
      %s = pattern.scan(%x in %m : tensor<?xi32>) init(%acc = %k : i32) {
        %t = arith.addi %acc, %x : i32
        pattern.yield %t : i32
      }
      func.return %s : tensor<?xi32>
    }
    """
    module = parsed(text)
    _fuse(module)
    assert str(parsed(str(module))) == str(module)
    (sums,) = run_function(module, "main", [np.array([1, 2], np.int32), np.int32(5)])
    assert list(sums) == [7, 11]
