"""Table `cim-ablation` of cim-bench: what each step of the search gives, by leaving it out.

A row is an operator with one group on a machine, planned with everything (`all`) or without one
step; `factor` in the summary is how many times more cycles it takes then. What is left out:

- `no-covers`: covers that are no affine schedule; not in the paper.
- `no-affine`, `no-pretiling`, `no-coalescing`: see `mapping/cim_ablations.py`.
- `no-movement`: the first plan instead of the fastest: all macros share out positions, and the
  instructions for a step hardly overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cim_opt.mapping.cim_ablations import WITHOUT
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.cim_planning import MACHINES, Covers, bound_cells, family, lacking, planned
from cim_opt.tools.cim_workloads import Operator, operators

SWITCHES: dict[str, Covers] = {
    "all": family("best"),
    **{f"no-{step}": lacking(step) for step in WITHOUT},
    "no-movement": family("best"),
}
PAPER = {
    "no-affine": "9.7x the cycles",
    "no-pretiling": "6.2x the cycles",
    "no-coalescing": "utilisation 28 % to below 10 %",
    "no-movement": "1.4x the cycles",
}
"""What the PolyCIM paper says of its C1, a depthwise 3 x 3; on which machine it does not say."""

RULES = {
    "no-covers": "blocks of outputs side by side and im2col alone",
    "no-affine": "no skewed vectors: im2col",
    "no-pretiling": "axes skewed whole or not at all: all of an axis's outputs in a block or one",
    "no-coalescing": "rows are one loop and columns are one loop, all other loops are time",
    "no-movement": "all macros on positions, plain layout, and the order of instructions with the "
    "least overlap",
}


def rows() -> Sequence[Row]:
    """All rows, none measured yet; only those of C1 unless others are named."""
    return [
        Row(
            f"{operator.name} {machine} {switch}",
            partial(_measure, operator, machine, switch),
            optional=operator.name != "C1",
        )
        for operator in operators().values()
        for machine in MACHINES
        for switch in SWITCHES
    ]


def _measure(operator: Operator, machine: str, switch: str) -> Cells:
    kernel = operator.kernel
    cells: Cells = {"op": operator.name, "machine": machine, "mapping": switch}
    cells |= planned(kernel, machine, SWITCHES[switch], movement=switch != "no-movement")
    return cells | bound_cells(kernel, machine)


def summary(measured: Sequence[Cells]) -> Cells:
    """Factors in cycles and utilisations: by machine for C1, others with their names before it."""
    found: dict[str, dict[str, Cells]] = {}
    for row in measured:
        name = row["machine"] if row["op"] == "C1" else f"{row['op']} {row['machine']}"
        found.setdefault(name, {})[row["mapping"]] = row
    result: Cells = {}
    for switch in SWITCHES:
        if switch == "all":
            continue
        ratios = {name: _factor(rows, switch) for name, rows in found.items()}
        paper = {"paper": PAPER[switch]} if switch in PAPER else {}
        result[switch] = paper | {
            "rule": RULES[switch],
            "factor": {name: value for name, value in ratios.items() if value is not None},
            "utilisation": _utilisations(found, switch),
        }
    return result | {"utilisation": _utilisations(found, "all")}


def _factor(rows: dict[str, Cells], switch: str) -> float | None:
    if switch not in rows or "all" not in rows:
        return None
    before, after = rows[switch]["cycles"], rows["all"]["cycles"]
    return None if before is None or after is None else before / after


def _utilisations(found: dict[str, dict[str, Cells]], switch: str) -> dict[str, float]:
    return {name: rows[switch]["utilisation"] for name, rows in found.items() if switch in rows}


def shown(measured: Sequence[Cells]) -> Sequence[Cells]:
    """The rows with the factor and what the paper says, without what is the same in all."""
    full = {(r["op"], r["machine"]): r for r in measured if r["mapping"] == "all"}
    lines: list[Cells] = []
    for row in measured:
        everything = {"all": full.get((row["op"], row["machine"]), row)}
        line = {key: row[key] for key in ("op", "machine", "mapping", "steps")}
        line["%"] = None if row["steps"] is None else 100 * row["utilisation"]
        line["cycles"] = row["cycles"]
        line["factor"] = _factor(everything | {row["mapping"]: row}, row["mapping"])
        line["paper"] = PAPER.get(row["mapping"]) if row["op"] == "C1" else None
        lines.append(line)
    return lines


TABLE = Table(
    "cim-ablation",
    "What each step of the search gives: cycles without it over cycles with everything.",
    rows,
    summary,
    shown=shown,
)
