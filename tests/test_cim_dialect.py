"""Examples in the documentation of `cim` are valid, and each of its refusals is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlir_examples import mlir_blocks, parsed
from refusals import refusals_in
from xdsl.ir import Operation

from cim_opt.dialects import cim
from cim_opt.dialects.cim import OPERATIONS, CopyOp, Memory

FOLDER = Path(__file__).parent / "filecheck" / "dialects" / "cim"

HOST = {"cim.pack", "cim.unpack", "cim.launch"}
TENSORS = {
    "cim.pack": {"%x": "tensor<1x56x56xi8>"},
    "cim.unpack": {"%p": "tensor<784xi32>", "%init": "tensor<1x784xi32>"},
    "cim.launch": {"%x": "tensor<3584xi8>", "%w": "tensor<2048xi8>"},
}
"""What the examples take for granted; values in a program are addresses."""


def module_of(op_class: type[Operation], block: str) -> str:
    """An example as a module: in a function, in a program, or as it stands."""
    block = block.replace("dense<...>", "dense<0>")
    if "cim.program" in block:
        return block
    made = set(re.findall(r"(%\w+) = ", block))
    free = sorted(set(re.findall(r"%\w+", block)) - made)
    if op_class.name in HOST:
        types = TENSORS[op_class.name]
        arguments = ", ".join(f"{name}: {types[name]}" for name in free)
        program = "cim.program @conv(%x: index, %w: index, %y: index) {\ncim.return\n}\n"
        return f"{program}func.func @main({arguments}) {{\n{block}\nfunc.return\n}}"
    arguments = ", ".join(f"{name}: index" for name in free)
    end = "" if "cim.return" in block else "\ncim.return"
    return f"cim.program @k({arguments}) {{\n{block}{end}\n}}"


EXAMPLES = [
    pytest.param(op_class, module_of(op_class, block), id=f"{op_class.name}-{index}")
    for op_class in OPERATIONS
    for index, block in enumerate(mlir_blocks(op_class.__doc__ or ""))
]


@pytest.mark.parametrize("op_class", OPERATIONS)
def test_every_operation_is_described_with_an_example(op_class: type[Operation]) -> None:
    assert mlir_blocks(op_class.__doc__ or "")


@pytest.mark.parametrize(("op_class", "text"), EXAMPLES)
def test_examples_verify_and_round_trip(op_class: type[Operation], text: str) -> None:
    module = parsed(text)
    assert any(isinstance(op, op_class) for op in module.walk())
    printed = str(module)
    assert str(parsed(printed)) == printed


@pytest.mark.parametrize("source", Memory)
@pytest.mark.parametrize("target", Memory)
def test_copies_between_all_memories_round_trip(source: Memory, target: Memory) -> None:
    if target is Memory.OUTPUT_REGISTER and source is not Memory.OUTPUT:
        return
    text = f"cim.copy {source.value}[%x] to {target.value}[%x] plus 4 bytes 8"
    module = parsed(f"cim.program @k(%x: index) {{\n{text}\ncim.return\n}}")
    (copy,) = (op for op in module.walk() if isinstance(op, CopyOp))
    assert str(copy) == text


def test_every_operation_is_in_the_round_trip_file() -> None:
    text = (FOLDER / "ops.mlir").read_text()
    for op_class in OPERATIONS:
        assert f'"{op_class.name}"(' in text, op_class.name


def test_every_refusal_has_a_test() -> None:
    checks = [
        line
        for file in FOLDER.glob("*.mlir")
        for line in file.read_text().splitlines()
        if "// CHECK" in line
    ]
    refusals = refusals_in(Path(cim.__file__))
    assert len(refusals) > 18
    for parts in refusals:
        assert any(all(part in line for part in parts) for line in checks), "".join(parts)
