"""Long runs at the resolution of a page: curves keep every peak and trough, lanes draw together what is narrower than a pixel.

A page is for looking at; the trace file has every event. What is left out is said (`Lanes.merged`), never hidden: the
highest and lowest level of every stretch of time stay, each with its own moment.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from cuzk.trace.curves import Curve
from cuzk.trace.spans import Span

MOST_POINTS = 4000
"""The most points of one curve: several for each pixel of a wide screen."""
MOST_BARS = 12000
"""The most bars in the lanes of one side."""
PIXELS = 2000
LaneRow = tuple[str, Span]


def thin_curve(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """At most about `most` points: of every stretch of time the first, lowest, highest and last."""
    n = len(curve.t)
    if n <= most:
        return curve
    begin, stretch = curve.t[0], (curve.t[-1] - curve.t[0]) / (most // 4)
    kept: set[int] = set()
    first = 0
    while first < n:
        bucket = int((curve.t[first] - begin) / stretch)
        last = first
        while last + 1 < n and int((curve.t[last + 1] - begin) / stretch) == bucket:
            last += 1
        inside = range(first, last + 1)
        kept |= {first, last, min(inside, key=curve.level.__getitem__), max(inside, key=curve.level.__getitem__)}
        first = last + 1
    order = sorted(kept)
    return Curve([curve.t[i] for i in order], [curve.level[i] for i in order])


@dataclass(frozen=True)
class Lanes:
    """The part of one side that is drawn."""

    rows: list[LaneRow]
    merged: int = 0
    """Spans that are drawn together with others."""
    shorter_than_s: float = 0.0


def thin_lanes(rows: list[LaneRow], most: int = MOST_BARS) -> Lanes:
    """At most about `most` bars: on each lane, neighbours narrower than a pixel become one bar named after the work that
    takes most of its time; waits and work are drawn together each among themselves."""
    if len(rows) <= most:
        return Lanes(rows)
    end = max(span.end for _, span in rows)
    lanes = len({lane for lane, _ in rows})
    pixel = max(end / PIXELS, 2 * lanes * end / most)
    wide = [row for row in rows if row[1].seconds >= pixel]
    groups: dict[tuple[str, str, int], list[Span]] = defaultdict(list)
    for lane, span in rows:
        if span.seconds < pixel:
            groups[lane, span.kind, int(span.start / pixel)].append(span)
    drawn = [(lane, _together(spans)) for (lane, _, _), spans in groups.items()]
    return Lanes(wide + drawn, len(rows) - len(wide), pixel)


def _together(spans: list[Span]) -> Span:
    if len(spans) == 1:
        return spans[0]
    by_name: dict[tuple[str, str], float] = defaultdict(float)
    for span in spans:
        by_name[span.kind, span.name] += span.seconds
    kind, name = max(by_name, key=lambda key: by_name[key])
    begin = min(span.start for span in spans)
    whole = sum(span.seconds for span in spans)
    # as long as the work is, from where it begins: a lane that is busy half of the time looks so
    return replace(spans[0], kind=kind, name=name, start=begin, end=begin + whole, proof=None, partition=None)
