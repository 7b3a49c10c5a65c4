"""Running a pipeline's program, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from cim_opt.frontend.element_types import ElementType
from cim_opt.frontend.errors import fail
from cim_opt.frontend.scope import Traced
from cim_opt.frontend.values import Scalar
from cim_opt.frontend.vectors import Vector


class Execution:
    """The fetched results, in the order of `fetch`, and what the machine reports.

    `result[x]` is the array (or NumPy scalar) of the stage result x, `result[0]` of the first that
    was fetched, and `for array in result` goes through all. `report` is the machine's report and
    `check` the comparison with the reference; both None where there is none.
    """

    def __init__(
        self, values: Sequence[Traced], arrays: Sequence[Any], report: Any, check: Any
    ) -> None:
        self._values = list(values)
        self._arrays = list(arrays)
        self.report = report
        self.check = check

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            if not -len(self._arrays) <= key < len(self._arrays):
                fail(f"there is no result {key}", f"{len(self._arrays)} were fetched")
            return self._arrays[key]
        for value, array in zip(self._values, self._arrays, strict=True):
            if value is key:
                return array
        fail(
            "this value was not fetched",
            "results are indexed by what was fetched, or by its position",
            "call p.fetch(x) before execute",
        )

    def __len__(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._arrays)


def run(
    module: ModuleOp,
    entry: str,
    arrays: dict[str, Any],
    fetched: Sequence[Vector | Scalar],
    *,
    target: str,
    machine: str | None,
    check: bool,
    options: dict[str, Any],
    upmem: dict[str, Any],
    simdram: dict[str, Any],
) -> Execution:
    """Runs the module's function `entry` on the arrays, with NumPy or on a simulated machine.

    `upmem` and `simdram` are what one target alone has; None is left out.
    """
    from cim_opt.simulators.run import SimdramOptions, run_program

    _check_target(target, "upmem", upmem)
    _check_target(target, "simdram", simdram)
    for option in ("machine", "library"):
        if option in options:
            fail(
                f"the options of the lowering name a {option}",
                f"the run and the lowering have one {option}",
                f"give it to execute itself: {option}=...",
            )

    done = run_program(
        module,
        entry,
        arrays,
        target=target,
        machine=machine,
        transfer=upmem["transfer"] or "measured",
        check=check,
        pipeline_options=options,
        simdram_options=SimdramOptions(**_given(simdram)),
    )
    results = [_as_user(o, v.element) for v, o in zip(fetched, done.outputs, strict=True)]
    return Execution(fetched, results, done.report, done.check)


def _given(choices: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in choices.items() if value is not None}


def _check_target(target: str, only: str, choices: dict[str, Any]) -> None:
    """Refuses what is chosen for another target."""
    for name in _given(choices) if target != only else ():
        fail(
            f"{name}={choices[name]!r} for target {target}",
            f"only {only} has it",
            f'leave it out, or choose target="{only}"',
        )


def _as_user(output: Any, element: ElementType) -> Any:
    """The simulator's values in the user's dtype: the same bytes, unsigned where they were."""
    return np.asarray(output).view(element.dtype)[()]
