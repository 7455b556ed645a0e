"""The back-test as one offline HTML page: predicted against measured with its bands, and every row as a table."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuzk.report.accuracy import IN_BYTES, NAMES, figure, percent, signed
from cuzk.report.files import write_text
from cuzk.report.style import head

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = ["#1f4e79", "#c0392b", "#2d8a6e", "#8e6bbf", "#a86a00", "#51606f"]


def write_accuracy_page(path: str | Path, document: dict[str, Any]) -> None:
    """Write the page; it needs no network."""
    import plotly.io as pio

    config = {"displaylogo": False, "responsive": True}
    body = pio.to_html(figure_of(document), include_plotlyjs=True, full_html=False, config=config)
    failed = document["failed_gates"]
    verdict = "all goals met" if not failed else "goals missed: " + "; ".join(failed)
    style = "fits" if not failed else "risky"
    title = f"Accuracy of {document['calibration']}"
    write_text(path, f"{head(title)}<main><h1>{html.escape(title)}</h1>"
               f'<p class="verdict {style}">{html.escape(verdict)}</p>{_summary(document)}{body}{_rows(document)}'
               f"{_left_out(document)}</main></body></html>")  # fmt: skip


def figure_of(document: dict[str, Any]) -> go.Figure:
    """Error of each row in percent, its band as a bar; filled: used in the fit."""
    import plotly.graph_objects as go

    chart = go.Figure()
    rows = [r for r in document["rows"] if r.get("error") is not None]
    for colour, metric in zip(COLOURS, dict.fromkeys(r["metric"] for r in rows), strict=False):
        mine = [r for r in rows if r["metric"] == metric]
        error = [100 * r["error"] for r in mine]
        up = [100 * ((r["p95"] or r["predicted"]) - r["predicted"]) / r["measured"] for r in mine]
        down = [100 * (r["predicted"] - (r["p5"] or r["predicted"])) / r["measured"] for r in mine]
        text = [f"{r['id']}<br>measured {figure(metric, r['measured'])}, predicted {figure(metric, r['predicted'])}"
                f"<br>{'used' if r['used_in_fit'] else 'not used'} in the fit" for r in mine]  # fmt: skip
        chart.add_trace(go.Scatter(
            x=[r["id"] for r in mine], y=error, mode="markers", name=NAMES.get(metric, metric), text=text, hoverinfo="text",
            error_y={"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1, "color": colour},
            marker={"color": colour, "size": 9, "symbol": ["circle" if r["used_in_fit"] else "circle-open" for r in mine]},
        ))  # fmt: skip
    chart.add_hline(y=0, line={"color": "#51606f", "width": 1})
    chart.update_layout(template="plotly_white", height=560, margin={"l": 60, "r": 20, "t": 30, "b": 140})
    chart.update_layout(xaxis={"tickangle": -55}, legend={"orientation": "h", "y": 1.08})
    chart.update_yaxes(title="predicted against measured, %")
    return chart


def _table(head: list[str], rows: list[list[Any]]) -> str:
    top = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _summary(document: dict[str, Any]) -> str:
    rows: list[list[Any]] = []
    for label, key in (("used in the fit", "summary_used"), ("not used", "summary_unused")):
        for metric, s in document[key].items():
            name = f"{NAMES.get(metric, metric)}, {label}"
            if "right" in s:
                rows.append([name, s["rows"], f"{s['right']} right", "", "", "", ""])
            else:
                rows.append([name, s["rows"], percent(s.get("median")), signed(s.get("worst")), signed(s.get("lowest")),
                             percent(s.get("in_band"), 0), percent(s.get("rule_of_thumb", {}).get("median"))])  # fmt: skip
    return _table(["metric", "rows", "median", "worst", "lowest", "in P5–P95", "rule of thumb, median"], rows)


def _rows(document: dict[str, Any]) -> str:
    cells = []
    for r in document["rows"]:
        m = r["metric"]
        band = "" if r["p5"] is None else f"{figure(m, r['p5'])}–{figure(m, r['p95'])}"
        thumb = "" if r.get("rule_of_thumb") is None else figure(m, r["rule_of_thumb"])
        unit = " GiB" if m in IN_BYTES else ""
        cells.append([r["id"], NAMES.get(m, m).removesuffix(", GiB") + unit, figure(m, r["measured"]), figure(m, r["predicted"]),
                      signed(r.get("error")), band, thumb, "yes" if r["used_in_fit"] else "no"])  # fmt: skip
    return _table(["point", "metric", "measured", "predicted", "error", "P5–P95", "rule of thumb", "in the fit"], cells)


def _left_out(document: dict[str, Any]) -> str:
    if not document["not_scored"]:
        return ""
    rows = [[r["id"], r["metric"], r["reason"]] for r in document["not_scored"]]
    return '<p class="note">Not scored:</p>' + _table(["point", "metric", "why"], rows)
