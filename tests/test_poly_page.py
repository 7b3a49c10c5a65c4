"""The programs of docs/poly.md are valid, and the passes turn each `before` into its `after`."""

from __future__ import annotations

from pathlib import Path

from mlir_examples import full_context, mlir_blocks, parsed
from xdsl.passes import ModulePass

from cim_opt.dialects import linalg_convolutions
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
