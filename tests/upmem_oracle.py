"""A kernel run one tasklet at a time in plain Python, and random kernels to run.

The oracle shares the meaning of arithmetic and the static counts with the simulator, but none of
its vectors, masks, views or tallies: it steps through each tasklet by itself.
"""

import random
from typing import Any

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.cost.upmem_instructions import div_instructions, mul_instructions
from cim_opt.dialects import upmem
from cim_opt.simulators.elementwise import constant_value, dtype_of, function_of, quiet
from cim_opt.simulators.upmem_selection import Selection

Environment = dict[SSAValue, Any]


class Oracle:
    """Runs a kernel on DPUs whose MRAM is given as one array of bytes each."""

    def __init__(self, kernel: upmem.KernelOp, selection: Selection, mram: list[Any]):
        self.kernel = kernel
        self.selection = selection
        self.mram = mram
        self.tasklets = kernel.tasklets.value.data
        self.instructions = np.zeros((len(mram), self.tasklets), np.int64)

    @quiet()
    def run(self) -> None:
        """All phases, tasklet by tasklet in each."""
        for dpu in range(len(self.mram)):
            shared: Environment = {}
            lanes = [Lane(self, dpu, tasklet, shared) for tasklet in range(self.tasklets)]
            operations = list(self.kernel.body.block.ops)
            while operations:
                ends = [n for n, op in enumerate(operations) if isinstance(op, upmem.BarrierOp)]
                end = ends[0] if ends else len(operations)
                for lane in lanes:
                    lane.operations(operations[:end])
                operations = operations[end + 1 :]
            for lane in lanes:
                lane.count(self.kernel.body.block)


class Lane:
    """One tasklet: its values and its buffers."""

    def __init__(self, oracle: Oracle, dpu: int, tasklet: int, shared: Environment):
        self.oracle, self.dpu, self.tasklet = oracle, dpu, tasklet
        self.values: Environment = {}
        self.shared = shared

    def count(self, block: Block) -> None:
        self.issue(self.oracle.selection.blocks[block])

    def issue(self, instructions: int) -> None:
        self.oracle.instructions[self.dpu, self.tasklet] += instructions

    def get(self, value: SSAValue) -> Any:
        return self.values[value]

    def block(self, block: Block) -> list[Any]:
        """Runs a block; gives what it yields."""
        self.count(block)
        self.operations(list(block.ops))
        last = block.last_op
        return [self.get(v) for v in last.operands] if isinstance(last, scf.YieldOp) else []

    def operations(self, operations: list[Operation]) -> None:
        for op in operations:
            results = self.operation(op)
            self.values.update(zip(op.results, results, strict=True))

    def operation(self, op: Operation) -> list[Any]:
        match op:
            case arith.ConstantOp():
                return [constant_value(op)]
            case upmem.TaskletIdOp():
                return [np.int64(self.tasklet)]
            case upmem.MramOp():
                return [self.array(op)]
            case upmem.WramOp():
                return [self.buffer(op)]
            case memref.LoadOp():
                return [self.get(op.memref)[self.get(op.indices[0])]]
            case memref.StoreOp():
                self.get(op.memref)[self.get(op.indices[0])] = self.get(op.value)
                return []
            case upmem.MramReadOp() | upmem.MramWriteOp():
                return self.move(op)
            case scf.IfOp():
                blocks = (op.true_region if self.get(op.cond) else op.false_region).blocks
                return self.block(blocks[0]) if blocks else []
            case scf.ForOp():
                return self.loop(op)
            case upmem.CriticalOp():
                self.block(op.body.block)
                return []
            case upmem.ReturnOp() | scf.YieldOp():
                return []
            case _:
                return self.compute(op)

    def array(self, op: upmem.MramOp) -> Any:
        attr = op.result.type
        assert isa(attr, MemRefType)
        dtype, start = dtype_of(attr.element_type), op.offset.value.data
        size = attr.get_shape()[0] * dtype.itemsize
        return self.oracle.mram[self.dpu][start : start + size].view(dtype)

    def buffer(self, op: upmem.WramOp) -> Any:
        attr = op.result.type
        assert isa(attr, MemRefType)
        new = np.full(attr.get_shape()[0] * 8, 0xA5, np.uint8).view(dtype_of(attr.element_type))
        return new if op.shared is None else self.shared.setdefault(op.result, new)

    def move(self, op: upmem.MramReadOp | upmem.MramWriteOp) -> list[Any]:
        count, there, here = (self.get(v) for v in (op.count, op.mram_index, op.wram_index))
        mram, wram = self.get(op.mram), self.get(op.wram)
        if isinstance(op, upmem.MramReadOp):
            wram[here : here + count] = mram[there : there + count]
        else:
            mram[there : there + count] = wram[here : here + count]
        return []

    def loop(self, op: scf.ForOp) -> list[Any]:
        carried = [self.get(v) for v in op.iter_args]
        for number in range(*(int(self.get(v)) for v in (op.lb, op.ub, op.step))):
            args = [np.int64(number), *carried]
            self.values.update(zip(op.body.block.args, args, strict=True))
            carried = self.block(op.body.block)
        return carried

    def compute(self, op: Operation) -> list[Any]:
        args = [self.get(v) for v in op.operands]
        by = self.oracle.selection.operands.get(op)
        if by is not None and by.kind == "mul":
            self.issue(int(mul_instructions(args[0], args[1], by.bits)))
        elif by is not None:
            steps = div_instructions(args[0], args[1], by.bits, by.signed)
            self.issue(int(steps) + by.extra)
        result = function_of(op)(*args)
        if isinstance(op.results[0].type, IndexType):
            result = np.int64(result)
        return [result]


BUFFER = "memref<16xi32, $W>"
OPERATIONS = (
    *("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui"),
    *("divsi", "divui", "remsi", "remui", "minsi", "maxui"),
)


class RandomKernel:
    """The text of a kernel body of random operations on i32 values and two WRAM buffers.

    Byte 0 of MRAM has 16 values for each tasklet, byte 1048576 gets as many and 8 of the DPU.
    """

    def __init__(self, seed: int, tasklets: int):
        self.random = random.Random(seed)
        self.tasklets = tasklets
        self.fresh = 0
        self.budget = 30

    def text(self) -> str:
        size = 16 * self.tasklets
        lines = [f"%k{n} = arith.constant {n} : index" for n in range(17)]
        lines += [f"%i{n} = arith.constant {n} : i32" for n in (0, 1, 3, 7, 15)]
        lines += [
            f"%in = upmem.mram 0 : memref<{size}xi32, $M>",
            f"%out = upmem.mram 1048576 : memref<{size + 8}xi32, $M>",
            f"%w = upmem.wram : {BUFFER}",
            f"%v = upmem.wram : {BUFFER}",
            "%h = upmem.wram shared : memref<8xi32, $W>",
            "%t = upmem.tasklet_id : index",
            "%start = arith.muli %t, %k16 : index",
            f"upmem.mram_read %in[%start] to %w[%k0] count %k16 : memref<{size}xi32, $M>, {BUFFER}",
            f"upmem.mram_read %in[%start] to %v[%k0] count %k16 : memref<{size}xi32, $M>, {BUFFER}",
            "%first = arith.cmpi eq, %t, %k0 : index",
            "scf.if %first {",
            "  scf.for %i = %k0 to %k8 step %k1 {",
            "    memref.store %i0, %h[%i] : memref<8xi32, $W>",
            "  }",
            "}",
            "upmem.barrier",
            "%t32 = arith.index_cast %t : index to i32",
            f"%x0 = memref.load %w[%k0] : {BUFFER}",
        ]
        values = ["%t32", "%x0", "%i1", "%i7"]
        lines += self.statements(values, 6, depth=0)
        lines += [
            f"memref.store {values[-1]}, %w[%k1] : {BUFFER}",
            "upmem.mram_write %w[%k0] to %out[%start] count %k16 "
            f": {BUFFER}, memref<{size + 8}xi32, $M>",
            "upmem.barrier",
            f"%end = arith.constant {size} : index",
            "scf.if %first {",
            "  upmem.mram_write %h[%k0] to %out[%end] count %k8 "
            f": memref<8xi32, $W>, memref<{size + 8}xi32, $M>",
            "}",
        ]
        return "\n".join(lines)

    def name(self) -> str:
        self.fresh += 1
        return f"%n{self.fresh}"

    def statements(self, values: list[str], count: int, depth: int) -> list[str]:
        """Some statements; what they make is added to `values`."""
        lines: list[str] = []
        for _ in range(count):
            self.budget -= 1
            kinds = ["compute"] * 4 + ["select", "load", "load", "store", "store", "critical"]
            if depth < 3 and self.budget > 0:
                kinds += ["branch"] * 3 + ["loop"] * 3
            lines += getattr(self, f"_{self.random.choice(kinds)}")(values, depth)
        return lines

    def any(self, values: list[str]) -> str:
        # New values more often than old ones.
        return self.random.choice(values + values[-3:] * 2)

    def _compute(self, values: list[str], depth: int) -> list[str]:
        operation, name = self.random.choice(OPERATIONS), self.name()
        line = f"{name} = arith.{operation} {self.any(values)}, {self.any(values)} : i32"
        values.append(name)
        return [line]

    def condition(self, values: list[str]) -> tuple[list[str], str]:
        name, predicate = self.name(), self.random.choice(("slt", "ult", "eq", "sge"))
        right = self.random.choice((self.any(values), "%i3", "%i0"))
        return [f"{name} = arith.cmpi {predicate}, {self.any(values)}, {right} : i32"], name

    def _select(self, values: list[str], depth: int) -> list[str]:
        lines, condition = self.condition(values)
        name = self.name()
        a, b = self.any(values), self.any(values)
        values.append(name)
        return [*lines, f"{name} = arith.select {condition}, {a}, {b} : i32"]

    def index(self, values: list[str], limit: str) -> tuple[list[str], str]:
        if self.random.random() < 0.3:
            return [], f"%k{self.random.randrange(8)}"
        low, name = self.name(), self.name()
        return [
            f"{low} = arith.andi {self.any(values)}, {limit} : i32",
            f"{name} = arith.index_cast {low} : i32 to index",
        ], name

    def _load(self, values: list[str], depth: int) -> list[str]:
        lines, index = self.index(values, "%i15")
        name, array = self.name(), self.random.choice(("%w", "%v"))
        values.append(name)
        return [*lines, f"{name} = memref.load {array}[{index}] : {BUFFER}"]

    def _store(self, values: list[str], depth: int) -> list[str]:
        lines, index = self.index(values, "%i15")
        array = self.random.choice(("%w", "%v"))
        return [*lines, f"memref.store {self.any(values)}, {array}[{index}] : {BUFFER}"]

    def _critical(self, values: list[str], depth: int) -> list[str]:
        lines, index = self.index(values, "%i7")
        old, new = self.name(), self.name()
        added = self.any(values)
        return [
            *lines,
            "upmem.critical %k3 {",
            f"  {old} = memref.load %h[{index}] : memref<8xi32, $W>",
            f"  {new} = arith.addi {old}, {added} : i32",
            f"  memref.store {new}, %h[{index}] : memref<8xi32, $W>",
            "}",
        ]

    def _branch(self, values: list[str], depth: int) -> list[str]:
        lines, condition = self.condition(values)
        if self.random.random() < 0.3:
            body = self.statements(list(values), self.random.randrange(1, 4), depth + 1)
            return [*lines, f"scf.if {condition} {{", *body, "}"]
        name = self.name()
        lines.append(f"{name} = scf.if {condition} -> (i32) {{")
        for end in ("} else {", "}"):
            inside = list(values)
            lines += self.statements(inside, self.random.randrange(0, 4), depth + 1)
            lines += [f"  scf.yield {self.any(inside)} : i32", end]
        values.append(name)
        return lines

    def _loop(self, values: list[str], depth: int) -> list[str]:
        lines, end = self.index(values, "%i7")
        lower, step = f"%k{self.random.randrange(3)}", f"%k{self.random.randrange(1, 4)}"
        counter, carried, name = self.name(), self.name(), self.name()
        number = self.name()
        init = self.any(values)
        lines += [
            f"{name} = scf.for {counter} = {lower} to {end} step {step} "
            f"iter_args({carried} = {init}) -> (i32) {{",
            f"  {number} = arith.index_cast {counter} : index to i32",
        ]
        inside = [*values, carried, number]
        lines += self.statements(inside, self.random.randrange(1, 4), depth + 1)
        if self.random.random() < 0.5:
            loaded = self.name()
            lines.append(f"  {loaded} = memref.load %w[{counter}] : {BUFFER}")
            inside.append(loaded)
        lines += [f"  scf.yield {self.any(inside)} : i32", "}"]
        values.append(name)
        return lines
