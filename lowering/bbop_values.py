"""What values of a lowered function are called in a bbop stream."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.simdram import BbopOp, FillOp, MulScalarOp, ReadOp, TransposeOp
from cim_opt.lowering.bbop_expressions import Expr

Maker = TransposeOp | FillOp | BbopOp | MulScalarOp
"""Operations whose result is a vertical object."""

INDEX_OPS: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.DivUIOp: "/",
    arith.RemUIOp: "%",
    arith.MinUIOp: "min",
    arith.MaxUIOp: "max",
}
"""Arithmetic of the host, and its symbols in a stream."""

WRAPPING = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.IndexCastOp,
    arith.TruncIOp,
    arith.ExtUIOp,
)
"""Operations on integers whose result wraps to its width, whatever the sign."""


@dataclass(frozen=True)
class HostVector:
    """A vector of the host; `own` says that the stream may write into it."""

    name: str
    length: Expr
    element: Attribute
    own: bool = False


@dataclass(frozen=True)
class PlacedObject:
    """A vertical object in the D rows from `row` on, perhaps stored complemented."""

    row: int
    width: int
    lanes: Expr
    complemented: bool

    def __str__(self) -> str:
        return f"~D{self.row}" if self.complemented else f"D{self.row}"


@dataclass(frozen=True)
class ConstantObject:
    """A scalar in all lanes without rows of its own: bbops read C0 and C1 for its bits.

    Where it is `complemented`, they read C1 for a 0.
    """

    scalar: Expr
    width: int
    lanes: Expr
    complemented: bool

    def __str__(self) -> str:
        return f"~C({self.scalar})" if self.complemented else f"C({self.scalar})"


@dataclass(frozen=True)
class HostStep:
    """What a step of the host makes."""

    name: str


StreamValue = Expr | HostVector | PlacedObject | ConstantObject | HostStep


def static_length(value: SSAValue) -> int:
    if not isa(value.type, TensorType):
        return 0
    return value.type.get_shape()[0]


def plain_name(hint: str | None) -> str:
    """A name hint that cannot be taken for an object, or for a name that the stream makes."""
    if hint is None or not hint.isidentifier() or not hint.isascii():
        return ""
    taken = hint in ("min", "max") or hint.rstrip("0123456789") in ("C", "D", "v", "s", "h", "c")
    return f"{hint}_" if taken else hint


def spelled(attr: Attribute) -> str:
    return str(attr).replace(" ", "")


def scratch_of(op: BbopOp | MulScalarOp) -> str:
    return "" if op.scratch is None else f" scratch {op.scratch.value.data}"


def has_bbops(op: Operation) -> bool:
    return any(isinstance(inner, Maker | ReadOp) for inner in op.walk())


def written_in_place(value: SSAValue, argument: BlockArgument) -> bool:
    """True when `value` is the carried vector after reads into it, and nothing else."""
    while value is not argument:
        if not isinstance(value, OpResult):
            return False
        if isinstance(value.op, ReadOp):
            value = value.op.dest
        elif isinstance(value.op, scf.ForOp):
            loop = value.op
            last = loop.body.block.last_op
            assert last is not None
            inner = loop.body.block.args[1 + value.index]
            if not written_in_place(last.operands[value.index], inner):
                return False
            value = loop.iter_args[value.index]
        else:
            return False
    return True
