"""What every example prints at the end: the machine's report, and the check."""

from cim_opt.frontend import Execution


def show(run: Execution) -> int:
    """Prints both and returns the exit code: 1 when a result differs from the reference."""
    print(run.report.to_text())
    print(run.check.to_text())
    return 0 if run.check.ok else 1
