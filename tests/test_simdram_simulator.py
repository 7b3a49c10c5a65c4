"""Hand-written programs in DRAM, at both levels, against NumPy and Python integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bbop_oracle import bbop_value, operand_widths
from mlir_examples import mlir_blocks
from simdram_programs import (
    C0,
    C1,
    RNG,
    VECTOR_ADD,
    function,
    machine,
    module_of,
    numbers,
    run_both,
)
from xdsl.ir import Operation

from cim_opt.dialects import simdram
from cim_opt.dialects.simdram import CONSTANT_SHIFTS, EXTENSIONS, Opcode
from cim_opt.dialects.simdram_programs import NAMES
from cim_opt.errors import UserError
from cim_opt.microprograms.library import LIBRARY_NAMES, library
from cim_opt.simulators.simdram import SimdramEvaluator
from cim_opt.simulators.simdram_programs import Programs


def element(width: int) -> int:
    """Bits of the smallest host element that holds `width` bits."""
    return next(size for size in (1, 8, 16, 32, 64) if width <= size)


def in_words(values: list[int], width: int) -> Any:
    """Numbers as an array of host elements."""
    size = element(width)
    array = np.array(values, np.uint64)
    return (
        array.astype(np.bool_) if size == 1 else array.astype(f"u{size // 8}").view(f"i{size // 8}")
    )


def bbop_module(opcode: Opcode, widths: list[int], out: int, amount: int | None) -> str:
    """One bbop on transposed arguments, its result read back into the smallest host element."""
    lines = [C0, C1, f"%n = tensor.dim %a0, %c0 : tensor<?xi{element(widths[0])}>"]
    for index, width in enumerate(widths):
        lines.append(
            f"%x{index} = simdram.transpose %a{index}[%c0] stride %c1 count %n : "
            f"tensor<?xi{element(width)}> -> !simdram.vec<{width}>"
        )
    args = ", ".join(f"%x{index}" for index in range(len(widths)))
    types = ", ".join(f"!simdram.vec<{width}>" for width in widths)
    by = "" if amount is None else f" amount {amount}"
    lines.append(f"%r = simdram.bbop {opcode}({args}){by} : ({types}) -> !simdram.vec<{out}>")
    lines += read_back("%r", out)
    formal = ", ".join(f"%a{i}: tensor<?xi{element(width)}>" for i, width in enumerate(widths))
    return function("\n".join(lines), formal, f"tensor<?xi{element(out)}>")


def read_back(name: str, width: int) -> list[str]:
    """Reads an object of `%n` lanes into a new vector and returns that."""
    size = element(width)
    lines = list[str]()
    if size != width:
        lines.append(
            f"%wide = simdram.bbop zext({name}) : (!simdram.vec<{width}>) -> !simdram.vec<{size}>"
        )
        name = "%wide"
    return [
        *lines,
        f"%e = tensor.empty(%n) : tensor<?xi{size}>",
        f"%d = simdram.read {name} into %e[%c0] stride %c1 : "
        f"!simdram.vec<{size}>, tensor<?xi{size}>",
        f"func.return %d : tensor<?xi{size}>",
    ]


# Values.


@pytest.mark.parametrize("width", [1, 2, 7, 32, 64])
@pytest.mark.parametrize("opcode", Opcode)
@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_every_opcode_at_both_levels(name: str, opcode: Opcode, width: int) -> None:
    if (opcode is Opcode.TRUNC and width == 1) or (opcode in EXTENSIONS and width == 64):
        return
    chosen = min(width + 9, 64) if opcode in EXTENSIONS else width - 1
    widths, out = operand_widths(opcode, width, chosen)
    for amount in (0, 1, width, 70) if opcode in CONSTANT_SHIFTS else (None,):
        module = module_of(bbop_module(opcode, widths, out, amount))
        for lanes in (0, 1, 65):
            lists = [
                [int(x) & ((1 << w) - 1) for x in RNG.integers(0, 2**63, lanes)] for w in widths
            ]
            if len(lists) > 1 and lanes > 5:
                lists[-1][:3] = [0, width & ((1 << width) - 1), lists[-2][2] & ((1 << width) - 1)]
            args = [in_words(x, w) for x, w in zip(lists, widths, strict=True)]
            (got,), report = run_both(module, args, library=name)
            want = [
                bbop_value(opcode, lane, width, out, amount) for lane in zip(*lists, strict=True)
            ]
            assert got.tolist() == in_words(want, out).tolist()
            assert (report.commands > 0) == (lanes > 0)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 997, 65536, 65537, 200001])
def test_lengths_and_tiles(count: int) -> None:
    a, b = numbers(count), numbers(count)
    (got,), report = run_both(VECTOR_ADD, [a, b])
    assert (got == a + b).all()
    tiles = -(-count // 65536)
    assert report.bbops == tiles
    assert report.utilisation == pytest.approx(count / (tiles * 65536) if tiles else 1)
    assert report.transposed.bytes == 2 * tiles * 32 * 8192
    assert report.read_back.bytes == tiles * 32 * 8192


def test_more_than_one_subarray_at_once() -> None:
    many = machine(subarrays=8)
    a, b = numbers(300_000), numbers(300_000)
    text = VECTOR_ADD.replace("constant 65536", "constant 524288")
    (got,), report = run_both(text, [a, b], machine=many)
    assert (got == a + b).all()
    assert report.bbops == 1
    assert report.utilisation == pytest.approx(300_000 / (5 * 65536))


COLUMN_SUM = """
func.func @main(%a: tensor<?xi32>, %rows: index, %lanes: index) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %start = simdram.fill %zero count %lanes : i32 -> !simdram.vec<32>
  %sum = scf.for %i = %c0 to %rows step %c1 iter_args(%acc = %start) -> (!simdram.vec<32>) {
    %at = arith.muli %i, %lanes : index
    %x = simdram.transpose %a[%at] stride %c1 count %lanes : tensor<?xi32> -> !simdram.vec<32>
    %s = simdram.bbop add(%acc, %x) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
    scf.yield %s : !simdram.vec<32>
  }
  %e = tensor.empty(%lanes) : tensor<?xi32>
  %r = simdram.read %sum into %e[%c0] stride %c1 : !simdram.vec<32>, tensor<?xi32>
  func.return %r : tensor<?xi32>
}
"""


@pytest.mark.parametrize("rows", [0, 1, 2, 40])
def test_loops_carry_objects(rows: int) -> None:
    a = numbers(rows * 100)
    (got,), report = run_both(COLUMN_SUM, [a, rows, 100])
    assert (got == a.reshape(rows, 100).sum(axis=0, dtype=np.int32)).all()
    one = library("cim-opt").counts("add", 32).total
    assert report.commands == 32 + rows * one
    assert report.bbops == 1 + rows
    # The sum, an addend, and the new sum; no iteration leaves anything behind.
    assert report.rows_peak == (96 if rows else 32)


def test_branches_carry_objects() -> None:
    text = function(
        f"""
        {C0}
        {C1}
        %n = tensor.dim %a, %c0 : tensor<?xi8>
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi8> -> !simdram.vec<8>
        %y = scf.if %yes -> (!simdram.vec<8>) {{
          %k = arith.constant 3 : i8
          %p = simdram.mul_scalar %x, %k : !simdram.vec<8>, i8 -> !simdram.vec<8>
          scf.yield %p : !simdram.vec<8>
        }} else {{
          scf.yield %x : !simdram.vec<8>
        }}
        %s = simdram.bbop add(%x, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
        %r = simdram.read %s into %a[%c0] stride %c1 : !simdram.vec<8>, tensor<?xi8>
        func.return %r : tensor<?xi8>
        """,
        "%a: tensor<?xi8>, %yes: i1",
        "tensor<?xi8>",
    )
    a = numbers(77, "int8")
    kept = a.copy()
    (got,), _ = run_both(text, [a, True])
    assert (got == a * np.int8(4)).all()
    (got,), _ = run_both(text, [a, False])
    assert (got == a * np.int8(2)).all()
    assert (a == kept).all()


def test_functions_pass_objects() -> None:
    text = """
    func.func @main(%a: tensor<?xi8>, %n: index) -> tensor<?xi8> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi8> -> !simdram.vec<8>
      %y = func.call @twice(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
      %e = tensor.empty(%n) : tensor<?xi8>
      %r = simdram.read %y into %e[%c0] stride %c1 : !simdram.vec<8>, tensor<?xi8>
      func.return %r : tensor<?xi8>
    }
    func.func private @twice(%x: !simdram.vec<8>) -> !simdram.vec<8> {
      %y = simdram.bbop add(%x, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
      func.return %y : !simdram.vec<8>
    }
    """
    a = numbers(130, "int8")
    (got,), _ = run_both(text, [a, 130])
    assert (got == a * np.int8(2)).all()


@pytest.mark.parametrize("scalar", [0, 1, -1, 7, 100, -128, 0x5A5A5A5A, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_multiplication_by_a_scalar(name: str, scalar: int) -> None:
    text = function(
        f"""
        {C0}
        {C1}
        %n = tensor.dim %a, %c0 : tensor<?xi32>
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi32> -> !simdram.vec<32>
        %p = simdram.mul_scalar %x, %k : !simdram.vec<32>, i32 -> !simdram.vec<32>
        %e = tensor.empty(%n) : tensor<?xi32>
        %r = simdram.read %p into %e[%c0] stride %c1 : !simdram.vec<32>, tensor<?xi32>
        func.return %r : tensor<?xi32>
        """,
        "%a: tensor<?xi32>, %k: i32",
        "tensor<?xi32>",
    )
    a = numbers(129)
    (got,), report = run_both(text, [a, scalar], library=name)
    assert (got == a * np.int32(scalar)).all()
    # What is issued depends on the number: its digits.
    counts = library(name).counts("mul_const", 32, value=scalar % 2**32)
    assert (report.aap, report.ap) == (counts.aap, counts.ap)


@pytest.mark.parametrize(("type", "width"), [("i1", 1), ("i8", 5), ("i64", 64), ("index", 64)])
def test_filling(type: str, width: int) -> None:
    text = function(
        f"""
        {C0}
        {C1}
        %v = simdram.fill %k count %n : {type} -> !simdram.vec<{width}>
        """
        + "\n".join(read_back("%v", width)),
        f"%k: {type}, %n: index",
        f"tensor<?xi{element(width)}>",
    )
    scalar = -3 if width > 1 else True
    (got,), report = run_both(text, [scalar, 70])
    assert got.tolist() == in_words([scalar % 2**width] * 70, width).tolist()
    assert report.aap >= width
    assert report.ap == 0


@pytest.mark.parametrize(
    ("start", "stride", "lanes"),
    [(0, 1, 10), (3, 4, 9), (2, 0, 5), (9, 3, 4), (30, 1, 3), (0, 7, 0)],
)
def test_transposition_strides_and_pads(start: int, stride: int, lanes: int) -> None:
    """Lanes past the end of the source get zeros, narrow objects the low bits."""
    text = function(
        f"""
        {C0}
        {C1}
        %x = simdram.transpose %a[%start] stride %stride count %n : tensor<?xi16> -> !simdram.vec<9>
        """
        + "\n".join(read_back("%x", 9)),
        "%a: tensor<?xi16>, %start: index, %stride: index, %n: index",
        "tensor<?xi16>",
    )
    a = numbers(20, "int16")
    (got,), _ = run_both(text, [a, start, stride, lanes])
    at = start + np.arange(lanes) * stride
    want = np.where(at < 20, a[np.minimum(at, 19)] & 511, 0)
    assert got.tolist() == want.tolist()


def test_reading_strides_and_keeps_the_rest() -> None:
    text = function(
        f"""
        {C0}
        {C1}
        %c3 = arith.constant 3 : index
        %n = arith.constant 4 : index
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<4xi8> -> !simdram.vec<8>
        %r = simdram.read %x into %dest[%c1] stride %c3 : !simdram.vec<8>, tensor<12xi8>
        func.return %r, %dest : tensor<12xi8>, tensor<12xi8>
        """,
        "%a: tensor<4xi8>, %dest: tensor<12xi8>",
        "tensor<12xi8>, tensor<12xi8>",
    )
    a, dest = numbers(4, "int8"), numbers(12, "int8")
    (got, kept), _ = run_both(text, [a, dest])
    want = dest.copy()
    want[1:11:3] = a
    assert (got == want).all()
    assert (kept == dest).all()


@pytest.mark.parametrize("width", [2, 5, 9, 31, 33, 63])
def test_the_host_sees_signed_numbers_of_any_width(width: int) -> None:
    """What is read back, what the host computes with it, and what is brought in again."""
    text = function(
        f"""
        {C0}
        {C1}
        %n = arith.constant 90 : index
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<90xi64> -> !simdram.vec<{width}>
        %e = tensor.empty() : tensor<90xi{width}>
        %r = simdram.read %x into %e[%c0] stride %c1 : !simdram.vec<{width}>, tensor<90xi{width}>
        %first = tensor.extract %r[%c0] : tensor<90xi{width}>
        %wide = arith.extsi %first : i{width} to i64
        %y = simdram.transpose %r[%c0] stride %c1 count %n :
          tensor<90xi{width}> -> !simdram.vec<{width}>
        %z = simdram.bbop sext(%y) : (!simdram.vec<{width}>) -> !simdram.vec<64>
        %f = tensor.empty() : tensor<90xi64>
        %s = simdram.read %z into %f[%c0] stride %c1 : !simdram.vec<64>, tensor<90xi64>
        func.return %r, %s, %wide : tensor<90xi{width}>, tensor<90xi64>, i64
        """,
        "%a: tensor<90xi64>",
        f"tensor<90xi{width}>, tensor<90xi64>, i64",
    )
    a = numbers(90, "int64")
    a[0] = -1
    (read, again, first), _ = run_both(text, [a])
    top = 1 << (width - 1)
    want = [((int(x) + top) % (2 * top)) - top for x in a]
    assert read.tolist() == again.tolist() == want
    assert first == -1


@pytest.mark.parametrize("scale", [1, 3])
def test_compaction(scale: int) -> None:
    text = function(
        f"""
        %r = simdram.compact %a by %m scale {scale} : tensor<?xi8>, tensor<?xi1> -> tensor<?xi8>
        func.return %r : tensor<?xi8>
        """,
        "%a: tensor<?xi8>, %m: tensor<?xi1>",
        "tensor<?xi8>",
    )
    # A filter of windows has more data than masks.
    a, mask = numbers(50 * scale + 2, "int8"), numbers(50, "bool")
    (got,), report = run_both(text, [a, mask])
    assert (got == a[:-2].reshape(50, scale)[mask].ravel()).all()
    assert report.host_seconds > 0


def test_source_is_not_written_through_an_object() -> None:
    """An object keeps its elements when the host later writes into the vector in place."""
    text = function(
        f"""
        {C0}
        {C1}
        %n = arith.constant 8 : index
        %k = arith.constant 9 : i8
        %v = tensor.splat %k : tensor<8xi8>
        %x = simdram.transpose %v[%c0] stride %c1 count %n : tensor<8xi8> -> !simdram.vec<8>
        %y = simdram.bbop not(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
        %w = simdram.read %y into %v[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
        %z = simdram.bbop add(%x, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
        %e = tensor.empty() : tensor<8xi8>
        %r = simdram.read %z into %e[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
        func.return %w, %r : tensor<8xi8>, tensor<8xi8>
        """,
        results="tensor<8xi8>, tensor<8xi8>",
    )
    (first, second), _ = run_both(text, [])
    assert first.tolist() == [~9] * 8
    assert second.tolist() == [-1] * 8


def test_the_program_of_the_documentation() -> None:
    page = (Path(__file__).parents[1] / "docs" / "simdram.md").read_text()
    text = mlir_blocks(page)[0]
    a, b = numbers(1000), numbers(1000)
    (got,), report = run_both(text, [a, b])
    assert (got == a + b).all()
    assert report.bbops == 1


# Everything is there.


@pytest.mark.parametrize("op_class", simdram.OPERATIONS)
def test_every_operation_is_executed_and_described(op_class: type[Operation]) -> None:
    handler = SimdramEvaluator.handlers[op_class.name]
    assert handler.__doc__
    assert op_class.__doc__


@pytest.mark.parametrize("opcode", Opcode)
@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_every_opcode_has_a_cost(name: str, opcode: Opcode) -> None:
    widths, out = operand_widths(opcode, 8, 9 if opcode in EXTENSIONS else 7)
    amount = 3 if opcode in CONSTANT_SHIFTS else None
    recipe = Programs(name).bbop(opcode, widths[-1], out, amount)
    assert recipe.counts.total >= out
    program = recipe.program()
    assert recipe.counts == program.counts
    assert [operand.width for operand in program.inputs] == widths
    assert [operand.width for operand in program.outputs] == [out]
    assert not any(x.complemented for x in (*program.inputs, *program.outputs))
    assert len(recipe.compiled().operations) >= out


def test_the_table_names_every_opcode() -> None:
    assert NAMES.keys() == set(Opcode)


def test_an_unknown_operation_has_no_cost() -> None:
    with pytest.raises(KeyError):
        Programs("cim-opt").bbop("median", 8, 8, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="no microprogram 'median'"):
        library("cim-opt").counts("median", 8)
