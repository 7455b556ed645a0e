"""The look of every page: readable on a phone and in print, nothing from a network."""

from __future__ import annotations

import html

CSS = """
body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;margin:0;color:#1c2733;background:#fff}
main{max-width:1280px;margin:0 auto;padding:24px}
h1{font-size:22px;margin:0 0 4px} h2{font-size:18px;margin:28px 0 4px}
.verdict{font-size:17px;font-weight:600;margin:0 0 16px;white-space:pre-wrap;overflow-wrap:anywhere}
.fits{color:#1d7a55}.risky{color:#a86a00}.oom,.invalid{color:#b3261e}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:12px 0 20px}
th,td{padding:4px 14px 4px 0;text-align:right;border-bottom:1px solid #e3e7eb}
th:first-child,td:first-child{text-align:left} th{font-weight:600;color:#51606f}
td.l,th.l{text-align:left}
.note{color:#51606f;font-size:13px;overflow-wrap:anywhere}
pre{background:#f5f7f9;padding:10px 14px;overflow-x:auto;font-size:13px;line-height:1.4}
label{display:inline-block;margin:4px 16px 4px 0;font-size:14px} select{font:inherit;max-width:60vw}
svg{width:100%;height:auto} svg text{font:12px system-ui,sans-serif;fill:#51606f}
@media (max-width:640px){main{padding:12px}h1{font-size:19px}body{font-size:14px}}
@media print{main{max-width:none;padding:0}form,.modebar{display:none}h2{break-after:avoid}svg,table,pre{break-inside:avoid}}
"""


def head(title: str) -> str:
    """The page up to and with the opening of its body."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{CSS}</style></head><body>"
    )
