"""Programs of one operation of `linalg`, as MLIR text, with arrays to run them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from convolution_oracle import SPATIAL, multiply, outputs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from cim_opt.dialects.poly import KernelOp
from cim_opt.lowering.convert_linalg_to_poly import ConvertLinalgToPolyPass
from cim_opt.simulators.reference import run_function
from cim_opt.tools.load_module import parse_text

Array = np.ndarray[Any, np.dtype[Any]]

FORMS = {
    "conv_1d": "w,w->w",
    "conv_2d": "hw,hw->hw",
    "conv_3d": "dhw,dhw->dhw",
    "conv_1d_ncw_fcw": "ncw,fcw->nfw",
    "conv_1d_nwc_wcf": "nwc,wcf->nwf",
    "conv_2d_nchw_fchw": "nchw,fchw->nfhw",
    "conv_2d_nhwc_fhwc": "nhwc,fhwc->nhwf",
    "conv_2d_nhwc_hwcf": "nhwc,hwcf->nhwf",
    "conv_2d_ngchw_fgchw": "ngchw,fgchw->ngfhw",
    "conv_2d_ngchw_gfchw": "ngchw,gfchw->ngfhw",
    "conv_2d_nhwgc_gfhwc": "nhwgc,gfhwc->nhwgf",
    "conv_3d_ncdhw_fcdhw": "ncdhw,fcdhw->nfdhw",
    "conv_3d_ndhwc_dhwcf": "ndhwc,dhwcf->ndhwf",
    "depthwise_conv_1d_ncw_cw": "ncw,cw->ncw",
    "depthwise_conv_1d_nwc_wc": "nwc,wc->nwc",
    "depthwise_conv_1d_nwc_wcm": "nwc,wcm->nwcm",
    "depthwise_conv_2d_nchw_chw": "nchw,chw->nchw",
    "depthwise_conv_2d_nhwc_hwc": "nhwc,hwc->nhwc",
    "depthwise_conv_2d_nhwc_hwcm": "nhwc,hwcm->nhwcm",
    "depthwise_conv_3d_ncdhw_cdhw": "ncdhw,cdhw->ncdhw",
    "depthwise_conv_3d_ndhwc_dhwc": "ndhwc,dhwc->ndhwc",
    "depthwise_conv_3d_ndhwc_dhwcm": "ndhwc,dhwcm->ndhwcm",
}
STOCK = {name for name in FORMS if name.startswith("conv_2d_n")}
"""Those that xDSL has itself: they need strides and dilations, and have no padding."""

PRODUCTS = {
    "matmul": "mk,kn->mn",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "dot": "k,k->",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "batch_matmul": "bmk,bkn->bmn",
}

SIZES = dict(n=2, c=3, f=4, g=2, m=5, k=6, b=2)


def type_of(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@dataclass
class Program:
    """Text with a function @main of input, weights and output, and the arrays' shapes."""

    text: str
    form: str
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    strides: Sequence[int] = ()
    dilations: Sequence[int] = ()
    padding: Sequence[tuple[int, int]] = ()
    spatial: str = SPATIAL

    def arrays(self, seed: int = 0, bits: tuple[int, int] = (8, 8)) -> list[Array]:
        """Random operands of so many bits; the output starts anywhere."""
        rng = np.random.default_rng(seed)
        inputs = [
            rng.integers(
                -(1 << (width - 1)), 1 << (width - 1), shape, np.int8 if width <= 8 else np.int16
            )
            for shape, width in zip(self.shapes[:2], bits, strict=True)
        ]
        return [*inputs, rng.integers(-(1 << 31), 1 << 31, self.shapes[2], np.int64).astype("i4")]

    def expected(self, arrays: Sequence[Array]) -> Array:
        input, weight, init = arrays
        steps = self.strides, self.dilations, self.padding
        return multiply(self.form, input, weight, init, *steps, spatial=self.spatial)


def function(types: Sequence[str], body: str) -> str:
    names = ("x", "w", "z")
    arguments = ", ".join(f"%{name}: {type}" for name, type in zip(names, types, strict=True))
    return (
        f"func.func @main({arguments}) -> {types[2]} {{\n{body}\n"
        f"  func.return %y : {types[2]}\n}}\n"
    )


def named(
    name: str,
    sizes: dict[str, tuple[int, int]] | None = None,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    padding: Sequence[tuple[int, int]] = (),
    elements: tuple[str, str, str] = ("i8", "i8", "i32"),
) -> Program:
    """A program of `linalg.NAME`; `sizes` has (input, taps) for each spatial letter."""
    form = FORMS.get(name) or PRODUCTS[name]
    letters, taps, output = (*form.split("->")[0].split(","), form.split("->")[1])
    sliding = [i for i in output if i in SPATIAL] if name in FORMS else []
    sizes = sizes or dict(zip("whd", ((7, 3), (6, 2), (5, 2)), strict=True))
    ones = [1] * len(sliding)
    zeros = dict(zip(sliding, padding or [(0, 0)] * len(sliding), strict=True))
    step = dict(zip(sliding, zip(strides or ones, dilations or ones, strict=True), strict=True))
    count = {i: outputs(*sizes[i], *step[i], zeros[i]) for i in sliding}
    shapes = (
        tuple(sizes[i][0] if i in count else SIZES[i] for i in letters),
        tuple(sizes[i][1] if i in count else SIZES[i] for i in taps),
        tuple(count.get(i) or SIZES[i] for i in output),
    )
    types = [type_of(shape, element) for shape, element in zip(shapes, elements, strict=True)]
    attributes: list[str] = []
    if sliding and (strides or name in STOCK):
        attributes.append(dense("strides", strides or ones))
    if sliding and (dilations or name in STOCK):
        attributes.append(dense("dilations", dilations or ones))
    head, read = "", types[0]
    if padding and name in STOCK:
        padded = [n + sum(zeros.get(i, (0, 0))) for i, n in zip(letters, shapes[0], strict=True)]
        read = type_of(padded, elements[0])
        head = pad(letters, zeros, types[0], read, elements[0])
    elif padding:
        pairs = ", ".join(f"[{a}, {b}]" for a, b in padding)
        attributes.append(f"padding = dense<[{pairs}]> : tensor<{len(padding)}x2xi64>")
    given = f" {{{', '.join(attributes)}}}" if attributes else ""
    body = (
        f"{head}  %y = linalg.{name}{given} ins({'%p' if head else '%x'}, %w : {read}, {types[1]}) "
        f"outs(%z : {types[2]}) -> {types[2]}"
    )
    text = function(types, body)
    spatial = SPATIAL if name in FORMS else ""
    return Program(text, form, shapes, strides, dilations, padding, spatial)


def dense(name: str, values: Sequence[int]) -> str:
    return f"{name} = dense<[{', '.join(map(str, values))}]> : tensor<{len(values)}xi64>"


def pad(
    letters: str, zeros: dict[str, tuple[int, int]], before: str, after: str, element: str
) -> str:
    low, high = (
        ", ".join(str(zeros.get(letter, (0, 0))[side]) for letter in letters) for side in (0, 1)
    )
    indices = ", ".join(f"%i{number}: index" for number in range(len(letters)))
    return (
        f"  %c0 = arith.constant 0 : {element}\n"
        f"  %p = tensor.pad %x low[{low}] high[{high}] {{\n"
        f"  ^bb0({indices}):\n    tensor.yield %c0 : {element}\n"
        f"  }} : {before} to {after}\n"
    )


def generic(
    loops: Sequence[str],
    maps: Sequence[str],
    iterators: Sequence[str],
    types: Sequence[str],
    body: str | None = None,
) -> str:
    """A program of `linalg.generic`; maps are written in the loops' names."""
    elements = [type.removesuffix(">").split("x")[-1].removeprefix("tensor<") for type in types]
    names = ", ".join(loops)
    text = "".join(
        f"#m{number} = affine_map<({names}) -> ({indices})>\n"
        for number, indices in enumerate(maps)
    )
    kinds = ", ".join(f'"{kind}"' for kind in iterators)
    body = body or MAC.format(a=elements[0], b=elements[1])
    arguments = ", ".join(f"%{n}: {e}" for n, e in zip(("a", "b", "acc"), elements, strict=True))
    return text + function(
        types,
        f"  %y = linalg.generic {{indexing_maps = [#m0, #m1, #m2], iterator_types = [{kinds}]}}\n"
        f"    ins(%x, %w : {types[0]}, {types[1]}) outs(%z : {types[2]}) {{\n"
        f"  ^bb0({arguments}):\n{body}\n  }} -> {types[2]}",
    )


MAC = """    %a0 = arith.extsi %a : {a} to i32
    %b0 = arith.extsi %b : {b} to i32
    %p = arith.muli %a0, %b0 : i32
    %s = arith.addi %acc, %p : i32
    linalg.yield %s : i32"""


def run(text: str | ModuleOp, arrays: Sequence[Array]) -> Array:
    module = parse_text(text, "test.mlir") if isinstance(text, str) else text
    (result,) = run_function(module, "main", arrays)
    return np.asarray(result)


def converted(text: str) -> ModuleOp:
    """The module after `convert-linalg-to-poly`, verified."""
    module = parse_text(text, "test.mlir")
    ConvertLinalgToPolyPass().apply(Context(), module)
    module.verify()
    return module


def kernels_of(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]
