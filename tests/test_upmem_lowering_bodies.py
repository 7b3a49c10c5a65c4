"""What element functions may hold, on the simulated machine: tensors, loops, branches, patterns."""

from __future__ import annotations

import numpy as np
import pytest
from upmem_lowering import outputs, run_checked, vector


def rows(body: str, size: int = 4) -> str:
    """@main with one group of `size`; the body makes %res of %s, %x (first), %y (second), %k."""
    return f"""
func.func @main(%a: tensor<?xi32>) -> tensor<?xi32> {{
  %m = pattern.group<{size}>(%s in %a : tensor<?xi32>) -> tensor<?xi32> {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %x = tensor.extract %s[%c0] : tensor<{size}xi32>
    %y = tensor.extract %s[%c1] : tensor<{size}xi32>
    %k = arith.cmpi slt, %x, %y : i32
    {body}
    pattern.yield %res : i32
  }}
  func.return %m : tensor<?xi32>
}}
"""


BODIES = {
    "from_elements": """
      %t = tensor.from_elements %x, %y, %x : tensor<3xi32>
      %u = tensor.insert %x into %t[%c1] : tensor<3xi32>
      %p = tensor.extract %t[%c1] : tensor<3xi32>
      %q = tensor.extract %u[%c1] : tensor<3xi32>
      %res = arith.subi %p, %q : i32""",
    "splat": """
      %t = tensor.splat %x : tensor<5xi32>
      %u = tensor.insert %y into %t[%c2] : tensor<5xi32>
      %p = tensor.extract %u[%c2] : tensor<5xi32>
      %q = tensor.extract %u[%c3] : tensor<5xi32>
      %res = arith.subi %p, %q : i32""",
    "a slice is not overwritten": """
      %u = tensor.insert %y into %s[%c0] : tensor<4xi32>
      %p = tensor.extract %u[%c0] : tensor<4xi32>
      %q = tensor.extract %s[%c0] : tensor<4xi32>
      %res = arith.subi %p, %q : i32""",
    "for with a scalar": """
      %res = scf.for %i = %c0 to %c4 step %c1 iter_args(%w = %x) -> (i32) {
        %e = tensor.extract %s[%i] : tensor<4xi32>
        %n = arith.xori %w, %e : i32
        %o = arith.addi %n, %w : i32
        scf.yield %o : i32
      }""",
    "for over a copy of a slice": """
      %u = scf.for %i = %c0 to %c3 step %c1 iter_args(%w = %s) -> (tensor<4xi32>) {
        %j = arith.addi %i, %c1 : index
        %e = tensor.extract %w[%i] : tensor<4xi32>
        %f = tensor.extract %w[%j] : tensor<4xi32>
        %g = arith.addi %e, %f : i32
        %n = tensor.insert %g into %w[%j] : tensor<4xi32>
        scf.yield %n : tensor<4xi32>
      }
      %p = tensor.extract %u[%c3] : tensor<4xi32>
      %q = tensor.extract %s[%c3] : tensor<4xi32>
      %res = arith.subi %p, %q : i32""",
    "for whose start is read after it": """
      %t = tensor.splat %x : tensor<4xi32>
      %u = scf.for %i = %c0 to %c4 step %c1 iter_args(%w = %t) -> (tensor<4xi32>) {
        %n = tensor.insert %y into %w[%i] : tensor<4xi32>
        scf.yield %n : tensor<4xi32>
      }
      %p = tensor.extract %t[%c2] : tensor<4xi32>
      %q = tensor.extract %u[%c2] : tensor<4xi32>
      %res = arith.subi %p, %q : i32""",
    "for whose start is read inside of it": """
      %t = tensor.splat %x : tensor<4xi32>
      %u = scf.for %i = %c0 to %c4 step %c1 iter_args(%w = %t) -> (tensor<4xi32>) {
        %e = tensor.extract %t[%c0] : tensor<4xi32>
        %g = arith.addi %e, %y : i32
        %n = tensor.insert %g into %w[%c0] : tensor<4xi32>
        scf.yield %n : tensor<4xi32>
      }
      %res = tensor.extract %u[%c0] : tensor<4xi32>""",
    "for with one start twice": """
      %t = tensor.splat %x : tensor<4xi32>
      %u, %v = scf.for %i = %c0 to %c4 step %c1 iter_args(%w = %t, %z = %t)
          -> (tensor<4xi32>, tensor<4xi32>) {
        %n = tensor.insert %y into %w[%i] : tensor<4xi32>
        scf.yield %n, %z : tensor<4xi32>, tensor<4xi32>
      }
      %p = tensor.extract %u[%c2] : tensor<4xi32>
      %q = tensor.extract %v[%c2] : tensor<4xi32>
      %res = arith.subi %p, %q : i32""",
    "for that exchanges": """
      %t = tensor.splat %x : tensor<4xi32>
      %o = tensor.splat %y : tensor<4xi32>
      %u, %v = scf.for %i = %c0 to %c3 step %c1 iter_args(%w = %t, %z = %o)
          -> (tensor<4xi32>, tensor<4xi32>) {
        scf.yield %z, %w : tensor<4xi32>, tensor<4xi32>
      }
      %p = tensor.extract %u[%c2] : tensor<4xi32>
      %q = tensor.extract %v[%c2] : tensor<4xi32>
      %d = arith.addi %p, %p : i32
      %res = arith.subi %d, %q : i32""",
    "for that makes two of one": """
      %t = tensor.splat %x : tensor<4xi32>
      %o = tensor.splat %y : tensor<4xi32>
      %u, %v = scf.for %i = %c0 to %c3 step %c1 iter_args(%w = %t, %z = %o)
          -> (tensor<4xi32>, tensor<4xi32>) {
        %e = tensor.extract %z[%i] : tensor<4xi32>
        %f = arith.addi %e, %x : i32
        %n = tensor.insert %f into %w[%i] : tensor<4xi32>
        scf.yield %n, %n : tensor<4xi32>, tensor<4xi32>
      }
      %m1 = tensor.insert %x into %u[%c1] : tensor<4xi32>
      %p = tensor.extract %m1[%c1] : tensor<4xi32>
      %q = tensor.extract %v[%c1] : tensor<4xi32>
      %res = arith.subi %p, %q : i32""",
    "no round at all": """
      %t = tensor.splat %x : tensor<4xi32>
      %u = scf.for %i = %c4 to %c1 step %c1 iter_args(%w = %t) -> (tensor<4xi32>) {
        %n = tensor.insert %y into %w[%i] : tensor<4xi32>
        scf.yield %n : tensor<4xi32>
      }
      %res = tensor.extract %u[%c1] : tensor<4xi32>""",
    "if that changes on one path": """
      %t = tensor.splat %x : tensor<4xi32>
      %u = scf.if %k -> (tensor<4xi32>) {
        %n = tensor.insert %y into %t[%c1] : tensor<4xi32>
        scf.yield %n : tensor<4xi32>
      } else {
        scf.yield %t : tensor<4xi32>
      }
      %res = tensor.extract %u[%c1] : tensor<4xi32>""",
    "if that hands on, then a change": """
      %t = tensor.splat %x : tensor<4xi32>
      %u = scf.if %k -> (tensor<4xi32>) {
        scf.yield %t : tensor<4xi32>
      } else {
        scf.yield %t : tensor<4xi32>
      }
      %n = tensor.insert %y into %u[%c2] : tensor<4xi32>
      %p = tensor.extract %t[%c2] : tensor<4xi32>
      %q = tensor.extract %n[%c2] : tensor<4xi32>
      %res = arith.subi %p, %q : i32""",
    "if with different tensors and a scalar": """
      %t = tensor.splat %y : tensor<4xi32>
      %u, %v, %w = scf.if %k -> (tensor<4xi32>, i32, tensor<4xi32>) {
        scf.yield %t, %x, %t : tensor<4xi32>, i32, tensor<4xi32>
      } else {
        scf.yield %s, %y, %t : tensor<4xi32>, i32, tensor<4xi32>
      }
      %n = tensor.insert %x into %u[%c3] : tensor<4xi32>
      %p = tensor.extract %n[%c2] : tensor<4xi32>
      %q = tensor.extract %w[%c3] : tensor<4xi32>
      %r = arith.subi %p, %q : i32
      %res = arith.xori %r, %v : i32""",
    "if without results": """
      scf.if %k {
        %unused = arith.addi %x, %y : i32
      }
      %res = arith.addi %x, %y : i32""",
    "a change behind a cast": """
      %t = tensor.splat %x : tensor<4xi32>
      %u = tensor.cast %t : tensor<4xi32> to tensor<?xi32>
      %n = tensor.insert %y into %u[%c2] : tensor<?xi32>
      %p = tensor.extract %t[%c2] : tensor<4xi32>
      %q = tensor.extract %n[%c2] : tensor<?xi32>
      %res = arith.subi %p, %q : i32""",
    "map, scan and reduce": """
      %z = arith.constant 0 : i32
      %t = pattern.map(%e in %s : tensor<4xi32>) -> tensor<4xi32> {
        %d = arith.muli %e, %e : i32
        pattern.yield %d : i32
      }
      %u = pattern.scan exclusive (%e in %t : tensor<4xi32>) init(%acc = %z : i32) {
        %d = arith.addi %acc, %e : i32
        pattern.yield %d : i32
      }
      %v = pattern.scan(%e in %u : tensor<4xi32>) init(%acc = %x : i32) {
        %d = arith.maxsi %acc, %e : i32
        pattern.yield %d : i32
      }
      %res = pattern.reduce(%e in %v : tensor<4xi32>, %f in %s : tensor<4xi32>)
          init(%acc = %z : i32) {
        %d = arith.xori %e, %f : i32
        %g = arith.addi %acc, %d : i32
        pattern.yield %g : i32
      } combine(%l, %r) {
        %g = arith.addi %l, %r : i32
        pattern.yield %g : i32
      }""",
    "window and group": """
      %z = arith.constant 0 : i32
      %t = pattern.window<2>(%e in %s : tensor<4xi32>) shared(%j = %c1 : index) -> tensor<3xi32> {
        %h = arith.constant 0 : index
        %d = tensor.extract %e[%h] : tensor<2xi32>
        %f = tensor.extract %e[%j] : tensor<2xi32>
        %g = arith.subi %f, %d : i32
        pattern.yield %g : i32
      }
      %u = pattern.window_group<2, 1>(%e in %t : tensor<3xi32>) shared(%j = %c1 : index)
          -> tensor<2xi32> {
        %d = tensor.extract %e[%j] : tensor<2xi32>
        pattern.yield %d : i32
      }
      %v = pattern.group<2>(%e in %u : tensor<2xi32>) shared(%j = %c1 : index) -> tensor<1xi32> {
        %d = tensor.extract %e[%j] : tensor<2xi32>
        pattern.yield %d : i32
      }
      %res = tensor.extract %v[%c0] : tensor<1xi32>""",
    "a table inside": """
      %z = arith.constant dense<0> : tensor<4xi32>
      %t = pattern.reduce(%e in %s : tensor<4xi32>) init(%acc = %z : tensor<4xi32>) {
        %m3 = arith.constant 3 : i32
        %b = arith.andi %e, %m3 : i32
        %i = arith.index_cast %b : i32 to index
        %o = tensor.extract %acc[%i] : tensor<4xi32>
        %n = arith.addi %o, %e : i32
        %u = tensor.insert %n into %acc[%i] : tensor<4xi32>
        pattern.yield %u : tensor<4xi32>
      } combine(%l, %r) {
        %g = arith.addi %l, %r : i32
        pattern.yield %g : i32
      }
      %p = tensor.extract %t[%c1] : tensor<4xi32>
      %q = tensor.extract %z[%c1] : tensor<4xi32>
      %res = arith.addi %p, %q : i32""",
}


@pytest.mark.parametrize("name", BODIES)
def test_element_function(name: str) -> None:
    run_checked(rows(BODIES[name]), vector("i32", 1240), machine="upmem-1")


CRITICAL = """
func.func @main(%a: tensor<?xi32>) -> tensor<6000xi32> {
  %z = arith.constant dense<0> : tensor<6000xi32>
  %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : tensor<6000xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %t = tensor.splat %x : tensor<2xi32>
    %v = tensor.extract %acc[%c0] : tensor<6000xi32>
    %i = arith.minui %v, %zero : i32
    %j = arith.index_cast %i : i32 to index
    %p = tensor.extract %t[%j] : tensor<2xi32>
    %u = tensor.insert %zero into %t[%c0] : tensor<2xi32>
    %q = tensor.extract %u[%c0] : tensor<2xi32>
    %d = arith.addi %p, %q : i32
    %w = arith.addi %v, %d : i32
    %n = tensor.insert %w into %acc[%c0] : tensor<6000xi32>
    pattern.yield %n : tensor<6000xi32>
  } combine(%l, %r) {
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }
  func.return %h : tensor<6000xi32>
}
"""


def test_tensors_beside_a_critical_section_keep_their_order() -> None:
    a = vector("i32", 1000)
    (got,) = outputs(CRITICAL, a, machine="upmem-1", tasklets=16)
    assert got[0] == a.sum(dtype=np.int32)


@pytest.mark.parametrize(
    ("element", "size"), [("i32", 600), ("i32", 4096), ("i64", 1024), ("i8", 3000), ("f32", 513)]
)
def test_long_groups(element: str, size: int) -> None:
    kind = "maximumf" if element == "f32" else "maxsi"
    text = f"""
func.func @main(%a: tensor<?x{element}>) -> tensor<?x{element}> {{
  %m = pattern.group<{size}>(%s in %a : tensor<?x{element}>) -> tensor<?x{element}> {{
    %c0 = arith.constant 0 : index
    %first = tensor.extract %s[%c0] : tensor<{size}x{element}>
    %r = pattern.reduce(%x in %s : tensor<{size}x{element}>) init(%acc = %first : {element}) {{
      %q = arith.{kind} %acc, %x : {element}
      pattern.yield %q : {element}
    }}
    pattern.yield %r : {element}
  }}
  func.return %m : tensor<?x{element}>
}}
"""
    a = vector(element, size * 37)
    (got,) = outputs(text, a, machine="upmem-1")
    assert (got == a.reshape(37, size).max(axis=1)).all()
