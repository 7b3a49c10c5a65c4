"""docs/support.md says what the lowerings do today."""

from __future__ import annotations

import pytest
from support_table import HEAD, PAGE, TARGETS, operations_table, refusals_table
from upmem_cells import OPERATIONS

from cim_opt.dialects.pattern import PATTERN_OPS


def test_the_table_has_every_operation() -> None:
    assert {f"pattern.{name}" for name in OPERATIONS} == {op.name for op in PATTERN_OPS}


@pytest.mark.parametrize("target", TARGETS)
def test_operations_are_as_the_page_says(target: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    assert operations_table(target) in text


def test_refusals_are_as_the_page_says() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(refusals_table())
