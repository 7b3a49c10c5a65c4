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
    late,
    repeat,
    without_unused,
)

INPUT, WEIGHTS, OUTPUT = "x", "w", "y"
"""Variables that hold the addresses of the packed tensors when the program starts."""

ORDERS = (
    *("MGLDF", "MLGDF", "MGDLF"),
    *("MGLDJKF", "MGKLDFJ", "MGJKLDF", "MGKLDJF"),
    *("MLDF", "MDLF"),
)
"""Orders of one set's instructions: M multiply, D drain its sums, J join those of macros that add
to the same sums, K add the last of them, also to those that wait, L let sums leave, which they do
in the last pass. J, K and L are of the set itself when they come after D, of the set before
otherwise, whose sums left D's place then. And for the next set G brings its inputs from global to
input memory, F fills the register with them (without G, from global memory). Without J and K, L
does the work of all three, except that sums that waited leave at the end, all at once."""

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
    whole = [Set(_NEXT_OUTPUT, OUTPUT, -back), *repeat(plan.group_tiles, group)]
    return late(without_unused(whole))


def _chunks(plan: Plan, chunk: list[Statement]) -> list[Statement]:
    """All chunks of a tile, each with the same weights."""
    return repeat(plan.chunks, [Set(_NEXT_WEIGHTS, WEIGHTS), *chunk])


def _input_bytes(plan: Plan) -> int:
    """Bytes of input that one chunk of a tile reads."""
    return plan.rounds * plan.passes * plan.sets * plan.set_bytes


def _chunk(plan: Plan) -> list[Statement]:
    """All rounds of one chunk: the first pass stores sums, later ones add to them."""
    if not plan.accumulates:
        return _round(plan, first=True, last=False)
    last = _leaves_early(plan)
    if plan.rounds == 1:
        body = _round(plan, first=True, last=last)
    else:
        body = _round(plan, first=True, last=False)
        body += repeat(plan.rounds - 1 - last, _round(plan, first=False, last=False))
        body += _round(plan, first=False, last=True) if last else []
    return body if last else [*body, *_leave(plan.run_sums)]


def _leaves_early(plan: Plan) -> bool:
    """Whether sums that waited leave set by set."""
    return "K" in plan.order


def _leave(sums: int, less: int = 0) -> list[Statement]:
    """Waiting sums go to global memory; the address moves on by `less` bytes less than these."""
    bytes = sums * SUM_BYTES
    copied = [Copy("output", 0, "global", _NEXT_OUTPUT, bytes)] if sums else []
    return [*copied, Set(_NEXT_OUTPUT, _NEXT_OUTPUT, bytes - less)]


def _round(plan: Plan, first: bool, last: bool) -> list[Statement]:
    """One round; in the last pass of the `last` one sums leave as soon as they are complete."""
    body: list[Statement] = [
        Load(_NEXT_WEIGHTS, plan.split.macros, plan.rows),
        Set(_NEXT_WEIGHTS, _NEXT_WEIGHTS, plan.weight_bytes),
    ]
    block = plan.columns // plan.passes
    final = plan.passes - 1 if last else None
    for number in range(plan.passes):
        start = number * block * SUM_BYTES
        store = first and number == 0
        if number != final:
            body += _sets(plan, start, store, leaves=not plan.accumulates)
            continue
        # What lies before the last pass's sums is complete; its own addresses advance before use.
        bytes = plan.set_sums * SUM_BYTES
        body += _leave(number * block, less=bytes)
        body += _sets(plan, start, store, leaves=True)
        body.append(Set(_NEXT_OUTPUT, _NEXT_OUTPUT, bytes))
    return body


def _sets(plan: Plan, start: int, store: bool, leaves: bool) -> list[Statement]:
    """One pass over the sets of a chunk; `start` is where its first sums lie in the buffer."""
    parts = _parts(plan, start, store, leaves)
    order = plan.order if "K" in plan.order else plan.order.replace("L", "JKL")

    def run(letters: str) -> list[Statement]:
        return [statement for letter in letters for statement in parts[letter]]

    before = "".join(letter for letter in order[: order.index("D")] if letter in "JKL")
    if not before:
        return [*run("BI"), *repeat(plan.sets - 1, run(order)), *run("ME")]
    if plan.sets == 1:
        return run("BIME")
    first = "".join(letter for letter in order if letter not in before)
    return [*run("BI" + first), *repeat(plan.sets - 2, run(order)), *run("M" + before + "E")]


def _parts(plan: Plan, start: int, store: bool, leaves: bool) -> dict[str, list[Statement]]:
    """The instructions for one set, by the letters of `ORDERS`; B and I begin, E ends.

    At both ends nothing works meanwhile, so that the shortest way is the fastest: inputs go to the
    register at once, and sums to global memory. Addresses of sums are advanced before they are
    used, while the macros work.
    """
    bytes = plan.set_bytes
    advance = Set(_NEXT_INPUT, _NEXT_INPUT, bytes)
    back = plan.set_sums * SUM_BYTES
    direct: list[Statement] = [Copy("global", _NEXT_INPUT, "input_register", 0, bytes), advance]
    parts = _finish(plan, store, leaves)
    parts["B"] = [Set(_BUFFER, start - back)] if plan.accumulates else []
    parts["M"] = [Multiply(0, plan.step_bytes, plan.split.macros, plan.rows, plan.bits)]
    parts["I"] = parts["F"] = direct
    parts["E"] = [statement for letter in "DJKL" for statement in parts[letter]]
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


def _finish(plan: Plan, store: bool, leaves: bool) -> dict[str, list[Statement]]:
    """What takes the sums of a macro step out of the register, and what becomes of them."""
    partial = plan.run_sums * SUM_BYTES if plan.accumulates else 0
    bytes = plan.set_sums * SUM_BYTES
    drain = _partial_sums(plan) * SUM_BYTES
    drained: list[Statement] = [Copy("output_register", 0, "output", partial, drain)]
    bump = Set(_BUFFER, _BUFFER, bytes)
    left: list[Statement] = []
    if leaves:
        source = _BUFFER if plan.accumulates else partial
        left.append(Set(_NEXT_OUTPUT, _NEXT_OUTPUT, bytes))
        left.append(Copy("output", source, "global", _NEXT_OUTPUT, bytes))
    if not plan.accumulates:
        joined = _join(plan, partial, partial)
        return {"D": drained, "J": joined[:-1], "K": joined[-1:], "L": left}
    if store and plan.split.rounds == 1:
        stored: list[Statement] = [bump, Copy("output_register", 0, "output", _BUFFER, drain)]
        return {"D": stored, "J": [], "K": [], "L": left}
    if store:
        joined = _join(plan, partial, _BUFFER)
        return {"D": drained, "J": joined[:-1], "K": [bump, *joined[-1:]], "L": left}
    added: list[Statement] = [bump, Add(_BUFFER, _BUFFER, partial, plan.set_sums)]
    return {"D": drained, "J": _join(plan, partial, partial), "K": added, "L": left}


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
