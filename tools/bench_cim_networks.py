"""Table `cim-networks` of cim-bench: every convolution of whole networks, im2col against the best.

A row is a distinct layer on a machine by a mapping; `cycles`, `steps` and `compile_s` are of one
layer, which the network has `repeat` times. Distinct layers are planned once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cim_opt.hardware.cim import load_machine
from cim_opt.mapping.cim_covers import Mapping
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.cim_planning import bound_cells, family, planned
from cim_opt.tools.cim_workloads import Layer, networks

MAPPINGS: tuple[Mapping, ...] = ("im2col", "best")
MACHINES = ("cim-32x64-8", "cim-64x64-8", "cim-32x64-1", "cim-64x64-1")
REQUIRED = (
    "MobileNetV2",
    "EfficientNet-B0",
    "ConvNeXt-Tiny",
    "RepLKNet-31B",
    "InceptionNeXt-T",
    "SLaK",
    "SLaK-51x51",
)
"""Networks that are measured unless rows are named; others are without depthwise layers."""


def rows() -> Sequence[Row]:
    """All rows, none measured yet; those of one macro and of further networks when asked for."""
    return [
        Row(
            f"{network} {layer.name} {machine} {mapping}",
            partial(_measure, network, layer, machine, mapping),
            optional=network not in REQUIRED or not machine.endswith("-8"),
        )
        for network, layers in networks().items()
        for machine in MACHINES
        for layer in layers
        for mapping in MAPPINGS
    ]


def _measure(network: str, layer: Layer, machine: str, mapping: Mapping) -> Cells:
    kernel = layer.kernel
    described: Cells = {
        "network": network,
        "op": layer.name,
        "machine": machine,
        "mapping": mapping,
        "repeat": layer.repeat,
        "shape": _shape(layer),
        "macs": kernel.macs,
    }
    return described | planned(kernel, machine, family(mapping)) | bound_cells(kernel, machine)


def _shape(layer: Layer) -> str:
    """Channels, outputs and taps, as a person writes them."""
    kernel = layer.kernel
    outputs, taps = ("x".join(map(str, n)) for n in (kernel.output_shape, kernel.tap_shape))
    groups = "" if kernel.groups == 1 else f"{kernel.groups} groups of "
    channels = f"{kernel.in_channels} to {kernel.out_channels}"
    return f"{groups}{channels}, {outputs} by {taps} / {max(kernel.strides)}"


# -- summary -------------------------------------------------------------------------------------


def summary(measured: Sequence[Cells]) -> Cells:
    """Whole networks, of those of which all layers were measured.

    Names without a size are of 32 rows, eight macros; the other machines have their own lists.
    """
    found: dict[str, dict[str, Cells]] = {}
    for machine in MACHINES:
        for network, layers in networks().items():
            mine = [r for r in measured if r["network"] == network and r["machine"] == machine]
            if len(mine) == len(MAPPINGS) * len(layers):
                found.setdefault(machine, {})[network] = _whole(mine, machine)
    slower = _slower(measured)
    result: Cells = {"speedup": {}, "compile_s": {}}
    for machine, wholes in found.items():
        suffix = "" if machine == MACHINES[0] else f" {machine}"
        for key in next(iter(wholes.values())):
            result[key + suffix] = {name: whole[key] for name, whole in wholes.items()}
    result["never_slower"] = not slower if measured else None
    return result | {"slower_than_im2col": slower} | _notes()


def _whole(rows: Sequence[Cells], machine: str) -> Cells:
    """What all layers of a network take together."""
    by_mapping = {m: [row for row in rows if row["mapping"] == m] for m in MAPPINGS}
    plain, best = by_mapping["im2col"], by_mapping["best"]
    both = ("cycles", "layout_cycles")
    return {
        "speedup": _over(_total(plain, "cycles"), _total(best, "cycles")),
        "speedup_with_layout": _over(_total(plain, *both), _total(best, *both)),
        "compile_s": sum(row["compile_s"] for row in best),
        "im2col_cycles": _total(plain, "cycles"),
        "cycles": _total(best, "cycles"),
        "layout_cycles": _total(best, "layout_cycles"),
        "im2col_utilisation": _utilisation(plain, machine),
        "utilisation": _utilisation(best, machine),
        "speedup_depthwise": _depthwise(plain, best),
    }


def _depthwise(plain: Sequence[Cells], best: Sequence[Cells]) -> float | None:
    """The speed-up of the layers for which the mapping matters: those with groups."""
    chosen = [[row for row in rows if "groups" in row["shape"]] for rows in (plain, best)]
    return _over(*(_total(rows, "cycles") for rows in chosen)) if chosen[0] else None


def _total(rows: Sequence[Cells], *columns: str) -> int | None:
    """The sum over all layers as often as they occur, None if a layer has no plan."""
    values = [row["repeat"] * row[column] for row in rows for column in columns if row[column]]
    complete = all(row["cycles"] is not None for row in rows)
    return sum(values) if complete else None


def _over(before: int | None, after: int | None) -> float | None:
    return None if before is None or after is None else before / after


def _utilisation(rows: Sequence[Cells], machine: str) -> float | None:
    """Multiply-accumulates of the network over the cells of all its steps."""
    steps = _total(rows, "steps")
    if steps is None:
        return None
    described = load_machine(machine)
    macs = sum(row["repeat"] * row["macs"] for row in rows)
    return macs / (steps * described.rows * described.columns)


def _slower(measured: Sequence[Cells]) -> list[str]:
    """Layers of which the best mapping is slower than im2col, or for which there is none."""
    known = {(r["network"], r["op"], r["machine"], r["mapping"]): r["cycles"] for r in measured}
    names: list[str] = []
    for row in measured:
        before = known.get((row["network"], row["op"], row["machine"], "im2col"))
        cycles = row["cycles"]
        if row["mapping"] == "best" and (cycles is None or (before and cycles > before)):
            names.append(row["row"])
    return names


def _notes() -> Cells:
    return {
        "compile times": "sums over distinct layers of the best mapping, wall time in one process, "
        "nothing remembered from layer to layer",
        "utilisations": "multiply-accumulates, those with padding too, over the cells of all steps",
    }


def shown(measured: Sequence[Cells]) -> Sequence[Cells]:
    """One line for a layer on a machine."""
    lines: dict[tuple[str, str, str], Cells] = {}
    for row in measured:
        key = row["network"], row["op"], row["machine"]
        line = lines.setdefault(
            key, dict(zip(("network", "layer", "machine"), key, strict=True)) | _layer_cells(row)
        )
        name = row["mapping"]
        line[f"{name} steps"] = row["steps"]
        line[f"{name} %"] = 100 * row["utilisation"] if row["steps"] else None
        line[f"{name} cycles"] = row["cycles"]
        if name == "best":
            line |= {"bound %": 100 * row["bound_utilisation"], "best s": row["compile_s"]}
    return list(lines.values())


def _layer_cells(row: Cells) -> Cells:
    return {"shape": row["shape"], "times": row["repeat"]}


TABLE = Table(
    "cim-networks",
    "Every convolution of whole networks on CIM macros: im2col against the best mapping.",
    rows,
    summary,
    shown=shown,
)
