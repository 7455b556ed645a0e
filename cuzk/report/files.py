"""Files are written whole or not at all: through a temporary name, then renamed."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text. Raises OSError about `path`; then the old file, if any, is as it was.

    A device or a pipe (`/dev/stdout`) is written to as it is: a rename would put a file in its place.
    """
    target = usable(path)
    if target.exists() and not target.is_file():
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        return
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        os.unlink(temporary)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        os.unlink(temporary)
        raise


def usable(path: str | Path) -> Path:
    """`path`, if a file could have that name and its directory is there. Raises OSError: before the work, not behind it."""
    target = Path(path)
    if not str(path) or target.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path) or "''")
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, f"no such directory: {target.parent}", os.fspath(path))
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
