"""The page of a plan: the recommendation, what binds, the others, why neighbours lose, and the configuration to deploy."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from cuzk.report.files import write_text
from cuzk.report.style import head
from cuzk.report.verdict import gib

W, H, LEFT, BOTTOM = 720, 300, 60, 40


def write_plan_page(path: str | Path, document: dict[str, Any], toml: str) -> None:
    """`document`: that of `cuzk plan --json`; `toml`: the daemon's file of the best setting, empty where there is none."""
    title = f"cuzk plan {document['scenario']}"
    parts = [f"<h1>{html.escape(title)}</h1>", _answer(document)]
    if document["recommendations"]:
        parts += [
            _table("Recommended", *_recommended(document)),
            _front(document),
            _table("Its neighbours", *_neighbours(document)),
        ]
    if document["rejected"]:
        parts.append(_table("Not recommended", *_rejected(document)))
    if document["recommendations"]:
        sets = " ".join(f"--set {text}" for text in document["recommendations"][0]["set"])
        parts.append(f"<h2>To deploy</h2><pre>{html.escape(sets)}</pre>")
    if toml:
        parts.append(f"<h2>As the daemon's configuration</h2><pre>{html.escape(toml)}</pre>")
    write_text(path, f"{head(title)}<main>{''.join(parts)}</main></body></html>\n")


def _answer(document: dict[str, Any]) -> str:
    searched = f"{document['considered']:,} settings considered, {document['simulated']:,} runs simulated"
    if document["recommendations"]:
        best = document["recommendations"][0]
        text = f"{best['s_per_proof']:.2f} s/proof, RAM {gib(best['peaks']['ram']['p95_bytes'])} (P95)"
        binds = f"{document['bottleneck']['resource']}: {document['bottleneck']['why']}"
        basis = f"{searched}; basis {best['basis']}: {best['basis_why']}"
        return f'<p class="verdict fits">{html.escape(text)}</p><p>binds: {html.escape(binds)}</p>' + _note(basis)
    near = document["nearest"]
    text = f"nothing fits with the margins: {near['pool']} needs {gib(near['need_bytes'])}, {gib(near['limit_bytes'])} are there"
    how = " ".join(f"--set {text}" for text in near["change"]) or ", ".join(
        f"{name} {gib(value) if name.endswith('_bytes') else value}" for name, value in (near["machine"] or {}).items()
    )
    found = f"<p>nearest: {html.escape(how)} ({html.escape(near['why'])})</p>"
    return f'<p class="verdict oom">{html.escape(text)}</p>{found}' + _note(searched)


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def _table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<h2>{html.escape(title)}</h2><div class="wide"><table><tr>{cells}</tr>{body}</table></div>'


def _recommended(document: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for row in document["recommendations"]:
        band = row["s_per_proof_band"]
        spread = f"{band['p5']:.1f} – {band['p95']:.1f}" if band else ""
        vram = max((p["resident_bytes"] for pool, p in row["peaks"].items() if pool.startswith("vram")), default=0)
        rows.append([_words(row["policy"]), f"{row['s_per_proof']:.2f}", spread, gib(row["peaks"]["ram"]["p95_bytes"]), gib(vram),
                     row["verdict"], row["basis"]])  # fmt: skip
    return ["setting", "s/proof", "P5 – P95", "RAM, P95", "VRAM", "verdict", "basis"], rows


def _neighbours(document: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = [[" ".join(row["change"]), row["verdict"], row["why"]] for row in document["neighbours"]]
    return ["change", "verdict", "what it does"], rows


def _rejected(document: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for row in document["rejected"]:
        pace = "–" if row["s_per_proof"] is None else f"{row['s_per_proof']:.2f}"
        rows.append([_words(row["policy"]), pace, gib(row["peak_ram_bytes"]), row["why"]])
    return ["setting", "s/proof", "RAM", "why not"], rows


def _words(policy: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in policy.items())


def _front(document: dict[str, Any]) -> str:
    """The Pareto front as a picture: RAM to the right, seconds a proof upwards."""
    points = [(row["peak_ram_bytes"] / 2**30, row["s_per_proof"], _words(row["policy"])) for row in document["pareto"]
              if row["s_per_proof"] is not None]  # fmt: skip
    if len(points) < 2:
        return ""
    right, top = 1.05 * max(p[0] for p in points), 1.1 * max(p[1] for p in points)

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + x / right * (W - LEFT - 20), H - BOTTOM - y / top * (H - BOTTOM - 20)

    marks = []
    for ram, pace, words in points:
        x, y = at(ram, pace)
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#1d7a55"><title>{html.escape(words)}: {pace:.2f} s/proof, '
                     f"{ram:.1f} GiB</title></circle>")  # fmt: skip
    ticks = "".join(
        f'<text x="{at(right * k / 4, 0)[0]:.0f}" y="{H - BOTTOM + 16}" text-anchor="middle">{right * k / 4:.0f}</text>'
        f'<text x="{LEFT - 6}" y="{at(0, top * k / 4)[1] + 4:.0f}" text-anchor="end">{top * k / 4:.0f}</text>'
        for k in range(5)
    )
    frame = f'<path d="M{LEFT} 20V{H - BOTTOM}H{W - 20}" fill="none" stroke="#9aa3ad"/>'
    names = f'<text x="{W // 2}" y="{H - 6}" text-anchor="middle">peak of RAM, GiB</text><text x="{LEFT}" y="14">s/proof</text>'
    svg = f'<svg viewBox="0 0 {W} {H}" role="img" aria-label="pace against RAM">{frame}{ticks}{names}{"".join(marks)}</svg>'
    return f"<h2>What is worth running: faster against smaller</h2>{svg}"
