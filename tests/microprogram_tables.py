"""The table of counts in docs/microprograms.md: `python tests/microprogram_tables.py` prints it."""

from cim_opt.microprograms.library import OPERATIONS, library
from cim_opt.microprograms.published import CORRECTED, PUBLISHED

WIDTHS = (8, 16, 32, 64)
HEADER = (
    "| operation | 8 bits | 16 | 32 | 64 |",
    "| --- | --- | --- | --- | --- |",
)
OPTIONS: dict[str, dict[str, int]] = {
    "fill": {"value": 1},
    "shl_const": {"amount": 1},
    "shr_const": {"amount": 1},
    "mul_const": {"value": 11},
    "mac_const": {"value": 11},
}


def _cell(operation: str, width: int) -> str:
    chosen = OPTIONS.get(operation, {})
    ours = [
        str(library(x).counts(operation, width, **chosen).total) for x in ("simdram", "cim-opt")
    ]
    formula = None if operation == "mul" else PUBLISHED.get(operation)
    published = str(formula(width).total) if formula else "-"
    return " / ".join([published, *ours])


def _full_product(width: int) -> str:
    if 2 * width > 64:
        return f"{PUBLISHED['mul'](width).total} / - / -"
    sizes = {"a_width": width, "b_width": width}
    ours = [str(library(x).counts("mul", 2 * width, **sizes).total) for x in ("simdram", "cim-opt")]
    return " / ".join([str(PUBLISHED["mul"](width).total), *ours])


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def counts_table() -> list[str]:
    """The lines of the table."""
    lines: list[str] = list(HEADER)
    for operation in OPERATIONS:
        name = f"`{operation}`"
        if operation in OPTIONS:
            ((option, value),) = OPTIONS[operation].items()
            name += f" {option}={value}"
        if operation in CORRECTED:
            name += " *"
        lines.append(_row(name, [_cell(operation, width) for width in WIDTHS]))
        if operation == "mul":
            lines.append(_row("`mul`, full product", [_full_product(width) for width in WIDTHS]))
    return lines


if __name__ == "__main__":
    print("\n".join(counts_table()))
