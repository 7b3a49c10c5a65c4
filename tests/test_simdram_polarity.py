"""Objects that are stored complemented: every program, at both levels; what libraries refuse."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from bbop_oracle import bbop_value, operand_widths
from simdram_programs import C0, C1, function, module_of, run_both

from cim_opt.dialects.simdram import CONSTANT_SHIFTS, EXTENSIONS, UNARY, Opcode
from cim_opt.dialects.simdram_polarity import variant
from cim_opt.errors import UserError
from cim_opt.microprograms.library import LIBRARY_NAMES
from cim_opt.tools.cim_run import main

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "simdram.md").read_text(encoding="utf-8")
GAINS = re.findall(r"^\| (\w+), ([\d,]+)(?: elements)? \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.M)
"""Examples of the page: name, size, commands with plain objects and as chosen."""

LANES = 200
RNG = np.random.default_rng(7)


def vec(width: int, complemented: bool) -> str:
    return f"!simdram.vec<{width}{', complemented' if complemented else ''}>"


def program(
    opcode: Opcode, widths: list[int], out: int, amount: int | None, polarity: tuple[bool, ...]
) -> str:
    """One bbop on transposed inputs, read back."""
    types = [vec(width, x) for width, x in zip([*widths, out], polarity, strict=True)]
    lines = [C0, C1, "%n = tensor.dim %a0, %c0 : tensor<?xi64>"]
    lines += [
        f"%x{i} = simdram.transpose %a{i}[%c0] stride %c1 count %n : tensor<?xi64> -> {type}"
        for i, type in enumerate(types[:-1])
    ]
    args = ", ".join(f"%x{i}" for i in range(len(widths)))
    by = "" if amount is None else f" amount {amount}"
    lines += [
        f"%s = simdram.bbop {opcode}({args}){by} : ({', '.join(types[:-1])}) -> {types[-1]}",
        f"%e = tensor.empty(%n) : tensor<?xi{out}>",
        f"%r = simdram.read %s into %e[%c0] stride %c1 : {types[-1]}, tensor<?xi{out}>",
        f"func.return %r : tensor<?xi{out}>",
    ]
    formal = ", ".join(f"%a{i}: tensor<?xi64>" for i in range(len(widths)))
    return function("\n".join(lines), formal, f"tensor<?xi{out}>")


def cases(opcode: Opcode) -> list[tuple[list[int], int, int | None]]:
    """Widths of operands and result, and the amount of a shift."""
    found: list[tuple[list[int], int, int | None]] = []
    for width in (1, 2, 7, 16, 33):
        if opcode is Opcode.TRUNC and width == 1:
            continue
        other = width + 5 if opcode in EXTENSIONS else max(1, width // 2)
        widths, out = operand_widths(opcode, width, other)
        amounts = (0, 1, width + 1) if opcode in CONSTANT_SHIFTS else (None,)
        found += [(widths, out, amount) for amount in amounts]
    return found


@pytest.mark.parametrize("library", LIBRARY_NAMES)
@pytest.mark.parametrize("opcode", list(Opcode))
def test_every_polarity(opcode: Opcode, library: str) -> None:
    for widths, out, amount in cases(opcode):
        args = [RNG.integers(-(2**63), 2**63, LANES, dtype=np.int64) for _ in widths]
        words = [
            [int(x) & ((1 << w) - 1) for x in arg] for arg, w in zip(args, widths, strict=True)
        ]
        expected = [
            bbop_value(opcode, x, widths[-1], out, amount) for x in zip(*words, strict=True)
        ]
        for polarity in product((False, True), repeat=len(widths) + 1):
            if variant(str(opcode), polarity[:-1], polarity[-1]) is None:
                continue
            if library == "simdram" and opcode is Opcode.MUL and polarity[-1]:
                continue
            results, _ = run_both(
                program(opcode, widths, out, amount, polarity), args, library=library
            )
            got = [int(x) & ((1 << out) - 1) for x in results[0]]
            assert got == expected, (widths, polarity, amount)


def test_what_has_no_polarity_but_plain() -> None:
    for opcode in (Opcode.DIVU, Opcode.REMS, Opcode.SHL, Opcode.ABS, Opcode.RELU, Opcode.BITCOUNT):
        count = 1 if opcode in UNARY else 2
        for polarity in product((False, True), repeat=count + 1):
            found = variant(str(opcode), polarity[:-1], polarity[-1])
            assert (found is None) == any(polarity)


@pytest.mark.parametrize(
    ("opcode", "polarity", "commands"),
    [
        (Opcode.ADD, (False, False, False), 7 * 16),
        (Opcode.ADD, (True, False, False), 6 * 16 + 1),
        (Opcode.ADD, (False, True, True), 6 * 16 + 1),
        (Opcode.SUB, (True, True, False), 6 * 16 + 1),
        (Opcode.NOT, (True, False), 16),
        (Opcode.COPY, (True, False), 2 * 16),
    ],
)
def test_counts(opcode: Opcode, polarity: tuple[bool, ...], commands: int) -> None:
    text = program(opcode, [16] * (len(polarity) - 1), 16, None, polarity)
    _, report = run_both(text, [np.arange(9)] * (len(polarity) - 1))
    assert report.commands == commands


@pytest.mark.parametrize("constant", ["", " constant"])
def test_scalars_are_filled_in_complemented(constant: str) -> None:
    made = f"simdram.fill %k count %n{constant} : i8 -> {vec(8, True)}"
    text = function(
        f"""{C0}
        {C1}
        %n = tensor.dim %a, %c0 : tensor<?xi8>
        %x = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi8> -> {vec(8, False)}
        %y = {made}
        %s = simdram.bbop sub(%x, %y) : ({vec(8, False)}, {vec(8, True)}) -> {vec(8, False)}
        %e = tensor.empty(%n) : tensor<?xi8>
        %r = simdram.read %s into %e[%c0] stride %c1 : {vec(8, False)}, tensor<?xi8>
        func.return %r : tensor<?xi8>""",
        "%a: tensor<?xi8>, %k: i8",
        "tensor<?xi8>",
    )
    values = np.arange(-70, 58, dtype=np.int8)
    results, _ = run_both(text, [values, np.int8(77)])
    assert np.array_equal(results[0], values - np.int8(77))


def test_a_program_that_the_library_does_not_have() -> None:
    text = program(Opcode.MUL, [8, 8], 8, None, (False, False, True))
    module = module_of(text)
    with pytest.raises(UserError) as info:
        run_both(module, [np.arange(9)] * 2, library="simdram")
    place, _, message = str(info.value).partition(" error: ")
    assert place.startswith("test.mlir:")
    assert message == (
        "microprogram mul: no complemented product in this library; complement it after"
    )


def run_example(capsys: pytest.CaptureFixture[str], name: str, size: str, polarity: str) -> int:
    """Commands of a run that was compared with the reference."""
    file = ROOT / "examples" / f"{name}.mlir"
    options = ("--pipeline-options", f"polarity={polarity}", "--report", "json")
    assert main([str(file), "--target", "simdram", "--size", size, *options]) == 0
    return json.loads(capsys.readouterr().out)["report"]["commands"]


def test_the_page_has_examples() -> None:
    assert len(GAINS) > 5


@pytest.mark.parametrize(("name", "size", "plain", "chosen"), GAINS)
def test_gains_are_those_of_the_page(
    name: str, size: str, plain: str, chosen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    size = size.replace(",", "")
    assert f"{run_example(capsys, name, size, 'false'):,}" == plain
    assert f"{run_example(capsys, name, size, 'true'):,}" == chosen
