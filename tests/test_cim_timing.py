"""Cycles of CIM programs: measured rows, the stepped oracle, exact loops, and errors."""

import time
from dataclasses import replace

import pytest
from cim_timing_oracle import stepped_cycles, unrolled
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.cost.cim_timing import (
    Instruction,
    LoadWeights,
    Loop,
    Mvm,
    Node,
    Scalar,
    Timing,
    Transfer,
    VectorAdd,
    VectorClear,
    simulate,
)
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine, load_machine

ONE, EIGHT = load_machine("cim-32x64-1"), load_machine("cim-32x64-8")


def _load(size: int) -> Transfer:
    return Transfer(size, "input", "input_register")


def _store(size: int) -> Transfer:
    return Transfer(size, "output_register", "output")


def _period(machine: CimMachine, *body: Node) -> float:
    """Cycles from one round to the next, once all units are at work."""
    short, long = (simulate([Loop(n, body, 0)], machine).cycles for n in (100, 200))
    return (long - short) / 100


# What small programs took on the public simulator: machine, loop body, cycles a round.
MEASURED: list[tuple[CimMachine, list[Node], int]] = [
    (ONE, [Mvm(1)], 8),
    (ONE, [_load(32), Mvm(1)], 15),
    (EIGHT, [_load(256), Mvm(8)], 16),
    (ONE, [_load(32), Mvm(1), _store(32)], 15),
    (EIGHT, [_load(256), Mvm(8), _store(256)], 16),
    *[
        (ONE, [_load(32), Mvm(1), _store(32), Scalar(s)], max(15, s + 4))
        for s in (1, 5, 10, 11, 12, 20, 40)
    ],
    (EIGHT, [_load(256), Scalar(5), Mvm(8), Scalar(5), _store(256)], 19),
    (ONE, [LoadWeights(256, 1), _load(32), Mvm(1)], 49),
    (EIGHT, [LoadWeights(2048, 8), _load(256), Mvm(8)], 77),
    (ONE, [LoadWeights(256, 1)], 36),
    (EIGHT, [LoadWeights(2048, 8)], 64),
    *[(ONE, [VectorAdd(n)], cycles) for n, cycles in ((8, 4), (64, 8), (256, 32))],
    *[(ONE, [_load(n)], -(-n // 128)) for n in (1, 128, 129, 1024)],
    *[(ONE, [Transfer(n, "global", "input")], -(-n // 64)) for n in (1, 64, 65, 4096)],
]


@pytest.mark.parametrize(("machine", "body", "cycles"), MEASURED)
def test_measured_rows_within_a_cycle(machine: CimMachine, body: list[Node], cycles: int) -> None:
    assert abs(_period(machine, *body) - cycles) <= 1


@pytest.mark.parametrize(("machine", "body", "cycles"), MEASURED)
def test_measured_rows_with_the_public_front_end(
    machine: CimMachine, body: list[Node], cycles: int
) -> None:
    public = replace(machine, front_end="stall", results_interlocked=False)
    slack = 1 if isinstance(body[0], LoadWeights) else 0
    assert abs(_period(public, *body) - cycles) <= slack


def test_results_are_awaited() -> None:
    # A single step: start in cycle 1, sums after 8 bits and the drain, then one line is stored.
    alone = simulate([Mvm(1), _store(32)], ONE).cycles
    assert alone == 1 + 8 + ONE.mvm_drain_cycles + 2
    assert simulate([_store(32)], ONE).cycles == 3


def test_a_stalling_front_end_is_never_faster() -> None:
    body = [LoadWeights(256, 1), Scalar(4), _load(32), Mvm(1), Scalar(20), _store(32)]
    stalling = replace(ONE, front_end="stall")
    assert _period(stalling, *body) > _period(ONE, *body)


def test_runs_are_separate_copies_unless_the_machine_strides() -> None:
    copy = Transfer(96, "input", "input_register", runs=3)
    timing = simulate([copy], ONE)
    assert (timing.instructions, timing.busy["transfer"]) == (3, 3)
    assert timing.bytes == {("input", "input_register"): 96}
    strided = simulate([copy], replace(ONE, strided_transfers=True))
    assert (strided.instructions, strided.busy["transfer"]) == (1, 3)


def test_counts_of_a_nest() -> None:
    step = [_load(256), Mvm(8), _store(256), VectorClear(64), VectorAdd(64)]
    timing = simulate([LoadWeights(2048, 8), Loop(5, [Scalar(3), Loop(7, step)])], EIGHT)
    assert (timing.mvms, timing.macro_steps, timing.weight_loads) == (35, 280, 1)
    assert timing.scalars == timing.busy["scalar"] == 5 * 3 + 5 * 2 + 35 * 2
    assert timing.instructions == timing.scalars + 1 + 35 * 5
    assert timing.busy["macro"] == 35 * 8
    assert timing.bytes == {
        ("global", "macro"): 2048,
        ("input", "input_register"): 35 * 256,
        ("output_register", "output"): 35 * 256,
        ("output", "vector"): 35 * 512,
        ("vector", "output"): 35 * 512,
    }
    assert timing.accesses["global"] == 32


def test_stalls_name_unit_and_memory() -> None:
    timing = simulate([Loop(10, [_load(32), Mvm(1), _store(32)], 0)], ONE)
    assert set(timing.stalls) == {"transfer waits for output_register", "drain"}
    assert timing.cycles == timing.instructions + sum(timing.stalls.values())
    assert set(simulate([Mvm(1)] * 4, ONE).stalls) == {"macro busy", "drain"}


MEMORIES = st.sampled_from(["global", "input", "output", "input_register", "output_register"])


def _copy(size: int, runs: int, source: str, target: str) -> Transfer:
    return Transfer(size * runs, source, target, runs)


COPIES = st.builds(_copy, st.integers(1, 600), st.integers(1, 2), MEMORIES, MEMORIES)
INSTRUCTIONS: st.SearchStrategy[Instruction] = st.one_of(
    st.builds(Scalar, st.integers(0, 15)),
    COPIES,
    st.builds(LoadWeights, st.integers(1, 256), st.integers(1, 8)),
    st.builds(Mvm, st.integers(1, 8), st.sampled_from([4, 8, 16])),
    st.builds(VectorAdd, st.integers(1, 100), st.sampled_from([8, 32, 64])),
    st.builds(VectorClear, st.integers(1, 100)),
)


def _programs(counts: st.SearchStrategy[int]) -> st.SearchStrategy[list[Node]]:
    nodes: st.SearchStrategy[Node] = st.recursive(
        INSTRUCTIONS,
        lambda inner: st.builds(Loop, counts, st.lists(inner, max_size=4), st.integers(0, 3)),
        max_leaves=8,
    )
    return st.lists(nodes, max_size=6)


def _machine(front_end: str, interlocked: bool) -> CimMachine:
    return replace(EIGHT, front_end=front_end, results_interlocked=interlocked)


MACHINES = st.builds(_machine, st.sampled_from(["queue", "stall"]), st.booleans())


@settings(max_examples=300, deadline=None)
@given(_programs(st.integers(0, 3)), MACHINES)
def test_programs_take_the_cycles_of_the_stepped_machine(
    program: list[Node], machine: CimMachine
) -> None:
    timing = simulate(program, machine)
    stalls = sum(n for cause, n in timing.stalls.items() if cause != "drain")
    assert (timing.cycles, stalls) == stepped_cycles(program, machine)


@settings(max_examples=300, deadline=None)
@given(_programs(st.integers(0, 12)), MACHINES)
def test_loops_are_exact(program: list[Node], machine: CimMachine) -> None:
    assert simulate(program, machine) == simulate(list(unrolled(program)), machine)


@settings(max_examples=100, deadline=None)
@given(_programs(st.integers(0, 40)), MACHINES)
def test_cycles_are_issues_and_stalls(program: list[Node], machine: CimMachine) -> None:
    timing = simulate(program, machine)
    assert timing.cycles == timing.instructions + sum(timing.stalls.values())


def test_time_does_not_grow_with_counts() -> None:
    step = [_load(256), Scalar(3), Mvm(8), Scalar(2), _store(256), VectorAdd(64)]
    inner = Loop(1_000_003, [Scalar(1), Loop(1_000_007, step)])
    outer = Loop(1_000_001, [VectorClear(64), LoadWeights(2048, 8), inner])
    program = [Loop(1_000_000, [Scalar(2), outer])]
    assert simulate(program, EIGHT).mvms == 1_000_000 * 1_000_001 * 1_000_003 * 1_000_007
    seconds: list[float] = []
    for _ in range(5):
        begun = time.process_time()
        simulate(program, EIGHT)
        seconds.append(time.process_time() - begun)
    assert min(seconds) < 0.005


def test_nothing_takes_no_time() -> None:
    nothing: Timing = simulate([], ONE)
    assert (nothing.cycles, nothing.stalls) == (0, {})
    assert simulate([Loop(0, [Mvm(1)]), Scalar(0)], ONE) == nothing


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (Transfer(8, "dram", "input"), "unknown memory 'dram'; the memories are global, input"),
        (Transfer(8, "input", "macro"), "a transfer from input to macro; weights go into macros"),
        (LoadWeights(257, 1), "257 bytes of weights for 1 macros; cim-32x64-8 holds 256 in each"),
        (LoadWeights(8, 9), "an instruction for 9 macros; cim-32x64-8 has 8"),
        (LoadWeights(8, 1, "output"), "weights from the output memory; weights are loaded from"),
        (Mvm(9), "an instruction for 9 macros; cim-32x64-8 has 8; use fewer"),
    ],
)
def test_what_the_machine_has_not_got_is_refused(instruction: Instruction, message: str) -> None:
    with pytest.raises(UserError) as error:
        simulate([instruction], EIGHT)
    assert error.value.message().startswith(message)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Scalar(-1), "-1 scalar instructions"),
        (Transfer(0, "input", "output"), "0 bytes of a transfer"),
        (Transfer(8, "input", "output", 0), "0 runs of a transfer"),
        (Transfer(8, "input", "output", 3), "8 bytes are not 3 runs"),
        (LoadWeights(0, 1), "0 bytes of weights"),
        (Mvm(0), "0 macros"),
        (Mvm(1, 0), "0 bits of an input"),
        (VectorAdd(0), "0 elements of a vector instruction"),
        (VectorClear(1, 0), "0 bits of an element"),
        (Loop(-1, []), "a loop of -1 rounds"),
        (Loop(1, [], -1), "a loop of 1 rounds with -1 instructions"),
    ],
)
def test_counts_that_make_no_sense_are_refused(node: Node, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate([node], EIGHT)
