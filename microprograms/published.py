"""The counts of row commands that SIMDRAM published, as formulas of the width.

Counted on the released programs. Where those compute the right thing, the library `simdram` issues
exactly as many; `CORRECTED` names the others, whose programs in that library are our own.
Multiplication is the full product of two unsigned numbers of n bits.

Source: the programs in the release of MIMDRAM (CMU-SAFARI/MIMDRAM, SIMDRAM operations), each
compiled and counted.
"""

from collections.abc import Callable

from cim_opt.microprograms.model import Counts

Formula = Callable[[int], Counts]


def _bitcount(n: int) -> Counts:
    """For n = 2^k, and for n = 2^k - 1; the release has no others."""
    if n & (n - 1) == 0:
        return Counts(8 * n - 8, 0)
    if n & (n + 1) == 0:
        return Counts(8 * n - 8 * n.bit_length(), 0)
    raise ValueError(f"no published bitcount of {n} bits")


def _divide(n: int) -> Counts:
    total = -(-33 * n * n // 4) + 12 * n
    return Counts(total - n * (n + 1), n * (n + 1))


PUBLISHED: dict[str, Formula] = {
    "add": lambda n: Counts(6 * n + 1, 2 * n),
    "sub": lambda n: Counts(7 * n + 1, n),
    "mul": lambda n: Counts(8 * n * n - 2 * n - 1, 3 * n * n - 3 * n),
    "div_u": _divide,
    "eq": lambda n: Counts(2 * n + 3, 2 * n),
    "gt_u": lambda n: Counts(2 * n + 2, n),
    "ge_u": lambda n: Counts(2 * n + 2, n),
    "nonnegative": lambda n: Counts(2, 0),
    "positive": lambda n: Counts(5 * ((n - 1) // 2) + 4, 0),
    "select": lambda n: Counts(6 * n, n),
    "max_u": lambda n: Counts(8 * n + 2, 2 * n),
    "min_u": lambda n: Counts(8 * n + 2, 2 * n),
    "abs": lambda n: Counts(10 * n - 1, 0),
    "relu": lambda n: Counts(3 * n + (n - 1) % 2, 0),
    "reduce_and": lambda n: Counts(5 * (n // 2) + 2, 0),
    "reduce_or": lambda n: Counts(5 * (n // 2) + 2, 0),
    "reduce_xor": lambda n: Counts(6 * (n // 2) + 2, 0),
    "bitcount": _bitcount,
    "and": lambda n: Counts(4 * n, 0),
    "or": lambda n: Counts(4 * n, 0),
    "not": lambda n: Counts(2 * n, 0),
    "xor": lambda n: Counts(5 * n, 2 * n),
}
"""AAP and AP commands by operation, as named in library.py; nothing else is published."""

CORRECTED = {
    "select": "the release gives choice or b",
    "max_u": "the release contains its select",
    "min_u": "the release contains its select",
    "abs": "the release gives another number",
    "relu": "the release writes the zero of the sign into its input",
    "bitcount": "from five bits up the release counts one bit twice and the last never",
    "div_u": "division by zero gives 0 everywhere in cim-opt; the release differs",
}
"""Operations whose released program computes something else, and what."""
