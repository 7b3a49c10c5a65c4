"""Checks of a pass pipeline's text before anything runs, with messages that say what to write."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, parse_pipeline
from xdsl.utils.hints import isa, type_repr

from cim_opt.errors import UserError


def check_pipeline(passes: Mapping[str, Callable[[], type[ModulePass]]], text: str) -> None:
    """Raises UserError for an unknown pass, an unknown option, or a value of the wrong type.

    Text that is not a pipeline at all raises xDSL's ArgSpecParseError.
    """
    specs = tuple(parse_pipeline(text))
    for spec in specs:
        if spec.name not in passes:
            raise UserError(
                f"no pass '{spec.name}'",
                remedy=_nearest(spec.name, passes) or "cim-opt --help lists the passes",
            )
    for spec in specs:
        _check_options(passes[spec.name](), spec)


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """`did you mean 'a' or 'b'?` for the names most like `name`, if any is."""
    matches = get_close_matches(name, list(known), n=3, cutoff=0.6)
    if not matches:
        return None
    return f"did you mean {' or '.join(repr(match) for match in matches)}?"


def _check_options(cls: type[ModulePass], spec: ArgSpec) -> None:
    types = _option_types(cls)
    for name, values in spec.normalize_parameter_names().parameters.items():
        if name not in types:
            taken = ", ".join(f"{key}: {type_repr(kind)}" for key, kind in types.items())
            raise UserError(
                f"pass '{spec.name}' has no option '{name}'",
                f"it takes {taken}" if taken else "it takes none",
                _nearest(name, types),
            )
        if not _fits(values, types[name]):
            raise UserError(
                f"pass '{spec.name}': option '{name}' cannot be {_written(values)}",
                f"it takes {type_repr(types[name])}",
            )
    try:
        cls.from_spec(spec)
    except ValueError as error:
        raise UserError(f"pass '{spec.name}': {error}") from error


def _option_types(cls: type[ModulePass]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init and f.name != "name"}


def _fits(values: ParameterListType, kind: Any) -> bool:
    """Whether xDSL can make a `kind` of what was written: one value, several, or none."""
    if not values:
        return NoneType in get_args(kind)
    return isa(values, kind) or (len(values) == 1 and isa(values[0], kind))


def _written(values: ParameterListType) -> str:
    """The values as they are written on the command line."""
    if not values:
        return "left without a value"
    return ",".join(
        str(value).lower() if isinstance(value, bool) else repr(value) for value in values
    )
