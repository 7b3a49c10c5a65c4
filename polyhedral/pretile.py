"""Pre-tiling: the levels that loops are split into before a schedule is chosen.

    exact_splits(8, 2)            # (8,), (2, 4), (4, 2)
    uneven_splits(14, 8)          # (7, 2), (5, 3), (4, 4), .. : the last block may be partial
    pretilings(nest_of(kernel))   # one choice a loop; of choices that only exchange axes, one

Which axes may be exchanged is found from the access matrices: a permutation of loops of equal size
under which the rows of all three matrices stay the same sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product
from math import comb, prod

from cim_opt.polyhedral.nest import Factors, Nest
from cim_opt.polyhedral.reuse import Matrix

Block = tuple[int, ...]
"""Loops that some operand indexes by one sum, such as (o0, k0)."""


# -- levels of one loop ------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def exact_splits(size: int, levels: int = 2) -> tuple[Factors, ...]:
    """All ways to write `size` as a product of at most `levels` factors above 1, outermost first.

    The whole loop comes first; a loop of one iteration has only that.
    """
    found = [(size,)]
    if levels > 1:
        for outer in range(2, size):
            if size % outer == 0:
                found += [(outer, *rest) for rest in exact_splits(size // outer, levels - 1)]
    return tuple(found)


def uneven_splits(size: int, most: int) -> tuple[Factors, ...]:
    """Two levels (ceil(size / inner), inner) for every inner of 2 to `most` that splits the loop.

    Exact ones are among them. Where several inner sizes give the same number of blocks all stay:
    the smaller ones need fewer columns.
    """
    return tuple((-(-size // inner), inner) for inner in range(2, min(most, size - 1) + 1))


# -- exchangeable axes ---------------------------------------------------------------------------


def blocks(nest: Nest) -> tuple[Block, ...]:
    """The loops in groups that share an index of some operand, in loop order."""
    owner = list(range(len(nest.names)))
    for row in (*nest.input, *nest.output, *nest.weight):
        used = sorted({nest.sources[i] for i, value in enumerate(row) if value})
        merged = {owner[i] for i in used}
        owner = [min(merged) if o in merged else o for o in owner]
    return tuple(
        tuple(i for i, o in enumerate(owner) if o == first) for first in sorted(set(owner))
    )


def symmetries(nest: Nest) -> tuple[tuple[Block, ...], ...]:
    """Classes of blocks that may be exchanged, each block with its loops in matching order.

    Exchanging two blocks of a class leaves sizes and accesses as they are. A block that is like no
    other is a class of its own. The nest is one that is not split.
    """
    classes: list[list[Block]] = []
    for block in blocks(nest):
        for known in classes:
            match = _match(nest, known[0], block)
            if match is not None:
                known.append(match)
                break
        else:
            classes.append([block])
    return tuple(map(tuple, classes))


def _match(nest: Nest, first: Block, second: Block) -> Block | None:
    """The order of `second` in which exchanging it with `first` changes nothing, None if none."""
    if len(first) != len(second):
        return None
    for order in permutations(second):
        if all(nest.extents[a] == nest.extents[b] for a, b in zip(first, order, strict=True)):
            swap = dict(zip(first, order, strict=True)) | dict(zip(order, first, strict=True))
            if all(_invariant(m, swap) for m in (nest.input, nest.output, nest.weight)):
                return order
    return None


def _invariant(matrix: Matrix, swap: dict[int, int]) -> bool:
    exchanged = [tuple(row[swap.get(i, i)] for i in range(len(row))) for row in matrix]
    return sorted(exchanged) == sorted(matrix)


# -- choices for all loops -----------------------------------------------------------------------

Options = Callable[[str, int], Sequence[Factors]]
"""Levels to try for a loop, given its name and size."""


def halves(name: str, size: int) -> Sequence[Factors]:
    """Exact splits of any loop into at most two levels."""
    return exact_splits(size, 2)


def pretilings(
    nest: Nest, options: Options = halves, *, symmetric: bool = True
) -> Iterator[tuple[Factors, ...]]:
    """The levels of every loop, in all ways that differ by more than an exchange of axes.

    `options` gives the levels to try for a loop: exact splits into two by default. Without
    `symmetric` all ways are given.
    """
    classes = symmetries(nest) if symmetric else tuple((block,) for block in blocks(nest))
    choices = [_class_choices(nest, same, options) for same in classes]
    for pick in product(*choices):
        levels: dict[int, Factors] = {}
        for part in pick:
            levels |= part
        yield tuple(levels[i] for i in range(len(nest.names)))


def count_pretilings(nest: Nest, options: Options = halves) -> int:
    """How many `pretilings` there are, without making them."""
    total = 1
    for same in symmetries(nest):
        ways = prod(len(options(nest.names[i], nest.extents[i])) for i in same[0])
        total *= comb(ways + len(same) - 1, len(same))
    return total


def _class_choices(nest: Nest, same: Sequence[Block], options: Options) -> list[dict[int, Factors]]:
    """Levels of the loops of a class of blocks: multisets of what one block may have."""
    first = [options(nest.names[i], nest.extents[i]) for i in same[0]]
    choices: list[dict[int, Factors]] = []
    for picks in combinations_with_replacement(tuple(product(*first)), len(same)):
        pairs = zip(same, picks, strict=True)
        choices.append({i: f for block, pick in pairs for i, f in zip(block, pick, strict=True)})
    return choices
