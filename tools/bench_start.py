"""The table `start`: how long the tools take to start, read and lower, and to simulate."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from cim_opt.errors import UserError
from cim_opt.simulators.run import DEFAULT_MACHINES, PIPELINES, lower, run_program
from cim_opt.tools.bench_table import Cells, Row, Table
from cim_opt.tools.load_module import find_entry, load_module
from cim_opt.tools.run_inputs import Sizes, make_inputs

REPEATS = 3
"""Times are the least of so many: other work on the computer only ever adds to them."""

SIMULATED_ELEMENTS = 1 << 24
TARGET = "upmem"

STARTS = {
    "cim-opt --help": "from cim_opt.tools.cim_opt import main; main(['--help'])",
    "cim-run --help": "from cim_opt.tools.cim_run import main; main(['--help'])",
    "import universe": "import cim_opt.tools.universe",
}


def examples_folder() -> Path:
    """The examples of the checkout. Raises UserError where cim-opt is installed without them."""
    folder = Path(__file__).resolve().parent.parent / "examples"
    if folder.is_dir():
        return folder
    raise UserError(
        "the examples are not installed",
        "the table `start` measures them, and they come with the source only",
        "clone the repository and `pip install -e .` there",
    )


def _least_seconds(action: Callable[[], object]) -> float:
    def once() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return min(once() for _ in range(REPEATS))


def _start(code: str) -> Cells:
    """Seconds of a fresh Python process that runs `code`."""
    command = [sys.executable, "-c", code]
    return {
        "seconds": _least_seconds(lambda: subprocess.run(command, capture_output=True, check=True))
    }


def _parse_and_lower(path: Path) -> Cells:
    """Seconds to read the file into a verified module, and to lower that for the machine."""
    modules: list[ModuleOp] = []
    parse = _least_seconds(lambda: modules.append(load_module(str(path))))
    options = {"machine": DEFAULT_MACHINES[TARGET]}
    lowering = _least_seconds(lambda: lower(modules[0], PIPELINES[TARGET], options))
    return {"seconds": parse + lowering, "parse_seconds": parse, "lower_seconds": lowering}


def _element_operations(module: ModuleOp) -> int:
    """Operations of the element functions of a module, constants and yields left out."""
    bodies = [op for op in module.walk() if op.name.startswith("pattern.") and op.regions]
    return sum(
        op.name.startswith("arith.") and op.name != "arith.constant"
        for body in bodies
        for op in body.regions[0].block.ops
    )


def _simulate(path: Path) -> Cells:
    """Simulates the program; the rate counts each operation of an element function once an
    element, whatever the machine makes of it."""
    module = load_module(str(path))
    entry = find_entry(module, None)
    inputs = make_inputs(entry, Sizes(SIMULATED_ELEMENTS), {}, seed=0)
    result = run_program(module, entry.sym_name.data, inputs, target=TARGET)
    assert result.check is not None
    if not result.check.ok:
        raise UserError(f"{path.name} on {TARGET} does not give what the reference gives")
    seconds = result.wall_seconds["simulate"]
    operations = _element_operations(module) * SIMULATED_ELEMENTS
    return {
        "seconds": seconds,
        "elements": SIMULATED_ELEMENTS,
        "element_operations_per_second": operations / seconds,
        "reference_seconds": result.wall_seconds["reference"],
    }


def rows() -> Sequence[Row]:
    """All rows, none measured yet."""
    folder = examples_folder()
    return [
        *(Row(name, partial(_start, code)) for name, code in STARTS.items()),
        *(
            Row(f"parse and lower {path.name}", partial(_parse_and_lower, path))
            for path in sorted(folder.glob("*.mlir"))
        ),
        Row("simulate dot_product.mlir", partial(_simulate, folder / "dot_product.mlir")),
    ]


def summary(measured: Sequence[Cells]) -> Cells:
    """The slowest start, the slowest example, and the simulator's rate, of the rows measured."""
    starts = [row["seconds"] for row in measured if row["row"] in STARTS]
    lowered = [row["seconds"] for row in measured if "lower_seconds" in row]
    rates = [row["element_operations_per_second"] for row in measured if "elements" in row]
    return {
        "slowest_start_seconds": max(starts) if starts else None,
        "slowest_parse_and_lower_seconds": max(lowered) if lowered else None,
        "element_operations_per_second": min(rates) if rates else None,
    }


TABLE = Table(
    "start",
    f"Seconds to start, to read and lower the examples for {DEFAULT_MACHINES[TARGET]}, and to "
    f"simulate; the least of {REPEATS}, the simulation once.",
    rows,
    summary,
    timed=True,
)
