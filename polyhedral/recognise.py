"""Recognises a loop nest of multiply-accumulates as a `MacKernel`, whatever its operands look like.

Each loop gets the role that its use in input, weight and output says:

    group         input, weight, output    depthwise channels, groups, batched products
    out_channel          weight, output
    in_channel    input, weight            reduced
    position      input,         output
    tap           input, weight            beside a position in one index of the input

An index `stride * position + dilation * tap - pad` of the input is an `Axis`; a position alone is
an axis of one tap. Several groups or channels become one, mixed radix, outermost loop first:

    # O[n, f, y, x] += I[n, c, 2 y + i - 1, 2 x + j - 1] * W[f, c, i, j]
    recognise((1, 8, 14, 14, 3, 3, 3), (input, weight, output), ((1, 3, 28, 28), (8, 3, 3, 3)))
    # MacKernel(1, 8, 3, (Axis(14, 3, 2, 1, 1, 28), Axis(14, 3, 2, 1, 1, 28)))

What is read as input and weight may change places (`swapped`): a matrix times a vector keeps the
matrix in the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from cim_opt.errors import UserError
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.reuse import Matrix, Row

Role = Literal["group", "out_channel", "in_channel", "position", "tap", "none"]
"""What a loop does; `none` is a loop of one iteration that makes no axis."""

_ROLES: dict[tuple[bool, bool, bool], Role] = {
    (True, True, True): "group",
    (False, True, True): "out_channel",
    (True, True, False): "in_channel",
    (True, False, True): "position",
}
_ONLY = {
    (True, False, False): "is used by the input alone",
    (False, True, False): "is used by the weights alone",
    (False, False, True): "is used by the output alone",
    (False, False, False): "is used by no operand",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Index i of an operand is sum over loops j of matrix[i][j] * loop j, plus offsets[i]."""

    matrix: Matrix
    offsets: tuple[int, ...]

    @staticmethod
    def of_function(loops: int, function: Callable[[list[int]], Sequence[int]]) -> Access:
        """The access that takes a point of `loops` loops to function(point), which is affine."""
        offsets = tuple(function([0] * loops))
        columns = [function([int(i == j) for i in range(loops)]) for j in range(loops)]
        matrix = tuple(tuple(c[i] - offset for c in columns) for i, offset in enumerate(offsets))
        return Access(matrix, offsets)

    def uses(self, loop: int) -> bool:
        """Whether any index depends on the loop."""
        return any(row[loop] for row in self.matrix)

    def stays_in(self, shape: Sequence[int], extents: Sequence[int]) -> bool:
        """Whether no point of a box of loops leaves a tensor of this shape."""
        bounds = zip(self.bounds(extents), shape, strict=True)
        return all(low >= 0 and high < size for (low, high), size in bounds)

    def bounds(self, extents: Sequence[int]) -> list[tuple[int, int]]:
        """The least and the greatest value of each index over a box of loops."""
        found: list[tuple[int, int]] = []
        for row, offset in zip(self.matrix, self.offsets, strict=True):
            ends = [value * (extent - 1) for value, extent in zip(row, extents, strict=True)]
            low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
            found.append((offset + low, offset + high))
        return found

    def turned(self, loop: int, extent: int) -> Access:
        """The access when the loop runs from its last iteration to its first."""
        last = extent - 1
        matrix = tuple(tuple(-v if j == loop else v for j, v in enumerate(r)) for r in self.matrix)
        moved = (
            offset + row[loop] * last for row, offset in zip(self.matrix, self.offsets, strict=True)
        )
        return Access(matrix, tuple(moved))


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient * (coordinate floordiv divisor mod modulus); no modulus when it is None."""

    coefficient: int
    coordinate: int
    divisor: int = 1
    modulus: int | None = None


@dataclass(frozen=True, slots=True)
class TensorIndex:
    """One index of a tensor as a sum of terms of a kernel's coordinates."""

    terms: tuple[Term, ...]
    constant: int = 0

    def at(self, coordinates: Sequence[int]) -> int:
        """The index for kernel coordinates."""
        total = self.constant
        for term in self.terms:
            value = coordinates[term.coordinate] // term.divisor
            total += term.coefficient * (value if term.modulus is None else value % term.modulus)
        return total


@dataclass(frozen=True, slots=True)
class Recognised:
    """A kernel, and where its operands lie in their tensors.

    Indices are given for these coordinates, x = stride * o + dilation * k without pad:

        input   (group, ic, x_0 .. )
        weight  (group, oc, ic, k_0 .. )
        output  (group, oc, o_0 .. )

    An index of the input may lie outside of its tensor where the kernel reads padding. With
    `swapped` the nest's second operand is the kernel's input, and its first one the weights.
    `roles` has one entry a loop, as the kernel sees it; `turned` holds the loops that run from
    their last iteration to the first in the kernel, and `axis_of` the axis of positions and taps.
    """

    kernel: MacKernel
    swapped: bool
    input: tuple[TensorIndex, ...]
    weight: tuple[TensorIndex, ...]
    output: tuple[TensorIndex, ...]
    roles: tuple[Role, ...]
    turned: tuple[int, ...] = ()
    axis_of: Mapping[int, int] = field(default_factory=dict[int, int])


def recognise(
    extents: Sequence[int],
    accesses: Sequence[Access],
    shapes: Sequence[Sequence[int]] | None = None,
    names: Sequence[str] | None = None,
) -> Recognised:
    """The kernel that O[..] += I[..] * W[..] over a box of loops is.

    `accesses` are those of input, weight and output. `shapes`, of input and weight, tell how far
    the input goes along each axis; without them it is as long as it is read. `names` are the
    loops' in errors. Raises UserError, saying why, for what is no kernel.
    """
    names = tuple(names or (f"d{index}" for index in range(len(extents))))
    for name, extent in zip(names, extents, strict=True):
        if extent < 1:
            raise UserError(f"loop {name} has {extent} iterations", "it has at least one")
    input, weight, output = accesses
    first, second = shapes or (None, None)
    nest = _Nest(tuple(extents), names, input, weight, output, first)
    swapped = _Nest(tuple(extents), names, weight, input, output, second)
    # Zeros surround the input only, so one that is padded cannot be the weights.
    may_swap = input.stays_in(first, extents) if first is not None else min(input.offsets) >= 0
    try:
        found = nest.recognised(swapped=False)
    except UserError:
        if may_swap:
            with suppress(UserError):  # the operands as they stand say better what is wrong
                return swapped.recognised(swapped=True)
        raise
    if not may_swap or found.kernel.out_channels > 1 or any(map(_overlaps, found.kernel.axes)):
        return found
    # Weights of one output channel fill one column of a macro; those of the other operand more.
    try:
        other = swapped.recognised(swapped=True)
    except UserError:
        return found
    return other if other.kernel.out_channels > 1 else found


def _overlaps(axis: Axis) -> bool:
    """Whether outputs next to each other read the same inputs."""
    return axis.outputs > 1 and axis.stride <= axis.dilation * (axis.taps - 1)


@dataclass(frozen=True, slots=True)
class _Slide:
    """An axis, the loops it consists of, and the index of the input that it is.

    `index` is None when the position shares its index with other loops and no window slides there.
    """

    axis: Axis
    position: int
    tap: int | None = None
    index: int | None = None


@dataclass
class _Nest:
    """Loops and accesses in one order of the operands."""

    extents: tuple[int, ...]
    names: tuple[str, ...]
    input: Access
    weight: Access
    output: Access
    shape: Sequence[int] | None

    def recognised(self, swapped: bool) -> Recognised:
        for what, access in self._accesses():
            self._check_diagonal(what, access)
        turned = self._turn_around()
        roles: list[Role] = [self._role(loop) for loop in range(len(self.extents))]
        self._find_taps(roles)
        self._leave_out_single(roles)
        slides = [self._slide(loop, roles) for loop in _with_role(roles, "position")]
        self._check_written_once()
        kernel = MacKernel(
            self._count(roles, "group"),
            self._count(roles, "out_channel"),
            self._count(roles, "in_channel"),
            tuple(slide.axis for slide in slides),
        )
        axis_of = {slide.position: number for number, slide in enumerate(slides)}
        for number, slide in enumerate(slides):
            if slide.tap is not None:
                axis_of[slide.tap] = number

        def terms(access: Access, base: dict[Role, int]) -> tuple[TensorIndex, ...]:
            return tuple(
                TensorIndex(self._terms(row, roles, base, axis_of), offset)
                for row, offset in zip(access.matrix, access.offsets, strict=True)
            )

        input = list(terms(self.input, {"group": 0, "in_channel": 1, "position": 2, "tap": 2}))
        for number, slide in enumerate(slides):
            if slide.index is not None:
                offset = self.input.offsets[slide.index]
                input[slide.index] = TensorIndex((Term(1, 2 + number),), offset)
        weight = terms(self.weight, {"group": 0, "out_channel": 1, "in_channel": 2, "tap": 3})
        output = terms(self.output, {"group": 0, "out_channel": 1, "position": 2})
        operands = tuple(input), weight, output
        return Recognised(kernel, swapped, *operands, tuple(roles), turned, axis_of)

    def _accesses(self) -> tuple[tuple[str, Access], ...]:
        return ("input", self.input), ("weights", self.weight), ("output", self.output)

    # -- roles -----------------------------------------------------------------------------------

    def _check_diagonal(self, what: str, access: Access) -> None:
        for loop, name in enumerate(self.names):
            rows = [index for index, row in enumerate(access.matrix) if row[loop]]
            if len(rows) > 1 and self.extents[loop] > 1:
                raise UserError(
                    f"loop {name} moves along indices {rows[0]} and {rows[1]} of the {what}",
                    "a kernel reads no diagonals: each loop is in one index of an operand",
                )

    def _turn_around(self) -> tuple[int, ...]:
        """Lets the loops that go backwards through the input go forwards; gives these."""
        turned = tuple(
            loop
            for loop in range(len(self.extents))
            if any(row[loop] < 0 for row in self.input.matrix)
        )
        for loop in turned:
            extent = self.extents[loop]
            self.input = self.input.turned(loop, extent)
            self.weight = self.weight.turned(loop, extent)
            self.output = self.output.turned(loop, extent)
        return turned

    def _role(self, loop: int) -> Role:
        uses = self.input.uses(loop), self.weight.uses(loop), self.output.uses(loop)
        role = _ROLES.get(uses)
        if role is not None:
            return role
        if self.extents[loop] == 1:
            return "none"
        raise UserError(
            f"loop {self.names[loop]} {_ONLY[uses]}",
            "a kernel uses each loop in two or three of its operands",
        )

    def _used(self, row: Row, roles: Sequence[Role]) -> list[int]:
        return [loop for loop, value in enumerate(row) if value and roles[loop] != "none"]

    def _find_taps(self, roles: list[Role]) -> None:
        """Makes taps of the channels that share an index of the input with a position."""
        for index, row in enumerate(self.input.matrix):
            used = self._used(row, roles)
            channels = [loop for loop in used if roles[loop] == "in_channel"]
            if not channels or not any(roles[loop] == "position" for loop in used):
                continue
            if len(used) > 2:
                listed = ", ".join(self.names[loop] for loop in used)
                raise UserError(
                    f"index {index} of the input depends on the loops {listed}",
                    "a window slides with one loop of positions and one of taps",
                )
            roles[channels[0]] = "tap"

    def _leave_out_single(self, roles: list[Role]) -> None:
        """Makes no axis of a single position that no window slides over, such as a batch of 1."""
        for row in self.input.matrix:
            used = self._used(row, roles)
            if any(roles[loop] == "tap" for loop in used):
                continue
            for loop in used:
                if roles[loop] == "position" and self.extents[loop] == 1:
                    roles[loop] = "none"

    def _slide(self, position: int, roles: Sequence[Role]) -> _Slide:
        index = next(i for i, row in enumerate(self.input.matrix) if row[position])
        row, offset = self.input.matrix[index], self.input.offsets[index]
        used = self._used(row, roles)
        outputs = self.extents[position]
        tap = next((loop for loop in used if roles[loop] == "tap"), None)
        if tap is None and len(used) > 1:
            return _Slide(Axis(outputs), position)
        taps, dilation = (1, 1) if tap is None else (self.extents[tap], row[tap])
        inputs = None if self.shape is None else self.shape[index] - max(offset, 0)
        if inputs is not None and inputs < 1:
            raise UserError(f"index {index} of the input reads nothing but padding")
        axis = Axis(outputs, taps, row[position], dilation, max(-offset, 0), inputs)
        return _Slide(axis, position, tap, index)

    def _check_written_once(self) -> None:
        """Every element of the output belongs to one group, channel and position."""
        for index, row in enumerate(self.output.matrix):
            used = [loop for loop, value in enumerate(row) if value and self.extents[loop] > 1]
            reach = 0
            for loop in sorted(used, key=lambda loop: abs(row[loop])):
                if abs(row[loop]) <= reach:
                    listed = ", ".join(self.names[loop] for loop in used)
                    raise UserError(
                        f"the loops {listed} meet in index {index} of the output",
                        "each output belongs to one group, channel and position",
                        "index the output with single loops",
                    )
                reach += abs(row[loop]) * (self.extents[loop] - 1)

    # -- indices ---------------------------------------------------------------------------------

    def _count(self, roles: Sequence[Role], role: Role) -> int:
        return prod(self.extents[loop] for loop in _with_role(roles, role))

    def _terms(
        self,
        row: Row,
        roles: Sequence[Role],
        base: dict[Role, int],
        axis_of: Mapping[int, int],
    ) -> tuple[Term, ...]:
        """The loops of an index as digits of coordinates; `base` numbers these by role."""
        found: list[Term] = []
        for loop, coefficient in enumerate(row):
            role, extent = roles[loop], self.extents[loop]
            if not coefficient or extent == 1:
                continue
            if role in ("position", "tap"):
                found.append(Term(coefficient, base[role] + axis_of[loop]))
                continue
            same = _with_role(roles, role)
            inner = prod(self.extents[other] for other in same if other > loop)
            outermost = self._count(roles, role) == inner * extent
            found.append(Term(coefficient, base[role], inner, None if outermost else extent))
        return tuple(found)


def _with_role(roles: Sequence[Role], role: Role) -> list[int]:
    return [loop for loop, found in enumerate(roles) if found == role]
