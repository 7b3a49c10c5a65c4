"""The `poly` dialect: affine kernels as isl objects, and how they are mapped to a machine.

A `poly.kernel` is a perfect loop nest: a *domain* of integer points, one *access* an operand, and a
body that every point executes. Sets and maps are isl text, parsed once and printed canonically. The
passes `poly-*` read one kernel and write another: splits change domain and accesses, schedules and
mappings are attributes.

Source: PolyCIM, section 3.2 (domain and access maps of operators).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntElementsAttr,
    DictionaryAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, Region, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa


class _IslAttr(ParametrizedAttribute):
    """isl text in angle brackets: `<"{ [i] : 0 <= i < 8 }">`."""

    text: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            position = parser.pos
            text = parser.parse_str_literal()
            try:
                return [StringAttr(cls.canonical(text))]
            except ValueError as error:
                parser.raise_error(str(error), position, parser.pos)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.text.data)

    @classmethod
    def canonical(cls, text: str) -> str:
        """The text as isl prints it. Raises ValueError when isl cannot read it."""
        raise NotImplementedError


@irdl_attr_definition
class SetAttr(_IslAttr):
    """A set of integer points: `#poly.set<"{ [i, j] : 0 <= i <= 7 and 0 <= j <= 2 }">`."""

    name = "poly.set"

    def __init__(self, text: str | StringAttr):
        super().__init__(StringAttr(self.canonical(text)) if isinstance(text, str) else text)

    @classmethod
    def canonical(cls, text: str) -> str:
        from cim_opt.polyhedral.sets import parse_set

        return str(parse_set(text))


@irdl_attr_definition
class MapAttr(_IslAttr):
    """A map between integer points: `#poly.map<"{ [i, j] -> [i + j] }">`."""

    name = "poly.map"

    def __init__(self, text: str | StringAttr):
        super().__init__(StringAttr(self.canonical(text)) if isinstance(text, str) else text)

    @classmethod
    def canonical(cls, text: str) -> str:
        from cim_opt.polyhedral.sets import map_text, parse_map

        return map_text(parse_map(text))


@irdl_attr_definition
class ImageAttr(ParametrizedAttribute):
    """One set of weights for a macro, relative to the position of a step.

    `rows` are input offsets (channel, coordinates), `columns` output offsets, one a line; `dropped`
    are pairs (row, column) whose product another column or image takes.
    """

    name = "poly.image"
    rows: DenseIntElementsAttr = param_def()
    columns: DenseIntElementsAttr = param_def()
    dropped: DenseIntElementsAttr = param_def()

    def verify(self) -> None:
        rows, width = _table_shape("rows", self.rows)
        columns, _ = _table_shape("columns", self.columns, width)
        if min(rows, columns) < 1:
            raise VerifyException(f"an image has rows and columns, got {rows} and {columns}")
        _table_shape("dropped", self.dropped, 2)
        values = list(self.dropped.get_values())
        for row, column in zip(values[::2], values[1::2], strict=True):
            if not (0 <= row < rows and 0 <= column < columns):
                raise VerifyException(
                    f"what an image drops is a pair of its {rows} rows and {columns} columns, "
                    f"got ({row}, {column})"
                )


@irdl_attr_definition
class CoverAttr(ParametrizedAttribute):
    """Images that a macro applies at every point of a lattice of output positions.

    `lattice` is a basis, one vector a line. `channels` are how many output and input channels of a
    group one image takes, and how many groups share one; more channels are more images of the same
    form.
    """

    name = "poly.cover"
    lattice: DenseIntElementsAttr = param_def()
    channels: DenseIntElementsAttr = param_def()
    images: ArrayAttr[ImageAttr] = param_def()

    def verify(self) -> None:
        vectors, rank = _table_shape("lattice", self.lattice)
        if vectors != rank:
            raise VerifyException(f"a lattice has a vector an axis, got {vectors} of {rank}")
        channels = list(self.channels.get_values())
        if self.channels.type.get_shape() != (1, 3) or min(channels) < 1:
            raise VerifyException(
                "channels are output, input and packed ones, at least 1 each, in one line, "
                f"got {self.channels.type}"
            )
        for image in self.images:
            _table_shape("rows", image.rows, 1 + rank)


def _table_shape(
    what: str, table: DenseIntElementsAttr, width: int | None = None
) -> tuple[int, int]:
    """Lines and columns of a table, which has `width` columns. Raises VerifyException."""
    shape = table.type.get_shape()
    if len(shape) != 2 or (width is not None and shape[1] != width):
        columns = "" if width is None else f" of {width} columns"
        raise VerifyException(f"{what} of an image or cover are a table{columns}, got {table.type}")
    return shape[0], shape[1]


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """What one point leaves in the output.

    ```mlir
    poly.yield %sum : i32
    ```
    """

    name = "poly.yield"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(KernelOp), Pure()))


@irdl_op_definition
class KernelOp(IRDLOperation):
    """Executes the body at every point of the domain.

    The body gets the elements of the two inputs and of the output that the point's accesses name
    (inputs, weights, output in this order), and yields the new element of the output, which starts
    as `init`. With `padded` the access to the first operand may leave the tensor: it reads zeros
    there.

    `schedule`, `cover`, `macros`, `layout` and `order` say how the kernel is mapped, not what it
    computes. `macros` counts macros over rounds of the same sums, groups, output channels, and
    positions; `layout` says how inputs lie in memory, as `poly-layout` chooses it, and `order` is
    that of instructions, as `poly-data-movement` does.

    ```mlir
    %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%init : tensor<2x8xi32>)
        domain <"{ [oc, ow, kw] : 0 <= oc <= 1 and 0 <= ow <= 7 and 0 <= kw <= 2 }">
        accesses [#poly.map<"{ [oc, ow, kw] -> [ow + kw] }">, ...] {
    ^bb0(%a: i8, %b: i8, %acc: i32):
      ...
      poly.yield %s : i32
    }
    ```
    """

    name = "poly.kernel"
    OUT: ClassVar = VarConstraint("OUT", BaseAttr(TensorType))
    input = operand_def(TensorType)
    weight = operand_def(TensorType)
    init = operand_def(OUT)
    domain = prop_def(SetAttr)
    accesses = prop_def(ArrayAttr[MapAttr])
    padded = opt_prop_def(UnitAttr)
    reuse = opt_prop_def(DictionaryAttr)
    splits = opt_prop_def(DictionaryAttr)
    basis = opt_prop_def(DictionaryAttr)
    schedule = opt_prop_def(MapAttr)
    cover = opt_prop_def(CoverAttr)
    macros = opt_prop_def(DenseArrayBase.constr(i64))
    layout = opt_prop_def(StringAttr)
    order = opt_prop_def(StringAttr)
    body = region_def("single_block")
    result = result_def(OUT)
    assembly_format = (
        "`ins` `(` $input `,` $weight `:` type($input) `,` type($weight) `)` "
        "`outs` `(` $init `:` type($init) `)` `domain` $domain `accesses` $accesses "
        "(`padded` $padded^)? (`reuse` $reuse^)? (`splits` $splits^)? (`basis` $basis^)? "
        "(`schedule` $schedule^)? (`cover` $cover^)? "
        "(`macros` $macros^)? (`layout` $layout^)? "
        "(`order` $order^)? "
        "attr-dict-with-keyword $body"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        input: SSAValue,
        weight: SSAValue,
        init: SSAValue,
        domain: SetAttr,
        accesses: Sequence[MapAttr],
        body: Region,
        padded: bool = False,
    ):
        properties: dict[str, Attribute] = {"domain": domain, "accesses": ArrayAttr(accesses)}
        if padded:
            properties["padded"] = UnitAttr()
        super().__init__(
            operands=[input, weight, init],
            result_types=[init.type],
            properties=properties,
            regions=[body],
        )

    def verify_(self) -> None:
        from cim_opt.polyhedral import sets

        if len(self.accesses) != 3:
            raise VerifyException(f"a kernel has 3 accesses, got {len(self.accesses)}")
        domain = sets.parse_set(self.domain.text.data)
        if not domain.is_bounded():
            raise VerifyException(f"a domain is bounded, got {domain}")
        for index, (what, value) in enumerate(self._tensors()):
            self._verify_access(index, what, _static_shape(what, value))
        self._verify_body()
        if self.macros is not None:
            counts = self.macros.get_values()
            if len(counts) != 4 or min(counts) < 1:
                raise VerifyException(
                    "macros are counted along 4 dimensions, at least 1 along each, "
                    f"got {list(counts)}"
                )
        _verify_vectors("reuse", self.reuse, ("input", "weight", "output"))
        _verify_vectors("basis", self.basis, ("time", "row", "column"))
        for name, factors in (self.splits or DictionaryAttr({})).data.items():
            if min(_integers(factors) or (0,)) < 2:
                raise VerifyException(f"levels of a split are 2 or more, got {factors} for {name}")
        if self.schedule is not None:
            schedule = sets.parse_map(self.schedule.text.data)
            if not domain.is_subset(schedule.domain()):
                raise VerifyException("the schedule does not place every point of the domain")

    def _tensors(self) -> list[tuple[str, SSAValue]]:
        return [("input", self.input), ("weight", self.weight), ("output", self.init)]

    def _verify_access(self, index: int, what: str, shape: Sequence[int]) -> None:
        """The access gives each point one element of the tensor."""
        from cim_opt.polyhedral import sets

        domain = sets.parse_set(self.domain.text.data)
        access = sets.parse_map(self.accesses.data[index].text.data)
        if not sets.fits(access, domain, len(shape)):
            raise VerifyException(
                f"access to the {what} takes points of the domain to {len(shape)} indices, "
                f"got {access}"
            )
        reached = access.intersect_domain(domain)
        if not reached.is_single_valued() or not domain.is_subset(access.domain()):
            raise VerifyException(f"access to the {what} gives each point one element")
        if index == 0 and self.padded is not None:
            return
        outside = reached.range().subtract(sets.box(shape))
        if not outside.is_empty():
            raise VerifyException(
                f"access to the {what} leaves its tensor of {'x'.join(map(str, shape))}, "
                f"at {outside.lexmin()}"
            )

    def _verify_body(self) -> None:
        elements = [_element(value) for _, value in self._tensors()]
        got = [arg.type for arg in self.body.block.args]
        if got != elements:
            raise VerifyException(
                f"body takes the elements ({', '.join(map(str, elements))}), "
                f"got ({', '.join(map(str, got))})"
            )
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or [arg.type for arg in last.arguments] != elements[2:]:
            raise VerifyException(f"body ends in poly.yield of one {elements[2]}")


def _integers(attr: Attribute) -> tuple[int, ...] | None:
    """The entries of an array of i64, else None."""
    if not isa(attr, DenseArrayBase[IntegerType]) or attr.elt_type != i64:
        return None
    return tuple(attr.get_values())


def _verify_vectors(what: str, attr: DictionaryAttr | None, names: tuple[str, ...]) -> None:
    """Each name has an array of vectors, all equally long."""
    if attr is None:
        return
    if set(attr.data) != set(names):
        raise VerifyException(f"{what} has {', '.join(names)}, got {', '.join(attr.data)}")
    lengths: set[int] = set()
    for name, vectors in attr.data.items():
        if not isa(vectors, ArrayAttr[Attribute]):
            raise VerifyException(f"{what} has vectors of i64, got {vectors} for {name}")
        for vector in vectors:
            entries = _integers(vector)
            if entries is None:
                raise VerifyException(f"{what} has vectors of i64, got {vector} for {name}")
            lengths.add(len(entries))
    if len(lengths) > 1:
        raise VerifyException(f"vectors of {what} are equally long, got {sorted(lengths)}")


def _static_shape(what: str, value: SSAValue) -> tuple[int, ...]:
    attr = value.type
    if not isa(attr, TensorType) or not attr.has_static_shape():
        raise VerifyException(f"{what} has a static shape, got {attr}")
    if not isa(attr.element_type, IntegerType):
        raise VerifyException(f"{what} holds integers, got {attr}")
    return attr.get_shape()


def _element(value: SSAValue) -> Attribute:
    assert isa(value.type, TensorType)
    return value.type.element_type


OPERATIONS: list[type[Operation]] = [KernelOp, YieldOp]
ATTRIBUTES: list[type[Attribute]] = [SetAttr, MapAttr, ImageAttr, CoverAttr]

Poly = Dialect("poly", OPERATIONS, ATTRIBUTES)
