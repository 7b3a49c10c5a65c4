"""What instructions of a CIM core take: their unit, the memories they hold and for how long.

A program is a sequence of instructions and `Loop`s. Three units work at the same time: `transfer`
copies between memories and loads weights, `macro` multiplies and accumulates, `vector` adds and
clears sums in the output memory. Scalar instructions take their issue cycle and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cim_opt.errors import UserError
from cim_opt.hardware.cim import MEMORIES, CimMachine, unknown_memory

UNITS = ("transfer", "macro", "vector")
Link = tuple[str, str]
"""Where bytes come from and go to: memories, or `vector` for the vector unit."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """`count` scalar instructions: addresses, branches, immediates, special registers."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class Transfer:
    """`bytes` in all from one memory to another, in `runs` contiguous runs of equal length."""

    bytes: int
    source: str
    target: str
    runs: int = 1


@dataclass(frozen=True, slots=True)
class LoadWeights:
    """`bytes` of weights in all into the first `macros` macros, the same number into each."""

    bytes: int
    macros: int
    source: str = "global"


@dataclass(frozen=True, slots=True)
class Mvm:
    """One step of the first `macros` macros: inputs from the input register times weights."""

    macros: int
    input_bits: int = 8


@dataclass(frozen=True, slots=True)
class VectorAdd:
    """Adds `elements` numbers of `bits` bits to others, all in the output memory."""

    elements: int
    bits: int = 32


@dataclass(frozen=True, slots=True)
class VectorClear:
    """Sets `elements` numbers of `bits` bits in the output memory to zero."""

    elements: int
    bits: int = 32


@dataclass(frozen=True, slots=True)
class Loop:
    """`body` run `count` times, with `overhead` scalar instructions after each round.

    The overhead is the counter's addition and the branch. A loop of 0 rounds takes nothing.
    """

    count: int
    body: "Sequence[Node]"
    overhead: int = 2


Instruction: TypeAlias = Scalar | Transfer | LoadWeights | Mvm | VectorAdd | VectorClear
Node: TypeAlias = Instruction | Loop
Program: TypeAlias = Sequence[Node]


@dataclass(frozen=True, slots=True)
class Demand:
    """What one instruction that leaves the front end asks of its unit and of the memories.

    Cycles count from the start in the unit. `holds` has `(memory, cycles)` for every memory that
    the instruction touches, a memory being its number in `MEMORIES`; `reads` and `writes` are the
    memories that it reads and writes.
    """

    unit: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    holds: tuple[tuple[int, int], ...]
    interval: int
    """Until the unit starts its next instruction."""
    latency: int
    """Until everything is written."""
    repeats: int
    """How many such instructions are issued one after another."""
    bytes: tuple[tuple[Link, int], ...]
    """Bytes that all repeats together move."""
    accesses: tuple[tuple[str, int], ...]
    """Cycles in which all repeats together access a memory."""


def demand(instruction: Instruction, machine: CimMachine) -> Demand | None:
    """What an instruction asks for; None for scalar ones.

    Raises UserError for unknown memories and for what the machine has not got, ValueError for
    counts that make no sense.
    """
    match instruction:
        case Scalar(count):
            if count < 0:
                raise ValueError(f"{count} scalar instructions: there can be none or more")
            return None
        case Transfer():
            return _transfer(instruction, machine)
        case LoadWeights():
            return _load_weights(instruction, machine)
        case Mvm():
            return _mvm(instruction, machine)
        case VectorAdd(elements, bits):
            moved = _vector_bytes(elements, bits)
            links = ((("output", "vector"), 2 * moved), (("vector", "output"), moved))
            return _vector(machine, elements, moved, machine.vector_add_cycles, links, 3)
        case VectorClear(elements, bits):
            moved = _vector_bytes(elements, bits)
            links = ((("vector", "output"), moved),)
            return _vector(machine, elements, moved, machine.vector_clear_cycles, links, 1)


def _transfer(instruction: Transfer, machine: CimMachine) -> Demand:
    source, target, runs = instruction.source, instruction.target, instruction.runs
    _check_positive(instruction.bytes, "bytes of a transfer")
    _check_positive(runs, "runs of a transfer")
    if instruction.bytes % runs:
        raise ValueError(f"{instruction.bytes} bytes are not {runs} runs of equal length")
    read, write = _number(source), _number(target)
    if "macro" in (source, target):
        raise UserError(
            f"a transfer from {source} to {target}",
            "weights go into macros and do not come back",
            "load weights with LoadWeights",
        )
    width = min(machine.width(source), machine.width(target))
    each = -(-instruction.bytes // runs // width)
    joined = runs if machine.strided_transfers else 1
    cycles = each * joined
    # A memory cannot be read and written at the same time.
    interval = cycles if read != write else 2 * cycles
    latency = interval + machine.transfer_fill_cycles
    return Demand(
        unit=0,
        reads=(read,),
        writes=(write,),
        holds=tuple((memory, latency) for memory in dict.fromkeys((read, write))),
        interval=interval,
        latency=latency,
        repeats=runs // joined,
        bytes=(((source, target), instruction.bytes),),
        accesses=((source, each * runs), (target, each * runs)),
    )


def _load_weights(instruction: LoadWeights, machine: CimMachine) -> Demand:
    moved, macros, source = instruction.bytes, instruction.macros, instruction.source
    _check_positive(moved, "bytes of weights")
    _check_macros(macros, machine)
    if moved > machine.weight_bytes * macros:
        raise UserError(
            f"{moved} bytes of weights for {macros} macros",
            f"{machine.name} holds {machine.weight_bytes} in each",
            "load fewer at once",
        )
    read = _number(source)
    if source not in ("global", "input"):
        raise UserError(
            f"weights from the {source} memory",
            "weights are loaded from the global or the input memory",
            "copy them there first",
        )
    fetch = -(-moved // machine.width(source))
    # Reading and writing of weights do not overlap, as measured.
    latency = fetch + -(-moved // (machine.weight_write_bytes * macros))
    macro = _number("macro")
    return Demand(
        unit=0,
        reads=(read,),
        writes=(macro,),
        holds=((read, latency), (macro, latency)),
        interval=max(1, latency - machine.transfer_fill_cycles),
        latency=latency,
        repeats=1,
        bytes=(((source, "macro"), moved),),
        accesses=((source, fetch), ("macro", latency - fetch)),
    )


def _mvm(instruction: Mvm, machine: CimMachine) -> Demand:
    bits = instruction.input_bits
    _check_macros(instruction.macros, machine)
    _check_positive(bits, "bits of an input")
    latency = bits + machine.mvm_drain_cycles
    hold = bits + machine.mvm_input_hold_cycles
    inputs, macro, sums = (_number(m) for m in ("input_register", "macro", "output_register"))
    held = [(inputs, hold), (macro, latency)]
    if machine.results_interlocked:
        held.append((sums, latency))
    return Demand(
        unit=1,
        reads=(inputs, macro),
        writes=(sums,),
        holds=tuple(held),
        interval=bits,
        latency=latency,
        repeats=1,
        bytes=(),
        accesses=(("input_register", bits), ("output_register", 1)),
    )


def _vector(
    machine: CimMachine,
    elements: int,
    moved: int,
    cycles: int,
    links: tuple[tuple[Link, int], ...],
    accesses: int,
) -> Demand:
    """An operation of the vector unit on the output memory, `accesses` of it for each batch."""
    batches = max(-(-elements // machine.simd_lanes), -(-moved // machine.output_width_bytes))
    memory = _number("output")
    return Demand(
        unit=2,
        reads=(memory,) if accesses > 1 else (),
        writes=(memory,),
        holds=((memory, batches * cycles),),
        interval=batches * cycles,
        latency=batches * cycles,
        repeats=1,
        bytes=links,
        accesses=(("output", batches * accesses),),
    )


def _vector_bytes(elements: int, bits: int) -> int:
    _check_positive(elements, "elements of a vector instruction")
    _check_positive(bits, "bits of an element")
    return -(-elements * bits // 8)


def _number(memory: str) -> int:
    if memory not in MEMORIES:
        raise unknown_memory(memory)
    return MEMORIES.index(memory)


def _check_macros(macros: int, machine: CimMachine) -> None:
    _check_positive(macros, "macros")
    if macros > machine.macros:
        raise UserError(
            f"an instruction for {macros} macros",
            f"{machine.name} has {machine.macros}",
            "use fewer macros or a larger machine",
        )


def _check_positive(value: int, what: str) -> None:
    if value < 1:
        raise ValueError(f"{value} {what}: there must be one or more")
