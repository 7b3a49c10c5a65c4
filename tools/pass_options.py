"""Checks of `name{option=value}` texts before anything runs, with messages that say what to write.

Passes, targets and front ends are all written so (xDSL's ArgSpec).
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import (
    ArgSpec,
    ArgSpecConvertible,
    ParameterListType,
    parse_pipeline,
)
from xdsl.utils.hints import isa, type_repr

from cim_opt.errors import UserError
from cim_opt.tools.nearest import nearest


def check_pipeline(passes: Mapping[str, Callable[[], type[ModulePass]]], text: str) -> None:
    """Raises UserError for an unknown pass, an unknown option, or a value of the wrong type.

    Text that is not a pipeline at all raises xDSL's ArgSpecParseError.
    """
    specs = tuple(parse_pipeline(text))
    for spec in specs:
        if spec.name not in passes:
            raise UserError(
                f"no pass '{spec.name}'",
                remedy=nearest(spec.name, passes) or "cim-opt --help lists the passes",
            )
    for spec in specs:
        check_options("pass", passes[spec.name](), spec)


def check_options(kind: str, cls: type[ArgSpecConvertible], spec: ArgSpec) -> None:
    """Raises UserError when `cls` cannot be made from `spec`; `kind` is what a `cls` is called."""
    types = _option_types(cls)
    for name, values in spec.normalize_parameter_names().parameters.items():
        if name not in types:
            taken = ", ".join(f"{_spelt(key)}: {_shown(value)}" for key, value in types.items())
            raise UserError(
                f"{kind} '{spec.name}' has no option '{_spelt(name)}'",
                f"it takes {taken}" if taken else "it takes none",
                nearest(_spelt(name), map(_spelt, types)),
            )
        if not _fits(values, types[name]):
            raise UserError(
                f"{kind} '{spec.name}': option '{_spelt(name)}' cannot be {_written(values)}",
                f"it takes {_shown(types[name])}",
            )
    try:
        cls.from_spec(spec)
    except ValueError as error:
        raise UserError(f"{kind} '{spec.name}': {error}") from error


def _option_types(cls: type[ArgSpecConvertible]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init and f.name != "name"}


def _fits(values: ParameterListType, kind: Any) -> bool:
    """Whether xDSL can make a `kind` of what was written: one value, several, or none."""
    if not values:
        return NoneType in get_args(kind)
    return isa(values, kind) or (len(values) == 1 and isa(values[0], kind))


def _shown(kind: Any) -> str:
    """What an option takes: names of a choice as they are written, other types as Python has them.

    That an option may be left out goes without saying.
    """
    choices = [choice for choice in get_args(kind) if choice is not NoneType]
    if get_origin(kind) is Literal:
        return ", ".join(map(str, choices))
    if get_origin(kind) in (Union, UnionType) and choices:
        return " or ".join(map(_shown, choices))
    return type_repr(kind)


def _spelt(name: str) -> str:
    """The name of a field as an option: xDSL takes `-` and `_` for each other there."""
    return name.replace("_", "-")


def _written(values: ParameterListType) -> str:
    """The values as they are written on the command line."""
    if not values:
        return "left without a value"
    return ",".join(
        str(value).lower() if isinstance(value, bool) else repr(value) for value in values
    )
