"""What conversions of `pattern` programs share: a function rebuilt, its host operations copied."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from cim_opt.dialects.pattern import PatternOp
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter


def check_patterns_only(function: FuncOp, target: str) -> None:
    """Refuses kernels of `linalg` and `poly`, which only macros compute.

    On the host they would run, at no cost that anybody knows. Raises UserError.
    """
    for op in function.walk():
        if op.name.startswith(("linalg.", "poly.")) and op.name != "linalg.yield":
            raise UserError(
                f"'{op.name}' on {target}",
                "convolutions and other kernels are compiled for macros; "
                "this machine takes patterns",
                "choose target cim, or write it with pattern.group",
                location_of(op),
            )


class FunctionLowering(ABC):
    """Rebuilds a function's body; `values` maps the program's values to lowered ones."""

    def __init__(self, function: FuncOp):
        self.function = function
        self.values: dict[SSAValue, SSAValue] = {}

    def rebuild(self) -> bool:
        """Lowers the function in place; False when it holds no pattern."""
        if not self.function.body.blocks:
            return False
        old = self.function.body.block
        if not any(isinstance(op, PatternOp) for op in old.walk()):
            return False
        new = self._twin(old)
        self.lower_block(old, Emitter(new))
        self.function.detach_region(self.function.body)
        self.function.add_region(Region(new))
        return True

    @abstractmethod
    def lower_block(self, block: Block, emit: Emitter) -> None:
        """Lowers the operations of a block at the emitter's place."""

    def copy(self, op: Operation, emit: Emitter) -> None:
        """Copies a host operation, lowering what is inside of it."""
        if not any(isinstance(inner, PatternOp) for inner in op.walk()):
            copy = op.clone(self.values)
        else:
            copy = op.clone_without_regions(self.values)
            for region, target in zip(op.regions, copy.regions, strict=True):
                self._copy_blocks(region, target, emit)
        emit.insert(copy)
        self.values.update(zip(op.results, copy.results, strict=True))

    def _copy_blocks(self, region: Region, target: Region, emit: Emitter) -> None:
        for block in region.blocks:
            copy = self._twin(block)
            with emit.inside(copy):
                self.lower_block(block, emit)
            target.add_block(copy)

    def _twin(self, block: Block) -> Block:
        """An empty block with the same arguments, bound in `values`."""
        twin = Block(arg_types=[arg.type for arg in block.args])
        for before, after in zip(block.args, twin.args, strict=True):
            after.name_hint = before.name_hint
            self.values[before] = after
        return twin


def uses_any(op: Operation, values: set[SSAValue]) -> bool:
    """True when `op`, or something inside of it, uses one of the values."""
    return any(operand in values for inner in op.walk() for operand in inner.operands)
