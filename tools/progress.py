"""What a long run is doing, on stderr, when that is a terminal."""

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

WIDTH = 78
FIRST_SHOWN_AFTER = 0.5
INTERVAL = 0.5


class Progress:
    """One line that says the step and how many seconds the run has taken.

    Nothing is shown before `FIRST_SHOWN_AFTER` seconds, so that short runs do not flicker.
    """

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._step = "starting"
        self._start = time.monotonic()
        self._stopped = threading.Event()
        self._shown = False

    def __call__(self, step: str) -> None:
        """Says what is being done from now on."""
        self._step = step

    def run(self) -> None:
        """Shows the line until `stop`; runs in a thread of its own."""
        wait = FIRST_SHOWN_AFTER
        while not self._stopped.wait(wait):
            wait = INTERVAL
            seconds = time.monotonic() - self._start
            line = f"{self._tool}: {self._step} ... {seconds:.0f} s"
            print(f"\r{line[:WIDTH]:{WIDTH}}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def stop(self) -> None:
        """Ends the thread's loop. Afterwards `clear` may take the line away."""
        self._stopped.set()

    def clear(self) -> None:
        """Takes the line away, if one was shown."""
        if self._shown:
            print(f"\r{'':{WIDTH}}\r", end="", file=sys.stderr, flush=True)


def print_line(text: str) -> None:
    """A line on stderr that stays, over the one that says the step, if that is shown."""
    start = f"\r{'':{WIDTH}}\r" if sys.stderr.isatty() else ""
    print(f"{start}{text}", file=sys.stderr, flush=True)


def _silent(step: str) -> None:
    """Where nobody watches."""


@contextmanager
def progress(tool: str) -> Generator[Callable[[str], None]]:
    """A function to call with each step; it shows them only when stderr is a terminal."""
    if not sys.stderr.isatty():
        yield _silent
        return
    line = Progress(tool)
    thread = threading.Thread(target=line.run, daemon=True)
    thread.start()
    try:
        yield line
    finally:
        line.stop()
        thread.join()
        line.clear()
