"""Runs one program on UPMEM and on SIMDRAM and shows where the time goes, side by side.

    python examples/side_by_side.py examples/dot_product.mlir --size 1000003

Everything after the file is for `cim-run`: sizes, inputs, the seed.
"""

import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from cim_opt.tools.cim_run import main as cim_run

TARGETS = ("upmem", "simdram")
ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "data to the memory": {"upmem": ("host_to_dpu",), "simdram": ("transposed",)},
    "computing there": {
        "upmem": ("launch_seconds", "kernel_seconds"),
        "simdram": ("compute_seconds",),
    },
    "data to the host": {"upmem": ("dpu_to_host",), "simdram": ("read_back",)},
    "host work": {"upmem": ("host_seconds",), "simdram": ("host_seconds",)},
    "  beside the memory": {"upmem": ("hidden_seconds",), "simdram": ()},
    "end to end": {"upmem": ("seconds",), "simdram": ("seconds",)},
}
"""What each row adds up of a target's report. Host work beside the memory costs no time of its own.
"""


def measured(arguments: Sequence[str], target: str) -> dict[str, Any] | None:
    """The JSON of cim-run for that target; None when it refuses, and has said why."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = cim_run([*arguments, "--target", target, "--report", "json"])
    return json.loads(out.getvalue()) if code == 0 else None


def milliseconds(report: dict[str, Any], fields: Sequence[str]) -> float:
    """The sum of these fields, times themselves or transfers that took one."""
    return 1e3 * sum(seconds(report[name]) for name in fields)


def seconds(field: Any) -> float:
    return field if isinstance(field, float) else field["seconds"]


def table(runs: Sequence[dict[str, Any]]) -> str:
    """The table of the runs, in milliseconds of the simulated machines."""
    lines = [f"{'milliseconds':20}" + "".join(f"{run['machine']:>14}" for run in runs)]
    for row, fields in ROWS.items():
        numbers = (milliseconds(run["report"], fields[run["target"]]) for run in runs)
        lines.append(f"{row:20}" + "".join(f"{number:14.3f}" for number in numbers))
    return "\n".join(lines)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: python examples/side_by_side.py FILE.mlir [--size K ...]", file=sys.stderr)
        return 2
    runs: list[dict[str, Any]] = []
    for target in TARGETS:
        run = measured(sys.argv[1:], target)
        if run is None:
            return 1
        runs.append(run)
    print(f"@{runs[0]['entry']}, both equal to the reference")
    print(table(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
