"""Writing files so that each appears whole or not at all, and folders likewise.

A file or folder is made under a temporary name `.NAME.XXXXXXXX.cuzk-part`, which its writer keeps locked (flock), and
renamed when it is complete. A lock ends with its process, however that ends: what no one holds is a leftover, and the next
command that writes to the same folder sweeps it away. Devices, pipes and /dev/stdout are written through, symbolic links
followed: a rename would put a file in their place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from cuzk.errors import InputError

PathName = str | PathLike[str]
SUFFIX = ".cuzk-part"
_PART = re.compile(r"\.(?:.*\.)?[0-9a-f]{8}\.cuzk-part", re.DOTALL)
_COMMIT = ".commit" + SUFFIX
"""A folder inside one with other files: holds the new files of a set, all complete, while they are moved to their names."""
_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/(?:self|thread-self|[0-9]+)/fd)/([0-9]+)")
_swept: set[str] = set()
before_commit: Callable[[], None] | None = None
"""Raises where what is about to get its name was made from files that changed meanwhile."""


def _error(path: PathName, error: OSError) -> InputError:
    if error.errno == errno.EFAULT and before_commit is not None:
        before_commit()  # what was to be written was a part of a mapped file that is no more
    return InputError(f"{fspath(path)}: {error.strerror or error}")


def _descriptor(path: PathName) -> int | None:
    """The number N where a name leads to /dev/fd/N (as /dev/stdout does): an open file, not a place for one."""
    name = os.path.abspath(fspath(path))
    for _ in range(40):
        found = _DESCRIPTOR.fullmatch(name)
        if found:
            return int(found[1])
        if not os.path.islink(name):
            return None
        name = os.path.abspath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


def _is_stream(path: PathName) -> bool:
    """Whether a name is that of a pipe, a terminal or another character device, to be written through. Raises InputError for
    what can be neither written through nor replaced.
    """
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise InputError(f"{fspath(path)}: is a {'block device' if stat.S_ISBLK(mode) else 'socket'}: nothing is written there")
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _target(path: PathName) -> str:
    """The path at which a file is to appear: the name, or what a symbolic link leads to."""
    return os.path.realpath(fspath(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _part_name(base: str) -> str:
    return f".{base[:200]}.{secrets.token_hex(4)}{SUFFIX}"


def sweep(directory: PathName) -> None:
    """Remove what writers that are no more have left in a folder, and finish a set of files that one was moving in. Once a
    process for each folder; what cannot be removed stays.
    """
    place = os.path.realpath(fspath(directory))
    if place in _swept:
        return
    _swept.add(place)
    try:
        names = [name for name in os.listdir(place) if _PART.fullmatch(name) or name == _COMMIT]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            if name == _COMMIT:
                with _locked(place):
                    _finish_set(place)
            else:
                _remove_if_left(os.path.join(place, name))


def _remove_if_left(name: str) -> None:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(mode):
            shutil.rmtree(name)
        else:
            os.unlink(name)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Alone in a folder, among cuzk's processes, while a set of files is moved."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class Part:
    """A binary file, open for reading and writing, that gets its name when it is complete. End it by `commit` or `discard`."""

    def __init__(self, path: PathName) -> None:
        """Raises OSError, or InputError for a name that cannot be written to."""
        self.path = path
        self.file: BinaryIO | None = None
        self._name: str | None = None
        if _is_stream(path):
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 - lives until commit
            return
        self._target = _target(path)
        directory = os.path.dirname(self._target)
        sweep(directory)
        while self.file is None:
            self._name = os.path.join(directory, _part_name(os.path.basename(self._target)))
            handle = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(OSError):  # a file system without locks: nobody sweeps there
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:
                self.file = os.fdopen(handle, "w+b")
            else:
                os.close(handle)  # a sweep took it before it was locked

    def commit(self, *, private: bool = False) -> None:
        """Have it on the disk and under its name; a stream is written to here. Raises OSError, and then it is discarded."""
        assert self.file is not None
        try:
            if before_commit is not None:
                before_commit()
            self.file.flush()
            if self._name is None:
                _write_through(self.path, self.file)
            else:
                os.fsync(self.file.fileno())
                if not private:
                    os.fchmod(self.file.fileno(), 0o666 & ~_umask())
                os.replace(self._name, self._target)  # while the lock is held: no sweep may come between
                self._name = None
        finally:
            self.discard()

    def discard(self) -> None:
        """Close it, and leave nothing unless it was committed."""
        if self._name is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._name)
            self._name = None
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()


@contextlib.contextmanager
def atomic_write(path: PathName, *, private: bool = False) -> Iterator[BinaryIO]:
    """A binary file, open for reading and writing, that appears under `path` only when the block ends without an exception.

    Raises InputError about `path`; then what was there before is there still.
    """
    part = None
    try:
        part = Part(path)
        assert part.file is not None
        yield part.file
        part.commit(private=private)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _error(path, error) from error
    finally:
        if part is not None:
            part.discard()


def _write_through(path: PathName, spool: BinaryIO) -> None:
    spool.seek(0)
    number = _descriptor(path)
    if number is not None:
        if number == 1 and sys.stdout is not None:
            sys.stdout.flush()
        target = os.dup(number)
    else:
        target = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(target, "wb") as out:
        shutil.copyfileobj(spool, out, 1 << 20)


def write_text(path: PathName, text: str) -> None:
    """Write UTF-8 text as `atomic_write` does. Raises InputError."""
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def usable(path: PathName) -> Path:
    """`path`, if a file could have that name and its folder is there. Raises InputError: before the work, not behind it."""
    if not fspath(path):
        raise InputError("'': no name for an output file")
    if os.path.isdir(path):
        raise InputError(f"{fspath(path)}: is a directory")
    if not _is_stream(path):
        folder = os.path.dirname(_target(path))
        if not os.path.isdir(folder):
            raise InputError(f"{fspath(path)}: there is no directory {folder}")
        if not os.access(folder, os.W_OK):
            raise InputError(f"{fspath(path)}: {folder} is not writable")
    return Path(path)


def require_writable(*paths: PathName | None, inputs: Iterable[PathName | None] = ()) -> None:
    """Check before long work that files can be written there, and that none takes the place of another or of an input.

    Raises InputError.
    """
    taken = {os.path.realpath(path): f"{fspath(path)} is read" for path in inputs if path is not None}
    for path in paths:
        if path is None:
            continue
        usable(path)
        if _is_stream(path):
            continue
        place = _target(path)
        if place in taken:
            raise InputError(f"{fspath(path)}: cannot be written, {taken[place]} by the same command")
        taken[place] = f"{fspath(path)} is written"


def require_folder(path: PathName, *names: str, inputs: Iterable[PathName | None] = ()) -> None:
    """Check before long work that `file_set(path, names)` can be. Raises InputError."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InputError(f"{fspath(path)}: is not a directory")
    if not os.path.isdir(path):
        return
    files = [os.path.join(path, name) for name in names]
    require_writable(*files, inputs=inputs)
    for file in files:
        if os.path.lexists(file) and not stat.S_ISREG(os.lstat(file).st_mode):
            raise InputError(f"{file}: is not a regular file; a set of files does not take its place")


@contextlib.contextmanager
def file_set(folder: PathName, *names: str) -> Iterator[Path]:
    """A staging folder for the files `names`, which appear in `folder` together when the block ends without an exception.

    A new folder appears with all of them by one rename. Into one that is there they are moved one after the other under a
    lock, so that two writers never mix; what a writer that died meanwhile has not moved, the next one moves. Raises
    InputError about `folder`; then what was there before is there still.
    """
    place = _target(folder)
    parent = os.path.dirname(place)
    try:
        require_folder(place, *names)
        os.makedirs(parent, exist_ok=True)
        sweep(parent)
        fresh = not os.path.isdir(place)
        if not fresh:
            sweep(place)
        stage = os.path.join(parent, _part_name(os.path.basename(place))) if fresh else os.path.join(place, _part_name("set"))
        os.mkdir(stage, 0o700)
    except OSError as error:
        raise _error(folder, error) from error
    lock = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(stage)
        if before_commit is not None:
            before_commit()
        _settle(stage, names)
        if not (fresh and _rename_whole(stage, place)):
            _move_set(stage, place)
    except OSError as error:
        raise _error(folder, error) from error
    finally:
        os.close(lock)
        shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def whole_directory(path: PathName) -> Iterator[Path]:
    """A `file_set` for a folder that must be new or empty, whatever is put into it. Raises InputError otherwise."""
    place = _target(path)
    if os.path.lexists(place) and (not os.path.isdir(place) or os.listdir(place)):
        raise InputError(f"{fspath(path)}: exists already; a new or empty directory is needed")
    with file_set(path) as stage:
        yield stage


def _settle(stage: str, names: tuple[str, ...]) -> None:
    """Give the staged files their modes and have them on the disk."""
    mask = _umask()
    for name in names or os.listdir(stage):
        handle = os.open(os.path.join(stage, name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fchmod(handle, (0o777 if stat.S_ISDIR(os.fstat(handle).st_mode) else 0o666) & ~mask)
            os.fsync(handle)
        finally:
            os.close(handle)
    os.chmod(stage, 0o777 & ~mask)


def _rename_whole(stage: str, place: str) -> bool:
    """Rename the stage over a folder that is absent or empty; whether it still was."""
    try:
        os.rename(stage, place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _move_set(stage: str, place: str) -> None:
    with _locked(place):
        _finish_set(place)
        os.rename(stage, os.path.join(place, _COMMIT))  # from here on the new set is what counts
        _finish_set(place)


def _finish_set(place: str) -> None:
    commit = os.path.join(place, _COMMIT)
    if not os.path.isdir(commit):
        return
    for name in sorted(os.listdir(commit)):
        os.replace(os.path.join(commit, name), os.path.join(place, name))
    os.rmdir(commit)
