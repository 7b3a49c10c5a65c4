"""Reduces and scans of the reference against the scalar oracle."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from reference_checks import assert_same, parse, random_arguments
from scalar_oracle import oracle
from xdsl.dialects.builtin import ModuleOp

from cim_opt.errors import UserError
from cim_opt.simulators.reference import run_function


def fold_text(
    kind: str, inputs: str, accumulators: str, body: str, types: str, rest: str = ""
) -> str:
    """A function @f that folds; `types` are those of the accumulators."""
    names = [part.strip() for part in types.split(",")]
    results = [f"tensor<?x{name}>" for name in names] if "scan" in kind else names
    outs = ", ".join(f"%r{i}" for i in range(len(names)))
    binding = ", ".join(
        f"%x{i} in %a{i} : tensor<?x{t}>" for i, t in enumerate(inputs.replace(" ", "").split(","))
    )
    formal = ", ".join(
        f"%a{i}: tensor<?x{t}>" for i, t in enumerate(inputs.replace(" ", "").split(","))
    )
    inits = accumulators.replace(" ", "").split(",")
    constants = "\n".join(f"%i{n} = arith.constant {v} : {names[n]}" for n, v in enumerate(inits))
    init = ", ".join(f"%l{n} = %i{n} : {names[n]}" for n in range(len(inits)))
    return f"""
        func.func @f({formal}) -> ({", ".join(results)}) {{
          {constants}
          {outs} = pattern.{kind} ({binding}) init({init}) {{
            {body}
          }} {rest}
          func.return {outs} : {", ".join(results)}
        }}"""


AFFINE = """%p0 = arith.muli %l0, %x0 : i32
            %p1 = arith.muli %x0, %l1 : i32
            %p2 = arith.addi %p1, %x1 : i32
            pattern.yield %p0, %p2 : i32, i32"""
"""(a, b) stands for t -> a t + b; f combines "first l, then x". It does not commute."""

FOLDS: dict[str, tuple[str, ...]] = {
    "sum from 10": ("i32", "10", "%s = arith.addi %l0, %x0 : i32 pattern.yield %s : i32", "i32"),
    "unsigned minimum": (
        "i16",
        "-3",
        "%s = arith.minui %x0, %l0 : i16 pattern.yield %s : i16",
        "i16",
    ),
    "sum and largest": (
        "i8, i64",
        "1, 2",
        """%s = arith.addi %l0, %x0 : i8
           %m = arith.maxui %l1, %x1 : i64
           pattern.yield %s, %m : i8, i64""",
        "i8, i64",
    ),
    "exclusive or of i1": (
        "i1",
        "1",
        "%s = arith.xori %l0, %x0 : i1 pattern.yield %s : i1",
        "i1",
    ),
    "sum of i1 wraps": (
        "i1",
        "1",
        "%s = arith.addi %l0, %x0 : i1 pattern.yield %s : i1",
        "i1",
    ),
    "last element": ("i32", "10", "pattern.yield %x0 : i32", "i32"),
    "first element": ("i32", "10", "pattern.yield %l0 : i32", "i32"),
    "first place of the largest": (
        "i32, i32",
        "-2147483648, -1",
        """%g = arith.cmpi sgt, %x0, %l0 : i32
           %v = arith.select %g, %x0, %l0 : i32
           %w = arith.select %g, %x1, %l1 : i32
           pattern.yield %v, %w : i32, i32""",
        "i32, i32",
    ),
    "composition does not commute": ("i32, i32", "3, 4", AFFINE, "i32, i32"),
    "composition of pairs by a combine region": (
        "i8",
        "1, 0",
        """%e = arith.extsi %x0 : i8 to i32
           %one = arith.constant 1 : i32
           %k = arith.ori %e, %one : i32
           %p0 = arith.muli %l0, %k : i32
           %p1 = arith.muli %k, %l1 : i32
           %p2 = arith.addi %p1, %e : i32
           pattern.yield %p0, %p2 : i32, i32""",
        "i32, i32",
        """combine(%p, %q, %r, %s) {
             %u = arith.muli %p, %r : i32
             %v = arith.muli %r, %q : i32
             %w = arith.addi %v, %s : i32
             pattern.yield %u, %w : i32, i32
           }""",
    ),
    "dot product with a combine region, from 10": (
        "i32, i8",
        "10",
        """%e = arith.extsi %x1 : i8 to i32
           %p = arith.muli %x0, %e : i32
           %s = arith.addi %l0, %p : i32
           pattern.yield %s : i32""",
        "i32",
        "combine(%p, %q) { %s = arith.addi %p, %q : i32 pattern.yield %s : i32 }",
    ),
    "float minimum": (
        "f32",
        "0.25",
        "%s = arith.minimumf %l0, %x0 : f32 pattern.yield %s : f32",
        "f32",
    ),
}
FOLD_LENGTHS = (0, 1, 2, 31, 512, 513, 1024, 1600, 3001)


@pytest.mark.parametrize("kind", ["reduce", "scan", "scan exclusive"])
@pytest.mark.parametrize("name", FOLDS)
def test_folds(name: str, kind: str) -> None:
    module = parse(fold_text(kind, *FOLDS[name]))
    for length in FOLD_LENGTHS:
        args = random_arguments(module, length, length)
        assert_same(run_function(module, "f", args), oracle(module, "f", args))


@pytest.mark.parametrize("kind", ["reduce", "scan", "scan exclusive"])
@pytest.mark.parametrize("name", FOLDS)
def test_nested_folds(name: str, kind: str) -> None:
    """The same fold in an element function, of long slices, for several lanes at once."""
    inputs, accumulators, body, types, *rest = FOLDS[name]
    names = [part.strip() for part in types.split(",")]
    size = 1100
    elements = inputs.replace(" ", "").split(",")
    formal = ", ".join(f"%a{i}: tensor<?x{t}>" for i, t in enumerate(elements))
    outer = ", ".join(f"%g{i} in %a{i} : tensor<?x{t}>" for i, t in enumerate(elements))
    inner = ", ".join(f"%x{i} in %g{i} : tensor<{size}x{t}>" for i, t in enumerate(elements))
    inits = accumulators.replace(" ", "").split(",")
    constants = "\n".join(f"%i{n} = arith.constant {v} : {names[n]}" for n, v in enumerate(inits))
    init = ", ".join(f"%l{n} = %i{n} : {names[n]}" for n in range(len(inits)))
    outs = ", ".join(f"%r{n}" for n in range(len(names)))
    last = "\n".join(
        f"%y{n} = tensor.extract %r{n}[%at] : tensor<{size}x{t}>" for n, t in enumerate(names)
    )
    picked = ", ".join(f"%y{n}" if "scan" in kind else f"%r{n}" for n in range(len(names)))
    results = ", ".join(f"tensor<?x{t}>" for t in names)
    module = parse(f"""
        func.func @f({formal}) -> ({results}) {{
          {", ".join(f"%o{n}" for n in range(len(names)))} = pattern.group<{size}>({outer})
              -> ({results}) {{
            {constants}
            %at = arith.constant 1098 : index
            {outs} = pattern.{kind} ({inner}) init({init}) {{ {body} }} {rest[0] if rest else ""}
            {last if "scan" in kind else ""}
            pattern.yield {picked} : {types}
          }}
          func.return {", ".join(f"%o{n}" for n in range(len(names)))} : {results}
        }}""")
    for groups in (0, 1, 3):
        args = random_arguments(module, groups * size, groups)
        assert_same(run_function(module, "f", args), oracle(module, "f", args))


HISTOGRAM = """
    func.func @f(%a: tensor<?xi8>) -> tensor<256xi32> {
      %z = arith.constant dense<0> : tensor<256xi32>
      %h = pattern.reduce(%x in %a : tensor<?xi8>) init(%bins = %z : tensor<256xi32>) {
        %u = arith.extui %x : i8 to i32
        %i = arith.index_cast %u : i32 to index
        %one = arith.constant 1 : i32
        %old = tensor.extract %bins[%i] : tensor<256xi32>
        %new = arith.addi %old, %one : i32
        %next = tensor.insert %new into %bins[%i] : tensor<256xi32>
        pattern.yield %next : tensor<256xi32>
      } combine(%l, %r) {
        %s = arith.addi %l, %r : i32
        pattern.yield %s : i32
      }
      func.return %h : tensor<256xi32>
    }"""

GUARDED_HISTOGRAM = """
    func.func @f(%a: tensor<?xi32>, %start: tensor<4xi32>) -> tensor<4xi32> {
      %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%bins = %start : tensor<4xi32>) {
        %four = arith.constant 4 : i32
        %in = arith.cmpi ult, %x, %four : i32
        %i = arith.index_cast %x : i32 to index
        %r = scf.if %in -> (tensor<4xi32>) {
          %old = tensor.extract %bins[%i] : tensor<4xi32>
          %new = arith.maxsi %old, %x : i32
          %next = tensor.insert %new into %bins[%i] : tensor<4xi32>
          scf.yield %next : tensor<4xi32>
        } else {
          scf.yield %bins : tensor<4xi32>
        }
        pattern.yield %r : tensor<4xi32>
      } combine(%l, %r) {
        %s = arith.maxsi %l, %r : i32
        pattern.yield %s : i32
      }
      func.return %h : tensor<4xi32>
    }"""


@pytest.mark.parametrize("text", [HISTOGRAM, GUARDED_HISTOGRAM], ids=["plain", "guarded"])
def test_tensor_accumulators(text: str) -> None:
    module = parse(text)
    for length in FOLD_LENGTHS:
        args = random_arguments(module, length, length, small=True)
        before = [arg.copy() for arg in args]
        assert_same(run_function(module, "f", args), oracle(module, "f", args))
        assert_same(args, before)


def test_tensor_accumulator_that_the_body_may_replace() -> None:
    """The body yields its accumulator, or a shared tensor, which must not be written to."""
    module = parse("""
        func.func @f(%a: tensor<?xi32>, %start: tensor<2xi32>) -> tensor<2xi32> {
          %zero = arith.constant dense<0> : tensor<2xi32>
          %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%t = %zero : tensor<2xi32>)
              shared(%s = %start : tensor<2xi32>) {
            %i = arith.constant 1 : index
            %none = arith.constant 0 : i32
            %old = tensor.extract %t[%i] : tensor<2xi32>
            %new = arith.ori %old, %x : i32
            %next = tensor.insert %new into %t[%i] : tensor<2xi32>
            %back = arith.cmpi slt, %new, %none : i32
            %r = scf.if %back -> (tensor<2xi32>) {
              scf.yield %s : tensor<2xi32>
            } else {
              scf.yield %next : tensor<2xi32>
            }
            pattern.yield %r : tensor<2xi32>
          } combine(%l, %r) {
            %s = arith.ori %l, %r : i32
            pattern.yield %s : i32
          }
          func.return %h : tensor<2xi32>
        }""")
    args = [np.array([1, -4, 2, 8], np.int32), np.array([16, 32], np.int32)]
    assert_same(run_function(module, "f", args), oracle(module, "f", args))
    assert args[1].tolist() == [16, 32]


def test_tensor_accumulator_that_is_the_same_in_all_lanes() -> None:
    module = parse("""
        func.func @f(%a: tensor<?xi32>) -> tensor<2xi32> {
          %zero = arith.constant dense<0> : tensor<2xi32>
          %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%t = %zero : tensor<2xi32>) {
            %none = arith.constant 0 : i32
            %r = tensor.splat %none : tensor<2xi32>
            pattern.yield %r : tensor<2xi32>
          } combine(%l, %r) {
            %s = arith.constant 0 : i32
            pattern.yield %s : i32
          }
          func.return %h : tensor<2xi32>
        }""")
    for length in (1, 2000):
        args = random_arguments(module, length)
        assert_same(run_function(module, "f", args), oracle(module, "f", args))


def test_init_that_is_not_neutral_is_refused() -> None:
    name = "composition of pairs by a combine region"
    inputs, _, body, types, combine = FOLDS[name]
    for kind in ("reduce", "scan"):
        for length in (5, 2000):
            module = parse(fold_text(kind, inputs, "1, 5", body, types, combine))
            with pytest.raises(UserError, match=r"init 1 of 'pattern.* is not neutral"):
                run_function(module, "f", random_arguments(module, length))


def float_sum(kind: str) -> ModuleOp:
    body = "%s = arith.addf %l0, %x0 : f32 pattern.yield %s : f32"
    return parse(fold_text(kind, "f32", "0.5", body, "f32"))


@pytest.mark.parametrize("length", [512, 513, 100_003])
def test_float_sums_are_near(length: int) -> None:
    args = random_arguments(float_sum("reduce"), length)
    exact = np.cumsum(args[0].astype(np.float64)) + 0.5
    spread = 2 * np.finfo(np.float32).eps * np.cumsum(np.abs(args[0])) * np.log2(length)
    (total,) = run_function(float_sum("reduce"), "f", args)
    assert abs(total - exact[-1]) <= spread[-1]
    (totals,) = run_function(float_sum("scan"), "f", args)
    assert np.all(np.abs(totals - exact) <= spread + 2e-7)


def test_short_float_sum_is_the_sequential_one() -> None:
    module = float_sum("scan")
    args = random_arguments(module, 512)
    assert_same(run_function(module, "f", args), oracle(module, "f", args))


# -- speed -----------------------------------------------------------------------------------------

MAP_REDUCE = """
    func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> i32 {
      %z = arith.constant 5 : i32
      %c = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
        %p = arith.muli %x, %y : i32
        pattern.yield %p : i32
      }
      %s = pattern.reduce(%x in %c : tensor<?xi32>) init(%acc = %z : i32) {
        %t = arith.addi %acc, %x : i32
        pattern.yield %t : i32
      }
      func.return %s : i32
    }"""
MILLIONS = 10_000_000


def seconds(module: ModuleOp, args: list[Any]) -> tuple[float, list[Any]]:
    """Processor time, which another program on the machine does not add to."""
    start = time.process_time()
    results = run_function(module, "f", args)
    return time.process_time() - start, results


def test_map_and_reduce_of_ten_million_elements() -> None:
    module = parse(MAP_REDUCE)
    a, b = random_arguments(module, MILLIONS)
    spent, (got,) = seconds(module, [a, b])
    with np.errstate(over="ignore"):
        assert got == np.add.reduce(a * b, dtype=np.int32) + np.int32(5)
    assert spent < 1.0


def test_histogram_of_ten_million_elements() -> None:
    module = parse(HISTOGRAM)
    (pixels,) = random_arguments(module, MILLIONS)
    spent, (got,) = seconds(module, [pixels])
    assert got.tolist() == np.bincount(pixels.view(np.uint8), minlength=256).tolist()
    assert spent < 3.0
