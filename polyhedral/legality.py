"""Proof that a schedule does a kernel, by isl: every multiply-accumulate once, on a real macro.

A schedule maps iterations to [time .., macro, row, column]. One use of a macro, at one time, gives
each row one input element, which all its columns see, and lets each column add into one output
element; so besides doing every iteration once, in a cell of its own,

    (time, macro, row) determines the input element,
    (time, macro, column) determines the output element,
    (time, macro, row, column) determines the weight element.
"""

from __future__ import annotations

from typing import Any

from cim_opt.errors import UserError
from cim_opt.polyhedral.isl_text import KernelText

IslMap = Any
IslSet = Any


def check_schedule(
    kernel: KernelText, schedule: str, rows: int, columns: int, macros: int = 1
) -> None:
    """Raises UserError, which names what broke and where, unless the schedule is legal.

    `schedule` is the isl text of a map from the kernel's iterations to [time .., macro, row,
    column]; `rows`, `columns` and `macros` are how many there are.
    """
    import islpy as isl

    domain = isl.Set(kernel.domain)
    space = _parsed(isl.Map, schedule)
    depth = space.dim(isl.dim_type.out)
    if space.dim(isl.dim_type.in_) != domain.dim(isl.dim_type.set) or depth < 3:
        raise UserError(
            "the schedule is no map from iterations to [time .., macro, row, column]",
            f"it has {space.dim(isl.dim_type.in_)} loops and {depth} results; the kernel has "
            f"{domain.dim(isl.dim_type.set)} loops",
        )
    if not space.domain().get_space().is_equal(domain.get_space()):
        raise UserError(
            f"the schedule is for iterations {space.get_tuple_name(isl.dim_type.in_)}[..]",
            f"the kernel's are {domain.get_tuple_name()}[..]",
        )
    _check_complete(domain, space)
    placed = space.intersect_domain(domain)
    for place, (name, most) in enumerate((("macro", macros), ("row", rows), ("column", columns))):
        _check_range(placed, depth - 3 + place, name, most)
    _check_once(placed)
    row, column = depth - 2, depth - 1
    _check_element(placed, (column, 1), isl.Map(kernel.input), "row", "inputs")
    _check_element(placed, (row, 1), isl.Map(kernel.output), "column", "outputs")
    _check_element(placed, None, isl.Map(kernel.weight), "cell", "weights")
    _check_own_cell(placed)


def check_coordinates(
    kernel: KernelText,
    schedule: str,
    times: int,
    rows: int,
    macro: tuple[int, int] | None = None,
) -> None:
    """The same for a map to [time .., row .., column ..], on one macro or before it is mapped.

    `times` and `rows` count its first results; all others are columns. Without rows and columns it
    is an order of the iterations. `macro` is how many rows and columns there are, for a map with
    one of each. Raises UserError as `check_schedule` does.
    """
    import islpy as isl

    domain = isl.Set(kernel.domain)
    space = _parsed(isl.Map, schedule)
    _check_complete(domain, space)
    placed = space.intersect_domain(domain)
    _check_once(placed)
    columns = space.dim(isl.dim_type.out) - times - rows
    for place, name in enumerate(("row", "column")):
        if macro is not None:
            _check_range(placed, times + place, name, macro[place])
    if rows + columns:
        _check_element(placed, (times + rows, columns), isl.Map(kernel.input), "row", "inputs")
        _check_element(placed, (times, rows), isl.Map(kernel.output), "column", "outputs")
    _check_own_cell(placed)


def is_legal(kernel: KernelText, schedule: str, rows: int, columns: int, macros: int = 1) -> bool:
    """Whether `check_schedule` has nothing to say."""
    try:
        check_schedule(kernel, schedule, rows, columns, macros)
    except UserError:
        return False
    return True


def _parsed(kind: Any, text: str) -> IslMap:
    import islpy as isl

    try:
        return kind(text)
    except isl.Error as error:
        raise UserError("isl cannot read the schedule", str(error).splitlines()[0]) from error


def _check_complete(domain: IslSet, schedule: IslMap) -> None:
    missing = domain.subtract(schedule.domain())
    if not missing.is_empty():
        raise UserError(
            f"iteration {_sample(missing)} is not done", "the schedule covers every iteration"
        )


def _check_range(schedule: IslMap, place: int, name: str, most: int) -> None:
    import islpy as isl

    inside = schedule.lower_bound_val(isl.dim_type.out, place, isl.Val(0))
    inside = inside.upper_bound_val(isl.dim_type.out, place, isl.Val(most - 1))
    outside = schedule.subtract(inside)
    if not outside.is_empty():
        raise UserError(
            f"iteration {_sample(outside.domain())} has a {name} that does not exist",
            f"a {name} is 0 to {most - 1}",
        )


def _check_once(schedule: IslMap) -> None:
    if not schedule.is_single_valued():
        twice = schedule.subtract(schedule.lexmin()).domain()
        raise UserError(
            f"iteration {_sample(twice)} is done more than once", "every iteration is done once"
        )


def _check_element(
    schedule: IslMap, without: tuple[int, int] | None, access: IslMap, name: str, elements: str
) -> None:
    """That the schedule's result, some dimensions (first, count) left out, determines it."""
    import islpy as isl

    where = schedule
    if without is not None:
        where = schedule.project_out(isl.dim_type.out, *without)
    element = where.reverse().apply_range(access)
    if not element.is_single_valued():
        several = element.subtract(element.lexmin()).domain()
        labels = {"row": "macro, row", "column": "macro, column", "cell": "macro, row, column"}
        raise UserError(
            f"one {name} has several {elements} in one step, at [time .., {labels[name]}] = "
            f"{_sample(several)}",
            f"a {name} has one of the {elements} in each step",
        )


def _check_own_cell(schedule: IslMap) -> None:
    if not schedule.is_injective():
        back = schedule.reverse()
        shared = back.subtract(back.lexmin()).domain()
        raise UserError(
            f"several iterations share the cell [time .., macro, row, column] = {_sample(shared)}",
            "a cell does one multiply-accumulate in each step",
        )


def _sample(some: IslSet) -> str:
    """One element of a set, without braces."""
    return str(some.sample_point()).strip("{} ")
