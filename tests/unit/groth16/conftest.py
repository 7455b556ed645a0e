"""Fixture files: the three circuits of tests/fixtures, uncompressed where they are stored compressed."""

import json
import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.setup.secrets import Secrets

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHARED = Path(os.environ.get("CUZK_SHARED", FIXTURES.parents[1].parent / "shared"))


@dataclass(frozen=True)
class Circuit:
    """One fixture folder; `path(suffix)` is its file of that kind."""

    name: str
    plain: dict[str, Path]

    def path(self, suffix: str) -> Path:
        return self.plain.get(suffix, FIXTURES / self.name / f"{self.name}.{suffix}")

    def file(self, name: str) -> Path:
        return FIXTURES / self.name / name

    def kat(self) -> dict:
        return json.loads(self.file("kat.json").read_text())

    def kat_blinding(self) -> Blinding:
        kat = self.kat()
        return Blinding(int(kat["r"]), int(kat["s"]), private=False)

    def bellman(self) -> tuple[Secrets, Blinding, bytes]:
        """The secrets and blinding behind the bellman files, and the proof."""
        known = json.loads(self.file("bellman.json").read_text())
        secrets = Secrets(*(int(known[name]) for name in ("tau", "alpha", "beta", "gamma", "delta")))
        blinding = Blinding(int(known["r"]), int(known["s"]), private=False)
        return secrets, blinding, self.file(f"{self.name}.bellman-proof.bin").read_bytes()


@pytest.fixture(scope="session")
def circuits(tmp_path_factory) -> dict[str, Circuit]:
    plain = {}
    for suffix in ("zkey", "r1cs"):
        path = tmp_path_factory.mktemp("checked16k") / f"checked16k.{suffix}"
        path.write_bytes(lzma.decompress((FIXTURES / "checked16k" / f"checked16k.{suffix}.xz").read_bytes()))
        plain[suffix] = path
    return {
        "mul": Circuit("mul", {}),
        "chain1k": Circuit("chain1k", {}),
        "checked16k": Circuit("checked16k", plain),
    }


@pytest.fixture(scope="session")
def filecoin() -> Path:
    folder = SHARED / "fixtures" / "filecoin"
    if not folder.is_dir():
        pytest.skip(f"no Filecoin fixtures at {folder} (set CUZK_SHARED)")
    return folder
