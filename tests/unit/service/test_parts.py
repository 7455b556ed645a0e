"""Settings, sockets, keys, journal, log records."""

from __future__ import annotations

import io
import os
import socket
import threading
import types

import pytest

from cuzk.errors import InputError
from cuzk.service import journal as states
from cuzk.service.config import GIB, default_state, read_settings
from cuzk.service.failures import InUse, NeverFits, chain
from cuzk.service.journal import Ended, Journal
from cuzk.service.keys import KeyStore, Loaded
from cuzk.service.run import Access
from cuzk.service.sockets import Address, claim_path, parse_address
from cuzk.service.timeline import Timeline
from cuzk.trace.daemon_log import intervals, read_log
from cuzk.trace.event import Event

from .support import request

TOML = """
[daemon]
listen = "0.0.0.0:9820"
status_listen = "127.0.0.1:9821"
[memory]
total_budget = "1TiB"
safety_margin = "2 GiB"
eviction_min_idle = "1h"
pinned_budget = "5GiB"
[gpus]
devices = [1]
gpu_workers_per_device = 3
[synthesis]
partition_workers = 30
threads = 7
[pipeline]
max_parallel_synthesis = 5
slot_size = 3
[srs]
param_cache = "/keys"
[invented]
key = 1
"""


def test_the_daemons_settings_are_taken_and_what_has_no_effect_is_named(tmp_path):
    file = tmp_path / "cuzk.toml"
    file.write_text(TOML)
    found = read_settings(str(file), {"FIL_PROOFS_PARAMETER_CACHE": "/other"})
    assert (found.listen, found.http, found.params) == ("0.0.0.0:9820", "127.0.0.1:9821", "/keys")
    assert found.ram_bytes == 50 * GIB and found.margin_bytes == 2 * GIB and found.min_idle_s == 300
    assert (found.devices, found.gw, found.pw, found.threads) == ((1,), 3, 5, 7)
    notes = "\n".join(found.notes)
    for line, key in (
        (6, "1TiB"),
        (8, "1h"),
        (9, "pinned_budget"),
        (14, "partition_workers"),
        (18, "slot_size"),
        (22, "invented.key"),
    ):
        assert any(note.startswith(f"{file}:{line}:") and key in note for note in found.notes), (key, notes)
    assert len(found.notes) == 6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[gpus]\ngpu_threads = '3'", ":2: gpus.gpu_threads: must be a whole number"),
        ("[memory]\ntotal_budget = 5", ":2: memory.total_budget: must be a string"),
        ("[pipeline]\nenabled = 1", "must be true or false"),
        ("[gpus]\ndevices = [-1]", "ordinals"),
        ("[pipeline]\nmax_parallel_synthesis = -1", "negative"),
        ("[gpus]\ngpu_workers_per_device = true", "must be a whole number"),
        ("[memory\n", "no TOML"),
    ],
)
def test_wrong_settings_are_errors_with_their_place(tmp_path, text, says):
    file = tmp_path / "cuzk.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"cuzk\.toml") as caught:
        read_settings(str(file))
    assert says in str(caught.value)


def test_the_folder_of_keys_config_then_variable_then_default(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_settings(str(tmp_path / "none.toml"))
    assert read_settings(None, {"FIL_PROOFS_PARAMETER_CACHE": "/v"}).params == "/v"
    assert read_settings(None, {}).params == "/var/tmp/filecoin-proof-parameters"


@pytest.mark.parametrize(
    "text", ["host:1", "1.2.3.4", "1.2.3.4:x", "1.2.3.4:70000", "unix://relative", "unix:///" + "x" * 120, ":80", ""]
)
def test_addresses_that_are_none(text):
    with pytest.raises(InputError, match="--listen"):
        parse_address(text)


def test_services_do_not_meet_in_one_journal(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one = default_state("127.0.0.1:9820", "/keys")
    assert one == default_state("127.0.0.1:9820", "/keys/") and one.startswith(str(tmp_path))
    assert len({one, default_state("127.0.0.1:9821", "/keys"), default_state("127.0.0.1:9820", "/other")}) == 3
    assert ".." not in os.path.relpath(default_state("unix:///../../x", "/keys"), tmp_path).split(os.sep)


def test_addresses():
    assert parse_address("localhost:1") == Address("127.0.0.1", 1) and parse_address("[::1]:9").grpc == "[::1]:9"
    assert parse_address("unix:///run/x.sock").grpc == "unix:/run/x.sock"
    assert (
        parse_address("127.0.0.9:1").is_local and not parse_address("0.0.0.0:1").is_local and not parse_address("[::]:1").is_local
    )
    with pytest.raises(InputError, match="beyond this host"):
        Access(parse_address("0.0.0.0:1")).check()
    with pytest.raises(InputError, match="--http"):
        Access(parse_address("127.0.0.1:1"), parse_address("10.0.0.1:2")).check()
    Access(parse_address("0.0.0.0:1"), token="x" * 16).check()
    Access(parse_address("0.0.0.0:1"), open_to_all=True).check()


def test_a_stale_socket_goes_and_nothing_else_does(tmp_path):
    path = str(tmp_path / "a" / "s.sock")
    claim_path(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(InputError, match="another service answers"):
            claim_path(path)
    claim_path(path)  # nobody listens any more
    assert not os.path.exists(path)
    with open(path, "w"):
        pass
    with pytest.raises(InputError, match="is no socket"):
        claim_path(path)


def store(sizes: dict[str, int], budget: int | None, min_idle_s: float = 0.0):
    now = [0.0]

    def load(name: str) -> Loaded:
        now[0] += 1.0
        return Loaded(name, types.SimpleNamespace(), None, sizes[name])  # type: ignore[arg-type]

    return KeyStore(load, budget, min_idle_s, clock=lambda: now[0]), now


def test_keys_are_kept_and_the_longest_idle_goes_for_a_new_one():
    keys, _ = store({"a": 4, "b": 4, "c": 5, "huge": 11}, budget=10)
    assert keys.load("a") == 1.0 and keys.load("a") == 0.0
    keys.load("b")
    keys.load("a")
    with keys.use("a"):
        with pytest.raises(InUse):
            keys.evict("a")
        keys.load("c")
        assert {row["circuit_id"]: row["users"] for row in keys.loaded()} == {"a": 1, "c": 0}
    with pytest.raises(NeverFits, match="the budget for keys"):
        keys.load("huge")
    assert keys.evict("a") == 4 and keys.evict("a") is None


def test_a_key_waits_for_room_that_another_ones_user_holds():
    keys, _ = store({"a": 6, "b": 6}, budget=10)
    loaded = threading.Event()

    def other() -> None:
        keys.load("b")
        loaded.set()

    with keys.use("a"):
        thread = threading.Thread(target=other)
        thread.start()
        assert not loaded.wait(0.1)
    assert loaded.wait(5)
    thread.join()
    assert [row["circuit_id"] for row in keys.loaded()] == ["b"]


def test_one_service_a_journal_and_none_for_a_foreign_file(tmp_path):
    journal = Journal(tmp_path / "s")
    with pytest.raises(InputError, match="another service"):
        Journal(tmp_path / "s")
    journal.close()
    (tmp_path / "s" / "journal.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(InputError, match=r"journal\.sqlite"):
        Journal(tmp_path / "s")


def test_the_journal_forgets_old_jobs_and_keeps_inputs_private(tmp_path):
    journal = Journal(tmp_path, keep=3)
    for n in range(6):
        asked = request(f"j{n}", f"1:{n}")
        journal.accept(asked, asked.digest(), n, float(n), None)
        (file,) = (tmp_path / "inputs").iterdir()
        assert file.stat().st_mode & 0o077 == 0
        record = journal.find(f"j{n}")
        assert journal.request_with_input(record).vanilla == asked.vanilla
        journal.ended(f"j{n}", asked.digest(), Ended(states.COMPLETED, b"p", ended_s=float(n)))
    assert [record.request.request_id for record in journal.recent(10)] == ["j5", "j4", "j3"]
    assert journal.find("j0") is None and journal.last_seq() == 5
    asked = request("k")
    journal.accept(asked, asked.digest(), 9, 9.0, None)
    (file,) = (tmp_path / "inputs").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"cannot be read again|damaged"):
        journal.request_with_input(journal.find("k"))
    journal.close()


def test_our_own_log_is_read_like_the_daemons(tmp_path):
    now, out = [0.0], io.StringIO()
    timeline = Timeline(lambda: now[0], out)
    job = "wdpost-1-2-[1 2 3]"
    for at, kind, name, worker in (
        (1.0, "begin", "witness", "synthesis:0"), (2.0, "end", "witness", "synthesis:0"), (2.0, "begin", "matvec", "synthesis:0"),
        (3.0, "end", "matvec", "synthesis:0"), (3.5, "begin", "pin_pages", "gpu:0.1"), (4.0, "begin", "ntt_h", "gpu:0.1"),
        (4.5, "end", "ntt_h", "gpu:0.1"), (4.5, "begin", "msm_h", "gpu:0.1"), (5.0, "end", "msm_h", "gpu:0.1"),
        (5.0, "begin", "tail_msm", "gpu:0.1"), (5.2, "end", "tail_msm", "gpu:0.1"), (6.0, "complete", "", "finaliser:0"),
    ):  # fmt: skip
        now[0] = at
        timeline.take(job, Event(at, kind, name, worker, partition=3))
    file = tmp_path / "log"
    file.write_text(out.getvalue())
    log = read_log(file)
    assert not log.dropped.total()
    assert {moment.job for moment in log.moments} == {job}
    assert intervals(log.moments, "SYNTH_START", "SYNTH_END") == [(job, 3, 1.0, 3.0)]
    assert intervals(log.moments, "GPU_START", "GPU_END") == [(job, 3, 3.5, 6.0)]
    assert log.seconds["ntt_msm_h"] == [1.0] and log.seconds["tail_msm"] == [pytest.approx(0.2)]


def test_errors_say_why_all_the_way_down():
    try:
        try:
            raise OSError("the cable")
        except OSError as inner:
            raise InputError("C1 parse failed: no file") from inner
    except InputError as error:
        assert chain(error) == "C1 parse failed: no file: OSError: the cable"
