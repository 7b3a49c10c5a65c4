"""Measured points of kernels: the files that hold them, and what each predicts.

A file is JSON:

    {"meta": {"source": "...", "name": "..."},
     "points": [{"kernel": "vectorop",
                 "parameters": {"dtype": "uint32_t", "tasklets": 8, ...},
                 "measured_ms": 1.25}, ...]}

`measured_ms` is the time of one synchronous launch, seen from the host. `name` names the data set;
without it the file's name does. What else a file holds is not read. A file may also be a list of
runs of PrIM's programs, {"bench": "VA", "dpus": 4, "param": 1048576, "hw_kernel_ms": 8.26}: those
of programs that were left out are not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cim_opt.errors import UserError

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """One kernel that was measured.

    `integers` are its parameters that are whole numbers from 1; `words` those that are one of some
    words, or may be left out where None is among them. `seconds` predicts launch and kernel;
    `workload` is what stays the same when only the way to compute it changes (tasklets, block
    size): configurations of a workload are compared.
    """

    integers: tuple[str, ...]
    words: Mapping[str, tuple[str | None, ...]]
    seconds: Callable[[Parameters], float]
    workload: Callable[[Parameters], tuple[Any, ...]]


@dataclass(frozen=True)
class Point:
    """One measured run: the kernel, its parameters, and milliseconds."""

    kernel: str
    parameters: Parameters
    measured_ms: float


@dataclass(frozen=True)
class DataSet:
    """The points of one file."""

    name: str
    source: str
    points: tuple[Point, ...]


def read_points(path: Path, models: Mapping[str, Model], left_out: Collection[str] = ()) -> DataSet:
    """The points of a file. Raises UserError, in one line, for what is wrong in it.

    `left_out` are benchmarks whose runs in a list are not read.
    """
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read '{path}'", error.strerror, "name a file of points") from None
    except ValueError as error:
        raise UserError(
            f"'{path}' is not JSON", " ".join(str(error).split()), "correct the file"
        ) from None
    if isinstance(content, list):
        content = {"points": _runs(cast("list[Any]", content), left_out)}
    if not isinstance(content, dict) or not isinstance(cast(Any, content).get("points"), list):
        raise UserError(
            f"'{path}' has no list 'points'",
            "a file of points is an object with 'points', a list",
            "see docs/tools.md",
        )
    fields = cast("dict[str, Any]", content)
    meta = cast("dict[str, Any]", fields["meta"]) if isinstance(fields.get("meta"), dict) else {}
    points = tuple(
        _point(value, f"point {number} of '{path}'", models)
        for number, value in enumerate(fields["points"])
    )
    if not points:
        raise UserError(f"'{path}' has no points", "its list is empty", "give it one or more")
    return DataSet(str(meta.get("name", path.stem)), str(meta.get("source", "")), points)


def _runs(runs: list[Any], left_out: Collection[str]) -> list[Any]:
    """A list of runs as points; what is not a run stays as it is."""
    found: list[Any] = []
    for run in runs:
        if not isinstance(run, dict):
            found.append(run)
            continue
        fields = cast("dict[str, Any]", run)
        if fields.get("bench") not in left_out:
            parameters = {name: fields.get(name) for name in ("dpus", "param")}
            measured = fields.get("hw_kernel_ms")
            point = {"kernel": fields.get("bench"), "parameters": parameters}
            found.append(point | {"measured_ms": measured})
    return found


def _point(value: Any, where: str, models: Mapping[str, Model]) -> Point:
    if not isinstance(value, dict):
        raise UserError(f"{where} is no object", None, "write {...} with a kernel, as others")
    fields = cast("dict[str, Any]", value)
    kernel: Any = fields.get("kernel")
    measured: Any = fields.get("measured_ms")
    if not isinstance(kernel, str) or kernel not in models:
        raise UserError(
            f"{where} has the kernel {kernel!r}",
            f"the kernels are {', '.join(models)}",
            "name one of these, or leave the point out",
        )
    if not _is_number(measured) or not 0 < measured < float("inf"):
        raise UserError(
            f"{where} has 'measured_ms' {measured!r}",
            "it is the milliseconds of the run, more than 0",
            "correct the point",
        )
    parameters = fields.get("parameters")
    if not isinstance(parameters, dict):
        raise UserError(f"{where} has no object 'parameters'", None, "give it one")
    given = cast("dict[str, Any]", parameters)
    _check(given, models[kernel], f"{where} ({kernel})")
    return Point(kernel, given, float(measured))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(given: Mapping[str, Any], model: Model, where: str) -> None:
    for name in model.integers:
        value = given.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(
                f"{where} has '{name}' {value!r}", "it is a whole number from 1", "correct it"
            )
    for name, words in model.words.items():
        if given.get(name) not in words:
            raise UserError(
                f"{where} has '{name}' {given.get(name)!r}",
                f"it is one of {', '.join(word for word in words if word)}",
                "leave the point out",
            )
