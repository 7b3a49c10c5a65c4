"""`poly.kernel` from loops and accesses, and back."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Region, SSAValue
from xdsl.utils.hints import isa

from cim_opt.dialects.mac_body import mac_body, match_mac
from cim_opt.dialects.poly import KernelOp, MapAttr, SetAttr
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.polyhedral.recognise import Access, Recognised, Role, recognise


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor; -1 where it is not known."""
    assert isa(value.type, TensorType)
    return value.type.get_shape()


def build_kernel(
    operands: Sequence[SSAValue],
    extents: Sequence[int],
    accesses: Sequence[Access],
    padded: bool = False,
) -> KernelOp:
    """The kernel of multiply-accumulates of input, weight and output with these accesses.

    Loops are named by what they do: g, oc, ic, o0 .. and k0 .. along axis 0 ...
    Raises UserError for loops and accesses that are no such kernel.
    """
    input, weight, init = operands
    shapes = [shape_of(input), shape_of(weight)]
    names = _loop_names(recognise(extents, accesses, shapes))
    bounds = (f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    loops = f"[{', '.join(names)}]"
    types = [value.type for value in operands]
    elements = [type.element_type for type in types if isa(type, TensorType)]
    return KernelOp(
        input,
        weight,
        init,
        SetAttr(f"{{ {loops} : {' and '.join(bounds) or 'true'} }}"),
        [MapAttr(f"{{ {loops} -> {_indices(access, names)} }}") for access in accesses],
        Region(mac_body(*elements)),
        padded,
    )


def _loop_names(found: Recognised) -> list[str]:
    """A name for each loop that says what it does."""
    axes = {loop: number for loop, number in found.axis_of.items()}
    names: list[str] = []
    letters: dict[Role, str] = {"group": "g", "out_channel": "oc", "in_channel": "ic", "none": "u"}
    for loop, role in enumerate(found.roles):
        if role in ("position", "tap"):
            names.append(f"{'o' if role == 'position' else 'k'}{axes[loop]}")
            continue
        number = found.roles[:loop].count(role)
        several = found.roles.count(role) > 1
        names.append(f"{letters[role]}{number}" if several else letters[role])
    return names


def _indices(access: Access, names: Sequence[str]) -> str:
    """The indices of an access in the syntax of isl."""
    indices: list[str] = []
    for row, offset in zip(access.matrix, access.offsets, strict=True):
        terms = [f"{value}*{name}" for value, name in zip(row, names, strict=True) if value]
        indices.append(" + ".join([*terms, *([str(offset)] if offset or not terms else [])]))
    return f"[{', '.join(indices)}]"


def recognise_kernel(op: KernelOp) -> Recognised:
    """The kernel that a `poly.kernel` is. Raises UserError, with its place, when it is none."""
    from cim_opt.polyhedral import sets

    mac = match_mac(op.body.block)
    if mac is None or mac.accumulator.index != 2:
        raise UserError(
            f"the body of '{op.name}' is no multiply-accumulate",
            "macros add the product of an input and a weight to an output",
            "compute the rest before or after the kernel",
            location_of(op),
        )
    extents, accesses = loops_of(op)
    domain = sets.parse_set(op.domain.text.data)
    shapes = [shape_of(op.input), shape_of(op.weight)]
    try:
        return recognise(extents, accesses, shapes, names=_names_of(domain))
    except UserError as error:
        error.location = error.location or location_of(op)
        raise


def loops_of(op: KernelOp) -> tuple[tuple[int, ...], list[Access]]:
    """Extents of the loops of a `poly.kernel`, and its accesses. Raises UserError for others."""
    from cim_opt.polyhedral import sets

    domain = sets.parse_set(op.domain.text.data)
    extents = sets.extents_of(domain)
    if extents is None:
        raise UserError(
            f"a kernel whose domain is {domain}",
            "domains are boxes that start at 0",
            location=location_of(op),
        )
    accesses: list[Access] = []
    for attr, what in zip(op.accesses.data, ("input", "weights", "output"), strict=True):
        rows = sets.affine_rows(sets.parse_map(attr.text.data))
        if rows is None:
            raise UserError(
                f"the access to the {what} is {attr.text.data}",
                "indices are sums of loops times integers",
                "leave out divisions, remainders and cases",
                location_of(op),
            )
        accesses.append(Access(*rows))
    return extents, accesses


def _names_of(domain: object) -> list[str]:
    import islpy as isl

    assert isinstance(domain, isl.Set)
    count = domain.dim(isl.dim_type.set)
    return [domain.get_dim_name(isl.dim_type.set, i) or f"d{i}" for i in range(count)]
