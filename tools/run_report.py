"""What cim-run prints: text for people, JSON for programs."""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects.func import FuncOp

from cim_opt.simulators.compare import Mismatch
from cim_opt.simulators.run import Check, RunResult, Values

SHOWN_ELEMENTS = 6


def as_text(entry: FuncOp, inputs: Mapping[str, Values], result: RunResult) -> str:
    """The run for a person: inputs, returned values, the machine's report, and the check last."""
    where = result.target if result.machine is None else f"{result.target}, {result.machine}"
    lines = [f"@{entry.sym_name.data} on {where}"]
    lines += [f"  input  %{name}: {shown(value)}" for name, value in inputs.items()]
    lines += [f"  result {index}: {shown(value)}" for index, value in enumerate(result.outputs)]
    if result.report is not None:
        lines += ["", result.report.to_text(), ""]
    lines.append(_check_text(result))
    return "\n".join(lines)


def _check_text(result: RunResult) -> str:
    if result.check is not None:
        return result.check.to_text()
    if result.report is None:
        return "check: none, this is the reference itself"
    return "check: none, the program was lowered already and what it meant is not in the file"


def shown(value: Values) -> str:
    """A value in one line: its dtype and length, and its first elements."""
    if np.ndim(value) == 0:
        return f"{value.dtype} {value.item()}"
    first = ", ".join(str(x) for x in np.ravel(value)[:SHOWN_ELEMENTS].tolist())
    more = ", ..." if value.size > SHOWN_ELEMENTS else ""
    length = " x ".join(str(n) for n in value.shape)
    return f"{length} {value.dtype} [{first}{more}]"


def as_json(
    entry: FuncOp,
    inputs: Mapping[str, Values],
    files: Mapping[str, str],
    seed: int,
    result: RunResult,
) -> dict[str, Any]:
    """The run as JSON values. `seconds` and `cycles` are of the machine, null for the reference."""
    report = result.report
    return {
        "target": result.target,
        "machine": result.machine,
        "entry": entry.sym_name.data,
        "seed": seed,
        "inputs": [
            {
                "name": name,
                "type": str(arg.type),
                "shape": list(value.shape),
                "file": files.get(name),
            }
            for (name, value), arg in zip(inputs.items(), entry.body.block.args, strict=True)
        ],
        "results": [
            {"type": str(attr), "shape": list(value.shape)}
            for attr, value in zip(entry.function_type.outputs, result.outputs, strict=True)
        ],
        "check": None if result.check is None else _check(result.check),
        "seconds": None if report is None else report.seconds,
        "cycles": None if report is None else report.cycles,
        "report": None if report is None else report.to_json_dict(),
        "wall_seconds": dict(result.wall_seconds),
    }


def _check(check: Check) -> dict[str, Any]:
    failures = [(i, r.mismatch) for i, r in enumerate(check.results) if r.mismatch is not None]
    return {
        "ok": check.ok,
        "rules": [result.rule for result in check.results],
        "mismatch": _mismatch(*failures[0]) if failures else None,
    }


def _mismatch(result: int, mismatch: Mismatch) -> dict[str, Any]:
    return {
        "result": result,
        "what": mismatch.what,
        "index": mismatch.index,
        "expected": number(mismatch.expected),
        "got": number(mismatch.got),
    }


def number(value: object) -> object:
    """A NumPy or Python number as JSON has it: NaN and infinities become text."""
    plain: object = cast("Any", value).item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    return plain
