"""Multiplications of values that are extended from 8 or 16 bits, in instructions of a DPU."""

import pytest
from upmem_programs import module_of, small_machine

from cim_opt.dialects import upmem
from cim_opt.simulators.upmem_selection import select

FRAME = """
upmem.kernel @k tasklets 1 () {{
  %i = arith.constant 0 : index
  %a = upmem.wram : memref<8x{left}, #upmem<space wram>>
  %b = upmem.wram : memref<8x{right}, #upmem<space wram>>
  %c = upmem.wram : memref<8x{result}, #upmem<space wram>>
  %x = memref.load %a[%i] : memref<8x{left}, #upmem<space wram>>
  %y = memref.load %b[%i] : memref<8x{right}, #upmem<space wram>>
  {body}
  memref.store %p, %c[%i] : memref<8x{result}, #upmem<space wram>>
  upmem.return
}}
"""


def instructions(body: str, left: str, right: str, result: str) -> int | None:
    """Instructions between the loads and the store; None when they depend on the operands."""
    module = module_of(FRAME.format(body=body, left=left, right=right, result=result))
    kernel = next(op for op in module.ops if isinstance(op, upmem.KernelOp))
    selection = select(kernel, small_machine(1))
    if selection.operands:
        return None
    return selection.blocks[kernel.body.block] - 4  # two loads, a store and the return


def extended(left: str, right: str, signs: str, target: str) -> str:
    return f"""
      %u = arith.ext{signs[0]}i %x : {left} to {target}
      %v = arith.ext{signs[1]}i %y : {right} to {target}
      %p = arith.muli %u, %v : {target}"""


@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
@pytest.mark.parametrize("target", ["i16", "i32"])
def test_a_product_of_bytes_is_one_instruction(signs: str, target: str) -> None:
    assert instructions(extended("i8", "i8", signs, target), "i8", "i8", target) == 1


def test_products_of_two_bytes_take_the_products_of_their_bytes() -> None:
    assert instructions(extended("i8", "i16", "su", "i32"), "i8", "i16", "i32") == 3
    assert instructions(extended("i16", "i16", "ss", "i32"), "i16", "i16", "i32") == 8


def test_whole_words_depend_on_their_values() -> None:
    assert instructions("%p = arith.muli %x, %y : i32", "i32", "i32", "i32") is None


def test_one_narrow_factor_is_not_enough() -> None:
    body = "%u = arith.extsi %x : i8 to i32\n%p = arith.muli %u, %y : i32"
    assert instructions(body, "i8", "i32", "i32") is None


def test_cuts_that_products_read_are_free() -> None:
    cut = """
      %s = arith.trunci %x : i32 to i8
      %t = arith.trunci %y : i32 to i8
      %u = arith.extui %s : i8 to i16
      %v = arith.extsi %t : i8 to i16
      %m = arith.muli %u, %v : i16
      %p = arith.{} %m : i16 to i32"""
    # The register holds the product extended by its sign; by zeros takes one more.
    assert instructions(cut.format("extsi"), "i32", "i32", "i32") == 1
    assert instructions(cut.format("extui"), "i32", "i32", "i32") == 2


def test_what_others_read_too_is_made() -> None:
    body = """
      %s = arith.trunci %x : i32 to i8
      %u = arith.extsi %s : i8 to i32
      %m = arith.muli %u, %u : i32
      %p = arith.addi %m, %u : i32"""
    # The cut, its extension, the product and the sum.
    assert instructions(body, "i32", "i32", "i32") == 4


def test_constants_are_multiplied_by_in_shifts() -> None:
    body = """
      %u = arith.extsi %x : i8 to i32
      %five = arith.constant 5 : i32
      %p = arith.muli %u, %five : i32"""
    assert instructions(body, "i8", "i32", "i32") == 1
