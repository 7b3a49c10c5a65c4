"""Helpers of the tests that run `simdram` programs: texts, runs at both levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from cim_opt.hardware.simdram import SimdramMachine, load_machine
from cim_opt.simulators.simdram import SimdramSimulator
from cim_opt.simulators.simdram_report import SimdramReport
from cim_opt.tools.load_module import parse_text

RNG = np.random.default_rng(11)

C0 = "%c0 = arith.constant 0 : index"
C1 = "%c1 = arith.constant 1 : index"

VECTOR_ADD = """
func.func @main(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = arith.constant 65536 : index
  %n = tensor.dim %a, %c0 : tensor<?xi32>
  %d = tensor.empty(%n) : tensor<?xi32>
  %r = scf.for %i = %c0 to %n step %w iter_args(%dest = %d) -> (tensor<?xi32>) {
    %left = arith.subi %n, %i : index
    %count = arith.minsi %left, %w : index
    %x = simdram.transpose %a[%i] stride %c1 count %count : tensor<?xi32> -> !simdram.vec<32>
    %y = simdram.transpose %b[%i] stride %c1 count %count : tensor<?xi32> -> !simdram.vec<32>
    %s = simdram.bbop add(%x, %y) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
    %o = simdram.read %s into %dest[%i] stride %c1 : !simdram.vec<32>, tensor<?xi32>
    scf.yield %o : tensor<?xi32>
  }
  func.return %r : tensor<?xi32>
}
"""


def numbers(count: int, dtype: str = "int32") -> Any:
    """Random numbers over the whole range of a type."""
    if dtype == "bool":
        return RNG.integers(0, 2, count).astype(np.bool_)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)


def function(body: str, arguments: str = "", results: str = "") -> str:
    """A module with function @main."""
    arrow = f" -> ({results})" if results else ""
    return f"func.func @main({arguments}){arrow} {{\n{body}\n}}\n"


def module_of(text: str) -> ModuleOp:
    """The verified module of a text, with places on operations."""
    return parse_text(text, "test.mlir")


def run(
    text: str | ModuleOp, args: Sequence[Any], **options: Any
) -> tuple[list[Any], SimdramReport]:
    """One run on the machine of the options, or on `simdram-1`."""
    module = module_of(text) if isinstance(text, str) else text
    options.setdefault("machine", load_machine("simdram-1"))
    results, report = SimdramSimulator(**options).run(module, "main", args)
    return list(results), report


def run_both(
    text: str | ModuleOp, args: Sequence[Any], **options: Any
) -> tuple[list[Any], SimdramReport]:
    """A run at level `bbop`, after checking that level `rows` gives the same in every respect."""
    module = module_of(text) if isinstance(text, str) else text
    words, report = run(module, args, level="bbop", **options)
    rows, rows_report = run(module, args, level="rows", **options)
    assert len(words) == len(rows)
    for expected, got in zip(words, rows, strict=True):
        assert expected.dtype == got.dtype
        assert np.array_equal(expected, got)
    assert replace(rows_report, level="bbop") == report
    return words, report


def machine(**figures: Any) -> SimdramMachine:
    """`simdram-1` with other figures."""
    return SimdramMachine.from_dict({**load_machine("simdram-1").to_dict(), **figures}, "test")
