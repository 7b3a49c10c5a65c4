"""`convert-pattern-to-simdram`: patterns become bbops on vertical objects.

Before:

    func.func @add(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
      %c = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
        %s = arith.addi %x, %y : i32
        pattern.yield %s : i32
      }
      func.return %c : tensor<?xi32>
    }

After, shortened:

    scf.for %i = 0 to %n step 65536 iter_args(%dest = %empty) {
      %x = simdram.transpose %a[%i] stride 1 count %lanes
      %y = simdram.transpose %b[%i] stride 1 count %lanes
      %s = simdram.bbop add(%x, %y)
      %r = simdram.read %s into %dest[%i] stride 1
      scf.yield %r
    }

Maps, windows and groups are evaluated where their results are read: objects stay vertical between
patterns. What the host does (partial results, compaction) stays `pattern` and `tensor` operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import Float32Type, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import (
    FilterBase,
    FoldOp,
    PatternOp,
    ReduceOp,
    ScanOp,
)
from cim_opt.dialects.simdram import MACHINE_ATTRIBUTE
from cim_opt.dialects.simdram_machine import machine_attribute
from cim_opt.errors import UserError
from cim_opt.hardware.simdram import SimdramMachine, load_machine
from cim_opt.locations import location_of
from cim_opt.lowering.emit import Emitter, Index
from cim_opt.lowering.function_lowering import (
    FunctionLowering,
    check_patterns_only,
    uses_any,
)
from cim_opt.lowering.simdram_roots import Roots
from cim_opt.lowering.simdram_vectors import Vectors


@dataclass(frozen=True)
class ConvertPatternToSimdramPass(ModulePass):
    """Lowers `pattern` operations to the `simdram` dialect; `machine` is a name or a TOML file."""

    name = "convert-pattern-to-simdram"

    machine: str = "simdram-1"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = load_machine(self.machine)
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            check_patterns_only(function, "SIMDRAM")
            SimdramFunctionLowering(function, machine).rebuild()
        op.attributes[MACHINE_ATTRIBUTE] = machine_attribute(machine)


class SimdramFunctionLowering(FunctionLowering):
    """Rebuilds a function's body for a machine."""

    def __init__(self, function: FuncOp, machine: SimdramMachine):
        super().__init__(function)
        self.machine = machine

    def lower_block(self, block: Block, emit: Emitter) -> None:
        vectors = Vectors(emit, self.values)
        roots = Roots(vectors, self.machine)
        pending: list[SSAValue] = []
        for op in block.ops:
            if self._needs(op, pending):
                self._fetch(roots, pending)
            if not isinstance(op, PatternOp):
                self.copy(op, emit)
                continue
            _check_types(op)
            if isinstance(op, FoldOp | FilterBase):
                with emit.at(op):
                    self._finish(roots, op)
                continue
            vectors.producers.update((out, (op, i)) for i, out in enumerate(op.outs))
            pending += [out for out in op.outs if _fetched(out)]
        self._fetch(roots, pending)

    def _needs(self, op: Operation, pending: list[SSAValue]) -> bool:
        """True when `op` needs a pending vector whole, on the host."""
        waiting = set(pending)
        if not isinstance(op, PatternOp):
            return uses_any(op, waiting)
        return any(value in waiting for value in (*op.shared, *op.accumulators()))

    def _finish(self, roots: Roots, op: FoldOp | FilterBase) -> None:
        """Results that the host finishes."""
        match op:
            case FilterBase():
                results = roots.filter(op)
            case ReduceOp():
                results = roots.reduce(op)
            case ScanOp():
                results = roots.scan(op)
            case _:
                raise AssertionError(op.name)
        for old, new in zip(op.outs, results, strict=True):
            self._bind(roots.emit, old, new)

    def _fetch(self, roots: Roots, pending: list[SSAValue]) -> None:
        """Reads back what the host needs, vectors of one length in one loop."""
        groups: list[tuple[Index, list[SSAValue]]] = []
        for value in pending:
            length = roots.vectors.length(value)
            same = next((group for have, group in groups if have == length), None)
            if same is None:
                groups.append((length, [value]))
            else:
                same.append(value)
        pending.clear()
        for _, group in groups:
            producer, _ = roots.vectors.producers[group[0]]
            with roots.emit.at(producer):
                results = roots.elementwise(group)
            for old, new in zip(group, results, strict=True):
                self._bind(roots.emit, old, new)

    def _bind(self, emit: Emitter, old: SSAValue, new: SSAValue) -> None:
        if old.type != new.type and isa(old.type, TensorType):
            new = emit.insert(tensor.CastOp(new, old.type)).results[0]
        new.name_hint = old.name_hint
        self.values[old] = new


def _fetched(value: SSAValue) -> bool:
    """True when the host, or a shared operand, uses the value whole."""
    return any(
        not isinstance(use.operation, PatternOp) or value not in use.operation.inputs
        for use in value.uses
    ) or any(
        isinstance(use.operation, PatternOp)
        and value in (*use.operation.shared, *use.operation.accumulators())
        for use in value.uses
    )


def _check_types(op: PatternOp) -> None:
    """Raises UserError for floating point, which SIMDRAM does not have."""
    for value in (*op.operands, *op.outs):
        attr = value.type.element_type if isa(value.type, TensorType) else value.type
        if isinstance(attr, Float32Type):
            raise UserError(
                f"'{op.name}' computes with {attr}",
                "SIMDRAM has integers only, no floating point",
                "use fixed point, or run it on upmem",
                location_of(op),
            )
