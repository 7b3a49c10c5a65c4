"""What the lowering to UPMEM refuses: one line with the place, the limit and a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusals import refusals_in
from small_machine import write_machines

from cim_opt.errors import UserError
from cim_opt.simulators.run import lower
from cim_opt.tools.load_module import parse_text

ROOT = Path(__file__).parents[1]
V = "tensor<?xi32>"


def refused(text: str, **options: Any) -> str:
    """The error of the lowering, with its place."""
    with pytest.raises(UserError) as info:
        lower(parse_text(text, "test.mlir"), "pattern-to-upmem", options)
    message = str(info.value)
    assert "\n" not in message
    assert message.count(";") >= 2, "what; the limit; what to do"
    return message


def group(body: str, size: int = 4, shared: str = "", arguments: str = "") -> str:
    """@main with a group of `size`: the pattern is on line 2, the body's first line is 3."""
    clause = f" shared({shared})" if shared else ""
    return f"""func.func @main(%a: {V}{arguments}) -> {V} {{
  %y = pattern.group<{size}>(%s in %a : {V}){clause} -> {V} {{
    {body}
  }}
  func.return %y : {V}
}}
"""


FIRST = """%c0 = arith.constant 0 : index
    %x = tensor.extract %s[%c0] : tensor<{size}xi32>
    pattern.yield %x : i32"""


def histogram(bins: int, kind: str) -> str:
    table = f"tensor<{bins}xi32>"
    return f"""func.func @main(%a: {V}, %z: {table}) -> {table} {{
  %h = pattern.reduce(%x in %a : {V}) init(%acc = %z : {table}) {{
    %i = arith.index_cast %x : i32 to index
    %u = tensor.insert %x into %acc[%i] : {table}
    pattern.yield %u : {table}
  }} combine(%l, %r) {{
    {kind}
    pattern.yield %s : i32
  }}
  func.return %h : {table}
}}
"""


TABLE = """%c0 = arith.constant 0 : index
    %x = tensor.extract %t[{index}] : {type}
    pattern.yield %x : i32"""


def shared(type: str, index: str = "%c0") -> str:
    """A group that looks up an element of a shared operand."""
    body = TABLE.format(type=type, index=index)
    return group(body, 4, f"%t = %b : {type}", f", %b: {type}")


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "wram, a long row": (
        group(FIRST.format(size=20_000), 20_000),
        {},
        "test.mlir:2:3: error: WRAM is too small: 160008 bytes of blocks on 1 tasklet; "
        "upmem-2560 has 64107 bytes beside the stacks; "
        "use smaller groups, windows, accumulators or shared operands",
    ),
    "wram, chosen blocks": (
        group(FIRST.format(size=4)),
        {"tasklets": 24, "block": 2048},
        "test.mlir:2:3: error: WRAM is too small: 61440 bytes of blocks on 24 tasklets; "
        "upmem-2560 has 40532 bytes beside the stacks; choose fewer tasklets or a smaller block",
    ),
    "wram, too many bins": (
        histogram(20_000, "%s = arith.maxsi %l, %r : i32"),
        {},
        "test.mlir:2:3: error: WRAM is too small: 24 bytes of blocks on 1 tasklet, "
        "80000 bytes of accumulators; upmem-2560 has 64107 bytes beside the stacks; "
        "use smaller groups, windows, accumulators or shared operands",
    ),
    "wram, bins that cannot be shared": (
        histogram(4000, "%d = arith.addi %l, %r : i32\n    %s = arith.subi %d, %l : i32"),
        {"tasklets": 8},
        "test.mlir:2:3: error: WRAM is too small: 192 bytes of blocks on 8 tasklets, "
        "128000 bytes of accumulators, 16000 bytes of shared operands; "
        "upmem-2560 has 56932 bytes beside the stacks; choose fewer tasklets or a smaller block",
    ),
    "wram, a large shared operand": (
        shared("tensor<40000xi32>"),
        {},
        "test.mlir:2:3: error: WRAM is too small: 40 bytes of blocks on 1 tasklet, "
        "160000 bytes of shared operands; upmem-2560 has 64107 bytes beside the stacks; "
        "use smaller groups, windows, accumulators or shared operands",
    ),
    "tasklets": (
        group(FIRST.format(size=4)),
        {"tasklets": 25},
        "error: 25 tasklets on upmem-2560; a DPU runs 1 to 24 tasklets; "
        "choose a number in that range",
    ),
    "no tasklets": (
        group(FIRST.format(size=4)),
        {"tasklets": 0},
        "error: 0 tasklets on upmem-2560; a DPU runs 1 to 24 tasklets; "
        "choose a number in that range",
    ),
    "block": (
        group(FIRST.format(size=4)),
        {"block": 12},
        "error: block of 12 bytes; a transfer moves 8 to 2048 bytes, a multiple of 8; "
        "choose such a size",
    ),
    "long block": (
        group(FIRST.format(size=4)),
        {"block": 4096},
        "error: block of 4096 bytes; a transfer moves 8 to 2048 bytes, a multiple of 8; "
        "choose such a size",
    ),
    "dpus": (
        group(FIRST.format(size=4)),
        {"dpus": 641, "machine": "upmem-640"},
        "error: 641 DPUs on upmem-640; it has 1 to 640; choose a number in that range",
    ),
    "no dpus": (
        group(FIRST.format(size=4)),
        {"dpus": 0},
        "error: 0 DPUs on upmem-2560; it has 1 to 2560; choose a number in that range",
    ),
    "a shared operand of unknown length": (
        shared(V),
        {},
        "test.mlir:2:3: error: 'pattern.group' holds a tensor<?xi32> on a DPU; upmem needs "
        "tensors inside element functions, and shared ones, 1-D of static length; "
        "give the type its length",
    ),
    "a shared matrix": (
        shared("tensor<2x2xi32>", "%c0, %c0"),
        {},
        "test.mlir:2:3: error: 'pattern.group' holds a tensor<2x2xi32> on a DPU; upmem needs "
        "tensors inside element functions, and shared ones, 1-D of static length; "
        "give the type its length",
    ),
    "a constant matrix": (
        group(
            "%m = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>\n"
            "%c0 = arith.constant 0 : index\n"
            "%x = tensor.extract %m[%c0, %c0] : tensor<2x2xi32>\npattern.yield %x : i32"
        ),
        {},
        "test.mlir:3:5: error: 'arith.constant' holds a tensor<2x2xi32> on a DPU; upmem needs "
        "tensors inside element functions, and shared ones, 1-D of static length; "
        "give the type its length",
    ),
    "a nested pattern over an unknown length": (
        group(
            f"%t = tensor.cast %s : tensor<4xi32> to {V}\n"
            "%c0 = arith.constant 0 : i32\n"
            f"%x = pattern.reduce(%e in %t : {V}) init(%acc = %c0 : i32) {{\n"
            "%n = arith.addi %acc, %e : i32\npattern.yield %n : i32\n}\npattern.yield %x : i32"
        ),
        {},
        "test.mlir:5:1: error: 'pattern.reduce' holds a tensor<?xi32> on a DPU; upmem needs "
        "tensors inside element functions, and shared ones, 1-D of static length; "
        "give the type its length",
    ),
    "an operation on tensors": (
        group(
            "%t = arith.addi %s, %s : tensor<4xi32>\n"
            + TABLE.format(type="tensor<4xi32>", index="%c0")
        ),
        {},
        "test.mlir:3:5: error: 'arith.addi' in an element function; upmem takes arith and math "
        "on scalars, tensor.extract, insert, from_elements, splat, empty, dim and cast, scf.if "
        "and scf.for, and nested patterns; rewrite it with these",
    ),
    "another loop": (
        group(
            "%z = arith.constant 0 : i32\n"
            "%x = scf.while (%i = %z) : (i32) -> i32 {\n"
            "%c = arith.cmpi slt, %i, %z : i32\nscf.condition(%c) %i : i32\n"
            "} do {\n^bb0(%j: i32):\nscf.yield %j : i32\n}\npattern.yield %x : i32"
        ),
        {},
        "test.mlir:4:1: error: 'scf.while' in an element function; upmem takes arith and math "
        "on scalars, tensor.extract, insert, from_elements, splat, empty, dim and cast, scf.if "
        "and scf.for, and nested patterns; rewrite it with these",
    ),
    "an odd width": (
        group(
            FIRST.format(size=4).replace(
                "pattern.yield %x",
                "%n = arith.trunci %x : i32 to i7\n%w = arith.extsi %n : i7 to i32\n"
                "pattern.yield %w",
            )
        ),
        {},
        "test.mlir:2:3: error: a value of type i7 on UPMEM; its integers are i1, i8, i16, i32 and "
        "i64; use the next longer one",
    ),
    "branches of different lengths": (
        group(
            f"%t = tensor.cast %s : tensor<4xi32> to {V}\n"
            "%c0 = arith.constant 0 : index\n"
            f"%e = tensor.extract %t[%c0] : {V}\n"
            "%o = tensor.splat %e : tensor<3xi32>\n"
            f"%p = tensor.cast %o : tensor<3xi32> to {V}\n"
            "%k = arith.trunci %e : i32 to i1\n"
            f"%u = scf.if %k -> ({V}) {{\nscf.yield %t : {V}\n}} else {{\nscf.yield %p : {V}\n}}\n"
            f"%x = tensor.extract %u[%c0] : {V}\npattern.yield %x : i32"
        ),
        {},
        "test.mlir:9:1: error: 'scf.if' yields tensors of 4 and of 3 elements; upmem keeps a "
        "tensor that control flow changes in one place of WRAM; make them of one length",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str) -> None:
    text, options, message = REFUSED[name]
    assert refused(text, **options) == message


def test_mram_that_is_too_small(tmp_path: Path) -> None:
    machine = write_machines(tmp_path)["tiny"]
    message = refused(group(FIRST.format(size=1200), 1200), machine=machine)
    assert message == (
        "test.mlir:2:3: error: MRAM is too small: the smallest piece of work takes 9656 bytes; "
        "tiny has 4096 bytes a DPU; use smaller groups, windows or accumulators"
    )


def test_an_unknown_machine() -> None:
    with pytest.raises(UserError, match="unknown machine 'upmem-256'"):
        lower(
            parse_text(group(FIRST.format(size=4)), "test.mlir"),
            "pattern-to-upmem",
            {"machine": "upmem-256"},
        )


def test_every_refusal_has_a_test() -> None:
    tested = [message for _, _, message in REFUSED.values()] + [
        "MRAM is too small: the smallest piece of work takes 9656 bytes"
    ]
    sources = [
        *(ROOT / "lowering").glob("upmem_*.py"),
        ROOT / "lowering" / "convert_pattern_to_upmem.py",
        *(ROOT / "mapping").glob("upmem_*.py"),
    ]
    refusals = [pieces for source in sources for pieces in refusals_in(source, ("UserError",))]
    assert len(refusals) >= 7
    for pieces in refusals:
        assert any(all(piece in line for piece in pieces) for line in tested), "".join(pieces)
