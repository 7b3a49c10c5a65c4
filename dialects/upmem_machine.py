"""The module attribute `upmem.machine`: what a lowered module was lowered for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from cim_opt.dialects.machine_figures import read_machine, write_machine
from cim_opt.dialects.upmem import MACHINE_ATTRIBUTE
from cim_opt.hardware.upmem import MACHINE_NAMES, UpmemMachine, load_machine


def machine_attribute(machine: UpmemMachine) -> Attribute:
    """The machine's name when it comes with cim-opt, else a dictionary of all its parameters."""
    return write_machine(machine, MACHINE_NAMES, load_machine)


def machine_of(module: ModuleOp) -> UpmemMachine:
    """The machine named or described in the module's attribute.

    Raises UserError when the module has none.
    """
    return read_machine(
        module, MACHINE_ATTRIBUTE, "pattern-to-upmem", load_machine, UpmemMachine.from_dict
    )
