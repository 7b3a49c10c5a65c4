"""Runs programs lowered to the `upmem` dialect: results, and how long a real system would take.

    results, report = UpmemSimulator(load_machine("upmem-2560")).run(module, "main", [a, b])

The host part is interpreted operation by operation; each kernel runs on all DPUs at once (see
upmem_kernel.py). Memory is checked: what is out of range, misaligned, too large, a race between
tasklets, or read back without ever being written, raises UserError.

Time: transfers and launches by the chosen model of `cost.upmem_transfer`; kernels by
`cost.upmem_cycles`; host work by the bytes it reads and writes at the host's memory bandwidth and
its element operations at the host's rate. One scalar operation of the host program is one
operation. Changes of a view (slices, casts) and allocations cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects import upmem
from cim_opt.dialects.upmem_machine import machine_of
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import TRANSFER_MODELS, UpmemMachine
from cim_opt.locations import location_of
from cim_opt.simulators import upmem_merge
from cim_opt.simulators.elementwise import quiet
from cim_opt.simulators.reference import Handler, HostEvaluator, checked_arguments
from cim_opt.simulators.report import Report
from cim_opt.simulators.upmem_account import Account, FloatArray
from cim_opt.simulators.upmem_host_cost import host_work
from cim_opt.simulators.upmem_kernel import KernelCode, compile_kernel
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_run import KernelRun, Progress
from cim_opt.simulators.upmem_selection import Addressing
from cim_opt.simulators.upmem_trace import TraceRun

Values = Any
CYCLE_MODELS = ("closed", "event")
TransferModel = Literal["measured", "linear"]


@dataclass(eq=False)
class DpuSet:
    """Allocated DPUs: their MRAM, and when the kernel that they run ends."""

    dpus: int
    mram: Mram
    running: bool = False
    freed: bool = False
    declared: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Byte ranges of the arrays of kernels that ran."""


@dataclass(eq=False)
class Token:
    """A launch: on which DPUs, and when it ends."""

    dpus: DpuSet
    end: FloatArray


class UpmemSimulator:
    """Simulates lowered modules on one machine.

    `machine` None takes the one that the module was lowered for (attribute `upmem.machine`).
    `transfer` names the model of host transfers. `addressing` says how the DPU compiler makes
    addresses (see upmem_selection.py). `cycles` says how a kernel's time comes from its
    instructions and transfers: by the `closed` form, or `event` by event for small kernels.
    `progress` is called with a fraction of the current kernel and a text, at most every 0.2 s.
    """

    def __init__(
        self,
        machine: UpmemMachine | None = None,
        transfer: str = "measured",
        progress: Progress | None = None,
        addressing: Addressing = "pointer",
        cycles: str = "closed",
    ):
        if cycles not in CYCLE_MODELS:
            raise UserError(
                f"unknown cycle model {cycles!r}", None, f"use one of {', '.join(CYCLE_MODELS)}"
            )
        if transfer not in TRANSFER_MODELS:
            raise UserError(
                f"unknown transfer model {transfer!r}",
                None,
                f"use one of {', '.join(TRANSFER_MODELS)}",
            )
        self.machine = machine
        self.transfer = transfer
        self.progress = progress
        self.addressing: Addressing = addressing
        self.cycles = cycles

    def run(
        self, module: ModuleOp, entry: str, args: Sequence[Any]
    ) -> tuple[list[np.ndarray[Any, np.dtype[Any]] | np.generic], Report]:
        """Results of function `entry` for `args` (as `run_function` takes them), and the report."""
        machine = self.machine or machine_of(module)
        account = Account(machine, [self.transfer])
        results = self.run_timed(module, entry, args, machine, account)
        report = account.reports()[self.transfer]
        return results, replace(report, cycle_model=self.cycles)

    @quiet()
    def run_timed(
        self,
        module: ModuleOp,
        entry: str,
        args: Sequence[Any],
        machine: UpmemMachine,
        account: Account,
    ) -> list[np.ndarray[Any, np.dtype[Any]] | np.generic]:
        """Results of `run`; its time goes into `account`."""
        evaluator = UpmemEvaluator(module, machine, self, account)
        values = checked_arguments(evaluator.function(entry), args)
        results: list[Any] = [np.array(value)[()] for value in evaluator.call(entry, values)]
        return results


class UpmemEvaluator(HostEvaluator):
    """The host of a system with DPUs."""

    makers: ClassVar[frozenset[str]] = HostEvaluator.makers | {
        "upmem.pull",
        "upmem.compact",
        "upmem.gather",
        "upmem.merge_scan",
    }
    readers: ClassVar[frozenset[str]] = HostEvaluator.readers | {
        "upmem.push",
        "upmem.broadcast",
        "upmem.compact",
        "upmem.gather",
        "upmem.merge_scan",
        "upmem.merge_reduce",
    }

    def __init__(
        self,
        module: ModuleOp,
        machine: UpmemMachine,
        options: UpmemSimulator,
        account: Account,
    ):
        super().__init__(module)
        self.machine = machine
        self.options = options
        self.account_book = account
        self._kernels: dict[str, KernelCode] = {}
        self._ready: dict[SSAValue, FloatArray] = {}

    def evaluate(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        for operand in op.operands:
            if operand in self._ready:
                self.account_book.wait(self._ready[operand])
        return super().evaluate(op, args)

    def account(self, op: Operation, args: tuple[Values, ...], results: Sequence[Values]) -> None:
        self.account_book.host(*host_work(op, args, results))

    # -- DPUs ----------------------------------------------------------------------------------

    def alloc(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Allocates DPUs."""
        count = int(args[0])
        if not 0 <= count <= self.machine.dpus:
            raise UserError(
                f"'{op.name}' of {count} DPUs",
                f"{self.machine.name} has {self.machine.dpus}",
                "use fewer DPUs or a larger machine",
                location_of(op),
            )
        return [DpuSet(count, Mram(count, self.machine.mram_bytes))]

    def free(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Gives DPUs back."""
        dpus = self._usable(op, args[0])
        dpus.freed = True
        dpus.mram = Mram(dpus.dpus, self.machine.mram_bytes)
        return []

    def push(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Transfer to the DPUs."""
        assert isinstance(op, upmem.PushOp)
        source, start, dpus, count, stride = (
            args[0],
            int(args[1]),
            args[2],
            int(args[3]),
            int(args[4]),
        )
        self._usable(op, dpus)
        size = self._transfer_size(op, count, source.dtype.itemsize, op.offset.value.data)
        self._not_negative(op, {"start": start, "stride": stride})
        if dpus.dpus == 0 or count == 0:
            return []
        dpus.mram.push(source, start, count, stride, op.offset.value.data)
        serial, whole = op.serial is not None, source.nbytes // dpus.dpus
        self.account_book.push(dpus.dpus, size, serial, whole)
        return []

    def broadcast(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """The same array to all DPUs."""
        assert isinstance(op, upmem.BroadcastOp)
        source, dpus = args
        self._usable(op, dpus)
        padded = -(-len(source) * source.dtype.itemsize // upmem.DMA_ALIGN) * upmem.DMA_ALIGN
        self._transfer_size(op, padded, 1, op.offset.value.data)
        if dpus.dpus == 0 or not len(source):
            return []
        size = dpus.mram.broadcast(source, op.offset.value.data)
        self.account_book.broadcast(dpus.dpus, size)
        return []

    def pull(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Transfer from the DPUs."""
        assert isinstance(op, upmem.PullOp)
        dpus, count, dest, position = args[0], int(args[1]), args[2], int(args[3])
        self._usable(op, dpus)
        offset = op.offset.value.data
        size = self._transfer_size(op, count, dest.dtype.itemsize, offset)
        self._not_negative(op, {"position": position})
        if not self.may_overwrite(op, 2) or not dest.flags.writeable:
            dest = dest.copy()
        if dpus.dpus == 0 or count == 0:
            return [dest]
        self._check_known(op, dpus, offset, size)
        dpus.mram.pull(offset, count, dest, position)
        self.account_book.pull(dpus.dpus, size, op.serial is not None)
        return [dest]

    def launch(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Runs a kernel. Its time goes on beside the host's until the wait."""
        assert isinstance(op, upmem.LaunchOp)
        dpus = self._usable(op, args[0])
        if dpus.dpus == 0:
            return [Token(dpus, self.account_book.now)]
        code = self._kernel(op)
        title = f"kernel @{code.name}"
        kind = TraceRun if self.options.cycles == "event" else KernelRun
        run = kind(self.machine, dpus.mram, code.tasklets, self.options.progress, title)
        code.function(
            run, *(_kernel_argument(v, a) for v, a in zip(op.args, args[1:], strict=True))
        )
        end = self.account_book.launch(code, run.finish(), dpus.dpus)
        for array in self._find_kernel(op).body.block.ops:
            if isinstance(array, upmem.MramOp):
                dpus.declared.append(_extent(array))
        dpus.running = True
        return [Token(dpus, end)]

    def gather(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Scatter-gather transfer from the DPUs."""
        assert isinstance(op, upmem.GatherOp)
        dpus, capacity, counts, dest = args[0], int(args[1]), args[2], args[3]
        self._usable(op, dpus)
        self._not_negative(op, {"capacity": capacity})
        if dpus.dpus and len(counts) % dpus.dpus:
            raise UserError(
                f"'{op.name}' of {len(counts)} segments",
                f"{dpus.dpus} DPUs have equally many each",
                "give every DPU as many counts",
                location_of(op),
            )
        if not self.may_overwrite(op, 3) or not dest.flags.writeable:
            dest = dest.copy()
        count = len(counts) // max(dpus.dpus, 1) * capacity
        offset = op.offset.value.data
        size = self._transfer_size(op, count, dest.dtype.itemsize, offset)
        if not size:
            return [dest]
        self._check_known(op, dpus, offset, size)
        data = np.empty(dpus.dpus * count, dest.dtype)
        dpus.mram.pull(offset, count, data, 0)
        upmem_merge.compact(op, data, capacity, counts, dest, int(args[4]))
        self.account_book.pull(dpus.dpus, size, op.serial is not None)
        return [dest]

    def _check_known(self, op: Operation, dpus: DpuSet, start: int, size: int) -> None:
        """These bytes were written, or belong to a kernel that may write them.

        A filter that keeps nothing writes nothing; its array is pulled all the same.
        """
        stop = start + size
        if dpus.mram.was_written(start, stop) or any(
            first <= start and stop <= last for first, last in dpus.declared
        ):
            return
        raise UserError(
            f"'{op.name}' of bytes {start} to {stop - 1} of MRAM",
            "nothing was ever written there, and no kernel that ran has an array there",
            "pull what a push or a kernel wrote",
            location_of(op),
        )

    def wait(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Waits for a launch."""
        token = args[0]
        token.dpus.running = False
        self.account_book.wait(token.end)
        return []

    def _kernel(self, op: upmem.LaunchOp) -> KernelCode:
        name = op.kernel.string_value()
        if name not in self._kernels:
            self._kernels[name] = compile_kernel(
                self._find_kernel(op),
                self.machine,
                self.options.addressing,
                traced=self.options.cycles == "event",
            )
        return self._kernels[name]

    def _find_kernel(self, op: upmem.LaunchOp) -> upmem.KernelOp:
        name = op.kernel.string_value()
        for kernel in self.module.ops:
            if isinstance(kernel, upmem.KernelOp) and kernel.sym_name.data == name:
                formal = [arg.type for arg in kernel.body.block.args]
                if formal == [value.type for value in op.args]:
                    return kernel
                raise UserError(
                    f"launch of @{name} with ({', '.join(str(v.type) for v in op.args)})",
                    f"it takes ({', '.join(str(attr) for attr in formal)})",
                    None,
                    location_of(op),
                )
        names = [f"@{k.sym_name.data}" for k in self.module.ops if isinstance(k, upmem.KernelOp)]
        raise UserError(
            f"there is no kernel @{name}",
            f"the module has {', '.join(names) or 'none'}",
            None,
            location_of(op),
        )

    def _usable(self, op: Operation, dpus: DpuSet) -> DpuSet:
        """The set, when it may be used now."""
        if dpus.freed:
            raise UserError(
                f"'{op.name}' on DPUs that were freed", None, "free them last", location_of(op)
            )
        if dpus.running:
            raise UserError(
                f"'{op.name}' while a kernel runs on the DPUs",
                "the host cannot use their MRAM meanwhile",
                "put an upmem.wait before it",
                location_of(op),
            )
        return dpus

    def _transfer_size(self, op: Operation, count: int, element: int, offset: int) -> int:
        """Bytes a DPU of a transfer, checked."""
        size = count * element
        if count < 0 or size % upmem.DMA_ALIGN:
            raise UserError(
                f"'{op.name}' of {size} bytes a DPU",
                f"host transfers move a multiple of {upmem.DMA_ALIGN} bytes",
                "round the count up",
                location_of(op),
            )
        if offset + size > self.machine.mram_bytes:
            raise UserError(
                f"'{op.name}' ends at byte {offset + size} of MRAM",
                f"a DPU of {self.machine.name} has {self.machine.mram_bytes} bytes",
                "use more DPUs, or rounds",
                location_of(op),
            )
        return size

    def _not_negative(self, op: Operation, numbers: dict[str, int]) -> None:
        for name, value in numbers.items():
            if value < 0:
                raise UserError(
                    f"{name} of '{op.name}' is {value}", "it is 0 or more", None, location_of(op)
                )

    # -- host ----------------------------------------------------------------------------------

    def compact(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Closes the gaps that a filter leaves."""
        assert isinstance(op, upmem.CompactOp)
        data, capacity, counts, dest, position = args
        if not self.may_overwrite(op, 3) or not dest.flags.writeable:
            dest = dest.copy()
        upmem_merge.compact(op, data, int(capacity), counts, dest, int(position))
        return [dest]

    def merge_scan(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Joins local scans."""
        assert isinstance(op, upmem.MergeScanOp)
        count = len(op.inits)
        locals_, totals, inits = (list(args[n * count : (n + 1) * count]) for n in range(3))
        program = self.regions.program(op.combine.block)
        shared = args[3 * count : -2]
        merged, carries = upmem_merge.merge_scan(
            op, program, locals_, totals, inits, shared, int(args[-2]), int(args[-1])
        )
        return [*merged, *carries]

    def merge_reduce(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Folds partial results."""
        assert isinstance(op, upmem.MergeReduceOp)
        count = len(op.inits)
        program = self.regions.program(op.combine.block)
        return upmem_merge.merge_reduce(op, program, args[:count], list(args[count:]))

    def host_thread(self, op: Operation, args: tuple[Values, ...]) -> Sequence[Values]:
        """Runs its body on a clock of its own."""
        assert isinstance(op, upmem.HostThreadOp)
        start = self.account_book.now
        values = self._pass_to(op, self._run(op.body.block))
        end = self.account_book.thread(start)
        self._ready.update(dict.fromkeys(op.results, end))
        return values

    handlers: ClassVar[dict[str, Handler]] = {
        **HostEvaluator.handlers,
        "upmem.alloc": alloc,
        "upmem.free": free,
        "upmem.push": push,
        "upmem.broadcast": broadcast,
        "upmem.pull": pull,
        "upmem.launch": launch,
        "upmem.wait": wait,
        "upmem.compact": compact,
        "upmem.gather": gather,
        "upmem.merge_scan": merge_scan,
        "upmem.merge_reduce": merge_reduce,
        "upmem.host_thread": host_thread,
    }


def _extent(array: upmem.MramOp) -> tuple[int, int]:
    """First byte of an MRAM array, and the byte after its last."""
    attr = array.result.type
    assert isa(attr, MemRefType)
    start = array.offset.value.data
    return start, start + attr.get_shape()[0] * upmem.element_bytes(attr.element_type)


def _kernel_argument(value: SSAValue, given: Values) -> Values:
    """A launch argument as generated code wants it: an index is a Python int."""
    return int(given) if isinstance(value.type, IndexType) else given
