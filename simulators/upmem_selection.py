"""Instruction selection for a DPU: how many instructions each block of a kernel takes.

`select(kernel, machine)` looks at the kernel once and gives a count for one execution of each
block (blocks nested in it have their own) and the operations whose count depends on the operands
that the simulator sees. What is modelled:

- constants are immediates, the tasklet's number is a register: free;
- a comparison whose one use is an `if` or a `select` beside it fuses with its branch, and the
  branch of a comparison with 0 fuses with the operation that made the compared value;
- loads extend for free when all uses of the loaded value extend it alike;
- products of values that are extended from 8 or 16 bits are short (`upmem_products.py`);
- in an innermost loop, the address of an access is a linear function of the induction variable for
  most accesses: accesses to one array that differ by a constant share one pointer, bumped once an
  iteration, and the constant is the offset in the instruction. Other addresses take one `lsl_add`,
  shared by the accesses of a block that use it;
- sums and products that are linear in a loop's induction variable are additions
  (`upmem_strength.py`);
- operands of a routine that are used again, or come from outside the loop, are moved;
- a loop counts down (1 instruction an iteration) when its induction variable is used for addresses
  or such sums only, else it bumps and compares (2).

`addressing` chooses how addresses in innermost loops are made: `pointer` as said above; `index`
keeps the induction variable and makes addresses from it, so a loop always takes 2 instructions;
`compiled` does what measured loops of the vendor's compiler do: indices where a loop stores in
every iteration, pointers elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects import memref, scf
from xdsl.ir import Block, Operation, SSAValue

from cim_opt.cost import upmem_instructions as cost
from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine
from cim_opt.locations import location_of
from cim_opt.simulators.upmem_addresses import Addresses, constant_of
from cim_opt.simulators.upmem_rules import CALL_INSTRUCTIONS, RULES, OperandCost
from cim_opt.simulators.upmem_strength import Reduction, reduction_of

Addressing = Literal["pointer", "index", "compiled"]

LONGEST_INLINE = 16
"""An operation that takes more instructions is a routine that is called."""


@dataclass
class Selection:
    """Instructions of a kernel: for one execution of each block, and by operand values.

    `code` is how many instructions its text has; a routine that it calls counts as the call.
    """

    blocks: dict[Block, int] = field(default_factory=dict[Block, int])
    code: int = 0
    transfers: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """Of the counts of blocks, what each transfer takes."""
    operands: dict[Operation, OperandCost] = field(default_factory=dict[Operation, OperandCost])


def select(
    kernel: upmem.KernelOp, machine: UpmemMachine, addressing: Addressing = "pointer"
) -> Selection:
    """Instructions of every block of `kernel`.

    Raises UserError, with the operation's place, for an operation whose cost is not known.
    """
    selector = Selector(machine, addressing)
    selector.block(kernel.body.block)
    if selector.result.code > machine.iram_instructions:
        raise UserError(
            f"kernel @{kernel.sym_name.data} has about {selector.result.code} instructions",
            f"the instruction memory of {machine.name} holds {machine.iram_instructions}",
            "use loops, or split it into several kernels",
            location_of(kernel),
        )
    return selector.result


# -- counting ------------------------------------------------------------------------------------


class Selector:
    def __init__(self, machine: UpmemMachine, addressing: Addressing):
        self.machine = machine
        self.addressing: Addressing = addressing
        self.result = Selection()
        self.addresses = Addresses()
        self.reductions: dict[Block, Reduction] = {}
        self.reduced: dict[Operation, int] = {}

    def block(self, block: Block) -> None:
        """Counts a block and everything nested in it."""
        for op in block.walk():
            if isinstance(op, memref.LoadOp | memref.StoreOp):
                self.addresses.access(op, op.memref, op.indices[0])
        for op in block.walk():
            if isinstance(op, scf.ForOp):
                self._reduce(op)
        self._count(block)

    def _reduce(self, op: scf.ForOp) -> None:
        reduction = reduction_of(op, self.addresses.absorbed)
        if reduction is not None:
            self.reductions[op.body.block] = reduction
            self.reduced |= reduction.taken

    def _count(self, block: Block) -> None:
        total = len(self.addresses.computed.get(block, ()))
        for op in block.ops:
            total += self.op(op)
            for region in op.regions:
                for inner in region.blocks:
                    self._count(inner)
        self.add(block, total)

    def add(self, block: Block, instructions: int) -> None:
        """Adds to the count of a block."""
        self.result.blocks[block] = self.result.blocks.get(block, 0) + instructions

    def op(self, op: Operation) -> int:
        """Instructions of one operation, without those of its regions."""
        if op in self.addresses.absorbed:
            return 0
        if op in self.reduced:
            self.result.code += self.reduced[op]
            return self.reduced[op]
        rule = RULES.get(op.name)
        if rule is None:
            raise UserError(
                f"no instruction cost for '{op.name}' in a kernel",
                "a DPU runs integer and basic float operations",
                "compute it from those, or on the host",
                location_of(op),
            )
        try:
            taken = int(rule(self, op))
        except cost.CostUnknown as error:
            raise UserError(
                f"'{op.name}': {error}", None, "use another width", location_of(op)
            ) from error
        if isinstance(op, upmem.MramReadOp | upmem.MramWriteOp):
            self.result.transfers[op] = taken
        by_values = self.result.operands.get(op)
        if by_values is not None:
            self.result.code += by_values.code
        else:
            self.result.code += CALL_INSTRUCTIONS if taken > LONGEST_INLINE else taken
        return taken

    def loop(self, op: scf.ForOp) -> int:
        """Adds an iteration's overhead to the body; gives what the loop takes before it."""
        body = op.body.block
        pointers = len(self.addresses.pointers.get(body, ()))
        invariant = len(self.addresses.invariant.get(body, ()))
        counter = 1 if self._counts_down(op) else cost.LOOP_INSTRUCTIONS
        self.add(body, pointers + counter)
        guard = 0 if _known_to_run(op) else 1
        starts = pointers if self._by_pointer(body) else 0
        starts += self.reductions[body].before if body in self.reductions else 0
        moves = sum(_is_copied(value) for value in op.iter_args)
        return 1 + guard + starts + invariant + moves

    def _counts_down(self, op: scf.ForOp) -> bool:
        body = op.body.block
        if not all(self._absorbed(use.operation) for use in body.args[0].uses):
            return False
        return self._by_pointer(body) or not self.addresses.pointers.get(body)

    def _by_pointer(self, body: Block) -> bool:
        """Whether moving addresses in a loop are pointers that it bumps."""
        if self.addressing == "compiled":
            return body not in self.addresses.stored
        return self.addressing == "pointer"

    def _absorbed(self, user: Operation) -> bool:
        if user in self.addresses.absorbed or user in self.reduced:
            return True
        return isinstance(user, memref.LoadOp | memref.StoreOp)


def _is_copied(value: SSAValue) -> bool:
    """Whether a loop's first value is moved into its register; one with no other use is there."""
    uses = sum(1 for _ in value.uses)
    return uses > 1 or constant_of(value) is not None


def _known_to_run(op: scf.ForOp) -> bool:
    lower, upper = constant_of(op.lb), constant_of(op.ub)
    return lower is not None and upper is not None and lower < upper
