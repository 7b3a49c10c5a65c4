"""Where traced operations go: a block a function, each seeing the ones around it.

Element functions in the IR are isolated: they see their own arguments only. A Python function sees
the variables around it. `Scope.use` joins the two: a value of an outer scope becomes a shared
operand of the pattern, and a constant is written again inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import IRDLOperation

from cim_opt.frontend.element_types import ElementType
from cim_opt.frontend.errors import fail


class Scope:
    """The block of one traced function, or of a whole pipeline (`parent` is None).

    `captured` holds the values of the parent that became shared operands, in order. `closed` is
    set when the function has been traced: its values are then of no use to anyone.
    """

    def __init__(
        self,
        block: Block,
        parent: Scope | None = None,
        *,
        no_capture: str | None = None,
        array_argument: Callable[[Any], Traced] | None = None,
    ) -> None:
        self.block = block
        self.parent = parent
        self.closed = False
        self.captured: list[SSAValue] = []
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._no_capture = no_capture
        self._array_argument = array_argument
        self._inner: dict[SSAValue, SSAValue] = {}
        self._results: dict[tuple[Any, ...], SSAValue] = {}

    @property
    def root(self) -> Scope:
        """The scope of the pipeline."""
        return self if self.parent is None else self.parent.root

    def encloses(self, other: Scope) -> bool:
        """True when `other` is this scope or inside it."""
        return other is self or (other.parent is not None and self.encloses(other.parent))

    def emit(self, op: IRDLOperation) -> SSAValue:
        """Appends a pure operation without regions, or finds the same one; gives its result."""
        key = type(op), op.operands, tuple(op.properties.items()), op.result_types
        known = self._results.get(key)
        if known is not None:
            op.drop_all_references()
            return known
        self.block.add_op(op)
        self._results[key] = op.results[0]
        return op.results[0]

    def append(self, op: IRDLOperation) -> None:
        """Appends an operation whose results, if any, the caller knows."""
        self.block.add_op(op)

    def constant(self, attr: Attribute) -> SSAValue:
        """The value of a constant, written once a block."""
        # Any typed attribute of element_types.constant and tensor_constant will do.
        return self.emit(arith.ConstantOp(attr))  # pyright: ignore[reportArgumentType]

    def close(self) -> None:
        """Ends the function: drops what nothing uses, and lets nobody use its values."""
        for op in reversed(list(self.block.ops)):
            if op.results and not any(result.uses for result in op.results):
                op.detach()
                op.erase()
        self.closed = True

    def index(self, value: int) -> SSAValue:
        """A constant of type index."""
        return self.constant(IntegerAttr.from_index_int_value(value))

    def bind_shared(self, outer: SSAValue, inner: SSAValue) -> None:
        """Notes that `inner` is the argument for the shared operand `outer`."""
        self._inner[outer] = inner

    def use(self, value: Traced) -> SSAValue:
        """The value as this block sees it; becomes a shared operand when it is from outside."""
        value.check_open()
        if value.scope is self:
            return value.ssa
        if not value.scope.encloses(self):
            fail_foreign(value.scope, self)
        return self._from_outside(value)

    def _from_outside(self, value: Traced) -> SSAValue:
        assert self.parent is not None
        outer = self.parent.use(value)
        if outer in self._inner:
            return self._inner[outer]
        if isinstance(outer.owner, arith.ConstantOp):
            return self.constant(outer.owner.value)
        if self._no_capture is not None:
            fail(
                f"{self._no_capture} uses a value from outside",
                "it sees its arguments and constants only",
                "bring the value in through the accumulators",
            )
        inner = self.block.insert_arg(outer.type, len(self.block.args))
        inner.name_hint = outer.name_hint
        self._inner[outer] = inner
        self.captured.append(outer)
        return inner

    def array_argument(self, array: Any) -> Traced:
        """The shared argument of the pipeline for a NumPy array that a function mentions."""
        maker = self.root._array_argument
        assert maker is not None
        return maker(array)


class Traced:
    """A value of a pipeline that is being built: a place in the IR, and an element type."""

    scope: Scope
    ssa: SSAValue
    element: ElementType

    def __init__(self, scope: Scope, ssa: SSAValue, element: ElementType) -> None:
        self.scope = scope
        self.ssa = ssa
        self.element = element

    def check_open(self) -> None:
        """Raises UserError when the function that the value belongs to has ended."""
        if self.scope.closed:
            fail(
                "a value is used after the function that it belongs to has ended",
                "an element function hands on what it returns, and nothing else",
                "return the value from the function",
            )


def fail_foreign(a: Scope, b: Scope) -> None:
    """Reports two values that have no block in common."""
    if a.root is not b.root:
        fail(
            "values of two pipelines meet in one function or stage",
            "a pipeline computes with its own values",
            "execute one pipeline first and pass its result, an array, to the other",
        )
    fail(
        "a value is used outside the function that it belongs to",
        "an element function hands on what it returns, and nothing else",
        "return the value from the function",
    )


def innermost(values: Iterable[Traced]) -> Scope:
    """The scope in which all the values can be used."""
    scopes = list[Scope]()
    for value in values:
        value.check_open()
        scopes.append(value.scope)
    deepest = max(scopes, key=lambda scope: scope.depth)
    for scope in scopes:
        if not scope.encloses(deepest):
            fail_foreign(scope, deepest)
    return deepest
