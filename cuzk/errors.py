"""Every error that cuzk reports, with its exit code.

    CuzkError                        1  internal fault (a bug in cuzk)
    ├── InputError                   2  bad scenario, key, witness or other input; carries file and position
    │   ├── ScenarioError            2  YAML: all faults of a file at once, `file:line:col: path: message`
    │   └── FormatError              2  binary file: section and byte offset
    ├── OutOfMemoryError             3  predicted or real
    ├── DeviceLost                   1  a GPU that this process cannot use any more
    ├── HardwareMissing              5  no GPU, no driver, unsupported device
    ├── ProofInvalid                 6  a proof or a witness that does not verify
    └── Interrupted                130  Ctrl-C

Exit code 4 (measured disagrees with predicted) is a verdict that a verb returns with its document, not an error.

The command line prints `str(error)` on stderr and exits with `error.exit_code`; a traceback only with `--debug`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any


class CuzkError(Exception):
    """Root of the tree. Raised itself only for internal faults."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors go from one process to another as they are, whatever arguments they were made with."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[CuzkError], args: tuple[Any, ...], fields: dict[str, Any]) -> CuzkError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class InputError(CuzkError):
    """The user's input is wrong. `str()` begins with the file (and position) where known."""

    exit_code = 2


class ScenarioError(InputError):
    """One or more faults in a YAML document. `problems` are lines `file:line:col: path: message`."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class FormatError(InputError):
    """A binary or JSON file that is not what it must be.

    Printed as `file: section S (name) at byte N: message`; parts that are unknown are left out.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        message: str,
        *,
        offset: int | None = None,
        section: str | int | None = None,
    ) -> None:
        self.path, self.message, self.offset, self.section = fspath(path), message, offset, section
        where = "" if section is None else f" section {section}"
        where += "" if offset is None else f" at byte {offset}"
        super().__init__(f"{self.path}:{where + ':' if where else ''} {message}")


class OutOfMemoryError(CuzkError):
    """Memory ran out (predicted or real)."""

    exit_code = 3


class HardwareMissing(CuzkError):
    """The machine lacks what was asked for (no GPU, no driver, too old a device)."""

    exit_code = 5


class DeviceLost(CuzkError):
    """A GPU can do no more work in this process (a sticky CUDA error): a fresh process may."""

    def __init__(self, gpu: int, reason: str) -> None:
        self.gpu, self.reason = gpu, reason
        super().__init__(f"device {gpu} is lost: {reason}")


class ProofInvalid(CuzkError):
    """A proof does not verify, or a witness does not satisfy its circuit."""

    exit_code = 6


class Interrupted(CuzkError):
    """The user pressed Ctrl-C."""

    exit_code = 130


def describe(error: BaseException) -> str:
    """One line for a person."""
    text = str(error) or type(error).__name__
    return text if isinstance(error, (CuzkError, MemoryError)) else f"{type(error).__name__}: {text}"
