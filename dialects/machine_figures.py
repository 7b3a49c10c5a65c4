"""The machine that a module was lowered for, as one attribute of the module.

A machine that comes with cim-opt is written by name, any other as a dictionary of all its
parameters, so that the module can be simulated from its text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of


class Machine(Protocol):
    """What the machines of all targets have."""

    @property
    def name(self) -> str:
        """The machine's name."""
        ...

    def to_dict(self) -> Mapping[str, Any]:
        """All its parameters."""
        ...


MachineT = TypeVar("MachineT", bound=Machine)


def write_machine(
    machine: MachineT, shipped: Collection[str], load: Callable[[str], MachineT]
) -> Attribute:
    """The machine's name when it is one of `shipped`, else a dictionary of all its parameters."""
    if machine.name in shipped and machine == load(machine.name):
        return StringAttr(machine.name)
    return figures_attribute(machine.to_dict())


def read_machine(
    module: ModuleOp,
    attribute: str,
    pipeline: str,
    load: Callable[[str], MachineT],
    from_dict: Callable[[Mapping[str, object], str], MachineT],
) -> MachineT:
    """The machine named or described in the module's attribute.

    Raises UserError when the module has none; `pipeline` is what would set it.
    """
    attr = module.attributes.get(attribute)
    if isinstance(attr, StringAttr):
        return load(attr.data)
    if isa(attr, DictionaryAttr):
        return from_dict(figures_of(attr), f"attribute {attribute}")
    raise UserError(
        f"the module does not say its machine: attribute {attribute} is {attr}",
        "it is a name or a dictionary",
        f"lower the module with {pipeline}, or choose a machine",
        location_of(module),
    )


def figures_attribute(figures: Mapping[str, Any]) -> DictionaryAttr:
    """A dictionary attribute of numbers, texts, truth values and lists of them."""
    return DictionaryAttr({key: _attribute(value) for key, value in figures.items()})


def figures_of(attr: DictionaryAttr) -> dict[str, Any]:
    """What `figures_attribute` wrote; an attribute of another kind stays as it is."""
    return {key: _plain(value) for key, value in attr.data.items()}


def _attribute(value: Any) -> Attribute:
    match value:
        case str():
            return StringAttr(value)
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, Float64Type())
        case list() | tuple():
            items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            return ArrayAttr([_attribute(item) for item in items])
        case _:
            raise TypeError(f"no attribute for {value!r}")


def _plain(attr: Attribute) -> Any:
    """A number, text or list as Python has it."""
    if isinstance(attr, StringAttr):
        return attr.data
    if isa(attr, IntegerAttr) and attr.type == i1:
        return bool(attr.value.data)
    if isa(attr, IntegerAttr) or isa(attr, FloatAttr):
        return attr.value.data
    if isa(attr, ArrayAttr):
        return [_plain(item) for item in attr]
    return attr
