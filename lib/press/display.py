"""What the press says while it works, in a terminal and in a log file."""
from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

STYLES = {"waiting": "dim", "running": "cyan", "done": "green", "cached": "green dim", "failed": "bold red"}


class Progress:
    """A live table in a terminal (notebook, state, seconds); one line per event elsewhere."""

    def __init__(self, stream=None):
        self.console = Console(file=stream or sys.stdout, highlight=False, soft_wrap=True)
        self.states: dict[str, tuple[str, float]] = {}
        self.live = Live(get_renderable=self._table, console=self.console, refresh_per_second=2, transient=True)

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_) -> None:
        self.live.stop()

    def __call__(self, name: str, state: str, seconds: float | None = None) -> None:
        self.states[name] = (state, time.monotonic() if seconds is None else seconds)
        if state in ("done", "failed"):
            self.say(f"{name}: {state} in {seconds:.1f} s")
        elif state == "running" and not self.console.is_terminal:
            self.say(f"{name}: running")

    def say(self, text: str) -> None:
        self.console.print(Text(text))

    def _table(self) -> Table | str:
        if not any(state in ("running", "waiting") for state, _ in self.states.values()):
            return ""
        table = Table("notebook", "state", "seconds", box=None, pad_edge=False)
        for name, (state, value) in self.states.items():
            if state in ("running", "waiting"):
                seconds = f"{time.monotonic() - value:.0f}" if state == "running" else ""
                table.add_row(name, Text(state, STYLES[state]), seconds)
        return table
