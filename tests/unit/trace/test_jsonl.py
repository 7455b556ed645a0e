"""Trace files: what is written is read back; what is broken is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.errors import InputError
from cuzk.trace.event import Event
from cuzk.trace.jsonl import MAX_LINE_BYTES, TraceWriter, iter_events, read_trace, write_trace

HEADER = {"clock": "wall", "scenario_hash": "abc", "policy": {"pw": 2}}
NUMBERS = st.none() | st.integers(0, 2**62)
EVENTS = st.builds(
    Event,
    t=st.floats(0, 1e6).map(lambda t: round(t, 6)),
    kind=st.sampled_from(["begin", "end", "alloc", "oom", "sample", "admit", "fail"]),
    name=st.text(max_size=8), worker=st.text(max_size=8), gpu=st.none() | st.integers(0, 9),
    stream=st.none() | st.text(min_size=1, max_size=4), proof=NUMBERS, partition=st.none() | st.integers(-1, 99),
    cost=st.none() | st.text(min_size=1, max_size=4), cpu_s=st.none() | st.floats(0, 1e6), pool=st.none() | st.just("vram:0"),
    bytes=NUMBERS, live=NUMBERS, reserved=NUMBERS, resident=NUMBERS, capacity=NUMBERS,
    holders=st.none() | st.lists(st.tuples(st.text(max_size=4), st.integers(0, 9), st.integers(0, 2**62)), max_size=3),
    reason=st.none() | st.text(min_size=1, max_size=20),
)  # fmt: skip


@given(events=st.lists(EVENTS, max_size=20))
def test_what_is_written_is_read_back(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    write_trace(path, HEADER, events)
    trace = read_trace(path)
    assert trace.header == {"trace": 1, **HEADER}
    assert trace.events == sorted(events, key=lambda event: event.t)
    assert list(iter_events(path)) == events
    assert not trace.truncated


def test_a_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, HEADER)
    writer(Event(0.5, "admit", proof=0))
    assert not path.exists() and (tmp_path / "t.jsonl.part").exists()
    writer.close()
    assert path.exists() and not (tmp_path / "t.jsonl.part").exists()
    writer(Event(0.6, "admit", proof=1))
    writer.close()
    assert len(read_trace(path).events) == 1


def test_a_killed_run_leaves_a_trace_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(path, HEADER, [Event(float(i), "admit", proof=i) for i in range(5)])
    text = path.read_text()
    for cut in range(len(text.splitlines()[0]) + 1, len(text)):
        path.write_text(text[:cut])
        trace = read_trace(path)
        whole = text[:cut].count("\n") - 1
        assert len(trace.events) in (whole, whole + 1)
        assert trace.truncated == (not text[:cut].endswith("\n") and len(trace.events) == whole)


HEAD = '{"trace":1,"clock":"sim"}\n'


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", None, "empty"),
        ("\n\n", None, "empty"),
        ("hello\n", 1, "not JSON"),
        ('{"t":0,"kind":"admit"}\n', 1, "header"),
        ('{"trace":2,"clock":"sim"}\n', 1, "version"),
        ('{"trace":true,"clock":"sim"}\n', 1, "version"),
        ('{"trace":1,"clock":"moon"}\n', 1, "clock"),
        ("[1]\n", 1, "object"),
        (HEAD + '{"t":0,"kind":"admit"}\n{"t":0,\n{"t":1,"kind":"admit"}\n', 3, "not JSON"),
        (HEAD + '{"t":-1,"kind":"admit"}\n', 2, "t must be"),
        (HEAD + '{"t":NaN,"kind":"admit"}\n', 2, "not a number"),
        (HEAD + '{"t":1e999,"kind":"admit"}\n', 2, "t must be"),
        (HEAD + '{"t":true,"kind":"admit"}\n', 2, "t must be"),
        (HEAD + '{"kind":"admit"}\n', 2, "t must be"),
        (HEAD + '{"t":0,"kind":"nap"}\n', 2, "nap"),
        (HEAD + '{"t":0,"kind":["admit"]}\n', 2, "kind"),
        (HEAD + '{"t":0,"kind":"admit","colour":1}\n', 2, "colour"),
        (HEAD + '{"t":0,"kind":"alloc","bytes":1.5}\n', 2, "bytes"),
        (HEAD + '{"t":0,"kind":"alloc","bytes":true}\n', 2, "bytes"),
        (HEAD + '{"t":0,"kind":"alloc","bytes":1' + "0" * 30 + "}\n", 2, "bytes"),
        (HEAD + '{"t":0,"kind":"alloc","name":7}\n', 2, "name"),
        (HEAD + '{"t":0,"kind":"oom","holders":[["a",1]]}\n', 2, "holders"),
        (HEAD + '{"t":0,"kind":"oom","holders":"a"}\n', 2, "holders"),
        (HEAD + "[" * 100_000 + "\n", 2, ""),
        (HEAD + "x" * (MAX_LINE_BYTES + 5) + "\n", 2, "longer"),
        (HEAD + "\n\n" + '{"t":0,"kind":"nap"}\n', 4, "nap"),
    ],
)
def test_broken_files_are_named_with_their_line(text: str, line: int | None, what: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    where = f"{path}:{line}: " if line is not None else f"{path}: "
    assert str(caught.value).startswith(where) and what in str(caught.value)


def test_binary_is_not_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(InputError, match=":1: not JSON"):
        read_trace(path)
