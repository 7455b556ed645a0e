"""One offline HTML page: predicted and measured levels of each pool on the same axes, lanes of the workers below."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuzk.report.files import write_text
from cuzk.report.holders import GIB, holders_over_time, ooms
from cuzk.report.lanes import lane_order, lanes_of
from cuzk.report.stack import Stack, stacks
from cuzk.report.style import head
from cuzk.report.thin import Lanes, thin_curve, thin_lanes
from cuzk.trace.curves import Curve, PoolCurves, pool_curves
from cuzk.trace.event import Event
from cuzk.trace.spans import Span, spans

if TYPE_CHECKING:
    import plotly.graph_objects as go

Side = tuple[str, Sequence[Event]]
"""("predicted" | "measured" | a label, events)"""

STEP_COLOURS = {
    "witness": "#4878a8", "matvec": "#7ba3cc", "synthesis": "#4878a8", "pin_pages": "#b7a57a", "prep_msm": "#c49c3c",
    "copy": "#9a86b8", "ntt_h": "#2d8a6e", "msm_h": "#3fae8c", "batch_add": "#74c7a5", "tail_msm": "#a5dcc5",
    "gpu_overhead": "#c9cdd2", "b_g2_msm": "#d68a4a", "epilogue": "#b0563f", "wait": "#e6e8eb",
}  # fmt: skip
OTHER_COLOUR = "#9aa3ad"
SIDE_COLOURS = ["#1f4e79", "#c0392b", "#2d8a6e", "#8e6bbf"]
MAX_LANES = 60
LAYER_COLOURS = ["#4878a8", "#7ba3cc", "#2d8a6e", "#74c7a5", "#c49c3c", "#d68a4a", "#9a86b8", "#b0563f", "#c9cdd2"]


@dataclass(frozen=True)
class Section:
    """One picture of a page: labelled event lists (one to four) on shared axes, under a line of text."""

    sides: Sequence[Side]
    title: str = ""
    verdict: str = ""
    verdict_class: str = ""
    """"fits", "risky" or "oom": its colour."""
    texts: Sequence[tuple[str, str]] = ()
    """(heading, text) below the pictures: why, what would fit, what to deploy."""
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By pool: P5 and P95 of its peak over seeds, in bytes."""


def write_page(path: str | Path, sides: Sequence[Side], *, title: str = "cuzk", verdict: str = "",
               verdict_class: str = "", note: str = "", texts: Sequence[tuple[str, str]] = (),
               bands: Mapping[str, tuple[float, float]] | None = None) -> None:  # fmt: skip
    """A page with one section."""
    write_sections(path, [Section(sides, "", verdict, verdict_class, texts, bands or {})], title=title, note=note)


def write_sections(path: str | Path, sections: Sequence[Section], *, title: str = "cuzk", note: str = "") -> None:
    """The page holds all it needs (about 5 MB of it the plotting script): it opens without a network."""
    import plotly.io as pio

    body = f"<h1>{html.escape(title)}</h1>"
    for index, section in enumerate(sections):
        if section.title:
            body += f"<h2>{html.escape(section.title)}</h2>"
        if section.verdict:
            body += f'<p class="verdict {html.escape(section.verdict_class)}">{html.escape(section.verdict)}</p>'
        body += _peaks_table(section.sides)
        figure, remark = _draw(section.sides, section.bands)
        body += pio.to_html(figure, include_plotlyjs=index == 0, full_html=False,
                            config={"displaylogo": False, "responsive": True})  # fmt: skip
        if remark:
            body += f'<p class="note">{html.escape(remark)}</p>'
        for heading, text in section.texts:
            body += f"<h2>{html.escape(heading)}</h2><pre>{html.escape(text)}</pre>"
    if note:
        body += f'<p class="note">{html.escape(note)}</p>'
    write_text(path, f"{head(title)}<main>{body}</main></body></html>")


def _peaks_table(sides: Sequence[Side]) -> str:
    curves = [(label, pool_curves(events)) for label, events in sides]
    pools = _used_pools([pools for _, pools in curves])
    names = "".join(f"<th>{html.escape(label)} live</th><th>resident</th>" for label, _ in curves)
    rows = ""
    for pool in pools:
        cells = ""
        for _, by_pool in curves:
            found = by_pool.get(pool)
            peaks = found.peaks if found else {}
            cells += "".join(f"<td>{_gib(peaks.get(level, 0) / GIB)}</td>" for level in ("live", "resident"))
        rows += f"<tr><td>{html.escape(pool)}</td>{cells}</tr>"
    return f'<div class="wide"><table><thead><tr><th>peak of</th>{names}</tr></thead><tbody>{rows}</tbody></table></div>'


def _gib(value: float) -> str:
    return "–" if not value else f"{value:.1f} GiB" if value >= 10 else f"{value:.2f} GiB"


def _used_pools(sides: Sequence[dict[str, PoolCurves]]) -> list[str]:
    names = {name: None for pools in sides for name in pools}
    used = (n for n in names if any(max(p[n].peaks.values(), default=0) for p in sides if n in p))
    return sorted(used, key=lambda name: (name != "ram", name))


def figure_of(sides: Sequence[Side]) -> go.Figure:
    """The plotly figure: a row for each pool that was used, then a row of lanes for each side."""
    return _draw(sides)[0]


def _draw(sides: Sequence[Side], bands: Mapping[str, tuple[float, float]] | None = None) -> tuple[go.Figure, str]:
    """The figure, and what it does not show one by one."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    curves = [pool_curves(events) for _, events in sides]
    pools = [pool for pool in _used_pools(curves) if any(_moves(c[pool]) for c in curves if pool in c)]
    hovers = [holders_over_time(events) for _, events in sides]
    misfits = [ooms(events) for _, events in sides]
    lanes = [thin_lanes(lanes_of(spans(events, waits=True), MAX_LANES)) for _, events in sides]
    stacked = {pool: stack for pool, stack in stacks(sides[0][1]).items() if pool in pools and len(stack.layers) > 1}
    heights = [260] * (len(pools) + len(stacked)) + [max(160, 16 * len({lane for lane, _ in side.rows}) + 60) for side in lanes]
    titles = [f"{pool}, GiB" for pool in pools] + [f"{pool} by holder, GiB ({sides[0][0]})" for pool in stacked]
    titles += [f"workers, {label}" for label, _ in sides]
    figure = make_subplots(
        rows=len(heights), cols=1, shared_xaxes=True, subplot_titles=titles, row_heights=heights,
        vertical_spacing=min(0.06, 48 / sum(heights)),
    )  # fmt: skip
    for row, pool in enumerate(pools, 1):
        for index, (label, _) in enumerate(sides):
            if pool in curves[index]:
                colour, hover = SIDE_COLOURS[index % 4], hovers[index].get(pool, {})
                _draw_pool(figure, row, pool, label, colour, curves[index][pool], hover, go)
            _draw_misfits(figure, row, misfits[index].get(pool, []))
        if bands and pool in bands:
            low, high = (level / GIB for level in bands[pool])
            figure.add_hrect(y0=low, y1=high, fillcolor="#a86a00", opacity=0.15, line_width=0, row=row, col=1,
                             annotation_text="peak, P5 to P95", annotation_position="bottom left")  # fmt: skip
    for row, (pool, stack) in enumerate(stacked.items(), len(pools) + 1):
        limit = next((by_pool[pool].capacity for by_pool in curves if pool in by_pool), None)
        _draw_stack(figure, row, stack, limit, go)
    seen: set[str] = set()
    for offset, side in enumerate(lanes):
        _draw_lanes(figure, len(pools) + len(stacked) + 1 + offset, side.rows, go, seen)
    figure.update_layout(
        height=sum(heights) + 120, barmode="overlay", bargap=0.15, template="plotly_white", hovermode="closest",
        margin={"l": 150, "r": 20, "t": 50, "b": 40}, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        modebar={"orientation": "v"},
    )  # fmt: skip
    figure.update_layout(legend_y=1 + 40 / (sum(heights) + 120))
    end = max((curve.t[-1] for side in curves for pool in side.values() for curve in (pool.live, pool.resident) if curve.t),
              default=1.0)  # fmt: skip
    figure.update_xaxes(range=[0, 1.01 * end])
    figure.update_xaxes(title_text="seconds", row=len(heights), col=1)
    figure.update_xaxes(showticklabels=True)
    return figure, _remark(sides, lanes)


def _remark(sides: Sequence[Side], lanes: Sequence[Lanes]) -> str:
    parts = [f"{side.merged:,} steps of the workers ({label}) that took less than {side.shorter_than_s:.3g} s"
             for (label, _), side in zip(sides, lanes, strict=True) if side.merged]  # fmt: skip
    return f"Drawn together with their neighbours: {'; '.join(parts)}. The trace has each of them." if parts else ""


def _draw_pool(figure: go.Figure, row: int, name: str, label: str, colour: str, pool: PoolCurves,
               hover: dict[float, str], go: Any) -> None:  # fmt: skip
    # host pages become resident while a step touches them; a device buffer is there at once
    resident_shape = "hv" if name.startswith("vram:") else "linear"
    end = max([*pool.live.t[-1:], *pool.resident.t[-1:], 0.0])
    levels = (("live", pool.live, "solid", "hv"), ("reserved", pool.reserved, "dot", "hv"),
              ("resident", pool.resident, "dash", resident_shape))  # fmt: skip
    for level, curve, dash, shape in levels:
        if not curve.t or (level == "reserved" and curve.level == pool.live.level):
            continue
        x, y = _steps(thin_curve(curve), end)
        texts = [hover.get(t, "") for t in x] if level == "live" else None
        figure.add_trace(
            go.Scatter(x=x, y=y, text=texts, name=f"{label}: {level}", mode="lines", legendgroup=f"{label} {level}",
                         showlegend=row == 1, line={"shape": shape, "color": colour, "width": 1.4, "dash": dash},
                         hovertemplate="%{x:.2f} s: %{y:.2f} GiB " + level + ("<br>%{text}" if texts else "")),
            row=row, col=1)  # fmt: skip
    highest = max(pool.peaks.values(), default=0)
    if pool.capacity and pool.capacity < 4 * highest:
        figure.add_hline(y=pool.capacity / GIB, line={"color": "#555", "width": 1, "dash": "dash"}, row=row, col=1,
                         annotation_text=f"limit {pool.capacity / GIB:.1f}", annotation_position="top left")  # fmt: skip
    figure.update_yaxes(rangemode="tozero", row=row, col=1)


def _steps(curve: Curve, end: float) -> tuple[list[float], list[float]]:
    """The curve in GiB, its last level held until `end`."""
    levels = [level / GIB for level in curve.level]
    return [*curve.t, end], [*levels, levels[-1]]


def _draw_stack(figure: go.Figure, row: int, stack: Stack, limit: int | None, go: Any) -> None:
    """Layers of holders, with the limit where the level comes anywhere near it."""
    for index, (name, levels) in enumerate(stack.layers.items()):
        figure.add_trace(
            go.Scatter(x=stack.t, y=[level / GIB for level in levels], name=name, stackgroup=f"row {row}", mode="lines",
                       showlegend=False, line={"shape": "hv", "width": 0, "color": LAYER_COLOURS[index % len(LAYER_COLOURS)]},
                       hovertemplate="%{x:.2f} s: " + name + " %{y:.2f} GiB<extra></extra>"),
            row=row, col=1)  # fmt: skip
    highest = max((sum(levels) for levels in zip(*stack.layers.values(), strict=True)), default=0)
    if limit and limit < 4 * highest:
        figure.add_hline(y=limit / GIB, line={"color": "#555", "width": 1, "dash": "dash"}, row=row, col=1,
                         annotation_text=f"limit {limit / GIB:.1f}", annotation_position="top left")  # fmt: skip
    figure.update_yaxes(rangemode="tozero", row=row, col=1)


def _draw_misfits(figure: go.Figure, row: int, misfits: list[tuple[float, str]]) -> None:
    for t, text in misfits[:1]:
        figure.add_vline(x=t, line={"color": "#b3261e", "width": 1.5}, row=row, col=1,
                         annotation_text=f"out of memory: {text}", annotation_position="bottom left")  # fmt: skip


def _draw_lanes(figure: go.Figure, row: int, side: list[tuple[str, Span]], go: Any, seen: set[str]) -> None:
    by_name: dict[str, list[tuple[str, Span]]] = {}
    for lane, span in side:
        by_name.setdefault("wait" if span.kind == "wait" else span.name, []).append((lane, span))
    for name in sorted(by_name, key=lambda n: n != "wait"):  # waits lie below the work
        group = by_name[name]
        figure.add_trace(
            go.Bar(x=[s.seconds for _, s in group], base=[s.start for _, s in group], y=[lane for lane, _ in group],
                   orientation="h", name=name, legendgroup=name, showlegend=name not in seen,
                   marker={"color": STEP_COLOURS.get(name, OTHER_COLOUR), "line": {"width": 0}},
                   customdata=[[s.name, s.start, s.seconds, _who(s)] for _, s in group],
                   hovertemplate="%{customdata[0]} %{customdata[3]}<br>"
                                 "from %{customdata[1]:.2f} s for %{customdata[2]:.3f} s<extra></extra>",
                   ), row=row, col=1)  # fmt: skip
        seen.add(name)
    shown = sorted({lane for lane, _ in side}, key=lane_order, reverse=True)
    figure.update_yaxes(categoryorder="array", categoryarray=shown, tickfont={"size": 10}, row=row, col=1)


def _moves(pool: PoolCurves) -> bool:
    """False for a level that stays what it is from its first allocation to the end: it stands in the table."""
    return any(len(set(curve.level) - {0}) > 1 for curve in (pool.live, pool.reserved, pool.resident))


def _who(span: Span) -> str:
    return "" if span.proof is None else f"(proof {span.proof}, partition {span.partition})"
