"""The page of a sweep: pick values of the swept keys and see curves, verdict and throughput. All of it is in the file."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from cuzk.report.files import write_text
from cuzk.report.style import head

KEPT = (
    "verdict", "oom_pool", "s_per_proof", "steady_s_per_proof", "s_per_proof_p5", "s_per_proof_p95", "peak_ram_bytes",
    "peak_ram_p95_bytes", "ram_limit_bytes", "peak_vram_bytes", "vram_limit_bytes", "bottleneck", "why", "p_oom", "error",
)  # fmt: skip


def write_explorer(path: str | Path, document: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """`document`: that of the sweep, with its `axes`; `rows`: a setting and its figures each."""
    axes = document["axes"]
    data = {"axes": axes, "rows": [[row[key] for key in axes] + [row.get(name) for name in KEPT] for row in rows], "kept": KEPT}
    title = f"cuzk sweep {Path(str(document['scenario'])).stem}"
    script = files("cuzk.report").joinpath("explorer.js").read_text(encoding="utf-8")
    sets = " ".join(f"--set {text}" for text in document["set"])
    body = (
        f"<h1>{html.escape(title)}</h1><p class='note'>{len(rows):,} settings of {html.escape(str(document['scenario']))} "
        f"{html.escape(sets)}, {document['seeds']} seed(s) each</p>"
        "<form id='picks'></form><p id='answer' class='verdict'></p><p id='how' class='note'></p><div id='charts'></div>"
        "<h2>The fastest settings that fit</h2><div class='wide'><table id='best'></table></div>"
    )
    embedded = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    page = f"{head(title)}<main>{body}</main><script>const DATA={embedded};\n{script}</script></body></html>\n"
    write_text(path, page)
