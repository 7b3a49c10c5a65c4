"""Random programs of bbops: both levels give the same, and what Python integers say."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from bbop_oracle import bbop_value, operand_widths
from hypothesis import given, settings
from hypothesis import strategies as st
from simdram_programs import function, machine, module_of, run, run_both

from cim_opt.dialects import simdram
from cim_opt.dialects.simdram import CONSTANT_SHIFTS, EXTENSIONS, Opcode
from cim_opt.dialects.simdram_machine import machine_attribute
from cim_opt.microprograms.library import LIBRARY_NAMES
from cim_opt.passes.simdram_allocate_rows import Maker, SimdramAllocateRowsPass
from cim_opt.passes.simdram_assign_polarity import SimdramAssignPolarityPass
from cim_opt.tools.load_module import full_context

LANES = (0, 1, 63, 64, 65, 97, 200)
# Four subarrays of 64 columns, so that 65 lanes and more take several tiles. Rows for everything.
SMALL = machine(columns=64, row_bytes=8, subarrays=4, data_rows=4096)
# Rows for a few objects of 64 bits and what a division needs: others are spilled.
TIGHT = machine(columns=64, row_bytes=8, subarrays=4, data_rows=600)


@dataclass
class Program:
    """The text of a function so far, and what its objects hold."""

    lanes: int
    lines: list[str] = field(default_factory=list[str])
    objects: list[tuple[int, list[int]]] = field(default_factory=list[tuple[int, list[int]]])
    """Width and elements of object %v0, %v1, ..."""

    def add(self, text: str, width: int, values: list[int]) -> None:
        """`%vN = text`, an object of `width` bits."""
        self.lines.append(f"%v{len(self.objects)} = {text}")
        self.objects.append((width, values))

    def operand(self, draw: st.DrawFn, width: int) -> int:
        """An object of that width: one that is there, or one of some other, resized."""
        fitting = [n for n, (have, _) in enumerate(self.objects) if have == width]
        if fitting and draw(st.booleans()):
            return draw(st.sampled_from(fitting))
        source = draw(st.integers(0, len(self.objects) - 1))
        have = self.objects[source][0]
        if have == width:
            return source
        grow = draw(st.sampled_from((Opcode.ZEXT, Opcode.SEXT)))
        self.bbop(grow if have < width else Opcode.TRUNC, [source], width, None)
        return len(self.objects) - 1

    def bbop(self, opcode: Opcode, args: list[int], out: int, amount: int | None) -> None:
        """One bbop on objects."""
        names = ", ".join(f"%v{n}" for n in args)
        types = ", ".join(f"!simdram.vec<{self.objects[n][0]}>" for n in args)
        by = "" if amount is None else f" amount {amount}"
        width = self.objects[args[-1]][0]
        rows = zip(*(self.objects[n][1] for n in args), strict=True)
        values = [bbop_value(opcode, row, width, out, amount) for row in rows]
        self.add(
            f"simdram.bbop {opcode}({names}){by} : ({types}) -> !simdram.vec<{out}>", out, values
        )


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, list[np.ndarray]]:
    program = Program(draw(st.sampled_from(LANES)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    inputs = list[np.ndarray]()
    for index in range(draw(st.integers(1, 3))):
        width = draw(st.integers(1, 64))
        data = rng.integers(0, 2**64, program.lanes, np.uint64)
        # Small numbers too: equal ones, zeros, amounts of shifts.
        small = rng.integers(0, 2, program.lanes) == 0
        data[small] &= np.uint64(15)
        inputs.append(data.view(np.int64))
        program.add(
            f"simdram.transpose %a{index}[%c0] stride %c1 count %n : "
            f"tensor<?xi64> -> !simdram.vec<{width}>",
            width,
            [int(x) & ((1 << width) - 1) for x in data],
        )
    for _ in range(draw(st.integers(1, 8))):
        _step(draw, program)
    return program, inputs


def _step(draw: st.DrawFn, program: Program) -> None:
    """One more operation on what is there."""
    opcode = draw(st.sampled_from([*Opcode, None]))
    width = draw(st.sampled_from([have for have, _ in program.objects]) | st.integers(1, 64))
    if opcode is None:
        scalar = draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9))
        source = program.operand(draw, width)
        program.lines.append(f"%k{len(program.objects)} = arith.constant {scalar} : i64")
        program.add(
            f"simdram.mul_scalar %v{source}, %k{len(program.objects)} : !simdram.vec<{width}>, i64 "
            f"-> !simdram.vec<{width}>",
            width,
            [x * scalar & ((1 << width) - 1) for x in program.objects[source][1]],
        )
        return
    chosen = width
    if opcode in EXTENSIONS:
        width = min(width, 63)
        chosen = draw(st.integers(width + 1, 64))
    elif opcode is Opcode.TRUNC:
        width = max(width, 2)
        chosen = draw(st.integers(1, width - 1))
    widths, out = operand_widths(opcode, width, chosen)
    amount = draw(st.integers(0, 70)) if opcode in CONSTANT_SHIFTS else None
    program.bbop(opcode, [program.operand(draw, w) for w in widths], out, amount)


def text_of(program: Program, inputs: int) -> str:
    """The function that returns every object, in vectors of i64."""
    lines = [
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        *program.lines,
    ]
    for n, (width, _) in enumerate(program.objects):
        name = f"%v{n}"
        if width < 64:
            name = f"%w{n}"
            lines.append(
                f"{name} = simdram.bbop zext(%v{n}) : (!simdram.vec<{width}>) -> !simdram.vec<64>"
            )
        lines.append(f"%e{n} = tensor.empty(%n) : tensor<?xi64>")
        lines.append(
            f"%r{n} = simdram.read {name} into %e{n}[%c0] stride %c1 : "
            "!simdram.vec<64>, tensor<?xi64>"
        )
    count = len(program.objects)
    types = ", ".join(["tensor<?xi64>"] * count)
    lines.append(f"func.return {', '.join(f'%r{n}' for n in range(count))} : {types}")
    formal = ", ".join(["%n: index", *(f"%a{n}: tensor<?xi64>" for n in range(inputs))])
    return function("\n".join(lines), formal, types)


@settings(max_examples=60, deadline=None)
@given(case=programs(), library=st.sampled_from(LIBRARY_NAMES))
def test_random_programs(case: tuple[Program, list[np.ndarray]], library: str) -> None:
    program, inputs = case
    text = text_of(program, len(inputs))
    results, report = run_both(text, [program.lanes, *inputs], machine=SMALL, library=library)
    for got, (_, values) in zip(results, program.objects, strict=True):
        assert got.view(np.uint64).tolist() == values
    tiles = -(-program.lanes // 64)
    assert report.read_back.bytes == len(results) * tiles * 64 * 8


@settings(max_examples=60, deadline=None)
@given(case=programs(), library=st.sampled_from(LIBRARY_NAMES))
def test_random_programs_with_polarities(
    case: tuple[Program, list[np.ndarray]], library: str
) -> None:
    """Chosen polarities change no result, and never cost more."""
    program, inputs = case
    text, args = text_of(program, len(inputs)), [program.lanes, *inputs]
    module = module_of(text)
    SimdramAssignPolarityPass(library=library).apply(full_context(), module)
    module.verify()
    results, report = run_both(module, args, machine=SMALL, library=library)
    for got, (_, values) in zip(results, program.objects, strict=True):
        assert got.view(np.uint64).tolist() == values
    _, plain = run(text, args, machine=SMALL, library=library)
    assert report.commands <= plain.commands
    if library == "simdram" and program.lanes:
        assert "complemented" not in str(module) or report.commands < plain.commands


@settings(max_examples=60, deadline=None)
@given(case=programs(), library=st.sampled_from(LIBRARY_NAMES))
def test_random_programs_with_their_rows(
    case: tuple[Program, list[np.ndarray]], library: str
) -> None:
    """Rows that the pass gives never overlap, and what does not fit goes through the host."""
    program, inputs = case
    module = module_of(text_of(program, len(inputs)))
    module.attributes[simdram.MACHINE_ATTRIBUTE] = machine_attribute(TIGHT)
    SimdramAssignPolarityPass(library=library).apply(full_context(), module)
    SimdramAllocateRowsPass(library=library).apply(full_context(), module)
    module.verify()
    makers = [op for op in module.walk() if isinstance(op, Maker)]
    assert all(op.row is not None for op in makers)
    results, report = run_both(module, [program.lanes, *inputs], machine=TIGHT, library=library)
    for got, (_, values) in zip(results, program.objects, strict=True):
        assert got.view(np.uint64).tolist() == values
    assert report.rows_peak <= 600
