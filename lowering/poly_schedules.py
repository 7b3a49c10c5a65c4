"""Schedules of `poly.kernel`: the attributes, the isl maps, and the schedule that they describe.

The name of a schedule's result says how far it is:

    split[g, oc, ic, o0 .., k0 ..]      all levels of the loops that iterate
    basis[time .., row .., column ..]   coordinates along the vectors of `basis`
    virtual[time .., row, column]       rows and columns fused
    macro[time .., row, column]         rows and columns of the macro; more tiles are more times
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerType, i64
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from cim_opt.dialects.poly import KernelOp, MapAttr
from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.lowering.poly_plans import kernel_of
from cim_opt.mapping.cim_schedules import Level, Schedule, Splits, levels_of, schedule_with
from cim_opt.polyhedral import coalesce, posttile
from cim_opt.polyhedral.affine_basis import Role, Vector, coordinates
from cim_opt.polyhedral.affine_part import measure
from cim_opt.polyhedral.isl_text import level_texts, linear_text, loop_names
from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.polyhedral.nest import Factors
from cim_opt.polyhedral.recognise import Recognised

Stage = Literal["none", "split", "basis", "virtual", "macro", "other"]
ROLES: tuple[Role, ...] = ("time", "row", "column")

_MADE_BY = {
    "none": "has no schedule",
    "split": "has split loops and no basis",
    "basis": "has a basis already",
    "virtual": "has virtual rows and columns already",
    "macro": "is mapped to rows and columns of a macro already",
    "other": "has a schedule that no pass made",
}


# -- how far a schedule is -------------------------------------------------------------------------


def stage_of(op: KernelOp) -> Stage:
    """How far the schedule of a kernel is."""
    if op.schedule is None:
        return "none"
    from cim_opt.polyhedral import sets

    name = sets.result_name(sets.parse_map(op.schedule.text.data))
    for stage in ("split", "basis", "virtual", "macro"):
        if name == stage:
            return stage
    return "other"


def wrong_stage(op: KernelOp, remedy: str) -> UserError:
    """The error for a kernel whose schedule is not at the stage that a pass needs."""
    return UserError(
        f"a kernel that {_MADE_BY[stage_of(op)]}",
        "the order is poly-pretile, poly-affine-schedule, poly-coalesce, poly-posttile",
        remedy,
        location_of(op),
    )


# -- attributes ------------------------------------------------------------------------------------


def splits_attribute(splits: Splits) -> DictionaryAttr:
    """Levels by loop."""
    return DictionaryAttr(
        {name: DenseArrayBase.from_list(i64, factors) for name, factors in splits.items()}
    )


def splits_of(op: KernelOp, kernel: MacKernel) -> dict[str, Factors] | None:
    """The levels that the attribute names, None without it. Raises UserError for wrong ones."""
    if op.splits is None:
        return None
    found: dict[str, Factors] = {}
    for name, attr in op.splits.data.items():
        found[name] = _integers(attr)
        if name not in loop_names(kernel)[1:]:
            raise UserError(
                f"a split of loop {name}",
                f"the loops of the kernel are {', '.join(loop_names(kernel)[1:])}",
                location=location_of(op),
            )
    for level in levels_of(kernel, {}):
        factors = found.get(level.loop)
        if factors is not None and coalesce.weights((1, *factors))[0] < level.size:
            raise UserError(
                f"levels {list(factors)} of loop {level.loop}",
                f"it has {level.size} iterations",
                location=location_of(op),
            )
    return found


def basis_attribute(basis: Sequence[Vector]) -> DictionaryAttr:
    """Vectors by role."""
    return vectors_attribute({role: [v.entries for v in basis if v.role == role] for role in ROLES})


def vectors_attribute(vectors: dict[str, list[tuple[int, ...]]]) -> DictionaryAttr:
    """Arrays of integer vectors by name."""
    return DictionaryAttr(
        {
            name: ArrayAttr([DenseArrayBase.from_list(i64, entries) for entries in listed])
            for name, listed in vectors.items()
        }
    )


def vectors_of(attr: DictionaryAttr | None, name: str) -> list[tuple[int, ...]]:
    """The integer vectors of a name; none without an attribute."""
    vectors = ArrayAttr[Attribute]([]) if attr is None else attr.data[name]
    assert isa(vectors, ArrayAttr[Attribute])
    return [_integers(vector) for vector in vectors]


def basis_of(op: KernelOp) -> list[Vector]:
    """The vectors of the attribute, in the order time, row, column."""
    return [Vector(entries, role) for role in ROLES for entries in vectors_of(op.basis, role)]


def _integers(attr: Attribute) -> tuple[int, ...]:
    assert isa(attr, DenseArrayBase[IntegerType])
    return tuple(attr.get_values())


def schedule_of(op: KernelOp, kernel: MacKernel) -> Schedule:
    """The schedule that splits and basis describe. Raises UserError when they describe none."""
    splits = splits_of(op, kernel)
    if splits is None or op.basis is None:
        raise UserError(
            "a kernel without splits or without a basis",
            "both say what its rows and columns are",
            "run poly-affine-schedule first",
            location_of(op),
        )
    try:
        schedule = schedule_with(kernel, splits, basis_of(op))
        for part in schedule.parts:
            measure(part)
    except ValueError as error:
        raise UserError(
            f"a basis that is none: {error}",
            "a basis has one vector a level, and they are independent",
            "let poly-affine-schedule choose it",
            location_of(op),
        ) from error
    return schedule


# -- maps ------------------------------------------------------------------------------------------


def split_map(op: KernelOp, found: Recognised, splits: Splits) -> MapAttr:
    """The map from the loops of a kernel to the levels of those that iterate."""
    from cim_opt.polyhedral import sets

    domain = sets.parse_set(op.domain.text.data)
    extents = sets.extents_of(domain)
    assert extents is not None
    loops = _kernel_loops(found, extents)
    levels: list[str] = []
    for level in levels_of(kernel_of(found), {}):
        levels += level_texts(loops[level.loop], splits.get(level.loop, (level.size,)))
    names = ", ".join(f"i{loop}" for loop in range(len(extents)))
    text = f"{{ [{names}] -> split[{', '.join(levels)}] }}"
    return MapAttr(sets.map_text(sets.named_as(sets.parse_map(text), domain)))


def _kernel_loops(found: Recognised, extents: Sequence[int]) -> dict[str, str]:
    """The loops g, oc, ic, o0 .., k0 .. as expressions of a nest's loops i0, i1, ..."""

    def forward(loop: int) -> str:
        """The loop, counted from its end if the kernel does so."""
        return f"({extents[loop] - 1} - i{loop})" if loop in found.turned else f"i{loop}"

    loops = dict.fromkeys(loop_names(kernel_of(found)), "0")
    for role, name in (("group", "g"), ("out_channel", "oc"), ("in_channel", "ic")):
        mine = [loop for loop, other in enumerate(found.roles) if other == role]
        weights = coalesce.weights([extents[loop] for loop in mine])
        loops[name] = f"({linear_text(weights, [forward(loop) for loop in mine])})"
    for loop, axis in found.axis_of.items():
        letter = "o" if found.roles[loop] == "position" else "k"
        loops[f"{letter}{axis}"] = forward(loop)
    return loops


def basis_map(schedule: Schedule) -> str:
    """The map from levels to coordinates along the basis, each from 0."""
    levels = levels_of(schedule.kernel, schedule.splits())
    names = [f"l{place}" for place in range(len(levels))]
    found = [
        (vector.role, text)
        for vector, (text, _) in zip(
            schedule.basis(), _coordinates(schedule, levels, names), strict=True
        )
    ]
    there = [text for role in ROLES for mine, text in found if mine == role]
    return f"{{ split[{', '.join(names)}] -> basis[{', '.join(there)}] }}"


def _coordinates(
    schedule: Schedule, levels: Sequence[Level], names: Sequence[str]
) -> list[tuple[str, int]]:
    """The coordinate along each vector of the basis, and how many values it has."""
    found: list[tuple[str, int]] = []
    for name, level in zip(names, levels, strict=True):
        if level.loop in ("g", "oc", "ic"):
            found.append((name, level.size))
    for axis, part in enumerate(schedule.parts):
        mine = [
            name
            for name, level in zip(names, levels, strict=True)
            if level.loop in (f"o{axis}", f"k{axis}")
        ]
        matrix = coordinates(tuple(vector.entries for vector in part.basis))
        sizes, lows = measure(part).sizes, measure(part).lows
        live = [
            extent > 1
            for extent, factors in zip(part.extents, part.factors, strict=True)
            for _ in factors
        ]
        for row, size, low in zip(matrix, sizes, lows, strict=True):
            kept = [value for value, moves in zip(row, live, strict=True) if moves]
            found.append((linear_text(kept, mine, -low), size))
    return found


def sizes_of(schedule: Schedule, role: Role) -> tuple[int, ...]:
    """How many values each coordinate of a role has."""
    levels = levels_of(schedule.kernel, schedule.splits())
    names = [""] * len(levels)
    pairs = zip(schedule.basis(), _coordinates(schedule, levels, names), strict=True)
    return tuple(size for vector, (_, size) in pairs if vector.role == role)


def virtual_map(schedule: Schedule) -> str:
    """The map from coordinates to virtual row and column."""
    names = {role: [f"{role}{i}" for i in range(len(sizes_of(schedule, role)))] for role in ROLES}
    row, column = (
        coalesce.text(names[role], sizes_of(schedule, role)) for role in ("row", "column")
    )
    here = ", ".join(name for role in ROLES for name in names[role])
    there = ", ".join((*names["time"], row, column))
    return f"{{ basis[{here}] -> virtual[{there}] }}"


def macro_map(schedule: Schedule, rows: int, columns: int) -> str:
    """The map from virtual rows and columns to those of a macro, and tiles as further times."""
    times = [f"t{i}" for i in range(len(sizes_of(schedule, "time")))]
    tiles: list[str] = []
    inside: list[str] = []
    virtual = prod(sizes_of(schedule, "row")), prod(sizes_of(schedule, "column"))
    for name, size, physical in zip(("r", "c"), virtual, (rows, columns), strict=True):
        tile, place = posttile.text(name, size, physical)
        tiles += [tile] if size > physical else []
        inside.append(place)
    here, there = ", ".join((*times, "r", "c")), ", ".join((*times, *tiles, *inside))
    return f"{{ virtual[{here}] -> macro[{there}] }}"


def then(op: KernelOp, first: MapAttr, second: str) -> MapAttr:
    """The schedule that applies `first`, then `second`. Raises UserError when they do not meet."""
    from cim_opt.polyhedral import sets

    try:
        both = sets.composed(sets.parse_map(first.text.data), sets.parse_map(second))
    except ValueError:
        raise UserError(
            f"the schedule {first.text.data}",
            f"its splits and basis say that it goes to {second.split(' -> ')[0].strip('{ ')}",
            "let the passes poly-* make all three",
            location_of(op),
        ) from None
    return MapAttr(sets.map_text(both))
