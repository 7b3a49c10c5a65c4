"""The module attribute `simdram.library`: whose row programs the D rows were allocated for.

Programs of another library need other scratch rows, and may not write where these may.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from cim_opt.dialects.simdram import LIBRARY_ATTRIBUTE
from cim_opt.errors import UserError

DEFAULT_LIBRARY = "cim-opt"


def chosen_library(module: ModuleOp, asked: str | None) -> str:
    """The library to run a module with; `asked` None takes the module's, else the default.

    Raises UserError when the module's rows were allocated for another one than that asked for.
    """
    attr = module.attributes.get(LIBRARY_ATTRIBUTE)
    if attr is None:
        return asked or DEFAULT_LIBRARY
    if not isinstance(attr, StringAttr):
        raise UserError(
            f"the module's attribute {LIBRARY_ATTRIBUTE} is {attr}",
            "it is a name in quotes",
            "lower the program with pattern-to-simdram",
        )
    if asked not in (None, attr.data):
        raise UserError(
            f"library {asked} for a program whose rows were allocated for {attr.data}",
            "row programs of another library need other rows",
            "leave the library out, or lower the program for it",
        )
    return attr.data
