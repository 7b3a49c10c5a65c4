"""Operations of `linalg` that xDSL does not have, under the names that MLIR gives them.

xDSL owns the dialect `linalg`, and an environment holds each dialect once. So `Linalg` here is
xDSL's dialect with these operations beside its own; `tools/universe.py` puts it in the place of
xDSL's. Each operation is described by the dimensions of its operands, as in `FORM`:

    nchw,chw->nchw       letters name loops; w, h and d are spatial: in the input
                         stride * position + dilation * tap, in the weights the tap, in the output
                         the position

Convolutions may have an attribute `padding`, which MLIR's do not: zeros around the input, without a
padded copy of it. It has one number for each spatial dimension, or a pair (before, behind).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseIntElementsAttr,
    TensorType,
)
from xdsl.dialects.linalg import Linalg as StockLinalg
from xdsl.dialects.linalg.abstract_ops import ConvOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import MatmulOp
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

SPATIAL = "dhw"


class _Contraction(NamedOperation):
    """A multiply-accumulate of two tensors into a third; elements are extended by their sign."""

    FORM: ClassVar[str]
    """Dimensions of input, weights and output, such as `mk,kn->mn`."""
    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        properties: dict[str, Attribute | None] | None = None,
    ):
        super().__init__(
            ins=inputs,
            outs=outputs,
            result_types=[[value.type for value in outputs if isa(value.type, TensorType)]],
            properties=properties,
            hidden_region=self.get_hidden_region(inputs, outputs),
        )

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return ConvOperation.get_hidden_region(inputs, outputs)

    @classmethod
    def dimensions(cls) -> tuple[str, str, str]:
        """The letters of input, weights and output."""
        operands, _, output = cls.FORM.partition("->")
        input, _, weight = operands.partition(",")
        return input, weight, output

    @classmethod
    def spatial(cls) -> str:
        """The spatial letters, in the order of strides and dilations."""
        return ""

    def steps(self) -> list[tuple[int, int, int]]:
        """Stride, dilation and zeros before, for each spatial dimension."""
        return []

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        input, weight, output = self.dimensions()
        loops = self._loops()
        number = {loop: index for index, loop in enumerate(loops)}

        def loop(name: str) -> AffineExpr:
            return AffineDimExpr(number[name])

        slide = dict(zip(self.spatial(), self.steps(), strict=True))

        def read(letter: str) -> AffineExpr:
            if letter not in slide:
                return loop(letter)
            stride, dilation, before = slide[letter]
            return loop(letter) * stride + loop("k" + letter) * dilation - before

        def tap(letter: str) -> AffineExpr:
            return loop("k" + letter if letter in slide else letter)

        results = [read(i) for i in input], [tap(i) for i in weight], [loop(i) for i in output]
        return [AffineMap(len(loops), 0, tuple(expressions)) for expressions in results]

    @classmethod
    def _loops(cls) -> list[str]:
        """Loops: those of the output, then the channels that are summed, then the taps."""
        input, _, output = cls.dimensions()
        summed = [letter for letter in input if letter not in output]
        return [*output, *summed, *("k" + letter for letter in cls.spatial())]

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        _, _, output = self.dimensions()
        reductions = len(self._loops()) - len(output)
        return ArrayAttr(
            (IteratorTypeAttr.parallel(),) * len(output)
            + (IteratorTypeAttr.reduction(),) * reductions
        )


class _Convolution(_Contraction):
    """A convolution with strides, dilations and padding, each 1, 1 and 0 where not given."""

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)
    padding = opt_prop_def(DenseIntElementsAttr)

    @classmethod
    def spatial(cls) -> str:
        return "".join(letter for letter in cls.dimensions()[2] if letter in SPATIAL)

    def steps(self) -> list[tuple[int, int, int]]:
        count = len(self.spatial())
        strides = _values(self.strides) or (1,) * count
        dilations = _values(self.dilations) or (1,) * count
        before = [low for low, _ in self.zeros()]
        return list(zip(strides, dilations, before, strict=True))

    def zeros(self) -> list[tuple[int, int]]:
        """Zeros before and behind the input, for each spatial dimension."""
        count = len(self.spatial())
        values = _values(self.padding) or (0,) * count
        if len(values) == count:
            return [(value, value) for value in values]
        return list(zip(values[::2], values[1::2], strict=True))

    def verify_(self) -> None:
        count = len(self.spatial())
        for name, attr in (("strides", self.strides), ("dilations", self.dilations)):
            if attr is None:
                continue
            values = _values(attr)
            if attr.get_shape() != (count,) or min(values) < 1:
                raise VerifyException(f"{name} are {count} numbers of at least 1, got {values}")
        if self.padding is None:
            return super().verify_()
        self._verify_padding(self.padding, count)

    def _verify_padding(self, padding: DenseIntElementsAttr, count: int) -> None:
        values = _values(padding)
        if padding.get_shape() not in ((count,), (count, 2)) or min(values) < 0:
            raise VerifyException(
                f"padding is {count} numbers or pairs of at least 0, got {values}"
            )
        types = self.operand_types
        if not all(isinstance(type, TensorType) for type in types):
            raise VerifyException("padding is for tensors; a memref is read outside of its memory")
        self._verify_padded_shapes()

    def _verify_padded_shapes(self) -> None:
        """What `verify_` of xDSL checks, on the shapes that the padding makes."""
        shapes = [type.get_shape() for type in self.operand_types if isinstance(type, TensorType)]
        sizes: dict[str, int] = {}
        slide = dict(zip(self.spatial(), zip(self.steps(), self.zeros(), strict=True), strict=True))
        for letters, shape, prefix in zip(self.dimensions(), shapes, (None, "k", ""), strict=True):
            if len(letters) != len(shape):
                raise VerifyException(f"operands are {self.FORM}, got one of rank {len(shape)}")
            for letter, size in zip(letters, shape, strict=True):
                if letter in slide and prefix is None:
                    continue
                name = (prefix or "") + letter if letter in slide else letter
                if sizes.setdefault(name, size) != size and -1 not in (size, sizes[name]):
                    raise VerifyException(f"dimension {letter} is {sizes[name]} and {size}")
        for letter, ((stride, dilation, _), (before, behind)) in slide.items():
            size = shapes[0][self.dimensions()[0].index(letter)]
            outputs, taps = sizes[letter], sizes["k" + letter]
            if -1 in (size, outputs, taps):
                continue
            reach = stride * (outputs - 1) + dilation * (taps - 1) + 1
            if outputs and reach > size + before + behind:
                raise VerifyException(
                    f"{outputs} outputs along {letter} read {reach} inputs, "
                    f"there are {size} and {before} + {behind} zeros"
                )


def _values(attr: DenseIntElementsAttr | None) -> tuple[int, ...]:
    return () if attr is None else tuple(int(value) for value in attr.get_values())


@irdl_op_definition
class Conv1DOp(_Convolution):
    name = "linalg.conv_1d"
    FORM: ClassVar = "w,w->w"


@irdl_op_definition
class Conv2DOp(_Convolution):
    name = "linalg.conv_2d"
    FORM: ClassVar = "hw,hw->hw"


@irdl_op_definition
class Conv3DOp(_Convolution):
    name = "linalg.conv_3d"
    FORM: ClassVar = "dhw,dhw->dhw"


@irdl_op_definition
class Conv1DNcwFcwOp(_Convolution):
    name = "linalg.conv_1d_ncw_fcw"
    FORM: ClassVar = "ncw,fcw->nfw"


@irdl_op_definition
class Conv1DNwcWcfOp(_Convolution):
    name = "linalg.conv_1d_nwc_wcf"
    FORM: ClassVar = "nwc,wcf->nwf"


@irdl_op_definition
class Conv3DNcdhwFcdhwOp(_Convolution):
    name = "linalg.conv_3d_ncdhw_fcdhw"
    FORM: ClassVar = "ncdhw,fcdhw->nfdhw"


@irdl_op_definition
class Conv3DNdhwcDhwcfOp(_Convolution):
    name = "linalg.conv_3d_ndhwc_dhwcf"
    FORM: ClassVar = "ndhwc,dhwcf->ndhwf"


@irdl_op_definition
class DepthwiseConv1DNcwCwOp(_Convolution):
    name = "linalg.depthwise_conv_1d_ncw_cw"
    FORM: ClassVar = "ncw,cw->ncw"


@irdl_op_definition
class DepthwiseConv1DNwcWcOp(_Convolution):
    name = "linalg.depthwise_conv_1d_nwc_wc"
    FORM: ClassVar = "nwc,wc->nwc"


@irdl_op_definition
class DepthwiseConv1DNwcWcmOp(_Convolution):
    name = "linalg.depthwise_conv_1d_nwc_wcm"
    FORM: ClassVar = "nwc,wcm->nwcm"


@irdl_op_definition
class DepthwiseConv2DNchwChwOp(_Convolution):
    name = "linalg.depthwise_conv_2d_nchw_chw"
    FORM: ClassVar = "nchw,chw->nchw"


@irdl_op_definition
class DepthwiseConv2DNhwcHwcOp(_Convolution):
    name = "linalg.depthwise_conv_2d_nhwc_hwc"
    FORM: ClassVar = "nhwc,hwc->nhwc"


@irdl_op_definition
class DepthwiseConv2DNhwcHwcmOp(_Convolution):
    name = "linalg.depthwise_conv_2d_nhwc_hwcm"
    FORM: ClassVar = "nhwc,hwcm->nhwcm"


@irdl_op_definition
class DepthwiseConv3DNcdhwCdhwOp(_Convolution):
    name = "linalg.depthwise_conv_3d_ncdhw_cdhw"
    FORM: ClassVar = "ncdhw,cdhw->ncdhw"


@irdl_op_definition
class DepthwiseConv3DNdhwcDhwcOp(_Convolution):
    name = "linalg.depthwise_conv_3d_ndhwc_dhwc"
    FORM: ClassVar = "ndhwc,dhwc->ndhwc"


@irdl_op_definition
class DepthwiseConv3DNdhwcDhwcmOp(_Convolution):
    name = "linalg.depthwise_conv_3d_ndhwc_dhwcm"
    FORM: ClassVar = "ndhwc,dhwcm->ndhwcm"


@irdl_op_definition
class DotOp(_Contraction):
    name = "linalg.dot"
    FORM: ClassVar = "k,k->"


@irdl_op_definition
class MatvecOp(_Contraction):
    name = "linalg.matvec"
    FORM: ClassVar = "mk,k->m"


@irdl_op_definition
class VecmatOp(_Contraction):
    name = "linalg.vecmat"
    FORM: ClassVar = "k,kn->n"


@irdl_op_definition
class BatchMatvecOp(_Contraction):
    name = "linalg.batch_matvec"
    FORM: ClassVar = "bmk,bk->bm"


@irdl_op_definition
class BatchVecmatOp(_Contraction):
    name = "linalg.batch_vecmat"
    FORM: ClassVar = "bk,bkn->bn"


@irdl_op_definition
class BatchMatmulOp(_Contraction):
    name = "linalg.batch_matmul"
    FORM: ClassVar = "bmk,bkn->bmn"


class ExtendingMatmulOp(MatmulOp):
    """`linalg.matmul` that extends elements to the type that they are summed in, as MLIR does.

    xDSL's would add an i8 to an i32, and loses maps of its own when it is printed. They are
    written as MLIR writes them, `linalg.matmul indexing_maps = [...] ins(...)`. xDSL's definition
    is inherited as it is.
    """

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return ConvOperation.get_hidden_region(inputs, outputs)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        maps: Attribute | None = None
        if parser.parse_optional_keyword("indexing_maps") is not None:
            parser.parse_punctuation("=")
            maps = parser.parse_attribute()
        op = super().parse(parser)
        assert isinstance(op, cls)
        if maps is not None:
            op.properties["indexing_maps"] = maps
        return op

    def print(self, printer: Printer) -> None:
        if self.indexing_maps != _PLAIN_MATMUL:
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.indexing_maps)
        super().print(printer)


_PLAIN_MATMUL = ArrayAttr(
    AffineMapAttr(AffineMap(3, 0, (AffineDimExpr(row), AffineDimExpr(column))))
    for row, column in ((0, 2), (2, 1), (0, 1))
)
"""Maps of a product of matrices that are not transposed."""

OPERATIONS: list[type[Operation]] = [
    ExtendingMatmulOp,
    Conv1DOp,
    Conv2DOp,
    Conv3DOp,
    Conv1DNcwFcwOp,
    Conv1DNwcWcfOp,
    Conv3DNcdhwFcdhwOp,
    Conv3DNdhwcDhwcfOp,
    DepthwiseConv1DNcwCwOp,
    DepthwiseConv1DNwcWcOp,
    DepthwiseConv1DNwcWcmOp,
    DepthwiseConv2DNchwChwOp,
    DepthwiseConv2DNhwcHwcOp,
    DepthwiseConv2DNhwcHwcmOp,
    DepthwiseConv3DNcdhwCdhwOp,
    DepthwiseConv3DNdhwcDhwcOp,
    DepthwiseConv3DNdhwcDhwcmOp,
    DotOp,
    MatvecOp,
    VecmatOp,
    BatchMatvecOp,
    BatchVecmatOp,
    BatchMatmulOp,
]


def _stock_operations() -> list[type[Operation]]:
    """xDSL's operations, without those that one of ours stands for."""
    ours = {op.name for op in OPERATIONS}
    return [op for op in StockLinalg.operations if op.name not in ours]


Linalg = Dialect("linalg", [*_stock_operations(), *OPERATIONS], [*StockLinalg.attributes])
