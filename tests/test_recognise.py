"""Loop nests as kernels: roles of loops, axes, and where operands lie in their tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals_in

from cim_opt.errors import UserError
from cim_opt.polyhedral import recognise as module
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.recognise import Access, Recognised, TensorIndex, Term, recognise


def access(*rows: Sequence[int], offsets: Sequence[int] | None = None) -> Access:
    return Access(tuple(map(tuple, rows)), tuple(offsets or [0] * len(rows)))


def unit(loops: int, *order: int) -> Access:
    """Each index is one loop."""
    return access(*([int(i == j) for i in range(loops)] for j in order))


def indices(found: tuple[TensorIndex, ...], at: Sequence[int]) -> tuple[int, ...]:
    return tuple(index.at(at) for index in found)


def check_everything(extents: Sequence[int], accesses: Sequence[Access], found: Recognised) -> None:
    """The kernel's multiply-accumulates are those of the loops, element by element."""
    kernel = found.kernel
    loops: list[tuple[tuple[int, ...], ...]] = []
    for point in product(*map(range, extents)):
        loops.append(
            tuple(
                tuple(
                    sum(a * b for a, b in zip(row, point, strict=True)) + offset
                    for row, offset in zip(one.matrix, one.offsets, strict=True)
                )
                for one in accesses
            )
        )
    if found.swapped:
        loops = [(second, first, third) for first, second, third in loops]
    made: list[tuple[tuple[int, ...], ...]] = []
    for group, oc in product(range(kernel.groups), range(kernel.out_channels)):
        for position in product(*map(range, kernel.output_shape)):
            for tap in kernel.taps_list():
                read = kernel.reads(position, tap)
                made.append(
                    (
                        indices(found.input, (group, *read)),
                        indices(found.weight, (group, oc, *tap)),
                        indices(found.output, (group, oc, *position)),
                    )
                )
    assert sorted(made) == sorted(loops)


CASES: dict[str, tuple[tuple[int, ...], list[Access], MacKernel, bool]] = {
    # extents, accesses, kernel, swapped
    "conv1d": (
        (2, 8, 3),
        [access((0, 1, 1)), unit(3, 0, 2), unit(3, 0, 1)],
        MacKernel(1, 2, 1, (Axis(8, 3),)),
        False,
    ),
    "strided, dilated, padded": (
        (2, 4, 3),
        [access((0, 2, 3), offsets=[-2]), unit(3, 0, 2), unit(3, 0, 1)],
        MacKernel(1, 2, 1, (Axis(4, 3, 2, 3, 2),)),
        False,
    ),
    "grouped, two groups in one": (
        (2, 3, 2, 4, 2),
        [
            access((1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 0, 1, 1)),
            unit(5, 0, 1, 2, 4),
            unit(5, 0, 1, 2, 3),
        ],
        MacKernel(6, 2, 1, (Axis(4, 2),)),
        False,
    ),
    "channels in two loops": (
        (3, 2, 4, 2),
        [unit(4, 1, 0, 3), unit(4, 3, 1, 2), unit(4, 0, 2)],
        MacKernel(1, 4, 4, (Axis(3),)),
        False,
    ),
    "group and channel in one index": (
        (2, 3, 4, 5),
        [access((3, 1, 0, 0), (0, 0, 0, 1)), unit(4, 0, 1, 2), access((4, 0, 1, 0), (0, 0, 0, 1))],
        MacKernel(2, 4, 3, (Axis(5),)),
        False,
    ),
    "matrix times vector": (
        (4, 5),
        [unit(2, 0, 1), unit(2, 1), unit(2, 0)],
        MacKernel(1, 4, 5, ()),
        True,
    ),
    "rows of a vector times a vector": (
        (4, 5),
        [access((5, 1)), unit(2, 1), unit(2, 0)],
        MacKernel(1, 4, 5, ()),
        True,
    ),
    "windows of a vector times a vector": (
        (4, 5),
        [access((2, 1)), unit(2, 1), unit(2, 0)],
        MacKernel(1, 1, 1, (Axis(4, 5, 2),)),
        False,
    ),
    "dot product": (
        (5,),
        [unit(1, 0), unit(1, 0), access((0,))],
        MacKernel(1, 1, 5, ()),
        False,
    ),
    "taps backwards": (
        (8, 3),
        [access((1, -1), offsets=[2]), unit(2, 1), unit(2, 0)],
        MacKernel(1, 1, 1, (Axis(8, 3),)),
        False,
    ),
    "outputs backwards": (
        (8, 3),
        [access((-1, 1), offsets=[7]), unit(2, 1), unit(2, 0)],
        MacKernel(1, 1, 1, (Axis(8, 3),)),
        False,
    ),
    "positions in two loops": (
        (2, 4, 3, 2),
        [
            access((4, 1, 0, 0), (0, 0, 1, 0)),
            unit(4, 2, 3),
            access((4, 1, 0, 0), (0, 0, 0, 1)),
        ],
        MacKernel(1, 2, 3, (Axis(2), Axis(4))),
        False,
    ),
    "single position and unused loop": (
        (1, 1, 3, 2),
        [access((1, 0, 0, 0), (0, 0, 1, 0)), unit(4, 2, 3), access((1, 0, 0, 0), (0, 0, 0, 1))],
        MacKernel(1, 2, 3, ()),
        False,
    ),
    "inputs that are skipped": (
        (4, 2),
        [access((2, 0), offsets=[1]), unit(2, 1), unit(2, 1, 0)],
        MacKernel(1, 2, 1, (Axis(4, 1, 2),)),
        False,
    ),
    "three loops in an index of the input": (
        (4, 2, 3),
        [access((1, 1, 1)), unit(3, 1, 2), unit(3, 0)],
        MacKernel(1, 4, 6, ()),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_recognised(name: str) -> None:
    extents, accesses, kernel, swapped = CASES[name]
    found = recognise(extents, accesses)
    assert (found.kernel, found.swapped) == (kernel, swapped)
    check_everything(extents, accesses, found)


def test_terms_are_digits_of_coordinates() -> None:
    found = recognise(*CASES["grouped, two groups in one"][:2])
    assert found.input == (
        TensorIndex((Term(1, 0, 3),)),
        TensorIndex((Term(1, 0, 1, 3),)),
        TensorIndex((Term(1, 2),)),
    )
    assert found.roles == ("group", "group", "out_channel", "position", "tap")
    assert found.axis_of == {3: 0, 4: 0}


def test_shapes_say_how_long_the_input_is() -> None:
    conv = [access((1, 1), offsets=[-1]), unit(2, 1), unit(2, 0)]
    found = recognise((8, 3), conv, [(8,), (3,)])
    assert found.kernel.axes == (Axis(8, 3, 1, 1, 1, 8),)
    assert found.input == (TensorIndex((Term(1, 2),), -1),)
    # From the third element on: the axis is what is left.
    moved = [access((1, 1), offsets=[2]), unit(2, 1), unit(2, 0)]
    found = recognise((8, 3), moved, [(20,), (3,)])
    assert found.kernel.axes == (Axis(8, 3, inputs=18),)
    assert found.input == (TensorIndex((Term(1, 2),), 2),)


def test_a_padded_operand_is_not_the_weights() -> None:
    matvec = [access((1, 0), (0, 1), offsets=[0, -1]), unit(2, 1), unit(2, 0)]
    assert not recognise((4, 5), matvec, [(4, 3), (5,)]).swapped
    assert not recognise((4, 5), matvec).swapped


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_nests(data: st.DataObject) -> None:
    """Nests made from a kernel, with loops and indices in any order."""
    roles = ["g", "oc", "ic", *data.draw(st.sampled_from([[], ["o0"], ["o0", "k0"]]))]
    roles += data.draw(st.sampled_from([[], ["o1", "k1"]]))
    order = data.draw(st.permutations(roles))
    sizes = {role: data.draw(st.integers(1, 3)) for role in roles}
    number = {role: index for index, role in enumerate(order)}

    def row(**parts: int) -> tuple[int, ...]:
        return tuple(parts.get(role, 0) for role in order)

    reads = [row(g=1), row(ic=1)]
    offsets = [0, 0]
    for axis in "01":
        if f"o{axis}" in number:
            stride, dilation = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
            reads.append(row(**{f"o{axis}": stride, f"k{axis}": dilation}))
            offsets.append(data.draw(st.integers(-2, 2)))
    shuffled = data.draw(st.permutations(list(zip(reads, offsets, strict=True))))
    input = access(*(r for r, _ in shuffled), offsets=[o for _, o in shuffled])
    weight = unit(len(order), *(number[r] for r in order if r in ("g", "oc", "ic") or r[0] == "k"))
    output = unit(len(order), *(number[r] for r in order if r in ("g", "oc") or r[0] == "o" != r))
    extents = [sizes[role] for role in order]
    found = recognise(extents, [input, weight, output])
    assert found.kernel.macs == prod(extents)
    check_everything(extents, [input, weight, output], found)


# -- refusals ----------------------------------------------------------------------------------

REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "no iterations": (
        ((4, 0), [unit(2, 0, 1), unit(2, 1), unit(2, 0)]),
        "loop d1 has 0 iterations; it has at least one",
    ),
    "diagonal": (
        ((4, 5), [access((1, 0), (1, 0), (0, 1)), unit(2, 1), unit(2, 0)]),
        "loop d0 moves along indices 0 and 1 of the input; "
        "a kernel reads no diagonals: each loop is in one index of an operand",
    ),
    "input alone": (
        ((4, 5), [unit(2, 0, 1), unit(2, 0), unit(2, 0)]),
        "loop d1 is used by the input alone; "
        "a kernel uses each loop in two or three of its operands",
    ),
    "weights alone": (
        ((4, 5), [unit(2, 0), unit(2, 0, 1), unit(2, 0)]),
        "loop d1 is used by the weights alone; "
        "a kernel uses each loop in two or three of its operands",
    ),
    "output alone": (
        ((4, 5), [unit(2, 0), unit(2, 0), unit(2, 0, 1)]),
        "loop d1 is used by the output alone; "
        "a kernel uses each loop in two or three of its operands",
    ),
    "nowhere": (
        ((4, 5), [unit(2, 0), unit(2, 0), unit(2, 0)]),
        "loop d1 is used by no operand; a kernel uses each loop in two or three of its operands",
    ),
    "three loops": (
        ((4, 2, 3), [access((1, 1, 1), offsets=[-1]), unit(3, 1, 2), unit(3, 0)]),
        "index 0 of the input depends on the loops d0, d1, d2; "
        "a window slides with one loop of positions and one of taps",
    ),
    "outputs that meet": (
        ((4, 2, 3), [unit(3, 0, 1), unit(3, 1, 2), access((1, 0, 1))]),
        "the loops d0, d2 meet in index 0 of the output; "
        "each output belongs to one group, channel and position; "
        "index the output with single loops",
    ),
    "padding alone": (
        ((4, 3), [access((1, 1), offsets=[30]), unit(2, 1), unit(2, 0)], [(8,), (3,)]),
        "index 0 of the input reads nothing but padding",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    args, message = REFUSED[why]
    with pytest.raises(UserError) as error:
        recognise(*args)
    assert error.value.message() == message


def test_names_of_loops_are_used() -> None:
    nest = [unit(2, 0), unit(2, 0), unit(2, 0, 1)]
    with pytest.raises(UserError) as error:
        recognise((4, 5), nest, names=["i", "k"])
    assert error.value.what == "loop k is used by the output alone"


def test_every_refusal_is_tested() -> None:
    for pieces in refusals_in(Path(str(module.__file__)), ("UserError",)):
        assert any(all(piece in message for piece in pieces) for _, message in REFUSED.values()), (
            pieces
        )


def test_input_indices_reach_every_element_that_is_read() -> None:
    extents, accesses, _, _ = CASES["strided, dilated, padded"]
    found = recognise(extents, accesses)
    (index,) = found.input
    reached = {index.at((0, 0, x)) for x in range(found.kernel.axes[0].reach)}
    assert min(reached) == -2
    assert reached == set(np.arange(-2, found.kernel.axes[0].reach - 2))
