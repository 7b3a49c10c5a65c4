"""isl objects from text, parsed once and printed canonically."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import islpy as isl

# isl would print its own message to stderr for text that it cannot read.
_CONTEXT = isl.DEFAULT_CONTEXT


@lru_cache(maxsize=4096)
def parse_set(text: str) -> isl.Set:
    """The set that isl text describes. Raises ValueError when it is not one."""
    try:
        return isl.Set.read_from_str(_CONTEXT, text)
    except isl.Error as error:
        raise ValueError(f"not a set of isl: {text}") from error


@lru_cache(maxsize=4096)
def parse_map(text: str) -> isl.Map:
    """The map that isl text describes. Raises ValueError when it is not one."""
    try:
        return isl.Map.read_from_str(_CONTEXT, text)
    except isl.Error as error:
        raise ValueError(f"not a map of isl: {text}") from error


def map_text(some: isl.Map) -> str:
    """The map as text: with floor and mod where it is a function with divisions, else as isl does.

    isl alone would write results as names, and equations for them.
    """
    text = str(some)
    if " : " not in text or not some.is_single_valued():
        return text
    function = isl.PwMultiAff.from_map(some)
    if function.n_piece() != 1 or not _divides(function):
        return text
    return str(function).replace("[(", "[").replace("), (", ", ").replace(")]", "]")


def _divides(function: isl.PwMultiAff) -> bool:
    """Whether a result of the only piece has a division."""
    pieces: list[isl.MultiAff] = []
    function.foreach_piece(lambda _, piece: pieces.append(piece))
    results = range(pieces[0].dim(isl.dim_type.out))
    return any(pieces[0].get_aff(i).dim(isl.dim_type.div) for i in results)


def result_name(some: isl.Map) -> str | None:
    """The name before the results of a map, None without."""
    named = some.has_tuple_name(isl.dim_type.out)
    return some.get_tuple_name(isl.dim_type.out) if named else None


def results_of(some: isl.Map) -> int:
    """How many results a map has."""
    return some.dim(isl.dim_type.out)


def equal_on(domain: str, first: str, second: str) -> bool:
    """Whether two maps do the same with every point of a domain."""
    points = parse_set(domain)
    one, other = (parse_map(text).intersect_domain(points) for text in (first, second))
    return one.get_space().is_equal(other.get_space()) and one.is_equal(other)


def named_as(some: isl.Map, domain: isl.Set) -> isl.Map:
    """The map with its arguments named as the coordinates of a set."""
    for place in range(domain.dim(isl.dim_type.set)):
        name = domain.get_dim_name(isl.dim_type.set, place)
        if name is not None:
            some = some.set_dim_name(isl.dim_type.in_, place, name)
    return some


def composed(first: isl.Map, second: isl.Map) -> isl.Map:
    """The map that applies `first`, then `second`. Raises ValueError when they do not meet."""
    if not first.range().get_space().is_equal(second.domain().get_space()):
        raise ValueError(f"{second} does not take what {first} gives")
    return first.apply_range(second).coalesce()


def box(extents: Sequence[int]) -> isl.Set:
    """Points p with 0 <= p[i] < extents[i]."""
    names = [f"i{index}" for index in range(len(extents))]
    bounds = [f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True)]
    condition = " and ".join(bounds) or "true"
    return parse_set(f"{{ [{', '.join(names)}] : {condition} }}")


def extents_of(domain: isl.Set) -> tuple[int, ...] | None:
    """The extents when the set is a box from 0, else None. An empty box has extents 0."""
    rank = domain.dim(isl.dim_type.set)
    if domain.is_empty():
        return (0,) * rank
    extents: list[int] = []
    for position in range(rank):
        high = domain.dim_max_val(position)
        if not high.is_int():
            return None
        extents.append(high.to_python() + 1)
    if min(extents, default=1) < 1 or not domain.is_equal(box(extents)):
        return None
    return tuple(extents)


def affine_rows(access: isl.Map) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]] | None:
    """Coefficients and constants of a map that is affine with integer coefficients, else None.

    Returns (matrix, offsets): output i is sum over inputs j of matrix[i][j] * input j + offsets[i].
    """
    if not access.is_single_valued():
        return None
    pieces: list[isl.MultiAff] = []
    isl.PwMultiAff.from_map(access).foreach_piece(lambda _, piece: pieces.append(piece))
    if len(pieces) != 1:
        return None
    function = pieces[0]
    inputs = function.dim(isl.dim_type.in_)
    matrix: list[tuple[int, ...]] = []
    offsets: list[int] = []
    for position in range(function.dim(isl.dim_type.out)):
        row = function.get_aff(position)
        if row.dim(isl.dim_type.div) or not row.get_denominator_val().is_one():
            return None
        coefficients = (
            row.get_coefficient_val(isl.dim_type.in_, index).to_python() for index in range(inputs)
        )
        matrix.append(tuple(coefficients))
        offsets.append(row.get_constant_val().to_python())
    return tuple(matrix), tuple(offsets)


def fits(access: isl.Map, domain: isl.Set, indices: int) -> bool:
    """Whether the map goes from the domain's space to points of `indices` coordinates."""
    return (
        access.domain().get_space().is_equal(domain.get_space())
        and access.dim(isl.dim_type.out) == indices
    )
