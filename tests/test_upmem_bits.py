"""Cheaper operations and shared values in kernels: the same results, in fewer instructions."""

from typing import Any

import numpy as np
import pytest
from upmem_programs import module_of
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cim_opt.hardware.upmem import load_machine
from cim_opt.passes.upmem_share import UpmemSharePass
from cim_opt.passes.upmem_strength_reduce import UpmemStrengthReducePass
from cim_opt.simulators.upmem import UpmemSimulator

COUNT = 64
PROGRAM = """
func.func @main(%a: tensor<64xTYPE>, %b: tensor<64xTYPE>) -> tensor<64xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %empty = tensor.empty() : tensor<64xi64>
  %set = upmem.alloc %c1 : !upmem.dpus
  upmem.push %a[%c0] to %set at 0 count %c64 stride %c64 : tensor<64xTYPE>
  upmem.push %b[%c0] to %set at 512 count %c64 stride %c64 : tensor<64xTYPE>
  %t = upmem.launch @k on %set () : () -> !upmem.token
  upmem.wait %t : !upmem.token
  %r = upmem.pull %set at 1024 count %c64 into %empty[%c0] : tensor<64xi64>
  func.return %r : tensor<64xi64>
}
upmem.kernel @k tasklets 1 () {
  %am = upmem.mram 0 : memref<64xTYPE, $M>
  %bm = upmem.mram 512 : memref<64xTYPE, $M>
  %rm = upmem.mram 1024 : memref<64xi64, $M>
  %a = upmem.wram : memref<64xTYPE, $W>
  %b = upmem.wram : memref<64xTYPE, $W>
  %r = upmem.wram : memref<64xi64, $W>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  upmem.mram_read %am[%c0] to %a[%c0] count %c64 : memref<64xTYPE, $M>, memref<64xTYPE, $W>
  upmem.mram_read %bm[%c0] to %b[%c0] count %c64 : memref<64xTYPE, $M>, memref<64xTYPE, $W>
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %a[%i] : memref<64xTYPE, $W>
    %y = memref.load %b[%i] : memref<64xTYPE, $W>
    BODY
    memref.store %out, %r[%i] : memref<64xi64, $W>
  }
  upmem.mram_write %r[%c0] to %rm[%c0] count %c64 : memref<64xi64, $W>, memref<64xi64, $M>
  upmem.return
}
"""
SQUARE = """
    %d = arith.subi %x, %y : i32
    %s = arith.muli %d, %d : i32
    %out = arith.extsi %s : i32 to i64"""
BIT = """
    %bit = arith.constant NUMBER : i64
    %z = arith.constant 0 : i64
    %m = arith.andi %x, %bit : i64
    %c = arith.cmpi PREDICATE, %m, %bit : i64
    %out = scf.if %c -> (i64) {
      scf.yield %y : i64
    } else {
      scf.yield %z : i64
    }"""
COMPARE = """
    %z = arith.constant 0 : i64
    %k = arith.constant 32 : i64
    %u = arith.shrui %x, %k : i64
    %v = arith.shrui %y, %k : i64
    %c = arith.cmpi PREDICATE, %u, %v : i64
    %out = arith.select %c, %x, %z : i64"""
INDEX = """
    %k = arith.constant 26 : i32
    %u = arith.shrui %x, %k : i32
    %w = arith.extui %u : i32 to i64
    %at = arith.index_cast %w : i64 to index
    %e = memref.load %b[%at] : memref<64xi32, $W>
    %out = arith.extsi %e : i32 to i64"""
SHIFTS = """
    %l = arith.constant LEFT : i32
    %k = arith.constant RIGHT : i32
    %mask = arith.constant MASK : i32
    %n = arith.andi %x, %mask : i32
    %p = arith.muli %n, %l : i32
    %q = arith.shrui %p, %k : i32
    %out = arith.extui %q : i32 to i64"""
LOADS = """
    %j = arith.addi %i, %c1 : index
    %one = arith.minui %j, %c63 : index
    %v = memref.load %b[%one] : memref<64xi32, $W>
    memref.store %y, %a[%one] : memref<64xi32, $W>
    %u = memref.load %a[%i] : memref<64xi32, $W>
    %w = memref.load %b[%one] : memref<64xi32, $W>
    %s = arith.addi %u, %w : i32
    %t = arith.muli %s, %v : i32
    %out = arith.extsi %t : i32 to i64"""


def values(type: str, seed: int) -> np.ndarray[Any, Any]:
    """Numbers of all sizes, the least and the greatest ones too."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(type.replace("i", "int"))
    found = rng.integers(info.min, info.max, COUNT, dtype=np.int64, endpoint=True)
    found >>= rng.integers(0, info.bits, COUNT)
    found[:8] = [info.min, info.max, 0, 1, -1, info.min, 2, -2]
    return rng.permutation(found).astype(info.dtype)


def run(body: str, type: str, *passes: Any) -> tuple[Any, int]:
    """What comes out, and the instructions of the kernel."""
    module: ModuleOp = module_of(PROGRAM.replace("BODY", body).replace("TYPE", type))
    for step in passes:
        step.apply(Context(), module)
        module.verify()
    given = [values(type, 0), values(type, 1)]
    found, report = UpmemSimulator(load_machine("upmem-1")).run(module, "main", given)
    return found[0], report.kernels[0].instructions


def check(body: str, type: str, *, cheaper: bool) -> None:
    before, slow = run(body, type)
    after, fast = run(body, type, UpmemStrengthReducePass(), UpmemSharePass())
    assert (before == after).all()
    assert fast < slow if cheaper else fast <= slow


def test_squares_of_differences() -> None:
    check(SQUARE, "i32", cheaper=True)


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "ult", "sge"])
@pytest.mark.parametrize("number", [1, 6, 1 << 30, 1 << 31, 1 << 32, -1])
def test_tests_of_bits(predicate: str, number: int) -> None:
    body = BIT.replace("PREDICATE", predicate).replace("NUMBER", str(number))
    check(body, "i64", cheaper=0 < number < 1 << 31)


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sgt", "ult", "uge"])
def test_comparisons_of_numbers_that_fill_a_register(predicate: str) -> None:
    """Of 32 bits, so that by sign the low registers do not compare as the pairs do."""
    check(COMPARE.replace("PREDICATE", predicate), "i64", cheaper=predicate[0] != "s")


def test_indices_of_unsigned_numbers() -> None:
    check(INDEX, "i32", cheaper=True)


@pytest.mark.parametrize("mask", [0, 15, 4095, (1 << 28) - 1, 1 << 28])
@pytest.mark.parametrize(("left", "right"), [(16, 4), (16, 7), (256, 3), (256, 40), (3, 2), (1, 0)])
def test_products_that_are_shifted_back(mask: int, left: int, right: int) -> None:
    body = SHIFTS.replace("LEFT", str(left)).replace("RIGHT", str(right))
    check(body.replace("MASK", str(mask)), "i32", cheaper=False)


def test_shared_loads_see_stores() -> None:
    before, slow = run(LOADS, "i32")
    after, fast = run(LOADS, "i32", UpmemSharePass())
    assert (before == after).all()
    assert fast < slow
