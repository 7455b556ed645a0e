"""A service from its settings to its end: prover, journal, the two ways in, signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cuzk.errors import InputError
from cuzk.service.config import Settings
from cuzk.service.forecast import Forecaster
from cuzk.service.journal import Journal
from cuzk.service.kinds import Kinds, standard_kinds
from cuzk.service.prover import Prover
from cuzk.service.service import Limits, Service
from cuzk.service.sockets import Address, claim_path, parse_address, private_files

if TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger("cuzk.service")
DEFAULT_MESSAGE_BYTES = 256 << 20


@dataclass(frozen=True)
class Access:
    """Who may ask. Beyond this host a token is needed, or the word that none is."""

    listen: Address
    http: Address | None = None
    token: str | None = None
    open_to_all: bool = False
    message_bytes: int = DEFAULT_MESSAGE_BYTES

    def check(self) -> None:
        """Raises InputError."""
        for what, address in (("--listen", self.listen), ("--http", self.http)):
            if address is not None and not address.is_local and not self.token and not self.open_to_all:
                raise InputError(f"{what} {address}: it listens beyond this host, so it needs --token-file FILE (or --no-token, "
                                 "where the network is yours alone: Curio's client cannot send one)")  # fmt: skip


def access_of(settings: Settings, token: str | None, open_to_all: bool, message_bytes: int) -> Access:
    """Raises InputError."""
    listen = parse_address(settings.listen)
    http = parse_address(settings.http, "--http") if settings.http else None
    access = Access(listen, http, token, open_to_all, message_bytes)
    access.check()
    return access


class Server:
    """The service with its ports. Used once, in one event loop."""

    def __init__(self, prover: Prover, journal: Journal, access: Access, *, kinds: Kinds | None = None,
                 limits: Limits | None = None, forecaster: Forecaster | None = None) -> None:  # fmt: skip
        self.access = access
        self.service = Service(prover, journal, kinds or standard_kinds(), limits=limits, forecaster=forecaster)
        self._grpc: Any = None
        self._http: web.AppRunner | None = None
        self._stopped = False
        self.port = self.http_port = 0
        """The ports that were bound; 0 for a unix socket."""

    async def start(self) -> None:
        """Raises InputError for an address that cannot be had."""
        from cuzk.service.grpc_server import make_server

        await self.service.start()
        self._grpc = make_server(self.service, max_bytes=self.access.message_bytes, token=self.access.token)
        address = self.access.listen
        if address.path:
            claim_path(address.path)
        with private_files():
            try:
                self.port = self._grpc.add_insecure_port(address.grpc)
            except RuntimeError as error:
                raise InputError(f"--listen {address}: {error}") from error
        if not address.path and not self.port:
            raise InputError(f"--listen {address}: cannot be bound")
        await self._grpc.start()
        if self.access.http is not None:
            await self._start_http(self.access.http)

    async def _start_http(self, address: Address) -> None:
        from aiohttp import web

        from cuzk.service.http_server import make_app

        app = make_app(self.service, max_bytes=self.access.message_bytes, token=self.access.token, local=address.is_local)
        self._http = web.AppRunner(app, access_log=None)
        await self._http.setup()
        try:
            if address.path:
                claim_path(address.path)
                with private_files():
                    await web.UnixSite(self._http, address.path).start()
                return
            site = web.TCPSite(self._http, address.host, address.port)
            await site.start()
        except OSError as error:
            raise InputError(f"--http {address}: {error.strerror or error}") from error
        assert site._server is not None
        self.http_port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]

    async def stop(self, patience_s: float) -> None:
        """Drains, answers whoever still waits, and ends; a second call does nothing."""
        if self._stopped:
            return
        self._stopped = True
        await self.service.drain(patience_s)
        await self.service.stop()
        if self._grpc is not None:
            await self._grpc.stop(1.0)
        if self._http is not None:
            await self._http.cleanup()


def serve(make: Callable[[], Server], *, drain_s: float, said: Callable[[Server], None] = lambda server: None) -> int:
    """Runs until SIGTERM or SIGINT, drains for `drain_s` seconds at most (a second signal: no longer), and returns the exit
    code."""
    return asyncio.run(_serve(make, drain_s, said))


async def _serve(make: Callable[[], Server], drain_s: float, said: Callable[[Server], None]) -> int:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    again = asyncio.Event()

    def on_signal() -> None:
        (again if asked.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    server = make()
    try:
        await server.start()
    except BaseException:
        await server.stop(0.0)
        raise
    said(server)
    await asked.wait()
    stopping = asyncio.ensure_future(server.service.drain(drain_s))
    hurry = asyncio.ensure_future(again.wait())
    await asyncio.wait([stopping, hurry], return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    stopping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stopping
    await server.stop(0.0)
    return 0


def set_up_logging(level: str) -> None:
    """Structured lines on stdout, as the daemon's: time, level, target, message, key=value."""
    numbers = {"trace": 10, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "off": 60}
    chosen = numbers.get(level.rpartition("=")[2].lower(), 20)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Lines())
    logger = logging.getLogger("cuzk")
    logger.handlers[:] = [handler]
    logger.setLevel(chosen)
    logger.propagate = False


class _Lines(logging.Formatter):
    _NAMES: ClassVar = {10: "DEBUG", 20: " INFO", 30: " WARN", 40: "ERROR"}

    def format(self, record: logging.LogRecord) -> str:
        from datetime import UTC, datetime

        when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        text = f"{when} {self._NAMES.get(record.levelno, ' INFO')} cuzk::service: {record.getMessage()}"
        return text if record.exc_info is None else f"{text}\n{self.formatException(record.exc_info)}"
