"""HTTP, on the loopback interface."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json

import aiohttp
import pytest

from cuzk.service.service import Limits

from .support import Gate, ToyProver, serving
from .test_service import proof_of


@contextlib.asynccontextmanager
async def web(prover, state, **others):
    async with (
        serving(prover, state, **others) as (server, _),
        aiohttp.ClientSession(f"http://127.0.0.1:{server.http_port}") as http,
    ):
        yield server, http


async def ask(http, method, path, status, **others):
    async with http.request(method, path, **others) as answer:
        body = await answer.read()
        assert answer.status == status, body
        return json.loads(body) if answer.content_type == "application/json" else body


def test_a_job_from_its_coming_to_its_proof(tmp_path):
    async def main():
        gate = Gate()
        async with web(ToyProver(step=gate), tmp_path) as (_, http):
            async with http.post("/prove", params={"id": "a [1] b", "miner": 1000, "sector": 7}, data=b"3:x") as answer:
                assert answer.status == 202 and answer.headers["Location"] == "/jobs/a%20%5B1%5D%20b"
                assert (await answer.json())["state"] in ("queued", "preparing")
                where = answer.headers["Location"]
            await gate.wait()
            found = await ask(http, "GET", where, 200)
            assert (found["state"], found["partitions"], found["partitions_done"]) == ("running", 3, 0)
            await ask(http, "GET", where + "/proof", 409)
            queue = await ask(http, "GET", "/queue", 200)
            assert [job["job_id"] for job in queue["jobs"]] == ["a [1] b"]
            gate.let(9)
            found = await ask(http, "GET", where, 200, params={"wait": 10})
            assert found["state"] == "completed" and found["proof_hex"] == proof_of("3:x").hex()
            assert found["timings_ms"]["synthesis_sum"] == 1500
            assert await ask(http, "GET", where + "/proof", 200) == proof_of("3:x")
            again = await ask(http, "POST", "/prove", 200, params={"id": "a [1] b", "miner": 1000, "sector": 7}, data=b"3:x")
            assert again["proof_hex"] == found["proof_hex"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("params", "body", "status", "text"),
    [
        ({}, b"", 400, "the body is empty"),
        ({"path": "/etc/passwd"}, b"1:x", 400, "unknown parameter 'path'"),
        ({"miner": "-1"}, b"1:x", 400, "miner: must be a whole number"),
        ({"miner": str(2**64)}, b"1:x", 400, "outside 0"),
        ({"kind": "nonsense"}, b"1:x", 400, "unknown kind of proof"),
        ({"priority": "urgent"}, b"1:x", 400, "unknown priority"),
        ({"deadline_s": "soon"}, b"1:x", 400, "must be a number"),
        ({"deadline_s": "nan"}, b"1:x", 400, "deadline"),
        ({"randomness": "zz"}, b"1:x", 400, "hexadecimal"),
        ({"id": "a\nb"}, b"1:x", 400, "control characters"),
        ({"id": "x" * 257}, b"1:x", 400, "257 characters"),
        ({"kind": "winning-post"}, b"{}", 400, "JSON array"),
        ({"kind": "winning-post"}, b"[" * 4000, 400, "JSON array"),
        ({"kind": "winning-post"}, b'["%%"]', 400, "not base64"),
        ({}, b"1:" + b"x" * 5000, 413, ""),
    ],
)
def test_what_is_refused_says_why(tmp_path, params, body, status, text):
    async def main():
        prover = ToyProver()
        async with web(prover, tmp_path, message_bytes=4096) as (server, http):
            found = await ask(http, "POST", "/prove", status, params=params, data=body)
            assert text in found["error"]
            assert server.service.jobs == {} and prover.made == []

    asyncio.run(main())


def test_codes(tmp_path):
    async def main():
        gate = Gate()
        async with web(ToyProver(step=gate), tmp_path, limits=Limits(jobs=1)) as (server, http):
            await ask(http, "POST", "/prove", 202, params={"id": "a"}, data=b"1:x")
            await ask(http, "POST", "/prove", 409, params={"id": "a"}, data=b"1:y")
            await ask(http, "POST", "/prove", 429, params={"id": "b"}, data=b"1:y")
            for path in ("/jobs/nobody", "/jobs/nobody/proof", "/nothing"):
                await ask(http, "GET", path, 404)
            await ask(http, "DELETE", "/jobs/nobody", 404)
            await gate.wait()
            assert (await ask(http, "DELETE", "/jobs/a", 200))["was_running"] is True
            assert (await ask(http, "GET", "/jobs/a", 200, params={"wait": 10}))["state"] == "cancelled"
            await ask(http, "GET", "/jobs/a/proof", 410)
            assert (await ask(http, "GET", "/health", 200))["state"] == "ok"
            server.service.draining = True
            await ask(http, "POST", "/prove", 503, data=b"1:x")
            assert (await ask(http, "GET", "/health", 503))["state"] == "draining"

    asyncio.run(main())


def test_items_of_other_kinds_come_as_json(tmp_path):
    async def main():
        async with web(ToyProver(), tmp_path) as (_, http):
            body = json.dumps([base64.b64encode(b"2:").decode(), base64.b64encode(b"x").decode()])
            await ask(http, "POST", "/prove", 202, params={"kind": "winning-post", "id": "w"}, data=body)
            assert (await ask(http, "GET", "/jobs/w", 200, params={"wait": 10}))["proof_hex"] == proof_of("2:x").hex()

    asyncio.run(main())


def test_status_metrics_and_page(tmp_path):
    async def main():
        gate = Gate()
        async with web(ToyProver(step=gate), tmp_path) as (_, http):
            await ask(http, "POST", "/prove", 202, params={"id": "a"}, data=b"2:x")
            await gate.wait()
            found = await ask(http, "GET", "/status", 200)
            assert found["pipelines"][0]["job_id"] == "a" and found["pipelines"][0]["total_partitions"] == 2
            assert found["gpu_workers"][0]["current_job"] == "a"
            # what the daemon's status has
            assert {
                "uptime_secs",
                "memory",
                "synthesis",
                "pipelines",
                "gpu_workers",
                "allocations",
                "counters",
                "buffers",
            } <= set(found)
            gate.let(9)
            await ask(http, "GET", "/jobs/a", 200, params={"wait": 10})
            text = (await ask(http, "GET", "/metrics", 200)).decode()
            assert 'cuzk_proof_duration_seconds_bucket{proof_kind="porep_c2",le="+Inf"} 1' in text
            assert 'cuzk_proof_duration_seconds_count{proof_kind="porep_c2"} 1' in text
            for line in text.splitlines():
                assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0
            assert b"<canvas" in await ask(http, "GET", "/", 200)
            assert set(await ask(http, "GET", "/live", 200)) == {"now", "spans", "levels", "predicted_spans", "predicted_levels"}

    asyncio.run(main())


def test_other_hosts_other_pages_and_requests_without_the_token(tmp_path):
    async def main():
        async with web(ToyProver(), tmp_path) as (_, http):
            await ask(http, "GET", "/status", 403, headers={"Host": "evil.example"})
            await ask(http, "POST", "/prove", 403, data=b"1:x", headers={"Origin": "https://evil.example"})
        async with web(ToyProver(), tmp_path, token="0123456789abcdef") as (_, http):
            await ask(http, "GET", "/status", 401)
            await ask(http, "GET", "/status", 401, headers={"Authorization": "Bearer x"})
            await ask(http, "GET", "/status", 200, headers={"Authorization": "Bearer 0123456789abcdef"})
            await ask(http, "GET", "/health", 200)

    asyncio.run(main())
