"""The programs of docs/poly.md are valid, and the passes turn each `before` into its `after`."""

from __future__ import annotations

import re
from pathlib import Path

from mlir_examples import full_context, mlir_blocks, parsed
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from cim_opt.dialects import linalg_convolutions
from cim_opt.dialects.poly import KernelOp
from cim_opt.lowering.convert_linalg_to_poly import ConvertLinalgToPolyPass
from cim_opt.lowering.convert_pattern_to_poly import ConvertPatternToPolyPass

PAGE = Path(__file__).parents[1] / "docs" / "poly.md"


def check(before: str, after: str, steps: list[ModulePass]) -> None:
    context = full_context()
    module, expected = parsed(before, context), parsed(after, full_context())
    for step in steps:
        step.apply(context, module)
    module.verify()
    # The same but for the names of values.
    assert module.is_structurally_equivalent(expected), f"{module}\n{expected}"


def test_kernels_of_the_page() -> None:
    blocks = mlir_blocks(PAGE.read_text())
    check(blocks[0], blocks[1], [ConvertLinalgToPolyPass()])
    check(blocks[2], blocks[3], [ConvertPatternToPolyPass()])


def test_every_added_operation_is_on_the_page() -> None:
    text = PAGE.read_text()
    for op in linalg_convolutions.OPERATIONS:
        assert f"`{op.name.removeprefix('linalg.')}`" in text, op.name


def test_passes_of_the_page() -> None:
    """After each pass the kernel has what its section shows."""
    page = PAGE.read_text()
    context, module = full_context(), parsed(mlir_blocks(page)[0], full_context())
    ConvertLinalgToPolyPass().apply(context, module)
    passes = Universe.get_multiverse().all_passes
    sections = re.findall(r"^### `(poly-[a-z-]+)`$(.*?)(?=^### |\Z)", page, re.M | re.S)
    assert len(sections) == 10
    for name, text in sections:
        blocks = re.findall(r"```text\n(.*?)```", text, re.S)
        if name != "poly-cover":
            passes[name]()().apply(context, module)
        kernel = next(op for op in module.walk() if isinstance(op, KernelOp))
        for block in blocks:
            assert " ".join(block.split()) in str(kernel), name
