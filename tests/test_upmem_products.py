"""Multiplications of values that are extended from 8 or 16 bits, in instructions of a DPU."""

from collections.abc import Sequence

import pytest
from upmem_programs import module_of, small_machine

from cim_opt.dialects import upmem
from cim_opt.simulators.upmem_rules import OperandCost
from cim_opt.simulators.upmem_selection import Selection, select

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


def selected(body: str, left: str, right: str, result: str) -> tuple[Selection, int]:
    """The selection, and its instructions between the loads and the store, without products whose
    instructions depend on the operands.
    """
    module = module_of(FRAME.format(body=body, left=left, right=right, result=result))
    kernel = next(op for op in module.ops if isinstance(op, upmem.KernelOp))
    selection = select(kernel, small_machine(1))
    return selection, selection.blocks[kernel.body.block] - 4  # two loads, a store and the return


def instructions(body: str, left: str, right: str, result: str) -> int | None:
    """Instructions between the loads and the store; None when they depend on the operands."""
    selection, count = selected(body, left, right, result)
    return None if selection.operands else count


def by_values(body: str, types: Sequence[str]) -> tuple[list[OperandCost], int]:
    """What depends on the operands, and the instructions besides."""
    selection, count = selected(body, *types)
    return list(selection.operands.values()), count


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
    for signs in ("ss", "su", "uu"):
        body = extended("i16", "i16", signs, "i32")
        assert by_values(body, ("i16", "i16", "i32")) == ([OperandCost("mul", 16)], 0)


def test_what_is_kept_of_16_bits_is_extended_again_unless_it_is_only_stored() -> None:
    stored = "%p = arith.muli %x, %y : i16"
    assert by_values(stored, ("i16",) * 3) == ([OperandCost("mul", 16)], 0)
    used = "%m = arith.muli %x, %y : i16\n%p = arith.addi %m, %x : i16"
    assert by_values(used, ("i16",) * 3) == ([OperandCost("mul", 16)], 2)


def test_the_text_of_a_kernel_has_all_of_a_product_of_16_bits() -> None:
    selection, _ = selected(extended("i16", "i16", "ss", "i32"), "i16", "i16", "i32")
    assert selection.code == 4 + 7
    selection, _ = selected("%p = arith.muli %x, %y : i32", "i32", "i32", "i32")
    assert selection.code == 4 + 4


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
