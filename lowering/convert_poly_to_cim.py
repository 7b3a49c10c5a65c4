"""`convert-poly-to-cim`: mapped kernels become packed tensors and programs of macro instructions.

    %y = poly.kernel ins(%x, %w : ...) outs(%init : ...) domain ... accesses ... cover ... { ... }

becomes

    %p = cim.pack %x shape [...] map affine_map<...> ... : tensor<1x62x62xi8> -> tensor<31360xi8>
    %q = cim.pack %w shape [...] ... : tensor<1x7x7xi8> -> tensor<2560xi8>
    %s = cim.launch @kernel_0(%p, %q) {cim.macs = 153664 : i64} : (...) -> tensor<3136xi32>
    %y = cim.unpack %s into %init shape [...] ... : tensor<3136xi32>, ... -> tensor<1x56x56xi32>

and a `cim.program @kernel_0` of loops, copies and macro steps. A kernel without a cover, macros or
order gets those of the fewest modelled cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntElementsAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from cim_opt.dialects import cim
from cim_opt.dialects.cim_machine import machine_attribute
from cim_opt.dialects.poly import KernelOp
from cim_opt.hardware.cim import CimMachine, load_machine
from cim_opt.lowering.cim_emit import program
from cim_opt.lowering.poly_kernels import recognise_kernel
from cim_opt.lowering.poly_plans import plan_of
from cim_opt.mapping.cim_code import program as statements_of
from cim_opt.mapping.cim_packing import Packing, input_packing, output_packing, weight_packing
from cim_opt.mapping.cim_plan import Plan
from cim_opt.polyhedral.recognise import Recognised, TensorIndex


@dataclass(frozen=True)
class ConvertPolyToCimPass(ModulePass):
    """Turns `poly.kernel` into programs for `machine`; see the module's documentation."""

    name = "convert-poly-to-cim"

    machine: str = "cim-32x64-8"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = load_machine(self.machine)
        kernels = [inner for inner in op.walk() if isinstance(inner, KernelOp)]
        for number, kernel in enumerate(kernels):
            _Lowering(op, kernel, machine, f"kernel_{number}").lower(ctx)
        op.attributes[cim.MACHINE_ATTRIBUTE] = machine_attribute(machine)


class _Lowering:
    """One kernel."""

    def __init__(self, module: ModuleOp, op: KernelOp, machine: CimMachine, name: str) -> None:
        self._module, self._op, self._machine, self._name = module, op, machine, name

    def lower(self, ctx: Context) -> None:
        found = recognise_kernel(self._op)
        plan = plan_of(self._op, found, self._machine).plan
        operands = [self._op.input, self._op.weight]
        if found.swapped:
            operands.reverse()
        input, weight = operands
        result = self._op.init
        for part in range(plan.parts):
            packed = [
                self._pack(ctx, plan, input, input_packing(plan, part), found.input),
                self._pack(ctx, plan, weight, weight_packing(plan, part), found.weight),
            ]
            sums = self._launch(plan, packed, part)
            result = self._unpack(ctx, sums, result, output_packing(plan, part), found, plan.parts)
        Rewriter.replace_op(self._op, [], [result])
        device = program(self._name, statements_of(plan))
        first = self._module.body.block.first_op
        assert first is not None
        Rewriter.insert_op(device, InsertPoint.before(first))

    def _launch(self, plan: Plan, packed: list[SSAValue], part: int) -> SSAValue:
        launch = cim.LaunchOp(self._name, packed, TensorType(i32, [prod(plan.output_shape)]))
        # Equal shares of the products, which add up to all of them.
        first, last = (plan.kernel.macs * number // plan.parts for number in (part, part + 1))
        launch.attributes["cim.macs"] = IntegerAttr(last - first, i64)
        self._insert(launch)
        return launch.result

    def _unpack(
        self,
        ctx: Context,
        sums: SSAValue,
        init: SSAValue,
        packing: Packing,
        found: Recognised,
        parts: int,
    ) -> SSAValue:
        unpack = cim.UnpackOp(
            sums,
            init,
            packing.shape,
            _map(ctx, packing),
            packing.bounds,
            _index(found.output, len(packing.bounds)),
            _tables(packing),
            partial=parts > 1,
        )
        self._insert(unpack)
        return unpack.tensor

    def _insert(self, op: Operation) -> None:
        op.location = self._op.location
        Rewriter.insert_op(op, InsertPoint.before(self._op))

    def _pack(
        self,
        ctx: Context,
        plan: Plan,
        value: SSAValue,
        packing: Packing,
        index: tuple[TensorIndex, ...],
    ) -> SSAValue:
        """The operand in its order, of the width at which macros multiply both."""
        pack = cim.PackOp(
            value,
            packing.shape,
            _map(ctx, packing),
            packing.bounds,
            _index(index, len(packing.bounds)),
            _tables(packing),
            packing.divisors if packing.divisors and max(packing.divisors) > 1 else None,
            cim.table_attribute(packing.dropped) if packing.dropped else None,
            IntegerType(plan.bits),
        )
        self._insert(pack)
        return pack.packed


def _map(ctx: Context, packing: Packing) -> AffineMap:
    attr = Parser(ctx, packing.map_text).parse_attribute()
    assert isinstance(attr, AffineMapAttr)
    return attr.data


def _tables(packing: Packing) -> list[DenseIntElementsAttr]:
    return [cim.table_attribute(table) for table in packing.tables]


def _index(indices: tuple[TensorIndex, ...], coordinates: int) -> AffineMap:
    """Indices of a tensor as functions of a kernel's coordinates."""
    results: list[AffineExpr] = []
    for index in indices:
        total = AffineExpr.constant(index.constant)
        for term in index.terms:
            value = AffineExpr.dimension(term.coordinate)
            if term.divisor != 1:
                value = value // term.divisor
            if term.modulus is not None:
                value = value % term.modulus
            total = value * term.coefficient + total
        results.append(total)
    return AffineMap(coordinates, 0, tuple(results))
