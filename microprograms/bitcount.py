"""The number of ones in a word: full adders column by column, carries to the next column."""

from cim_opt.microprograms.frame import finish, rows, unsupported
from cim_opt.microprograms.model import C0, Operand, RowProgram
from cim_opt.microprograms.steps import Rows, Steps


def bitcount(s: Steps, width: int, *, out_width: int | None = None) -> RowProgram:
    """out = how many bits of a are 1, in as many bits as it needs, or in `out_width`."""
    needed = width.bit_length()
    if out_width is not None and out_width < needed:
        raise unsupported("bitcount", f"a result of {out_width} bits", f"give it {needed} or more")
    a = Operand("a", width)
    out = Operand("out", needed if out_width is None else out_width)
    scratch = Operand("scratch", width // 2 if width > 3 else 0)
    targets = rows(out)
    column: Rows = rows(a)
    for place, target in enumerate(targets):
        if len(column) < 2:
            break
        adders = len(column) // 2
        # A column of one adder sends one carry, which is the next digit.
        last = [targets[place + 1]]
        carries = last if adders == 1 else rows(scratch)[:adders]
        s.add_column(target, carries, column)
        column = carries
    if width == 1:
        s.copy(targets[:1], column)
    s.copy(targets[needed:], [C0] * len(targets[needed:]))
    return finish(s, "bitcount", width, [a], [out], [scratch])
