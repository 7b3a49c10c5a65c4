"""What each instruction of a `cim.program` does to the machine's state.

For each, a function takes the operation and a state, and gives a function of the operation's
addresses, which is called once for every execution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from cim_opt.dialects import cim
from cim_opt.dialects.cim import Memory
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.locations import location_of
from cim_opt.simulators.cim_arithmetic import (
    input_bytes,
    input_numbers,
    product_dtype,
    unpacked,
    wrapped,
)
from cim_opt.simulators.cim_memory import UNKNOWN, WORD, Array, Bytes, MachineState, Weights

Execute = Callable[..., None]


def check_instruction(op: Operation, machine: CimMachine) -> None:
    """Refuses an instruction that the machine cannot execute, whatever its addresses."""
    if not isinstance(op, cim.LoadWeightsOp | cim.MvmOp):
        return
    for what, have, asked in (
        ("macros", machine.macros, op.macros.value.data),
        ("rows", machine.rows, op.rows.value.data),
    ):
        if asked > have:
            raise UserError(
                f"'{op.name}' on {asked} {what}",
                f"{machine.name} has {have}",
                f"use fewer, or a machine with more {what}",
                location_of(op),
            )


def _number(attr: IntegerAttr | None) -> int:
    return 0 if attr is None else attr.value.data


def _copy(op: Operation, state: MachineState) -> Execute:
    assert isinstance(op, cim.CopyOp)
    source, target = (state.memories[m.data] for m in (op.source_memory, op.target_memory))
    count = op.bytes.value.data
    plus_source, plus_target = _number(op.source_offset), _number(op.target_offset)
    words = [m.data is Memory.OUTPUT_REGISTER for m in (op.source_memory, op.target_memory)]
    read, read_known = source.data, source.known
    write, write_known = target.data, target.known
    last_read, last_write = source.size - count, target.size - count
    aligned = [3 if word else 0 for word in words]

    def run(a: int, b: int) -> None:
        a += plus_source
        b += plus_target
        if not 0 <= a <= last_read or a & aligned[0]:
            source.check(op, a, count, words[0])
        if not 0 <= b <= last_write or b & aligned[1]:
            target.check(op, b, count, words[1])
        write[b : b + count] = read[a : a + count]
        write_known[b : b + count] = read_known[a : a + count]

    return run


def _load_weights(op: Operation, state: MachineState) -> Execute:
    assert isinstance(op, cim.LoadWeightsOp)
    source, weights = state.memories[Memory.GLOBAL], state.weights
    macros, rows = op.macros.value.data, op.rows.value.data
    width = weights.data.shape[2]
    count = macros * rows * width

    def run(a: int) -> None:
        source.check(op, a, count)
        if not source.all_known(a, a + count):
            first = source.known.find(UNKNOWN, a, a + count)
            raise UserError(
                f"'{op.name}' reads byte {first} of the {source.name}, which was never written",
                "weights are bytes of an operand of the launch",
                "load them from where an operand lies",
                location_of(op),
            )
        # Row after row, all macros in each.
        loaded = np.frombuffer(source.data, np.uint8, count, a).reshape(rows, macros, width)
        weights.data[:macros, :rows] = loaded.swapaxes(0, 1)
        weights.rows[:macros] = np.maximum(weights.rows[:macros], rows)
        weights.numbers.clear()

    return run


def _weights_of(op: cim.MvmOp, state: MachineState) -> tuple[Array, Array]:
    """Weights (macros, rows, columns) that an instruction uses, and which rows have any."""
    macros, rows, bits = op.macros.value.data, op.rows.value.data, op.bits.value.data
    weights = state.weights
    if weights.rows[:macros].min() < rows:
        raise _no_weights(op, weights)
    values = unpacked(weights.data[:macros, :rows], bits)
    numbers = values.astype(product_dtype(state.machine.rows, bits))
    found = weights.numbers[macros, rows, bits] = numbers, np.asarray(values.any(axis=2))
    return found


def _mvm(op: Operation, state: MachineState) -> Execute:
    assert isinstance(op, cim.MvmOp)
    machine, weights = state.machine, state.weights
    source, target = (
        state.memories[memory] for memory in (Memory.INPUT_REGISTER, Memory.OUTPUT_REGISTER)
    )
    macros, rows = op.macros.value.data, op.rows.value.data
    bits, step = op.bits.value.data, op.step.value.data
    row_bytes = rows * input_bytes(bits)
    count = step * (macros - 1) + row_bytes
    key, dtype = (macros, rows, bits), product_dtype(machine.rows, bits)
    outputs = target.words[: macros * machine.columns_of(bits)]
    out_bytes = outputs.nbytes
    accumulate = op.accumulate is not None
    buffer, ones = source.data, b"\1" * out_bytes

    def run(a: int) -> None:
        source.check(op, a, count)
        matrix, used = weights.numbers.get(key) or _weights_of(op, state)
        data = np.ndarray((macros, row_bytes), np.uint8, buffer, a, (step, 1))
        if not source.all_known(a, a + count):
            _check_inputs(op, source, a, used)
        inputs = input_numbers(data, bits).astype(dtype)
        sums = wrapped(np.matmul(inputs[:, None, :], matrix)).reshape(-1)
        if accumulate:
            outputs[:] += sums
            if not target.all_known(0, out_bytes):
                words = np.repeat(target.known_words(0, outputs.size), WORD)
                target.known[:out_bytes] = words.tobytes()
        else:
            outputs[:] = sums
            target.known[:out_bytes] = ones

    return run


def _no_weights(op: cim.MvmOp, weights: Weights) -> UserError:
    short = weights.rows[: op.macros.value.data] < op.rows.value.data
    macro = int(np.argmax(short))
    return UserError(
        f"'{op.name}' on {op.rows.value.data} rows of macro {macro}",
        f"{int(weights.rows[macro])} rows of it have weights",
        "load the weights before it",
        location_of(op),
    )


def _check_inputs(op: cim.MvmOp, source: Bytes, address: int, used: Array) -> None:
    """Traps when a row with weights takes an unknown byte. `used` (macros, rows)."""
    macros, rows = used.shape
    step, size = op.step.value.data, input_bytes(op.bits.value.data)
    strides = step, size, 1
    known = np.ndarray((macros, rows, size), np.uint8, source.known, address, strides)
    wrong = used & (known == 0).any(axis=2)
    if wrong.any():
        macro, row = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        raise UserError(
            f"'{op.name}' multiplies byte {address + macro * step + row * size} of the "
            f"{source.name}, which was never written",
            f"row {row} of macro {macro} has a weight that is not 0",
            "load the input before it, or make the weights of the row 0",
            location_of(op),
        )


def _vector_add(op: Operation, state: MachineState) -> Execute:
    assert isinstance(op, cim.VectorAddOp)
    memory, count = state.memories[Memory.OUTPUT], op.elements.value.data
    words, known, size = memory.words, memory.known, op.elements.value.data * WORD
    ones = b"\1" * size

    def run(target: int, left: int, right: int) -> None:
        for address in (target, left, right):
            if address & 3 or not 0 <= address <= memory.size - size:
                memory.check(op, address, size, True)
        t, a, b = target // WORD, left // WORD, right // WORD
        words[t : t + count] = words[a : a + count] + words[b : b + count]
        if memory.all_known(left, left + size) and memory.all_known(right, right + size):
            known[target : target + size] = ones
        else:
            both = memory.known_words(left, count) & memory.known_words(right, count)
            known[target : target + size] = np.repeat(both, WORD).tobytes()

    return run


def _vector_clear(op: Operation, state: MachineState) -> Execute:
    assert isinstance(op, cim.VectorClearOp)
    memory, size = state.memories[Memory.OUTPUT], op.elements.value.data * WORD
    zeros = bytes(size)

    def run(target: int) -> None:
        memory.check(op, target, size, True)
        memory.place(target, zeros)

    return run


INSTRUCTIONS: Mapping[type[Operation], Callable[[Operation, MachineState], Execute]] = {
    cim.CopyOp: _copy,
    cim.LoadWeightsOp: _load_weights,
    cim.MvmOp: _mvm,
    cim.VectorAddOp: _vector_add,
    cim.VectorClearOp: _vector_clear,
}
