"""The Solidity verifier in a real EVM with the precompiles of EIP-2537: solc and ethereumjs, installed once from npm."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cuzk.cli.main import main

FIXTURES = Path(__file__).parents[1] / "fixtures"
PACKAGES = ("solc", "@ethereumjs/evm", "@ethereumjs/common", "@ethereumjs/util")
SCRIPT = """
import fs from "fs";
import { createRequire } from "module";
const require = createRequire(process.cwd() + "/package.json");
const settings = { optimizer: { enabled: true }, outputSelection: { "*": { "*": ["evm.deployedBytecode.object"] } } };
const sources = { "v.sol": { content: fs.readFileSync(process.argv[2], "utf8") } };
const made = JSON.parse(require("solc").compile(JSON.stringify({ language: "Solidity", sources, settings })));
if (made.errors) throw new Error(made.errors.map((e) => e.formattedMessage).join());
const code = "0x" + made.contracts["v.sol"].Groth16Verifier.evm.deployedBytecode.object;
const { createEVM } = await import("@ethereumjs/evm");
const { Common, Hardfork, Mainnet } = await import("@ethereumjs/common");
const { hexToBytes } = await import("@ethereumjs/util");
const evm = await createEVM({ common: new Common({ chain: Mainnet, hardfork: Hardfork.Prague }) });
const results = [];
for (const data of JSON.parse(fs.readFileSync(process.argv[3], "utf8"))) {
    const done = await evm.runCode({ code: hexToBytes(code), data: hexToBytes(data), gasLimit: 5000000n });
    results.push(Number("0x" + (Buffer.from(done.returnValue).toString("hex") || "ff")));
}
console.log(JSON.stringify(results));
"""


@pytest.fixture(scope="module")
def evm() -> Path:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed: there is no EVM")
    folder = Path(os.environ.get("CUZK_INTEROP_CACHE", Path.home() / ".cache" / "cuzk")) / "evm"
    if not all((folder / "node_modules" / package / "package.json").is_file() for package in PACKAGES):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        command = ["npm", "install", "--no-audit", "--no-fund", *PACKAGES]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode:
            pytest.skip(f"npm could not install {', '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1:]}")
    (folder / "run.mjs").write_text(SCRIPT)
    return folder


@pytest.mark.parametrize("name", ("mul", "chain1k"))
def test_the_contract_accepts_the_proof_and_nothing_else(evm, tmp_path, capsys, name):
    folder, contract = FIXTURES / name, tmp_path / "Verifier.sol"
    assert main(["key", "convert", str(folder / f"{name}.zkey"), "-o", str(contract)]) == 0
    capsys.readouterr()
    assert main(["proof", "calldata", str(folder / "public.json"), str(folder / "proof.json")]) == 0
    good = bytes.fromhex(capsys.readouterr().out.strip()[2:])
    signals = 4 + 32  # behind the selector and the place of the proof
    above = good[:signals] + b"\xff" * 32 + good[signals + 32 :]
    changed = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in (signals + 31, len(good) - 1, len(good) - 400)]
    short = good[: -64 - 32] + bytes(32)
    calls = [good, above, *changed, short]
    (tmp_path / "calls.json").write_text(json.dumps(["0x" + call.hex() for call in calls]))
    command = ["node", "run.mjs", str(contract), str(tmp_path / "calls.json")]
    done = subprocess.run(command, cwd=evm, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results[0] == 1 and all(result != 1 for result in results[1:]), results
