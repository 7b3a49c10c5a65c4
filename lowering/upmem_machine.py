"""The machine as a module attribute, so that a lowered module can be simulated from its text."""

from __future__ import annotations

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

Scalar = int | float | str


def machine_attribute(machine: UpmemMachine) -> Attribute:
    """The machine's name when it comes with cim-opt, else a dictionary of all its parameters."""
    if machine.name in MACHINE_NAMES and machine == load_machine(machine.name):
        return StringAttr(machine.name)
    return DictionaryAttr({key: _attribute(value) for key, value in machine.to_dict().items()})


def machine_of(module: ModuleOp) -> UpmemMachine:
    """The machine that a module was lowered for. Raises UserError when it names none."""
    attr = module.attributes.get(MACHINE_ATTRIBUTE)
    if isinstance(attr, StringAttr):
        return load_machine(attr.data)
    if isinstance(attr, DictionaryAttr):
        return UpmemMachine.from_dict({key: _value(a) for key, a in attr.data.items()})
    raise UserError(
        f"module has no attribute '{MACHINE_ATTRIBUTE}'",
        "a lowered module names its machine",
        "lower it with pattern-to-upmem, or add the attribute",
    )


def _attribute(value: object) -> Attribute:
    match value:
        case bool() | str():
            return StringAttr(str(value))
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, Float64Type())
        case list() | tuple():
            return ArrayAttr([_attribute(item) for item in value])  # pyright: ignore
        case _:
            raise TypeError(f"no attribute for {value!r}")


def _value(attr: Attribute) -> Scalar | list[Scalar]:
    if isinstance(attr, StringAttr):
        return attr.data
    if isa(attr, IntegerAttr):
        return attr.value.data
    if isa(attr, FloatAttr):
        return attr.value.data
    assert isa(attr, ArrayAttr)
    items = [_value(item) for item in attr]
    return [item for item in items if not isinstance(item, list)]
