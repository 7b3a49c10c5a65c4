"""From the traced block of a pipeline to a module with one function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue


def build_module(name: str, region: Region, fetched: Sequence[SSAValue]) -> ModuleOp:
    """A verified module whose function `name` computes and returns the fetched values.

    The region is copied, and stays open for more stages; what is not fetched is left out.
    """
    mapper = dict[SSAValue, SSAValue]()
    body = Region()
    region.clone_into(body, value_mapper=mapper)
    block = body.block
    results = [mapper[value] for value in fetched]
    block.add_op(func.ReturnOp(*results))
    _drop_unused(block)
    types = [arg.type for arg in block.args], [value.type for value in results]
    module = ModuleOp([func.FuncOp(name, types, body)])
    module.verify()
    return module


def _drop_unused(block: Block) -> None:
    """Erases stages and numbers that nothing uses; all of them are pure."""
    last = block.last_op
    for op in reversed(list(block.ops)):
        if op is not last and not _is_used(op):
            op.detach()
            op.erase()


def _is_used(op: Operation) -> bool:
    return any(result.uses for result in op.results)
