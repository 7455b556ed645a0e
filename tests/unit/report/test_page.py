"""The page's series follow from events; the page itself is one file that needs no network."""

import re

import pytest

from cuzk.errors import InputError
from cuzk.report.holders import holders_over_time, ooms
from cuzk.report.page import write_page
from cuzk.trace.event import Event

GIB = 1 << 30


def events(scale: float = 1.0) -> list[Event]:
    return [
        Event(0.0, "alloc", "a", worker="synthesis", pool="ram", bytes=2 * GIB, live=2 * GIB, capacity=8 * GIB),
        Event(0.0, "begin", "witness", worker="synthesis", proof=0, partition=0),
        Event(2.0 * scale, "end", "witness", worker="synthesis", proof=0, partition=0),
        Event(2.0 * scale, "wait", "gpu_mutex", worker="gpu", proof=0, partition=0),
        Event(3.0 * scale, "grant", "gpu_mutex", worker="gpu", proof=0, partition=0),
        Event(3.0 * scale, "begin", "msm_h", worker="gpu", stream="compute", proof=0, partition=0),
        Event(4.0 * scale, "end", "msm_h", worker="gpu", stream="compute", proof=0, partition=0),
        Event(4.0 * scale, "sample", pool="ram", resident=3 * GIB),
        Event(5.0 * scale, "free", "a", worker="synthesis", pool="ram", bytes=2 * GIB, live=0, proof=0, partition=0),
        Event(6.0 * scale, "oom", "b", pool="ram", bytes=9 * GIB, live=0, capacity=8 * GIB),
    ]


def test_holders_and_misfits_follow_the_events():
    assert holders_over_time(events()) == {"ram": {0.0: "a × 1: 2.00 GiB", 5.0: ""}}
    assert ooms(events()) == {"ram": [(6.0, "b needs 9.0 GiB")]}


def test_the_page_stands_alone(tmp_path):
    page = tmp_path / "page.html"
    write_page(page, [("predicted", events()), ("measured", events(1.1))], title="a <b>", verdict="FITS", verdict_class="fits")
    text = page.read_text()
    assert "a &lt;b&gt;" in text and "<b>" not in text.partition("<script")[0]
    assert "predicted live" in text and "measured live" in text
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', text)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_nothing_is_written_where_the_page_cannot_be_made(tmp_path):
    with pytest.raises(InputError, match="page\\.html"):
        write_page(tmp_path / "missing" / "page.html", [("predicted", events())])
    assert list(tmp_path.iterdir()) == []
