"""Levels by holder: the layers add up to the level, whatever is left out; pages need neither a network nor WebGL."""

import re
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.report.page import figure_of
from cuzk.report.stack import MOST_LAYERS, MOST_MOMENTS, OTHERS, stacks
from cuzk.report.thin import thin_lanes
from cuzk.trace.event import Event
from cuzk.trace.spans import Span

SCENARIO = str(Path(__file__).parents[3] / "scenarios" / "pw12.yaml")


def changes(n):
    """Each of 12 buffers comes and goes; the level is known at each moment."""
    held, level, events, levels = {}, 0, [], {}
    for i in range(n):
        name = f"b{i * 7 % 12}"
        if name in held:
            size = held.pop(name)
            events.append(Event(float(i), "free", name, pool="ram", bytes=size))
            level -= size
        else:
            held[name] = 100 + i % 50
            events.append(Event(float(i), "alloc", name, pool="ram", bytes=held[name]))
            level += held[name]
        levels[float(i)] = level
    return events, levels


@pytest.mark.parametrize("n", [5, 300, 5000])
def test_the_layers_add_up_to_the_level_and_the_peak_stays(n):
    events, levels = changes(n)
    stack = stacks(events)["ram"]
    sums = {t: sum(layer[i] for layer in stack.layers.values()) for i, t in enumerate(stack.t)}
    assert all(levels[t] == level for t, level in sums.items())
    assert max(sums.values()) == max(levels.values()) and len(stack.t) <= MOST_MOMENTS + 2
    assert len(stack.layers) <= MOST_LAYERS + 1 and (n < 20 or OTHERS in stack.layers)


def test_work_shows_beside_long_waits():
    rows = []
    for i in range(30_000):
        rows.append(("gpu:0.0", Span("gpu_mutex", "wait", "gpu:0.0", None, i, 0, i, i + 0.9)))
        rows.append(("gpu:0.0", Span("msm_h", "run", "gpu:0.0", None, i, 0, i + 0.9, i + 1.0)))
    kinds = {span.kind for _, span in thin_lanes(rows).rows}
    assert kinds == {"wait", "run"}


def test_the_page_of_sim_has_the_answer_the_bands_and_what_to_deploy(tmp_path, capsys):
    page = tmp_path / "sim.html"
    assert main(["sim", SCENARIO, "--set", "workload.proofs=2", "--seeds", "3", "--html", str(page)]) == 0
    text = page.read_text()
    head = text.partition("<script")[0]
    assert 'name="viewport"' in head and "@media print" in head
    assert "peak, P5 to P95" in text and "by holder" in text and "max_parallel_synthesis" in text and "binds" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']https?:", text)


def test_no_chart_needs_webgl():
    steps = (("a", 5, 5), ("b", 7, 12))
    events = [Event(float(i), "alloc", n, pool="ram", bytes=b, live=level) for i, (n, b, level) in enumerate(steps)]
    kinds = {trace.type for trace in figure_of([("predicted", events)]).data}
    assert kinds and kinds <= {"scatter", "bar"}


def test_two_predictions_are_told_apart_and_compare_has_a_page(tmp_path):
    traces = []
    for pw in (2, 4):
        traces.append(str(tmp_path / f"{pw}.jsonl"))
        assert main(["sim", SCENARIO, "--set", "workload.proofs=1", "--set", f"policy.pw={pw}", "--trace", traces[-1]]) == 0
    assert main(["plot", *traces, "-o", str(tmp_path / "p.html")]) == 0
    text = (tmp_path / "p.html").read_text()
    assert "2.jsonl): live" in text and "4.jsonl): live" in text
    assert main(["compare", *traces, "--html", str(tmp_path / "c.html")]) == 0
    assert "Figure by figure" in (tmp_path / "c.html").read_text()
