"""What a program takes at full size, from runs on a few DPUs.

    report = sampled_report(build, load_machine("upmem-2560"), "linear")

DPUs that get equal shares do alike work, so a program is run in full on a few DPUs, each with the
share that it has at full size, and timed as if there were all of them: transfers and launches by
the cost model for all DPUs; kernels as long as the slowest DPU that was run; work of the host,
which is a part that does not depend on the DPUs and a part for each DPU, from two runs.
What the host computes on scalars is taken as in the larger run.

Left out: what does not divide among the DPUs (less than one element group a DPU).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import TRANSFER_MODELS, UpmemMachine
from cim_opt.simulators.report import Report
from cim_opt.simulators.upmem import UpmemSimulator
from cim_opt.simulators.upmem_account import Account, FloatArray, Link, Timed
from cim_opt.simulators.upmem_kernel import KernelCode
from cim_opt.simulators.upmem_run import KernelCounts

Program = tuple[ModuleOp, str, Sequence[Any]]
"""A lowered module, its entry, and the entry's arguments."""
Build = Callable[[int], Program]
"""Makes the program for so many DPUs, with so many DPUs' share of the input."""


def sampled_report(
    build: Build,
    machine: UpmemMachine,
    transfer: str = "measured",
    samples: tuple[int, int] = (2, 4),
    **options: Any,
) -> Report:
    """The report of a program on all DPUs of `machine`; see `sampled_reports`."""
    return sampled_reports(build, machine, samples, **options)[transfer]


def sampled_reports(
    build: Build, machine: UpmemMachine, samples: tuple[int, int] = (2, 4), **options: Any
) -> Mapping[str, Report]:
    """The reports of a program on all DPUs of `machine`, by model of host transfers.

    `build(k)` makes the program for a machine of k DPUs, which are `samples`, two numbers that
    rise; `options` are those of UpmemSimulator.
    Raises UserError when the program does not use all DPUs, or when what the host does depends on
    their number other than in how much.
    """
    few, many = samples
    if not 0 < few < many <= machine.dpus:
        raise UserError(
            f"samples of {few} and {many} DPUs on {machine.name}",
            f"they rise, from 1 to {machine.dpus}",
            "use (2, 4)",
        )
    first = _Sample(machine, few, None)
    _run(build, few, machine, first, options)
    second = _Sample(machine, many, first)
    _run(build, many, machine, second, options)
    if first.count() != second.count():
        raise UserError(
            f"a host of {first.count()} steps for {few} DPUs, of {second.count()} for {many}",
            "a sample takes programs whose steps do not depend on the number of DPUs",
            "run it in full, or use a serial transfer instead of a loop",
        )
    return second.reports()


def _run(
    build: Build, dpus: int, machine: UpmemMachine, account: Account, options: dict[str, Any]
) -> None:
    module, entry, args = build(dpus)
    smaller = replace(machine, dpus=dpus)
    UpmemSimulator(smaller, **options).run_timed(module, entry, args, smaller, account)


class _Sample(Account):
    """Times a run on `sample` DPUs as if it were on all; `before` is a run on fewer."""

    def __init__(self, machine: UpmemMachine, sample: int, before: _Sample | None):
        super().__init__(machine, TRANSFER_MODELS)
        self.sample = sample
        self.before = before
        self.steps: list[tuple[float, float]] = []
        """Bytes and operations of the host's work on tensors, as they were on the sample."""

    def count(self) -> int:
        """Steps of the host: transfers, launches, and work on tensors."""
        return self.to_dpu.count + self.to_host.count + self.launches + len(self.steps)

    def transfer(self, link: Link, timed: Timed, dpus: int, size: int) -> None:
        super().transfer(link, timed, self._all(dpus), size)

    def launch(self, code: KernelCode, counts: KernelCounts, dpus: int) -> FloatArray:
        return super().launch(code, counts, self._all(dpus))

    def host(self, moved: float, operations: float) -> None:
        if not moved:
            # Scalars: what the compiler folds of them depends on the number of DPUs.
            return super().host(moved, operations)
        number = len(self.steps)
        self.steps.append((moved, operations))
        if self.before is None or number >= len(self.before.steps):
            return super().host(moved, operations)
        more = (self.machine.dpus - self.sample) / (self.sample - self.before.sample)
        earlier = self.before.steps[number]
        return super().host(
            max(moved + (moved - earlier[0]) * more, 0.0),
            max(operations + (operations - earlier[1]) * more, 0.0),
        )

    def _all(self, dpus: int) -> int:
        if dpus != self.sample:
            raise UserError(
                f"a program that uses {dpus} of {self.sample} DPUs",
                "a sample takes programs that use all of them",
                "give it more elements",
            )
        return self.machine.dpus
