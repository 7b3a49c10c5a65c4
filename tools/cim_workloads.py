"""Operators and networks that tables of cim-bench plan, and what the public prototype made of them.

All come from files in `data`, which name their sources.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cim_opt.polyhedral.kernel import Axis, MacKernel


@dataclass(frozen=True)
class Operator:
    """A kernel with one group, how many groups it has in a network, and in which one."""

    name: str
    kernel: MacKernel
    groups: int
    network: str

    def grouped(self, groups: int) -> MacKernel:
        """The kernel with so many groups."""
        return replace(self.kernel, groups=groups)


@dataclass(frozen=True)
class Layer:
    """A convolution that a network has `repeat` times."""

    name: str
    kernel: MacKernel
    repeat: int


@dataclass(frozen=True)
class Published:
    """A program of the public prototype, as its simulator timed it.

    `mode` is `prototype`, `fewest-images` (ties between equal steps broken) or `im2col`;
    `compile_s` the wall time of its front end. `loops` and `tiles` are those of its schedule.
    """

    op: str
    machine: str
    mode: str
    steps: int
    utilisation: float
    cycles: int
    compile_s: float
    images: int
    loops: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]


@lru_cache
def operators() -> dict[str, Operator]:
    """The operators by name, in the order of the file."""
    found: dict[str, Operator] = {}
    for row in _records(_read("cim_operators.json")):
        pairs = zip(row["outputs"], row["taps"], strict=True)
        axes = tuple(Axis(n, k, 1, row["dilation"] if k > 1 else 1) for n, k in pairs)
        kernel = MacKernel(1, row["channels"], row["channels"], axes)
        found[row["op"]] = Operator(row["op"], kernel, row["groups"], row["network"])
    return found


@lru_cache
def networks() -> dict[str, tuple[Layer, ...]]:
    """The distinct convolutions of each network, in their order."""
    data = _read("cim_networks.json")
    return {
        name: tuple(_layer(row) for row in _records(data | {"rows": network["layers"]}))
        for name, network in data["networks"].items()
    }


def _layer(row: dict[str, Any]) -> Layer:
    sizes = zip(*(row[key] for key in ("outputs", "taps", "pad", "inputs")), strict=True)
    axes = tuple(Axis(o, k, row["stride"], row["dilation"], p, i) for o, k, p, i in sizes)
    channels = row["out_channels"], row["in_channels"]
    return Layer(row["layer"], MacKernel(row["groups"], *channels, axes), row["repeat"])


@lru_cache
def published() -> dict[tuple[str, str, str], Published]:
    """The prototype's programs by operator, machine and mode."""
    found: dict[tuple[str, str, str], Published] = {}
    for row in _records(_read("cim_prototype.json")):
        row["loops"] = tuple(row["loops"])
        row["tiles"] = tuple(tuple(sizes) for sizes in row["tiles"])
        found[row["op"], row["machine"], row["mode"]] = Published(**row)
    return found


def _read(name: str) -> dict[str, Any]:
    return json.loads(files("cim_opt.tools").joinpath("data", name).read_text("utf-8"))


def _records(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
