"""D rows of objects: first fit, rows that the program names, and what overlaps."""

from __future__ import annotations

import numpy as np
import pytest
from simdram_programs import function, machine, module_of, run, run_both

from cim_opt.errors import UserError

A = np.arange(-5, 6, dtype=np.int8)
HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 11 : index
"""
V8 = "!simdram.vec<8>"
PAIR = f"({V8}, {V8}) -> {V8}"


def program(*lines: str) -> str:
    """Lines after %x, the argument's object in rows 0 to 7; %z is returned."""
    body = [
        HEAD,
        f"%x = simdram.transpose %a[%c0] stride %c1 count %n row 0 : tensor<11xi8> -> {V8}",
        *lines,
        f"%r = simdram.read %z into %a[%c0] stride %c1 : {V8}, tensor<11xi8>",
        "func.return %r : tensor<11xi8>",
    ]
    return function("\n".join(body), "%a: tensor<11xi8>", "tensor<11xi8>")


def refused(text: str) -> str:
    """The one line with which both levels refuse."""
    lines = set[str]()
    for level in ("bbop", "rows"):
        with pytest.raises(UserError) as error:
            run(text, [A], level=level)
        lines.add(str(error.value))
    (line,) = lines
    assert "\n" not in line
    return line


def test_named_rows() -> None:
    text = program(
        f"%y = simdram.bbop add(%x, %x) row 8 : {PAIR}",
        f"%z = simdram.bbop mul(%x, %y) row 16 scratch 100 : {PAIR}",
    )
    (got,), report = run_both(text, [A])
    assert (got == A * (A + A)).all()
    assert report.rows_peak in (24, 101)


def test_a_result_may_lie_where_a_dead_operand_does() -> None:
    text = program(f"%z = simdram.bbop add(%x, %x) row 0 : {PAIR}")
    (got,), report = run_both(text, [A])
    assert (got == A + A).all()
    assert report.rows_peak == 8


def test_a_result_may_not_lie_where_its_program_still_reads() -> None:
    """Multiplication reads its operands to the end."""
    text = program(f"%z = simdram.bbop mul(%x, %x) row 0 scratch 100 : {PAIR}")
    assert refused(text).endswith(
        "error: 'simdram.bbop' writes D rows 0 to 7; rows 0 to 7 hold an object that is still "
        "needed; give the result rows of its own"
    )


def test_a_product_with_a_scalar_has_rows_of_its_own() -> None:
    """By some numbers it could lie where its operand does, but which number is known too late."""
    scalar = "%k = arith.constant 1 : i8"
    text = program(scalar, f"%z = simdram.mul_scalar %x, %k row 0 : {V8}, i8 -> {V8}")
    assert "'simdram.mul_scalar' writes D rows 0 to 7; rows 0 to 7 hold an object" in refused(text)
    text = program(scalar, f"%z = simdram.mul_scalar %x, %k row 8 : {V8}, i8 -> {V8}")
    (got,), _ = run_both(text, [A])
    assert (got == A).all()


def test_a_result_may_not_lie_across_a_dead_operand() -> None:
    text = program(f"%z = simdram.bbop add(%x, %x) row 1 : {PAIR}")
    assert "writes D rows 1 to 8; rows 0 to 7 hold an object" in refused(text)


def test_a_result_may_not_lie_on_what_is_used_later() -> None:
    text = program(
        f"%y = simdram.bbop not(%x) row 4 : ({V8}) -> {V8}",
        f"%z = simdram.bbop add(%x, %y) row 16 : {PAIR}",
    )
    assert refused(text).startswith("test.mlir:")
    assert "writes D rows 4 to 11; rows 0 to 7 hold an object" in refused(text)


def test_scratch_rows_may_not_lie_on_operands_or_the_result() -> None:
    for scratch in (0, 7, 8, 15):
        text = program(f"%z = simdram.bbop mins(%x, %x) row 8 scratch {scratch} : {PAIR}")
        start = scratch // 8 * 8
        assert (
            f"writes D rows {scratch} to {scratch}; rows {start} to {start + 7} hold an object"
            in refused(text)
        )


def test_scratch_rows_are_named_where_rows_are() -> None:
    text = program(f"%z = simdram.bbop mins(%x, %x) row 8 : {PAIR}")
    assert refused(text).endswith(
        "'simdram.bbop' names the rows of its result and no scratch rows; its microprogram needs "
        "1; allocate rows with simdram-allocate-rows for this library"
    )


@pytest.mark.parametrize("row", [-1, 999, 1006, 5000])
def test_rows_that_the_machine_has_not(row: int) -> None:
    text = program(f"%z = simdram.bbop not(%x) row {row} : ({V8}) -> {V8}")
    assert (
        f"'simdram.bbop' in D rows {row} to {row + 7}; simdram-1 has D rows 0 to 1005; "
        "allocate rows for this machine" in refused(text)
    )


def test_the_last_rows() -> None:
    text = program(f"%z = simdram.bbop not(%x) row 998 : ({V8}) -> {V8}")
    (got,), report = run_both(text, [A])
    assert (got == ~A).all()
    assert report.rows_peak == 1006


def carried(body: str, row: int) -> str:
    """A loop of three iterations that carries an object from `%x`; `%s` is the next one."""
    return program(
        "%c3 = arith.constant 3 : index",
        f"%z = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %x) -> ({V8}) {{",
        body.format(row=row),
        f"scf.yield %s : {V8}",
        "}",
    )


def test_a_loop_may_keep_its_object_in_place() -> None:
    text = carried(f"%s = simdram.bbop add(%acc, %acc) row {{row}} : {PAIR}", 0)
    (got,), report = run_both(text, [A])
    assert (got == A * 8).all()
    assert report.rows_peak == 8


def test_a_loop_may_copy_its_object_back() -> None:
    body = (
        f"%t = simdram.bbop mul(%acc, %acc) row 8 scratch 100 : {PAIR}\n"
        f"%s = simdram.bbop copy(%t) row {{row}} : ({V8}) -> {V8}"
    )
    (got,), _ = run_both(carried(body, 0), [A])
    assert (got == A.astype(np.int64) ** 8 % 256).sum() or got.dtype == np.int8
    assert (got == (A.astype(np.int64) ** 8).astype(np.int8)).all()


def test_what_a_loop_uses_from_outside_keeps_its_rows() -> None:
    text = program(
        "%c3 = arith.constant 3 : index",
        f"%y = simdram.bbop not(%x) row 8 : ({V8}) -> {V8}",
        f"%z = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %x) -> ({V8}) {{",
        f"%u = simdram.bbop xor(%acc, %y) row 16 : {PAIR}",
        f"%s = simdram.bbop not(%u) row 8 : ({V8}) -> {V8}",
        f"scf.yield %s : {V8}",
        "}",
    )
    assert "writes D rows 8 to 15; rows 8 to 15 hold an object that is still needed" in refused(
        text
    )


def test_first_fit_uses_rows_again() -> None:
    lines = [f"%y0 = simdram.bbop not(%x) : ({V8}) -> {V8}"]
    lines += [f"%y{k + 1} = simdram.bbop not(%y{k}) : ({V8}) -> {V8}" for k in range(400)]
    lines += [f"%z = simdram.bbop copy(%y400) : ({V8}) -> {V8}"]
    (got,), report = run_both(program(*lines).replace(" row 0", ""), [A])
    assert (got == ~A).all()
    assert report.rows_peak == 16


def test_first_fit_runs_out_of_rows() -> None:
    lines = [f"%y{k} = simdram.bbop not(%x) : ({V8}) -> {V8}" for k in range(126)]
    lines += [f"%s0 = simdram.bbop add(%x, %y0) : {PAIR}"]
    lines += [f"%s{k} = simdram.bbop add(%s{k - 1}, %y{k}) : {PAIR}" for k in range(1, 126)]
    lines += [f"%z = simdram.bbop copy(%s125) : ({V8}) -> {V8}"]
    assert refused(program(*lines)).endswith(
        "'simdram.bbop' needs 8 rows for its result; 1000 of the 1006 D rows of simdram-1 hold "
        "objects that are still needed; read some back first, or use narrower ones"
    )


def test_scratch_rows_run_out() -> None:
    text = program(f"%z = simdram.bbop mins(%x, %x) : {PAIR}").replace(" row 0", "")
    small = machine(data_rows=16)
    with pytest.raises(UserError, match="needs 1 rows for its scratch rows; 16 of the 16 D rows"):
        run(text, [A], machine=small)


def test_allocation_is_the_same_text_at_both_levels() -> None:
    module = module_of(program(f"%z = simdram.bbop mul(%x, %x) : {PAIR}"))
    before = str(module)
    run_both(module, [A])
    assert str(module) == before
