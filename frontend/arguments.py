"""The arguments of a pipeline's function: arrays and numbers of the user, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from cim_opt.frontend.element_types import ElementType, element_type
from cim_opt.frontend.errors import fail, user_frame
from cim_opt.frontend.kinds import Array, is_array, is_numpy_scalar
from cim_opt.frontend.regions import ssa_name
from cim_opt.frontend.scope import Scope, fail_foreign
from cim_opt.frontend.sizes import Extent
from cim_opt.frontend.values import Scalar, tensor_type
from cim_opt.frontend.vectors import Vector


@dataclass
class _Argument:
    """One argument; `data` is the user's own array, read when the pipeline is executed."""

    name: str
    element: ElementType
    ssa: SSAValue
    data: Array | None


class Arguments:
    """Makes the function's arguments; `n` is the pipeline's length, None for `?`."""

    def __init__(self, scope: Scope, n: int | None) -> None:
        self._scope = scope
        self._fixed = n is not None
        self._n = None if n is None else int(n)
        self._all: list[_Argument] = []
        self._values: dict[tuple[int, Attribute], Vector | Scalar] = {}
        self._keep: list[Any] = []  # so that no id is used twice
        self._declared: list[Vector] = []

    # -- what stages pass ----------------------------------------------------------------------

    def operands(self, items: Sequence[Any]) -> list[Vector | Scalar]:
        """The positional operands of a stage: vectors of one length, and scalars."""
        derived = [item for item in items if isinstance(item, Vector)]
        extent = derived[0].extent if derived else None
        operands = [self._operand(item, extent) for item in items]
        vectors = [operand for operand in operands if isinstance(operand, Vector)]
        if not vectors:
            fail("a stage without an input", "it runs over 1-D arrays or vectors", "pass one")
        for vector in vectors:
            if not vector.extent.same(vectors[0].extent):
                fail(
                    f"inputs of lengths {vectors[0].extent} and {vector.extent} in one stage",
                    "this length must be the same for all inputs of a stage",
                    "use another stage, or another Pipeline",
                )
        return operands

    def _operand(self, item: Any, extent: Extent | None) -> Vector | Scalar:
        if isinstance(item, Vector | Scalar):
            return self._own(item)
        if is_array(item):
            return self.vector(item, extent)
        if is_numpy_scalar(item):
            return self._scalar(item)
        fail(
            f"an input of type {type(item).__name__}",
            "inputs are 1-D NumPy arrays and results of stages",
            "convert it, np.array(x, np.int32); numbers can be written in the function",
        )

    def shared(self, item: Any) -> Vector | Scalar:
        """An operand that all elements share: a number with a type, or a small vector."""
        if isinstance(item, Scalar):
            return self._own(item)
        if isinstance(item, Vector):
            if item.length < 0:
                fail(
                    "a shared vector of unknown length",
                    "shared vectors are small and of a fixed length",
                    "give the pipeline its length, Pipeline(n)",
                )
            return self._own(item)
        if is_array(item):
            return self.small(item)
        if is_numpy_scalar(item):
            return self._scalar(item)
        fail(
            f"a shared operand of type {type(item).__name__}",
            "these are NumPy scalars, small 1-D arrays and results of stages",
            "write np.int32(...) or another type; Python numbers can be written in the function",
        )

    def _own(self, item: Any) -> Any:
        item.check_open()
        if item.scope is not self._scope:
            fail_foreign(item.scope, self._scope)
        return item

    # -- making them ---------------------------------------------------------------------------

    def vector(self, array: Array, extent: Extent | None, name: str | None = None) -> Vector:
        """The argument for an input array: of the pipeline's length, or of `extent`'s."""
        element = element_type(array.dtype)
        _check_flat(array)
        if extent is None or extent.known != len(array):
            extent = self._main_extent(len(array))
        key = id(array), tensor_type(element, extent.in_type)
        found = self._values.get(key)
        if isinstance(found, Vector):
            return found
        ssa = self._add(array, element, tensor_type(element, extent.in_type), name)
        vector = Vector(self._scope, ssa, element, extent)
        self._values[key] = vector
        return vector

    def _main_extent(self, length: int) -> Extent:
        if self._n is None:
            self._n = length
            for vector in self._declared:
                vector.extent = Extent(("n",), length, self._fixed)
        if length != self._n:
            fail(
                f"an array of {length} elements in a pipeline of {self._n}",
                "this length must be the same across all stages",
                "use another Pipeline for it, or shared= when all elements need the whole array",
            )
        return Extent(("n",), self._n, self._fixed)

    def declared(self, element: ElementType, name: str) -> Vector:
        """An argument whose array comes with `execute`."""
        extent = Extent(("n",), self._n, self._fixed)
        ssa = self._add(None, element, tensor_type(element, extent.in_type), name)
        vector = Vector(self._scope, ssa, element, extent)
        self._declared.append(vector)
        return vector

    def small(self, array: Array) -> Vector:
        """The argument for a small array that all elements share."""
        element = element_type(array.dtype)
        _check_flat(array)
        attr = tensor_type(element, len(array))
        found = self._values.get((id(array), attr))
        if isinstance(found, Vector):
            return found
        extent = Extent(("shared", len(array)), len(array), True)
        vector = Vector(self._scope, self._add(array, element, attr, None), element, extent)
        self._values[id(array), attr] = vector
        return vector

    def _scalar(self, number: Any) -> Scalar:
        element = element_type(number.dtype)
        found = self._values.get((id(number), element.attribute))
        if isinstance(found, Scalar):
            return found
        ssa = self._add(number, element, element.attribute, None)
        scalar = Scalar(self._scope, ssa, element)
        self._values[id(number), element.attribute] = scalar
        return scalar

    def _add(self, data: Any, element: ElementType, attr: Attribute, name: str | None) -> SSAValue:
        block = self._scope.block
        explicit = name is not None
        name = ssa_name(name if explicit else _variable_name(data))
        if explicit and (name is None or any(a.name == name for a in self._all)):
            fail("an input's name is not an identifier, or used already", None, "name it otherwise")
        name = self._unique(name)
        ssa = block.insert_arg(attr, len(block.args))
        ssa.name_hint = name
        self._keep.append(data)
        array = None if data is None else np.asarray(data)
        self._all.append(_Argument(name, element, ssa, array))
        return ssa

    def _unique(self, name: str | None) -> str:
        taken = {argument.name for argument in self._all}
        if name is None:
            name = f"arg{len(self._all)}"
        candidate, count = name, 2
        while candidate in taken:
            candidate, count = f"{name}{count}", count + 1
        return candidate

    # -- execution -----------------------------------------------------------------------------

    def bound(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """The arrays of all arguments by name, in the dtypes of the simulators."""
        names = [a.name for a in self._all if a.data is None]
        for name in given:
            if name not in names:
                fail(
                    f"there is no declared input {name!r}",
                    f"declared are: {', '.join(names) or 'none'}",
                    'declare it, p.input(np.int32, "a")',
                )
        arrays = {a.name: self._bind(a, given) for a in self._all}
        lengths = {name: len(arrays[name]) for name in names}
        if self._n is not None:
            lengths["the pipeline"] = self._n
        if len(set(lengths.values())) > 1:
            text = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            fail(f"inputs of different lengths ({text})", "this length must be the same")
        return arrays

    def _bind(self, argument: _Argument, given: Mapping[str, Any]) -> Array:
        data = argument.data
        if data is None:
            data = self._given(argument, given)
        data = np.ascontiguousarray(data, argument.element.dtype).reshape(data.shape)
        return data.view(argument.element.storage)

    def _given(self, argument: _Argument, given: Mapping[str, Any]) -> Array:
        name = argument.name
        if name not in given:
            fail(
                f"the input {name} has no data",
                "it was declared with an element type only",
                f"execute(inputs={{{name!r}: array}})",
            )
        array = given[name]
        if not is_array(array) or element_type(array.dtype) != argument.element:
            fail(
                f"the input {name} is not an array of {argument.element}",
                "types do not change by themselves",
                f"convert it, .astype(np.{argument.element})",
            )
        _check_flat(array)
        return array


def _check_flat(array: Array) -> None:
    if array.ndim != 1:
        fail(
            f"an array of {array.ndim} dimensions",
            "inputs have one dimension; rows of a matrix are groups",
            "flatten it, x.ravel(), and use p.group(f, x, size=columns)",
        )


def _variable_name(data: Any) -> str | None:
    """The name of the user's variable that holds `data`, if there is one."""
    frame = user_frame()
    if data is None or frame is None:
        return None
    for names in (frame.f_locals, frame.f_globals):
        for name, value in names.items():
            if value is data and not name.startswith("_"):
                return name
    return None
