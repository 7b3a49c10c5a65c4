"""Tensors inside element functions on SIMDRAM: nothing is stored, elements are made when asked for.

A slice's element is a transposed row of elements, or the producer's element function evaluated
there; a shared tensor's element is a host scalar; the result of a nested pattern is that pattern,
evaluated at the element that is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.simdram_values import Number, Scalar, Value, VectorEmitter, reach


@dataclass(frozen=True)
class Positions:
    """Which elements of a vector the lanes hold: lane l has element start + l*stride."""

    start: Index
    stride: Index

    def of_slice(self, emit: Emitter, group: int) -> Positions:
        """The first elements of the slices that these owners see."""
        return Positions(emit.mul(self.start, group), emit.mul(self.stride, group))

    def after(self, emit: Emitter, elements: Index) -> Positions:
        """The elements so much further on."""
        return Positions(emit.add(self.start, elements), self.stride)


class View(ABC):
    """A small tensor that each lane has one of."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Elements of the tensor."""

    @abstractmethod
    def element(self, index: Index) -> Value:
        """The element that all lanes have at the same `index`."""

    def pick(self, vectors: VectorEmitter, index: Value) -> Value:
        """The element at an index; where it differs from lane to lane, by a chain of selects."""
        if isinstance(index, Number):
            return self.element(index.value)
        if isinstance(index, Scalar):
            return self.element(index.ssa)
        return pick(vectors, self, index)


@dataclass(frozen=True, eq=False)
class SliceView(View):
    """A window or group of a vector, by a function that gives its elements at positions."""

    emit: Emitter
    size: int
    first: Positions
    at: Callable[[Positions], Value]

    @property
    def length(self) -> int:
        return self.size

    def element(self, index: Index) -> Value:
        return self.at(self.first.after(self.emit, index))


@dataclass(frozen=True, eq=False)
class SharedView(View):
    """A tensor of the host, the same in all lanes."""

    emit: Emitter
    size: int
    value: SSAValue

    @property
    def length(self) -> int:
        return self.size

    def element(self, index: Index) -> Value:
        attr = self.value.type
        assert isa(attr, TensorType)
        at = self.emit.value(index)
        op = self.emit.once(
            ("extract", self.value, at),
            lambda: self.emit.insert(tensor.ExtractOp(self.value, [at], attr.element_type)),
        )
        return Scalar(op.result)


@dataclass(frozen=True, eq=False)
class ListView(View):
    """Elements that were computed one by one."""

    vectors: VectorEmitter
    elements: list[Value]

    @property
    def length(self) -> int:
        return len(self.elements)

    def element(self, index: Index) -> Value:
        if isinstance(index, int):
            return self.elements[index]
        return pick(self.vectors, self, Scalar(index))


@dataclass(frozen=True, eq=False)
class LazyView(View):
    """The result of a nested pattern."""

    size: int
    compute: Callable[[Index], Value]

    @property
    def length(self) -> int:
        return self.size

    def element(self, index: Index) -> Value:
        return self.compute(index)


@dataclass(frozen=True, eq=False)
class InsertedView(View):
    """A view with one element replaced; `index` may differ from lane to lane."""

    vectors: VectorEmitter
    base: View
    index: Value
    value: Value

    @property
    def length(self) -> int:
        return self.base.length

    def element(self, index: Index) -> Value:
        if isinstance(self.index, Number) and isinstance(index, int):
            return self.value if self.index.value == index else self.base.element(index)
        hit = equals_index(self.vectors, self.index, index, self.length)
        return self.vectors.select(hit, self.value, self.base.element(index))

    def pick(self, vectors: VectorEmitter, index: Value) -> Value:
        return self.value if index == self.index else super().pick(vectors, index)


def equals_index(vectors: VectorEmitter, value: Value, index: Index, length: int) -> Value:
    """Whether an index value of the lanes is `index`, which is below `length`; one bit."""
    if isinstance(value, SSAValue):
        return vectors.equals(value, index, length)
    return Scalar(vectors.emit.compare("eq", vectors.host(value), index))


def pick(vectors: VectorEmitter, view: View, index: Value) -> Value:
    """The element at an index that may differ from lane to lane: a chain of selects."""
    result = view.element(0)
    length = min(view.length, reach(index)) if isinstance(index, SSAValue) else view.length
    if length <= 8:
        for position in range(1, length):
            hit = equals_index(vectors, index, position, length)
            result = vectors.select(hit, view.element(position), result)
        return result
    emit = vectors.emit
    with emit.loop(1, length, 1, [vectors.vec(result)]) as loop:
        hit = equals_index(vectors, index, loop.index, length)
        loop.next = [vectors.vec(vectors.select(hit, view.element(loop.index), loop.carried[0]))]
    return loop.results[0]
