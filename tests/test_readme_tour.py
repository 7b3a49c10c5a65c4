"""What README.md shows of programs and their output is what there is."""

import re

import pytest
from test_readme import README, ROOT, run


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def without_numbers(text: str) -> list[str]:
    """The words of each line: figures, and the blanks before them, change with the model."""
    return [re.sub(r"\s*-?\d[\d,.]*(%| [mu]?s\b| B\b| [KMG]iB\b)?", " #", x) for x in lines(text)]


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_the_program_is_the_example() -> None:
    (program,) = blocks("mlir")
    assert program in (ROOT / "examples" / "dot_product.mlir").read_text()


def test_output_of_both_machines_is_shown() -> None:
    shown = " ".join(blocks("text"))
    assert "on upmem-2560" in shown
    assert "on simdram-1" in shown


@pytest.mark.parametrize("shown", blocks("text"))
def test_the_output_is_what_the_command_before_it_prints(shown: str) -> None:
    command = README.read_text().split(shown)[0].rpartition("```sh\n")[2]
    result = run(command.partition("\n")[0], ROOT)
    assert result.returncode == 0, result.stderr
    assert without_numbers(result.stdout) == without_numbers(shown)


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_page_is_linked() -> None:
    text = README.read_text()
    assert [p.name for p in (ROOT / "docs").glob("*.md") if f"docs/{p.name}" not in text] == []
