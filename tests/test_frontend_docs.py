"""The examples of docs/frontend.md run and print what the page says."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "frontend.md"
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)


def test_examples() -> None:
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) >= 8
    scope: dict[str, Any] = {}
    for code, expected in examples:
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(code, str(PAGE), "exec"), scope)
        assert out.getvalue().rstrip() == expected.rstrip(), code


def test_every_public_name_is_on_the_page() -> None:
    import cim_opt.frontend

    text = PAGE.read_text()
    hidden = {"Execution", "Scalar", "Slice", "Vector"}  # made by the others
    for name in set(cim_opt.frontend.__all__) - hidden:
        assert name in text, name
