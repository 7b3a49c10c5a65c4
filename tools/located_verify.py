"""Where a module does not verify: the operation, its place, and the pass that left it so."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from cim_opt.locations import location_of
from cim_opt.tools.dominance import early_uses
from cim_opt.tools.failures import one_line
from cim_opt.tools.located_parser import LocatedVerifyException


def located_failure(
    error: VerifyException, module: ModuleOp, after: ModulePass | None = None
) -> LocatedVerifyException:
    """The failure with the place and name of the operation, and the pass that left it so."""
    return _at(_failing_op(module), error, after)


def verify_order(module: ModuleOp, after: ModulePass | None = None) -> None:
    """Raises LocatedVerifyException when a value is used before it is defined.

    xDSL's own verifier lets that pass. The module must verify otherwise.
    """
    for op, value in early_uses(module):
        name = f"%{value.name_hint}" if value.name_hint else f"of type {value.type}"
        raise _at(op, VerifyException(f"value {name} is used before it is defined"), after)


def _at(op: Operation, error: VerifyException, after: ModulePass | None) -> LocatedVerifyException:
    message = one_line(str(error))
    if op.name not in message:
        message = f"'{op.name}': {message}"
    if after is not None:
        message += f" (after pass '{after.name}')"
    located = LocatedVerifyException(message, location_of(op))
    located.__notes__ = getattr(error, "__notes__", [])
    return located


def _failing_op(op: Operation) -> Operation:
    """The innermost operation that does not verify, the first of several."""
    children = (child for region in op.regions for block in region.blocks for child in block.ops)
    for child in children:
        try:
            child.verify()
        except VerifyException:
            return _failing_op(child)
    return op
