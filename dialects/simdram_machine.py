"""The module attribute `simdram.machine`: what a lowered module was lowered for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from cim_opt.dialects.machine_figures import read_machine, write_machine
from cim_opt.dialects.simdram import MACHINE_ATTRIBUTE
from cim_opt.hardware.simdram import MACHINE_NAMES, SimdramMachine, load_machine


def machine_attribute(machine: SimdramMachine) -> Attribute:
    """The machine's name when it comes with cim-opt, else a dictionary of all its parameters."""
    return write_machine(machine, MACHINE_NAMES, load_machine)


def machine_of(module: ModuleOp) -> SimdramMachine:
    """The machine named or described in the module's attribute.

    Raises UserError when the module has none.
    """
    return read_machine(
        module, MACHINE_ATTRIBUTE, "pattern-to-simdram", load_machine, SimdramMachine.from_dict
    )
