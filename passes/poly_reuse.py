"""`poly-reuse`: finds the directions of a kernel's loops along which an operand is reused.

    %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
        domain <"{ [oc, ow, kw] : ... }"> accesses [...] { ... }

becomes

    %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
        domain <"{ [oc, ow, kw] : ... }"> accesses [...]
        reuse {"input" = [array<i64: 1, 0, 0>, array<i64: 0, 1, -1>],
               "weight" = [array<i64: 0, 1, 0>], "output" = [array<i64: 0, 0, 1>]} { ... }

Each list is a basis of the integer vectors b over the loops with A b = 0, for the matrix A of the
access: here the input x[ow + kw] stays the same from one output channel to the next, and from a
position and tap to the next position and the tap before. Loops of one iteration have no direction.
Source: PolyCIM, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from cim_opt.dialects.poly import KernelOp
from cim_opt.passes.explain import remark


@dataclass(frozen=True)
class PolyReusePass(ModulePass):
    """Sets `reuse` of each `poly.kernel`; see the module's documentation."""

    name = "poly-reuse"

    explain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                self._annotate(kernel)

    def _annotate(self, op: KernelOp) -> None:
        from cim_opt.lowering.poly_kernels import loops_of
        from cim_opt.lowering.poly_schedules import vectors_attribute
        from cim_opt.polyhedral.reuse import directions

        extents, accesses = loops_of(op)
        names = ("input", "weight", "output")
        found = {
            name: list(directions(access.matrix, extents))
            for name, access in zip(names, accesses, strict=True)
        }
        op.reuse = vectors_attribute(found)
        if self.explain:
            texts = (f"{name} along {_listed(vectors)}" for name, vectors in found.items())
            remark(op, f"reuse: {'; '.join(texts)}")


def _listed(vectors: list[tuple[int, ...]]) -> str:
    return ", ".join(str(vector) for vector in vectors) or "nothing"
