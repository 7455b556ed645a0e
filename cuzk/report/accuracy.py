"""The back-test as Markdown, from its JSON document. The same document gives the page (`accuracy_page.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NAMES = {
    "s_per_proof": "s/proof",
    "steady_s_per_proof": "s/proof, steady",
    "peak_ram_gib": "peak RAM, GiB",
    "prove_s": "prove time, s",
    "oom": "verdict",
    "s_per_partition": "s/partition",
    "peak_vram_bytes": "peak VRAM, GiB",
    "rss_growth_bytes": "RSS growth, GiB",
    "verdict": "verdict",
}
IN_BYTES = {"peak_vram_bytes", "rss_growth_bytes"}


def markdown(document: dict[str, Any], extra: str = "") -> str:
    """The whole report."""
    title = "Accuracy" if not document.get("title") else f"Accuracy: {document['title']}"
    source = f"Calibration `{document['calibration']}`, measured in {document['source']}. Written by `cuzk validate -o`."
    lines = [f"# {title}", "", source, ""]
    lines += section(document)
    return "\n".join(lines).rstrip() + "\n" + extra


def section(document: dict[str, Any], level: str = "##") -> list[str]:
    rows = document["rows"]
    used = [r for r in rows if r["used_in_fit"]]
    unused = [r for r in rows if not r["used_in_fit"]]
    lines = [f"{level} Summary", ""]
    head = ["rows", "metric", "n", "median", "worst", "lowest", "in P5–P95", "band width", "rule of thumb: median", "worst"]
    lines += _table(
        head,
        [*_summary_rows("used in the fit", document["summary_used"]), *_summary_rows("not used", document["summary_unused"])],
    )
    failed = document["failed_gates"]
    lines += ["", "All goals are met." if not failed else "Goals that are missed: " + "; ".join(failed) + ".", ""]
    if document.get("cross_validation"):
        lines += _cross_validation(document["cross_validation"], level)
    for heading, found in (("Rows used in the fit", used), ("Rows not used", unused)):
        if found:
            lines += [f"{level} {heading}", "", *_rows_table(found), ""]
    if document["not_scored"]:
        lines += [
            f"{level} Not scored",
            "",
            *_table(["point", "metric", "why"], [[r["id"], r["metric"], r["reason"]] for r in document["not_scored"]]),
            "",
        ]
    return lines


def _cross_validation(found: dict[str, Any], level: str) -> list[str]:
    lines = [f"{level} Cross-validation", "", found["how"], ""]
    lines += _table(
        ["metric", "n", "median", "worst", "lowest"],
        [
            [NAMES.get(m, m), s["rows"], percent(s.get("median")), signed(s.get("worst")), signed(s.get("lowest"))]
            if "right" not in s
            else [NAMES.get(m, m), s["rows"], f"{s['right']} right", "", ""]
            for m, s in found["summary"].items()
        ],
    )
    return [*lines, ""]


def _summary_rows(label: str, summary: dict[str, Any]) -> list[list[Any]]:
    out: list[list[Any]] = []
    for metric, s in summary.items():
        if "right" in s:
            out.append([label, NAMES.get(metric, metric), s["rows"], f"{s['right']} right", "", "", "", "", "", ""])
            continue
        thumb = s.get("rule_of_thumb", {})
        errors = [percent(s.get("median")), signed(s.get("worst")), signed(s.get("lowest"))]
        bands = [percent(s.get("in_band"), 0), percent(s.get("median_width"), 0)]
        out.append(
            [
                label,
                NAMES.get(metric, metric),
                s["rows"],
                *errors,
                *bands,
                *map(percent, (thumb.get("median"), thumb.get("worst"))),
            ]
        )
    return out


def _rows_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    cells = []
    for r in rows:
        m = r["metric"]
        band = "" if r["p5"] is None else f"{figure(m, r['p5'])}–{figure(m, r['p95'])}"
        thumb = "" if r.get("rule_of_thumb") is None else figure(m, r["rule_of_thumb"])
        cells.append(
            [
                r["id"],
                NAMES.get(m, m),
                figure(m, r["measured"]),
                figure(m, r["predicted"]),
                signed(r.get("error")),
                band,
                thumb,
                r.get("note", ""),
            ]
        )
    return _table(["point", "metric", "measured", "predicted", "error", "P5–P95", "rule of thumb", "note"], cells)


def figure(metric: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if metric in IN_BYTES:
        return f"{value / 2**30:.2f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def signed(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def text(document: dict[str, Any]) -> str:
    """A short answer for the terminal."""
    lines = [f"calibration {document['calibration']}, points {document['source']}"]
    for label, key in (("used in the fit", "summary_used"), ("not used", "summary_unused")):
        for metric, s in document[key].items():
            name = f"{NAMES.get(metric, metric):<18}{label:<16}"
            if "right" in s:
                lines.append(f"{name}{s['right']} of {s['rows']} right")
            else:
                errors = f"median {percent(s.get('median')):>7}   worst {signed(s.get('worst')):>8}"
                errors += f"   lowest {signed(s.get('lowest')):>8}"
                lines.append(f"{name}{s['rows']:>3} rows   {errors}   in band {percent(s.get('in_band'), 0):>6}")
    for row in document["rows"]:
        m = row["metric"]
        band = "" if row["p5"] is None else f"[{figure(m, row['p5'])}, {figure(m, row['p95'])}]"
        figures = (
            f"{figure(m, row['measured']):>9} -> {figure(m, row['predicted']):>9}  {signed(row.get('error')):>8}  {band:<18}"
        )
        lines.append(f"  {row['id']:<34}{NAMES.get(m, m):<17}{figures}{'' if row['used_in_fit'] else 'not used'}".rstrip())
    lines += [f"  not scored: {r['id']} {r['metric']}: {r['reason']}" for r in document["not_scored"]]
    failed = document["failed_gates"]
    lines += [f"goal missed: {what}" for what in failed] or ["all goals met"]
    return "\n".join(lines)
