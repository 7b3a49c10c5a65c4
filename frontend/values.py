"""What an element function gets in place of numbers and arrays: values that write down the work.

A `Scalar` stands for one element, a `Slice` for a window, a group, a small shared array or a
tensor accumulator. Both behave like NumPy values of their dtype, as far as the machines go; the
rest raises UserError with a remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import SSAValue

from cim_opt.frontend.element_types import ElementType
from cim_opt.frontend.errors import UnknownAttribute, fail, user_location
from cim_opt.frontend.kinds import is_integer
from cim_opt.frontend.scope import Scope, Traced, innermost

UNROLL_LIMIT = 256


def apply(name: str, *operands: Any) -> Any:
    """The operation `name` on the operands, element by element where one is a slice."""
    from cim_opt.frontend.operators import apply  # it makes the values of this file

    return apply(name, *operands)


class Arithmetic(Traced):
    """Python's operators, and the errors for what cannot be written down."""

    def __add__(self, other: Any) -> Any:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return apply("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply("truediv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return apply("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return apply("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return apply("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return apply("mod", other, self)

    def __divmod__(self, other: Any) -> Any:
        return apply("floordiv", self, other), apply("mod", self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return apply("floordiv", other, self), apply("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return apply("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return apply("pow", other, self)

    def __and__(self, other: Any) -> Any:
        return apply("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return apply("and", other, self)

    def __or__(self, other: Any) -> Any:
        return apply("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return apply("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return apply("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return apply("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return apply("lshift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return apply("lshift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return apply("rshift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return apply("rshift", other, self)

    def __lt__(self, other: Any) -> Any:
        return apply("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return apply("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return apply("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return apply("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return apply("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return apply("ne", self, other)

    def __neg__(self) -> Any:
        return apply("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return apply("abs", self)

    def __invert__(self) -> Any:
        return apply("invert", self)

    def __hash__(self) -> int:
        return id(self)

    def astype(self, dtype: Any) -> Any:
        """The value in another element type: a dtype, a NumPy type, or a name such as "i32".

        Integers are cut or extended as NumPy does; a float becomes the integer towards zero;
        bool is true where the value is not zero.
        """
        return apply("cast", self, dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the value."""
        return self.element.dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from cim_opt.frontend.numpy_calls import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        from cim_opt.frontend.numpy_calls import call_function

        return call_function(func, args, kwargs)

    # -- what cannot be traced -----------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        fail(
            "a Python decision (if, while, and, or, not, min, max, a < b < c) on a traced value",
            "the function runs once, for all elements",
            "use where(condition, a, b), &, | and ~, minimum and maximum",
        )

    def __int__(self) -> NoReturn:
        _no_number("int(...)", "use x.astype(np.int32)")

    def __float__(self) -> NoReturn:
        _no_number("float(...), or a function of module math,", "use x.astype(np.float32), sqrt(x)")

    def __complex__(self) -> NoReturn:
        _no_number("complex(...)", "use x.astype(np.float32)")

    def __index__(self) -> NoReturn:
        _no_number(
            "an index of a Python list, tuple or range",
            "pass the array as shared= and index the argument that the function gets",
        )

    def __round__(self, digits: int | None = None) -> NoReturn:
        _no_number("round(...)", "use floor(x + 0.5)")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        _no_number(
            "an index of a NumPy array, or an array made,",
            "pass the array as shared= and index the argument that the function gets",
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise unknown_attribute(self, name)


def _no_number(what: str, remedy: str) -> NoReturn:
    fail(f"{what} of a traced value", "the value is known on the machine only", remedy)


def unknown_attribute(value: Traced, name: str) -> UnknownAttribute:
    """The error for `value.name`, with the nearest name that there is."""
    known = [item for item in dir(type(value)) if not item.startswith("_")]
    near = difflib.get_close_matches(name, known, 1)
    remedy = f"did you mean .{near[0]}" if near else f"it has {', '.join(known)}"
    kind = type(value).__name__.lower()
    return UnknownAttribute(f"a traced {kind} has no .{name}", None, remedy, user_location())


class Scalar(Arithmetic):
    """One number: an element of an input, an accumulator, a shared number, or computed of them."""

    def __iter__(self) -> NoReturn:
        fail(
            "iteration over a traced scalar",
            "it is one number",
            "windows and groups have elements: p.window(f, x, size=W), p.group(f, x, size=G)",
        )

    def __getitem__(self, index: Any) -> NoReturn:
        fail(
            "indexing of a traced scalar",
            "it is one number",
            "windows and groups have elements: p.window(f, x, size=W), p.group(f, x, size=G)",
        )

    def __repr__(self) -> str:
        return f"<traced {self.element}>"


class Tensor(Arithmetic):
    """A 1-D tensor of the IR; `length` is DYNAMIC_INDEX (negative) for `?`."""

    def __init__(self, scope: Scope, ssa: SSAValue, element: ElementType, length: int) -> None:
        super().__init__(scope, ssa, element)
        self.length = length


class Slice(Tensor):
    """The elements of a window or group, a small shared array, or a tensor accumulator.

    Operators work element by element between slices of one length, and with scalars.
    """

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> NoReturn:
        super().__bool__()

    def __iter__(self) -> Iterator[Scalar]:
        """The elements, one by one: the function's body is written once an element."""
        self._check_unroll("a Python loop", self.length)
        return (self[index] for index in range(self.length))

    def __getitem__(self, index: Any) -> Any:
        """Element `index` (a Python integer, from the end when negative, or a traced integer).

        A Python slice gives a shorter Slice. A traced index outside the slice is an error on the
        machine.
        """
        if isinstance(index, slice):
            return self._part(range(*index.indices(self.length)))
        scope = self._scope_of(index)
        place = self._place(scope, index)
        return Scalar(scope, scope.emit(self._extract(scope, place)), self.element)

    def _extract(self, scope: Scope, place: SSAValue) -> tensor.ExtractOp:
        return tensor.ExtractOp(scope.use(self), place, self.element.attribute)

    def _part(self, places: range) -> Slice:
        self._check_unroll("a part of a slice", len(places))
        if not places:
            fail("an empty part of a slice", f"the slice has {self.length} elements")
        scope = self.scope
        parts = [scope.emit(self._extract(scope, scope.index(place))) for place in places]
        return self._like(scope, scope.emit(tensor.FromElementsOp(*parts)), len(parts))

    def _like(self, scope: Scope, ssa: SSAValue, length: int) -> Slice:
        return Slice(scope, ssa, self.element, length)

    def _check_unroll(self, what: str, count: int) -> None:
        if count > UNROLL_LIMIT:
            fail(
                f"{what} over {count} elements",
                f"it is written out, for at most {UNROLL_LIMIT}",
                "use .map, .reduce, .sum(), .window or .group of the slice",
            )

    def _scope_of(self, *others: Any) -> Scope:
        return innermost([self, *(other for other in others if isinstance(other, Traced))])

    def _place(self, scope: Scope, index: Any) -> SSAValue:
        """The index as a value of type index."""
        if isinstance(index, Scalar):
            return _traced_place(scope, index)
        if not is_integer(index):
            fail(
                f"an index of type {type(index).__name__}",
                "indices are integers, Python or traced, or Python slices",
                "cast it: i.astype(np.int32)",
            )
        if not -self.length <= index < self.length:
            fail(
                f"the index {index} is outside the slice",
                f"it has {self.length} elements",
                "make the window or group larger",
            )
        return scope.index(int(index) % self.length)

    def set_at(self, index: Any, value: Any) -> Slice:
        """A slice with element `index` replaced by `value`; this one stays as it is."""
        scope = self._scope_of(index, value)
        number = apply("convert", self.element, value, scope)
        if not isinstance(number, Scalar):
            fail("an element of a slice is set to a slice", None, "set it to one number")
        place = self._place(scope, index)
        op = tensor.InsertOp(scope.use(number), scope.use(self), place)
        return self._like(scope, scope.emit(op), self.length)

    def add_at(self, index: Any, value: Any) -> Slice:
        """A slice with `value` added to element `index`, as a histogram does."""
        return self.set_at(index, self[index] + value)

    def __setitem__(self, index: Any, value: Any) -> None:
        """`s[i] = v` and `s[i] += v`: from here on the name means the changed slice."""
        changed = self.set_at(index, value)
        if changed.scope is not self.scope:
            fail(
                "an element of a slice from outside the function is set",
                "an element function hands on what it returns, and nothing else",
                "use s = s.set_at(i, v) and return it",
            )
        self.ssa = changed.ssa

    # -- patterns over the slice ---------------------------------------------------------------

    def map(self, f: Callable[..., Any], *others: Any) -> Any:
        """f of every element (and of those of `others`, slices of the same length)."""
        return self._nested("map", f, *others)

    def reduce(self, f: Callable[..., Any], *others: Any, init: Any = None, **options: Any) -> Any:
        """f(...f(f(init, s[0]), s[1])...), as Pipeline.reduce; without `init`, as there."""
        return self._nested("reduce", f, *others, init=init, **options)

    def scan(self, f: Callable[..., Any], *others: Any, init: Any = None, **options: Any) -> Any:
        """All prefixes of the reduction, as Pipeline.scan."""
        return self._nested("scan", f, *others, init=init, **options)

    def window(self, f: Callable[..., Any], *others: Any, size: int) -> Any:
        """f of every `size` neighbours, as Pipeline.window."""
        return self._nested("window", f, *others, size=size)

    def group(self, f: Callable[..., Any], *others: Any, size: int, window: int = 1) -> Any:
        """f of every chunk of `size`, as Pipeline.group."""
        return self._nested("group", f, *others, size=size, window=window)

    def _nested(self, pattern: str, f: Callable[..., Any], *others: Any, **options: Any) -> Any:
        from cim_opt.frontend.nested import nested  # it makes slices

        return nested(pattern, f, [self, *others], **options)

    def _fold(self, operation: str) -> Any:
        def step(acc: Scalar, x: Scalar) -> Any:
            return apply(operation, acc, x)

        return self.reduce(step)

    def sum(self) -> Any:
        """The sum, in the slice's own type: cast to a wider one first where it may overflow."""
        return self._fold("add")

    def prod(self) -> Any:
        """The product, in the slice's own type."""
        return self._fold("mul")

    def min(self) -> Any:
        """The smallest element."""
        return self._fold("min")

    def max(self) -> Any:
        """The largest element."""
        return self._fold("max")

    def all(self) -> Any:
        """True when all elements are true (not zero)."""
        return self.astype(np.bool_)._fold("and")

    def any(self) -> Any:
        """True when an element is true (not zero)."""
        return self.astype(np.bool_)._fold("or")

    def __matmul__(self, other: Any) -> Any:
        return apply("mul", self, other).sum()

    def __rmatmul__(self, other: Any) -> Any:
        return apply("mul", other, self).sum()

    def __repr__(self) -> str:
        return f"<traced {self.element} x {self.length}>"


def _traced_place(scope: Scope, index: Scalar) -> SSAValue:
    from xdsl.dialects import arith

    if not index.element.is_integer:
        fail(
            f"an index of type {index.element}",
            "traced indices are integers",
            "cast it: i.astype(np.int32)",
        )
    if not index.element.signed:
        index = index.astype("i32" if index.element.width < 32 else "i64")
    return scope.emit(arith.IndexCastOp(scope.use(index), IndexType()))


def tensor_type(element: ElementType, length: int) -> TensorType:
    """The IR's type for `length` elements; DYNAMIC_INDEX for `?`."""
    return TensorType(element.attribute, [length])
