"""Keys under which anyone, or one machine, can forge proofs: named everywhere, and no proof under them is called valid."""

import json
from dataclasses import replace

import pytest

from cuzk.cli.main import main
from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.deep import deep_check
from cuzk.groth16.field import FR_MODULUS
from cuzk.groth16.formats.proof import Proof, proof_json, public_json
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.load import read_any_vk, read_r1cs_system
from cuzk.groth16.safety import weaknesses
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.setup.secrets import Secrets

SECRETS = Secrets(tau=1 << 70, alpha=3 << 80, beta=5 << 90, gamma=1, delta=7 << 100)


@pytest.fixture
def key_with(circuits, tmp_path):
    def make(mark=False, suffix="zkey", **changed) -> tuple:
        path = tmp_path / f"key.{suffix}"
        system = read_r1cs_system(circuits["mul"].path("r1cs"))
        return path, setup_development(system, path, replace(SECRETS, **changed), mark=mark)

    return make


def forged(key: VerifyingKey, public: list[int]) -> Proof:
    """A = alpha, B = beta, C = −IC(x): holds under any key whose delta is its gamma."""
    from py_arkworks_bls12381 import G1Point, Scalar

    ic = [G1Point.from_xy_bytes_be(p) for p in key.ic]
    total = ic[0]
    for point, value in zip(ic[1:], public, strict=True):
        total = total + point * Scalar.from_le_bytes(value.to_bytes(32, "little"))
    return Proof(key.alpha_g1, key.beta_g2, bytes((-total).to_xy_bytes_be()))


@pytest.mark.parametrize("gamma", (1, 11 << 60))
def test_a_forged_proof_without_a_contribution_is_not_valid(key_with, tmp_path, capsys, gamma):
    path, key = key_with(gamma=gamma, delta=gamma, suffix="params")
    proof, public, vk = (tmp_path / name for name in ("proof.json", "public.json", "vk.json"))
    vk.write_text(key.to_json())
    proof.write_text(proof_json(forged(key, [123, 456])))
    public.write_text(public_json([123, 456]))
    for name in (path, vk):
        arguments = ["verify", str(name), str(public), str(proof)]
        assert main(arguments) == 6
        assert "contribution" in capsys.readouterr().err
        assert main([*arguments, "--json"]) == 6
        found = json.loads(capsys.readouterr().out)
        assert not found["valid"] and "contribution" in found["reason"] and len(found["unsafe_key"]) == 1
        assert main([*arguments, "--allow-unsafe-key"]) == 0  # the equation does hold: that is the point
        assert "contribution" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "word"),
    (
        ({"delta": 1}, "contribution"),
        ({"delta": 2}, "delta"),
        ({"delta": FR_MODULUS - 1}, "-1·gamma"),
        ({"gamma": 9 << 60, "delta": 1000 * (9 << 60) % FR_MODULUS}, "1000·gamma"),
        ({"gamma": 5}, "no secret gamma"),
        ({"gamma": FR_MODULUS - 1}, "no secret gamma"),
        ({"alpha": 1}, "no secret alpha"),
        ({"beta": 1}, "no secret beta"),
        ({"gamma": 9 << 60, "delta": 17}, "no secret delta"),
        ({"mark": True}, "development"),
    ),
)
def test_every_verb_names_a_known_secret(circuits, key_with, tmp_path, capsys, changed, word):
    path, key = key_with(suffix="ckey", **changed)
    assert len(weaknesses(key)) == 1 and word in weaknesses(key)[0]
    mul, out = circuits["mul"], tmp_path / "out"
    r1cs, wtns = str(mul.path("r1cs")), str(mul.path("wtns"))
    ckey, vk = str(tmp_path / "o.ckey"), str(tmp_path / "vk.json")
    for arguments in (
        ["inspect", str(path)],
        ["prove", str(path), wtns, "-o", str(out)],
        ["key", "optimise", str(path), "--r1cs", r1cs, "-o", ckey],
        ["key", "convert", str(path), "-o", vk],
    ):
        assert main(arguments) == 0
        assert word in capsys.readouterr().err, arguments
    files = [str(out / name) for name in ("public.json", "proof.json")]
    for name in (str(path), vk, ckey):
        assert main(["verify", name, *files]) == 6
        assert word in capsys.readouterr().err
        assert main(["verify", name, *files, "--allow-unsafe-key"]) == 0
        capsys.readouterr()


def test_a_sound_key_has_no_weakness(circuits, key_with):
    assert weaknesses(key_with()[1]) == []
    assert weaknesses(key_with(gamma=77 << 70)[1]) == []
    for circuit in circuits.values():
        assert weaknesses(read_any_vk(circuit.path("zkey"))) == []


@pytest.mark.parametrize("suffix", ("params", "zkey", "ckey"))
def test_deep_reads_every_fixed_point(key_with, tmp_path, suffix):
    """One bit of any of the six points: found, and the position is that of the point."""
    path, key = key_with(suffix=suffix)
    data = path.read_bytes()
    for name in ("alpha_g1", "beta_g1", "delta_g1", "beta_g2", "gamma_g2", "delta_g2"):
        be = getattr(key, name)
        raw = point_bytes.to_zcash(be) if suffix == "params" else point_bytes.to_mont(be).tobytes()
        at = data.find(raw)
        assert at >= 0
        broken = bytearray(data)
        broken[at + len(raw) - 9] ^= 4
        path.write_bytes(broken)
        with pytest.raises(FormatError) as caught:
            deep_check(path, suffix)
        assert caught.value.offset == at, name
