"""The program of a plan: loops, copies, macro steps and additions, with bumped addresses.

Loops over sets are software-pipelined: while a set is multiplied, the next set's inputs arrive and
the sums of the set before leave, in one of several orders; the cost model chooses. Sums that are
complete leave for global memory through the output memory; others wait in a buffer at its start.
"""

from __future__ import annotations

from cim_opt.mapping.cim_plan import SUM_BYTES, Plan
from cim_opt.mapping.cim_statements import (
    Add,
    Copy,
    Load,
    Multiply,
    Set,
    Statement,
    repeat,
    without_unused,
)

INPUT, WEIGHTS, OUTPUT = "x", "w", "y"
"""Variables that hold the addresses of the packed tensors when the program starts."""

ORDERS = ("MGLDF", "MLGDF", "MGDLF", "MLDF", "MDLF")
"""Orders of one set's instructions: M multiply, D drain its sums, L let sums leave, or add them to
those that wait: its own after D, before it those of the set before, which left D's place then. And
for the next set G brings its inputs from global to input memory, F fills the register with them
(without G, from global memory)."""

_NEXT_INPUT, _NEXT_WEIGHTS, _NEXT_OUTPUT, _BUFFER = "next_x", "next_w", "next_y", "buffer"


def buffer_bytes(plan: Plan) -> int:
    """Bytes of output memory that the program takes: waiting sums, and those of one macro step."""
    waiting = plan.run_sums if plan.accumulates else 0
    return (waiting + _partial_sums(plan)) * SUM_BYTES


def fits(plan: Plan) -> bool:
    """Whether memories and registers hold what the program puts there."""
    machine = plan.machine
    return (
        buffer_bytes(plan) <= machine.output_bytes
        and plan.set_bytes <= min(machine.input_register_bytes, machine.input_bytes)
        and _partial_sums(plan) * SUM_BYTES <= machine.output_register_bytes
        and plan.global_bytes <= machine.global_bytes
    )


def program(plan: Plan) -> list[Statement]:
    """What the machine runs for a plan, from the addresses `INPUT`, `WEIGHTS` and `OUTPUT`."""
    chunk = _chunk(plan)
    tile: list[Statement] = [
        Set(_NEXT_INPUT, INPUT),
        *_chunks(plan, chunk),
        Set(WEIGHTS, WEIGHTS, plan.rounds * plan.weight_bytes),
    ]
    per_group = _input_bytes(plan) * plan.chunks
    group = [*repeat(plan.output_tiles, tile), Set(INPUT, INPUT, per_group)]
    # While sums leave as they come, their address is advanced before it is used.
    back = 0 if plan.accumulates else plan.set_sums * SUM_BYTES
    return without_unused([Set(_NEXT_OUTPUT, OUTPUT, -back), *repeat(plan.group_tiles, group)])


def _chunks(plan: Plan, chunk: list[Statement]) -> list[Statement]:
    """All chunks of a tile, each with the same weights."""
    return repeat(plan.chunks, [Set(_NEXT_WEIGHTS, WEIGHTS), *chunk])


def _input_bytes(plan: Plan) -> int:
    """Bytes of input that one chunk of a tile reads."""
    return plan.rounds * plan.passes * plan.sets * plan.set_bytes


def _chunk(plan: Plan) -> list[Statement]:
    """All rounds of one chunk: the first pass stores sums, later ones add to them."""
    body = _round(plan, first=True)
    body += repeat(plan.rounds - 1, _round(plan, first=False))
    if plan.accumulates:
        body += _leave(plan)
    return body


def _leave(plan: Plan) -> list[Statement]:
    """The waiting sums go to global memory."""
    bytes = plan.run_sums * SUM_BYTES
    return [
        Copy("output", 0, "global", _NEXT_OUTPUT, bytes),
        Set(_NEXT_OUTPUT, _NEXT_OUTPUT, bytes),
    ]


def _round(plan: Plan, first: bool) -> list[Statement]:
    body: list[Statement] = [
        Load(_NEXT_WEIGHTS, plan.split.macros, plan.rows),
        Set(_NEXT_WEIGHTS, _NEXT_WEIGHTS, plan.weight_bytes),
    ]
    block = plan.columns // plan.passes * SUM_BYTES
    for number in range(plan.passes):
        body += _sets(plan, number * block, store=first and number == 0)
    return body


def _sets(plan: Plan, start: int, store: bool) -> list[Statement]:
    """One pass over the sets of a chunk; `start` is where its first sums lie in the buffer."""
    parts = _parts(plan, start, store)

    def run(letters: str) -> list[Statement]:
        return [statement for letter in letters for statement in parts[letter]]

    steady = run(plan.order)
    if plan.order.index("D") < plan.order.index("L"):
        return [*run("BI"), *repeat(plan.sets - 1, steady), *run("ME")]
    if plan.sets == 1:
        return run("BIME")
    first = run("BI" + plan.order.replace("L", ""))
    return [*first, *repeat(plan.sets - 2, steady), *run("MLE")]


def _parts(plan: Plan, start: int, store: bool) -> dict[str, list[Statement]]:
    """The instructions for one set, by the letters of `ORDERS`; B and I begin, E ends.

    At both ends nothing works meanwhile, so that the shortest way is the fastest: inputs go to the
    register at once, and sums to global memory. Addresses of sums are advanced before they are
    used, while the macros work.
    """
    bytes = plan.set_bytes
    advance = Set(_NEXT_INPUT, _NEXT_INPUT, bytes)
    drain, leave = _finish(plan, store)
    back = plan.set_sums * SUM_BYTES
    direct: list[Statement] = [Copy("global", _NEXT_INPUT, "input_register", 0, bytes), advance]
    parts: dict[str, list[Statement]] = {
        "B": [Set(_BUFFER, start - back)] if plan.accumulates else [],
        "M": [Multiply(0, plan.step_bytes, plan.split.macros, plan.rows, plan.bits)],
        "I": direct,
        "F": direct,
        "D": drain,
        "L": leave,
        "E": [*drain, *leave],
    }
    if not plan.accumulates and plan.split.rounds == 1:
        forward = Set(_NEXT_OUTPUT, _NEXT_OUTPUT, back)
        parts["E"] = [forward, Copy("output_register", 0, "global", _NEXT_OUTPUT, back)]
    if "G" in plan.order:
        parts["G"] = [Copy("global", _NEXT_INPUT, "input", 0, bytes), advance]
        parts["F"] = [Copy("input", 0, "input_register", 0, bytes)]
    return parts


def _partial_sums(plan: Plan) -> int:
    """Sums in the output register after one macro step."""
    return plan.split.macros * plan.columns


def _finish(plan: Plan, store: bool) -> tuple[list[Statement], list[Statement]]:
    """What takes the sums of a macro step out of the register, and what becomes of them."""
    partial = plan.run_sums * SUM_BYTES if plan.accumulates else 0
    bytes = plan.set_sums * SUM_BYTES
    drain = _partial_sums(plan) * SUM_BYTES
    copied: list[Statement] = [Copy("output_register", 0, "output", partial, drain)]
    if not plan.accumulates:
        leave = Copy("output", partial, "global", _NEXT_OUTPUT, bytes)
        advance = Set(_NEXT_OUTPUT, _NEXT_OUTPUT, bytes)
        return copied, [*_join(plan, partial, partial), advance, leave]
    bump = Set(_BUFFER, _BUFFER, bytes)
    if store and plan.split.rounds == 1:
        return [bump, Copy("output_register", 0, "output", _BUFFER, drain)], []
    if store:
        return copied, [bump, *_join(plan, partial, _BUFFER)]
    joined = _join(plan, partial, partial)
    return copied, [bump, *joined, Add(_BUFFER, _BUFFER, partial, plan.set_sums)]


def _join(plan: Plan, partial: int, target: str | int) -> list[Statement]:
    """Adds sums of macros that work on rounds of the same outputs, the last of it to `target`."""
    adds: list[Statement] = []
    left = plan.split.rounds
    size = plan.set_sums
    while left > 1:
        half = left // 2
        upper = partial + (left - half) * size * SUM_BYTES
        into = target if left - half == 1 else partial
        adds.append(Add(into, partial, upper, half * size))
        left -= half
    return adds
