"""Column blocks: how folds and scans lie over the lanes of SIMDRAM."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from cim_opt.lowering.emit import Index


@dataclass(frozen=True)
class ColumnBlocks:
    """`used` lanes with `size` owners each, and `rest` owners behind them."""

    owners: Index
    size: Index
    used: Index
    rest: Index


def scalar_type(value: SSAValue) -> Attribute:
    """A scalar's type, or a tensor's element type."""
    return value.type.element_type if isa(value.type, TensorType) else value.type
