"""Builds pattern operations from Python functions, for pipelines and for slices alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, UnitAttr
from xdsl.ir import Region, SSAValue

from cim_opt.dialects import pattern
from cim_opt.frontend.element_types import (
    ElementType,
    constant,
    element_type,
    tensor_constant,
)
from cim_opt.frontend.errors import fail
from cim_opt.frontend.kinds import as_list, is_array, is_numpy_scalar, is_python_number
from cim_opt.frontend.regions import Function, Parameter, Trace
from cim_opt.frontend.scope import Scope
from cim_opt.frontend.values import Scalar, Slice, Tensor, tensor_type

ELEMENTWISE: dict[tuple[bool, bool], type[pattern.PatternOp]] = {
    (False, False): pattern.MapOp,
    (True, False): pattern.WindowOp,
    (False, True): pattern.GroupOp,
    (True, True): pattern.WindowGroupOp,
}
FILTERS: dict[tuple[bool, bool], type[pattern.FilterBase]] = {
    (False, False): pattern.FilterOp,
    (True, False): pattern.WindowFilterOp,
    (False, True): pattern.GroupFilterOp,
    (True, True): pattern.WindowGroupFilterOp,
}


@dataclass(frozen=True)
class Stage:
    """A pattern that is to be built: its operands in the order of the function's arguments."""

    scope: Scope
    f: Function
    operands: Sequence[Tensor | Scalar | Slice]
    """Inputs (Tensor, not Slice at the level of a pipeline) and shared operands."""
    is_input: Sequence[bool]
    window: int | None = None
    group: int | None = None
    what: str = "function"

    @property
    def inputs(self) -> list[Tensor]:
        """The vectors or slices that are taken element by element."""
        pairs = zip(self.operands, self.is_input, strict=True)
        return [o for o, is_input in pairs if is_input and isinstance(o, Tensor)]

    @property
    def shared(self) -> list[Tensor | Scalar]:
        """What every call of the function sees whole."""
        return [o for o, is_input in zip(self.operands, self.is_input, strict=True) if not is_input]

    @property
    def sizes(self) -> list[int]:
        """Window and group size, those that there are, in the dialect's order."""
        return [size for size in (self.window, self.group) if size is not None]

    @property
    def kind(self) -> tuple[bool, bool]:
        """(windowed, grouped)."""
        return self.window is not None, self.group is not None

    @property
    def owners(self) -> int:
        """How many times the function runs; DYNAMIC_INDEX when no type says it."""
        n = max(value.length for value in self.inputs)
        if n == DYNAMIC_INDEX:
            return DYNAMIC_INDEX
        return (n - (self.window or 1) + 1) // (self.group or 1)

    def parameters(self) -> list[Parameter]:
        """The region's parameters: the inputs, then the shared operands."""
        length = None
        if self.sizes:
            length = sum(self.sizes) - len(self.sizes) + 1
        elements = [Parameter(value.element, length) for value in self.inputs]
        shared = [
            Parameter(
                value.element,
                value.length if isinstance(value, Tensor) else None,
                self.scope.use(value),
            )
            for value in self.shared
        ]
        return elements + shared

    def order(self, before: int = 0) -> list[int]:
        """The region's parameters in the order of the function's arguments."""
        next_input, next_shared = before, before + len(self.inputs)
        order = list(range(before))
        for is_input in self.is_input:
            order.append(next_input if is_input else next_shared)
            next_input += is_input
            next_shared += not is_input
        return order

    def input_values(self) -> list[SSAValue]:
        """The inputs, seen from where the stage stands."""
        return [self.scope.use(value) for value in self.inputs]

    def shared_values(self, trace: Trace) -> list[SSAValue]:
        """The shared operands: those that were passed, and those that the function mentions."""
        return [*(self.scope.use(value) for value in self.shared), *trace.scope.captured]


@dataclass(frozen=True)
class Result:
    """One result of a stage: length None for a scalar, DYNAMIC_INDEX for `?`."""

    ssa: SSAValue
    element: ElementType
    length: int | None


def _traced(stage: Stage) -> Trace:
    return Trace(stage.f, stage.scope, stage.parameters(), order=stage.order(), what=stage.what)


def build_elementwise(stage: Stage) -> list[Result]:
    """Builds a map, window, group or both; one result for each value that the function returns."""
    trace = _traced(stage)
    values = [trace.constant_or_value(result) for result in trace.results]
    elements = [_scalar_result(stage, value).element for value in values]
    region = trace.finish([trace.use(value) for value in values])
    types = [tensor_type(element, stage.owners) for element in elements]
    operation = ELEMENTWISE[stage.kind]
    op = operation(stage.input_values(), stage.shared_values(trace), types, region, stage.sizes)
    stage.scope.append(op)
    return [Result(o, e, stage.owners) for o, e in zip(op.outs, elements, strict=True)]


def _scalar_result(stage: Stage, value: Scalar | Slice) -> Scalar:
    if isinstance(value, Scalar):
        return value
    fail(
        f"the {stage.what} returns a slice of {value.length} elements",
        "it returns numbers, one call gives one element of each result",
        "reduce it, such as s.sum(), or take an element, s[0]",
        stage.f,
    )


def build_filter(stage: Stage) -> tuple[list[Result], SSAValue]:
    """Builds a filter; its results are the kept vectors, and then their length, an index."""
    trace = _traced(stage)
    values = [trace.constant_or_value(result) for result in trace.results]
    condition, kept = values[0], values[1:]
    if not isinstance(condition, Scalar) or not condition.element.is_bool:
        fail(
            f"the {stage.what} returns {condition!r} as its condition",
            "what a filter's function returns first is bool: keep the element or not",
            "compare it, such as x != 0",
            stage.f,
        )
    inputs = trace.arguments[: len(stage.inputs)]
    kept = kept or inputs
    for value in kept:
        _check_kept(stage, trace, value, inputs)
    region = trace.finish([trace.use(value) for value in (condition, *kept)])
    types = [tensor_type(value.element, DYNAMIC_INDEX) for value in kept]
    operation = FILTERS[stage.kind]
    op = operation(
        stage.input_values(),
        stage.shared_values(trace),
        [*types, IndexType()],
        region,
        stage.sizes,
    )
    stage.scope.append(op)
    results = [
        Result(out, value.element, DYNAMIC_INDEX)
        for out, value in zip(op.outs[:-1], kept, strict=True)
    ]
    return results, op.outs[-1]


def _check_kept(
    stage: Stage, trace: Trace, value: Scalar | Slice, inputs: Sequence[Scalar | Slice]
) -> None:
    if isinstance(value, Scalar) or any(trace.use(value) is i.ssa for i in inputs):
        return
    fail(
        f"the {stage.what} keeps a computed slice",
        "a filter keeps numbers, or windows and groups as they came in",
        "return the condition only, or numbers after it",
        stage.f,
    )


# -- reduce and scan ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """What a reduce or scan has besides its stage."""

    init: Any = None
    combine: Function | None = None
    exclusive: bool = False
    scan: bool = False
    types: list[Parameter] = field(default_factory=list[Parameter])


def build_fold(stage: Stage, fold: Fold) -> list[Result]:
    """Builds a reduce or scan; one result an accumulator."""
    scope = stage.scope
    inits, accumulators = _accumulators(stage, fold)
    before = len(accumulators)
    trace = Trace(
        stage.f,
        scope,
        [*accumulators, *stage.parameters()],
        order=stage.order(before),
        what=stage.what,
    )
    if len(trace.results) != before:
        fail(
            f"the {stage.what} returns {len(trace.results)} values for {before} accumulators",
            "it returns the new accumulators, all of them",
            None,
            stage.f,
        )
    pairs = list(zip(trace.results, accumulators, strict=True))
    region = trace.finish([trace.typed(result, parameter) for result, parameter in pairs])
    combine = _combine_region(scope, fold, accumulators)
    _check_combine(stage, accumulators, combine)
    values = [
        scope.constant(_zero(a.element)) if init is None else init
        for init, a in zip(inits, accumulators, strict=True)
    ]
    operation = pattern.ScanOp if fold.scan else pattern.ReduceOp
    op = operation(stage.input_values(), values, stage.shared_values(trace), region, combine)
    if fold.exclusive:
        op.properties["exclusive"] = UnitAttr()
    if fold.init is None:
        _set_neutral(stage, op, accumulators)
    scope.append(op)
    length = max(value.length for value in stage.inputs)
    return [
        Result(out, a.element, length if fold.scan else a.length)
        for out, a in zip(op.outs, accumulators, strict=True)
    ]


def _zero(element: ElementType) -> Any:
    return constant(0, element)


def _accumulators(stage: Stage, fold: Fold) -> tuple[list[SSAValue | None], list[Parameter]]:
    """The initial values, None where they are to be found out, and their types."""
    if fold.init is None:
        return [None for _ in stage.inputs], [Parameter(i.element) for i in stage.inputs]
    given = as_list(fold.init)
    defaults: list[ElementType | None] = [value.element for value in stage.inputs]
    if len(given) != len(stage.inputs):
        same = len({value.element for value in stage.inputs}) == 1
        defaults = [stage.inputs[0].element if same else None] * len(given)
    pairs = [_init(stage, g, d) for g, d in zip(given, defaults, strict=True)]
    return [ssa for ssa, _ in pairs], [parameter for _, parameter in pairs]


def _init(stage: Stage, value: Any, default: ElementType | None) -> tuple[SSAValue, Parameter]:
    scope = stage.scope
    if isinstance(value, Tensor):
        return scope.use(value), Parameter(value.element, value.length)
    if isinstance(value, Scalar):
        return scope.use(value), Parameter(value.element)
    if is_array(value) and value.ndim == 1:
        element = element_type(value.dtype)
        return scope.constant(tensor_constant(value, element)), Parameter(element, len(value))
    if is_numpy_scalar(value):
        element = element_type(value.dtype)
        return scope.constant(constant(value.item(), element)), Parameter(element)
    if is_python_number(value) and default is not None:
        return scope.constant(constant(value, default)), Parameter(default)
    _fail_init(value)


def _fail_init(value: Any) -> NoReturn:
    if is_python_number(value):
        fail(
            f"the type of init={value} is not known",
            "a Python number takes the type of the input that it belongs to",
            f"write np.int32({value}), or another type",
        )
    kind = f"a {value.ndim}-D array" if is_array(value) else type(value).__name__
    fail(
        f"init= is {kind}",
        "accumulators start from numbers, 1-D arrays, or a tuple of them",
        "write init=0, init=np.zeros(bins, np.int32)",
    )


def _combine_region(scope: Scope, fold: Fold, accumulators: Sequence[Parameter]) -> Region | None:
    if fold.combine is None:
        return None
    elements = [Parameter(a.element) for a in accumulators]
    trace = Trace(
        fold.combine,
        scope,
        [*elements, *elements],
        what="combine function",
        no_capture="the combine function",
    )
    if len(trace.results) != len(elements):
        fail(
            f"the combine function returns {len(trace.results)} values for "
            f"{len(elements)} accumulators",
            "it makes one accumulator of two: (left..., right...) -> ...",
            None,
            fold.combine,
        )
    pairs = zip(trace.results, elements, strict=True)
    return trace.finish([trace.typed(result, parameter) for result, parameter in pairs])


def _check_combine(stage: Stage, accumulators: Sequence[Parameter], combine: Region | None) -> None:
    if combine is not None:
        return
    inputs = [Parameter(value.element) for value in stage.inputs]
    if inputs == list(accumulators):
        return
    fail(
        "the accumulators are not of the inputs' types",
        "partial results are joined by the function itself only when they are",
        "add combine=, a function that joins two accumulators, such as lambda l, r: l + r",
        stage.f,
    )


def _set_neutral(stage: Stage, op: pattern.FoldOp, accumulators: Sequence[Parameter]) -> None:
    """Starts the fold from the neutral element of its function, when the user gave no init."""
    from cim_opt.passes.pattern_neutral import neutral_elements

    neutrals = neutral_elements(op)
    if neutrals is None:
        fail(
            "init= is missing",
            "it can be left out when the function is one sum, product, &, |, ^, minimum or "
            "maximum of accumulator and element",
            "add init=, the value for no elements",
            stage.f,
        )
    start = len(op.operands) - len(accumulators)
    for i, (value, parameter) in enumerate(zip(neutrals, accumulators, strict=True)):
        # -0.0 is neutral for sums of floats too; nobody wants to see it as the sum of nothing.
        attr = constant(_as_unsigned(value, parameter.element) or 0, parameter.element)
        op.operands[start + i] = stage.scope.constant(attr)


def _as_unsigned(value: int | float, element: ElementType) -> int | float:
    return value if element.is_float or element.signed else value % (1 << element.width)
