"""The module attribute `upmem.machine`: what a lowered module was lowered for.

A machine that comes with cim-opt is written by name, any other as a dictionary of all its
parameters, so that the module can be simulated from its text alone.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from cim_opt.dialects.upmem import MACHINE_ATTRIBUTE
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import MACHINE_NAMES, UpmemMachine, load_machine
from cim_opt.locations import location_of


def machine_attribute(machine: UpmemMachine) -> Attribute:
    """The machine's name when it comes with cim-opt, else a dictionary of all its parameters."""
    if machine.name in MACHINE_NAMES and machine == load_machine(machine.name):
        return StringAttr(machine.name)
    return DictionaryAttr({key: _attribute(value) for key, value in machine.to_dict().items()})


def machine_of(module: ModuleOp) -> UpmemMachine:
    """The machine named or described in the module's attribute.

    Raises UserError when the module has none.
    """
    attr = module.attributes.get(MACHINE_ATTRIBUTE)
    if isinstance(attr, StringAttr):
        return load_machine(attr.data)
    if isa(attr, DictionaryAttr):
        values = {key: _plain(value) for key, value in attr.data.items()}
        return UpmemMachine.from_dict(values, f"attribute {MACHINE_ATTRIBUTE}")
    raise UserError(
        f"the module does not say its machine: attribute {MACHINE_ATTRIBUTE} is {attr}",
        "it is a name or a dictionary",
        "lower the module with pattern-to-upmem, or choose a machine",
        location_of(module),
    )


def _attribute(value: Any) -> Attribute:
    match value:
        case str():
            return StringAttr(value)
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
    if isa(attr, IntegerAttr) or isa(attr, FloatAttr):
        return attr.value.data
    if isa(attr, ArrayAttr):
        return [_plain(item) for item in attr]
    return attr
