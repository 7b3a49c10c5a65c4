"""What the simulator of SIMDRAM refuses: one line each, the same at both levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simdram_programs import C1, VECTOR_ADD, function, module_of, numbers, run, run_both

from cim_opt.errors import UserError
from cim_opt.microprograms.library import library
from cim_opt.microprograms.model import AAP, RowProgram, bit
from cim_opt.microprograms.model import C0 as C_ZERO
from cim_opt.simulators import simdram_programs
from cim_opt.simulators.simdram import SimdramSimulator

TRANSPOSE = (
    "%x = simdram.transpose %a[%start] stride %stride count %n : tensor<8xi8> -> !simdram.vec<8>"
)
ADD = "(!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>"


def refused(text: str, *args: Any, **options: Any) -> str:
    """The one line with which both levels refuse a program."""
    lines = set[str]()
    for level in ("bbop", "rows"):
        with pytest.raises(UserError) as error:
            run(text, args, level=level, **options)
        lines.add(str(error.value))
    (line,) = lines
    assert "\n" not in line
    return line


def with_transpose(*lines: str) -> str:
    return function(
        "\n".join([TRANSPOSE, *lines, "func.return"]),
        "%a: tensor<8xi8>, %start: index, %stride: index, %n: index",
    )


E8 = np.zeros(8, np.int8)


def test_operands_of_different_lanes() -> None:
    text = with_transpose(
        C1,
        "%y = simdram.transpose %a[%start] stride %stride count %c1 : "
        "tensor<8xi8> -> !simdram.vec<8>",
        f"%z = simdram.bbop add(%x, %y) : {ADD}",
    )
    assert refused(text, E8, 0, 1, 5) == (
        "test.mlir:5:1: error: 'simdram.bbop' of objects of 5 and 1 lanes; "
        "all operands have the same lanes; bring them in with the same count"
    )
    run_both(text, [E8, 0, 1, 1])


@pytest.mark.parametrize("lanes", [-1, 65537, 10**12])
def test_more_lanes_than_the_machine_has(lanes: int) -> None:
    assert refused(with_transpose(), E8, 0, 1, lanes) == (
        f"test.mlir:2:1: error: 'simdram.transpose' of {lanes} lanes; simdram-1 computes with 0 to "
        "65536: 65536 columns of 1 subarrays; split the work into tiles, or use a machine with "
        "more subarrays"
    )
    filled = function(
        "%x = simdram.fill %k count %n : i8 -> !simdram.vec<8>\nfunc.return", "%k: i8, %n: index"
    )
    assert f"'simdram.fill' of {lanes} lanes" in refused(filled, 1, lanes)


@pytest.mark.parametrize(("start", "stride", "name"), [(-1, 1, "start"), (0, -2, "stride")])
def test_negative_positions_of_a_transposition(start: int, stride: int, name: str) -> None:
    value = min(start, stride)
    assert refused(with_transpose(), E8, start, stride, 3) == (
        f"test.mlir:2:1: error: {name} of 'simdram.transpose' is {value}; it is 0 or more"
    )


READ = "%r = simdram.read %x into %a[%p] stride %s : !simdram.vec<8>, tensor<8xi8>"


def reading(position: int, step: int) -> str:
    return with_transpose(
        f"%p = arith.constant {position} : index", f"%s = arith.constant {step} : index", READ
    )


def test_reads_stay_in_the_vector() -> None:
    for position, step, lanes in ((0, 1, 9), (1, 1, 8), (0, 2, 5), (8, 1, 1)):
        assert refused(reading(position, step), E8, 0, 1, lanes) == (
            f"test.mlir:5:1: error: 'simdram.read' of {lanes} lanes from {position} with stride "
            f"{step} is out of range; the vector has 8 elements; read into a longer vector"
        )
    for position, step, lanes in ((0, 1, 8), (1, 6, 2), (0, 0, 1), (8, 1, 0), (90, 1, 0)):
        run_both(reading(position, step), [E8, 0, 1, lanes])


def test_reads_take_one_lane_an_element() -> None:
    assert refused(reading(0, 0), E8, 0, 1, 2) == (
        "test.mlir:5:1: error: stride of 'simdram.read' is 0; it is at least 1"
    )
    assert refused(reading(-2, 1), E8, 0, 1, 2) == (
        "test.mlir:5:1: error: position of 'simdram.read' is -2; it is 0 or more"
    )


def test_compaction_needs_data_for_its_mask() -> None:
    text = function(
        "%r = simdram.compact %a by %m scale 3 : tensor<?xi8>, tensor<?xi1> -> tensor<?xi8>\n"
        "func.return",
        "%a: tensor<?xi8>, %m: tensor<?xi1>",
    )
    assert refused(text, E8, np.ones(3, np.bool_)) == (
        "test.mlir:2:1: error: 'simdram.compact' by 3 bits of 3 elements each; "
        "the data has 8 elements; use a mask of its length"
    )


def test_an_illegal_microprogram_is_trapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row level executes what the library gives, and stops where no subarray could go on."""
    right = library("cim-opt").program("copy", 8)
    wrong = replace(right, commands=(AAP(C_ZERO, bit("a", 0)), *right.commands))

    def wrong_program(*_: Any) -> RowProgram:
        return wrong

    monkeypatch.setattr(simdram_programs, "bbop_program", wrong_program)
    text = with_transpose("%y = simdram.bbop copy(%x) : (!simdram.vec<8>) -> !simdram.vec<8>")
    with pytest.raises(UserError) as error:
        run(text, [E8, 0, 1, 8], level="rows")
    assert str(error.value) == (
        "test.mlir:3:1: error: the microprogram of 'simdram.bbop' is illegal: command 0 "
        "(AAP C0 <- a[0]): C0: a constant row cannot be written; use another library"
    )


def test_unknown_names() -> None:
    with pytest.raises(UserError, match="unknown level 'gates'; use one of bbop, rows"):
        SimdramSimulator(level="gates")
    with pytest.raises(UserError, match="unknown library of microprograms 'own'"):
        SimdramSimulator(library="own")


def test_a_module_says_its_machine() -> None:
    module = module_of(VECTOR_ADD)
    with pytest.raises(UserError, match=r"attribute simdram\.machine is None; it is a name or"):
        SimdramSimulator().run(module, "main", [numbers(3), numbers(3)])
    named = f'module attributes {{simdram.machine = "simdram-1"}} {{\n{VECTOR_ADD}\n}}'
    _, report = SimdramSimulator().run(module_of(named), "main", [numbers(3), numbers(3)])
    assert report.machine == "simdram-1"


def test_a_module_says_its_library() -> None:
    text = f'module attributes {{simdram.library = "simdram"}} {{\n{VECTOR_ADD}\n}}'
    _, report = run(text, [numbers(3), numbers(3)])
    assert report.library == "simdram"
    with pytest.raises(UserError) as error:
        run(text, [numbers(3), numbers(3)], library="cim-opt")
    assert str(error.value) == (
        "error: library cim-opt for a program whose rows were allocated for simdram; row programs "
        "of another library need other rows; leave the library out, or lower the program for it"
    )
    _, report = run(VECTOR_ADD, [numbers(3), numbers(3)])
    assert report.library == "cim-opt"


@pytest.mark.parametrize("library", ['"own"', "7"])
def test_a_module_says_a_library_that_there_is(library: str) -> None:
    text = f"module attributes {{simdram.library = {library}}} {{\n{VECTOR_ADD}\n}}"
    with pytest.raises(UserError) as error:
        run(text, [numbers(3), numbers(3)])
    wanted = {
        '"own"': "unknown library of microprograms 'own'; choose one of simdram, cim-opt",
        "7": "the module's attribute simdram.library is 7 : i64; it is a name in quotes; "
        "lower the program with pattern-to-simdram",
    }
    assert str(error.value) == f"error: {wanted[library]}"


def test_operations_of_other_machines_are_refused() -> None:
    text = "func.func @main(%n: index) {\n%s = upmem.alloc %n : !upmem.dpus\nfunc.return\n}"
    assert "'upmem.alloc' cannot be run on the host" in refused(text, 1)
