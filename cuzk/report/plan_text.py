"""`cuzk plan` as text, from its JSON document."""

from __future__ import annotations

from typing import Any

from cuzk.report.verdict import gib


def plan_text(document: dict[str, Any]) -> str:
    """A table, the fastest policy first, with what to write to deploy each."""
    policies = document["policies"]
    if not policies:
        return f"none of the {document['tried']} policies tried fits on this machine"
    lines = [f"{len(policies)} of {document['tried']} policies are worth running: they fit, and none is both faster and smaller",
             "", f"{'s/proof':>8}  {'RAM':>10}  {'VRAM':>9}  {'binds':<20}  deploy with"]  # fmt: skip
    for row in policies:
        vram = max((peak["resident_bytes"] for pool, peak in row["peaks"].items() if pool.startswith("vram")), default=0)
        sets = " ".join(f"--set {setting}" for setting in row["set"])
        lines.append(f"{row['s_per_proof']:>8.2f}  {gib(row['peaks']['ram']['resident_bytes']):>10}  {gib(vram):>9}  "
                     f"{row['bottleneck'].get('resource', ''):<20}  {sets}")  # fmt: skip
    notes = dict.fromkeys(note for row in policies for note in row["warnings"])
    return "\n".join([*lines, *(["", *(f"note  {note}" for note in notes)] if notes else [])])
