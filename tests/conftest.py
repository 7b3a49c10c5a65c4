"""Collects `tests/filecheck/**/*.mlir` as tests; their `// RUN:` lines run in this process."""

# pytest leaves the keyword arguments of `from_parent` untyped.
# pyright: reportUnknownMemberType=false

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_lines import RunLineFailure, run_file

# Set by a developer, it would turn the errors that tests expect into tracebacks.
os.environ.pop("CIM_OPT_DEBUG", None)

FILECHECK = Path(__file__).parent / "filecheck"


class RunLineItem(pytest.Item):
    """All RUN lines of one file."""

    def runtest(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                run_file(self.path, Path(scratch))
            except RunLineFailure as failure:
                pytest.fail(str(failure), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"RUN lines of {self.path.name}"


class RunLineFile(pytest.File):
    """A test file in MLIR text."""

    def collect(self) -> Iterator[pytest.Item]:
        yield RunLineItem.from_parent(self, name="RUN")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".mlir" and file_path.is_relative_to(FILECHECK):
        return RunLineFile.from_parent(parent, path=file_path)
    return None
