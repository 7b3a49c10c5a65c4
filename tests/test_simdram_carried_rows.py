"""Loops that carry more than the D rows hold run, with some of what they carry kept by the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from simdram_lowering import write_machine
from xdsl.dialects import scf

from cim_opt.dialects.simdram import ReadOp
from cim_opt.simulators.run import RunResult, SimdramOptions, run_program
from cim_opt.tools.load_module import parse_text

OPERATIONS = {"add": "arith.addi", "max": "arith.maxsi", "xor": "arith.xori"}


def folds(count: int, operation: str, kind: str) -> str:
    """A reduce or a scan over `count` vectors of i64 at once."""
    numbers = range(count)
    inputs = ", ".join(f"%x{i} in %a{i} : tensor<?xi64>" for i in numbers)
    start = ", ".join(f"%c{i} = %z : i64" for i in numbers)
    body = "\n".join(f"%s{i} = {OPERATIONS[operation]} %c{i}, %x{i} : i64" for i in numbers)
    types = ", ".join(["i64"] * count)
    results = types if kind == "reduce" else ", ".join(["tensor<?xi64>"] * count)
    arrow = "" if kind == "reduce" else f"-> ({results})" if count > 1 else f"-> {results}"
    return f"""
    func.func @main({", ".join(f"%a{i}: tensor<?xi64>" for i in numbers)}) -> ({results}) {{
      %z = arith.constant 0 : i64
      %r:{count} = pattern.{kind}({inputs}) init({start}) {arrow} {{
        {body}
        pattern.yield {", ".join(f"%s{i}" for i in numbers)} : {types}
      }}
      func.return {", ".join(f"%r#{i}" for i in numbers)} : {results}
    }}"""


@pytest.mark.parametrize("level", ["bbop", "rows"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("count, rows", [(2, 220), (3, 230), (5, 300), (8, 450)])
def test_accumulators_beyond_the_rows(
    tmp_path: Path, count: int, rows: int, operation: str, level: str
) -> None:
    figures = {"row_bytes": 8, "columns": 64, "subarrays": 2, "data_rows": rows}
    machine = write_machine(tmp_path, figures)
    rng = np.random.default_rng(count)
    inputs = {f"a{i}": rng.integers(-(2**63), 2**63, 1003, dtype=np.int64) for i in range(count)}
    result = run_program(
        parse_text(folds(count, operation, "reduce"), "test.mlir"),
        "main",
        inputs,
        target="simdram",
        machine=machine,
        simdram_options=SimdramOptions(level=level),
    )
    assert result.check is not None and result.check.ok
    assert kept_in_loops(result)


def kept_in_loops(result: RunResult) -> int:
    """Objects that are read back in each round of a loop."""
    assert result.lowered is not None
    reads = (op for op in result.lowered.walk() if isinstance(op, ReadOp))
    return sum(isinstance(op.parent_op(), scf.ForOp) for op in reads)


def test_sixteen_sums_of_64_bits_on_the_default_machine() -> None:
    rng = np.random.default_rng(16)
    inputs = {f"a{i}": rng.integers(-(2**63), 2**63, 70001, dtype=np.int64) for i in range(16)}
    module = parse_text(folds(16, "add", "reduce"), "test.mlir")
    result = run_program(module, "main", inputs, target="simdram")
    assert result.check is not None and result.check.ok
    assert kept_in_loops(result)
