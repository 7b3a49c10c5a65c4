"""The module attribute `cim.machine`: what a lowered module was lowered for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from cim_opt.dialects.cim import MACHINE_ATTRIBUTE
from cim_opt.dialects.machine_figures import read_machine, write_machine
from cim_opt.hardware.cim import MACHINE_NAMES, CimMachine, load_machine


def machine_attribute(machine: CimMachine) -> Attribute:
    """The machine's name when it comes with cim-opt, else a dictionary of all its parameters."""
    return write_machine(machine, MACHINE_NAMES, load_machine)


def machine_of(module: ModuleOp) -> CimMachine:
    """The machine named or described in the module's attribute.

    Raises UserError when the module has none.
    """
    return read_machine(
        module, MACHINE_ATTRIBUTE, "conv-to-cim", load_machine, CimMachine.from_dict
    )
