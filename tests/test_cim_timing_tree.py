"""Programs of macros as events: what is issued, and what their cycles come to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cim_programs import launched, machine, module_of, numbers, program, run
from xdsl.traits import SymbolTable

from cim_opt.cost.cim_timing import (
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Scalar,
    Transfer,
    VectorAdd,
    VectorClear,
    simulate,
)
from cim_opt.dialects import cim
from cim_opt.simulators.cim_timing_tree import events_of

HEAD = Scalar(3)
"""The constants %c0, %c1 and %c32."""


def events(body: str) -> list[Node]:
    """The events of a program of these lines behind its constants."""
    found = SymbolTable.lookup_symbol(module_of(program(body)), "k")
    assert isinstance(found, cim.ProgramOp)
    head, *rest = events_of(found, machine())
    if isinstance(head, Scalar) and head.count >= HEAD.count:
        more = head.count - HEAD.count
        return [Scalar(more), *rest] if more else rest
    raise AssertionError(head)


def test_every_instruction_is_an_event() -> None:
    body = """
cim.load_weights %w macros 3 rows 5
cim.copy global[%x] to input[%c0] plus 4 bytes 77
cim.mvm %c0 step 0 macros 3 rows 5 bits 4 accumulate
cim.vector_add %c0, %c0, %c0 elements 9
cim.vector_clear %c0 elements 7
%p = arith.addi %x, %c32 : index
%q = arith.muli %p, %c32 : index
cim.copy output_register[%c0] to global[%q] bytes 4
"""
    assert events(body) == [
        LoadWeights(5 * 3 * 8, 3),
        Transfer(77, "global", "input"),
        Mvm(3, 4),
        VectorAdd(9),
        VectorClear(7),
        Scalar(2),
        Transfer(4, "output_register", "global"),
    ]


CLEAR, CLEARED = "cim.vector_clear %c0 elements 8", VectorClear(8)


def test_a_loop_sets_its_counter_and_carries_addresses_in_place() -> None:
    body = f"""
%p0 = arith.addi %x, %c32 : index
%e = scf.for %i = %c0 to %c32 step %c1 iter_args(%p = %p0) -> (index) {{
  {CLEAR}
  %p1 = arith.addi %p, %c32 : index
  scf.yield %p1 : index
}}
"""
    assert events(body) == [Scalar(2), Loop(32, (CLEARED, Scalar(1)))]


def test_addresses_that_are_needed_again_are_moved() -> None:
    """%x starts both loops; the inner one starts anew from it in every round."""
    body = f"""
scf.for %j = %c0 to %c32 step %c1 {{
  %e = scf.for %i = %c0 to %c32 step %c1 iter_args(%p = %x) -> (index) {{
    {CLEAR}
    %p1 = arith.addi %p, %c32 : index
    scf.yield %p1 : index
  }}
}}
"""
    inner = Loop(32, (CLEARED, Scalar(1)))
    assert events(body) == [Scalar(1), Loop(32, (Scalar(2), inner))]


def test_addresses_that_change_places_are_moved() -> None:
    body = f"""
%e:2 = scf.for %i = %c0 to %c32 step %c1 iter_args(%p = %x, %q = %y) -> (index, index) {{
  {CLEAR}
  scf.yield %q, %p : index, index
}}
"""
    # Arguments of the program are in registers already, and not used again.
    assert events(body) == [Scalar(1), Loop(32, (CLEARED, Scalar(2)))]


def test_loops_that_do_not_run() -> None:
    body = f"scf.for %i = %c1 to %c0 step %c1 {{\n{CLEAR}\n}}\n{CLEAR}"
    assert events(body) == [Scalar(1), CLEARED]


@pytest.mark.parametrize(
    ("lines", "highs"),
    [
        ("%h = arith.addi %j, %c1 : index", (1, 2, 3, 4)),
        ("%h = arith.subi %c4, %j : index", (4, 3, 2, 1)),
        ("%h = arith.muli %j, %j : index", (0, 1, 4, 9)),
        ("%h = arith.minsi %j, %c1 : index", (0, 1, 1, 1)),
        ("%h = arith.maxsi %j, %c1 : index", (1, 1, 2, 3)),
    ],
)
def test_loops_whose_bounds_differ(lines: str, highs: tuple[int, ...]) -> None:
    """The run clears as many vectors as the events say."""
    body = f"""
%c4 = arith.constant 4 : index
%e = scf.for %j = %c0 to %c4 step %c1 iter_args(%p = %c0) -> (index) {{
  {lines}
  %f = scf.for %i = %c0 to %h step %c1 iter_args(%q = %p) -> (index) {{
    cim.vector_clear %q elements 1
    %q1 = arith.addi %q, %c4 : index
    scf.yield %q1 : index
  }}
  scf.yield %f : index
}}
cim.copy output[%c0] to global[%y] bytes {4 * sum(highs)}
"""
    inner = [Loop(high, (VectorClear(1), Scalar(1))) for high in highs]
    rounds = [Loop(1, (Scalar(2), *([loop] if loop.count else []))) for loop in inner]
    got = events(body)
    assert [x for x in got if isinstance(x, Loop)] == rounds
    size = sum(highs)
    text = launched(body, "tensor<1xi8>", "tensor<1xi8>", f"tensor<{size}xi32>")
    (zeros,), report = run(text, [numbers(1), numbers(1)])
    assert not zeros.any()
    assert len(zeros) == size
    assert report.instructions == simulate(events_of_launch(text), machine()).instructions


def events_of_launch(text: str) -> tuple[Node, ...]:
    found = SymbolTable.lookup_symbol(module_of(text), "k")
    assert isinstance(found, cim.ProgramOp)
    return events_of(found, machine())


LOAD_STEP_STORE = """
cim.copy input[%c0] to input_register[%c0] bytes {size}
cim.mvm %c0 step 32 macros {macros} rows 32 bits 8
cim.copy output_register[%c0] to output[%c0] bytes {size}
"""


@pytest.mark.parametrize(("macros", "cycles"), [(1, 15), (8, 16)])
def test_cycles_of_a_step_with_its_transfers(macros: int, cycles: int) -> None:
    """15 cycles on one macro, 16 on eight, one after another, as measured on the public simulator
    of PolyCIM; bodies are repeated in a row, so that no loop is counted."""
    one = LOAD_STEP_STORE.format(macros=macros, size=32 * macros)
    found = [simulate(events_of_launch(program(one * n)), machine()).cycles for n in (10, 20)]
    assert found[1] - found[0] == 10 * cycles


def test_cycles_do_not_depend_on_how_often_a_loop_runs() -> None:
    body = (
        f"%n = arith.constant 1000000000 : index\nscf.for %i = %c0 to %n step %c1 {{\n{CLEAR}\n}}"
    )
    timing = simulate(events_of_launch(program(body)), machine())
    assert timing.instructions == 3 * 10**9 + 5


TEXT = launched(
    """
cim.load_weights %w macros 1 rows 4
cim.copy global[%x] to input_register[%c0] bytes 4
cim.mvm %c0 step 4 macros 1 rows 4 bits 8
cim.copy output_register[%c0] to output[%c0] bytes 32
cim.copy output[%c0] to global[%y] bytes 32
""",
    "tensor<4xi8>",
    "tensor<32xi8>",
    "tensor<8xi32>",
).replace("(%a, %b) :", "(%a, %b) {cim.macs = 32 : i64} :")


def test_report_as_text_and_json() -> None:
    _, report = run(TEXT, [numbers(4), numbers(32)])
    values = report.to_json_dict()
    assert json.loads(json.dumps(values)) == values
    assert (values["target"], values["machine"], values["cycles"]) == (
        "cim",
        "cim-32x64-8",
        report.cycles,
    )
    assert values["seconds"] == report.seconds == pytest.approx(report.cycles * 2e-9)
    assert values["macs"] == 32
    assert values["utilisation"] == 32 / 256
    assert values["programs"][0]["name"] == "k"
    assert report.link_bytes["global to macro"] == 32
    nanoseconds = report.cycles * 2
    # Input memory is not used; output memory is written and read once, a cycle each.
    assert report.energy_nj == pytest.approx(
        {
            "macros, static": 6.26e-3 * nanoseconds,
            "memories, static": 2 * 2.88e-3 * nanoseconds,
            "memories, accesses": 44e-3 * 2 * 2,
            "macros, products": 2 * 256 / 27.38e3,
        }
    )
    assert values["total_energy_nj"] == pytest.approx(sum(report.energy_nj.values()))
    text = report.to_text()
    for part in ("cim on cim-32x64-8", "12.5%", "32 products", "global to macro", "transfer"):
        assert part in text
    assert sum(report.stall_cycles.values()) + report.instructions == report.cycles


def test_energy_of_products_may_be_left_out() -> None:
    on = machine(macro_tops_per_watt=0.0)
    _, report = run(TEXT, [numbers(4), numbers(32)], on)
    assert "macros, products" not in report.energy_nj


def cim_run(tmp_path: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "program.mlir"
    file.write_text(text)
    command = [sys.executable, "-m", "cim_opt.tools.cim_run", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_cim_run_runs_lowered_modules(tmp_path: Path) -> None:
    module = f'module attributes {{cim.machine = "cim-32x64-8"}} {{\n{TEXT}\n}}'
    done = cim_run(tmp_path, module, "--target", "cim", "--report", "json")
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["cycles"] == run(TEXT, [numbers(4), numbers(32)])[1].cycles
    assert values["report"]["mvms"] == 1
