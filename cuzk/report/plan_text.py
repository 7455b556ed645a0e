"""`cuzk plan` and `cuzk size` as text, from their JSON documents."""

from __future__ import annotations

from typing import Any

from cuzk.report.verdict import gib


def plan_text(document: dict[str, Any]) -> str:
    """The recommendations, the best first; what binds; why the neighbours lose; or what is nearest."""
    searched = f"{document['considered']:,} settings considered, {document['simulated']:,} runs simulated"
    if not document["recommendations"]:
        return "\n".join([f"nothing fits with the margins ({searched})", *_nearest(document), *_rejected(document)])
    lines = [
        searched,
        "",
        f"{'s/proof':>8}  {'P5 to P95':>15}  {'RAM, P95':>10}  {'VRAM':>9}  {'P(OOM)':>6}  {'basis':<12}  deploy with",
    ]
    for row in document["recommendations"]:
        lines.append(_row(row))
    best = document["recommendations"][0]
    reserve = ", ".join(f"{pool} {gib(peak['reserve_bytes'])}" for pool, peak in best["peaks"].items() if pool != "pinned")
    binds = document["bottleneck"]
    lines += ["", f"binds      {binds['resource']}: {binds['why']}", f"reserve    {reserve} for the first of them",
              f"basis      {best['basis']}: {best['basis_why']}"]  # fmt: skip
    lines += ["", "its neighbours"]
    for row in document["neighbours"]:
        lines.append(f"  {' '.join(row['change']):<42}  {row['why']}")
    lines += _rejected(document)
    notes = dict.fromkeys(note for row in document["recommendations"] for note in row["warnings"])
    return "\n".join([*lines, *(["", *(f"note  {note}" for note in notes)] if notes else [])])


def _row(row: dict[str, Any]) -> str:
    vram = max((peak["resident_bytes"] for pool, peak in row["peaks"].items() if pool.startswith("vram")), default=0)
    band = row["s_per_proof_band"]
    spread = _spread(band) if band else ""
    sets = " ".join(f"--set {setting}" for setting in row["set"])
    p_oom = "" if row["p_oom"] is None else f"{row['p_oom']:.0%}"
    return (
        f"{row['s_per_proof']:>8.2f}  {spread:>15}  {gib(row['peaks']['ram']['p95_bytes']):>10}  {gib(vram):>9}  {p_oom:>6}  "
        f"{row['basis']:<12}  {sets}"
    )


def _nearest(document: dict[str, Any]) -> list[str]:
    near = document["nearest"]
    if near is None:
        return []
    lines = [f"too small  {near['pool']}: {gib(near['need_bytes'])} needed, {gib(near['limit_bytes'])} there"]
    if near["change"]:
        lines.append(f"nearest    {' '.join(f'--set {setting}' for setting in near['change'])}: {near['why']}")
    elif near["machine"]:
        words = [f"{name} {gib(value) if name.endswith('_bytes') else value}" for name, value in near["machine"].items()]
        lines.append(f"nearest    a machine with {', '.join(words)}: {near['why']}")
    return lines


def _rejected(document: dict[str, Any]) -> list[str]:
    rows = document["rejected"][:4]
    if not rows:
        return []
    out = ["", "not recommended"]
    for row in rows:
        words = " ".join(f"{name}={value}" for name, value in row["policy"].items())
        pace = f"{row['s_per_proof']:.2f} s/proof" if row["s_per_proof"] else "no pace"
        out.append(f"  {words}: {pace}; {row['why']}")
    return out


def size_text(document: dict[str, Any]) -> str:
    """The machines, the cheapest first, and the gain of each further GPU."""
    lines = [f"{document['considered']:,} machines considered, {document['simulated']:,} runs simulated; target "
             f"{document['target_s_per_proof']:.2f} s/proof"]  # fmt: skip
    if not document["machines"]:
        return "\n".join([*lines, "no machine of the catalogue makes the target; more hosts (--hosts) or a slower target may"])
    lines += ["", f"{'USD':>8}  {'s/proof':>8}  {'P5 to P95':>15}  {'USD/proof':>9}  {'kJ/proof':>8}  {'basis':<12}  machine"]
    for row in document["machines"]:
        band = row["s_per_proof_band"]
        lines.append(
            f"{row['usd']:>8,.0f}  {row['s_per_proof']:>8.2f}  {_spread(band):>15}  {row['usd_per_proof']:>9.4f}  "
            f"{row['joule_per_proof'] / 1e3:>8.1f}  {row['basis']:<12}  {row['name']}: {' '.join(row['set'])}"
        )
    lines += ["", "each further GPU in the cheapest"]
    for gain in document["gain"]:
        pace = "–" if gain["s_per_proof"] is None else f"{gain['s_per_proof']:.2f} s/proof"
        more = "" if gain["gain"] is None else f" ({gain['gain']:+.0%})"
        lines.append(f"  {gain['gpus']}  {pace}{more}  {gain['stops']}")
    return "\n".join([*lines, "", *(f"note  {note}" for note in document["notes"])])


def _spread(band: dict[str, float]) -> str:
    return f"{band['p5']:.1f} – {band['p95']:.1f}"
