"""How long a command computes, whatever else the machine does meanwhile."""

import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path


def cpu_seconds(command: Sequence[str | Path], tries: int = 3) -> float:
    """Seconds of processor time of a command, user and system: the least of some tries.

    On an idle machine a start takes as long by the clock, since it does nothing but compute.
    """
    return min(_once(command) for _ in range(tries))


def _once(command: Sequence[str | Path]) -> float:
    before = _children()
    subprocess.run(command, capture_output=True, check=True)
    return _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
