"""Thinning keeps what a reader looks for: every peak and trough at its moment, and how busy a lane was."""

import random

from cuzk.report.page import figure_of
from cuzk.report.thin import thin_curve, thin_lanes
from cuzk.trace.curves import Curve
from cuzk.trace.event import Event
from cuzk.trace.spans import Span


def span(start: float, end: float, name: str = "msm_h", kind: str = "run") -> Span:
    return Span(name, kind, "gpu:0", None, 0, 0, start, end)


def test_a_short_curve_and_short_lanes_are_left_alone():
    curve = Curve([0.0, 1.0], [1, 2])
    rows = [("gpu:0", span(0, 1))]
    assert thin_curve(curve) is curve
    assert thin_lanes(rows).rows is rows and thin_lanes(rows).merged == 0


def test_a_long_curve_keeps_its_extremes_at_their_moments():
    source = random.Random(1)
    curve = Curve([float(i) for i in range(50_000)], [source.randrange(1000, 2000) for _ in range(50_000)])
    curve.level[31_313], curve.level[17] = 9999, 3
    thin = thin_curve(curve, 400)
    points = dict(zip(thin.t, thin.level, strict=True))
    assert len(thin.t) <= 4 * 101
    assert points[31_313.0] == 9999 and points[17.0] == 3
    assert thin.t[0] == 0.0 and thin.t[-1] == 49_999.0 and thin.t == sorted(thin.t)
    assert set(points.items()) <= set(zip(curve.t, curve.level, strict=True))


def test_merged_bars_are_as_long_as_the_work_in_them():
    rows = [("gpu:0", span(i, i + 0.4, "msm_h" if i % 3 else "ntt_h")) for i in range(30_000)]
    rows += [("gpu:1", span(0, 30_000.0, "wait for work", "wait"))]
    lanes = thin_lanes(rows, 3000)
    assert len(lanes.rows) <= 3000 and lanes.merged == 30_000
    assert ("gpu:1", rows[-1][1]) in lanes.rows
    drawn = sum(s.seconds for lane, s in lanes.rows if lane == "gpu:0")
    assert abs(drawn - 30_000 * 0.4) < 1e-6
    assert {s.name for lane, s in lanes.rows if lane == "gpu:0"} == {"msm_h"}


def test_a_long_run_makes_a_small_figure():
    events = []
    for i in range(20_000):
        events += [Event(i, "begin", "msm_h", worker="gpu:0", proof=i, partition=0),
                   Event(i, "alloc", "d_a", worker="gpu:0", pool="ram", bytes=1, live=1 + i % 7, proof=i, partition=0),
                   Event(i + 0.5, "end", "msm_h", worker="gpu:0", proof=i, partition=0)]  # fmt: skip
    figure = figure_of([("predicted", events)])
    assert sum(len(trace.x) for trace in figure.data) < 30_000
