"""Examples in the documentation of `upmem` are valid, and each of its refusals is tested."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from mlir_examples import mlir_blocks, parsed
from refusals import refusals_in
from xdsl.dialects.builtin import Float64Type, IndexType, f32, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cim_opt.dialects import upmem
from cim_opt.dialects.upmem import HOST_OPS, KERNEL_OPS, Space, element_bytes, memref_type, space_of

FOLDER = Path(__file__).parent / "filecheck" / "dialects" / "upmem"

HOST = "func.func @example({arguments}) {{\n{block}\nfunc.return\n}}"
KERNEL = "upmem.kernel @example tasklets 16 ({arguments}) {{\n{block}\nupmem.return\n}}"
THREAD = "%r = upmem.host_thread -> (i32) {{\n{block}\n}}"

VECTORS = dict.fromkeys(("%a", "%table", "%tail", "%dest", "%data", "%l", "%p"), "tensor<?xi32>")
MRAM, WRAM = "memref<4096xi32, #upmem<space mram>>", "memref<256xi32, #upmem<space wram>>"
TYPES = {
    **VECTORS,
    "%table": "tensor<16xi32>",
    "%counts": "tensor<?xi64>",
    "%set": "!upmem.dpus",
    **dict.fromkeys(("%n", "%start", "%position", "%k", "%j", "%capacity"), "index"),
    **dict.fromkeys(("%scale", "%s", "%v"), "i32"),
    "%h": WRAM,
    "%w": WRAM,
}
"""What the examples take for granted."""

TYPES_HERE = {
    "upmem.wait": {"%t": "!upmem.token"},
    "upmem.merge_scan": {"%t": "tensor<?xi32>", "%i": "i32"},
    "upmem.merge_reduce": {"%i": "i32"},
    "upmem.mram_read": {"%m": MRAM, "%i": "index"},
    "upmem.mram_write": {"%m": MRAM, "%i": "index"},
    "upmem.critical": {"%m": "index", "%i": "index"},
}


def arguments(op_class: type[Operation], block: str) -> str:
    """The operands that an example does not define, with their types."""
    used = set(re.findall(r"%\w+", block))
    made = set(re.findall(r"(%\w+)(?=: | in |, %\w+ = | = )", block))
    types = TYPES | TYPES_HERE.get(op_class.name, {})
    return ", ".join(f"{name}: {types[name]}" for name in sorted(used - made))


def modules_of(op_class: type[Operation]) -> list[str]:
    """The examples of an operation, each in a function or kernel."""
    blocks = mlir_blocks(op_class.__doc__ or "")
    if op_class is upmem.KernelOp:
        return blocks
    if op_class is upmem.YieldOp:
        blocks = [THREAD.format(block=block) for block in blocks]
    if op_class is upmem.ReturnOp:
        blocks = ["" for _ in blocks]
    frame = KERNEL if op_class in KERNEL_OPS else HOST
    return [frame.format(block=block, arguments=arguments(op_class, block)) for block in blocks]


EXAMPLES = [
    pytest.param(op_class, text, id=f"{op_class.name}-{index}")
    for op_class in (*HOST_OPS, *KERNEL_OPS)
    for index, text in enumerate(modules_of(op_class))
]


@pytest.mark.parametrize("op_class", [*HOST_OPS, *KERNEL_OPS])
def test_every_operation_has_an_example(op_class: type[Operation]) -> None:
    assert modules_of(op_class)


@pytest.mark.parametrize(("op_class", "text"), EXAMPLES)
def test_examples_verify_and_round_trip(op_class: type[Operation], text: str) -> None:
    module = parsed(text)
    assert any(isinstance(op, op_class) for op in module.walk())
    printed = str(module)
    assert str(parsed(printed)) == printed
    generic = io.StringIO()
    Printer(stream=generic, print_generic_format=True).print_op(module)
    assert str(parsed(generic.getvalue())) == printed


def test_every_operation_is_in_the_round_trip_file() -> None:
    text = (FOLDER / "ops.mlir").read_text()
    for op_class in (*HOST_OPS, *KERNEL_OPS):
        assert f'"{op_class.name}"(' in text, op_class.name


@pytest.mark.parametrize(
    ("attr", "size"),
    [(i1, 1), (i8, 1), (i16, 2), (i32, 4), (i64, 8), (f32, 4), (Float64Type(), 8)],
)
def test_bytes_of_an_element(attr: Attribute, size: int) -> None:
    assert element_bytes(attr) == size


def test_bytes_of_what_has_no_size() -> None:
    with pytest.raises(VerifyException, match="no memory size for elements of index"):
        element_bytes(IndexType())


def test_memory_spaces() -> None:
    attr = memref_type(i32, 8, Space.WRAM)
    assert space_of(attr) is Space.WRAM
    assert str(attr) == "memref<8xi32, #upmem<space wram>>"
    assert space_of(i32) is None


def test_every_refusal_has_a_test() -> None:
    checks = [
        line
        for file in FOLDER.glob("*.mlir")
        for line in file.read_text().splitlines()
        if "// CHECK" in line
    ]
    refusals = refusals_in(Path(upmem.__file__))
    assert len(refusals) > 15
    for parts in refusals:
        assert any(all(part in line for part in parts) for line in checks), "".join(parts)
