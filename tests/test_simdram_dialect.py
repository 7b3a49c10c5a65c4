"""Examples in the documentation of `simdram` are valid, and each of its refusals is tested."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from mlir_examples import mlir_blocks, parsed
from refusals import refusals_in
from xdsl.ir import Operation
from xdsl.printer import Printer

from cim_opt.dialects import simdram
from cim_opt.dialects.simdram import OPERATIONS, Opcode

FOLDER = Path(__file__).parent / "filecheck" / "dialects" / "simdram"

FUNCTION = "func.func @example({arguments}) {{\n{block}\nfunc.return\n}}"
VEC = "!simdram.vec<32>"
TYPES = {
    **dict.fromkeys(("%source", "%dest", "%data"), "tensor<?xi32>"),
    **dict.fromkeys(("%start", "%n", "%position"), "index"),
    "%mask": "tensor<?xi1>",
    "%k": "i32",
    "%b": VEC,
    "%v": VEC,
}
"""What the examples take for granted."""

TYPES_HERE = {
    "simdram.transpose": {"%a": "tensor<?xi32>", "%s": "index"},
    "simdram.fill": {"%s": "i32"},
    "simdram.bbop": {"%a": VEC},
    "simdram.mul_scalar": {"%a": VEC},
    "simdram.read": {"%s": "index"},
}


def modules_of(op_class: type[Operation]) -> list[str]:
    """The examples of an operation, each in a function of the operands it does not define."""
    types = TYPES | TYPES_HERE.get(op_class.name, {})
    modules = list[str]()
    for block in mlir_blocks(op_class.__doc__ or ""):
        made = set(re.findall(r"(%\w+) = ", block))
        free = sorted(set(re.findall(r"%\w+", block)) - made)
        arguments = ", ".join(f"{name}: {types[name]}" for name in free)
        modules.append(FUNCTION.format(block=block, arguments=arguments))
    return modules


EXAMPLES = [
    pytest.param(op_class, text, id=f"{op_class.name}-{index}")
    for op_class in OPERATIONS
    for index, text in enumerate(modules_of(op_class))
]


@pytest.mark.parametrize("op_class", OPERATIONS)
def test_every_operation_is_described_with_an_example(op_class: type[Operation]) -> None:
    assert modules_of(op_class)


@pytest.mark.parametrize(("op_class", "text"), EXAMPLES)
def test_examples_verify_and_round_trip(op_class: type[Operation], text: str) -> None:
    module = parsed(text)
    assert any(isinstance(op, op_class) for op in module.walk())
    round_trips(text)


def round_trips(text: str) -> None:
    """Both forms of a text read as the same module."""
    module = parsed(text)
    printed = str(module)
    assert str(parsed(printed)) == printed
    generic = io.StringIO()
    Printer(stream=generic, print_generic_format=True).print_op(module)
    assert str(parsed(generic.getvalue())) == printed


def operands(opcode: Opcode) -> tuple[list[int], int]:
    """Widths of operands, and of the result, that an opcode takes."""
    if opcode in simdram.BINARY:
        return [7, 7], 7
    if opcode in simdram.UNARY or opcode in simdram.CONSTANT_SHIFTS:
        return [7], 7
    if opcode in simdram.COMPARISONS:
        return [7, 7], 1
    if opcode is Opcode.SELECT:
        return [1, 7, 7], 7
    return ([7], 9) if opcode in simdram.EXTENSIONS else ([9], 7)


@pytest.mark.parametrize("opcode", Opcode)
def test_every_opcode_round_trips(opcode: Opcode) -> None:
    widths, out = operands(opcode)
    args = ", ".join(f"%x{n}" for n in range(len(widths)))
    formal = ", ".join(f"%x{n}: !simdram.vec<{width}>" for n, width in enumerate(widths))
    types = ", ".join(f"!simdram.vec<{width}>" for width in widths)
    amount = " amount 3" if opcode in simdram.CONSTANT_SHIFTS else ""
    for rows in ("", " row 20", " row 20 scratch 30"):
        round_trips(
            f"func.func @f({formal}) {{\n%r = simdram.bbop {opcode}({args}){amount}{rows} : "
            f"({types}) -> !simdram.vec<{out}>\nfunc.return\n}}"
        )


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
    refusals = refusals_in(Path(simdram.__file__))
    assert len(refusals) > 9
    for parts in refusals:
        assert any(all(part in line for part in parts) for line in checks), "".join(parts)
