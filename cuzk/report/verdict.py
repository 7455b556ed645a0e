"""The answer as text, the verdict line first. Written from the JSON document of `cuzk sim` or `cuzk run`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

GIB = 2**30
LABEL = 16


def gib(nbytes: float) -> str:
    """Bytes in GiB with one decimal (two below 10)."""
    value = nbytes / GIB
    return f"{value:.1f} GiB" if abs(value) >= 10 or value == 0 else f"{value:.2f} GiB"


def seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f} s" if value >= 10 else f"{value:.3f} s"


def verdict_line(document: dict[str, Any]) -> str:
    """FITS, RISKY or OOM, with what an operator needs to know at once."""
    verdict = str(document["verdict"]).upper()
    oom = document.get("oom")
    if oom:
        return (
            f"{verdict}    {oom['pool']} runs out at {seconds(oom['at_s'])}: {oom.get('buffer', 'a request')} needs "
            f"{gib(oom['request_bytes'])}, {gib(oom['level_bytes'])} of {gib(oom['capacity_bytes'])} are in use"
        )
    tight = _tightest(document)
    reason = f"    {document['reason']}" if document.get("reason") else ""
    return f"{verdict}{reason}    {tight}" if tight else verdict + reason


def _tightest(document: dict[str, Any]) -> str:
    rows = [(peak["resident_bytes"] / peak["capacity_bytes"], pool, peak)
            for pool, peak in document.get("peaks", {}).items() if peak.get("capacity_bytes")]  # fmt: skip
    if not rows:
        return ""
    share, pool, peak = max(rows)
    return f"tightest is {pool}: {gib(peak['resident_bytes'])} of {gib(peak['capacity_bytes'])} ({share:.0%})"


def holders(rows: Iterable[dict[str, Any]], most: int = 6) -> str:
    """`a 12 × 3.88 GiB = 46.6 GiB · aux …`"""
    parts = []
    for row in list(rows)[:most]:
        each = "" if row["count"] == 1 else f"{row['count']} × {gib(row['bytes'] / row['count'])} = "
        parts.append(f"{row['buffer']} {each}{gib(row['bytes'])}")
    return " · ".join(parts)


def summary(document: dict[str, Any]) -> str:
    """The whole answer, one subject a line."""
    lines = [verdict_line(document)]

    def row(label: str, text: str) -> None:
        if text:
            lines.append(f"{label:<{LABEL}}{text}")

    if document.get("oom"):
        row("held by", holders(document["oom"]["holders"]))
    _throughput(document, row)
    for pool, peak in document.get("peaks", {}).items():
        levels = f"{gib(peak['live_bytes'])} live, {gib(peak['reserved_bytes'])} reserved, {gib(peak['resident_bytes'])} resident"
        limit = f" (limit {gib(peak['capacity_bytes'])})" if peak.get("capacity_bytes") else ""
        row(f"peak {pool}", f"{levels} at {seconds(peak['at_s'])}{limit}")
        if not document.get("oom") and peak.get("holders") and peak["live_bytes"] > GIB:
            row("  held by", holders(peak["holders"]))
    _service(document, row)
    binds = document.get("bottleneck") or {}
    row("binds", f"{binds['resource']}: {binds['why']}" if binds.get("resource") else "")
    counts = document.get("counts") or {}
    row("counts", ", ".join(f"{name} {value}" for name, value in _flat(counts)))
    if document.get("rule_of_thumb"):
        row("rule of thumb", f"69 + 20·pw = {gib(document['rule_of_thumb']['peak_ram_bytes'])} of RAM")
    fix = document.get("smallest_change")
    if fix:
        effect = f"peak {fix['pool']} {gib(fix['peak_bytes'])}" if fix.get("pool") else ""
        pace = f", {fix['s_per_proof']:.1f} s/proof" if fix.get("s_per_proof") else ""
        risk = f"; RISKY: {fix['reason']}" if fix.get("verdict") == "risky" else ""
        row("would fit", f"--set {fix['set']}   ({effect}{pace}{risk})")
    for warning in document.get("warnings", ()):
        row("note", warning)
    return "\n".join(lines)


def _throughput(document: dict[str, Any], row: Any) -> None:
    pace = document.get("throughput") or {}
    if pace.get("s_per_proof") is None:
        return
    text = f"{pace['s_per_proof']:.2f} s/proof over the batch"
    if pace.get("steady_s_per_proof") is not None:
        text += f", {pace['steady_s_per_proof']:.2f} steady"
    if pace.get("prove_s") is not None:
        text += f"; {pace['prove_s']:.2f} s of GPU calls a proof"
    row("throughput", text)
    band = document.get("uncertainty")
    if band:
        s, ram = band.get("s_per_proof"), band.get("peak_ram_bytes")
        if s:
            row("  band", f"P5 {s['p5']:.2f}, P50 {s['p50']:.2f}, P95 {s['p95']:.2f} s/proof")
        if ram:
            row("  band", f"P5 {gib(ram['p5'])}, P50 {gib(ram['p50'])}, P95 {gib(ram['p95'])} of RAM; P(OOM) {band['p_oom']:.0%}")


def _service(document: dict[str, Any], row: Any) -> None:
    """Latency, whether arrivals are kept up with, and what to reserve for each pool."""
    times = document.get("latency")
    if times and not document.get("oom"):
        words = f"mean {seconds(times['mean_s'])}, P95 {seconds(times['p95_s'])}, the first {seconds(times['first_s'])}"
        row("latency", f"{words} from admission to completion")
    if document.get("service"):
        row("service", f"{document['service']['state']}: {document['service']['why']}")
    if document.get("reserve_bytes") and not document.get("oom"):
        row("reserve", ", ".join(f"{pool} {gib(nbytes)}" for pool, nbytes in document["reserve_bytes"].items()))


def _flat(counts: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for name, value in counts.items():
        out += _flat(value, f"{name} ") if isinstance(value, dict) else [(prefix + name, value)]
    return out
