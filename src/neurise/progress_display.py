"""Where progress is redrawn in place: a bar of rich's in a terminal or a notebook, a plain line where rich is missing.

No thread runs and the cursor is never hidden, so that whatever ends the program, Ctrl-C or a kill, leaves the terminal as it was.
"""

from __future__ import annotations

import io
import shutil
from typing import Any, Protocol, TextIO, cast

BAR, NARROW = 20, 72
"""Columns of a bar, and of a terminal below which the bar has half of them."""
WIDTH = 120
"""Columns of the line in a notebook."""


class Display(Protocol):
    """One line that is drawn again and again."""

    @property
    def narrow(self) -> bool:
        """Whether there is little room."""

    def draw(self, fraction: float, line: str) -> None:
        """Show how much is done, and a line of text."""

    def end(self) -> None:
        """Leave what was drawn, so that what comes next begins on a line of its own."""


def found(stream: TextIO, *, notebook: bool) -> Display | None:
    """Return what draws: in a terminal without rich a plain line, in a notebook without it nothing."""
    try:
        return NotebookBar() if notebook else TerminalBar(stream)
    except ImportError:  # as on a bare machine
        return None if notebook else PlainLine(stream)


class PlainLine:
    """A line of text, without a bar."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def narrow(self) -> bool:
        """Whether the terminal is, now."""
        return shutil.get_terminal_size().columns < NARROW

    def draw(self, fraction: float, line: str) -> None:
        """Write over the line before."""
        self.stream.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}")  # a line that wraps would stay
        self.stream.flush()

    def end(self) -> None:
        """End the line."""
        self.stream.write("\n")
        self.stream.flush()


class TerminalBar:
    """A bar of rich's, as wide as the terminal has room for; colours follow NO_COLOR and the terminal."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self.console = Console(file=stream, force_terminal=True, force_jupyter=False)
        self.console.show_cursor = lambda show=True: False  # type: ignore[method-assign]
        self.bar: Any = None

    @property
    def narrow(self) -> bool:
        """Whether the terminal is, now."""
        return self.console.width < NARROW

    def draw(self, fraction: float, line: str) -> None:
        """Draw over the line before."""
        begins, width = self.bar is None, BAR // 2 if self.narrow else BAR
        self.bar = rich_bar(self.console, width) if begins else self.bar
        text = cut(line, self.console.width - width - 1, self.console.encoding)
        self.bar.update(self.bar.task_ids[0], completed=fraction, description=text)
        if begins:
            self.bar.start()
        else:
            self.bar.refresh()

    def end(self) -> None:
        """End the line; another drawing begins a new one."""
        if self.bar is not None:
            bar, self.bar = self.bar, None
            bar.stop()


class NotebookBar:
    """A bar of rich's below the cell that runs, redrawn where it stands."""

    def __init__(self) -> None:
        from IPython.display import display
        from rich.console import Console

        self.show, self.handle = display, cast(Any, None)  # the handle of what is shown
        # Rich would show a new line for every drawing, so that it draws for nobody and its HTML is shown.
        self.console = Console(file=io.StringIO(), record=True, force_terminal=True, force_jupyter=False, width=WIDTH)
        self.bar, self.narrow = rich_bar(self.console, BAR), False

    def draw(self, fraction: float, line: str) -> None:
        """Replace what the cell shows."""
        self.bar.update(self.bar.task_ids[0], completed=fraction, description=line)
        self.console.print(self.bar.get_renderable())
        page = '<pre style="margin: 0; white-space: pre; background: none; color: inherit">{code}</pre>'
        html = self.console.export_html(inline_styles=True, code_format=page)
        shown = {"text/plain": line, "text/html": html}
        if self.handle is None:
            self.handle = self.show(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    def end(self) -> None:
        """Leave the bar; another drawing begins a new one."""
        self.handle = None


def rich_bar(console: Any, width: int) -> Any:
    """Make a bar of so many columns with one task, and its text behind it."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(bar_width=width), TextColumn("{task.description}", markup=False)
    made = Progress(*columns, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    made.add_task("", total=1.0)
    return made


def cut(line: str, room: int, encoding: str) -> str:
    """Cut a text that is too long for a line; rich would take the room from the bar."""
    from rich.text import Text

    text = Text(line)
    text.truncate(max(1, room), overflow="ellipsis" if encoding.startswith("utf") else "crop")
    return text.plain
