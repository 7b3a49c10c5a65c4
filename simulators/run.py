"""One way to run a program on any target and check it: for cim-run, the frontend and the tests."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from cim_opt.dialects import cim, simdram, upmem
from cim_opt.errors import UserError
from cim_opt.simulators.compare import Mismatch, compare, rules_for
from cim_opt.simulators.reference import run_function

if TYPE_CHECKING:
    from cim_opt.simulators.report import MachineReport

Values = np.ndarray[Any, np.dtype[Any]] | np.generic
Option = bool | int | float | str | tuple[bool, ...] | tuple[int, ...] | tuple[float | str, ...]
"""An option of a pipeline; what has several values is a tuple."""

TARGETS = ("reference", "upmem", "simdram", "cim")
TARGETS_TO_COME = ("auto",)
PIPELINES = {
    "upmem": "pattern-to-upmem",
    "simdram": "pattern-to-simdram",
    "cim": "conv-to-cim",
}
DEFAULT_MACHINES = {"upmem": "upmem-2560", "simdram": "simdram-1", "cim": "cim-32x64-8"}
MACHINE_ATTRIBUTES = {
    "upmem": upmem.MACHINE_ATTRIBUTE,
    "simdram": simdram.MACHINE_ATTRIBUTE,
    "cim": cim.MACHINE_ATTRIBUTE,
}


@dataclass(frozen=True)
class SimdramOptions:
    """How target `simdram` is simulated; `None` is what the machine says.

    `library` also is the one that the program is lowered for; `None` is `cim-opt`, or what a module
    that is lowered already was lowered for.
    """

    level: str = "bbop"
    library: str | None = None
    timing: str | None = None
    activation_limit: bool | None = None


@dataclass(frozen=True)
class ResultCheck:
    """How one returned value was compared with the reference, and the first difference if any."""

    type: str
    rule: str
    mismatch: Mismatch | None

    @property
    def ok(self) -> bool:
        return self.mismatch is None

    def to_text(self) -> str:
        """`equals the reference` or the first difference, with the rule."""
        if self.mismatch is None:
            return f"equals the reference ({self.rule})"
        return f"FAILED: {self.mismatch} ({self.rule})"


@dataclass(frozen=True)
class Check:
    """The comparison of all returned values with the reference, in their order."""

    results: tuple[ResultCheck, ...]

    @property
    def ok(self) -> bool:
        return all(result.ok for result in self.results)

    def to_text(self) -> str:
        """One line a returned value."""
        if not self.results:
            return "check: nothing was returned"
        return "\n".join(
            f"check: result {index} ({result.type}) {result.to_text()}"
            for index, result in enumerate(self.results)
        )


@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    `outputs` are the target's returned values: arrays, or NumPy scalars. `report` is None for
    the reference, which models no machine. `check` is None when nothing was compared: for the
    reference itself, for a module that was lowered already, and when it was not asked for.
    `wall_seconds` says how long this computer took, by step; it says nothing of the machine.
    """

    target: str
    machine: str | None
    outputs: list[Values]
    report: "MachineReport | None"
    check: Check | None
    lowered: ModuleOp | None
    wall_seconds: Mapping[str, float]


@dataclass
class _Steps:
    """Says each step as it starts, and keeps how long each took."""

    say: Callable[[str], None] | None
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def step(self, name: str, text: str) -> Generator[None]:
        if self.say is not None:
            self.say(text)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def check_target(target: str) -> None:
    """Raises UserError for a target that is not there (yet)."""
    if target in TARGETS:
        return
    what = f"target {target} is not available" + (" yet" if target in TARGETS_TO_COME else "")
    raise UserError(what, f"the targets are {', '.join(TARGETS)}", "choose one of these")


def run_program(
    module: ModuleOp,
    entry: str,
    inputs: Mapping[str, Values],
    *,
    target: str,
    machine: str | None = None,
    transfer: str = "measured",
    cycles: str = "closed",
    check: bool = True,
    pipeline_options: Mapping[str, Option] | None = None,
    simdram_options: SimdramOptions = SimdramOptions(),
    progress: Callable[[str], None] | None = None,
) -> RunResult:
    """Runs function `entry` of `module` on `target` and compares with the reference.

    `inputs` are the entry's arguments in order; their names are for the caller only. `machine`
    is the name of a machine or the path of a TOML file; None is the target's default.
    `transfer` is the model of host transfers of upmem, `cycles` that of its kernels. The module
    itself is not changed: a clone is lowered by the target's named pipeline with
    `pipeline_options`. A module that is lowered already is run as it is, and not checked: what it
    meant before is not known. `progress` is
    called with a few words at each step. With `check` False the reference does not run.

    Raises UserError when the target, the machine or the program is refused.
    """
    check_target(target)
    args = list(inputs.values())
    steps = _Steps(progress)
    options = {"machine": machine or DEFAULT_MACHINES.get(target, ""), **(pipeline_options or {})}
    if target == "simdram" and simdram_options.library is not None:
        options = {"library": simdram_options.library, **options}
    if target == "cim":
        options = {**_sizes(module, entry, args), **options}
    lowered_for = target_of(module)
    if lowered_for is not None:
        _check_lowered(lowered_for, target, machine, pipeline_options)
        lowered, check = module, False
    elif target == "reference":
        with steps.step("reference", "computing the reference"):
            outputs = run_function(module, entry, args)
        return RunResult(target, None, outputs, None, None, None, steps.seconds)
    else:
        with steps.step("lower", f"lowering for {target}"):
            lowered = lower(module, PIPELINES[target], options)
    expected: list[Values] | None = None
    if check:
        with steps.step("reference", "computing the reference"):
            expected = run_function(module, entry, args)
    with steps.step("simulate", "simulating"):
        outputs, report = _simulate(
            target, lowered, entry, args, (transfer, cycles), simdram_options, progress
        )
    compared: Check | None = None
    if expected is not None:
        with steps.step("compare", "comparing with the reference"):
            compared = _compare(module, entry, args, expected, outputs)
    return RunResult(target, report.machine, outputs, report, compared, lowered, steps.seconds)


def _sizes(module: ModuleOp, entry: str, args: Sequence[Values]) -> dict[str, Option]:
    """Options that tell a pipeline the lengths `?` of the entry's arguments; none without such."""
    function = SymbolTable.lookup_symbol(module, entry)
    if not isinstance(function, FuncOp):
        return {}
    sizes = [
        got
        for type, value in zip(function.function_type.inputs, args, strict=False)
        if isa(type, TensorType)
        for want, got in zip(type.get_shape(), np.shape(value), strict=False)
        if want == DYNAMIC_INDEX
    ]
    return {"sizes": tuple(sizes), "entry": entry} if sizes else {}


def target_of(module: ModuleOp) -> str | None:
    """The target that the module was lowered for, when it says one's machine."""
    for target, attribute in MACHINE_ATTRIBUTES.items():
        if attribute in module.attributes:
            return target
    return None


def _check_lowered(
    lowered_for: str,
    target: str,
    machine: str | None,
    pipeline_options: Mapping[str, Option] | None,
) -> None:
    """Refuses what can no longer be chosen for a lowered module."""
    if target != lowered_for:
        raise UserError(
            f"target {target} for a program that is lowered for {lowered_for}",
            "what it meant before is not in the file",
            f"choose --target {lowered_for}, or run the program as it was before lowering",
        )
    if machine or pipeline_options:
        raise UserError(
            f"{'a machine' if machine else 'options of the pipeline'} for a lowered program",
            "it was lowered for the machine that it names",
            "leave it out, or run the program as it was before lowering",
        )


def lower(module: ModuleOp, pipeline: str, options: Mapping[str, Option]) -> ModuleOp:
    """A clone of `module` after the pass `pipeline` with `options`, verified."""
    factory = Universe.get_multiverse().all_passes[pipeline]
    cls: type[ModulePass] = factory()
    spec = ArgSpec(
        pipeline,
        {name: value if isinstance(value, tuple) else (value,) for name, value in options.items()},
    )
    clone = module.clone()
    context = Context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, dialect)
    cls.from_spec(spec).apply(context, clone)
    try:
        clone.verify()
    except VerifyException as error:
        # The module did verify before, so this is no mistake of the user's.
        raise RuntimeError(f"{pipeline} left a module that does not verify: {error}") from error
    return clone


def _simulate(
    target: str,
    lowered: ModuleOp,
    entry: str,
    args: Sequence[Values],
    models: tuple[str, str],
    options: SimdramOptions,
    say: Callable[[str], None] | None,
) -> "tuple[list[Values], MachineReport]":
    """Runs a lowered module, on the machine that it carries."""

    def progress(fraction: float, text: str) -> None:
        if say is not None:
            say(f"simulating {text}, {fraction:.0%}")

    if target == "simdram":
        from cim_opt.simulators.simdram import SimdramSimulator

        return SimdramSimulator(progress=progress, **asdict(options)).run(lowered, entry, args)
    if target == "cim":
        from cim_opt.simulators.cim import CimSimulator

        return CimSimulator(progress=progress).run(lowered, entry, args)
    from cim_opt.simulators.upmem import UpmemSimulator

    transfer, cycles = models
    return UpmemSimulator(None, transfer, progress, cycles=cycles).run(lowered, entry, args)


def _compare(
    module: ModuleOp,
    entry: str,
    args: Sequence[Values],
    expected: Sequence[Values],
    got: Sequence[Values],
) -> Check:
    rules = rules_for(module, entry, args)
    return Check(
        tuple(
            ResultCheck(type, str(rule), compare(want, have, rule))
            for type, rule, want, have in zip(
                _result_types(module, entry), rules, expected, got, strict=True
            )
        )
    )


def _result_types(module: ModuleOp, entry: str) -> list[str]:
    function = SymbolTable.lookup_symbol(module, entry)
    assert isinstance(function, FuncOp)
    return [str(attr) for attr in function.function_type.outputs]
