"""Examples in the documentation of `pattern` are valid, and each of its refusals is tested."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from mlir_examples import as_function, mlir_blocks, parsed
from refusals import refusals_in
from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    TensorType,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Operation
from xdsl.printer import Printer

from cim_opt.dialects import pattern
from cim_opt.dialects.pattern import PATTERN_OPS, YieldOp, is_element_type

ROOT = Path(__file__).parents[1]
FILTER = """
%y, %n = pattern.filter(%x in %a : tensor<8xi32>) shared(%keep = %k : i1)
    -> (tensor<?xi32>, index) {{
  {}
}}
"""


def examples_of(op_class: type[Operation]) -> list[str]:
    blocks = mlir_blocks(op_class.__doc__ or "")
    return [FILTER.format(block) for block in blocks] if op_class is YieldOp else blocks


EXAMPLES = [
    pytest.param(op_class, block, id=f"{op_class.name}-{index}")
    for op_class in (*PATTERN_OPS, YieldOp)
    for index, block in enumerate(examples_of(op_class))
]


@pytest.mark.parametrize("op_class", [*PATTERN_OPS, YieldOp])
def test_every_operation_has_an_example(op_class: type[Operation]) -> None:
    assert examples_of(op_class)


@pytest.mark.parametrize(("op_class", "block"), EXAMPLES)
def test_examples_verify_and_round_trip(op_class: type[Operation], block: str) -> None:
    module = parsed(as_function(block))
    assert any(isinstance(op, op_class) for op in module.walk())
    text = str(module)
    assert str(parsed(text)) == text
    generic = io.StringIO()
    Printer(stream=generic, print_generic_format=True).print_op(module)
    assert str(parsed(generic.getvalue())) == text


def test_examples_of_the_page_verify() -> None:
    blocks = mlir_blocks((ROOT / "docs" / "pattern.md").read_text())
    modules = [parsed(as_function(block)) for block in blocks]
    shown = {op.name for module in modules for op in module.walk()}
    assert shown >= {op_class.name for op_class in PATTERN_OPS}


def test_element_types() -> None:
    odd = IntegerType(22)
    assert all(map(is_element_type, (i1, i8, odd, i32, i64, f32)))
    wide, signed = IntegerType(65), IntegerType(32, Signedness.SIGNED)
    assert not any(map(is_element_type, (f64, wide, signed, TensorType(i32, [2]))))


# -- refusals --------------------------------------------------------------------------------------


def test_every_refusal_has_a_test() -> None:
    folder = ROOT / "tests" / "filecheck" / "dialects" / "pattern"
    checks = [
        line
        for file in folder.glob("*.mlir")
        for line in file.read_text().splitlines()
        if "// CHECK" in line
    ]
    refusals = refusals_in(Path(pattern.__file__))
    assert len(refusals) > 30
    for parts in refusals:
        assert any(all(part in line for part in parts) for line in checks), "".join(parts)
