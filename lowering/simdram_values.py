"""Values of element functions on SIMDRAM: vertical objects, host scalars, known numbers.

What is the same in all lanes stays on the host: a number known now (`Number`), or a scalar
that the host knows when it issues the operation (`Scalar`). It becomes an object, by a fill,
only where a bbop needs one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.simdram import (
    COMPARISONS,
    BbopOp,
    FillOp,
    MulScalarOp,
    Opcode,
    width_of,
)
from cim_opt.lowering.emit import Emitter, Index

INDEX_WIDTH = 64


@dataclass(frozen=True)
class Number:
    """A number known now, as a signed value of its type."""

    value: int
    type: Attribute


@dataclass(frozen=True)
class Scalar:
    """A host scalar."""

    ssa: SSAValue

    @property
    def type(self) -> Attribute:
        """Its type."""
        return self.ssa.type


Uniform = Number | Scalar
Value = Number | Scalar | SSAValue
"""What an element function computes with; an SSA value is a vertical object."""


def bits_of(attr: Attribute) -> int:
    """Bits of a scalar type; an index counts as 64."""
    if isinstance(attr, IndexType):
        return INDEX_WIDTH
    assert isa(attr, IntegerType)
    return attr.width.data


def number(value: int, attr: Attribute) -> Number:
    """A number wrapped to its type; i1 is 0 or 1, as `arith` shows it."""
    width = bits_of(attr)
    value &= (1 << width) - 1
    if width > 1 and value >> (width - 1):
        value -= 1 << width
    return Number(value, attr)


class VectorEmitter:
    """Emits bbops on objects of `count` lanes, leaving out what changes nothing."""

    def __init__(self, emit: Emitter, count: Index):
        self.emit = emit
        self.count = count

    def host(self, value: Uniform) -> SSAValue:
        """The host's value of a uniform."""
        if isinstance(value, Scalar):
            return value.ssa
        if isinstance(value.type, IndexType):
            return self.emit.value(value.value)
        assert isa(value.type, IntegerType)
        return self.emit.constant(IntegerAttr(value.value, value.type, truncate_bits=True))

    def vec(self, value: Value) -> SSAValue:
        """The vertical object of a value."""
        if isinstance(value, SSAValue):
            return value
        scalar = self.host(value)
        width = bits_of(value.type)
        count = self.emit.value(self.count)
        return self.emit.once_outside(
            ("fill", scalar, count),
            (scalar, count),
            lambda: self.emit.insert(FillOp(scalar, count, width)).result,
        )

    def bbop(
        self, opcode: Opcode, args: Sequence[Value], amount: int | None = None, width: int = 0
    ) -> SSAValue:
        """One bbop; `width` of its result when the operands do not say it."""
        vectors = [self.vec(value) for value in args]
        if not width:
            width = 1 if opcode in COMPARISONS else width_of(vectors[-1])
        return self.emit.once(
            (opcode, *vectors, amount, width),
            lambda: self.emit.insert(BbopOp(opcode, vectors, width, amount)).result,
        )

    # -- operations with shortcuts -------------------------------------------------------------

    def binary(self, opcode: Opcode, lhs: Value, rhs: Value) -> Value:
        """A bbop of two operands of one width."""
        if isinstance(lhs, Number) and opcode in _COMMUTATIVE:
            lhs, rhs = rhs, lhs
        if isinstance(rhs, Number):
            shortcut = self._with_number(opcode, lhs, rhs)
            if shortcut is not None:
                return shortcut
        if opcode is Opcode.MUL:
            return self._multiply(lhs, rhs)
        return self.bbop(opcode, [lhs, rhs])

    def _with_number(self, opcode: Opcode, lhs: Value, rhs: Number) -> Value | None:
        """Results that need no bbop, or a cheaper one; None when there is no shortcut."""
        width = bits_of(rhs.type)
        ones = number(-1, rhs.type).value
        if rhs.value == 0:
            if opcode in _ZERO_KEEPS:
                return lhs
            if opcode in (Opcode.MUL, Opcode.AND):
                return rhs
        if rhs.value == ones and opcode is Opcode.AND:
            return lhs
        if rhs.value == ones and opcode is Opcode.XOR:
            return self.bbop(Opcode.NOT, [lhs])
        if opcode in _SHIFTS and 0 <= rhs.value < width:
            return self.bbop(_SHIFTS[opcode], [lhs], rhs.value)
        return None

    def _multiply(self, lhs: Value, rhs: Value) -> SSAValue:
        if isinstance(rhs, SSAValue) and not isinstance(lhs, SSAValue):
            lhs, rhs = rhs, lhs
        if isinstance(lhs, SSAValue) and not isinstance(rhs, SSAValue):
            scalar = self.host(rhs)
            return self.emit.once(
                ("mul_scalar", lhs, scalar),
                lambda: self.emit.insert(MulScalarOp(lhs, scalar)).result,
            )
        return self.bbop(Opcode.MUL, [lhs, rhs])

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Per lane `then` or `otherwise`."""
        if then == otherwise:
            return then
        if isinstance(condition, Number):
            return then if condition.value else otherwise
        return self.bbop(Opcode.SELECT, [condition, then, otherwise])

    def equals(self, value: SSAValue, index: Index, length: int) -> Value:
        """Whether an index that lanes hold, signed, is `index`, which all have, below `length`."""
        limit = reach(value)
        value, signed = _fewest_rows(value)
        width = width_of(value)
        if isinstance(index, int):
            if index >= limit:
                return Number(0, i1)
            return self.bbop(Opcode.EQ, [value, number(index, IntegerType(width))])
        if length > limit:
            # Cut to the lanes' width, a large index would be one that they do hold.
            index, width = self.emit.value(self.emit.minimum(index, limit)), width + 1
            value = self.vec(self.resize(value, width, signed))
        scalar = self.emit.once(
            ("index_cast", index, width),
            lambda: self.emit.insert(IndexCastOp(index, IntegerType(width))).result,
        )
        return self.bbop(Opcode.EQ, [value, Scalar(scalar)])

    def resize(self, value: Value, width: int, signed: bool) -> Value:
        """The value in `width` bits, extended by its sign or by zeros, or truncated."""
        if isinstance(value, Number):
            have = bits_of(value.type)
            plain = value.value if signed and have > 1 else value.value & ((1 << have) - 1)
            if signed and have == 1:
                plain = -(value.value & 1)
            return number(plain, IntegerType(width))
        vector = self.vec(value)
        have = width_of(vector)
        if have == width:
            return vector
        if have > width:
            return self.bbop(Opcode.TRUNC, [vector], width=width)
        return self.bbop(Opcode.SEXT if signed else Opcode.ZEXT, [vector], width=width)


def _fewest_rows(value: SSAValue) -> tuple[SSAValue, bool]:
    """An index with the same values in fewer rows, where it is an extension; and its sign."""
    producer = value.owner
    if isinstance(producer, BbopOp) and producer.opcode.data is Opcode.ZEXT:
        return producer.args[0], False
    return value, True


def reach(value: SSAValue) -> int:
    """The least number above all indices that the lanes of `value` can hold."""
    shortest, signed = _fewest_rows(value)
    return 1 << (width_of(shortest) - 1 if signed else width_of(shortest))


_COMMUTATIVE = {Opcode.ADD, Opcode.MUL, Opcode.AND, Opcode.OR, Opcode.XOR}
_ZERO_KEEPS = {
    Opcode.ADD,
    Opcode.SUB,
    Opcode.OR,
    Opcode.XOR,
    Opcode.SHL,
    Opcode.SHRU,
    Opcode.SHRS,
    Opcode.REMU,
    Opcode.REMS,
}
_SHIFTS = {
    Opcode.SHL: Opcode.SHL_CONST,
    Opcode.SHRU: Opcode.SHRU_CONST,
    Opcode.SHRS: Opcode.SHRS_CONST,
}
