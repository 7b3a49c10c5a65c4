"""Table `cim-operators` of cim-bench: operators on CIM macros, family of mappings by family.

A row is an operator with so many groups (`x1`: one channel, or one group of channels) on a machine
by a mapping. `im2col`, `diagonal`, `rectangles`, `covers` and `best` of all are planned here and
compiled by the same generator of code. `prototype` is the public PolyCIM prototype, with one group:
`prototype-ties` with the ties between equal steps broken by the number of weight images,
`prototype-im2col` with its skewed schedules switched off; their cycles are measured by the public
simulator, without layout or reading back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from statistics import median
from typing import get_args

from cim_opt.mapping.cim_covers import Mapping
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.cim_planning import MACHINES, bound_cells, family, planned, ratio, total
from cim_opt.tools.cim_workloads import Operator, Published, operators, published

MAPPINGS: tuple[Mapping, ...] = get_args(Mapping)
PROTOTYPE = {
    "prototype": "prototype",
    "prototype-ties": "fewest-images",
    "prototype-im2col": "im2col",
}
"""Mappings of the prototype, and the modes that its data has for them."""

PAPER = tuple(f"P{number}" for number in range(1, 9))
"""The operators of the summary: our guess of the paper's table."""

EIGHT_MACROS = tuple(machine for machine in MACHINES if machine.endswith("-8"))


def rows() -> Sequence[Row]:
    """All rows, none measured yet."""
    return [
        row
        for operator in operators().values()
        for groups in dict.fromkeys((1, operator.groups))
        for machine in MACHINES
        for row in _rows(operator, groups, machine)
    ]


def _rows(operator: Operator, groups: int, machine: str) -> Iterable[Row]:
    name = f"{operator.name} x{groups} {machine}"
    for mapping in MAPPINGS:
        yield Row(f"{name} {mapping}", partial(_planned, operator, groups, machine, mapping))
    for mapping, mode in PROTOTYPE.items():
        found = published().get((operator.name, machine, mode))
        if groups == 1 and found is not None:
            yield Row(f"{name} {mapping}", partial(_published, operator, mapping, found))


def _planned(operator: Operator, groups: int, machine: str, mapping: Mapping) -> Cells:
    cells = planned(operator.grouped(groups), machine, family(mapping))
    return _described(operator, groups, machine, mapping) | cells


def _published(operator: Operator, mapping: str, found: Published) -> Cells:
    return _described(operator, 1, found.machine, mapping) | {
        "steps": found.steps,
        "utilisation": found.utilisation / 100,
        "cycles": found.cycles,
        "compile_s": found.compile_s,
        "images": found.images,
    }


def _described(operator: Operator, groups: int, machine: str, mapping: str) -> Cells:
    cells: Cells = {
        "op": operator.name,
        "groups": groups,
        "channels": groups * operator.kernel.out_channels,
        "machine": machine,
        "mapping": mapping,
        "network": operator.network,
    }
    return cells | bound_cells(operator.grouped(groups), machine)


# -- summary -------------------------------------------------------------------------------------

Key = tuple[str, int, str]
"""Operator, groups, machine."""


def by_key(measured: Sequence[Cells]) -> dict[Key, dict[str, Cells]]:
    """The rows of each operator, groups and machine, by mapping."""
    found: dict[Key, dict[str, Cells]] = {}
    for row in measured:
        found.setdefault((row["op"], row["groups"], row["machine"]), {})[row["mapping"]] = row
    return found


def summary(measured: Sequence[Cells]) -> Cells:
    """Geometric means over P1 to P8 and both sizes of macro, and whether any row is slower."""
    found = by_key(measured)
    one = [found.get((op, 1, machine), {}) for op in PAPER for machine in EIGHT_MACROS]
    many = [
        found.get((op, operators()[op].groups, machine), {})
        for op in PAPER
        for machine in EIGHT_MACROS
    ]
    both = ("cycles", "layout_cycles")
    result: Cells = {
        "geomean_speedup": _gain(one, "im2col", "cycles"),
        "geomean_speedup_with_layout": _gain(one, "im2col", *both),
        "geomean_speedup_network_channels": _gain(many, "im2col", "cycles"),
        "geomean_speedup_network_channels_with_layout": _gain(many, "im2col", *both),
    }
    for mapping in PROTOTYPE:
        name = mapping.replace("-", "_")
        result[f"geomean_over_{name}"] = _gain(one, mapping, "cycles")
        result[f"geomean_compile_over_{name}"] = _gain(one, mapping, "compile_s")
    return result | _checks(list(found.values())) | _compile_times(found) | _notes()


def _gain(groups: Sequence[dict[str, Cells]], mapping: str, *columns: str) -> float | None:
    if not all(mapping in rows and "best" in rows for rows in groups):
        return None
    befores = [rows[mapping] for rows in groups]
    return ratio(befores, [rows["best"] for rows in groups], columns)


def _checks(groups: Sequence[dict[str, Cells]]) -> Cells:
    """Which rows of `best` have more than others of something that they should have less of.

    Steps: of the cover with the fewest, and of the plan that is the fastest.
    """
    both = ("cycles", "layout_cycles")
    slower = _more(groups, "im2col", "best", ("cycles",))
    fewest = [
        {name: row | {"steps": row.get("fewest_steps", row["steps"])} for name, row in rows.items()}
        for rows in groups
    ]
    return {
        "never_slower": not slower if groups else None,
        "slower_than_im2col": slower,
        "slower_than_im2col_with_layout": _more(groups, "im2col", "best", both),
        "slower_than_prototype": _more(groups, "prototype", "best", ("cycles",)),
        "more_steps_than_prototype": _more(fewest, "prototype", "best", ("steps",)),
        "more_steps_for_fewer_cycles": _more(groups, "prototype", "best", ("steps",)),
    }


def _more(
    groups: Sequence[dict[str, Cells]], other: str, mapping: str, columns: Sequence[str]
) -> list[str]:
    names: list[str] = []
    for rows in groups:
        theirs, ours = (total(rows.get(name, {}), columns) for name in (other, mapping))
        if mapping in rows and theirs is not None and (ours is None or ours > theirs):
            names.append(rows[mapping]["row"])
    return names


def _compile_times(found: dict[Key, dict[str, Cells]]) -> Cells:
    """The slowest plan, and how many times longer the prototype took, in the middle."""
    ours = [rows["best"]["compile_s"] for rows in found.values() if "best" in rows]
    pairs = [
        rows["prototype"]["compile_s"] / rows["best"]["compile_s"]
        for rows in found.values()
        if "best" in rows and "prototype" in rows
    ]
    return {
        "slowest_compile_s": max(ours, default=None),
        "median_compile_speedup": median(pairs) if pairs else None,
    }


def _notes() -> Cells:
    return {
        "compile_s": "wall time from the kernel to code, in one process, nothing remembered of "
        "other kernels; of the prototype its front end alone",
        "cycles": "of the program; those to bring tensors into their order and back apart, in "
        "layout_cycles",
    }


def shown(measured: Sequence[Cells]) -> Sequence[Cells]:
    """One line for an operator, groups and machine, with what matters of each mapping."""
    lines: list[Cells] = []
    for (op, groups, machine), rows in by_key(measured).items():
        first = next(iter(rows.values()))
        line: Cells = {"op": f"{op} x{groups}", "machine": machine}
        for name in (*MAPPINGS, "prototype", "prototype-ties"):
            line[f"{name} steps"] = rows.get(name, {}).get("steps")
        line["bound"] = first["bound_steps"]
        line["im2col %"] = _percent(rows.get("im2col", {}).get("utilisation"))
        line["best %"] = _percent(rows.get("best", {}).get("utilisation"))
        line["bound %"] = _percent(first["bound_utilisation"])
        for name in (*MAPPINGS, "prototype", "prototype-ties"):
            line[f"{name} cycles"] = rows.get(name, {}).get("cycles")
        line["best layout"] = rows.get("best", {}).get("layout_cycles")
        line["best s"] = rows.get("best", {}).get("compile_s")
        lines.append(line)
    return lines


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


TABLE = Table(
    "cim-operators",
    "Operators on CIM macros: macro steps, utilisation and cycles, mapping by mapping.",
    rows,
    summary,
    shown=shown,
)
