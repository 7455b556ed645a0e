"""circom2 and snarkjs, installed once from npm into a cache directory (CUZK_INTEROP_CACHE, default ~/.cache/cuzk/interop)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = ("snarkjs@0.7.6", "circom2@0.2.23")
DRIVER = Path(__file__).with_name("driver.mjs")


class Tools:
    """Compile circuits and run batches of snarkjs calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules = folder / "node_modules"

    def compile(self, folder: Path, name: str, source: str) -> None:
        """Write and compile NAME.circom in a folder: NAME.r1cs and the witness calculator."""
        (folder / f"{name}.circom").write_text(source)
        command = [
            str(self.modules / ".bin" / "circom2"),
            f"{name}.circom",
            "--r1cs",
            "--wasm",
            "--prime",
            "bls12381",
            "--O1",
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    def snarkjs(self, jobs: list[dict]) -> list[dict]:
        """Results in order: {"value", "seconds"} or {"error"}."""
        command = ["node", str(DRIVER), str(self.folder)]
        text = json.dumps(jobs, default=str)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=3000)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, *jobs: dict) -> list:
        """Values of jobs that must all succeed."""
        results = self.snarkjs(list(jobs))
        assert not [r for r in results if "error" in r], results
        return [r["value"] for r in results]


@pytest.fixture(scope="session")
def tools() -> Tools:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed: snarkjs cannot be asked")
    folder = Path(os.environ.get("CUZK_INTEROP_CACHE", Path.home() / ".cache" / "cuzk" / "interop"))
    installed = [folder / "node_modules" / package.split("@")[0] / "package.json" for package in PACKAGES]
    if not all(path.is_file() for path in installed):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        command = ["npm", "install", "--no-audit", "--no-fund", *PACKAGES]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode:
            pytest.skip(f"npm could not install {', '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1:]}")
    return Tools(folder)


@pytest.fixture(scope="session")
def ptau(tools, tmp_path_factory) -> Path:
    """Powers of tau for domains up to 2^6, made by snarkjs."""
    path = tmp_path_factory.mktemp("ptau") / "six.ptau"
    tools.run({"do": "ptau", "out": path, "power": 6})
    return path
