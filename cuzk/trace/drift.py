"""The cause of a difference between a run and its prediction: the step, link or lock that took more or less than it should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.trace.compare import Side

LINK_STEPS = ("copy", "upload", "download")
EXPLAINS = 0.25
"""A step that makes up this share of the largest wait's difference is the cause, and the wait its effect."""


def drift(predicted: Side, measured: Side) -> dict[str, Any]:
    """{cause, contributions, worst_under}: seconds a proof by which steps and waits differ, the largest first.

    `cause` is a step where one explains the difference, else the lock, permit or channel waited for; None where nothing can be
    compared. `worst_under`: the step whose prediction is furthest too low.
    """
    rows = _rows(predicted, measured)
    rows.sort(key=lambda row: (-abs(row["seconds_a_proof"]), row["name"]))
    steps = [row for row in rows if row["kind"] != "wait"]
    waits = [row for row in rows if row["kind"] == "wait"]
    cause = steps[0] if steps else None
    if waits and (cause is None or abs(cause["seconds_a_proof"]) < EXPLAINS * abs(waits[0]["seconds_a_proof"])):
        cause = waits[0]
    under = [row for row in steps if row["error"] is not None and row["error"] < 0]
    return {
        "cause": cause,
        "contributions": rows[:10],
        "worst_under": min(under, key=lambda row: row["error"], default=None),
    }


def _rows(predicted: Side, measured: Side) -> list[dict[str, Any]]:
    proofs = (max(1, predicted.proofs), max(1, measured.proofs))
    found = []
    for kind, mine, theirs in (("step", predicted.totals, measured.totals), ("wait", predicted.waits, measured.waits)):
        for name in sorted(mine.keys() & theirs.keys()):
            a, b = mine[name] / proofs[0], theirs[name] / proofs[1]
            shown = "link" if kind == "step" and name in LINK_STEPS else kind
            found.append({
                "kind": shown, "name": name, "predicted_s_a_proof": round(a, 6), "measured_s_a_proof": round(b, 6),
                "seconds_a_proof": round(b - a, 6), "error": round((a - b) / b, 6) if b else None,
            })  # fmt: skip
    return found
