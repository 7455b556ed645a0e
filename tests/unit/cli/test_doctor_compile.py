"""`cuzk doctor --compile`: every module once, into the cache, for the architecture that is named or that is here."""

from __future__ import annotations

import json

import pytest

from cuzk.cli.main import main
from cuzk.gpu import module


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """What was compiled; no compiler is called."""
    made: list[tuple[str, str]] = []

    def compiled(name, arch, out):
        made.append((name, arch))
        out.write_bytes(b"cubin")
        return ""

    monkeypatch.setenv("CUZK_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "compile_nvcc", compiled)
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/nvcc")
    return made


def test_every_module_once(compiler, capsys):
    assert main(["doctor", "--compile", "sm_89", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert sorted(compiler) == [(name, "sm_89") for name in module.modules()]
    assert document["arch"] == "sm_89" and len(document["files"]) == len(module.modules())
    compiler.clear()
    assert main(["doctor", "--compile", "sm_89"]) == 0
    assert not compiler  # the cache has them


def test_the_gpu_that_is_here(compiler, monkeypatch):
    monkeypatch.setattr(module, "require_device_arch", lambda index: "sm_120")
    assert main(["doctor", "--compile"]) == 0
    assert {arch for _, arch in compiler} == {"sm_120"}


def test_an_architecture_that_is_none(compiler, capsys):
    assert main(["doctor", "--compile", "hopper"]) == 2
    assert "named like sm_90" in capsys.readouterr().err and not compiler


def test_without_a_compiler(monkeypatch, capsys):
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert main(["doctor", "--compile", "sm_90"]) == 5
