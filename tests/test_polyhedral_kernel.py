"""Kernels: counts, windows and numbers of taps."""

from itertools import product

import pytest

from cim_opt.polyhedral.kernel import Axis, MacKernel

DEPTHWISE = MacKernel(96, 1, 1, (Axis(56, 7, 1, 1, 3, 56),) * 2)


def test_counts() -> None:
    assert (DEPTHWISE.positions, DEPTHWISE.taps, DEPTHWISE.depth) == (3136, 49, 49)
    assert DEPTHWISE.outputs == 96 * 3136 and DEPTHWISE.macs == 96 * 3136 * 49
    product_of_matrices = MacKernel(1, 30, 20, (Axis(10),))
    assert product_of_matrices.macs == 6000 and product_of_matrices.depth == 20
    vector = MacKernel(1, 30, 20, ())
    assert (vector.positions, vector.taps, vector.macs, vector.rank) == (1, 1, 600, 0)


def test_inputs_of_an_axis() -> None:
    axis = Axis(10, 3, 2, 4)
    assert (
        axis.reach == axis.length == 1 + max(axis.reads(o, k) for o in range(10) for k in range(3))
    )
    assert Axis(56, 7, pad=3, inputs=56).length == 56
    assert Axis(56, 7, pad=3, inputs=56).reach == 62


def test_taps_are_numbered_row_major() -> None:
    kernel = MacKernel(1, 4, 2, (Axis(5, 3), Axis(6, 2)))
    taps = kernel.taps_list()
    assert taps == tuple(product(range(2), range(3), range(2)))
    assert [kernel.tap_index(tap) for tap in taps] == list(range(kernel.depth))
    with pytest.raises(ValueError, match="is no tap of"):
        kernel.tap_index((0, 3, 0))


def test_a_window_is_what_its_output_reads() -> None:
    kernel = MacKernel(1, 1, 2, (Axis(5, 2, 2, 3),))
    assert kernel.window((1,)) == ((0, 2), (0, 5), (1, 2), (1, 5))
    assert kernel.reads((4,), (1, 1)) == (1, 11)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Axis(0),
        lambda: Axis(3, 0),
        lambda: Axis(3, 1, 0),
        lambda: Axis(3, 1, 1, 0),
        lambda: Axis(3, pad=-1),
        lambda: Axis(3, inputs=0),
        lambda: MacKernel(0, 1, 1, ()),
        lambda: MacKernel(1, 0, 1, ()),
        lambda: MacKernel(1, 1, 0, ()),
    ],
)
def test_counts_are_positive(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError):
        make()
