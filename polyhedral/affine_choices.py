"""What an affine schedule may do with one axis: splits into levels, and bases of these levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import gcd, prod

from cim_opt.polyhedral.affine_basis import Rules, box, component_bases, coordinates
from cim_opt.polyhedral.affine_part import (
    Part,
    finite_patterns,
    measure,
    periodic_patterns,
    takes_blocks,
)
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.nest import Factors, nest_of
from cim_opt.polyhedral.pretile import exact_splits, uneven_splits


def output_splits(axis: Axis, columns: int, rules: Rules) -> tuple[Factors, ...]:
    """Levels to try for the outputs of an axis."""
    size = axis.outputs
    exact = exact_splits(size, rules.levels) if rules.pretile else ((size,),)
    if not rules.pretile or not rules.uneven:
        return exact
    found = [levels for levels in exact if len(levels) == 1 or min(levels) <= columns]
    found += uneven_splits(size, columns)
    # Outputs that dilation keeps apart share inputs only with those of their own residue.
    phases = axis.dilation // gcd(axis.stride, axis.dilation)
    if 1 < phases < size:
        among = -(-size // phases)
        found.append((among, phases))
        found += [(*levels, phases) for levels in uneven_splits(among, columns)]
    return tuple(dict.fromkeys(found))


def tap_splits(axis: Axis, columns: int, rules: Rules) -> tuple[Factors, ...]:
    """Levels to try for the taps of an axis."""
    size = axis.taps
    exact = exact_splits(size, rules.levels) if rules.pretile else ((size,),)
    if not rules.pretile or not rules.uneven:
        return exact
    found = [levels for levels in exact if len(levels) == 1 or min(levels) <= columns]
    found += uneven_splits(size, columns)
    # Of the splits into few long chunks, the shortest for each number of chunks.
    long = {split[0]: split for split in reversed(uneven_splits(size, size))}
    found += [split for chunks, split in sorted(long.items()) if chunks <= columns]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=512)
def parts_of(axis: Axis, columns: int, rules: Rules) -> tuple[Part, ...]:
    """Parts for an axis, simplest first; of parts that cannot differ in score, the first.

    Unless steps are counted on boxes, parts with more columns than a macro are left out: splits
    into blocks that fit are among the others.
    """
    found = [
        part
        for outputs in output_splits(axis, columns, rules)
        for taps in tap_splits(axis, columns, rules)
        for part in _parts(axis, (outputs, taps), rules)
    ]
    return _reduced(found, columns, rules)


@lru_cache(maxsize=512)
def parts_with(
    axis: Axis, factors: tuple[Factors, Factors], columns: int, rules: Rules
) -> tuple[Part, ...]:
    """The same with these levels of outputs and taps. Raises ValueError when they do not fit."""
    return _reduced(list(_parts(axis, factors, rules)), columns, rules)


def _parts(axis: Axis, factors: tuple[Factors, Factors], rules: Rules) -> Iterator[Part]:
    plain = nest_of(MacKernel(1, 1, 1, (axis,)))
    split = plain.split(((1,), (1,), *factors))
    for pick in product(*component_bases(split, rules)):
        basis = tuple(type(v)(v.entries[2:], v.role) for group in pick for v in group)
        yield Part(plain.extents[2:], factors, basis)


def _reduced(found: Sequence[Part], columns: int, rules: Rules) -> tuple[Part, ...]:
    if rules.boxes:
        return tuple(found)
    fitting = [part for part in found if _box_columns(part) <= columns]
    if rules.blocks:
        fitting = [part for part in fitting if takes_blocks(part)]
    return tuple(_distinct(fitting))


def _distinct(parts: Sequence[Part]) -> Iterator[Part]:
    seen: set[tuple[object, ...]] = set()
    for part in sorted(parts, key=complexity):
        key = (
            measure(part).rows,
            measure(part).columns,
            *((p.cells.tobytes(), p.count) for p in finite_patterns(part)),
            *((p.cells.tobytes(), p.count) for p in periodic_patterns(part)),
        )
        if key not in seen:
            seen.add(key)
            yield part


def _box_columns(part: Part) -> int:
    """Columns of a part, from the sizes of its levels alone: partial blocks count as whole."""
    sizes = [size for factors in part.factors for size in factors]
    matrix = coordinates(tuple(vector.entries for vector in part.basis))
    pairs = zip(matrix, part.basis, strict=True)
    return prod(box(row, sizes)[1] for row, vector in pairs if vector.role == "column")


def complexity(part: Part) -> tuple[int, int, int, int]:
    """Levels, skewed vectors, rows and columns: what makes a part harder to carry out."""
    found = measure(part)
    return (
        sum(map(len, part.factors)),
        sum(vector.skewed for vector in part.basis),
        found.rows,
        found.columns,
    )
