"""What the simulator of macros refuses: one line each, with the place and the limit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cim_programs import launched, machine, module_of, numbers, program, run
from refusals import refusals_in

from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.simulators import cim as simulator
from cim_opt.simulators.cim import CimSimulator, count

PLAIN = """
cim.load_weights %w macros 1 rows 4
cim.copy global[%x] to input_register[%c0] bytes 4
cim.mvm %c0 step 4 macros 1 rows 4 bits 8
cim.copy output_register[%c0] to output[%c0] bytes 32
cim.copy output[%c0] to global[%y] bytes 32
"""
TYPES = "tensor<4xi8>", "tensor<32xi8>", "tensor<8xi32>"


def message_of(error: UserError, text: str) -> str:
    """The message of a one-line error, whose place is that of an operation it speaks of."""
    assert "\n" not in str(error)
    assert error.location is not None
    file, line, _ = error.location
    where = text.splitlines()[line - 1]
    assert file == "test.mlir"
    assert any(name in error.message() for name in re.findall(r"[a-z]+\.[a-z_]+", where)) or (
        "scf.for" in where and "loop" in error.message()
    )
    return error.message()


def refused(text: str, *args: Any, on: CimMachine | None = None) -> str:
    """The message with which a run is refused."""
    with pytest.raises(UserError) as error:
        run(text, args, on)
    return message_of(error.value, text)


def not_counted(text: str) -> str:
    """The message with which a count is refused."""
    with pytest.raises(UserError) as error:
        count(module_of(text), "main", machine())
    return message_of(error.value, text)


def with_lines(*lines: str, before: str = "") -> str:
    """The plain program with other lines at its end, or before a line of it."""
    more = "\n".join(lines)
    body = PLAIN.replace(before, more + "\n" + before, 1) if before else PLAIN + more
    return launched(body, *TYPES)


def refused_lines(*lines: str, before: str = "") -> str:
    return refused(with_lines(*lines, before=before), numbers(4), numbers(32))


def test_the_plain_program_runs() -> None:
    x, w = numbers(4), numbers(32)
    (got,), _ = run(launched(PLAIN, *TYPES), [x, w])
    assert got.tolist() == (x.astype(np.int64) @ w.reshape(4, 8).astype(np.int64)).tolist()


@pytest.mark.parametrize(
    ("memory", "name", "size"),
    [
        ("input", "input memory", 262144),
        ("output", "output memory", 262144),
        ("input_register", "input register", 1024),
        ("global", "global memory", 33554432),
    ],
)
def test_addresses_lie_in_their_memory(memory: str, name: str, size: int) -> None:
    for address in (size - 2, -1):
        line = refused_lines(
            f"%far = arith.constant {address} : index",
            f"cim.copy global[%x] to {memory}[%far] bytes 3",
        )
        assert line == (
            f"'cim.copy' uses bytes {address} to {address + 2} of the "
            f"{name}; it has {size:,} bytes, from 0; compute other addresses, or use a machine "
            "with more memory"
        )
    fits = with_lines(
        f"%far = arith.constant {size - 3} : index",
        f"cim.copy global[%x] to {memory}[%far] bytes 3",
        f"cim.copy {memory}[%far] to input[%c0] bytes 3",
    )
    run(fits, [numbers(4), numbers(32)])


def test_what_is_read_lies_in_its_memory() -> None:
    line = refused_lines("cim.copy output_register[%c0] plus 2040 to output[%c0] bytes 2100")
    assert "uses bytes 2040 to 4139 of the output register; it has 4,096 bytes" in line
    line = refused_lines("cim.copy input[%x] to input_register[%c0] bytes 262145")
    assert "of the input memory; it has 262,144" in line


def test_a_negative_address_may_become_good_by_its_constant() -> None:
    run(
        with_lines(
            "%m = arith.constant -4 : index", "cim.copy global[%x] to input[%m] plus 4 bytes 4"
        ),
        [numbers(4), numbers(32)],
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("cim.vector_add %far, %c0, %c0 elements 2",),
        ("cim.vector_add %c0, %far, %c0 elements 2",),
        ("cim.vector_add %c0, %c0, %far elements 2",),
        ("cim.vector_clear %far elements 2",),
    ],
)
def test_vectors_lie_in_output_memory(lines: tuple[str, ...]) -> None:
    far = "%far = arith.constant {} : index"
    for address in (262140, -4):
        line = refused_lines(far.format(address), *lines)
        assert f"uses bytes {address} to {address + 7} of the output memory; it has" in line
    line = refused_lines(far.format(6), *lines)
    assert "uses 32-bit elements at byte 6 of the output memory" in line


def test_sums_are_words() -> None:
    line = refused_lines("cim.copy output_register[%c1] to output[%c0] bytes 4")
    assert line == (
        "'cim.copy' uses 32-bit elements at byte 1 of the output register; "
        "such an address is a multiple of 4; align the data"
    )
    line = refused_lines("cim.copy output[%c0] to output_register[%c0] plus 2 bytes 4")
    assert "uses 32-bit elements at byte 2 of the output register" in line


def test_inputs_of_all_macros_lie_in_the_register() -> None:
    body = PLAIN.replace("step 4 macros 1", "step 1021 macros 2").replace(
        "weights %w macros 1", "weights %w macros 2"
    )
    line = refused(launched(body, "tensor<4xi8>", "tensor<64xi8>", TYPES[2]), *x_w(64))
    assert "'cim.mvm' uses bytes 0 to 1024 of the input register; it has 1,024 bytes" in line


def x_w(weights: int = 32) -> tuple[Any, Any]:
    return numbers(4), numbers(weights)


@pytest.mark.parametrize(
    ("line", "what", "have"),
    [
        ("cim.load_weights %w macros 9 rows 4", "'cim.load_weights' on 9 macros", "8"),
        ("cim.load_weights %w macros 1 rows 33", "'cim.load_weights' on 33 rows", "32"),
        ("cim.mvm %c0 step 0 macros 9 rows 4 bits 8", "'cim.mvm' on 9 macros", "8"),
        ("cim.mvm %c0 step 0 macros 1 rows 33 bits 8", "'cim.mvm' on 33 rows", "32"),
    ],
)
def test_macros_and_rows_are_there(line: str, what: str, have: str) -> None:
    unit = what.rsplit(" ", 1)[1]
    message = f"{what}; cim-32x64-8 has {have}; use fewer, or a machine with more {unit}"
    assert refused_lines(line) == message
    assert not_counted(with_lines(line)) == message


def test_weights_come_first() -> None:
    text = launched(PLAIN.replace("cim.load_weights %w macros 1 rows 4\n", ""), *TYPES)
    assert refused(text, *x_w()) == (
        "'cim.mvm' on 4 rows of macro 0; 0 rows of it have weights; load the weights before it"
    )
    more = with_lines("cim.mvm %c0 step 0 macros 1 rows 5 bits 8")
    assert "'cim.mvm' on 5 rows of macro 0; 4 rows of it have weights" in refused(more, *x_w())
    more = with_lines("cim.mvm %c0 step 0 macros 3 rows 2 bits 8")
    assert "'cim.mvm' on 2 rows of macro 1; 0 rows of it have weights" in refused(more, *x_w())


def test_weights_are_bytes_of_an_operand() -> None:
    line = refused_lines("cim.load_weights %w macros 1 rows 5")
    assert line == (
        "'cim.load_weights' reads byte 96 of the global memory, which was "
        "never written; weights are bytes of an operand of the launch; load them from where an "
        "operand lies"
    )


def test_rows_with_weights_need_inputs() -> None:
    text = launched(
        PLAIN.replace("input_register[%c0] bytes 4", "input_register[%c0] bytes 3"), *TYPES
    )
    x, w = numbers(4), np.ones(32, np.int8)
    assert refused(text, x, w) == (
        "'cim.mvm' multiplies byte 3 of the input register, which was never "
        "written; row 3 of macro 0 has a weight that is not 0; load the input before it, or make "
        "the weights of the row 0"
    )
    w[24:] = 0
    run(text, [x, w])
    w[31] = 1
    assert "row 3 of macro 0" in refused(text, x, w)


def test_inputs_of_two_bytes_are_known_as_a_whole() -> None:
    body = PLAIN.replace("input_register[%c0] bytes 4", "input_register[%c0] bytes 7")
    body = body.replace("bits 8", "bits 16").replace("[%c0] bytes 32", "[%c0] bytes 16")
    body = body.replace("[%y] bytes 32", "[%y] bytes 16")
    text = launched(body, "tensor<4xi16>", "tensor<16xi16>", "tensor<4xi32>")
    assert "multiplies byte 6 of the input register" in refused(
        text, numbers(4, "int16"), np.ones(16, np.int16)
    )


def test_results_are_written() -> None:
    text = launched(PLAIN.replace("[%y] bytes 32", "[%y] bytes 28"), *TYPES)
    assert refused(text, *x_w()) == (
        "element 7 of the result of 'cim.launch' @k holds nothing that was "
        "computed; only cim.unpack takes such a result, and leaves out what its map leaves out; "
        "write every element, or unpack the result"
    )


UNPACK = """
{program}
func.func @main(%a: tensor<4xi8>, %b: tensor<32xi8>, %z: tensor<{n}xi32>) -> tensor<{n}xi32> {{
%p = cim.launch @k(%a, %b) : (tensor<4xi8>, tensor<32xi8>) -> tensor<8xi32>
%r = cim.unpack %p into %z shape [8] map affine_map<(s) -> ({row}, {map})> bounds [8]
index affine_map<(n) -> (n)> tables [dense<0> : tensor<2x1xi32>]
: tensor<8xi32>, tensor<{n}xi32> -> tensor<{n}xi32>
return %r : tensor<{n}xi32>
}}
"""


def unpacking(map: str = "s", row: str = "0", n: int = 8, body: str = PLAIN) -> str:
    text = UNPACK.format(program=program(body), map=map, row=row, n=n)
    return refused(text, *x_w(), np.zeros(n, np.int32))


def test_layouts_fit_their_tensors() -> None:
    assert unpacking("s floordiv 2") == (
        "'cim.unpack': element [0] of the tensor has 2 packed elements; "
        "each has exactly one; change the map"
    )
    assert "'cim.unpack': row 2 of table 0; the table has 2 rows; change the map" in unpacking(
        row="s mod 3"
    )
    assert "element [8] of the tensor has 0 packed elements" in unpacking(n=9)
    short = PLAIN.replace("[%y] bytes 32", "[%y] bytes 28")
    assert (
        "'cim.unpack': packed element 7 holds nothing that was computed; every element of the "
        "tensor comes from bytes that were written"
    ) in unpacking(body=short)


@pytest.mark.parametrize("operation", ["floordiv", "ceildiv", "mod"])
def test_maps_divide_by_positive_numbers(operation: str) -> None:
    assert (
        "the map of 'cim.unpack' divides by 0; divisors are at least 1; write a positive constant"
    ) in unpacking(f"s {operation} 0")


def test_tensors_fit_in_global_memory() -> None:
    types = "tensor<33554368xi8>", "tensor<1xi8>", "tensor<1xi32>"
    message = (
        "the tensors of 'cim.launch' @k take 33,554,436 bytes; the global "
        "memory of cim-32x64-8 has 33,554,432; split the work into several launches, or use a "
        "machine with more memory"
    )
    assert not_counted(launched("", *types)) == message
    assert refused(launched("", *types), np.zeros(33554368, np.int8), numbers(1)) == message


def test_only_some_operations_stand_in_a_program() -> None:
    line = refused_lines("%q = arith.divsi %x, %c32 : index")
    assert line == (
        "'arith.divsi' in a cim.program; it holds instructions of cim, "
        "scf.for, and on indices arith.constant, arith.addi, arith.subi, arith.muli, arith.minsi, "
        "arith.maxsi; compute it on the host, or with these"
    )
    line = refused_lines("%q = arith.constant 3 : i32")
    assert line == (
        "'arith.constant' makes a value of type i32 in a cim.program; "
        "addresses and counters have type index; use index"
    )


LOOP = "scf.for %i = %c0 to {high} step {step} {{\ncim.vector_clear %c0 elements 8\n}}"


def test_steps_of_loops_are_positive() -> None:
    line = refused_lines(LOOP.format(high="%c1", step="%c0"))
    assert line == "step of 'scf.for' is 0; it is at least 1"


def test_loops_are_counted_before_the_launch() -> None:
    text = with_lines(LOOP.format(high="%y", step="%c1"))
    message = (
        "bounds of this loop depend on the addresses of tensors; how often "
        "a loop of a cim.program runs is known before the launch; count from 0 to a constant"
    )
    assert refused(text, *x_w()) == message
    assert not_counted(text) == message


HOST = """
{program}
func.func @main(%a: tensor<4xi8>, %b: tensor<32xi8>, %c: i1, %n: index) {{
{body}
return
}}
"""
LAUNCH = "%r = cim.launch @k(%a, %b) : (tensor<4xi8>, tensor<32xi8>) -> tensor<8xi32>"


def test_counting_takes_no_data() -> None:
    body = f"scf.if %c {{\n{LAUNCH}\n}}"
    text = HOST.format(program=program(PLAIN), body=body)
    assert not_counted(text) == (
        "'scf.if' decides by data what is launched; cycles are counted "
        "without data; run the program instead"
    )
    run(text, [*x_w(), True, 3])
    body = "\n".join(
        [
            "%z = arith.constant 0 : index",
            "%o = arith.constant 1 : index",
            "scf.for %i = %z to %n step %o {",
            LAUNCH,
            "}",
        ]
    )
    text = HOST.format(program=program(PLAIN), body=body)
    assert not_counted(text) == (
        "bounds of 'scf.for' are not constants; cycles are counted without "
        "data; run the program instead"
    )
    _, report = run(text, [*x_w(), True, 3])
    known = text.replace("%n step", "%four step").replace(
        "scf.for", "%four = arith.constant 3 : index\nscf.for"
    )
    assert count(module_of(known), "main", machine()) == report
    assert report.launches == 3


def test_a_module_says_its_machine() -> None:
    module = module_of(launched(PLAIN, *TYPES))
    with pytest.raises(UserError, match=r"attribute cim\.machine is None; it is a name or"):
        CimSimulator().run(module, "main", x_w())
    with pytest.raises(UserError, match="lower the module with conv-to-cim"):
        count(module, "main")
    named = f'module attributes {{cim.machine = "cim-32x64-1"}} {{\n{launched(PLAIN, *TYPES)}\n}}'
    _, report = CimSimulator().run(module_of(named), "main", x_w())
    assert report.machine == "cim-32x64-1"
    assert count(module_of(named), "main") == report


def test_other_operations_of_the_host_are_refused() -> None:
    text = "func.func @main(%n: index) {\n%s = upmem.alloc %n : !upmem.dpus\nfunc.return\n}"
    assert "'upmem.alloc' cannot be run on the host" in refused(text, 1)


def test_work_of_the_host_is_charged() -> None:
    text = """
    func.func @main(%a: tensor<1000xi32>) -> tensor<1000xi32> {
      %b = pattern.map(%x in %a : tensor<1000xi32>) -> tensor<1000xi32> {
        %y = arith.addi %x, %x : i32
        pattern.yield %y : i32
      }
      func.return %b : tensor<1000xi32>
    }"""
    _, report = run(text, [np.arange(1000, dtype=np.int32)])
    figures = machine()
    moved, operations = 8000, 1000
    assert report.host_seconds == pytest.approx(
        moved / figures.host_memory_bytes_per_second
        + operations / figures.host_scalar_ops_per_second
    )
    assert report.seconds == report.host_seconds
    assert count(module_of(text), "main", figures) == report
    unknown = text.replace("1000xi32", "?xi32")
    assert not_counted(unknown) == (
        "'pattern.map' has a length that data decides; cycles are counted without data; "
        "run the program instead"
    )


def test_every_refusal_has_a_test() -> None:
    text = Path(__file__).read_text()
    text = "".join(part.strip().strip('f"') for part in text.splitlines())
    folder = Path(simulator.__file__).parent
    found = 0
    for file in folder.glob("cim*.py"):
        for pieces in refusals_in(file, ("UserError",)):
            found += 1
            long = [piece for piece in pieces if len(piece) > 5]
            assert all(piece.strip("'") in text for piece in long), (file.name, pieces)
    assert found > 15
