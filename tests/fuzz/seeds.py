"""Small valid files of every kind, from which fuzzing starts; made from the fixtures, so that none is kept twice."""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def seeds() -> dict[str, list[bytes]]:
    """The starting inputs of each reader in readers.py."""
    from cuzk.groth16.convert import convert
    from cuzk.groth16.formats import matrices
    from cuzk.groth16.formats.proof import read_proofs, read_public
    from cuzk.groth16.formats.template import save_template
    from cuzk.groth16.load import load_key, read_r1cs_system
    from cuzk.groth16.setup.development import setup_development
    from cuzk.service.grpc_server import pb
    from cuzk.trace.event import Event
    from cuzk.trace.jsonl import write_trace
    from tests.small_template import small_case

    mul, foreign = FIXTURES / "mul", FIXTURES / "foreign"
    found = {kind: [(mul / f"mul.{kind}").read_bytes()] for kind in ("r1cs", "wtns", "zkey", "params")}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        system = read_r1cs_system(mul / "mul.r1cs")
        vk = setup_development(system, place / "k.ckey").to_bytes()
        matrices.write_pce(place / "k.pce", system)
        convert(load_key(place / "k.ckey"), place / "k.pk")
        convert(load_key(place / "k.ckey"), place / "u.pk", layout="arkworks-uncompressed")
        save_template(small_case()[0], place / "t.tpl")
        found |= {"ckey": [(place / "k.ckey").read_bytes()], "pce": [(place / "k.pce").read_bytes()]}
        found["arkworks"] = [(place / name).read_bytes() for name in ("k.pk", "u.pk")]
        found["template"] = [(place / "t.tpl").read_bytes()]
    proof = read_proofs(mul / "proof.json")[0].to_bytes()
    publics = b"".join(v.to_bytes(32, "big") for v in read_public(mul / "public.json")[0])
    names = ("gnark_vk.bin", "ark_vk_c.bin", "ark_vk_u.bin")
    found["vk"] = [vk, (mul / "verification_key.json").read_bytes(), *((foreign / name).read_bytes() for name in names)]
    names = ("gnark_proof.bin", "ark_proof_u.bin", "proof.hex")
    found["proof"] = [proof, proof * 2, (mul / "proof.json").read_bytes(), *((foreign / name).read_bytes() for name in names)]
    found["public"] = [(mul / "public.json").read_bytes(), b'[["1","2"],["3"]]', (foreign / "witness.json").read_bytes()]
    found["prf"] = [struct.pack(">QQ", 1, 2) + vk + proof + publics]
    found["ptau"] = [(foreign / "p3.ptau").read_bytes()]
    found["contributions"] = [(mul / "mul.zkey").read_bytes()]
    found["input"] = [(foreign / "input.json").read_bytes(), b'{"a":[[1,"2"],["0x10"]],"b":{"x":[{"y":3}]}}']
    found["any"] = [data for many in found.values() for data in many]
    with tempfile.TemporaryDirectory() as folder:
        events = [
            Event(0.5, "admit", proof=0),
            Event(0.6, "alloc", "buffer", worker="w", pool="ram", bytes=64, live=64, holders=[("buffer", 1, 64)]),
            Event(0.7, "begin", "ntt_h", worker="gpu", gpu=0, stream="compute", proof=0, partition=1, cost="ntt_h", cpu_s=0.1),
        ]
        write_trace(Path(folder) / "t.jsonl", {"clock": "wall", "policy": {"pw": 2}}, events)
        found["trace"] = [(Path(folder) / "t.jsonl").read_bytes()]
    point = bytes.fromhex((foreign / "proof.hex").read_text())
    ways = enumerate((point[:48], point[48:144], read_proofs(mul / "proof.json")[0].a, read_proofs(mul / "proof.json")[0].b))
    found["native-points"] = [bytes([way]) + data for way, data in ways]
    a_hash = json.dumps(list(range(32)))
    found["native-json"] = [
        f'{{"h": {a_hash}, "n": 7, "a": [{a_hash}, {a_hash}], "l": [1, 2], "s": "ab", "t": {{"n": 3}}}}'.encode(),
        f'{{"h": {a_hash}, "b": "eyJuIjogM30=", "xy": {{"z": [1, null, "\\u0041"]}}}}'.encode(),
    ]
    found["native-matrices"] = [bytes([2, 3, 4, 1, 1, 3]) + bytes(range(250))]
    requests = (
        pb.SubmitProofRequest(request_id="a", proof_kind=1, miner_id=1000, sector_number=7, vanilla_proof=b"{}"),
        pb.SubmitProofRequest(proof_kind=4, sector_size=2048, vanilla_proofs=[b"x", b"y"], randomness=bytes(32)),
    )
    found["rpc"] = [request.SerializeToString() for request in requests]
    found["http"] = [b'["AAAA", "AQ=="]', b"[]"]
    found["scenario"] = [(Path(__file__).parents[2] / "scenarios" / "demo-steady.yaml").read_bytes(), b"policy: {pw: 1}\n"]
    return found
