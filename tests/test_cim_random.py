"""Random programs of macros: the simulator against plain Python, byte for byte."""

from __future__ import annotations

import os

import numpy as np
from cim_oracle import Add, Address, Clear, Copy, Load, Loop, Oracle, Statement, Step, Trap, text
from cim_programs import machine, module_of
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.traits import SymbolTable

from cim_opt.dialects import cim
from cim_opt.dialects.cim import Memory
from cim_opt.errors import UserError
from cim_opt.simulators.cim_memory import MachineState
from cim_opt.simulators.cim_program import Runner

CASES = int(os.environ.get("CIM_OPT_CASES", "100"))

SMALL = machine(
    macros=3,
    rows=4,
    bit_columns=16,
    global_bytes=1024,
    input_bytes=512,
    output_bytes=512,
    input_register_bytes=512,
    output_register_bytes=512,
)
ADDRESSES = {"x": 0, "w": 256, "y": 512}
MEMORIES = [memory.value for memory in Memory]
WORDS = st.integers(0, 15).map(lambda n: 4 * n)


@st.composite
def addresses(draw: st.DrawFn, carried: tuple[str, ...], more: tuple[str, ...] = ()) -> Address:
    """A constant, or what a loop or the program carries."""
    return draw(WORDS | st.sampled_from([*carried, *more]) if carried or more else WORDS)


@st.composite
def copies(draw: st.DrawFn, carried: tuple[str, ...]) -> Copy:
    source = draw(st.sampled_from(MEMORIES))
    target = draw(st.sampled_from([m for m in MEMORIES if m != "output_register"]))
    if source == "output" and draw(st.booleans()):
        target = "output_register"
    words = "output_register" in (source, target)
    plus = WORDS if words else st.integers(0, 30)
    ends = [draw(addresses(carried, ("x", "y") if m == "global" else ())) for m in (source, target)]
    size = draw(st.integers(1, 48))
    return Copy(source, ends[0], target, ends[1], size, (draw(plus), draw(plus)))


@st.composite
def statements(draw: st.DrawFn, carried: tuple[str, ...], depth: int) -> Statement:
    near = addresses(carried)
    kinds = ["copy", "copy", "copy", "step", "step", "add", "clear", "load"]
    kind = draw(st.sampled_from([*kinds, "loop", "loop"] if depth else kinds))
    macros, rows = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    match kind:
        case "copy":
            return draw(copies(carried))
        case "load":
            return Load("w", macros, rows)
        case "step":
            step, bits = draw(st.integers(0, 12)), draw(st.sampled_from([4, 8, 16]))
            return Step(draw(near), step, macros, rows, bits, draw(st.booleans()))
        case "add":
            return Add(draw(near), draw(near), draw(near), draw(st.integers(1, 12)))
        case "clear":
            return Clear(draw(near), draw(st.integers(1, 12)))
        case _:
            name = f"p{len(carried)}"
            body = st.lists(statements((*carried, name), depth - 1), min_size=1, max_size=5)
            bump = draw(WORDS.filter(lambda n: n <= 16))
            return Loop(name, draw(st.integers(0, 4)), draw(near), bump, tuple(draw(body)))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Statement, ...]:
    """Something in every memory, then anything; a few programs start on an empty machine."""
    start: list[Statement] = [
        Load("w", 3, 4),
        Copy("global", "x", "input_register", 0, 200),
        Copy("global", "x", "output", 0, 100),
        Step(0, 4, 3, 4, 8, False),
    ]
    body = draw(st.lists(statements((), 2), min_size=1, max_size=8))
    return (*(start if draw(st.integers(0, 9)) else []), *body)


@settings(max_examples=CASES, deadline=None)
@given(program=programs(), seed=st.integers(0, 1 << 30), zeros=st.integers(0, 3))
def test_random_programs(program: tuple[Statement, ...], seed: int, zeros: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, 512).astype(np.uint8)
    # The last rows of the weights as they are loaded first.
    data[256 + (4 - zeros) * 3 * 2 : 256 + 4 * 3 * 2] = 0
    oracle = Oracle(SMALL, ADDRESSES, {n: int(byte) for n, byte in enumerate(data)})
    state = MachineState(SMALL)
    state.memories[Memory.GLOBAL].place(0, data.tobytes())
    found = SymbolTable.lookup_symbol(module_of(text(program)), "k")
    assert isinstance(found, cim.ProgramOp)
    runner = Runner(found, SMALL)
    trapped = False
    try:
        runner.run(state, tuple(ADDRESSES.values()))
    except UserError as error:
        trapped = True
        assert "have weights" in error.message() or "was never written" in error.message()
    try:
        oracle.run(program)
        assert not trapped
    except Trap:
        assert trapped
        return
    for memory in Memory:
        got, expected = state.memories[memory], oracle.memories[memory.value]
        known = {n: got.data[n] for n in range(got.size) if got.known[n]}
        assert known == expected, memory
