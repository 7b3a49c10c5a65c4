"""The example of `poly` is valid; its refusals, and those of ours in linalg, are tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlir_examples import parsed
from refusals import refusals_in
from xdsl.dialects.builtin import DenseIntElementsAttr, TensorType, i64

from cim_opt.dialects import linalg_convolutions, poly
from cim_opt.dialects.poly import KernelOp, MapAttr, SetAttr

DIALECTS = Path(__file__).parent / "filecheck" / "dialects"


@pytest.mark.parametrize(
    ("folder", "module"), [("poly", poly.__file__), ("linalg", linalg_convolutions.__file__)]
)
def test_every_refusal_has_a_test(folder: str, module: str) -> None:
    checks = [
        line
        for file in (DIALECTS / folder).glob("*.mlir")
        for line in file.read_text().splitlines()
        if "// CHECK" in line
    ]
    refusals = [parts for parts in refusals_in(Path(module)) if parts]
    assert len(refusals) >= 6
    for parts in refusals:
        assert any(all(part in line for part in parts) for line in checks), "".join(parts)


@pytest.mark.parametrize("attribute", [SetAttr, MapAttr])
def test_attributes_refuse_what_is_no_isl(attribute: type[SetAttr] | type[MapAttr]) -> None:
    with pytest.raises(ValueError, match="of isl: nonsense"):
        attribute("nonsense")


def test_attributes_are_canonical() -> None:
    assert SetAttr("{[i]: i>=0 and i<8}") == SetAttr("{ [i] : 0 <= i <= 7 }")
    assert MapAttr("{[i]->[i+i]}").text.data == "{ [i] -> [2i] }"


def test_the_example_of_the_kernel_parses() -> None:
    text = re.search(r"```mlir\n(.*?)```", KernelOp.__doc__ or "", re.DOTALL)
    assert text is not None
    body = "%s = arith.addi %acc, %acc : i32"
    maps = '#poly.map<"{ [oc, ow, kw] -> [oc, kw] }">, #poly.map<"{ [oc, ow, kw] -> [oc, ow] }">'
    block = text[1].replace("...]", f"{maps}]").replace("...", body)
    arguments = "%x: tensor<10xi8>, %w: tensor<2x3xi8>, %init: tensor<2x8xi32>"
    module = parsed(f"func.func @f({arguments}) {{\n{block}\nfunc.return\n}}")
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert str(parsed(str(module))) == str(module)
    # Built without text it is the same.
    body_region = kernel.detach_region(kernel.body)
    again = KernelOp(
        kernel.input,
        kernel.weight,
        kernel.init,
        kernel.domain,
        list(kernel.accesses.data),
        body_region,
        padded=True,
    )
    again.verify()
    assert again.padded is not None and again.result.type == kernel.init.type


def test_our_convolutions_are_built_in_python() -> None:
    text = "func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) { func.return }"
    module = parsed(text)
    (function,) = module.ops
    x, w, z = function.regions[0].block.args
    padding = DenseIntElementsAttr.from_list(TensorType(i64, [1]), [1])
    op = linalg_convolutions.Conv1DOp([x, w], [z], {"padding": padding})
    op.verify()
    assert [value.type for value in op.res] == [z.type]
    assert op.zeros() == [(1, 1)]
