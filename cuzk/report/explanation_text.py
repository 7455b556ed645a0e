"""`cuzk explain` as text, from its JSON document."""

from __future__ import annotations

from typing import Any

from cuzk.report.verdict import gib, holders, seconds

MOST_ROWS = 8


def explanation_text(found: dict[str, Any]) -> str:
    """Four parts: the peak, the waits, what binds over time, the nearest changes."""
    peak = found["peak"]
    lines = [f"{found['verdict'].upper()}    the peak of {found['pool']}: {gib(peak['resident_bytes'])} resident "
             f"of {gib(peak['capacity_bytes'])} at {seconds(found['at_s'])}"]  # fmt: skip
    lines += ["", "what it consists of"]
    for row in found["composition"][:MOST_ROWS]:
        sets = f"{row['sets']} sets" if row["sets"] else ""
        lines.append(f"  {gib(row['bytes']):>10}  {row['stage']:<28} {sets:<9} {holders(row['buffers'], 4)}".rstrip())
    lines += _rest(found["composition"], "stages")
    lines += ["", "who waits then"]
    for row in found["waits"][:MOST_ROWS]:
        served = "; ".join(row["served_by"])
        lines.append(f"  {row['sets']:>3} sets wait for {row['what']}, the oldest for {seconds(row['oldest_s'])} ({served})")
    if not found["waits"]:
        lines.append("  nobody")
    lines += ["", "what binds over time"]
    lines += [f"  {seconds(row['from_s']):>9} to {seconds(row['to_s']):>9}  {row['resource']}: {row['why']}"
              for row in _joined(found["binding"])]  # fmt: skip
    if found["changes"]:
        lines += ["", "what the nearest changes would do (each simulated)"]
        width = max(len(change["set"]) for change in found["changes"])
        lines += [_change(change, width) for change in found["changes"]]
    return "\n".join(lines)


def _joined(binding: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring stretches with the same resource as one."""
    out: list[dict[str, Any]] = []
    for row in binding:
        if out and out[-1]["resource"] == row["resource"]:
            out[-1] = {**out[-1], "to_s": row["to_s"]}
        else:
            out.append(row)
    return out


def _rest(rows: list[Any], what: str) -> list[str]:
    return [f"  … and {len(rows) - MOST_ROWS} more {what}"] if len(rows) > MOST_ROWS else []


def _change(change: dict[str, Any], width: int) -> str:
    pace = f"{change['s_per_proof']:.1f} s/proof" if change.get("s_per_proof") is not None else ""
    if change["verdict"] == "oom":
        outcome = f"OOM of {change['oom_pool']}"
    else:
        outcome = f"{change['verdict'].upper()}, RAM {gib(change['peak_ram_bytes'])}"
    return f"  --set {change['set']:<{width}}  {outcome:<26} {pace:<14} {change['why']}".rstrip()
