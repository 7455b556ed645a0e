"""Folders of parameter files: names, digests that are computed once, and which key is opened."""

import hashlib
import json
import os
from dataclasses import replace

import pytest

from cuzk.cli.main import main
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.params import ParamsFile, development_tail
from cuzk.porep import parameters
from cuzk.porep.parameters import PUBLISHED, expected_digest, file_digest, find_published, parameter_folder, require_digest
from cuzk.porep.proving import load_porep_key
from tests.unit.porep.sector_files import ROOT

CHAIN = ROOT / "tests" / "fixtures" / "chain1k" / "chain1k.params"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cuzk" / "digests.json"


@pytest.fixture
def folder(tmp_path):
    """A file of the right counts under the published name: 1.1 GB, nearly all of it a hole."""
    made = tmp_path / "params"
    made.mkdir()
    vk = ParamsFile(CHAIN).verifying_key()
    head = replace(vk, ic=tuple(vk.ic[i % 2] for i in range(40))).to_bytes()
    with open(made / PUBLISHED["2KiB"].name(), "wb") as out:
        out.write(head + ((1 << 22) - 1).to_bytes(4, "big"))
        out.truncate(len(head) + 4 + 96 * ((1 << 22) - 1))
        out.seek(0, os.SEEK_END)
        out.write(bytes(16))
    return made


def test_the_folder_and_what_named_it(monkeypatch):
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    assert parameter_folder("here")[0].name == "here"
    assert str(parameter_folder()[0]) == "/var/tmp/filecoin-proof-parameters"
    monkeypatch.setenv("FIL_PROOFS_PARAMETER_CACHE", "/some/where")
    assert [str(x) for x in parameter_folder()] == ["/some/where", "FIL_PROOFS_PARAMETER_CACHE"]


def test_names_of_the_published_files():
    one = PUBLISHED["64GiB"]
    assert one.circuit == "porep-64g" and one.name(".vk").startswith("v28-stacked-proof-of-replication-merkletree-")
    assert "-8-8-2-sha256_hasher-" in one.name() and one.name().endswith(".params")
    assert all(len(p.identifier) == 64 and len(p.params_digest) == len(p.vk_digest) == 32 for p in PUBLISHED.values())


def test_a_digest_is_computed_once_for_each_state_of_a_file(tmp_path, cache, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    seen = []
    assert file_digest(path, lambda *at: seen.append(at)) == hashlib.blake2b(b"content").hexdigest()[:32]
    assert seen and cache.is_file()
    monkeypatch.setattr(hashlib, "blake2b", None)
    assert file_digest(path) == file_digest(str(path))  # no hasher is needed any more
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent.parent))
    path.write_bytes(b"another")
    assert file_digest(path) == hashlib.blake2b(b"another").hexdigest()[:32]
    cache.write_text("[not JSON")
    assert file_digest(path) == hashlib.blake2b(b"another").hexdigest()[:32]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "taken").write_bytes(b"x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    assert file_digest(tmp_path / "taken") == hashlib.blake2b(b"x").hexdigest()[:32]


def test_parameters_json_decides(tmp_path):
    path = tmp_path / "v28-some.params"
    path.write_bytes(b"some key")
    assert expected_digest(path) is None and require_digest(path) is None
    listed = tmp_path / "parameters.json"
    digest = hashlib.blake2b(b"some key").hexdigest()[:32]
    listed.write_text(json.dumps({path.name: {"cid": "Qm", "digest": digest, "sector_size": 2048}}))
    assert require_digest(path) == digest
    path.write_bytes(b"some keY")
    with pytest.raises(FormatError, match=r"v28-some\.params: its BLAKE2b digest is .*parameters\.json says"):
        require_digest(path)
    for bad, word in ((json.dumps({path.name: {"cid": "Qm"}}), "digest"), ("{", "JSON"), ('{"a":1,"a":2}', "twice")):
        listed.write_text(bad)
        with pytest.raises(FormatError, match=word):
            require_digest(path)


def test_a_file_under_a_published_name_must_have_the_published_digest(folder, maker, monkeypatch):
    name = folder / PUBLISHED["2KiB"].name()
    assert find_published(folder, maker) == name
    monkeypatch.setattr(parameters, "file_digest", lambda path, progress: "0" * 32)
    with pytest.raises(FormatError, match="the published list says 434fb1338ecfaf0f59256f30dde4968f"):
        load_porep_key(folder, maker)


def test_a_development_key_may_have_any_name(tmp_path):
    path = tmp_path / PUBLISHED["2KiB"].name()
    raw = CHAIN.read_bytes()
    path.write_bytes(raw)
    assert expected_digest(path) == (PUBLISHED["2KiB"].params_digest, "the published list")
    tail = ParamsFile(CHAIN).tail_bytes
    path.write_bytes(raw[: len(raw) - tail] + development_tail())
    assert expected_digest(path) is None


def test_the_verb_checks_and_refuses(tmp_path, folder, monkeypatch, capsys):
    assert main(["porep", "key", "--sector", "2KiB", "--params", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
    monkeypatch.setattr(parameters, "file_digest", lambda path, progress: PUBLISHED["2KiB"].params_digest)
    assert main(["porep", "key", "--sector", "8MiB", "--params", str(folder), "--check"]) == 2
    assert PUBLISHED["2KiB"].name() in capsys.readouterr().err


def test_a_key_of_another_circuit_is_not_converted(tmp_path, maker):
    with pytest.raises(InputError, match="not the parameters of the 2KiB PoRep circuit: 3 inputs"):
        parameters.convert_params(CHAIN, maker, tmp_path / "out.ckey")
    assert not (tmp_path / "out.ckey").exists()
