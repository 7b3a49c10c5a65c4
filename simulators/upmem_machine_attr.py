"""The machine that a module was lowered for, from its attribute `upmem.machine`."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from cim_opt.dialects.upmem import MACHINE_ATTRIBUTE
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine, load_machine
from cim_opt.locations import location_of


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


def _plain(attr: Attribute) -> Any:
    """A number, text or list as Python has it."""
    if isinstance(attr, StringAttr):
        return attr.data
    if isinstance(attr, IntegerAttr | FloatAttr):
        return attr.value.data
    if isa(attr, ArrayAttr):
        return [_plain(item) for item in attr]
    if isinstance(attr, DenseArrayBase):
        return list(attr.get_values())
    return attr
