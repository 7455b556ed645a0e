"""The service against a client in Go, built here from the same messages (Debian: golang-go, golang-google-grpc-dev,
golang-goprotobuf-dev, protobuf-compiler)."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.service.support import ToyProver, serving
from tests.unit.service.test_service import proof_of

HERE = Path(__file__).parent
PROTO = Path(__file__).parents[2] / "cuzk" / "service" / "proto"
LIBRARY = Path("/usr/share/gocode")
TOOLS = ("go", "protoc", "protoc-gen-go")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Path:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or not (LIBRARY / "src/google.golang.org/grpc").is_dir():
        pytest.skip(f"no client in Go can be built: {', '.join(missing) or 'gRPC for Go'} is not installed")
    root = tmp_path_factory.mktemp("go")
    package, command = root / "src" / "cuzkv1", root / "src" / "client"
    package.mkdir(parents=True)
    command.mkdir()
    out = "--go_out=plugins=grpc,Mcuzk.proto=cuzkv1:" + str(package)
    subprocess.run(["protoc", f"-I{PROTO}", out, str(PROTO / "cuzk.proto")], check=True)
    (generated,) = package.rglob("*.pb.go")
    generated.rename(package / "cuzk.pb.go")
    shutil.copy(HERE / "go" / "client.go", command)
    environment = os.environ | {"GO111MODULE": "off", "GOPATH": f"{root}:{LIBRARY}", "GOFLAGS": "", "GOPROXY": "off",
                                "GOCACHE": str(root / "cache")}  # fmt: skip
    built = subprocess.run(["go", "build", "-o", str(root / "run"), "client"], env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return root / "run"


def run(client: Path, target: str, file: Path, job: str) -> list[str]:
    done = subprocess.run([str(client), target, str(file), job, "1000", "7"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("unix", [False, True])
def test_prove_and_status_from_go(tmp_path, client, unix):
    path = str(tmp_path / "cuzk.sock") if unix else ""
    wanted = "10:" + "x" * (51 << 20 if unix else 10)  # as long as a C1 output of 32 GiB

    async def main() -> None:
        async with serving(ToyProver(), tmp_path / "state", path=path, message_bytes=128 << 20) as (server, _):
            target = f"unix:{path}" if unix else f"dns:///127.0.0.1:{server.port}"
            for name, text in (("good", wanted), ("bad", "rubbish")):
                (tmp_path / name).write_text(text)
            found = await asyncio.to_thread(run, client, target, tmp_path / "good", "porep-1000-7")
            assert found[0] == f"porep-1000-7 COMPLETED {proof_of(wanted).hex()} "
            assert "porep-c2 0 0" in found[1:]
            again = await asyncio.to_thread(run, client, target, tmp_path / "good", "porep-1000-7")
            assert again[0] == found[0]
            bad = await asyncio.to_thread(run, client, target, tmp_path / "bad", "porep-1000-8")
            assert bad[0].startswith("porep-1000-8 FAILED  C1 parse failed: ")

    asyncio.run(main())
