"""Maps, windows, groups and filters of the reference against the scalar oracle."""

from __future__ import annotations

import pytest
from reference_checks import assert_same, parse, random_arguments
from scalar_oracle import oracle

from cim_opt.simulators.reference import run_function

ELEMENTWISE = {
    "divergent if with guarded index": """
        func.func @f(%a: tensor<?xi32>, %t: tensor<5xi32>) -> (tensor<?xi32>, tensor<?xi1>) {
          %r, %q = pattern.map(%x in %a : tensor<?xi32>) shared(%s = %t : tensor<5xi32>)
              -> (tensor<?xi32>, tensor<?xi1>) {
            %five = arith.constant 5 : i32
            %zero = arith.constant 0 : i32
            %in = arith.cmpi ult, %x, %five : i32
            %i = arith.index_cast %x : i32 to index
            %y = scf.if %in -> (i32) {
              %e = tensor.extract %s[%i] : tensor<5xi32>
              %d = arith.divsi %e, %x : i32
              scf.yield %d : i32
            } else {
              %two = arith.constant 2 : i32
              %big = arith.cmpi sgt, %x, %two : i32
              %n = scf.if %big -> (i32) {
                scf.yield %two : i32
              } else {
                scf.yield %zero : i32
              }
              scf.yield %n : i32
            }
            pattern.yield %y, %in : i32, i1
          }
          func.return %r, %q : tensor<?xi32>, tensor<?xi1>
        }""",
    "loop with bounds that differ": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %three = arith.constant 3 : i32
            %seven = arith.constant 7 : i32
            %m = arith.andi %x, %seven : i32
            %n = arith.index_cast %m : i32 to index
            %s = scf.for %i = %zero to %n step %one iter_args(%acc = %y) -> (i32) {
              %k = arith.index_cast %i : index to i32
              %p = arith.muli %acc, %three : i32
              %q = arith.addi %p, %k : i32
              scf.yield %q : i32
            }
            pattern.yield %s : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "local histogram in loops": """
        func.func @f(%a: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
          %r, %q = pattern.group<4>(%g in %a : tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %four = arith.constant 4 : index
            %c0 = arith.constant 0 : i32
            %c1 = arith.constant 1 : i32
            %c3 = arith.constant 3 : i32
            %first = tensor.extract %g[%zero] : tensor<4xi32>
            %bins = tensor.splat %c0 : tensor<4xi32>
            %h = scf.for %i = %zero to %four step %one iter_args(%t = %bins) -> (tensor<4xi32>) {
              %x = tensor.extract %g[%i] : tensor<4xi32>
              %low = arith.andi %x, %c3 : i32
              %k = arith.index_cast %low : i32 to index
              %old = tensor.extract %t[%k] : tensor<4xi32>
              %new = arith.addi %old, %c1 : i32
              %next = tensor.insert %new into %t[%k] : tensor<4xi32>
              scf.yield %next : tensor<4xi32>
            }
            %m = arith.andi %first, %c3 : i32
            %n = arith.index_cast %m : i32 to index
            %h2 = scf.for %i = %zero to %n step %one iter_args(%t = %h) -> (tensor<4xi32>) {
              %old = tensor.extract %t[%i] : tensor<4xi32>
              %new = arith.muli %old, %c3 : i32
              %next = tensor.insert %new into %t[%i] : tensor<4xi32>
              scf.yield %next : tensor<4xi32>
            }
            %was = tensor.extract %h[%zero] : tensor<4xi32>
            %s = pattern.reduce(%x in %h2 : tensor<4xi32>) init(%acc = %was : i32)
                shared(%k = %first : i32) {
              %p = arith.addi %acc, %x : i32
              pattern.yield %p : i32
            }
            pattern.yield %s, %was : i32, i32
          }
          func.return %r, %q : tensor<?xi32>, tensor<?xi32>
        }""",
    "insert in a branch keeps the old value": """
        func.func @f(%a: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %c3 = arith.constant 3 : i32
            %t = tensor.from_elements %x, %c3 : tensor<2xi32>
            %neg = arith.cmpi slt, %x, %c3 : i32
            %u = scf.if %neg -> (tensor<2xi32>) {
              %v = tensor.insert %c3 into %t[%zero] : tensor<2xi32>
              %w = tensor.insert %x into %v[%one] : tensor<2xi32>
              scf.yield %w : tensor<2xi32>
            } else {
              scf.yield %t : tensor<2xi32>
            }
            %w = tensor.insert %c3 into %t[%one] : tensor<2xi32>
            %y = tensor.insert %c3 into %w[%zero] : tensor<2xi32>
            %p = tensor.extract %u[%zero] : tensor<2xi32>
            %q = tensor.extract %w[%zero] : tensor<2xi32>
            %o = tensor.extract %y[%one] : tensor<2xi32>
            %d = arith.subi %p, %q : i32
            %e = arith.muli %d, %o : i32
            pattern.yield %e : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "a loop starts from the same tensor each time": """
        func.func @f(%a: tensor<?xi32>) -> tensor<?xi32> {
          %r = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %two = arith.constant 2 : index
            %c3 = arith.constant 3 : i32
            %t = tensor.from_elements %x, %c3 : tensor<2xi32>
            %s = scf.for %i = %zero to %two step %one iter_args(%acc = %c3) -> (i32) {
              %u = tensor.insert %acc into %t[%i] : tensor<2xi32>
              %p = tensor.extract %u[%zero] : tensor<2xi32>
              %q = tensor.extract %u[%one] : tensor<2xi32>
              %m = arith.muli %p, %c3 : i32
              %n = arith.subi %m, %q : i32
              scf.yield %n : i32
            }
            pattern.yield %s : i32
          }
          func.return %r : tensor<?xi32>
        }""",
    "nested map, scan and window": """
        func.func @f(%a: tensor<?xi32>, %t: tensor<3xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
          %r, %q = pattern.window_group<3, 2>(%g in %a : tensor<?xi32>)
              shared(%s = %t : tensor<3xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %two = arith.constant 2 : index
            %c0 = arith.constant 0 : i32
            %last = tensor.extract %g[%two] : tensor<4xi32>
            %m = pattern.map(%x in %g : tensor<4xi32>)
                shared(%k = %last : i32, %u = %s : tensor<3xi32>) -> tensor<4xi32> {
              %o = arith.constant 1 : index
              %e = tensor.extract %u[%o] : tensor<3xi32>
              %p = arith.muli %x, %k : i32
              %z = arith.addi %p, %e : i32
              pattern.yield %z : i32
            }
            %w = pattern.window<2>(%v in %m : tensor<4xi32>) -> tensor<3xi32> {
              %i0 = arith.constant 0 : index
              %i1 = arith.constant 1 : index
              %x = tensor.extract %v[%i0] : tensor<2xi32>
              %y = tensor.extract %v[%i1] : tensor<2xi32>
              %d = arith.subi %y, %x : i32
              pattern.yield %d : i32
            }
            %b:2 = pattern.scan exclusive (%x in %w : tensor<3xi32>, %y in %s : tensor<3xi32>)
                init(%acc = %last : i32, %best = %c0 : i32) {
              %n = arith.addi %acc, %x : i32
              %o = arith.maxsi %best, %y : i32
              pattern.yield %n, %o : i32, i32
            }
            %x = tensor.extract %b#0[%two] : tensor<3xi32>
            %y = tensor.extract %b#1[%one] : tensor<3xi32>
            pattern.yield %x, %y : i32, i32
          }
          func.return %r, %q : tensor<?xi32>, tensor<?xi32>
        }""",
    "uniform results and the input itself": """
        func.func @f(%a: tensor<?xi8>) -> (tensor<?xi8>, tensor<?xi32>) {
          %r, %q = pattern.map(%x in %a : tensor<?xi8>) -> (tensor<?xi8>, tensor<?xi32>) {
            %c = arith.constant 7 : i32
            pattern.yield %x, %c : i8, i32
          }
          func.return %r, %q : tensor<?xi8>, tensor<?xi32>
        }""",
    "filter": """
        func.func @f(%a: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>, index) {
          %r, %q, %n = pattern.filter(%x in %a : tensor<?xi32>)
              -> (tensor<?xi32>, tensor<?xi32>, index) {
            %c = arith.constant 2 : i32
            %k = arith.cmpi slt, %x, %c : i32
            pattern.yield %k, %x, %c : i1, i32, i32
          }
          func.return %r, %q, %n : tensor<?xi32>, tensor<?xi32>, index
        }""",
    "window_filter": """
        func.func @f(%a: tensor<?xi32>) -> (tensor<?xi32>, index) {
          %r, %n = pattern.window_filter<3>(%w in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
            %zero = arith.constant 0 : index
            %two = arith.constant 2 : index
            %x = tensor.extract %w[%zero] : tensor<3xi32>
            %y = tensor.extract %w[%two] : tensor<3xi32>
            %k = arith.cmpi slt, %x, %y : i32
            pattern.yield %k, %w : i1, tensor<3xi32>
          }
          func.return %r, %n : tensor<?xi32>, index
        }""",
    "group_filter": """
        func.func @f(%a: tensor<?xi32>, %b: tensor<?xi8>) -> (tensor<?xi8>, tensor<?xi32>, index) {
          %r, %q, %n = pattern.group_filter<2>(%g in %a : tensor<?xi32>, %h in %b : tensor<?xi8>)
              -> (tensor<?xi8>, tensor<?xi32>, index) {
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %x = tensor.extract %g[%zero] : tensor<2xi32>
            %y = tensor.extract %g[%one] : tensor<2xi32>
            %k = arith.cmpi slt, %x, %y : i32
            pattern.yield %k, %h, %y : i1, tensor<2xi8>, i32
          }
          func.return %r, %q, %n : tensor<?xi8>, tensor<?xi32>, index
        }""",
    "window_group_filter": """
        func.func @f(%a: tensor<?xi32>) -> (tensor<?xi32>, index) {
          %r, %n = pattern.window_group_filter<3, 2>(%g in %a : tensor<?xi32>)
              -> (tensor<?xi32>, index) {
            %zero = arith.constant 0 : index
            %three = arith.constant 3 : index
            %x = tensor.extract %g[%zero] : tensor<4xi32>
            %y = tensor.extract %g[%three] : tensor<4xi32>
            %k = arith.cmpi slt, %x, %y : i32
            pattern.yield %k, %g : i1, tensor<4xi32>
          }
          func.return %r, %n : tensor<?xi32>, index
        }""",
}


def lengths_for(name: str) -> tuple[int, ...]:
    if "window_group" in ELEMENTWISE[name]:
        return (0, 1, 2, 4, 6, 1002)
    return (0, 4, 8, 1000) if "group" in ELEMENTWISE[name] else (0, 1, 2, 3, 700)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_patterns(name: str) -> None:
    module = parse(ELEMENTWISE[name])
    for length in lengths_for(name):
        for small in (True, False):
            args = random_arguments(module, length, length, small)
            assert_same(run_function(module, "f", args), oracle(module, "f", args))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_chunks_join_without_a_seam(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse(ELEMENTWISE[name])
    args = random_arguments(module, lengths_for(name)[-1], 3, small=True)
    whole = run_function(module, "f", args)
    monkeypatch.setattr("cim_opt.simulators.patterns.CHUNK", 7)
    assert_same(run_function(module, "f", args), whole)
