"""Addresses: `unix://PATH` or `IP:port`. Sockets are local unless told otherwise."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from cuzk.errors import InputError

MAX_PATH_BYTES = 107


@dataclass(frozen=True)
class Address:
    host: str = ""
    port: int = 0
    path: str = ""
    """That of a unix socket; then there is no host."""

    @property
    def is_local(self) -> bool:
        return bool(self.path) or ipaddress.ip_address(self.host).is_loopback

    @property
    def grpc(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"unix://{self.path}" if self.path else self.grpc


def parse_address(text: str, what: str = "--listen") -> Address:
    """Raises InputError: a host name (which of its addresses?), a port out of range, a path that is too long."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        path = path[2:] if path.startswith("//") else path
        if not path.startswith("/") or len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise InputError(f"{what}: a unix socket has an absolute path of at most {MAX_PATH_BYTES} bytes, not {path!r}")
        return Address(path=path)
    host, colon, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        raise InputError(f"{what}: must be IP:port or unix://PATH, not {text!r}") from None
    if not colon or not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise InputError(f"{what}: the port must be a number below 65536, not {port!r}")
    return Address(str(found), int(port))


def claim_path(path: str) -> None:
    """Makes way for a unix socket: its folder, and a socket that nobody answers on any more goes. Raises InputError for what
    is no socket, and for one that is in use."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise InputError(f"{path}: is there and is no socket")
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
    raise InputError(f"{path}: another service answers there")


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Sockets that are made meanwhile are for this user and group alone."""
    before = os.umask(0o007)
    try:
        yield
    finally:
        os.umask(before)
