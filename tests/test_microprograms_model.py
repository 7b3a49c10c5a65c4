"""The subarray: its addresses, what commands do, and a trap for every illegal use."""

from itertools import combinations, product

import pytest

from cim_opt.microprograms.compiled import compile_program
from cim_opt.microprograms.library import LIBRARY_NAMES, OPERATIONS, library
from cim_opt.microprograms.model import (
    AAP,
    AP,
    B_GROUP,
    B_ROWS,
    C0,
    C1,
    DCC0,
    DCC0_T1_T2,
    DCC1,
    DCC1_T0_T3,
    MAJORITIES,
    NOT_DCC0,
    NOT_DCC0_T0,
    NOT_DCC1_T1,
    T0,
    T0_T1_T2,
    T1,
    T2,
    T2_T3,
    Bit,
    Command,
    Constant,
    Counts,
    Operand,
    RowProgram,
    Wordlines,
    bit,
    count,
)
from cim_opt.microprograms.subarray import (
    IllegalCommand,
    Subarray,
    check,
    execute,
    integers,
    operators,
)

A, B, OUT = bit("a", 0), bit("b", 0), bit("out", 0)


def subarray() -> Subarray[int]:
    """Four lanes: rows a and b, and room for one row of a result."""
    result = Subarray(integers(4), {"a": 1, "b": 1, "out": 1}, frozenset(("a", "b")))
    result.data |= {A: 0b0011, B: 0b0101}
    return result


def test_sixteen_addresses_over_six_rows() -> None:
    assert len(B_GROUP) == len(set(B_GROUP)) == 16
    assert {row for address in B_GROUP for row, _ in address.cells} == set(B_ROWS)
    assert sorted(len(address.cells) for address in B_GROUP) == [1] * 8 + [2] * 4 + [3] * 4
    assert all(address.is_majority for address in MAJORITIES)
    disjoint = [
        pair
        for pair in combinations(MAJORITIES, 2)
        if not {row for row, _ in pair[0].cells} & {row for row, _ in pair[1].cells}
    ]
    assert disjoint == [(DCC0_T1_T2, DCC1_T0_T3)]


def test_a_complementing_wordline_complements_both_ways() -> None:
    rows = subarray()
    rows.execute([AAP(NOT_DCC0, A), AAP(OUT, DCC0)])
    assert rows.data[OUT] == 0b1100
    rows.execute([AAP(OUT, NOT_DCC0)])
    assert rows.data[OUT] == 0b0011
    rows.execute([AAP(NOT_DCC1_T1, B)])
    assert (rows.rows["DCC1"], rows.rows["T1"]) == (0b1010, 0b0101)


@pytest.mark.parametrize("address", MAJORITIES)
def test_a_majority_fills_its_rows(address: Wordlines) -> None:
    for values in product((0, 0b0011, 0b0101, 0b1111), repeat=3):
        rows = subarray()
        rows.rows = {row: x for (row, _), x in zip(address.cells, values, strict=True)}
        x, y, z = values
        majority = (x & y) | (x & z) | (y & z)
        rows.execute([AAP(OUT, address)])
        assert rows.data[OUT] == majority
        assert set(rows.rows.values()) == {majority}


def test_ap_leaves_other_rows_alone() -> None:
    rows = subarray()
    rows.execute([AAP(T0, A), AAP(T1, B), AAP(T2_T3, C1), AP(T0_T1_T2)])
    assert rows.rows == {"T0": 0b0111, "T1": 0b0111, "T2": 0b0111, "T3": 0b1111}


def test_a_destination_of_a_majority_may_be_among_its_rows() -> None:
    rows = subarray()
    rows.execute([AAP(T0, A), AAP(T1, B), AAP(T2, C0), AAP(NOT_DCC0_T0, T0_T1_T2)])
    assert rows.rows == {"T0": 0b0001, "T1": 0b0001, "T2": 0b0001, "DCC0": 0b1110}


THROUGH_COMPLEMENT = Wordlines((("DCC0", True), ("T1", False), ("T2", False)))
FOUR_ROWS = Wordlines(tuple((row, False) for row in ("T0", "T1", "T2", "T3")))
NO_PAIR = Wordlines((("T0", False), ("T1", False)))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (AAP(OUT, T2_T3), "AAP out[0] <- {T2,T3}): {T2,T3}: two rows cannot be sensed at once"),
        (AAP(C0, A), "AAP C0 <- a[0]): C0: a constant row cannot be written"),
        (AAP(C1, T0), "C1: a constant row cannot be written"),
        (AP(THROUGH_COMPLEMENT), "{~DCC0,T1,T2}: a majority cannot go through a complementing"),
        (AAP(OUT, THROUGH_COMPLEMENT), "a majority cannot go through a complementing wordline"),
        (AAP(THROUGH_COMPLEMENT, A), "a majority cannot go through a complementing wordline"),
        (AP(T0), "T0: only an address of three B rows has a majority"),
        (AP(A), "a[0]: only an address of three B rows has a majority"),
        (AP(DCC1_T0_T3), "{DCC1,T0,T3}: row DCC1 was never written"),
        (AAP(OUT, DCC1), "DCC1: row DCC1 was never written"),
        (AAP(T0, OUT), "out[0]: the row was never written"),
        (AAP(NO_PAIR, A), "{T0,T1}: not one of the sixteen addresses of the B-group"),
        (AAP(OUT, FOUR_ROWS), "{T0,T1,T2,T3}: not one of the sixteen addresses"),
        (AAP(T0, Constant(2)), "C2: there are two constant rows, C0 and C1"),
        (AAP(T0, Bit("c", 0)), "c[0]: the program has no operand 'c'"),
        (AAP(T0, Bit("a", 1)), "a[1]: the operand has 1 rows"),
        (AAP(Bit("out", -1), A), "out[-1]: the operand has 1 rows"),
        (AAP(A, B), "a[0]: the program writes a row of its input"),
    ],
)
def test_traps(command: Command, message: str) -> None:
    before: list[Command] = [AAP(T0, A), AAP(T1, A), AAP(T2_T3, A), AAP(DCC0, A)]
    with pytest.raises(IllegalCommand) as error:
        subarray().execute([*before, command, AAP(OUT, T0)])
    assert str(error.value).startswith(f"command 4 ({command}): ")
    assert message in str(error.value)
    assert (error.value.number, error.value.command) == (4, command)
    # A program that is compiled stops at the same command; inputs may be in any rows there.
    if command != AAP(A, B):
        whole = program(*before, command, AAP(OUT, T0), more=(Operand("b", 1),))
        with pytest.raises(IllegalCommand) as compiled:
            compile_program(whole, (0, 1, 2))
        assert str(compiled.value) == str(error.value)


def program(*commands: Command, more: tuple[Operand, ...] = ()) -> RowProgram:
    inputs = (Operand("a", 1), *more)
    return RowProgram("test", "test", 1, inputs, (Operand("out", 1),), (), tuple(commands))


def test_a_program_gets_its_inputs_and_writes_its_outputs() -> None:
    with pytest.raises(ValueError, match="the program never writes out"):
        check(program(AAP(T0, A)))
    with pytest.raises(ValueError, match="test has inputs"):
        execute(program(AAP(OUT, A)), {"b": [1]}, integers(1))
    with pytest.raises(ValueError, match="test has inputs"):
        execute(program(AAP(OUT, A)), {"a": [1, 1]}, integers(1))
    assert execute(program(AAP(OUT, A)), {"a": [5]}, integers(3)) == {"out": (5,)}


def test_other_values_compute_the_same() -> None:
    add = library("cim-opt").program("add", 4)
    a, b = [3, 5, 6, 0], [1, 1, 7, 2]
    eight_lanes = execute(add, {"a": a, "b": b}, integers(8))
    python = execute(add, {"a": a, "b": b}, operators(0, -1))
    assert eight_lanes == {"out": tuple(x & 0xFF for x in python["out"])}


def test_counts() -> None:
    commands = [AAP(T0, A), AAP(T2_T3, C0), AAP(T1, DCC0), AP(T0_T1_T2), AAP(OUT, T0_T1_T2)]
    counts = count(commands)
    assert counts == Counts(aap=4, ap=1, within_b=1, rows_raised=2 + 3 + 2 + 3 + 4)
    assert counts.total == 5
    assert counts + counts == counts.times(2) == Counts(8, 2, 2, 28)


def test_rows_that_may_be_shared() -> None:
    assert program(AAP(OUT, A)).aliases == {("a", "out")}
    assert program(AAP(OUT, C0), AAP(T0, A)).aliases == frozenset()
    own = library("cim-opt")
    assert own.program("add", 8).aliases == {("a", "out"), ("b", "out")}
    assert own.program("mul", 8).aliases == frozenset()
    assert own.program("mac", 8).aliases == frozenset()
    # A left shift reads below what it writes, from the top.
    assert ("a", "out") in own.program("shl", 8).aliases
    assert ("b", "out") not in own.program("shl", 8).aliases


def test_scratch_rows() -> None:
    own = library("cim-opt")
    assert own.program("add", 8).scratch_rows == 0
    assert own.program("max_u", 8).scratch_rows == 1
    assert own.program("bitcount", 8).scratch_rows == 4
    # 8 bits of a product and a row for a product's own use.
    assert own.program("mac", 20, a_width=4, b_width=4).scratch_rows in (9, 10)


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_program_is_legal_at_every_width(name: str, operation: str) -> None:
    given: dict[str, int] = {}
    if operation in ("fill", "mul_const", "mac_const"):
        given["value"] = 0xB5A7
    if operation in ("shl_const", "shr_const"):
        given["amount"] = 3
    long = operation.startswith(("mul", "mac", "msub", "div", "rem"))
    for width in (1, 2, 3, 9, 33, 64) if long else range(1, 65):
        check(library(name).program(operation, width, **given))
