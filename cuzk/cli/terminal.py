"""Manners towards terminals and scripts: any encoding, one JSON document also of a failure, signals that unwind."""

from __future__ import annotations

import argparse
import codecs
import json
import os
import signal
import sys
import unicodedata
from types import FrameType, TracebackType
from typing import IO, Any, ClassVar, NoReturn, Self

from cuzk.errors import CuzkError, FormatError, ScenarioError

_PLAIN = {"…": "...", "·": "*", "−": "-", "–": "-", "—": "-", "→": "->", "↔": "<->", "≥": ">=", "≤": "<=", "≠": "!=", "×": "x",
          "Σ": "sum", "±": "+-", "∘": "o", "‖": "||", "├": "|", "└": "`", "│": "|", "─": "-", "█": "#"}  # fmt: skip


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """The codec error handler `cuzk-plain`: what a terminal cannot show in ASCII that reads alike, or as an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    shown = []
    for character in error.object[error.start : error.end]:
        alike = _PLAIN.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
        shown.append(alike or character.encode("ascii", "backslashreplace").decode())
    return "".join(shown), error.end


codecs.register_error("cuzk-plain", _plainly)


def speak_any_encoding() -> None:
    """Let stdout and stderr print every text, whatever the locale's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="cuzk-plain")


class Parser(argparse.ArgumentParser):
    """argparse's, that also keeps what it complained about last."""

    complaint: ClassVar[str | None] = None

    def error(self, message: str) -> NoReturn:
        Parser.complaint = message
        super().error(message)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: unwinds as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        self.name, self.exit_code = signal.Signals(number).name, 128 + number
        super().__init__(self.name)

    @staticmethod
    def arm() -> None:
        """Have both signals raise this, in this process and not in those that it forks."""
        taken = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) == signal.SIG_DFL]  # under nohup: ignored
        for number in taken:
            signal.signal(number, Terminated.handler)
        os.register_at_fork(after_in_child=lambda: [signal.signal(number, signal.SIG_DFL) for number in taken])

    @staticmethod
    def handler(number: int, frame: FrameType | None) -> NoReturn:
        """For `signal.signal`. The same signal again ends the process at once."""
        signal.signal(number, signal.SIG_DFL)
        raise Terminated(number)


class Watched:
    """Stands in for stdout and knows whether anything was printed. Use as a context manager."""

    def __init__(self) -> None:
        self._stdout: IO[str] | None = sys.stdout
        self.printed = False

    def __enter__(self) -> Self:
        sys.stdout = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        sys.stdout = self._stdout

    def write(self, text: str) -> int:
        self.printed = self.printed or bool(text)
        return 0 if self._stdout is None else self._stdout.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)

    def fail(self, code: int, error: BaseException) -> None:
        """Print the document of a failure, unless the verb has printed one."""
        if not self.printed and self._stdout is not None:
            print(json.dumps(failure(code, error), indent=2), file=self._stdout)
            self._stdout.flush()


def failure(code: int, error: BaseException) -> dict[str, Any]:
    """A failure as a JSON document."""
    told: dict[str, Any] = {"kind": type(error).__name__, "exit_code": code, "message": str(error) or type(error).__name__}
    if isinstance(error, FormatError):
        told |= {"file": error.path, "section": error.section, "offset": error.offset, "message": error.message}
    elif isinstance(error, ScenarioError):
        told["problems"] = list(error.problems)
    elif isinstance(error, OSError):
        told |= {"file": error.filename, "message": error.strerror}
    elif not isinstance(error, CuzkError | MemoryError):
        told["message"] = f"internal fault: {told['message']}"
    return {"schema_version": 1, "error": told}
