"""`pattern-narrow`: fewer bits, where the result is provably the same.

    func.func @dot(%a: tensor<?xi32> {pattern.range = [0, 255]},
                   %b: tensor<?xi32> {pattern.range = [0, 255]}) -> i32 {
      ...
        %m = arith.muli %x, %y : i32

becomes

        %m0 = arith.trunci %x : i32 to i8
        %m1 = arith.extui %m0 : i8 to i16
        ...
        %m2 = arith.muli %m1, %m3 : i16          // 8 x 8 bits: one instruction of a DPU
        %m = arith.extui %m2 : i16 to i32

What values can be follows from types, constants, masks and the ranges that the function declares
for its arguments (`range_analysis.py`). With `widths=native` operations have 8, 16, 32 or 64 bits,
and only those change that are dear: multiplications, divisions of 64 bits or with a sign, vectors
that one pattern stores for another. With `widths=any`, for machines where every bit takes time,
every operation, every such vector and every scalar accumulator is as narrow as can be proved.
Arguments and returned values keep their types.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import dce
from xdsl.utils.hints import isa

from cim_opt.dialects.pattern import FoldOp, PatternOp
from cim_opt.passes.narrow_policy import Widths
from cim_opt.passes.narrow_rebuild import Rebuilder
from cim_opt.passes.narrow_storage import combine_of, plan_storage, simple_steps
from cim_opt.passes.range_analysis import RangeAnalysis


@dataclass(frozen=True)
class PatternNarrowPass(ModulePass):
    """Shrinks bit widths; see the module's documentation."""

    name = "pattern-narrow"

    widths: Widths = "native"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [inner for inner in op.walk() if isinstance(inner, FuncOp)]
        for function in functions:
            if any(isinstance(inner, PatternOp) for inner in function.walk()):
                narrow_function(function, self.widths)
        dce(op)


def narrow_function(function: FuncOp, widths: Widths) -> None:
    """Narrows the values in a function of patterns, in place."""
    if len(function.body.blocks) != 1:
        return
    if widths == "any":
        _add_combines(function)
    analysis = RangeAnalysis(function)
    plan = plan_storage(function, analysis, widths)
    old = function.body.block
    new = Block(arg_types=[arg.type for arg in old.args])
    Rebuilder(analysis, plan, widths).function_block(old, new)
    function.detach_region(function.body)
    function.add_region(Region(new))


def _add_combines(function: FuncOp) -> None:
    """Lets body and combine function differ, so that inputs and accumulators can."""
    for op in function.walk():
        if not isinstance(op, FoldOp) or op.combine is not None:
            continue
        steps = simple_steps(op)
        types = [init.type for init in op.inits if isa(init.type, IntegerType)]
        if steps is not None and len(types) == len(steps):
            op.add_region(combine_of(steps, types))
