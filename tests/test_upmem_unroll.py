"""Unrolled loops do what the loops did, whatever their bounds."""

from typing import Any

import numpy as np
import pytest
from upmem_programs import module_of
from xdsl.context import Context

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import load_machine
from cim_opt.passes.upmem_unroll import UpmemUnrollPass
from cim_opt.simulators.upmem import UpmemSimulator

PROGRAM = """
func.func @main(%a: tensor<64xi32>, %low: index, %high: index) -> tensor<2xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %empty = tensor.empty() : tensor<2xi32>
  %set = upmem.alloc %c1 : !upmem.dpus
  upmem.push %a[%c0] to %set at 0 count %c64 stride %c64 : tensor<64xi32>
  %t = upmem.launch @k on %set (%low, %high) : (index, index) -> !upmem.token
  upmem.wait %t : !upmem.token
  %r = upmem.pull %set at 256 count %c2 into %empty[%c0] : tensor<2xi32>
  func.return %r : tensor<2xi32>
}
upmem.kernel @k tasklets 1 (%low: index, %high: index) {
  %a = upmem.mram 0 : memref<64xi32, $M>
  %r = upmem.mram 256 : memref<2xi32, $M>
  %w = upmem.wram : memref<64xi32, $W>
  %o = upmem.wram : memref<2xi32, $W>
  %zero = arith.constant 0 : i32
  %three = arith.constant 3 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  upmem.mram_read %a[%c0] to %w[%c0] count %c64 : memref<64xi32, $M>, memref<64xi32, $W>
  %s, %n = scf.for %i = LOW to HIGH step %c1 iter_args(%p = %zero, %q = %zero) -> (i32, i32) {
    %x = memref.load %w[%i] : memref<64xi32, $W>
    %m = arith.muli %p, %three : i32
    %t = arith.addi %m, %x : i32
    %positive = arith.cmpi sgt, %x, %zero : i32
    %next = scf.if %positive -> (i32) {
      %u = arith.addi %q, %x : i32
      scf.yield %u : i32
    } else {
      scf.yield %q : i32
    }
    scf.yield %t, %next : i32, i32
  }
  memref.store %s, %o[%c0] : memref<2xi32, $W>
  memref.store %n, %o[%c1] : memref<2xi32, $W>
  upmem.mram_write %o[%c0] to %r[%c0] count %c2 : memref<2xi32, $W>, memref<2xi32, $M>
  upmem.return
}
"""
VALUES = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)


def results(low: int, high: int, known: bool, factor: int | None) -> tuple[Any, int]:
    """What the kernel gives, and its instructions."""
    bounds = ("%low", "%high")
    text = PROGRAM
    if known:
        numbers = f"%kl = arith.constant {low} : index\n%kh = arith.constant {high} : index\n"
        text = text.replace("%s, %n = scf.for", numbers + "%s, %n = scf.for")
        bounds = ("%kl", "%kh")
    module = module_of(text.replace("LOW", bounds[0]).replace("HIGH", bounds[1]))
    if factor != 1:
        UpmemUnrollPass(factor).apply(Context(), module)
        module.verify()
    found, report = UpmemSimulator(load_machine("upmem-1")).run(module, "main", [VALUES, low, high])
    return found[0], report.kernels[0].instructions


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("factor", [None, 2, 3, 8])
def test_the_same_in_fewer_instructions(known: bool, factor: int | None) -> None:
    for low, high in ((0, 0), (0, 1), (0, 3), (0, 64), (5, 5), (7, 3), (3, 64), (1, 10)):
        before, slow = results(low, high, known, 1)
        after, fast = results(low, high, known, factor)
        assert (before == after).all()
        assert fast < slow or high - low < 32


@pytest.mark.parametrize("factor", [0, 65, -2])
def test_factors_that_are_refused(factor: int) -> None:
    with pytest.raises(UserError, match=f"unrolling by {factor}; a loop does 1 to 64 iterations"):
        UpmemUnrollPass(factor).apply(Context(), module_of("func.func @f() { func.return }"))
