"""Row programs on packed rows, and the transposition of numbers to rows and back."""

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cim_opt.microprograms.compiled import compile_program
from cim_opt.microprograms.library import LIBRARY_NAMES, OPERATIONS, library
from cim_opt.microprograms.model import AAP, C1, T0, Operand, RowProgram, bit
from cim_opt.microprograms.packed import bind
from cim_opt.microprograms.subarray import execute, operators
from cim_opt.microprograms.transposition import from_vertical, to_vertical, words_for

LANES = 200
ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def words(width: int, seed: int) -> NDArray[np.uint64]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 1 << 64, (width, words_for(LANES)), dtype=np.uint64)


def run_literally(
    program: RowProgram, inputs: dict[str, NDArray[np.uint64]]
) -> dict[str, NDArray[np.uint64]]:
    """Every command executed on the rows themselves."""
    zero = np.zeros(words_for(LANES), np.uint64)
    rows = {name: list(rows) for name, rows in inputs.items()}
    outputs = execute(program, rows, operators(zero, ~zero))
    return {name: np.stack(rows) for name, rows in outputs.items()}


def given(operation: str) -> dict[str, int]:
    if operation in ("fill", "mul_const", "mac_const"):
        return {"value": 0xB5A7}
    return {"amount": 3} if operation in ("shl_const", "shr_const") else {}


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_compiled_programs_do_what_their_commands_do(name: str, operation: str) -> None:
    for width in (1, 2, 7, 16):
        program = library(name).program(operation, width, **given(operation))
        inputs = {x.name: words(x.width, i) for i, x in enumerate(program.inputs)}
        expected = run_literally(program, inputs)
        kept = {name: rows.copy() for name, rows in inputs.items()}
        outputs = {x.name: words(x.width, 99) for x in program.outputs}
        rows = outputs | inputs
        bind(program, rows).run()
        for output in program.outputs:
            assert np.array_equal(rows[output.name], expected[output.name])
            kept.pop(output.name, None)
        assert all(np.array_equal(inputs[name], kept[name]) for name in kept)


@pytest.mark.parametrize("name", LIBRARY_NAMES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_outputs_may_share_the_rows_of_inputs(name: str, operation: str) -> None:
    """As `aliases` says, and there is a refusal where it says no."""
    for width in (2, 7):
        program = library(name).program(operation, width, **given(operation))
        inputs = {x.name: words(x.width, i) for i, x in enumerate(program.inputs)}
        (output,) = program.outputs
        expected = run_literally(program, inputs)[output.name]
        for other in program.inputs:
            if other.name == output.name:
                continue
            rows = {name: rows.copy() for name, rows in inputs.items()}
            own = words(output.width, 99)
            common = min(output.width, other.width)
            own_rows = [*rows[other.name][:common], *own[common:]]
            if (other.name, output.name) not in program.aliases:
                with pytest.raises(ValueError, match=f"cannot have {other.name}\\["):
                    bind(program, {**rows, output.name: own_rows})
                continue
            bind(program, {**rows, output.name: own_rows}).run()
            assert np.array_equal(np.stack(own_rows), expected)


def test_inputs_may_share_their_rows() -> None:
    a, out = words(8, 1), np.empty((8, words_for(LANES)), np.uint64)
    bind(library("cim-opt").program("sub", 8), {"a": a, "b": a, "out": out}).run()
    assert not out.any()


def test_rows_that_shift_by_name_may_not_be_shared() -> None:
    a = words(9, 1)
    with pytest.raises(ValueError, match=r"copy cannot have a\[1\] and out\[0\] in one row"):
        bind(library("cim-opt").program("copy", 8), {"a": a[:8], "out": a[1:]})


def test_outputs_that_swap_rows() -> None:
    """Two accumulators that exchange their values in place."""
    pair = (Operand("x", 1), Operand("y", 1))
    x, y = bit("x", 0), bit("y", 0)
    swap = RowProgram("test", "swap", 1, pair, pair, (), (AAP(T0, x), AAP(x, y), AAP(y, T0)))
    rows = {"x": words(1, 1), "y": words(1, 2)}
    bind(swap, rows).run()
    assert np.array_equal(rows["x"], words(1, 2))
    assert np.array_equal(rows["y"], words(1, 1))


def test_copies_and_constants_compute_nothing() -> None:
    out = Operand("out", 2)
    fill = RowProgram("test", "fill", 2, (), (out,), (), (AAP(bit("out", 0), C1),) * 2)
    with pytest.raises(ValueError, match=r"the program never writes out\[1\]"):
        compile_program(fill, (0, 1))
    with pytest.raises(ValueError, match="fill has 2 rows, not 1"):
        compile_program(fill, (0,))
    program = library("cim-opt").program("fill", 8, value=0x5A)
    compiled = compile_program(program, tuple(range(8)))
    assert {operation.kind for operation in compiled.operations} == {"fill"}
    assert compiled.temporaries == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": (8, 1)}, "not has operands"),
        ({"a": (8, 1), "out": (7, 1)}, "operand out has 8 rows, not 7"),
        ({"a": (8, 1), "out": (8, 2)}, "rows of one length"),
    ],
)
def test_rows_of_other_shapes_are_refused(rows: dict[str, tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arrays = {name: np.zeros(shape, np.uint64) for name, shape in rows.items()}
        bind(library("cim-opt").program("not", 8), arrays)
    if len(rows) == 1:
        signed: dict[str, Any] = {"a": np.zeros((8, 1), np.int64), "out": np.zeros((8, 1), "u8")}
        with pytest.raises(ValueError, match="rows of uint64 words"):
            bind(library("cim-opt").program("not", 8), signed)


def best_seconds(call: Any, repeats: int = 30) -> float:
    """The least of several: other work on the machine only ever adds time."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_a_sum_of_32_bits_over_65536_columns_takes_half_a_millisecond(name: str) -> None:
    generator = np.random.default_rng(7)
    a, b = (generator.integers(0, 1 << 32, 65_536, dtype=np.uint32) for _ in range(2))
    rows = {"a": to_vertical(a, 32), "b": to_vertical(b, 32), "out": np.empty((32, 1024), "u8")}
    bound = bind(library(name).program("add", 32), rows)
    assert best_seconds(bound.run) < 0.5e-3
    assert np.array_equal(from_vertical(rows["out"], a.size), a + b)


TYPES = ("bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", (0, 1, 7, 8, 63, 64, 65, 1000))
def test_numbers_to_rows_and_back(kind: str, count: int) -> None:
    generator = np.random.default_rng(count)
    numbers = generator.integers(0, 256, (count, np.dtype(kind).itemsize), np.uint8)
    numbers = numbers.view(kind).reshape(count) if kind != "bool" else numbers[:, 0] > 99
    width = 1 if kind == "bool" else 8 * numbers.dtype.itemsize
    rows = to_vertical(numbers, width)
    assert rows.shape == (width, words_for(count))
    back = from_vertical(rows, count, signed=numbers.dtype.kind == "i")
    assert np.array_equal(back.astype(kind), numbers)
    assert back.dtype == (np.dtype("u1") if kind == "bool" else numbers.dtype)


@pytest.mark.parametrize("width", (*range(1, 65),))
def test_rows_hold_the_bits(width: int) -> None:
    generator = np.random.default_rng(width)
    numbers = generator.integers(-(1 << 63), (1 << 63) - 1, 77, dtype=np.int64)
    rows = to_vertical(numbers, width, words=3)
    assert rows.shape == (width, 3)
    for lane, number in enumerate(numbers.tolist()):
        got = [int(rows[i, lane // 64]) >> (lane % 64) & 1 for i in range(width)]
        assert got == [number >> i & 1 for i in range(width)]
    assert not (rows[:, 1] >> np.uint64(13)).any() and not rows[:, 2].any()
    mask = (1 << width) - 1
    assert from_vertical(rows, 77).tolist() == [x & mask for x in numbers.tolist()]
    sign = 1 << (width - 1)
    wanted = [((x & mask) ^ sign) - sign for x in numbers.tolist()]
    assert from_vertical(rows, 77, signed=True).tolist() == wanted


def test_narrow_numbers_grow_by_their_sign() -> None:
    narrow = np.array([-3, 5], np.int8)
    assert from_vertical(to_vertical(narrow, 20), 2, signed=True).tolist() == [-3, 5]
    unsigned = np.array([253, 5], np.uint8)
    assert from_vertical(to_vertical(unsigned, 20), 2).tolist() == [253, 5]
    with pytest.raises(ValueError, match="65 lanes do not fit 1 words"):
        to_vertical(np.zeros(65, np.uint8), 8, words=1)


def test_strided_numbers_and_rows() -> None:
    numbers = np.arange(400, dtype=np.uint16)[::3]
    rows = to_vertical(numbers, 16)
    wide = np.zeros((32, rows.shape[1]), np.uint64)
    wide[::2] = rows
    assert np.array_equal(from_vertical(wide[::2], numbers.size), numbers)


def test_transposition_is_quick() -> None:
    numbers = np.arange(65_536, dtype=np.uint32)
    rows = to_vertical(numbers, 32)
    assert best_seconds(lambda: to_vertical(numbers, 32)) < 1.5e-3
    assert best_seconds(lambda: from_vertical(rows, 65_536)) < 1.5e-3


def test_making_programs_imports_nothing_heavy() -> None:
    code = (
        "import sys; from cim_opt.microprograms.library import library;"
        "library('cim-opt').program('div_s', 8);"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'xdsl', 'islpy', 'z3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
