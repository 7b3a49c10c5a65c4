"""Emits a pattern into a kernel, with the code that its kind takes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from cim_opt.dialects.pattern import FilterBase, PatternOp, ReduceOp, ScanOp
from cim_opt.lowering.emit import Index
from cim_opt.lowering.upmem_kernel import KernelBuilder
from cim_opt.lowering.upmem_stages import FilterCode, FoldCode, StageCode
from cim_opt.lowering.upmem_stream import StreamedGroupCode, streamed_reduce


def emit_stage(
    kernel: KernelBuilder,
    op: PatternOp,
    inputs: dict[SSAValue, SSAValue],
    outputs: dict[int, SSAValue],
    extra: dict[int, SSAValue],
    block: int,
    piece: int,
    copies: int,
    owners: Index,
    chunk: Index,
    active: Index,
) -> None:
    """Emits a pattern; `extra` has a scan's totals by accumulator, a filter's counts at 0.

    `block` is in owners, `piece` in elements of a row that is read in pieces.
    """
    args = (kernel, op, inputs, outputs, block, owners, chunk)
    reduce = streamed_reduce(op)
    match op:
        case FilterBase():
            FilterCode(*args).emit_filter(extra[0])
        case ScanOp():
            FoldCode(*args).emit_scan(extra)
        case ReduceOp() if op.tensor_accumulators:
            FoldCode(*args).emit_reduce_tables(copies)
        case ReduceOp():
            FoldCode(*args).emit_reduce(active)
        case _ if reduce is not None:
            StreamedGroupCode(*args, piece).emit_rows(reduce)
        case _:
            StageCode(*args).emit_elementwise()
