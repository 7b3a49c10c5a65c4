"""Programs of macros run byte by byte in plain Python: what the simulator is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

from cim_opt.hardware.cim import CimMachine

Address = str | int
"""The name of an address that a loop or the program carries, or a constant."""


class Trap(Exception):
    """A macro multiplied an unknown byte by a weight."""


@dataclass(frozen=True)
class Copy:
    source: str
    read: Address
    target: str
    write: Address
    bytes: int
    plus: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Load:
    address: Address
    macros: int
    rows: int


@dataclass(frozen=True)
class Step:
    input: Address
    step: int
    macros: int
    rows: int
    bits: int
    accumulate: bool


@dataclass(frozen=True)
class Add:
    target: Address
    left: Address
    right: Address
    elements: int


@dataclass(frozen=True)
class Clear:
    target: Address
    elements: int


@dataclass(frozen=True)
class Loop:
    """Carries the address `name` from `start`, `bump` further in each round, and keeps it after."""

    name: str
    count: int
    start: Address
    bump: int
    body: tuple[Statement, ...]


Statement = Copy | Load | Step | Add | Clear | Loop


def text(statements: tuple[Statement, ...]) -> str:
    """The program as MLIR, with arguments %x, %w and %y."""
    lines = ["cim.program @k(%x: index, %w: index, %y: index) {"]
    lines += ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    _Writer(lines).write(statements)
    return "\n".join([*lines, "cim.return", "}"])


@dataclass
class _Writer:
    lines: list[str]
    made: int = 0
    names: dict[str, str] = field(default_factory=lambda: {"x": "%x", "w": "%w", "y": "%y"})

    def write(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self.statement(statement)

    def value(self, address: Address) -> str:
        if isinstance(address, str):
            return self.names[address]
        name = self.fresh()
        self.lines.append(f"{name} = arith.constant {address} : index")
        return name

    def fresh(self) -> str:
        self.made += 1
        return f"%v{self.made}"

    def statement(self, statement: Statement) -> None:
        value, lines = self.value, self.lines
        match statement:
            case Copy(source, read, target, write, count, plus):
                a, b = value(read), value(write)
                lines.append(
                    f"cim.copy {source}[{a}] plus {plus[0]} to {target}[{b}] plus {plus[1]} "
                    f"bytes {count}"
                )
            case Load(address, macros, rows):
                lines.append(f"cim.load_weights {value(address)} macros {macros} rows {rows}")
            case Step(address, step, macros, rows, bits, accumulate):
                a, more = value(address), " accumulate" if accumulate else ""
                lines.append(
                    f"cim.mvm {a} step {step} macros {macros} rows {rows} bits {bits}{more}"
                )
            case Add(target, left, right, elements):
                operands = ", ".join(map(value, (target, left, right)))
                lines.append(f"cim.vector_add {operands} elements {elements}")
            case Clear(target, elements):
                lines.append(f"cim.vector_clear {value(target)} elements {elements}")
            case Loop():
                self.loop(statement)

    def loop(self, loop: Loop) -> None:
        count, start, bump = (self.value(n) for n in (loop.count, loop.start, loop.bump))
        result, counter, carried, after = (self.fresh() for _ in range(4))
        self.lines.append(
            f"{result} = scf.for {counter} = %c0 to {count} step %c1 "
            f"iter_args({carried} = {start}) -> (index) {{"
        )
        self.names[loop.name] = carried
        self.write(loop.body)
        self.lines.append(f"{after} = arith.addi {carried}, {bump} : index")
        self.lines.append(f"scf.yield {after} : index\n}}")
        self.names[loop.name] = result


Memory = dict[int, int]
"""The bytes of a memory that are known, by address."""


class Oracle:
    """The state of a machine, byte by byte."""

    def __init__(self, machine: CimMachine, addresses: dict[str, int], data: Memory):
        self.machine = machine
        self.addresses = dict(addresses)
        names = ("input", "output", "input_register", "output_register")
        self.memories: dict[str, Memory] = {"global": dict(data), **{name: {} for name in names}}
        self.weights: dict[tuple[int, int], list[int]] = {}
        """Bytes of a row, by macro and row."""

    def run(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self.statement(statement)

    def value(self, address: Address) -> int:
        return self.addresses[address] if isinstance(address, str) else address

    def statement(self, statement: Statement) -> None:
        match statement:
            case Copy():
                self.copy(statement)
            case Load(address, macros, rows):
                self.load(self.value(address), macros, rows)
            case Step():
                self.step(statement)
            case Add():
                self.add(statement)
            case Clear(target, elements):
                start = self.value(target)
                self.memories["output"].update((start + n, 0) for n in range(4 * elements))
            case Loop():
                self.addresses[statement.name] = self.value(statement.start)
                for _ in range(statement.count):
                    self.run(statement.body)
                    self.addresses[statement.name] += statement.bump

    def copy(self, copy: Copy) -> None:
        source, target = self.memories[copy.source], self.memories[copy.target]
        read, write = self.value(copy.read) + copy.plus[0], self.value(copy.write) + copy.plus[1]
        moved = [source.get(read + n) for n in range(copy.bytes)]
        for n, byte in enumerate(moved):
            if byte is None:
                target.pop(write + n, None)
            else:
                target[write + n] = byte

    def load(self, address: int, macros: int, rows: int) -> None:
        width, data = self.machine.bit_columns // 8, self.memories["global"]
        if any(address + n not in data for n in range(rows * macros * width)):
            raise Trap
        for row in range(rows):
            for macro in range(macros):
                start = address + (row * macros + macro) * width
                self.weights[macro, row] = [data[start + n] for n in range(width)]

    def step(self, step: Step) -> None:
        columns, sums = self.machine.bit_columns // step.bits, self.memories["output_register"]
        if any((m, r) not in self.weights for m in range(step.macros) for r in range(step.rows)):
            raise Trap
        for macro in range(step.macros):
            start = self.value(step.input) + macro * step.step
            inputs = [self.input(start, row, step.bits) for row in range(step.rows)]
            for column in range(columns):
                total = 0
                for row, value in enumerate(inputs):
                    total += self.product(value, macro, row, column, step.bits)
                at = 4 * (macro * columns + column)
                old = _number(sums, at, 4) if step.accumulate else 0
                _store(sums, at, None if old is None else old + total)

    def input(self, start: int, row: int, bits: int) -> int | None:
        size = max(1, bits // 8)
        value = _number(self.memories["input_register"], start + row * size, size)
        return _signed(value, bits) if value is not None else None

    def product(self, value: int | None, macro: int, row: int, column: int, bits: int) -> int:
        number = int.from_bytes(bytes(self.weights[macro, row]), "little")
        every = [
            (number >> n * bits) % (1 << bits) for n in range(self.machine.bit_columns // bits)
        ]
        if value is None:
            if any(every):
                raise Trap
            return 0
        return value * _signed(every[column], bits)

    def add(self, add: Add) -> None:
        memory = self.memories["output"]
        target, left, right = (self.value(a) for a in (add.target, add.left, add.right))
        pairs = [
            (_number(memory, left + 4 * n, 4), _number(memory, right + 4 * n, 4))
            for n in range(add.elements)
        ]
        for n, (a, b) in enumerate(pairs):
            _store(memory, target + 4 * n, None if a is None or b is None else a + b)


def _signed(value: int, bits: int) -> int:
    low = value % (1 << bits)
    return low - (1 << bits) if low >> bits - 1 else low


def _number(memory: Memory, start: int, size: int) -> int | None:
    found = [memory.get(start + n) for n in range(size)]
    known = [byte for byte in found if byte is not None]
    return int.from_bytes(bytes(known), "little") if len(known) == size else None


def _store(memory: Memory, start: int, value: int | None) -> None:
    for n in range(4):
        if value is None:
            memory.pop(start + n, None)
        else:
            memory[start + n] = (value >> 8 * n) % 256
