"""The readers under fuzzing: any bytes give a valid object or an error of the user's, never anything else.

`python -m tests.fuzz.readers TARGET FOLDER [libFuzzer options]` runs one under atheris; FOLDER takes what is worth keeping.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 16


def _pce(path: str) -> None:
    from cuzk.groth16.formats.matrices import read_pce

    read_pce(path)


def _r1cs(path: str) -> None:
    from cuzk.groth16.formats.r1cs import R1csFile

    R1csFile(path).constraints()


def _wtns(path: str) -> None:
    from cuzk.groth16.formats.wtns import WtnsFile

    WtnsFile(path).check_values()


def _zkey(path: str) -> None:
    from cuzk.groth16.load import load_key

    key = load_key(path)
    key.verifying_key()
    _ = key.system


def _ckey(path: str) -> None:
    from cuzk.groth16.formats.ckey import CkeyFile

    key = CkeyFile(path).key()
    key.verifying_key()
    _ = key.system


def _params(path: str) -> None:
    from cuzk.groth16.formats.params import ParamsFile

    file = ParamsFile(path)
    file.verifying_key()
    for part in file.lists.values():
        part.mont(path)


def _arkworks(path: str) -> None:
    from cuzk.groth16.formats.arkworks import ArkworksKeyFile

    file = ArkworksKeyFile(path)
    file.verifying_key()
    for name in file.lists:
        file.mont(name)


def _template(path: str) -> None:
    from cuzk.groth16.formats.template import load_template

    load_template(path)


def _vk(path: str) -> None:
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.safety import weaknesses

    key = read_any_vk(path)
    weaknesses(key)


def _proof(path: str) -> None:
    from cuzk.groth16.formats.proof import read_proofs

    for proof in read_proofs(path):
        proof.to_bytes()


def _public(path: str) -> None:
    from cuzk.groth16.formats.proof import read_public

    read_public(path)


def _prf(path: str) -> None:
    from cuzk.groth16.formats.proof import Proof, read_bundle
    from cuzk.groth16.point_bytes import PointError

    for data in read_bundle(path).proofs:
        try:
            Proof.from_bytes(data)
        except PointError:
            return


def _ptau(path: str) -> None:
    from cuzk.groth16.formats.ptau import PtauFile

    file = PtauFile(path)
    _ = file.contributions


def _contributions(path: str) -> None:
    from cuzk.groth16.ceremony.contributions import read_contributions
    from cuzk.groth16.formats.zkey import ZkeyFile

    file = ZkeyFile(path)
    file.contribution_names()
    read_contributions(file)


def _input(path: str) -> None:
    from cuzk.groth16.circom_wasm import read_input

    read_input(path)


def _any(path: str) -> None:
    from cuzk.groth16.inspect import inspect

    inspect(path)


class _Context:
    """A gRPC call without metadata."""

    def invocation_metadata(self) -> tuple[()]:
        return ()


def _rpc(path: str) -> None:
    """The bytes of a SubmitProof call, up to where it would be queued."""
    from google.protobuf.message import DecodeError

    from cuzk.service.grpc_server import pb, proof_request

    try:
        message = pb.SubmitProofRequest.FromString(Path(path).read_bytes())
    except DecodeError:
        return
    request = proof_request(message, _Context())  # type: ignore[arg-type]
    request.check(1 << 20)
    request.digest()


def _http(path: str) -> None:
    """The body of a POST /v1/proofs with several vanilla proofs."""
    from cuzk.service.http_server import _items

    _items(Path(path).read_bytes())


def _trace(path: str) -> None:
    from cuzk.trace.jsonl import read_trace

    read_trace(path)


def _scenario(path: str) -> None:
    from cuzk.model.scenario import load_scenario

    load_scenario(path)


TARGETS: dict[str, Callable[[str], None]] = {
    "r1cs": _r1cs, "wtns": _wtns, "zkey": _zkey, "ckey": _ckey, "pce": _pce, "params": _params, "arkworks": _arkworks,
    "template": _template, "vk": _vk, "proof": _proof, "public": _public, "prf": _prf, "ptau": _ptau,
    "contributions": _contributions, "input": _input, "any": _any, "trace": _trace,
    "rpc": _rpc, "http": _http, "scenario": _scenario,
}  # fmt: skip


def attempt(target: str, path: str) -> bool:
    """Read a file; whether it was valid. Whatever is raised but an error of the user's is a fault of the reader."""
    from cuzk.errors import InputError, OutOfMemoryError, ProofInvalid
    from cuzk.service.request import Refused

    try:
        TARGETS[target](path)
    except (InputError, ProofInvalid, OutOfMemoryError, Refused):
        return False
    return True


def main(arguments: list[str]) -> None:
    """Fuzz one target under atheris."""
    import atheris

    target, folder, *options = arguments
    with atheris.instrument_imports(include=["cuzk"]):
        import cuzk.groth16.ceremony.contributions
        import cuzk.groth16.circom_wasm
        import cuzk.groth16.formats.arkworks
        import cuzk.groth16.formats.template
        import cuzk.groth16.inspect
        import cuzk.groth16.load
        import cuzk.groth16.safety
        import cuzk.model.scenario
        import cuzk.service.grpc_server
        import cuzk.service.http_server
        import cuzk.trace.jsonl  # noqa: F401
    memory = Path("/dev/shm")
    path = str((memory if memory.is_dir() else Path(folder)) / f"cuzk-fuzz-{os.getpid()}")

    def once(data: bytes) -> None:
        with open(path, "wb") as file:
            file.write(data)
        attempt(target, path)

    command: list[Any] = [sys.argv[0], folder, f"-max_len={MOST_BYTES}", *options]
    try:
        atheris.Setup(command, once)
        atheris.Fuzz()
    finally:
        if os.path.exists(path):
            os.unlink(path)


if __name__ == "__main__":
    main(sys.argv[1:])
