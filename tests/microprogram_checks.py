"""Row programs against Python integers: what each operation means, and a checker of programs."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product

from cim_opt.microprograms.library import library
from cim_opt.microprograms.model import Operand, RowProgram
from cim_opt.microprograms.subarray import execute, integers

Values = dict[str, int]
Meaning = Callable[..., int]


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _divide(a: int, b: int) -> tuple[int, int]:
    """Quotient towards zero and remainder; 0 and a for b = 0."""
    if b == 0:
        return 0, a
    quotient = abs(a) // abs(b)
    quotient = -quotient if (a < 0) != (b < 0) else quotient
    return quotient, a - quotient * b


def _order(name: str, a: int, b: int) -> bool:
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name]


def meaning(operation: str, width: int, options: Mapping[str, int], values: Values) -> int:
    """The value of the one output of `operation`, before it is cut to its width."""
    a, b = values.get("a", 0), values.get("b", 0)
    choice, acc = values.get("choice", 0), values.get("acc", 0)
    a_width, b_width = (options.get(f"{x}_width") or width for x in "ab")
    kind, _, sign = operation.partition("_")
    if sign == "s":
        a, b = signed(a, width), b if kind == "shr" else signed(b, width)
    if options.get("signed"):
        a, b = signed(a, a_width), signed(b, b_width)
    if options.get("b_signed"):
        b = signed(b, b_width)
    if kind in ("lt", "le", "gt", "ge"):
        return _order(kind, a, b)
    shift = min(b, 2 * width)
    table: dict[str, Callable[[], int]] = {
        "copy": lambda: a,
        "fill": lambda: options["value"],
        "not": lambda: ~a,
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "mask": lambda: a if choice else 0,
        "select": lambda: a if choice else b,
        "reduce_and": lambda: a == (1 << width) - 1,
        "reduce_or": lambda: a != 0,
        "reduce_xor": lambda: a.bit_count() & 1,
        "bitcount": lambda: a.bit_count(),
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "neg": lambda: -a,
        "negate_if": lambda: -a if choice else a,
        "abs": lambda: abs(signed(a, width)),
        "relu": lambda: max(signed(a, width), 0),
        "eq": lambda: a == b,
        "ne": lambda: a != b,
        "nonnegative": lambda: signed(a, width) >= 0,
        "negative": lambda: signed(a, width) < 0,
        "positive": lambda: signed(a, width) > 0,
        "min_u": lambda: min(a, b),
        "max_u": lambda: max(a, b),
        "min_s": lambda: min(a, b),
        "max_s": lambda: max(a, b),
        "shl_const": lambda: a << options["amount"],
        "shr_const": lambda: a >> options["amount"],
        "shl": lambda: a << shift,
        "shr_u": lambda: a >> shift,
        "shr_s": lambda: a >> shift,
        "mul": lambda: a * b,
        "mac": lambda: acc + a * b,
        "msub": lambda: acc - a * b,
        "mul_const": lambda: options["value"] * a,
        "mac_const": lambda: acc + options["value"] * a,
        "div_u": lambda: _divide(a, b)[0],
        "div_s": lambda: _divide(a, b)[0],
        "rem_u": lambda: _divide(a, b)[1],
        "rem_s": lambda: _divide(a, b)[1],
    }
    return table[operation]()


def corners(width: int) -> list[int]:
    top = 1 << (width - 1)
    values = {0, 1, 2, 3, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 0x5555555555555555}
    return sorted({value % (2 * top) for value in values})


def lanes_of(inputs: Sequence[Operand], exhaustive_bits: int, count: int = 200) -> list[Values]:
    """Values of the inputs: all of them up to so many bits in all, else corners and random ones."""
    if sum(x.width for x in inputs) <= exhaustive_bits:
        ranges = [range(1 << x.width) for x in inputs]
    else:
        ranges = [corners(x.width) for x in inputs]
    lanes = [dict(zip((x.name for x in inputs), lane, strict=True)) for lane in product(*ranges)]
    random.seed(20240229)
    lanes = lanes if len(lanes) <= 5000 else random.sample(lanes, 5000)
    if sum(x.width for x in inputs) <= exhaustive_bits:
        return lanes
    return lanes + [{x.name: random.getrandbits(x.width) for x in inputs} for _ in range(count)]


def to_rows(operand: Operand, values: Sequence[int]) -> tuple[int, ...]:
    """One row a bit, one lane a bit of the row, as the operand is stored."""
    flip = (1 << operand.width) - 1 if operand.complemented else 0
    words = [f"{value ^ flip:0{operand.width}b}" for value in reversed(values)]
    return tuple(int("".join(column), 2) for column in zip(*words, strict=True))[::-1]


def from_rows(operand: Operand, rows: Sequence[int], count: int) -> list[int]:
    columns = [f"{row:0{count}b}" for row in reversed(rows)]
    words = [int("".join(word), 2) for word in zip(*columns, strict=True)][::-1]
    flip = (1 << operand.width) - 1 if operand.complemented else 0
    return [word ^ flip for word in words]


def run_lanes(program: RowProgram, lanes: Sequence[Values]) -> list[int]:
    """The output of the program in each lane."""
    rows = {x.name: to_rows(x, [lane[x.name] for lane in lanes]) for x in program.inputs}
    (output,) = program.outputs
    return from_rows(output, execute(program, rows, integers(len(lanes)))[output.name], len(lanes))


def mismatch(
    program: RowProgram, operation: str, options: Mapping[str, int], exhaustive_bits: int = 8
) -> str | None:
    """The first lane in which the program computes something else than `operation`, or None."""
    lanes = lanes_of(program.inputs, exhaustive_bits)
    size = 1 << program.outputs[0].width
    for lane, got in zip(lanes, run_lanes(program, lanes), strict=True):
        want = int(meaning(operation, program.width, options, lane)) % size
        if got != want:
            return f"{operation}({lane}) = {got}, not {want}"
    return None


def check(name: str, operation: str, width: int, exhaustive_bits: int = 8, **options: int) -> None:
    program = library(name).program(operation, width, **options)
    wrong = mismatch(program, operation, options, exhaustive_bits)
    assert wrong is None, f"{name} {operation} {width} {options}: {wrong}"
