"""Vectors of a pipeline: inputs and results of stages."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from cim_opt.frontend.element_types import INT64, ElementType
from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import is_integer
from cim_opt.frontend.operators import as_slice
from cim_opt.frontend.scope import Scope
from cim_opt.frontend.sizes import Extent
from cim_opt.frontend.values import Arithmetic, Scalar, Tensor, tensor_type


class Vector(Tensor):
    """An input or a result of a stage; later stages and `fetch` take it.

    Inside an element function it stands for a small array that all elements share, when its
    length is fixed.
    """

    def __init__(
        self,
        scope: Scope,
        ssa: SSAValue,
        element: ElementType,
        extent: Extent,
        count: SSAValue | None = None,
    ) -> None:
        super().__init__(scope, ssa, element, extent.in_type)
        self.extent = extent
        self._count = count
        self._length: Scalar | None = None

    @property
    def count(self) -> Scalar:
        """How many elements a filter kept, an int64 that stages and `fetch` take."""
        if self._count is None:
            fail(
                "the count of a vector that is not a filter's result",
                "other vectors have a length that is known beforehand",
                "use len(x)",
            )
        if self._length is None:
            ssa = self.scope.emit(arith.IndexCastOp(self._count, INT64.attribute))
            self._length = Scalar(self.scope, ssa, INT64)
        return self._length

    def __len__(self) -> int:
        """The number of elements, where it is known before the pipeline runs."""
        if self.extent.known is None:
            fail(
                "the length of this vector is not known before the pipeline runs",
                "filters, and inputs without data, have such lengths",
                "use len(result[x]) after execute, or x.count in a later stage",
            )
        return self.extent.known

    def __bool__(self) -> NoReturn:
        super().__bool__()

    def __getitem__(self, index: Any) -> Any:
        """Elements a to b of the vector, `x[a:b]`; in an element function also the element at a
        traced place of a small shared vector.
        """
        if isinstance(index, slice):
            return self._part(cast("slice[Any, Any, Any]", index))
        if not isinstance(index, Arithmetic) or index.scope.parent is None:
            _outside("indexing")
        return as_slice(self)[index]

    def _part(self, part: slice[Any, Any, Any]) -> Vector:
        most = self.extent.known
        first: Any = 0 if part.start is None else part.start
        last: Any = most if part.stop is None else part.stop
        whole = is_integer(first) and is_integer(last) and part.step in (None, 1)
        if not whole or not 0 <= first <= last or (most is not None and last > most):
            ends = ":".join("" if end is None else str(end) for end in (part.start, part.stop))
            step = "" if part.step is None else f":{part.step}"
            fail(
                f"the part [{ends}{step}] of a vector of {self.extent} elements",
                "a part is of Python integers, from 0 up to the length, without a step",
                "write x[a:b]",
            )
        length = int(last - first)
        attr = tensor_type(self.element, length)
        cut = tensor.ExtractSliceOp(self.ssa, [int(first)], [length], [1], attr)
        extent = Extent(("cut", self.extent.origin, int(first), length), length, True)
        return Vector(self.scope, self.scope.emit(cut), self.element, extent)

    def __iter__(self) -> NoReturn:
        _outside("iteration")

    def __matmul__(self, other: Any) -> Any:
        return as_slice(self) @ other

    def __rmatmul__(self, other: Any) -> Any:
        return other @ as_slice(self)

    def __repr__(self) -> str:
        return f"<vector of {self.extent} {self.element}>"


def _outside(what: str) -> NoReturn:
    fail(
        f"{what} of a vector outside a stage",
        "a vector has no elements before the pipeline runs",
        "use p.map, p.reduce, or result[x] after execute",
    )
