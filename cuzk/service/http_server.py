"""The HTTP way in, for everybody else.

    POST   /prove?miner=1000&sector=7      body: a C1 output in any of its forms; 202 and the job (200: it has ended already)
    GET    /jobs, /jobs/ID                 ?wait=30: until it has ended, at most so many seconds
    GET    /jobs/ID/proof                  192 bytes a partition
    DELETE /jobs/ID                        cancel
    GET    /queue, /status, /live          JSON;  /metrics: Prometheus;  /health: 200 or 503;  /: a page

Errors are JSON: `{"error": "…"}`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from cuzk.errors import CuzkError, InputError
from cuzk.service import journal as states
from cuzk.service.documents import job_document, queue_document, record_document, status_document
from cuzk.service.failures import chain
from cuzk.service.page import page
from cuzk.service.request import MAX_ITEMS, ProofRequest, Refused, new_id, priority_named
from cuzk.service.service import Service

CODES = {"invalid": 400, "conflict": 409, "busy": 429, "disk": 507, "draining": 503}
NAMES = {"id", "kind", "miner", "sector", "priority", "deadline_s", "registered_proof", "sector_size", "partition_index",
         "randomness", "comm_r_old", "comm_r_new", "comm_d_new"}  # fmt: skip
LONGEST_WAIT_S = 3600.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(service: Service, *, max_bytes: int, token: str | None = None, local: bool = True) -> web.Application:
    """`local`: it listens on this host only, so requests that name another host come from a page that has no business here."""
    app = web.Application(client_max_size=max_bytes, middlewares=[_errors(service), _guard(token, local)])
    routes = Routes(service)
    app.add_routes([
        web.post("/prove", routes.prove), web.get("/jobs", routes.jobs), web.get("/jobs/{id}", routes.job),
        web.get("/jobs/{id}/proof", routes.proof), web.delete("/jobs/{id}", routes.cancel), web.get("/queue", routes.queue),
        web.get("/status", routes.status), web.get("/live", routes.live), web.get("/metrics", routes.metrics),
        web.get("/health", routes.health), web.get("/", routes.index),
    ])  # fmt: skip
    return app


def _errors(service: Service) -> Any:
    @web.middleware
    async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refused as error:
            service.metrics.refused[error.reason] += 1
            return _error(CODES[error.reason], str(error))
        except InputError as error:
            return _error(400, str(error))
        except CuzkError as error:
            return _error(500, chain(error))
        except web.HTTPException as error:
            return _error(error.status, error.text or error.reason)

    return errors


def _guard(token: str | None, local: bool) -> Any:
    wanted = f"Bearer {token}".encode() if token else None

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if wanted is not None and request.path != "/health":
            given = request.headers.get("Authorization", "").encode("utf-8", "replace")
            if not hmac.compare_digest(given, wanted):
                return _error(401, "a token is needed: Authorization: Bearer TOKEN")
        if local and not _is_local(request.headers.get("Host", "")):
            return _error(403, "this service is for its own host")
        origin = request.headers.get("Origin")
        if origin and request.method not in ("GET", "HEAD") and urlsplit(origin).netloc != request.headers.get("Host"):
            return _error(403, "a page of another site asks")
        return await handler(request)

    return guard


def _is_local(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    if name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)


class Routes:
    def __init__(self, service: Service) -> None:
        self.service = service

    async def prove(self, request: web.Request) -> web.Response:
        asked = self._asked(request, await request.read())
        job, record = await self.service.submit(asked)
        if job is not None:
            return web.json_response(job_document(self.service, job), status=202, headers={"Location": _link(job.id)})
        assert record is not None
        return web.json_response(record_document(self.service, record))

    def _asked(self, request: web.Request, body: bytes) -> ProofRequest:
        query = request.query
        unknown = sorted(set(query) - NAMES)
        if unknown:
            raise Refused("invalid", f"unknown parameter {unknown[0][:40]!r}: there are {', '.join(sorted(NAMES))}")
        kind = self.service.kinds.named(query.get("kind", "porep-c2"))
        if not body:
            raise Refused("invalid", "the body is empty: it must be the input of the proof, such as a C1 output")
        deadline = query.get("deadline_s")
        try:
            deadline_s = float(deadline) if deadline is not None else None
        except ValueError:
            raise Refused("invalid", f"deadline_s: must be a number, not {deadline!r}") from None
        priority = priority_named(query.get("priority", "unspecified"))
        return ProofRequest(
            query.get("id") or new_id(), kind.number, miner=_whole(query, "miner"),
            sector_number=_whole(query, "sector"), sector_size=_whole(query, "sector_size"),
            registered_proof=_whole(query, "registered_proof"), partition_index=_whole(query, "partition_index"),
            randomness=_hex(query, "randomness"), comm_r_old=_hex(query, "comm_r_old"), comm_r_new=_hex(query, "comm_r_new"),
            comm_d_new=_hex(query, "comm_d_new"), vanilla=(body,) if kind.number == 1 else _items(body),
            priority=priority, deadline_s=deadline_s,
        )  # fmt: skip

    async def jobs(self, request: web.Request) -> web.Response:
        open_jobs = sorted(self.service.jobs.values(), key=lambda job: job.rank)
        rows = [job_document(self.service, job) for job in [*open_jobs, *self.service.recent]]
        return web.json_response({"jobs": rows})

    async def job(self, request: web.Request) -> web.Response:
        wait = request.query.get("wait")
        try:
            wait_s = min(LONGEST_WAIT_S, max(0.0, float(wait))) if wait is not None else 0.0
        except ValueError:
            raise Refused("invalid", f"wait: must be a number of seconds, not {wait!r}") from None
        job_id = request.match_info["id"]
        job = self.service.jobs.get(job_id)
        if job is not None and wait_s:
            await self.service.wait_for(job, wait_s)
        if job is not None:
            return web.json_response(job_document(self.service, job))
        record = await self.service.wait(job_id, 0.0)
        if record is None:
            return _error(404, f"job not found: {job_id[:256]}")
        return web.json_response(record_document(self.service, record))

    async def proof(self, request: web.Request) -> web.Response:
        job_id = request.match_info["id"]
        record = await self.service.wait(job_id, 0.0)
        if record is None:
            return _error(404, f"job not found: {job_id[:256]}")
        if record.ended is None:
            return _error(409, "the job has not ended")
        if record.ended.state != states.COMPLETED:
            return _error(410, record.ended.error)
        return web.Response(body=record.ended.proof, content_type="application/octet-stream")

    async def cancel(self, request: web.Request) -> web.Response:
        job_id = request.match_info["id"]
        was_running = await self.service.cancel(job_id)
        if was_running is None:
            return _error(404, f"job not found: {job_id[:256]}")
        return web.json_response({"job_id": job_id, "was_running": was_running})

    async def queue(self, request: web.Request) -> web.Response:
        return web.json_response(queue_document(self.service))

    async def status(self, request: web.Request) -> web.Response:
        return web.json_response(status_document(self.service), headers={"Access-Control-Allow-Origin": "*"})

    async def live(self, request: web.Request) -> web.Response:
        return web.json_response(self.service.live.document())

    async def metrics(self, request: web.Request) -> web.Response:
        text = self.service.metrics.text(self.service)
        return web.Response(body=text.encode(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def health(self, request: web.Request) -> web.Response:
        service = self.service
        state = "draining" if service.draining else "degraded" if service.degraded else "ok"
        return web.json_response({"state": state, "why": service.degraded}, status=200 if state == "ok" else 503)

    async def index(self, request: web.Request) -> web.Response:
        return web.Response(text=page(), content_type="text/html",
                            headers={"Content-Security-Policy": "default-src 'self' 'unsafe-inline'"})  # fmt: skip


def _link(job_id: str) -> str:
    from urllib.parse import quote

    return f"/jobs/{quote(job_id, safe='')}"


def _whole(query: Any, name: str) -> int:
    text = query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise Refused("invalid", f"{name}: must be a whole number, not {text[:40]!r}")
    return int(text)


def _hex(query: Any, name: str) -> bytes:
    try:
        return bytes.fromhex(query.get(name, ""))
    except ValueError:
        raise Refused("invalid", f"{name}: must be hexadecimal digits") from None


def _items(body: bytes) -> tuple[bytes, ...]:
    """A JSON array of base64 strings, as vanilla proofs of PoSt and sector updates lie on disk."""
    try:
        rows = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused("invalid", f"the body must be a JSON array of base64 strings: {error}") from None
    if not isinstance(rows, list) or len(rows) > MAX_ITEMS or not all(isinstance(row, str) for row in rows):
        raise Refused("invalid", f"the body must be a JSON array of at most {MAX_ITEMS} base64 strings")
    try:
        return tuple(base64.b64decode(row, validate=True) for row in rows)
    except (binascii.Error, ValueError) as error:
        raise Refused("invalid", f"an item is not base64: {error}") from None
