"""`convert-pattern-to-poly`: patterns that multiply and accumulate become `poly.kernel`.

    %y = pattern.group<64>(%row in %m : tensor<640xi8>) shared(%v = %x : tensor<64xi8>)
        -> tensor<10xi32> {
      %dot = pattern.reduce(%a in %row : ..., %b in %v : ...) init(%acc = %zero : i32) {
        ... %acc + extsi(%a) * extsi(%b) ...
      } combine ...
      pattern.yield %dot : i32
    }

becomes a kernel that reads its first operand at [64 * o0 + k0] and its second at [k0]. Groups,
windows and groups with windows become kernels, and so does a reduce outside of them. What a group
makes of its sum afterwards becomes a `pattern.map`.

Macros multiply i8. Elements of more bits are cut into digits of 8 bits with a sign,

    x = d0 + 256 d1 + 65536 d2 + ...

and multiplied digit by digit; digits that the range of the values does not need, and products that
a sum of 32 bits does not hold, are left out. So GEMV of i32 values of any size takes 10 kernels,
and that of values declared as -128 to 127 takes one. Where both factors have 16 bits, one kernel of
i16 takes less than eight of i8.

The mapping needs every length: `sizes=` sets the `?` of the arguments, in their order, of function
`entry=`. Patterns are fused first.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import dce

from cim_opt.dialects.pattern import GroupOp, ReduceOp, WindowGroupOp, WindowOp
from cim_opt.lowering.pattern_products import product_of_group, product_of_reduce
from cim_opt.lowering.poly_digits import DigitKernels
from cim_opt.passes.pattern_fuse import PatternFusePass
from cim_opt.passes.range_analysis import RangeAnalysis
from cim_opt.passes.specialise_sizes import specialise


@dataclass(frozen=True)
class ConvertPatternToPolyPass(ModulePass):
    """Turns patterns into kernels where they are such; see the module's documentation."""

    name = "convert-pattern-to-poly"

    sizes: tuple[int, ...] | None = None
    entry: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternFusePass().apply(ctx, op)
        if self.sizes is not None:
            specialise(op, self.sizes, self.entry)
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            if len(function.body.blocks) == 1:
                _convert_function(function)
        dce(op)


def _convert_function(function: FuncOp) -> None:
    analysis = RangeAnalysis(function)
    for op in list(function.body.block.ops):
        if isinstance(op, ReduceOp):
            product = product_of_reduce(op)
        elif isinstance(op, GroupOp | WindowOp | WindowGroupOp):
            product = product_of_group(op)
        else:
            continue
        if product is not None:
            DigitKernels(product, analysis).replace()
