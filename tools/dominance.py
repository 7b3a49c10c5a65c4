"""A check that xDSL's verifier leaves out: no value is used where it has no definition yet.

Only inside `func.func`: elsewhere (modules, hardware dialects) the order may have no meaning.
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo


def early_uses(module: ModuleOp) -> Iterator[tuple[Operation, SSAValue]]:
    """Each operation in a function with an operand that may not be defined when it runs.

    The module must verify otherwise. Uses in blocks that nothing reaches are not reported.
    """
    for op in module.walk():
        if isinstance(op, FuncOp):
            yield from _Order(op).early_uses()


class _Order:
    """The order of definitions in one function."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        # In a walk an operation comes before all that follows it in its block.
        self._position = {op: i for i, op in enumerate(function.walk())}
        self._dominance: dict[Region, DominanceInfo] = {}

    def early_uses(self) -> Iterator[tuple[Operation, SSAValue]]:
        for op in self._position:
            for operand in op.operands:
                if not self._is_defined_at(operand, op):
                    yield op, operand

    def _is_defined_at(self, value: SSAValue, user: Operation) -> bool:
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        region = None if block is None else block.parent
        around = _ancestor_in(region, user)
        if block is None or region is None or around is None or around.parent is None:
            return False
        if around.parent is not block:
            return self._reaches(region, block, around.parent)
        if isinstance(owner, Block):
            return True
        # Equal when an operation uses its own result, or its region does.
        return self._position[owner] < self._position[around]

    def _reaches(self, region: Region, block: Block, user_block: Block) -> bool:
        """Whether every way to `user_block` leads through `block`, or there is no way."""
        if region not in self._dominance:
            self._dominance[region] = DominanceInfo(region)
        info = self._dominance[region]
        entry = region.blocks[0]
        return info.dominates(block, user_block) or not info.dominates(entry, user_block)


def _ancestor_in(region: Region | None, op: Operation) -> Operation | None:
    """`op` or the operation around it that stands directly in `region`; None when none does."""
    current: Operation | None = op
    while current is not None and current.parent_region() is not region:
        current = current.parent_op()
    return current
