"""Compiling for macros and simulating takes seconds where networks have their largest layers."""

from __future__ import annotations

from collections.abc import Mapping
from time import process_time

import numpy as np
from cim_lowering import compiled, run
from linalg_programs import dense, function, type_of

from cim_opt.simulators.cim_report import CimReport

Shapes = Mapping[str, tuple[int, ...]]


def seconds(op: str, shapes: Shapes, attributes: str) -> tuple[float, CimReport]:
    """Processor time to compile and simulate, whatever else the machine does meanwhile."""
    x, w, z = (
        type_of(shapes[name], element) for name, element in zip("xwz", ELEMENTS, strict=True)
    )
    body = f"  %y = linalg.{op} {{{attributes}}} ins(%x, %w : {x}, {w}) outs(%z : {z}) -> {z}"
    text = function((x, w, z), body)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-128, 128, shapes[name]).astype(np.int8) for name in "xw"]
    start = process_time()
    module = compiled(text)
    _, report = run(module, [*arrays, np.zeros(shapes["z"], np.int32)])
    return process_time() - start, report


ELEMENTS = ("i8", "i8", "i32")
STEPS = f"{dense('strides', [1, 1])}, {dense('dilations', [1, 1])}"


def test_a_depthwise_layer_of_56_by_56_with_windows_of_7() -> None:
    shapes = {"x": (1, 96, 56, 56), "w": (96, 7, 7), "z": (1, 96, 56, 56)}
    padding = f"{STEPS}, {dense('padding', [3, 3])}"
    took, report = seconds("depthwise_conv_2d_nchw_chw", shapes, padding)
    assert report.macs == 96 * 56 * 56 * 49
    assert took < 5


def test_the_largest_layers_of_mobilenet_v2() -> None:
    """The one with the most outputs, and the one with the most products."""
    for channels, size in (((16, 96), 112), ((320, 1280), 7)):
        inputs, outputs = channels
        shapes = {
            "x": (1, inputs, size, size),
            "w": (outputs, inputs, 1, 1),
            "z": (1, outputs, size, size),
        }
        took, report = seconds("conv_2d_nchw_fchw", shapes, STEPS)
        assert report.macs == inputs * outputs * size * size
        assert took < 30
