"""The plan of a `poly.kernel`: what its attributes say, and the fastest choice for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.utils.hints import isa

from cim_opt.dialects.poly import CoverAttr, KernelOp
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine, load_machine
from cim_opt.locations import location_of
from cim_opt.lowering.poly_covers import cover_of
from cim_opt.lowering.poly_kernels import recognise_kernel
from cim_opt.mapping.cim_code import ORDERS
from cim_opt.mapping.cim_covers import covers_for
from cim_opt.mapping.cim_plan import Split
from cim_opt.mapping.cim_search import Choice, Tiled, best_plan, require, tile_of
from cim_opt.polyhedral.cover import check
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.recognise import Recognised


def bits_of(op: KernelOp) -> int:
    """The width at which a kernel multiplies: that of its wider operand."""
    widths: list[int] = []
    for value in (op.input, op.weight):
        assert isa(value.type, TensorType)
        element = value.type.element_type
        assert isa(element, IntegerType)
        widths.append(element.width.data)
    return max(widths)


def kernel_of(found: Recognised) -> MacKernel:
    """The kernel with at least one axis."""
    kernel = found.kernel
    if kernel.axes:
        return kernel
    channels = kernel.out_channels, kernel.in_channels
    return MacKernel(kernel.groups, *channels, (Axis(1),))


def split_of(op: KernelOp, machine: CimMachine) -> Split:
    """The split of the macros that an attribute names. Raises UserError for too many."""
    assert op.macros is not None
    split = Split(*op.macros.get_values())
    if split.macros > machine.macros:
        raise UserError(
            f"a kernel mapped to {split.macros} macros",
            f"{machine.name} has {machine.macros}",
            "map it for this machine with poly-map-macros",
            location_of(op),
        )
    return split


def plan_of(op: KernelOp, found: Recognised, machine: CimMachine, movement: bool = True) -> Choice:
    """The plan that a kernel's attributes describe, completed by modelled cycles.

    Raises UserError for attributes that do not suit the machine, and when no plan fits it.
    """
    kernel = kernel_of(found)
    bits = bits_of(op)
    if op.cover is not None:
        covers: Sequence[Tiled] = [_checked_cover(op, op.cover, kernel, machine)]
    else:
        covers = covers_for(kernel, machine.rows, machine.columns_of(bits), "best")
    split = None if op.macros is None else split_of(op, machine)
    order = None if op.order is None else op.order.data
    if order is not None and order not in ORDERS:
        raise UserError(
            f"order {order!r} of a kernel",
            f"the orders are {', '.join(ORDERS)}",
            "use one of these",
            location_of(op),
        )
    choice = best_plan(
        kernel,
        machine,
        covers,
        bits=bits,
        split=split,
        layout=None if op.layout is None else op.layout.data,
        order=order,
        movement=movement,
    )
    if choice is None and (op.macros is not None or op.layout is not None):
        raise UserError(
            f"no plan for a kernel with {_given(op)}",
            f"its cover cannot be laid on {machine.name} in this way",
            "let poly-map-macros and poly-layout choose",
            location_of(op),
        )
    return required(op, choice, kernel, machine)


def planned_kernels(
    module: ModuleOp, machine: str, movement: bool
) -> Iterator[tuple[KernelOp, Choice]]:
    """The kernels of a module with their plans on a machine, by name or file, one after another."""
    described = load_machine(machine)
    for op in module.walk():
        if isinstance(op, KernelOp):
            yield op, plan_of(op, recognise_kernel(op), described, movement)


def required(op: KernelOp, choice: Choice | None, kernel: MacKernel, machine: CimMachine) -> Choice:
    """The choice, or the error, with the kernel's place, that no plan fits."""
    try:
        return require(choice, kernel, machine)
    except UserError as error:
        error.location = location_of(op)
        raise


def _checked_cover(op: KernelOp, attr: CoverAttr, kernel: MacKernel, machine: CimMachine) -> Tiled:
    """The cover that an attribute describes. Raises UserError unless it computes the kernel."""
    try:
        tiled = cover_of(attr, kernel)
        tile = tile_of(kernel, tiled.channels)
        check(tiled.cover, tile, machine.rows, machine.columns_of(bits_of(op)))
    except UserError as error:
        error.location = location_of(op)
        raise
    return tiled


def _given(op: KernelOp) -> str:
    """The attributes that say how a kernel is laid on macros and memory."""
    given: list[str] = []
    if op.macros is not None:
        given.append(f"macros {list(op.macros.get_values())}")
    if op.layout is not None:
        given.append(f"layout {op.layout.data!r}")
    return " and ".join(given)
