"""What the lowering to SIMDRAM refuses: one line with the place, the limit and a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusals import refusals_in
from simdram_lowering import refused, write_machine

from cim_opt.errors import UserError
from cim_opt.simulators.run import lower
from cim_opt.tools.load_module import parse_text

ROOT = Path(__file__).parents[1]
V = "tensor<?xi32>"


def mapped(body: str, element: str = "i32", shared: str = "", arguments: str = "") -> str:
    """@main with a map: the pattern is on line 2, the body's first line is 3."""
    vector = f"tensor<?x{element}>"
    clause = f" shared({shared})" if shared else ""
    return f"""func.func @main(%a: {vector}{arguments}) -> {vector} {{
  %m = pattern.map(%x in %a : {vector}){clause} -> {vector} {{
    {body}
    pattern.yield %y : {element}
  }}
  func.return %m : {vector}
}}
"""


def group(body: str, size: int = 12) -> str:
    """@main with a group of %s: the pattern is on line 2, the body's first line is 3."""
    return f"""func.func @main(%a: {V}) -> {V} {{
  %m = pattern.group<{size}>(%s in %a : {V}) -> {V} {{
    {body}
    pattern.yield %y : i32
  }}
  func.return %m : {V}
}}
"""


def table(body: str) -> str:
    """@main with a reduce into a tensor: the pattern is on line 2, the body's first line is 3."""
    bins = "tensor<8xi32>"
    return f"""func.func @main(%a: {V}, %z: {bins}) -> {bins} {{
  %h = pattern.reduce(%x in %a : {V}) init(%acc = %z : {bins}) {{
    {body}
    pattern.yield %u : {bins}
  }} combine(%l, %r) {{
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }}
  func.return %h : {bins}
}}
"""


ALLOWED = (
    "simdram computes with integers, by bbops for arith, math.absi and math.ctpop, "
    "tensor.extract, insert, from_elements, splat and dim, scf.if and scf.for, and nested "
    "patterns; SIMDRAM has no floating point; rewrite it with these, or run it on upmem"
)
STEP = "%l = arith.constant 0 : index\n%s1 = arith.constant 1 : index\n"
READ_AND_WRITE = (
    "'pattern.reduce' reads one element of its accumulator and writes another; simdram updates "
    "each element of a tensor accumulator from itself; read and write at one index"
)

REFUSED: dict[str, tuple[str, str]] = {
    "floating point": (
        mapped("%y = arith.addf %x, %x : f32", "f32"),
        "test.mlir:2:3: error: 'pattern.map' computes with f32; SIMDRAM has integers only, no "
        "floating point; use fixed point, or run it on upmem",
    ),
    "floating point inside": (
        mapped("%f = arith.sitofp %x : i32 to f32\n%y = arith.fptosi %f : f32 to i32"),
        f"test.mlir:3:5: error: 'arith.sitofp' in an element function; {ALLOWED}",
    ),
    "a float constant inside": (
        mapped("%f = arith.constant 1.0 : f32\n%y = arith.fptosi %f : f32 to i32"),
        f"test.mlir:3:5: error: 'arith.constant' in an element function; {ALLOWED}",
    ),
    "another loop": (
        mapped(
            "%y = scf.while (%v = %x) : (i32) -> i32 {\n"
            "%c = arith.cmpi eq, %v, %x : i32\nscf.condition(%c) %v : i32\n"
            "} do {\n^bb0(%w: i32):\nscf.yield %w : i32\n}"
        ),
        f"test.mlir:3:5: error: 'scf.while' in an element function; {ALLOWED}",
    ),
    "arithmetic on whole tensors": (
        group(
            "%t = arith.addi %s, %s : tensor<12xi32>\n%c0 = arith.constant 0 : index\n"
            "%y = tensor.extract %t[%c0] : tensor<12xi32>"
        ),
        f"test.mlir:3:5: error: 'arith.addi' in an element function; {ALLOWED}",
    ),
    "another operation on lanes": (
        mapped("%y = math.ctlz %x : i32"),
        f"test.mlir:3:5: error: 'math.ctlz' in an element function; {ALLOWED}",
    ),
    "bounds of each lane": (
        mapped(
            STEP + "%h = arith.index_cast %x : i32 to index\n"
            "%y = scf.for %i = %l to %h step %s1 iter_args(%v = %x) -> (i32) {\n"
            "scf.yield %v : i32\n}"
        ),
        "test.mlir:6:1: error: 'scf.for' whose bounds differ from element to element; simdram "
        "runs all lanes in lockstep; use bounds that are the same for all elements",
    ),
    "a long loop that carries a tensor": (
        group(
            STEP + "%h = arith.constant 9 : index\n"
            "%t = scf.for %i = %l to %h step %s1 iter_args(%v = %s) -> (tensor<12xi32>) {\n"
            "%e = tensor.extract %v[%i] : tensor<12xi32>\n"
            "%w = tensor.insert %e into %v[%l] : tensor<12xi32>\n"
            "scf.yield %w : tensor<12xi32>\n}\n"
            "%y = tensor.extract %t[%l] : tensor<12xi32>"
        ),
        "test.mlir:6:1: error: 'scf.for' carries a tensor through more than 8 rounds; simdram "
        "carries vertical objects only; carry scalars, or use a reduce with a tensor accumulator",
    ),
    "a constant matrix": (
        mapped(
            "%t = arith.constant dense<1> : tensor<2x2xi32>\n%c0 = arith.constant 0 : index\n"
            "%y = tensor.extract %t[%c0, %c0] : tensor<2x2xi32>"
        ),
        "test.mlir:3:5: error: 'arith.constant' holds a tensor<2x2xi32> in an element function; "
        "simdram needs tensors there 1-D of static length; give the type its length",
    ),
    "a splat of unknown length": (
        mapped(
            "%c0 = arith.constant 0 : index\n%n = arith.index_cast %x : i32 to index\n"
            "%t = tensor.splat %x[%n] : tensor<?xi32>\n"
            "%y = tensor.extract %t[%c0] : tensor<?xi32>"
        ),
        "test.mlir:5:1: error: 'tensor.splat' holds a tensor<?xi32> in an element function; "
        "simdram needs tensors there 1-D of static length; give the type its length",
    ),
    "a shared operand of unknown length": (
        mapped(
            "%c0 = arith.constant 0 : index\n%y = tensor.extract %f[%c0] : tensor<?xi32>",
            shared=f"%f = %t : {V}",
            arguments=f", %t: {V}",
        ),
        "test.mlir:2:3: error: shared tensor of type tensor<?xi32>; simdram needs shared tensors "
        "1-D of static length; give the type its length",
    ),
    "a shared matrix": (
        mapped(
            "%c0 = arith.constant 0 : index\n%y = tensor.extract %f[%c0, %c0] : tensor<2x2xi32>",
            shared="%f = %t : tensor<2x2xi32>",
            arguments=", %t: tensor<2x2xi32>",
        ),
        "test.mlir:2:3: error: shared tensor of type tensor<2x2xi32>; simdram needs shared "
        "tensors 1-D of static length; give the type its length",
    ),
    "a bin made from another": (
        table(
            "%c1 = arith.constant 1 : index\n%i = arith.index_cast %x : i32 to index\n"
            "%o = tensor.extract %acc[%c1] : tensor<8xi32>\n"
            "%u = tensor.insert %o into %acc[%i] : tensor<8xi32>"
        ),
        f"test.mlir:2:3: error: {READ_AND_WRITE}",
    ),
    "a bin made from the bin of another lane": (
        table(
            "%i = arith.index_cast %x : i32 to index\n%t = arith.addi %x, %x : i32\n"
            "%j = arith.index_cast %t : i32 to index\n"
            "%o = tensor.extract %acc[%j] : tensor<8xi32>\n"
            "%u = tensor.insert %o into %acc[%i] : tensor<8xi32>"
        ),
        f"test.mlir:2:3: error: {READ_AND_WRITE}",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str) -> None:
    text, message = REFUSED[name]
    assert refused(text) == message


def rows_refusal(tmp_path: Path) -> str:
    """A product of 64 bits, with its operands, on a machine of 100 D rows."""
    machine = write_machine(
        tmp_path, {"row_bytes": 8, "columns": 64, "subarrays": 1, "data_rows": 100}
    )
    return refused(mapped("%y = arith.muli %x, %x : i64", "i64"), machine=machine)


def test_an_operation_that_alone_does_not_fit(tmp_path: Path) -> None:
    message = rows_refusal(tmp_path)
    assert message.startswith("test.mlir:")
    assert message.endswith("a subarray has 100; split the element function, or narrow its types")


@pytest.mark.parametrize(
    "options, what",
    [
        ({"machine": "simdram-2"}, "unknown machine 'simdram-2'"),
        ({"library": "mine"}, "unknown library of microprograms 'mine'"),
    ],
)
def test_an_unknown_name(options: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        lower(
            parse_text(mapped("%y = arith.addi %x, %x : i32"), "test.mlir"),
            "pattern-to-simdram",
            options,
        )


def test_every_refusal_has_a_test(tmp_path: Path) -> None:
    tested = [message for _, message in REFUSED.values()] + [rows_refusal(tmp_path)]
    sources = [
        *(ROOT / "lowering").glob("simdram_*.py"),
        ROOT / "lowering" / "convert_pattern_to_simdram.py",
        *(ROOT / "passes").glob("simdram_*.py"),
    ]
    refusals = [pieces for source in sources for pieces in refusals_in(source, ("UserError",))]
    assert len(refusals) >= 8
    for pieces in refusals:
        assert any(all(piece in line for piece in pieces) for line in tested), "".join(pieces)
