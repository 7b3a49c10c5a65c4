"""`Pipeline`: data-parallel patterns with ordinary Python functions, traced to the pattern dialect.

    a, b = np.arange(1024, dtype=np.int32), np.ones(1024, np.int32)
    p = Pipeline(1024)
    c = p.map(lambda a, b: a * b, a, b)
    total = p.reduce(lambda total, c: total + c, c, init=0)
    p.fetch(total)
    print(p.execute()[total])

A function runs once, on traced values; its operators become arith operations. What it does
besides (printing, changing a list) happens at that time, once, and is not part of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from cim_opt.frontend.arguments import Arguments
from cim_opt.frontend.element_types import element_type
from cim_opt.frontend.errors import fail
from cim_opt.frontend.execution import Execution, run
from cim_opt.frontend.kinds import as_list, is_array, is_integer
from cim_opt.frontend.patterns import (
    Fold,
    Result,
    Stage,
    build_elementwise,
    build_filter,
    build_fold,
)
from cim_opt.frontend.program import build_module
from cim_opt.frontend.regions import Function
from cim_opt.frontend.scope import Scope, Traced, fail_foreign
from cim_opt.frontend.sizes import Extent, check_size
from cim_opt.frontend.values import Scalar
from cim_opt.frontend.vectors import Vector


class Pipeline:
    """An ordered collection of stages over vectors of one length.

    Pipeline(n) has vectors of n elements, and its program is for n. Pipeline() makes a program
    for any length; the arrays that are passed must still agree. Vectors that follow from them
    (windows, groups, what a filter keeps) have their own lengths.

    Inputs of stages are 1-D NumPy arrays, results of earlier stages, and declared inputs.
    `shared=` takes what is the same for every element: NumPy scalars, small arrays, results. An
    element function sees these, and every other variable, by name as well. Python numbers become
    constants of the program; arrays and NumPy scalars that are passed become its arguments.

    All methods raise UserError, with the line of the user's file, for what cannot be done.
    """

    def __init__(self, n: Any = None, *, name: str = "main") -> None:
        if n is not None and not (is_integer(n) and n >= 0):
            fail(f"the length of the pipeline is {n!r}", "it is an integer from 0, or left out")
        if not name.isidentifier():
            fail(f"the pipeline's name is {name!r}", "it is an identifier, like a function's")
        self.name = name
        self._region = Region(Block())
        self._scope = Scope(self._region.block, array_argument=self._small_array)
        self._arguments = Arguments(self._scope, n)
        self._fetched: list[Vector | Scalar] = []

    # -- inputs --------------------------------------------------------------------------------

    def input(self, value: Any, name: str | None = None) -> Vector:
        """Declares an input: an array, or an element type whose array comes with `execute`.

        `name` is the argument's name in the program; without it, it is the variable's name.
        """
        if is_array(value):
            return self._arguments.vector(value, None, name)
        if name is None:
            fail("an input without data has no name", None, 'write p.input(np.int32, "a")')
        return self._arguments.declared(element_type(value), name)

    def _small_array(self, array: Any) -> Traced:
        return self._arguments.small(array)

    # -- stages --------------------------------------------------------------------------------

    def map(self, f: Function, *inputs: Any, shared: Any = ()) -> Any:
        """y[i] = f(x[i], ...); a tuple of vectors when f returns several values."""
        return self._elementwise(f, inputs, shared, None, None)

    def window(self, f: Function, *inputs: Any, size: int, shared: Any = ()) -> Any:
        """y[i] = f(x[i : i + size]), n - size + 1 of them; f gets slices of `size` elements."""
        return self._elementwise(f, inputs, shared, size, None)

    def group(
        self, f: Function, *inputs: Any, size: int, window: int | None = None, shared: Any = ()
    ) -> Any:
        """y[i] = f(x[i * size : (i + 1) * size]), n / size of them.

        With `window`, f also gets the window-1 elements after its group, in the same slice.
        """
        return self._elementwise(f, inputs, shared, window, size)

    def filter(
        self,
        f: Function,
        *inputs: Any,
        window: int | None = None,
        group: int | None = None,
        shared: Any = (),
    ) -> Any:
        """Keeps x[i] where f(x[i]) is true, in order; f may see a window or decide on a group.

        f returns the condition, and after it, if other values than the inputs are to be kept,
        these. Gives one vector for each; `.count` of it is their number.
        """
        stage = self._stage(f, inputs, shared, window, group)
        results, count = build_filter(stage)
        self._extent_after(stage)
        extent = Extent(("filter", count), None, False)
        vectors = [Vector(self._scope, r.ssa, r.element, extent, count) for r in results]
        return vectors[0] if len(vectors) == 1 else tuple(vectors)

    def reduce(
        self,
        f: Function,
        *inputs: Any,
        init: Any = None,
        combine: Function | None = None,
        shared: Any = (),
    ) -> Any:
        """f(...f(f(init, x[0]), x[1])...), f associative: the machine folds parts and joins them.

        f gets the accumulators first. `init` is a number, a 1-D array (a histogram's bins), or a
        tuple of them; without it the fold starts from the neutral element of a sum, product, &,
        |, ^, minimum or maximum. When accumulators are not of the inputs' types, `combine` joins
        two of them: (left..., right...) -> ..., element by element for arrays.
        """
        stage = self._stage(f, inputs, shared, None, None)
        results = build_fold(stage, Fold(init, combine))
        return self._wrap(results, stage)

    def scan(
        self,
        f: Function,
        *inputs: Any,
        init: Any = None,
        exclusive: bool = False,
        combine: Function | None = None,
        shared: Any = (),
    ) -> Any:
        """All prefixes of the reduction: y[i] includes x[i], or not when `exclusive`."""
        stage = self._stage(f, inputs, shared, None, None)
        results = build_fold(stage, Fold(init, combine, exclusive, scan=True))
        return self._wrap(results, stage)

    def _elementwise(
        self, f: Function, inputs: Sequence[Any], shared: Any, window: Any, group: Any
    ) -> Any:
        stage = self._stage(f, inputs, shared, window, group)
        extent = self._extent_after(stage)
        return self._wrap(build_elementwise(stage), stage, extent)

    def _stage(
        self, f: Function, inputs: Sequence[Any], shared: Any, window: Any, group: Any
    ) -> Stage:
        for name, size in (("window", window), ("group", group)):
            if size is not None:
                check_size(name, size)
        items = self._arguments.operands(inputs)
        is_input = [isinstance(item, Vector) for item in items]
        more = as_list(shared)
        items += [self._arguments.shared(value) for value in more]
        stage = Stage(
            self._scope,
            f,
            items,
            is_input + [False] * len(more),
            None if window is None else int(window),
            None if group is None else int(group),
            what="element function",
        )
        self._extent_after(stage)
        return stage

    def _extent_after(self, stage: Stage) -> Extent:
        first = stage.inputs[0]
        assert isinstance(first, Vector)
        return first.extent.after(stage.window, stage.group)

    def _wrap(self, results: Sequence[Result], stage: Stage, extent: Extent | None = None) -> Any:
        """The results of a stage as values of the pipeline; one alone, several as a tuple."""
        extent = extent or self._extent_after(stage)
        values = [self._value(result, extent) for result in results]
        return values[0] if len(values) == 1 else tuple(values)

    def _value(self, result: Result, extent: Extent) -> Vector | Scalar:
        if result.length is None:
            return Scalar(self._scope, result.ssa, result.element)
        if result.length != extent.in_type:  # a tensor accumulator
            extent = Extent(("bins", result.length), result.length, True)
        return Vector(self._scope, result.ssa, result.element, extent)

    # -- the program ---------------------------------------------------------------------------

    def fetch(self, *values: Any) -> None:
        """Marks results to be copied back; everything else never leaves the machine."""
        for value in values:
            if isinstance(value, tuple | list):
                self.fetch(*as_list(value))
                continue
            if not isinstance(value, Vector | Scalar):
                fail(
                    f"fetch of a {type(value).__name__}",
                    "it takes results of the pipeline's stages",
                    "fetch what p.map, p.reduce, ... returned",
                )
            if value.scope is not self._scope:
                fail_foreign(value.scope, self._scope)
            if not any(value is known for known in self._fetched):
                self._fetched.append(value)

    def module(self) -> ModuleOp:
        """The program: a module with one function of the pattern dialect, verified."""
        fetched: list[SSAValue] = [value.ssa for value in self._fetched]
        return build_module(self.name, self._region, fetched)

    def arguments(self, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The arrays and numbers of the program's arguments, by name, as the simulators take them.

        inputs: arrays for declared inputs, by name.
        """
        return dict(self._arguments.bound(inputs or {}))

    def to_mlir(self) -> str:
        """The program as text, for cim-opt and cim-run."""
        return str(self.module()) + "\n"

    def execute(
        self,
        target: str = "upmem",
        *,
        machine: str | None = None,
        transfer: str | None = None,
        level: str | None = None,
        library: str | None = None,
        timing: str | None = None,
        activation_limit: bool | None = None,
        check: bool = True,
        inputs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Execution:
        """Lowers the program, runs it on a simulated machine and gives what was fetched.

        target: "upmem", "simdram", or "reference" for NumPy alone. machine: a machine's name or
        TOML file; None is the target's default.
        check: compare with the reference. inputs: arrays for declared inputs, by name.
        options: of the lowering, such as {"tasklets": 16}.

        For upmem, transfer: the model of host transfers, "measured" (default) or "linear".
        For simdram, level: simulates words, "bbop" (default), or row commands, "rows"; library:
        the microprograms, "cim-opt" (default) or "simdram"; timing: how long row commands take,
        "proteus49", "gem5" or "strict"; activation_limit: whether the limit on activations slows
        many subarrays down. None is what the machine says.
        """
        if not self._fetched:
            fail(
                "the pipeline fetches nothing",
                "what is not fetched is not computed",
                "call p.fetch(x) with the results that you want",
            )
        arrays = self.arguments(inputs)
        return run(
            self.module(),
            self.name,
            arrays,
            list(self._fetched),
            target=target,
            machine=machine,
            check=check,
            options=dict(options or {}),
            upmem={"transfer": transfer},
            simdram={
                "level": level,
                "library": library,
                "timing": timing,
                "activation_limit": activation_limit,
            },
        )
